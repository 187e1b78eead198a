//! Shortens extensions of holds for visitors whose recent holds expired.
//!
//! An expired hold has blocked its seats without a sale. Once or twice is normal: a phone rings, a card is in another
//! room. A visitor who repeats it blocks seats for hours, one hold at a time, and extensions make that cheap. They
//! therefore get shorter; the hold itself keeps its normal duration. A purchase resets the count, and so does time.

use crate::time::MINUTE_MS;

/// Expired holds count until this long after the last of them, minutes.
pub const EXPIRY_COUNT_WINDOW_MINUTES: i64 = 30;
/// The same in milliseconds.
pub const EXPIRY_COUNT_WINDOW_MS: i64 = EXPIRY_COUNT_WINDOW_MINUTES * MINUTE_MS;
/// Number of expired holds from which extensions are halved.
pub const HALF_FROM: u32 = 2;
/// Number of expired holds from which extensions are refused.
pub const NONE_FROM: u32 = 4;

/// Returns the number of expired holds that still count at `now_ms`; the last one expired at `last_ms`.
#[must_use]
pub const fn expired_holds_at(count: u32, last_ms: i64, now_ms: i64) -> u32 {
    if now_ms - last_ms < EXPIRY_COUNT_WINDOW_MS { count } else { 0 }
}

/// Returns the length of an extension after `lapses` expired holds; `None` if it is refused.
#[must_use]
pub const fn extension_ms(full_ms: i64, lapses: u32) -> Option<i64> {
    if lapses >= NONE_FROM {
        None
    } else if lapses >= HALF_FROM {
        Some(full_ms / 2)
    } else {
        Some(full_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_shrink_and_end_with_expired_holds() {
        let left = |lapses| extension_ms(180_000, lapses);
        assert_eq!([left(0), left(1)], [Some(180_000); 2], "that is life");
        assert_eq!([left(2), left(3)], [Some(90_000); 2]);
        assert_eq!([left(4), left(5), left(u32::MAX)], [None; 3]);
    }

    #[test]
    fn expired_holds_stop_counting_after_a_while() {
        assert_eq!(expired_holds_at(3, 1_000, 1_000), 3);
        assert_eq!(expired_holds_at(3, 1_000, 1_000 + EXPIRY_COUNT_WINDOW_MS - 1), 3);
        assert_eq!(expired_holds_at(3, 1_000, 1_000 + EXPIRY_COUNT_WINDOW_MS), 0);
    }
}
