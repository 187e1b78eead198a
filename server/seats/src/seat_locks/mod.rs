//! The lock store: which visitor holds which seat of a show now, on the store's own clock.
//!
//! It grants holds and nothing more. It can lose one (a failover under replication lag does), so a
//! hold never authorises a charge: that is `seat_claims` in Postgres (see `bookings`).
//!
//! Prices, persons, bookings and the server's clock are not used here.

mod claims_check;
mod free;
mod keys;
mod memory;
mod queue;
mod rebuild;
mod redis_store;
mod shadow;
mod sweeper;

use async_trait::async_trait;
use bytes::Bytes;
use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use domain::time::Timestamp;
use uuid::Uuid;

use platform::ids;
use platform::redis_link::LinkError;

pub use claims_check::ComparedShows;
pub use free::free_or_block;
pub use keys::{Keys, channel_of, show_of_channel};
pub use memory::{Announcement, ManualClock, MemoryLocks};
pub use queue::LockQueue;
pub use rebuild::{read_map_or_claims, rebuild_source, with_map};
pub use redis_store::RedisLocks;
pub use shadow::{Divergence, DivergenceKind, RebuildSource, ShadowLocks};
pub use sweeper::{SweptShows, forget_forever, sweep_forever};

/// Seats and places of an attempt, a hold or a sale.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Seats, sorted, each once.
    pub seats: Vec<SeatIndex>,
    /// Places in areas, sorted by area, each area once, no count zero.
    pub places: Vec<Places>,
}

impl Selection {
    /// Seats only.
    #[must_use]
    pub const fn of_seats(seats: Vec<SeatIndex>) -> Self {
        Self { seats, places: Vec::new() }
    }

    /// True without seats and places.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.seats.is_empty() && self.places.is_empty()
    }
}

/// Identity of a request for replay: the store repeats its answer to the same request for at least a day, whatever
/// happened to the hold meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestIdentity {
    /// Derived by the caller from the person, the show and their key.
    pub id: Uuid,
    /// Digest of the request: a different one under the same id is [`Refusal::Reused`].
    pub digest: u64,
}

/// Limits of a show for its holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldLimits {
    /// Seats and places one person may hold and own.
    pub per_person: usize,
    /// Length of a hold, milliseconds.
    pub length_ms: i64,
    /// Maximum life of a hold with extensions, milliseconds; payments in progress may exceed it.
    pub life_ms: i64,
}

/// One attempt to get a hold.
#[derive(Clone, Debug)]
pub struct LockAttempt {
    /// Its id becomes the id of the hold.
    pub asked: RequestIdentity,
    /// The owner of the hold; contains no colon.
    pub owner: String,
    /// The seats and places asked for; not empty.
    pub selection: Selection,
    /// True if house seats count as free for it: the theatre gives them away, and Postgres records that.
    pub takes_kept: bool,
}

/// A change to a hold.
#[derive(Clone, Debug)]
pub struct HoldUpdate {
    /// Identity of the request.
    pub asked: RequestIdentity,
    /// The hold.
    pub hold: Uuid,
    /// Its owner.
    pub owner: String,
    /// To be added; seats that the hold already has are ignored.
    pub add: Selection,
    /// To be released; seats that the hold does not have are ignored.
    pub remove: Selection,
}

/// A hold in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredHold {
    /// Its id.
    pub hold: Uuid,
    /// Its expiry.
    pub expires_at: Timestamp,
    /// The limit of all extensions.
    pub latest: Timestamp,
    /// Fencing token: grows with every hold of a show; the higher one wins.
    pub fence: i64,
    /// True while a payment is in progress.
    pub paying: bool,
    /// Its seats and places.
    pub selection: Selection,
}

/// Seats and places of a booking, identified in the store by hold and fence.
#[derive(Clone, Debug)]
pub struct FencedSelection {
    /// The hold they were in.
    pub hold: Uuid,
    /// Its owner.
    pub owner: String,
    /// Its fence.
    pub fence: i64,
    /// The seats and places bought.
    pub selection: Selection,
}

