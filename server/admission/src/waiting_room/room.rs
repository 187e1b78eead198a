//! The active waiting rooms, as this replica knows them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use domain::time::Timestamp;
use domain::waiting_room::draw::{KEY_BYTES, commitment};
use domain::waiting_room::{Draw, WaitingRoomStatus, inside_limit};
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use sqlx::PgPool;
use uuid::Uuid;

use super::joining::JoinQueue;
use super::sellers::Sellers;
use super::sql::{self, RoomRow};
use super::store::{self, RoomScripts, RoomStatus};
use super::tickets::Signer;
use super::used_tickets::UsedTickets;
use http::{ApiResult, Problem};
use platform::clock::from_utc;

/// Maximum of active rooms.
const MAX_ROOMS: i64 = 1_000;
/// Maximum of numbers remembered by visitor, so that a retry gets the same ticket.
const JOINS_KEPT: u64 = 100_000;
/// Time for which they are remembered.
const JOIN_LIFE: Duration = Duration::from_secs(600);
/// The number of unsold seats has not been read yet.
const UNKNOWN: u64 = u64::MAX;
/// Drawn places whose numbers are computed at a time.
const WINDOW: u64 = 1_000;

/// The settings of a room, controlled by staff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomSettings {
    /// When it opens.
    pub opens_at: Timestamp,
    /// Maximum of people let in per second.
    pub per_second: u32,
}

/// An active waiting room.
pub struct ActiveRoom {
    /// Its id, new each time it is switched on.
    pub id: Uuid,
    /// Its show.
    pub show: Uuid,
    /// SHA-256 of the key of its draw, hex.
    pub commitment: String,
    pub(super) keys: [String; 6],
    pub(super) joining: JoinQueue,
    pub(super) used_tickets: UsedTickets,
    key: [u8; KEY_BYTES],
    settings: RwLock<RoomSettings>,
    /// The draw, once the number drawn is recorded.
    draw: OnceLock<Draw>,
    /// No number below this is free, as far as this replica has seen.
    seen: AtomicU64,
    /// No number below this is given out here after a failed call: other replicas may have given them out.
    floor: AtomicU64,
    /// True after a failed call: Redis may have lost writes that other replicas have seen.
    is_suspect: AtomicBool,
    /// The mark: no number from here on may be given out.
    reserved: AtomicU64,
    /// Seats and places that are not sold.
    unsold: AtomicU64,
    /// Bookings within the length of a pass.
    bought: AtomicU64,
    status: Mutex<Option<RoomStatus>>,
    /// The numbers at a range of drawn places, and its first place.
    window: Mutex<(u64, Arc<[u64]>)>,
}

impl ActiveRoom {
    fn new(row: &RoomRow, prefix: &str) -> sqlx::Result<Self> {
        let key = row.key()?;
        let room = Self {
            id: row.id,
            show: row.show_id,
            commitment: hex::encode(commitment(&key)),
            keys: store::keys(prefix, row.show_id, row.id),
            joining: JoinQueue::default(),
            used_tickets: UsedTickets::default(),
            key,
            settings: RwLock::new(settings_of(row)),
            draw: OnceLock::new(),
            seen: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            is_suspect: AtomicBool::new(false),
            reserved: AtomicU64::new(0),
            unsold: AtomicU64::new(UNKNOWN),
            bought: AtomicU64::new(0),
            status: Mutex::new(None),
            window: Mutex::new((0, Arc::from([]))),
        };
        room.apply_row(row);
        Ok(room)
    }

