//! The lock store: who holds which seat of a show, right now, on the store's own clock.
//!
//! It grants holds and nothing more. It can lose one (a failover under replication lag does), so a
//! hold never authorises a charge: that is `seat_claims` in Postgres (see `bookings`).
//!
//! What is not here: prices, people, bookings, and anything that reads the server's clock.

mod claims_check;
mod forget;
mod keys;
mod memory;
mod offer_ids;
mod queue;
mod rebuild;
mod redis_store;
mod shadow;
mod sweeper;

use async_trait::async_trait;
use bytes::Bytes;
use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use domain::time::Timestamp;
use platform::redis_link::LinkError;
use uuid::Uuid;

pub use claims_check::FirstLooks;
pub use forget::forget_forever;
pub use keys::{Keys, channel_of, show_of_channel};
pub use memory::{Announcement, ManualClock, MemoryLocks};
pub use offer_ids::{is_offer, offer_id};
pub use queue::LockQueue;
pub use rebuild::{known_source, map_or_claims, with_map};
pub use redis_store::RedisLocks;
pub use shadow::{Divergence, Kind, KnownSource, ShadowLocks};
pub use sweeper::{Watched, sweep_forever};

/// Seats and places, of a wish, a hold or a sale.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lot {
    /// Seats, sorted, each once.
    pub seats: Vec<SeatIndex>,
    /// Places in areas, sorted by area, each area once, no count zero.
    pub places: Vec<Places>,
}

impl Lot {
    /// Seats only.
    #[must_use]
    pub const fn of_seats(seats: Vec<SeatIndex>) -> Self {
        Self { seats, places: Vec::new() }
    }

    /// Whether nothing is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.seats.is_empty() && self.places.is_empty()
    }
}

/// What a request is known by: the store gives the same answer to the same request again, for a day at
/// least, whatever happened to the hold meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Made by the caller from the person, the show and their key.
    pub id: Uuid,
    /// Of the request: another one under the same id is [`Refusal::Reused`].
    pub digest: u64,
}

/// What a show grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Seats and places one person may hold and own.
    pub per_person: usize,
    /// How long a hold lasts, milliseconds.
    pub length_ms: i64,
    /// How long it may last with extensions, milliseconds; payments in progress aside.
    pub life_ms: i64,
}

/// One wish for a hold.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its id becomes the hold's.
    pub asked: Asked,
    /// Whose it will be; no colon in it.
    pub owner: String,
    /// What is wished for; not empty.
    pub lot: Lot,
    /// Whether seats the house keeps are free for it, as any that is on sale: the house gives them away, and Postgres knows.
    pub takes_kept: bool,
}

/// A change to a hold.
#[derive(Clone, Debug)]
pub struct Change {
    /// What the request is known by.
    pub asked: Asked,
    /// The hold.
    pub hold: Uuid,
    /// Its owner.
    pub owner: String,
    /// To be added; what the hold has already is left alone.
    pub add: Lot,
    /// To be let go; what the hold has not is left alone.
    pub remove: Lot,
}

/// A hold as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its id.
    pub hold: Uuid,
    /// When it ends.
    pub expires_at: Timestamp,
    /// No extension goes beyond this.
    pub latest: Timestamp,
    /// Grows with every hold of a show; the later one is right.
    pub fence: i64,
    /// Whether a payment is in progress.
    pub paying: bool,
    /// What it has.
    pub lot: Lot,
}

/// Seats and places of a booking, as the store knows them by hold and fence.
#[derive(Clone, Debug)]
pub struct Sale {
    /// The hold they were held by.
    pub hold: Uuid,
    /// Its owner.
    pub owner: String,
    /// Its fence.
    pub fence: i64,
    /// What was bought.
    pub lot: Lot,
}

/// The next id, owner and end of a hold that is renewed.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// Its next id.
    pub hold: Uuid,
    /// Its next owner; no colon in it.
    pub owner: String,
    /// Until when it lasts, on this store's clock.
    pub until: Timestamp,
    /// True if a payment in progress ends by it; otherwise it is [`Refusal::Paying`].
    pub ends_payment: bool,
    /// Seats and places its next owner may hold and own; not checked where the owner stays.
    pub per_person: Option<usize>,
}

/// Sales, owners or payments in one call at most: a thousandth of a second in which no other call is
/// served.
pub const MAX_PER_CALL: usize = 64;

