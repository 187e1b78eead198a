//! Settles which scan was the admission if several devices admitted one ticket while offline.
//!
//! The earliest scan is the admission. Every other scan is a duplicate and is reported. The outcome depends only on the
//! set of scans, not on their order of arrival or on repetitions.

use uuid::Uuid;

use crate::time::Timestamp;

/// A scan that admitted a ticket. Scans are ordered by time, then by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScanAdmission {
    /// Time on the server's clock.
    pub at: Timestamp,
    /// Id of the scan, chosen by the device.
    pub scan: Uuid,
}

/// Outcome of settling a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettlementOutcome {
    /// The ticket had no admission: this scan is the admission.
    Admission,
    /// This scan is already the recorded admission.
    AlreadyRecorded,
    /// An earlier scan is the admission: this scan is a duplicate.
    Duplicate {
        /// The admission, which remains.
        first: ScanAdmission,
    },
    /// This scan is earlier than the recorded admission and replaces it. The previous one becomes a duplicate.
    ReplacesLater {
        /// The previous admission.
        then: ScanAdmission,
    },
}

/// Compares a scan with the recorded admission of its ticket, if any.
#[must_use]
pub fn settle(admission: Option<ScanAdmission>, scan: ScanAdmission) -> SettlementOutcome {
    match admission {
        None => SettlementOutcome::Admission,
        Some(admission) if admission.scan == scan.scan => SettlementOutcome::AlreadyRecorded,
        Some(admission) if scan < admission => SettlementOutcome::ReplacesLater { then: admission },
        Some(admission) => SettlementOutcome::Duplicate { first: admission },
    }
}

/// Converts the time of an offline scan to the server's clock, from the device's clock at the scan and at sending. A
/// constant clock error cancels out. The result is limited to the possible range, in case the device's clock was set in
/// between: not before the list was made and not after the settlement arrived.
#[must_use]
pub fn scan_time_on_server_clock(
    at: Timestamp,
    sent_at: Timestamp,
    heard_at: Timestamp,
    list_made_at: Timestamp,
) -> Timestamp {
    let ago = sent_at.since(at).max(0);
    heard_at.plus_ms(ago.saturating_neg()).max(list_made_at).min(heard_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn let_in(at: i64, scan: u128) -> ScanAdmission {
        ScanAdmission { at: Timestamp(at), scan: Uuid::from_u128(scan) }
    }

    #[test]
    fn earliest_scan_is_the_admission() {
        let (early, late) = (let_in(5, 2), let_in(7, 1));
        assert_eq!(settle(None, early), SettlementOutcome::Admission);
        assert_eq!(settle(Some(early), early), SettlementOutcome::AlreadyRecorded);
        assert_eq!(settle(Some(early), late), SettlementOutcome::Duplicate { first: early });
        assert_eq!(settle(Some(late), early), SettlementOutcome::ReplacesLater { then: late });
        // A tie has a deterministic winner.
        let (one, other) = (let_in(5, 1), let_in(5, 2));
        assert_eq!(settle(Some(one), other), SettlementOutcome::Duplicate { first: one });
        assert_eq!(settle(Some(other), one), SettlementOutcome::ReplacesLater { then: other });
        // A retry with another time is the same scan.
        assert_eq!(settle(Some(one), let_in(9, 1)), SettlementOutcome::AlreadyRecorded);
    }

    #[test]
    fn constant_clock_error_cancels_and_clock_changes_are_bounded() {
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
            assert_eq!(
                scan_time_on_server_clock(Timestamp(at), Timestamp(sent_at), heard, list),
                Timestamp(expected),
                "{at} {sent_at}"
            );
        }
        // A list from the future, which our clock cannot have made: the result is never later than now.
        assert_eq!(scan_time_on_server_clock(Timestamp(0), Timestamp(0), heard, heard.plus_ms(1)), heard);
    }

    /// Returns the admission and the duplicates after these scans arrived in this order.
    fn settle_all(scans: &[ScanAdmission]) -> (Option<ScanAdmission>, BTreeSet<ScanAdmission>) {
        let (mut admission, mut too_many) = (None, BTreeSet::new());
        for scan in scans {
            match settle(admission, *scan) {
                SettlementOutcome::Admission => admission = Some(*scan),
                SettlementOutcome::AlreadyRecorded => {}
                SettlementOutcome::Duplicate { .. } => drop(too_many.insert(*scan)),
                SettlementOutcome::ReplacesLater { then } => {
                    too_many.insert(then);
                    admission = Some(*scan);
                }
            }
        }
        (admission, too_many)
    }

    /// Scans of one ticket with distinct ids, some at the same time.
    fn scans() -> impl Strategy<Value = Vec<ScanAdmission>> {
        prop::collection::vec(0..6_i64, 1..8)
            .prop_map(|times| (0_u128..).zip(times).map(|(id, at)| let_in(at, id * 7 % 11)).collect())
    }

    proptest! {
        #[test]
        fn one_scan_is_the_admission_and_all_others_are_reported_in_any_order(
            (first, shuffled) in scans().prop_flat_map(|scans| (Just(scans.clone()), Just(scans).prop_shuffle())),
            again in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let expected = settle_all(&first);
            let earliest = first.iter().min().copied();
            prop_assert_eq!(expected.0, earliest);
            let others: BTreeSet<ScanAdmission> = first.iter().copied().filter(|scan| Some(*scan) != earliest).collect();
            prop_assert_eq!(&expected.1, &others, "each of the others is reported, and once");
            prop_assert_eq!(settle_all(&shuffled), expected.clone());
            // Repeated scans change nothing.
            let mut repeated = shuffled.clone();
            repeated.extend(again.iter().map(|index| *index.get(&shuffled)));
            prop_assert_eq!(settle_all(&repeated), expected);
        }

        #[test]
        fn scan_time_is_between_list_and_now(at: i64, sent: i64, made in 0..1_000_i64, age in 0..1_000_i64) {
            let (list, heard) = (Timestamp(made), Timestamp(made + age));
            let placed = scan_time_on_server_clock(Timestamp(at), Timestamp(sent), heard, list);
            prop_assert!(list <= placed && placed <= heard);
        }
    }
}