/// New id, owner and expiry of a hold that is renewed.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// Its new id.
    pub hold: Uuid,
    /// Its new owner; contains no colon.
    pub owner: String,
    /// Its new expiry, on this store's clock.
    pub until: Timestamp,
    /// True if it ends a payment in progress; otherwise a payment causes [`Refusal::Paying`].
    pub ends_payment: bool,
    /// Seats and places its new owner may hold and own; not checked if the owner stays.
    pub per_person: Option<usize>,
}

/// Maximum of sales, owners or payments in one call: about a millisecond in which Redis serves no other call.
pub const MAX_PER_CALL: usize = 64;

/// The reason for which the store refused a request; not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// All of the requested seats that are not available.
    Taken(Vec<(SeatIndex, SeatState)>),
    /// All of the requested areas with too few places, and their places left.
    Full(Vec<(AreaIndex, u32)>),
    /// The owner has this other hold in the show.
    OtherHold(Uuid),
    /// The owner may have only this many more seats and places.
    Limit(u32),
    /// The request's id was used for another request.
    Reused,
    /// The room has no such seat.
    Outside(SeatIndex),
    /// The room has no such area.
    NoArea(AreaIndex),
    /// The hold has ended, or belongs to another owner.
    Gone,
    /// A payment is in progress.
    Paying,
    /// The hold has other seats than those to be paid for.
    Changed,
    /// The hold has reached its maximum life.
    Capped,
    /// The extension is refused because too many holds of its owner ran out lately.
    Lapsed,
}

/// An error: the store could not be reached, or its answer could not be parsed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The show's map is not loaded, or is older than a version seen before. [`with_map`] loads it and
    /// retries.
    #[error("the map of show {0} is not loaded, or was lost")]
    NoMap(Uuid),
    /// No answer, or none before the deadline.
    #[error("the lock store cannot be reached")]
    Unavailable(#[source] LinkError),
    /// An answer in an unknown format.
    #[error("the lock store answered {0}")]
    UnexpectedAnswer(String),
}

/// The answer of the store to a call.
pub type StoreResult<T> = Result<T, StoreError>;

/// The store's decision about a request.
pub type SeatResult<T> = Result<T, Refusal>;

/// The map of a show at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapSnapshot {
    /// The time of the last rebuild, microseconds; a later one is greater.
    pub epoch: u64,
    /// The number of changes in this epoch.
    pub version: u64,
    /// A byte per seat, [`SeatState`].
    pub map: Bytes,
    /// Areas and places left in each, sorted by area.
    pub areas: Vec<(AreaIndex, u32)>,
}

/// The state of a show in Postgres, from which its map is built.
#[derive(Clone, Debug, Default)]
pub struct RebuildInput {
    /// A byte per seat.
    pub map: Vec<u8>,
    /// Seat and fence of every claim.
    pub sold: Vec<(SeatIndex, i64)>,
    /// Places left in every area.
    pub areas: Vec<(AreaIndex, u32)>,
    /// Fence and places of every booking with places.
    pub sold_places: Vec<(i64, Vec<Places>)>,
    /// Owner, and number of seats and places they bought.
    pub bought: Vec<(String, u32)>,
    /// The lowest fence allowed.
    pub lowest_fence: i64,
    /// True if the show started more than a day ago: its map expires by itself, a day later.
    pub is_past: bool,
}

/// The result of releasing all holds of a show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleasedAll {
    /// Holds released.
    pub released: u64,
    /// Holds with a payment in progress, which stay.
    pub paying: u64,
}

