//! Counters with one label, whose values are the variants of an enum, and one of characters on tickets.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use domain::VariantName;
use domain::fairness::UnusualKind;
use metrics::{Unit, counter, describe_counter};
use strum::{IntoStaticStr, VariantArray};

/// A counter with one label. Its values are the variants of `T`.
pub(super) struct LabelledCounter<T> {
    name: &'static str,
    label: &'static str,
    description: &'static str,
    values: PhantomData<T>,
}

impl<T: VariantName + VariantArray> LabelledCounter<T> {
    pub(super) const fn new(name: &'static str, label: &'static str, description: &'static str) -> Self {
        Self { name, label, description, values: PhantomData }
    }

    /// Describes it and sets it to zero for every variant.
    pub(super) fn register(&self) {
        describe_counter!(self.name, Unit::Count, self.description);
        for value in T::VARIANTS {
            self.add(*value, 0);
        }
    }

    pub(super) fn add(&self, value: T, count: u64) {
        counter!(self.name, self.label => value.as_str()).increment(count);
    }
}

/// Reads of the catalogue that a standby may answer.
static READS: LabelledCounter<CatalogueRead> = LabelledCounter::new(
    "rowlock_catalogue_reads_total",
    "outcome",
    "Public lists, by the database that answered: the standby, or the primary for the reason named.",
);
/// Tags sent to the CDN for purging.
static PURGES: LabelledCounter<CdnPurge> = LabelledCounter::new(
    "rowlock_cdn_purges_total",
    "outcome",
    "Tags sent to the CDN for purging, by its answer; parked: not retried.",
);
/// Requests about seats that came too soon.
static LIMITED: LabelledCounter<HoldLimit> = LabelledCounter::new(
    "rowlock_hold_limits_total",
    "limit",
    "Tries for seats, changes of holds and checkouts that were refused because they came too often, by limit.",
);
/// Sightings written down for managers.
static UNUSUAL: LabelledCounter<UnusualKind> = LabelledCounter::new(
    "rowlock_unusual_total",
    "kind",
    "Something unusual that was written down for managers, by kind.",
);
/// Requests for seats that needed a proof of work or sent one.
static PUZZLES: LabelledCounter<PuzzleOutcome> = LabelledCounter::new(
    "rowlock_puzzles_total",
    "outcome",
    "Puzzles in front of seats: asked, solved, wrong (no solution, another's, too late), replayed.",
);
/// Calls to the lock store that were also sent to the second store.
static SHADOW: LabelledCounter<ShadowOutcome> = LabelledCounter::new(
    "rowlock_shadow_calls_total",
    "outcome",
    "Calls to the second lock store, by outcome: compared, and of these differed, unordered, unknown_hold; missed, \
     unreachable.",
);

pub(super) fn register() {
    READS.register();
    PURGES.register();
    LIMITED.register();
    UNUSUAL.register();
    PUZZLES.register();
    SHADOW.register();
    describe_counter!(
        WITHOUT_FONT,
        Unit::Count,
        "Characters on PDF tickets that no font has, drawn as their code points."
    );
    counter!(WITHOUT_FONT).increment(0);
}

/// The database that answered a read that may go to the standby; for the primary, the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
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
    #[strum(serialize = "resting")]
    CircuitOpen,
    /// The primary, after the standby gave no usable answer.
    Failed,
    /// The primary, after the standby knew of no such thing.
    NotThere,
}

/// Counts a read that a standby may answer.
pub fn catalogue_read(outcome: CatalogueRead) {
    READS.add(outcome, 1);
}

/// The outcome of purging a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum CdnPurge {
    /// The CDN confirmed the purge.
    Accepted,
    /// It answered something else.
    Refused,
    /// It gave no answer.
    Unreachable,
    /// It is not retried: an operator must look. Counted with the last failure.
    Parked,
}

/// Counts tags sent to the CDN.
pub fn cdn_purged(outcome: CdnPurge, tags: usize) {
    PURGES.add(outcome, tags as u64);
}

/// A limit on requests about seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub enum HoldLimit {
    /// One visitor's.
    #[strum(serialize = "hold-visitor")]
    Visitor,
    /// The limit of a client address.
    #[strum(serialize = "hold-address")]
    Address,
    /// A visitor's changes of holds.
    #[strum(serialize = "change-visitor")]
    ChangesOfVisitor,
    /// Those of an address.
    #[strum(serialize = "change-address")]
    ChangesOfAddress,
    /// A visitor's checkouts.
    #[strum(serialize = "checkout-visitor")]
    CheckoutsOfVisitor,
    /// Those of an address.
    #[strum(serialize = "checkout-address")]
    CheckoutsOfAddress,
}

/// Counts a try for seats that came too soon.
pub fn hold_limited(limit: HoldLimit) {
    LIMITED.add(limit, 1);
}

/// Counts something unusual that was written down.
pub fn unusual(kind: UnusualKind) {
    UNUSUAL.add(kind, 1);
}

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

/// Counts what became of a puzzle.
pub fn puzzle(outcome: PuzzleOutcome) {
    PUZZLES.add(outcome, 1);
}

/// An outcome of asking the second store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ShadowOutcome {
    /// Its answer was compared with the first store's.
    Compared,
    /// It was another answer.
    Differed,
    /// It was another answer to calls that overlapped, so their order is unknown.
    Unordered,
    /// The second did not know a hold of the first.
    UnknownHold,
    /// The call was not sent to the second store.
    Missed,
    /// The second did not answer.
    Unreachable,
}

/// Counts an outcome of asking the second store.
pub fn shadow_call(outcome: ShadowOutcome) {
    SHADOW.add(outcome, 1);
}

/// Characters drawn as their code points.
const WITHOUT_FONT: &str = "rowlock_ticket_characters_without_font_total";
/// Characters that are logged, each once per process; all are counted. Names are input of strangers: the log has an end.
const MAX_LOGGED: usize = 500;

static LOGGED: Mutex<BTreeSet<char>> = Mutex::new(BTreeSet::new());

/// Counts a character that a ticket shows as its code point, and logs it the first time.
pub fn character_without_font(character: char) {
    counter!(WITHOUT_FONT).increment(1);
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.len() < MAX_LOGGED && logged.insert(character) {
        let code_point = format!("U+{:04X}", u32::from(character));
        tracing::warn!(code_point, "no font has a character of a ticket; printing its code point");
    }
}
