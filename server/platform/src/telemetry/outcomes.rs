//! Counters with one label, whose values are the variants of an enum, and the counter of ticket characters without a font.

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

    /// Describes the counter and sets it to zero for every variant.
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
/// Requests about seats that a rate limit refused.
static LIMITED: LabelledCounter<HoldLimit> = LabelledCounter::new(
    "rowlock_hold_limits_total",
    "limit",
    "Tries for seats, changes of holds and checkouts that were refused because they came too often, by limit.",
);
/// Unusual events that were recorded for managers.
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

/// The database that answered a read of a public list; for the primary, the reason why the standby did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum CatalogueRead {
    /// The standby.
    Standby,
    /// The primary: there is no standby.
    Primary,
    /// The primary: the replication lag is too large or unknown.
    Behind,
    /// The primary: the configured server is not a standby of it.
    Unfit,
    /// The primary: the breaker of the standby is open.
    #[strum(serialize = "resting")]
    CircuitOpen,
    /// The primary, after the read of the standby failed.
    Failed,
    /// The primary, after the standby had no such row.
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
    /// The CDN answered with an error.
    Refused,
    /// The CDN did not answer.
    Unreachable,
    /// The purge is not retried and waits for an operator. Counted in addition to the last failure.
    Parked,
}

/// Counts tags sent to the CDN.
pub fn cdn_purged(outcome: CdnPurge, tags: usize) {
    PURGES.add(outcome, tags as u64);
}

/// A limit on requests about seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub enum HoldLimit {
    /// Attempts of a visitor.
    #[strum(serialize = "hold-visitor")]
    Visitor,
    /// Attempts of a client address.
    #[strum(serialize = "hold-address")]
    Address,
    /// Changes of holds of a visitor.
    #[strum(serialize = "change-visitor")]
    ChangesOfVisitor,
    /// Changes of holds of a client address.
    #[strum(serialize = "change-address")]
    ChangesOfAddress,
    /// Checkouts of a visitor.
    #[strum(serialize = "checkout-visitor")]
    CheckoutsOfVisitor,
    /// Checkouts of a client address.
    #[strum(serialize = "checkout-address")]
    CheckoutsOfAddress,
}

/// Counts a request that a limit refused.
pub fn hold_limited(limit: HoldLimit) {
    LIMITED.add(limit, 1);
}

/// Counts an unusual event that was recorded.
pub fn unusual(kind: UnusualKind) {
    UNUSUAL.add(kind, 1);
}

/// The outcome of a puzzle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum PuzzleOutcome {
    /// A request for seats had no solution; the response required one.
    Asked,
    /// The solution was valid.
    Solved,
    /// The solution was invalid, another visitor's, or expired.
    Wrong,
    /// The solution had been used for another request.
    Replayed,
}

/// Counts an outcome of a puzzle.
pub fn puzzle(outcome: PuzzleOutcome) {
    PUZZLES.add(outcome, 1);
}

/// An outcome of a call to the second lock store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ShadowOutcome {
    /// The answers of both stores were compared.
    Compared,
    /// The answers differed.
    Differed,
    /// The answers differed, but calls overlapped, so their order is unknown.
    Unordered,
    /// The second store did not have a hold of the first.
    UnknownHold,
    /// The call was not sent to the second store.
    Missed,
    /// The second store did not answer.
    Unreachable,
}

/// Counts an outcome of a call to the second lock store.
pub fn shadow_call(outcome: ShadowOutcome) {
    SHADOW.add(outcome, 1);
}

/// Characters that no font has, drawn as their code points.
const WITHOUT_FONT: &str = "rowlock_ticket_characters_without_font_total";
/// Maximum number of characters that are logged, each once per process. Names are untrusted: they must not fill the log.
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
