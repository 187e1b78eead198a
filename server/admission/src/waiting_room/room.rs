//! The waiting rooms that are on, as this replica knows them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use domain::time::Timestamp;
use domain::waiting_room::draw::{KEY_BYTES, commitment};
use domain::waiting_room::{Draw, Queue, inside_limit};
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use sqlx::PgPool;
use uuid::Uuid;

use super::joining::Joining;
use super::sellers::Sellers;
use super::sql::{self, RoomRow};
use super::store::{self, Scripts, Stands};
use super::tickets::Signer;
use super::used_tickets::UsedTickets;
use http::Problem;
use platform::clock::from_utc;

/// Rooms that are on at once.
const MAX_ROOMS: i64 = 1_000;
/// Tickets remembered by whom they were given to, so that asking again gives the same.
const JOINS_KEPT: u64 = 100_000;
/// How long they are.
const JOIN_LIFE: Duration = Duration::from_secs(600);
/// Nobody has looked yet how many seats are left.
const UNKNOWN: u64 = u64::MAX;
/// Places whose numbers are worked out at a time.
const WINDOW: u64 = 1_000;

/// What staff decide about a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// When it opens.
    pub opens_at: Timestamp,
    /// People let in a second at most.
    pub per_second: u32,
}

/// A waiting room that is on.
pub struct Room {
    /// Its id: another each time it is switched on.
    pub id: Uuid,
    /// The show it leads to.
    pub show: Uuid,
    /// SHA-256 of the key of its draw, hex.
    pub commitment: String,
    pub(super) keys: [String; 6],
    pub(super) joining: Joining,
    pub(super) used_tickets: UsedTickets,
    key: [u8; KEY_BYTES],
    terms: RwLock<Terms>,
    /// The draw, once it is written down how many are drawn.
    draw: OnceLock<Draw>,
    /// No number below this is free, as far as was heard.
    seen: AtomicU64,
    /// None below this is given out here, since a call failed: others may have been given it meanwhile.
    floor: AtomicU64,
    /// A call failed: what is in Redis by now may be older than what others were told.
    is_in_doubt: AtomicBool,
    /// No number from here on may be given out.
    reserved: AtomicU64,
    /// Seats and places that are not sold.
    unsold: AtomicU64,
    /// Bookings made within the time one is inside.
    bought: AtomicU64,
    stands: Mutex<Option<Stands>>,
    /// Numbers at some drawn places, from the first one's.
    window: Mutex<(u64, Arc<[u64]>)>,
}

impl Room {
    fn new(row: &RoomRow, prefix: &str) -> Result<Self, sqlx::Error> {
        let key = row.key()?;
        let room = Self {
            id: row.id,
            show: row.show_id,
            commitment: hex::encode(commitment(&key)),
            keys: store::keys(prefix, row.show_id, row.id),
            joining: Joining::default(),
            used_tickets: UsedTickets::default(),
            key,
            terms: RwLock::new(terms_of(row)),
            draw: OnceLock::new(),
            seen: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            is_in_doubt: AtomicBool::new(false),
            reserved: AtomicU64::new(0),
            unsold: AtomicU64::new(UNKNOWN),
            bought: AtomicU64::new(0),
            stands: Mutex::new(None),
            window: Mutex::new((0, Arc::from([]))),
        };
        room.learn(row);
        Ok(room)
    }

    /// What its row says by now.
    pub(super) fn learn(&self, row: &RoomRow) {
        *self.terms.write().unwrap_or_else(PoisonError::into_inner) = terms_of(row);
        self.saw(row.joined());
        self.may_reach(row.reserved());
        if let Some(people) = row.drawn() {
            self.set_drawn(people);
        }
    }

