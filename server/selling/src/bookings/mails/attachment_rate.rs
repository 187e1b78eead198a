//! The rate of mails with attachments, of this replica. Above it load is high: sales need the processors more, and the
//! links in the mail open the same tickets.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::time::{SECOND_MS, Timestamp};

/// Maximum mails with attachments in one second.
const MAX_PER_S: u64 = 40;
/// Bits of the count in [`COUNTED`].
const COUNT_BITS: u32 = 16;

/// The second of the last mail with attachments; in its lowest bits, the number of them in that second.
static COUNTED: AtomicU64 = AtomicU64::new(0);

/// Counts one more mail with attachments; `false` where the rate is used up, and nothing is counted.
pub(super) fn try_count(now: Timestamp) -> bool {
    let second = now.0.unsigned_abs() / SECOND_MS.unsigned_abs();
    COUNTED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |counted| one_more(counted, second)).is_ok()
}

fn one_more(counted: u64, second: u64) -> Option<u64> {
    if counted >> COUNT_BITS != second {
        return Some(second << COUNT_BITS | 1);
    }
    (counted & ((1 << COUNT_BITS) - 1) < MAX_PER_S).then_some(counted + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_with_attachments_are_limited_per_second() {
        let mut counted = 0;
        for number in 1..=MAX_PER_S {
            counted = one_more(counted, 7).unwrap_or_else(|| panic!("{number} are allowed"));
        }
        assert_eq!(one_more(counted, 7), None);
        assert_eq!(one_more(counted, 8), Some(8 << COUNT_BITS | 1));
    }
}
