//! Who was let in first, when several devices let people in with one ticket while they were apart.
//!
//! The earliest scan is the admission, and each of the others is one too many and is reported. That is so whatever the
//! order in which the scans come in and however often each of them does: the outcome depends on the scans alone.

use uuid::Uuid;

use crate::time::Timestamp;

/// A scan that let somebody in with a ticket. The order is that of their times; at the same time, of their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LetIn {
    /// When, by the server's clock.
    pub at: Timestamp,
    /// The scan, as the device named it.
    pub scan: Uuid,
}

/// What becomes of a scan that let somebody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Nobody was let in with the ticket before: this is the admission.
    Admission,
    /// This very scan is the admission already.
    Known,
    /// Somebody was let in before: this one was too many.
    TooMany {
        /// The admission, which stays.
        first: LetIn,
    },
    /// It was before the one that stood: it is the admission now, and that one was too many.
    Earlier {
        /// What stood.
        then: LetIn,
    },
}

/// How a scan that let somebody in stands to the admission of its ticket, if there is one.
#[must_use]
pub fn settle(standing: Option<LetIn>, scan: LetIn) -> Settled {
    match standing {
        None => Settled::Admission,
        Some(standing) if standing.scan == scan.scan => Settled::Known,
        Some(standing) if scan < standing => Settled::Earlier { then: standing },
        Some(standing) => Settled::TooMany { first: standing },
    }
}

/// When a scan was made by the server's clock, from when the device's clock says it was and what that clock said when
/// the scan was sent. A clock that is wrong is as wrong both times. One that was set in between is not believed beyond
/// what can be: a scan by a list is made after the list, and before it is heard of.
#[must_use]
pub fn placed(at: Timestamp, sent_at: Timestamp, heard_at: Timestamp, list_made_at: Timestamp) -> Timestamp {
    let ago = sent_at.since(at).max(0);
    heard_at.plus_ms(ago.saturating_neg()).max(list_made_at).min(heard_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn let_in(at: i64, scan: u128) -> LetIn {
        LetIn { at: Timestamp(at), scan: Uuid::from_u128(scan) }
    }

    #[test]
    fn the_earliest_scan_is_the_admission() {
        let (early, late) = (let_in(5, 2), let_in(7, 1));
        assert_eq!(settle(None, early), Settled::Admission);
        assert_eq!(settle(Some(early), early), Settled::Known);
        assert_eq!(settle(Some(early), late), Settled::TooMany { first: early });
        assert_eq!(settle(Some(late), early), Settled::Earlier { then: late });
        // At the same time somebody has to be first, and always the same one.
        let (one, other) = (let_in(5, 1), let_in(5, 2));
        assert_eq!(settle(Some(one), other), Settled::TooMany { first: one });
        assert_eq!(settle(Some(other), one), Settled::Earlier { then: other });
        // A retry that is placed at another time is the same scan.
        assert_eq!(settle(Some(one), let_in(9, 1)), Settled::Known);
    }

    #[test]
    fn a_wrong_clock_is_wrong_twice_and_a_clock_that_was_set_is_not_believed() {
        let (list, heard) = (Timestamp(1_000_000), Timestamp(2_000_000));
        let hours = 3_600_000;
        for (at, sent_at, expected) in [
            (1_900_000, 1_990_000, 1_910_000),
            // Five hours behind, five hours ahead.
            (1_900_000 - 5 * hours, 1_990_000 - 5 * hours, 1_910_000),
            (1_900_000 + 5 * hours, 1_990_000 + 5 * hours, 1_910_000),
            // Set back between the scan and now, and set ahead.
            (1_990_000 + 5 * hours, 1_990_000, 2_000_000),
            (1_990_000, 1_990_000 + 5 * hours, 1_000_000),
            (i64::MIN, i64::MAX, 1_000_000),
            (i64::MAX, i64::MIN, 2_000_000),
        ] {
            assert_eq!(placed(Timestamp(at), Timestamp(sent_at), heard, list), Timestamp(expected), "{at} {sent_at}");
        }
        // A list from the future, which no clock of ours made: never later than now.
        assert_eq!(placed(Timestamp(0), Timestamp(0), heard, heard.plus_ms(1)), heard);
    }

    /// What the books say after these scans came in, in this order: the admission, and those reported as too many.
    fn books(scans: &[LetIn]) -> (Option<LetIn>, BTreeSet<LetIn>) {
        let (mut standing, mut too_many) = (None, BTreeSet::new());
        for scan in scans {
            match settle(standing, *scan) {
                Settled::Admission => standing = Some(*scan),
                Settled::Known => {}
                Settled::TooMany { .. } => drop(too_many.insert(*scan)),
                Settled::Earlier { then } => {
                    too_many.insert(then);
                    standing = Some(*scan);
                }
            }
        }
        (standing, too_many)
    }

    /// Scans of one ticket, each with an id of its own, some at the same time.
    fn scans() -> impl Strategy<Value = Vec<LetIn>> {
        prop::collection::vec(0..6_i64, 1..8)
            .prop_map(|times| (0_u128..).zip(times).map(|(id, at)| let_in(at, id * 7 % 11)).collect())
    }

    proptest! {
        #[test]
        fn one_is_let_in_and_all_others_are_reported_whatever_the_order(
            (first, shuffled) in scans().prop_flat_map(|scans| (Just(scans.clone()), Just(scans).prop_shuffle())),
            again in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let expected = books(&first);
            let earliest = first.iter().min().copied();
            prop_assert_eq!(expected.0, earliest);
            let others: BTreeSet<LetIn> = first.iter().copied().filter(|scan| Some(*scan) != earliest).collect();
            prop_assert_eq!(&expected.1, &others, "each of the others is reported, and once");
            prop_assert_eq!(books(&shuffled), expected.clone());
            // Whatever is sent again changes nothing.
            let mut repeated = shuffled.clone();
            repeated.extend(again.iter().map(|index| *index.get(&shuffled)));
            prop_assert_eq!(books(&repeated), expected);
        }

        #[test]
        fn a_scan_is_never_before_its_list_nor_after_now(at: i64, sent: i64, made in 0..1_000_i64, age in 0..1_000_i64) {
            let (list, heard) = (Timestamp(made), Timestamp(made + age));
            let placed = placed(Timestamp(at), Timestamp(sent), heard, list);
            prop_assert!(list <= placed && placed <= heard);
        }
    }
}