/// The store of seat locks. Every call has a deadline, and every call is safe to retry.
#[async_trait]
pub trait SeatLocks: Send + Sync + 'static {
    /// Grants holds, each all or none; later attempts see the effects of earlier ones. Returns one answer per attempt.
    async fn lock(
        &self,
        show: Uuid,
        terms: HoldLimits,
        attempts: &[LockAttempt],
    ) -> StoreResult<Vec<SeatResult<StoredHold>>>;
    /// Reads which of these attempts [`SeatLocks::lock`] would refuse now because of their seats, and changes nothing.
    /// `None`: only `lock` can decide it. By default that is all of them, so a shadow pair compares every attempt.
    async fn read_refusals(
        &self,
        _show: Uuid,
        _terms: HoldLimits,
        attempts: &[LockAttempt],
    ) -> StoreResult<Vec<Option<Refusal>>> {
        Ok(vec![None; attempts.len()])
    }
    /// Adds to a hold and releases from it, all or none; an empty hold has ended. Never moves the expiry.
    async fn change(&self, show: Uuid, terms: HoldLimits, change: &HoldUpdate) -> StoreResult<SeatResult<StoredHold>>;
    /// Extends a hold by `by_ms` within its maximum life; by less, or not at all, if other holds of its owner ran out
    /// lately ([`domain::fairness::extension_ms`]).
    async fn extend(
        &self,
        show: Uuid,
        asked: RequestIdentity,
        hold: Uuid,
        owner: &str,
        by_ms: i64,
    ) -> StoreResult<SeatResult<StoredHold>>;
    /// The stored answer to this request of any kind; `None` if nothing was granted for it. `hold` is the hold
    /// of the request. Changes nothing: it extends by 0 ms, which is never granted anew, while a
    /// request granted before gets its stored answer.
    async fn stored_answer(
        &self,
        show: Uuid,
        asked: RequestIdentity,
        hold: Uuid,
        owner: &str,
    ) -> StoreResult<Option<SeatResult<StoredHold>>> {
        let answer = self.extend(show, asked, hold, owner, 0).await?;
        Ok(Some(answer).filter(|answer| matches!(answer, Ok(_) | Err(Refusal::Reused))))
    }
    /// The owner's hold in this show. Restores the expiry that [`SeatLocks::shorten_hold`] had shortened.
    async fn hold_of(&self, show: Uuid, owner: &str) -> StoreResult<Option<StoredHold>>;
    /// The holds of several owners, [`MAX_PER_CALL`] at most, in their order.
    async fn holds_of(&self, show: Uuid, owners: &[String]) -> StoreResult<Vec<Option<StoredHold>>> {
        let mut holds = Vec::with_capacity(owners.len());
        for owner in owners {
            holds.push(self.hold_of(show, owner).await?);
        }
        Ok(holds)
    }
    /// Shortens a hold whose tab was closed: it expires after `grace_ms` unless its owner returns.
    async fn shorten_hold(&self, show: Uuid, hold: Uuid, owner: &str, grace_ms: i64) -> StoreResult<()>;
    /// Releases a hold.
    async fn release(&self, show: Uuid, hold: Uuid, owner: &str) -> StoreResult<SeatResult<()>>;
    /// Begins a payment for exactly this selection: extends the hold once by `extension_ms` and closes it to
    /// changes. Returns its new expiry.
    async fn begin_payment(
        &self,
        show: Uuid,
        sale: &FencedSelection,
        extension_ms: i64,
    ) -> StoreResult<SeatResult<Timestamp>>;
    /// Begins payments for several sales, [`MAX_PER_CALL`] at most; the answers are in their order.
    async fn begin_payments(
        &self,
        show: Uuid,
        sales: &[FencedSelection],
        extension_ms: i64,
    ) -> StoreResult<Vec<SeatResult<Timestamp>>> {
        let mut ends = Vec::with_capacity(sales.len());
        for sale in sales {
            ends.push(self.begin_payment(show, sale, extension_ms).await?);
        }
        Ok(ends)
    }
    /// Ends a payment that was not submitted: takes the extension back and opens the hold to changes.
    async fn end_payment(&self, show: Uuid, sale: &FencedSelection, extension_ms: i64) -> StoreResult<()>;
    /// Renews a hold of this party under a new id and a new fence, open to changes; its seats are never free in
    /// between. Returns it in its present state, also for a repeat. [`Refusal::Gone`] if it has ended or was renewed
    /// otherwise.
    async fn renew(
        &self,
        show: Uuid,
        party: &FencedSelection,
        renewal: &Renewal,
    ) -> StoreResult<SeatResult<StoredHold>>;
    /// Marks a selection that Postgres has sold as booked.
    async fn book(&self, show: Uuid, sale: &FencedSelection) -> StoreResult<()>;
    /// Books several sales, [`MAX_PER_CALL`] at most, in their order.
    async fn book_all(&self, show: Uuid, sales: &[FencedSelection]) -> StoreResult<()> {
        for sale in sales {
            self.book(show, sale).await?;
        }
        Ok(())
    }
    /// Frees the selection of a booking, held or sold, as far as it still carries the booking's fence.
    async fn free(&self, show: Uuid, sale: &FencedSelection) -> StoreResult<()> {
        self.free_and_block(show, sale, &[]).await
    }
    /// [`SeatLocks::free`], which blocks the freed seats that are in `kept` in the same step.
    async fn free_and_block(&self, show: Uuid, sale: &FencedSelection, kept: &[SeatIndex]) -> StoreResult<()>;
    /// Blocks seats for staff, or unblocks them; all or none. Held and sold seats cause a refusal.
    async fn block(&self, show: Uuid, seats: &[SeatIndex], blocked: bool) -> StoreResult<SeatResult<()>>;
    /// Blocks seats for staff at once: free ones, and those of holds without a payment in progress, which keep their
    /// other seats. Returns those that are being paid for or sold, which stay as they are.
    async fn withdraw(&self, show: Uuid, seats: &[SeatIndex]) -> StoreResult<SeatResult<Vec<SeatIndex>>>;
    /// Releases every hold of a show, except those with a payment in progress.
    async fn release_all(&self, show: Uuid) -> StoreResult<ReleasedAll>;
    /// Copies a hold that another store granted, read at `theirs` on that store's clock, with the same fence and time
    /// to live. It replaces another hold of its owner in this store; holds of other owners cause a refusal. Later
    /// fences of this store are higher.
    async fn copy_hold(
        &self,
        show: Uuid,
        owner: &str,
        held: &StoredHold,
        theirs: Timestamp,
    ) -> StoreResult<SeatResult<()>>;
    /// Copies the fences that another store gave to these holds. Later fences of this store are higher.
    async fn copy_fences(&self, show: Uuid, fences: &[(Uuid, i64)]) -> StoreResult<()>;
    /// Frees due holds. Returns the number of holds left.
    async fn sweep(&self, show: Uuid) -> StoreResult<u64>;
    /// The present map. It may contain due holds until the next call of another kind.
    async fn snapshot(&self, show: Uuid) -> StoreResult<MapSnapshot>;
    /// Builds the map, unless it is loaded and no older than the versions seen.
    async fn load(&self, show: Uuid, known: &RebuildInput) -> StoreResult<()>;
    /// Deletes a show that is over.
    async fn forget(&self, show: Uuid) -> StoreResult<()>;
    /// The store's clock, as of its last answer plus the time since.
    fn now(&self) -> Timestamp;
    /// Checks that the store answers.
    async fn ping(&self) -> StoreResult<()>;
}

/// The id of an offer's hold, derived from these parts.
#[must_use]
pub fn offer_id(parts: &[&str]) -> Uuid {
    uuid::Builder::from_sha1_bytes(ids::derived_id(parts).into_bytes()).into_uuid()
}

/// True if a hold is an offer of a waiting list: only their ids are UUIDs of version 5, which every store recognises.
#[must_use]
pub fn is_offer(hold: Uuid) -> bool {
    hold.get_version_num() == 5
}
