//! The lock store: who holds which seat of a show, right now, on the store's own clock.
//!
//! It grants holds and nothing more. It can lose one (a failover under replication lag does), so a
//! hold never authorises a charge: that is `seat_claims` in Postgres (see `bookings`).
//!
//! What is not here: prices, people, bookings, and anything that reads the server's clock.

mod keys;
mod rebuild;
mod redis_store;
mod scripts;
mod sweeper;

use async_trait::async_trait;
use bytes::Bytes;
use domain::seats::{SeatIndex, SeatState};
use domain::time::Timestamp;
use uuid::Uuid;

pub use keys::{Keys, channel_of, show_of_channel};
pub use rebuild::with_map;
pub use redis_store::RedisLocks;
pub use sweeper::{Watched, sweep_forever};

/// One wish for seats.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The hold's id, made by the caller: a retry with the same id gets the same hold.
    pub hold: Uuid,
    /// Whose it will be.
    pub owner: String,
    /// How long, milliseconds.
    pub length_ms: i64,
    /// Which seats, sorted, each once.
    pub seats: Vec<SeatIndex>,
}

/// A hold as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its id.
    pub hold: Uuid,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Grows with every hold of a show; the later one is right.
    pub fence: i64,
    /// Whether a payment is in progress.
    pub paying: bool,
    /// Its seats, sorted.
    pub seats: Vec<SeatIndex>,
}

/// Why the store did not do it. All of these are answers, none is a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// These seats stood in the way, every one of them.
    Taken(Vec<(SeatIndex, SeatState)>),
    /// The owner has this other hold in the show.
    OtherHold(Uuid),
    /// The owner may have only so many more seats.
    Limit(u32),
    /// The hold id was used for something else.
    Reused,
    /// The room has no such seat.
    Outside(SeatIndex),
    /// No such hold (any more), or another's.
    Gone,
    /// A payment is in progress.
    Paying,
    /// The hold has other seats than those to be paid for.
    Changed,
}

/// A fault: the store could not be asked, or answered nonsense.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The show's map is not loaded. [`with_map`] loads it and asks again.
    #[error("the map of show {0} is not loaded")]
    NoMap(Uuid),
    /// Nobody answers, or not in time.
    #[error("the lock store cannot be reached")]
    Unavailable(#[source] redis::RedisError),
    /// An answer that no script gives.
    #[error("the lock store answered {0}")]
    Nonsense(String),
}

/// The map of a show at one version.
#[derive(Clone, Debug)]
pub struct MapSnapshot {
    /// Changes when the map was rebuilt.
    pub epoch: u64,
    /// Counts the changes of an epoch.
    pub version: u64,
    /// A byte per seat, [`SeatState`].
    pub map: Bytes,
}

/// What Postgres knows of a show, to build its map from.
#[derive(Clone, Debug)]
pub struct KnownSeats {
    /// A byte per seat.
    pub map: Vec<u8>,
    /// Seat and fence of every claim.
    pub sold: Vec<(SeatIndex, i64)>,
    /// Owner and number of seats they bought.
    pub bought: Vec<(String, u32)>,
    /// No fence may be lower than this.
    pub lowest_fence: i64,
}

/// The store of seat locks. Every call has a deadline; every call may be repeated at will.
#[async_trait]
pub trait SeatLocks: Send + Sync + 'static {
    /// Takes holds, each all or none; at most `per_person` seats an owner. One answer per attempt.
    async fn lock(
        &self,
        show: Uuid,
        per_person: usize,
        attempts: &[Attempt],
    ) -> Result<Vec<Result<Held, Refusal>>, StoreError>;
    /// Adds seats to a hold and lets others go, all or none; no seats left means it is over. Never
    /// moves the expiry.
    async fn change(
        &self,
        show: Uuid,
        per_person: usize,
        hold: Uuid,
        owner: &str,
        add: &[SeatIndex],
        remove: &[SeatIndex],
    ) -> Result<Result<Held, Refusal>, StoreError>;
    /// The owner's hold in this show. Restores one that [`SeatLocks::leave`] had shortened.
    async fn mine(&self, show: Uuid, owner: &str) -> Result<Option<Held>, StoreError>;
    /// The tab was closed: the hold ends after `grace_ms` unless its owner comes back.
    async fn leave(&self, show: Uuid, hold: Uuid, owner: &str, grace_ms: i64) -> Result<(), StoreError>;
    /// Lets a hold go.
    async fn release(&self, show: Uuid, hold: Uuid, owner: &str) -> Result<Result<(), Refusal>, StoreError>;
    /// A payment for just these seats begins: the hold lasts `extension_ms` longer, once, and can no
    /// longer be changed. Its new end.
    async fn begin_payment(
        &self,
        show: Uuid,
        sale: &Sale,
        extension_ms: i64,
    ) -> Result<Result<Timestamp, Refusal>, StoreError>;
    /// The payment was not submitted after all: takes the extension back and opens the hold again.
    async fn end_payment(&self, show: Uuid, sale: &Sale, extension_ms: i64) -> Result<(), StoreError>;
    /// Postgres has sold these seats: the map says so.
    async fn book(&self, show: Uuid, sale: &Sale) -> Result<(), StoreError>;
    /// A booking gives its seats back, held or sold; only what is still its own by fence.
    async fn free(&self, show: Uuid, sale: &Sale) -> Result<(), StoreError>;
    /// Frees what is due. How many holds are left.
    async fn sweep(&self, show: Uuid) -> Result<u64, StoreError>;
    /// The map.
    async fn snapshot(&self, show: Uuid) -> Result<MapSnapshot, StoreError>;
    /// Builds the map unless it is there.
    async fn load(&self, show: Uuid, known: &KnownSeats) -> Result<(), StoreError>;
    /// The store's clock, as of its last answer plus the time since.
    fn now(&self) -> Timestamp;
    /// Asks for a sign of life.
    async fn ping(&self) -> Result<(), StoreError>;
}

/// Seats of a booking, as the store knows them by hold and fence.
#[derive(Clone, Debug)]
pub struct Sale {
    /// The hold they were held by.
    pub hold: Uuid,
    /// Its owner.
    pub owner: String,
    /// Its fence.
    pub fence: i64,
    /// The seats, sorted.
    pub seats: Vec<SeatIndex>,
}