    /// What staff decided.
    #[must_use]
    pub fn setting(&self) -> Terms {
        *self.terms.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The draw; `None` before it is written down how many are drawn.
    pub(super) fn draw(&self) -> Option<&Draw> {
        self.draw.get()
    }

    /// How many were drawn.
    pub(super) fn people(&self) -> Option<u64> {
        self.draw().map(Draw::people)
    }

    /// The key of the draw, hex, once it may be told.
    pub(super) fn told_key(&self) -> Option<String> {
        self.draw().map(|_| hex::encode(self.key))
    }

    pub(super) fn set_drawn(&self, people: u64) {
        self.draw.get_or_init(|| Draw::new(&self.key, people));
    }

    /// The place of a ticket; `None` before opening.
    pub(super) fn place_of(&self, number: u64) -> Option<u64> {
        self.draw().map(|draw| draw.place_of(number))
    }

    /// The numbers at the drawn places from the next to be called on, and that place.
    pub(super) fn next_numbers(&self) -> (u64, Arc<[u64]>) {
        let from = self.stands().map_or(0, |stands| stands.called);
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

    /// No number below this is free.
    pub(super) fn least_free(&self) -> u64 {
        self.seen().max(self.floor.load(Ordering::Relaxed))
    }

    /// Redis may have forgotten its last moments.
    pub(super) fn doubt(&self) {
        self.is_in_doubt.store(true, Ordering::Relaxed);
    }

    /// Whether it may have, since this was asked before.
    pub(super) fn was_in_doubt(&self) -> bool {
        self.is_in_doubt.swap(false, Ordering::Relaxed)
    }

    /// Gives out no number below the mark any more.
    pub(super) fn go_on_behind(&self, mark: u64) {
        self.floor.fetch_max(mark, Ordering::Relaxed);
    }

    pub(super) fn saw(&self, next: u64) {
        self.seen.fetch_max(next, Ordering::Relaxed);
    }

    pub(super) fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    pub(super) fn may_reach(&self, mark: u64) {
        self.reserved.fetch_max(mark, Ordering::Relaxed);
    }

    /// How many may be inside, by what was seen about a second ago; before anybody has looked, nobody.
    pub(super) fn inside_limit(&self) -> u64 {
        self.known_limit().unwrap_or(0)
    }

    /// The same; `None` before anybody has looked.
    pub(super) fn known_limit(&self) -> Option<u64> {
        match self.unsold.load(Ordering::Relaxed) {
            UNKNOWN => None,
            unsold => Some(inside_limit(unsold, self.bought.load(Ordering::Relaxed))),
        }
    }

    pub(super) fn note_sale(&self, unsold: u64, bought: u64) {
        self.bought.store(bought, Ordering::Relaxed);
        self.unsold.store(unsold, Ordering::Relaxed);
    }

    pub(super) fn stands(&self) -> Option<Stands> {
        *self.stands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_stands(&self, stands: Stands) {
        *self.stands.lock().unwrap_or_else(PoisonError::into_inner) = Some(stands);
    }

    /// How it stands, as everyone is told.
    pub(super) fn queue(&self) -> Queue {
        let per_second = self.setting().per_second;
        let is_open = self.draw().is_some();
        let Some(stands) = self.stands() else { return Queue { is_open, per_second, ..Queue::default() } };
        Queue {
            is_open,
            is_sold_out: is_open && self.unsold.load(Ordering::Relaxed) == 0,
            joined: stands.joined,
            called: stands.called,
            gone: stands.gone,
            per_second,
            lately: stands.lately,
        }
    }
}

fn terms_of(row: &RoomRow) -> Terms {
    Terms { opens_at: from_utc(row.opens_at), per_second: row.per_second.unsigned_abs() }
}

/// All rooms that are on, by show.
pub struct Rooms {
    known: RwLock<HashMap<Uuid, Arc<Room>>>,
    prefix: String,
    pub(super) scripts: Scripts,
    pub(super) signer: Signer,
    /// Numbers by room and visitor: one each, however often they ask.
    pub(super) joins: Cache<(Uuid, String), u64>,
    /// Who sells at the counter, and waits in no room.
    pub(super) sellers: Sellers,
}

impl Rooms {
    /// Those that are on now. Nobody gets past a room because this replica has just started.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn load(
        redis_prefix: &str,
        token_secrets: &[String],
        pg: &PgPool,
        now: Timestamp,
    ) -> Result<Self, sqlx::Error> {
        let rooms = Self {
            known: RwLock::default(),
            prefix: redis_prefix.to_owned(),
            scripts: Scripts::new(),
            signer: Signer::new(token_secrets),
            joins: Cache::builder()
                .max_capacity(JOINS_KEPT)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_live(JOIN_LIFE)
                .build(),
            sellers: Sellers::default(),
        };
        rooms.reload(pg, now).await?;
        // If Redis was started again together with all of us, nobody remembers its last moments.
        rooms.all().iter().for_each(|room| room.doubt());
        Ok(rooms)
    }

    /// The room of a show, if it is entered through one.
    #[must_use]
    pub fn of(&self, show: Uuid) -> Option<Arc<Room>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(&show).cloned()
    }

    /// The same, for whoever asks about the room itself.
    pub(super) fn known(&self, show: Uuid) -> Result<Arc<Room>, Problem> {
        self.of(show).ok_or_else(|| Problem::not_found("waiting room"))
    }

    pub(super) fn all(&self) -> Vec<Arc<Room>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Reads which rooms are on.
    pub(super) async fn reload(&self, pg: &PgPool, now: Timestamp) -> Result<(), sqlx::Error> {
        let rows = sql::all(pg, now, MAX_ROOMS).await?;
        let mut fresh = HashMap::with_capacity(rows.len());
        for row in &rows {
            let room = match self.of(row.show_id).filter(|room| room.id == row.id) {
                Some(room) => {
                    room.learn(row);
                    room
                }
                None => Arc::new(Room::new(row, &self.prefix)?),
            };
            fresh.insert(row.show_id, room);
        }
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }
}
