//! How much longer somebody may hold seats, who lately let others run out.
//!
//! A hold that runs out kept its seats from everybody for nothing. Once or twice that is life: a phone rings, a card is in
//! another room. Whoever does it on and on keeps seats from others for hours, a hold at a time, and extensions are what
//! makes that cheap: so these get shorter. The hold itself stays as long as anybody's. Buying something makes all of it
//! forgotten, and so does time.

use crate::time::MINUTE_MS;

/// Holds that ran out are counted on for so long after the last of them, minutes.
pub const LAPSES_COUNT_MINUTES: i64 = 30;
/// The same in milliseconds.
pub const LAPSES_COUNT_MS: i64 = LAPSES_COUNT_MINUTES * MINUTE_MS;
/// From so many on an extension is half as long.
pub const HALF_FROM: u32 = 2;
/// From so many on there is none.
pub const NONE_FROM: u32 = 4;

/// How many count at `now` of those whose last one ran out at `last_ms`.
#[must_use]
pub const fn lapses_at(count: u32, last_ms: i64, now_ms: i64) -> u32 {
    if now_ms - last_ms < LAPSES_COUNT_MS { count } else { 0 }
}

/// What is left of an extension after so many; `None`: nothing is.
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
    fn extensions_get_shorter_with_what_ran_out_and_end() {
        let left = |lapses| extension_ms(180_000, lapses);
        assert_eq!([left(0), left(1)], [Some(180_000); 2], "that is life");
        assert_eq!([left(2), left(3)], [Some(90_000); 2]);
        assert_eq!([left(4), left(5), left(u32::MAX)], [None; 3]);
    }

    #[test]
    fn time_makes_it_forgotten() {
        assert_eq!(lapses_at(3, 1_000, 1_000), 3);
        assert_eq!(lapses_at(3, 1_000, 1_000 + LAPSES_COUNT_MS - 1), 3);
        assert_eq!(lapses_at(3, 1_000, 1_000 + LAPSES_COUNT_MS), 0);
    }
}
