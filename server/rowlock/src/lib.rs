//! The Rowlock server: one folder per capability. ARCHITECTURE.md is the map.
//!
//! A capability calls another through its `mod.rs` only; `web` alone knows them all.

use std::ops::Deref;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub mod accounts;
pub mod api_keys;
pub mod audit;
pub mod background;
pub mod bookings;
pub mod box_office;
pub mod breaker;
pub mod catalogue;
pub mod cdn;
pub mod check;
pub mod clock;
pub mod config;
pub mod door;
pub mod email_codes;
pub mod fairness;
pub mod holds;
pub mod housekeeping;
pub mod idempotency;
pub mod ids;
pub mod live;
pub mod organiser;
pub mod outbox;
pub mod payments;
pub mod postgres_hosts;
pub mod puzzles;
pub mod rate_limits;
pub mod recent;
pub mod reports;
pub mod seat_locks;
pub mod signed_words;
pub mod start;
pub mod telemetry;
pub mod tickets;
pub mod together;
pub mod waiting_list;
pub mod waiting_room;
pub mod web;
pub mod webhooks;

/// Everything a request may need; cheap to clone.
#[derive(Clone)]
pub struct AppState(Arc<Parts>);

/// The parts of [`AppState`].
pub struct Parts {
    /// Settings.
    pub config: config::Config,
    /// Postgres.
    pub pg: sqlx::PgPool,
    /// The lock store.
    pub locks: Arc<dyn seat_locks::SeatLocks>,
    /// Attempts on their way to the lock store.
    pub lock_queue: seat_locks::LockQueue,
    /// Holds as they were granted or changed last.
    pub latest_holds: holds::Latest,
    /// Shows whose map this replica has compared with the claims.
    pub first_looks: seat_locks::FirstLooks,
    /// Where it announces changes.
    pub redis: seat_locks::link::Link,
    /// Shows whose holds this replica sweeps.
    pub watched: seat_locks::Watched,
    /// Shows, layouts, prices.
    pub catalogue: catalogue::Catalogue,
    /// Live maps, one hub per show.
    pub hubs: live::Hubs,
    /// Where money comes from.
    pub gateways: payments::Gateways,
    /// Where mails go.
    pub mailer: tickets::Mailer,
    /// Shows that are entered through a waiting room.
    pub waiting_rooms: waiting_room::Rooms,
    /// Puzzles in front of seats that many want at once.
    pub puzzles: puzzles::Puzzles,
    /// How often one may try for seats, and what is unusual.
    pub fairness: fairness::Fairness,
    /// Shows in which somebody waits for seats.
    pub waiting: waiting_list::Open,
    /// Wakes whoever mails them what is held for them.
    pub offer_mails_wake: tokio::sync::Notify,
    /// Sales on their way to Postgres.
    pub commits: bookings::Commits,
    /// Who people are, and what they are allowed.
    pub accounts: accounts::Accounts,
    /// How often one may try what.
    pub rate_limits: rate_limits::RateLimits,
    /// Codes before checkout, and the way they take.
    pub email_codes: email_codes::EmailCodes,
    /// Keys of requests and their answers.
    pub idempotency: idempotency::Idempotency,
    /// Holds as they are counted, and turns at reading.
    pub reports: reports::Reports,
    /// The way to other systems.
    pub webhooks: webhooks::Client,
    /// The way to the CDN.
    pub cdn: cdn::Cdn,
    /// Wakes the outbox relay after a commit.
    pub outbox_wake: outbox::Wake,
    /// Set when the server should stop.
    pub stop: CancellationToken,
    /// Background work to wait for when stopping.
    pub tasks: TaskTracker,
}

impl AppState {
    /// Wraps the parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for AppState {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
