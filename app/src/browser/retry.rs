//! Retry policy of repeatable calls: exponential back-off with full jitter on top of the server's `Retry-After`.

/// Attempts in all.
pub const MAX_ATTEMPTS: u32 = 4;
/// Longest pause before the first retry without `Retry-After`, milliseconds. Doubles with each retry…
const FIRST_PAUSE_MS: u32 = 300;
/// …up to this.
const LONGEST_PAUSE_MS: u32 = 5_000;
/// No retry if the server asks for a longer pause, milliseconds: a person is looking at the page.
const LONGEST_RETRY_AFTER_MS: u32 = 15_000;

/// The result of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptStatus<'a> {
    /// The HTTP status; 0 without an answer.
    pub status: u16,
    /// The problem's stable code; empty if unreadable.
    pub code: &'a str,
    /// The pause of `Retry-After`, milliseconds.
    pub retry_after_ms: Option<u32>,
}

impl AttemptStatus<'_> {
    /// Returns true if the same call may succeed soon. A 429 counts as final without `Retry-After`, and for two codes
    /// that the page handles itself.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self.status {
            0 | 500 | 502..=504 => true,
            429 => self.retry_after_ms.is_some() && !matches!(self.code, "waiting_room" | "too_many_declines"),
            _ => self.code == "still_running",
        }
    }
}

/// The pause before the next attempt, milliseconds; `None` to give up. `jitter` returns a uniform number below its
/// argument.
#[must_use]
pub fn pause_ms(attempts: u32, outcome: AttemptStatus<'_>, jitter: impl FnOnce(u32) -> u32) -> Option<u32> {
    let floor_ms = outcome.retry_after_ms.unwrap_or(0);
    if attempts >= MAX_ATTEMPTS || !outcome.may_pass() || floor_ms > LONGEST_RETRY_AFTER_MS {
        return None;
    }
    let doubled = FIRST_PAUSE_MS.saturating_mul(1 << attempts.saturating_sub(1).min(16));
    Some(floor_ms + jitter(doubled.min(LONGEST_PAUSE_MS)))
}

/// Reads a `Retry-After` header in seconds. Dates are ignored.
#[must_use]
pub fn read_retry_after(header: &str) -> Option<u32> {
    let seconds: u32 = header.trim().parse().ok()?;
    Some(seconds.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHED: AttemptStatus<'_> = AttemptStatus { status: 503, code: "overloaded", retry_after_ms: Some(3_000) };
    const BARE: AttemptStatus<'_> = AttemptStatus { status: 503, code: "", retry_after_ms: None };

    #[test]
    fn jitter_is_added_to_the_servers_pause() {
        assert_eq!(pause_ms(1, SHED, |_| 0), Some(3_000));
        assert_eq!(pause_ms(1, SHED, |limit| limit - 1), Some(3_299));
        assert_eq!(pause_ms(3, SHED, |limit| limit - 1), Some(4_199));
    }

    #[test]
    fn without_retry_after_the_jitter_range_doubles() {
        let limits = [1, 2, 3].map(|attempts| pause_ms(attempts, BARE, |limit| limit));
        assert_eq!(limits, [Some(300), Some(600), Some(1_200)]);
        assert_eq!(pause_ms(1, BARE, |_| 0), Some(0));
    }

    #[test]
    fn attempts_and_pauses_are_bounded() {
        assert_eq!(pause_ms(MAX_ATTEMPTS, BARE, |_| 0), None);
        assert_eq!(pause_ms(u32::MAX, SHED, |_| 0), None);
        let longest = AttemptStatus { retry_after_ms: Some(LONGEST_RETRY_AFTER_MS), ..SHED };
        assert_eq!(pause_ms(1, longest, |_| 0), Some(LONGEST_RETRY_AFTER_MS));
        let longer = AttemptStatus { retry_after_ms: Some(LONGEST_RETRY_AFTER_MS + 1), ..SHED };
        assert_eq!(pause_ms(1, longer, |_| 0), None);
    }

    #[test]
    fn transient_failures_are_retried_and_final_ones_are_not() {
        let repeated = |status, code, retry_after_ms| AttemptStatus { status, code, retry_after_ms }.may_pass();
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
    fn retry_after_is_read_in_seconds() {
        assert_eq!(read_retry_after("3"), Some(3_000));
        assert_eq!(read_retry_after(" 0 "), Some(0));
        assert_eq!(read_retry_after("4294967295"), Some(u32::MAX));
        for other in ["", "-1", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            assert_eq!(read_retry_after(other), None, "{other}");
        }
    }
}
