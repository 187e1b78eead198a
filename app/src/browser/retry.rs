//! When a call that may be repeated is tried again, and how often: full-jitter exponential back-off above what the server
//! asked for.

/// Tries in all of a call that may be repeated.
pub const TRIES: u32 = 4;
/// Longest pause before the second try, milliseconds, where the server asked for none; doubles with each further one…
const FIRST_PAUSE_MS: u32 = 300;
/// …up to this.
const LONGEST_PAUSE_MS: u32 = 5_000;
/// A server that asks for a longer pause is not tried again, milliseconds: a person looks at the page meanwhile.
const LONGEST_RETRY_AFTER_MS: u32 = 15_000;

/// Why a try brought nothing, as far as repeating it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// The HTTP status; 0 when there was no answer.
    pub status: u16,
    /// The problem's stable code; empty where none was read.
    pub code: &'a str,
    /// The pause the server asked for, milliseconds.
    pub retry_after_ms: Option<u32>,
}

impl Outcome<'_> {
    /// True if the same call may succeed in a moment. A 429 is a limit that is there to stay unless it says when to come
    /// back, and two of its codes are answers that the page acts on.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self.status {
            0 | 500 | 502..=504 => true,
            429 => self.retry_after_ms.is_some() && !matches!(self.code, "waiting_room" | "too_many_declines"),
            _ => self.code == "still_running",
        }
    }
}

/// The pause after so many tries, milliseconds; `None`: the call is given up. `jitter` draws evenly below its
/// argument.
#[must_use]
pub fn pause_ms(tries: u32, outcome: Outcome<'_>, jitter: impl FnOnce(u32) -> u32) -> Option<u32> {
    let floor_ms = outcome.retry_after_ms.unwrap_or(0);
    if tries >= TRIES || !outcome.may_pass() || floor_ms > LONGEST_RETRY_AFTER_MS {
        return None;
    }
    let doubled = FIRST_PAUSE_MS.saturating_mul(1 << tries.saturating_sub(1).min(16));
    Some(floor_ms + jitter(doubled.min(LONGEST_PAUSE_MS)))
}

/// The pause that a `Retry-After` header asks for, in whole seconds; a date is not read.
#[must_use]
pub fn read_retry_after(header: &str) -> Option<u32> {
    let seconds: u32 = header.trim().parse().ok()?;
    Some(seconds.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHED: Outcome<'_> = Outcome { status: 503, code: "overloaded", retry_after_ms: Some(3_000) };
    const BARE: Outcome<'_> = Outcome { status: 503, code: "", retry_after_ms: None };

    #[test]
    fn the_server_sets_the_floor_and_jitter_comes_above_it() {
        assert_eq!(pause_ms(1, SHED, |_| 0), Some(3_000));
        assert_eq!(pause_ms(1, SHED, |limit| limit - 1), Some(3_299));
        assert_eq!(pause_ms(3, SHED, |limit| limit - 1), Some(4_199));
    }

    #[test]
    fn without_a_word_of_the_server_pauses_double_and_may_be_anything_below() {
        let limits = [1, 2, 3].map(|tries| pause_ms(tries, BARE, |limit| limit));
        assert_eq!(limits, [Some(300), Some(600), Some(1_200)]);
        assert_eq!(pause_ms(1, BARE, |_| 0), Some(0));
    }

    #[test]
    fn tries_and_pauses_are_bounded() {
        assert_eq!(pause_ms(TRIES, BARE, |_| 0), None);
        assert_eq!(pause_ms(u32::MAX, SHED, |_| 0), None);
        let longest = Outcome { retry_after_ms: Some(LONGEST_RETRY_AFTER_MS), ..SHED };
        assert_eq!(pause_ms(1, longest, |_| 0), Some(LONGEST_RETRY_AFTER_MS));
        let longer = Outcome { retry_after_ms: Some(LONGEST_RETRY_AFTER_MS + 1), ..SHED };
        assert_eq!(pause_ms(1, longer, |_| 0), None);
    }

    #[test]
    fn what_passes_is_repeated_and_a_definite_no_is_not() {
        let repeated = |status, code, retry_after_ms| Outcome { status, code, retry_after_ms }.may_pass();
        for status in [0, 500, 502, 503, 504] {
            assert!(repeated(status, "", None), "{status}");
        }
        assert!(repeated(429, "too_many_attempts", Some(1_000)));
        assert!(repeated(409, "still_running", Some(1_000)));
        for (status, code, retry_after_ms) in [
            (429, "person_limit", None),
            (429, "waiting_room", Some(5_000)),
            (429, "too_many_declines", Some(60_000)),
            (409, "seats_taken", None),
            (404, "not_found", None),
            (410, "hold_expired", None),
            (428, "puzzle_wanted", None),
            (501, "", None),
        ] {
            assert!(!repeated(status, code, retry_after_ms), "{status} {code}");
        }
    }

    #[test]
    fn a_pause_is_read_in_seconds() {
        assert_eq!(read_retry_after("3"), Some(3_000));
        assert_eq!(read_retry_after(" 0 "), Some(0));
        assert_eq!(read_retry_after("4294967295"), Some(u32::MAX));
        for other in ["", "-1", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            assert_eq!(read_retry_after(other), None, "{other}");
        }
    }
}