    pub(super) fn apply_row(&self, row: &RoomRow) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings_of(row);
        self.raise_seen(row.joined());
        self.raise_reserved(row.reserved());
        if let Some(people) = row.drawn() {
            self.set_drawn(people);
        }
    }

    /// The settings, controlled by staff.
    #[must_use]
    pub fn settings(&self) -> RoomSettings {
        *self.settings.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The draw; `None` before the number drawn is recorded.
    pub(super) fn draw(&self) -> Option<&Draw> {
        self.draw.get()
    }

    /// The number drawn.
    pub(super) fn people(&self) -> Option<u64> {
        self.draw().map(Draw::people)
    }

    /// The key of the draw, hex, once it is published.
    pub(super) fn published_key(&self) -> Option<String> {
        self.draw().map(|_| hex::encode(self.key))
    }

    pub(super) fn set_drawn(&self, people: u64) {
        self.draw.get_or_init(|| Draw::new(&self.key, people));
    }

    /// The place of a ticket; `None` before opening.
    pub(super) fn place_of(&self, number: u64) -> Option<u64> {
        self.draw().map(|draw| draw.place_of(number))
    }

    /// The numbers at the drawn places from the next one to be called, and that place.
    pub(super) fn next_numbers(&self) -> (u64, Arc<[u64]>) {
        let from = self.status().map_or(0, |status| status.called);
        let Some(draw) = self.draw() else { return (from, Arc::from([])) };
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        // Half of it is enough for the next calls.
        let is_near_its_end = window.0 + WINDOW / 2 < from && window.0 + (window.1.len() as u64) < draw.people();
        if window.1.is_empty() || from < window.0 || is_near_its_end {
            let upto = draw.people().min(from.saturating_add(WINDOW));
            *window = (from, (from..upto).map(|place| draw.number_at(place)).collect());
        }
        (window.0, Arc::clone(&window.1))
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// The lower bound for free numbers.
    pub(super) fn min_free(&self) -> u64 {
        self.seen().max(self.floor.load(Ordering::Relaxed))
    }

    /// Flags Redis as suspect: it may have lost its last writes.
    pub(super) fn mark_suspect(&self) {
        self.is_suspect.store(true, Ordering::Relaxed);
    }

    /// Returns true if Redis is suspect, and clears the flag.
    pub(super) fn take_suspect(&self) -> bool {
        self.is_suspect.swap(false, Ordering::Relaxed)
    }

    /// Raises the lower bound of numbers given out here.
    pub(super) fn raise_floor(&self, mark: u64) {
        self.floor.fetch_max(mark, Ordering::Relaxed);
    }

    pub(super) fn raise_seen(&self, next: u64) {
        self.seen.fetch_max(next, Ordering::Relaxed);
    }

    pub(super) fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    pub(super) fn raise_reserved(&self, mark: u64) {
        self.reserved.fetch_max(mark, Ordering::Relaxed);
    }

    /// The maximum of people inside, up to a second old; zero before the sale was read.
    pub(super) fn inside_limit(&self) -> u64 {
        self.known_limit().unwrap_or(0)
    }

    /// The maximum of people inside; `None` before the sale was read.
    pub(super) fn known_limit(&self) -> Option<u64> {
        match self.unsold.load(Ordering::Relaxed) {
            UNKNOWN => None,
            unsold => Some(inside_limit(unsold, self.bought.load(Ordering::Relaxed))),
        }
    }

    pub(super) fn set_sale(&self, unsold: u64, bought: u64) {
        self.bought.store(bought, Ordering::Relaxed);
        self.unsold.store(unsold, Ordering::Relaxed);
    }

    pub(super) fn status(&self) -> Option<RoomStatus> {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_status(&self, status: RoomStatus) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    /// Its public state.
    pub(super) fn queue(&self) -> WaitingRoomStatus {
        let per_second = self.settings().per_second;
        let is_open = self.draw().is_some();
        let Some(status) = self.status() else {
            return WaitingRoomStatus { is_open, per_second, ..WaitingRoomStatus::default() };
        };
        WaitingRoomStatus {
            is_open,
            is_sold_out: is_open && self.unsold.load(Ordering::Relaxed) == 0,
            joined: status.joined,
            called: status.called,
            gone: status.gone,
            per_second,
            lately: status.lately,
        }
    }
}

fn settings_of(row: &RoomRow) -> RoomSettings {
    RoomSettings { opens_at: from_utc(row.opens_at), per_second: row.per_second.unsigned_abs() }
}

/// All active rooms, by show.
pub struct Rooms {
    known: RwLock<HashMap<Uuid, Arc<ActiveRoom>>>,
    prefix: String,
    pub(super) scripts: RoomScripts,
    pub(super) signer: Signer,
    /// Numbers by room and visitor, so that a visitor has one.
    pub(super) joins: Cache<(Uuid, String), u64>,
    /// Accounts that sell at the counter and need not wait.
    pub(super) sellers: Sellers,
}

impl Rooms {
    /// Loads the active rooms, so that a replica that has just started bypasses no room.
    pub async fn load(redis_prefix: &str, token_secrets: &[String], pg: &PgPool, now: Timestamp) -> sqlx::Result<Self> {
        let rooms = Self {
            known: RwLock::default(),
            prefix: redis_prefix.to_owned(),
            scripts: RoomScripts::new(),
            signer: Signer::new(token_secrets),
            joins: Cache::builder()
                .max_capacity(JOINS_KEPT)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_live(JOIN_LIFE)
                .build(),
            sellers: Sellers::default(),
        };
        rooms.reload(pg, now).await?;
        // If Redis restarted together with all replicas, none of them knows its last writes.
        rooms.all().iter().for_each(|room| room.mark_suspect());
        Ok(rooms)
    }

    /// The active room of a show.
    #[must_use]
    pub fn of(&self, show: Uuid) -> Option<Arc<ActiveRoom>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(&show).cloned()
    }

    /// The active room of a show, or 404.
    pub(super) fn known(&self, show: Uuid) -> ApiResult<Arc<ActiveRoom>> {
        self.of(show).ok_or_else(|| Problem::not_found("waiting room"))
    }

    pub(super) fn all(&self) -> Vec<Arc<ActiveRoom>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Reads the active rooms again; every replica does so once a second.
    pub async fn reload(&self, pg: &PgPool, now: Timestamp) -> sqlx::Result<()> {
        let rows = sql::load_active(pg, now, MAX_ROOMS).await?;
        let mut fresh = HashMap::with_capacity(rows.len());
        for row in &rows {
            let room = match self.of(row.show_id).filter(|room| room.id == row.id) {
                Some(room) => {
                    room.apply_row(row);
                    room
                }
                None => Arc::new(ActiveRoom::new(row, &self.prefix)?),
            };
            fresh.insert(row.show_id, room);
        }
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }
}