/// Why the store did not do it. All of these are answers, none is a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// These seats stood in the way, every one of them.
    Taken(Vec<(SeatIndex, SeatState)>),
    /// These areas have too few places left, every one of them, and how many they have.
    Full(Vec<(AreaIndex, u32)>),
    /// The owner has this other hold in the show.
    OtherHold(Uuid),
    /// The owner may have only so many more seats and places.
    Limit(u32),
    /// The request's id was used for something else.
    Reused,
    /// The room has no such seat.
    Outside(SeatIndex),
    /// The room has no such area.
    NoArea(AreaIndex),
    /// No such hold (any more), or another's.
    Gone,
    /// A payment is in progress.
    Paying,
    /// The hold has other seats than those to be paid for.
    Changed,
    /// The hold cannot last any longer.
    Capped,
    /// The hold could last longer, but too many others of its owner ran out lately.
    Lapsed,
}

/// A fault: the store could not be asked, or answered nonsense.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The show's map is not loaded, or is older than what was seen before. [`with_map`] loads it and
    /// asks again.
    #[error("the map of show {0} is not loaded, or was lost")]
    NoMap(Uuid),
    /// No answer, or not in time.
    #[error("the lock store cannot be reached")]
    Unavailable(#[source] LinkError),
    /// An answer that no script gives.
    #[error("the lock store answered {0}")]
    Nonsense(String),
}

/// The map of a show at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapSnapshot {
    /// Changes when the map was rebuilt; a later one is greater.
    pub epoch: u64,
    /// Counts the changes of an epoch.
    pub version: u64,
    /// A byte per seat, [`SeatState`].
    pub map: Bytes,
    /// Areas and places left in each, sorted by area.
    pub areas: Vec<(AreaIndex, u32)>,
}

/// What Postgres knows of a show, to build its map from.
#[derive(Clone, Debug, Default)]
pub struct KnownSeats {
    /// A byte per seat.
    pub map: Vec<u8>,
    /// Seat and fence of every claim.
    pub sold: Vec<(SeatIndex, i64)>,
    /// Places left in every area.
    pub areas: Vec<(AreaIndex, u32)>,
    /// Fence and places of every booking that has some.
    pub sold_places: Vec<(i64, Vec<Places>)>,
    /// Owner and number of seats and places they bought.
    pub bought: Vec<(String, u32)>,
    /// No fence may be lower than this.
    pub lowest_fence: i64,
}

/// What letting go of every hold of a show came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleasedAll {
    /// Holds let go.
    pub released: u64,
    /// Holds with a payment in progress, which stay.
    pub paying: u64,
}

