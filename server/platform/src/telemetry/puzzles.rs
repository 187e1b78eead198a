//! Proofs of work for holds: how many are required, and how they end.

use domain::VariantName;
use metrics::{Unit, counter, describe_counter};
use strum::{IntoStaticStr, VariantArray};

/// Requests for seats that needed a proof of work or sent one: outcome.
const PUZZLES: &str = "rowlock_puzzles_total";

/// The outcome of a puzzle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum PuzzleOutcome {
    /// A request for seats had no solution; the response required one.
    Asked,
    /// A solution was right.
    Solved,
    /// The solution was invalid, another visitor's, or expired.
    Wrong,
    /// A solution was used before, for another request.
    Replayed,
}

pub(super) fn describe() {
    describe_counter!(
        PUZZLES,
        Unit::Count,
        "Puzzles in front of seats: asked, solved, wrong (no solution, another's, too late), replayed."
    );
}

pub(super) fn begin_at_zero() {
    for outcome in PuzzleOutcome::VARIANTS {
        counter!(PUZZLES, "outcome" => outcome.as_str()).increment(0);
    }
}

/// Counts what became of a puzzle.
pub fn puzzle(outcome: PuzzleOutcome) {
    counter!(PUZZLES, "outcome" => outcome.as_str()).increment(1);
}
