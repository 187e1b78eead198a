//! Reads of public lists, by the database that answered.

use metrics::{Unit, counter, describe_counter};

/// Reads of the catalogue that a standby may answer: outcome.
const READS: &str = "rowlock_catalogue_reads_total";

/// The database that answered a read that may go to the standby; for the primary, the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogueRead {
    /// The standby.
    Standby,
    /// The primary: there is no standby.
    Primary,
    /// The primary: the replication lag is too large or unknown.
    Behind,
    /// The primary: the configured standby is not one of it.
    Unfit,
    /// The primary: the standby did not answer lately.
    CircuitOpen,
    /// The primary, after the standby gave no usable answer.
    Failed,
    /// The primary, after the standby knew of no such thing.
    NotThere,
}

impl CatalogueRead {
    const ALL: [Self; 7] =
        [Self::Standby, Self::Primary, Self::Behind, Self::Unfit, Self::CircuitOpen, Self::Failed, Self::NotThere];

    const fn label(self) -> &'static str {
        match self {
            Self::Standby => "standby",
            Self::Primary => "primary",
            Self::Behind => "behind",
            Self::Unfit => "unfit",
            Self::CircuitOpen => "resting",
            Self::Failed => "failed",
            Self::NotThere => "not_there",
        }
    }
}

pub(super) fn describe() {
    describe_counter!(
        READS,
        Unit::Count,
        "Public lists, by the database that answered: the standby, or the primary for the reason named."
    );
}

pub(super) fn begin_at_zero() {
    for outcome in CatalogueRead::ALL {
        counter!(READS, "outcome" => outcome.label()).increment(0);
    }
}

/// Counts a read that a standby may answer.
pub fn catalogue_read(outcome: CatalogueRead) {
    counter!(READS, "outcome" => outcome.label()).increment(1);
}