/// The store of seat locks. Every call has a deadline; every call may be repeated at will.
#[async_trait]
pub trait SeatLocks: Send + Sync + 'static {
    /// Takes holds, each all or none; later ones see what earlier ones did. One answer per attempt.
    async fn lock(
        &self,
        show: Uuid,
        terms: Terms,
        attempts: &[Attempt],
    ) -> Result<Vec<Result<Held, Refusal>>, StoreError>;
    /// Adds to a hold and lets go, all or none; nothing left means it is over. Never moves the expiry.
    async fn change(&self, show: Uuid, terms: Terms, change: &Change) -> Result<Result<Held, Refusal>, StoreError>;
    /// Lets a hold last `by_ms` longer, within its longest life; less, or not at all, where others of its owner ran out
    /// lately ([`domain::fairness::extension_ms`]).
    async fn extend(
        &self,
        show: Uuid,
        asked: Asked,
        hold: Uuid,
        owner: &str,
        by_ms: i64,
    ) -> Result<Result<Held, Refusal>, StoreError>;
    /// What was granted for this request before, whatever it asked for; `None` where nothing was. `hold` is the one
    /// that it was about. Changes nothing: it asks to last no longer than now, which is granted to nobody, and a
    /// request that was granted is told the same again.
    async fn granted_before(
        &self,
        show: Uuid,
        asked: Asked,
        hold: Uuid,
        owner: &str,
    ) -> Result<Option<Result<Held, Refusal>>, StoreError> {
        let told = self.extend(show, asked, hold, owner, 0).await?;
        Ok(Some(told).filter(|told| matches!(told, Ok(_) | Err(Refusal::Reused))))
    }
    /// The owner's hold in this show. Restores one that [`SeatLocks::leave`] had shortened.
    async fn mine(&self, show: Uuid, owner: &str) -> Result<Option<Held>, StoreError>;
    /// The same of several owners, [`MAX_PER_CALL`] at most, in their order.
    async fn mine_all(&self, show: Uuid, owners: &[String]) -> Result<Vec<Option<Held>>, StoreError> {
        let mut holds = Vec::with_capacity(owners.len());
        for owner in owners {
            holds.push(self.mine(show, owner).await?);
        }
        Ok(holds)
    }
    /// The tab was closed: the hold ends after `grace_ms` unless its owner comes back.
    async fn leave(&self, show: Uuid, hold: Uuid, owner: &str, grace_ms: i64) -> Result<(), StoreError>;
    /// Lets a hold go.
    async fn release(&self, show: Uuid, hold: Uuid, owner: &str) -> Result<Result<(), Refusal>, StoreError>;
    /// A payment for just this lot begins: the hold lasts `extension_ms` longer, once, and can no
    /// longer be changed. Its new end.
    async fn begin_payment(
        &self,
        show: Uuid,
        sale: &Sale,
        extension_ms: i64,
    ) -> Result<Result<Timestamp, Refusal>, StoreError>;
    /// The same of several sales, [`MAX_PER_CALL`] at most, in their order.
    async fn begin_payments(
        &self,
        show: Uuid,
        sales: &[Sale],
        extension_ms: i64,
    ) -> Result<Vec<Result<Timestamp, Refusal>>, StoreError> {
        let mut ends = Vec::with_capacity(sales.len());
        for sale in sales {
            ends.push(self.begin_payment(show, sale, extension_ms).await?);
        }
        Ok(ends)
    }
    /// The payment was not submitted after all: takes the extension back and opens the hold again.
    async fn end_payment(&self, show: Uuid, sale: &Sale, extension_ms: i64) -> Result<(), StoreError>;
    /// Renews a hold of this party as another one, under a new fence and open to changes; its seats are never free in between.
    /// Returns it as it is now, also for a repeat. [`Refusal::Gone`] where it is over, or was renewed as a different one.
    async fn renew(&self, show: Uuid, party: &Sale, renewal: &Renewal) -> Result<Result<Held, Refusal>, StoreError>;
    /// Postgres has sold this lot: the map says so.
    async fn book(&self, show: Uuid, sale: &Sale) -> Result<(), StoreError>;
    /// The same of several sales, [`MAX_PER_CALL`] at most, as if told one after the other.
    async fn book_all(&self, show: Uuid, sales: &[Sale]) -> Result<(), StoreError> {
        for sale in sales {
            self.book(show, sale).await?;
        }
        Ok(())
    }
    /// A booking gives its lot back, held or sold; only what is still its own by fence.
    async fn free(&self, show: Uuid, sale: &Sale) -> Result<(), StoreError> {
        self.free_keeping(show, sale, &[]).await
    }
    /// [`SeatLocks::free`], which keeps those of these seats that come back off sale in the same step.
    async fn free_keeping(&self, show: Uuid, sale: &Sale, kept: &[SeatIndex]) -> Result<(), StoreError>;
    /// Staff keep seats off sale, or put them back; all or none, held and sold ones stand in the way.
    async fn block(&self, show: Uuid, seats: &[SeatIndex], blocked: bool) -> Result<Result<(), Refusal>, StoreError>;
    /// Staff take seats out of sale at once: free ones, and those of holds with no payment in progress, which keep their
    /// other seats. Returns those that are being paid for or sold, and stay as they are.
    async fn withdraw(&self, show: Uuid, seats: &[SeatIndex]) -> Result<Result<Vec<SeatIndex>, Refusal>, StoreError>;
    /// Staff let every hold go; those with a payment in progress stay.
    async fn release_all(&self, show: Uuid) -> Result<ReleasedAll, StoreError>;
    /// Another store granted this hold, as of `theirs` on its clock: it stands here as it stands there, with
    /// the same fence and as long to live. Another hold its owner has here gives way; anybody else's stand
    /// in the way. A fence of this store will be higher.
    async fn adopt(
        &self,
        show: Uuid,
        owner: &str,
        held: &Held,
        theirs: Timestamp,
    ) -> Result<Result<(), Refusal>, StoreError>;
    /// Another store granted these holds too: they go by their fences there. A fence of this store will be
    /// higher.
    async fn stamp(&self, show: Uuid, fences: &[(Uuid, i64)]) -> Result<(), StoreError>;
    /// Frees what is due. How many holds are left.
    async fn sweep(&self, show: Uuid) -> Result<u64, StoreError>;
    /// The map as it stands. Holds that are due may be in it until the next call of another kind.
    async fn snapshot(&self, show: Uuid) -> Result<MapSnapshot, StoreError>;
    /// Builds the map unless it is there and is no older than what was seen of it.
    async fn load(&self, show: Uuid, known: &KnownSeats) -> Result<(), StoreError>;
    /// The show is over: forgets all of it.
    async fn forget(&self, show: Uuid) -> Result<(), StoreError>;
    /// The store's clock, as of its last answer plus the time since.
    fn now(&self) -> Timestamp;
    /// Asks for a sign of life.
    async fn ping(&self) -> Result<(), StoreError>;
}
