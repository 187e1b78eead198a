//! Simulated visitors of a rehearsal. They send the requests of a browser to the server's own router, each with its own
//! cookie and address, and stop at the hold.

use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use domain::api::waiting_room::{QueueState, QueueView};
use domain::api::{BestView, HoldRequest};
use domain::party_size::party_size;
use domain::rehearsal::{RehearsalFigures, in_turn_percent, percentile};
use domain::seats::SeatIndex;
use uuid::Uuid;

use http::client_address::Peer;
use platform::ids;

/// An answer of the server's router.
pub type SiteAnswer = Pin<Box<dyn Future<Output = Response> + Send>>;
/// The server's router with all of its layers.
pub type Site = Arc<dyn Fn(Request) -> SiteAnswer + Send + Sync>;

/// Polling interval of a waiting visitor. A poll calls no store.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum time for which a visitor looks at the map, milliseconds.
const CHOOSING_MS: u64 = 3_000;
/// Attempts at seats per visitor.
const MAX_TRIES: u32 = 3;
/// Suggestions of seats to choose from: the most that the API sends.
const SUGGESTIONS: u32 = 8;
/// Maximum size of an answer, bytes; eight suggestions of four seats are far below.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Names and figures that all visitors of a rehearsal share.
pub(super) struct Crowd {
    pub(super) id: Uuid,
    site: Site,
    per_person: u32,
    has_room: bool,
    opens_at: Instant,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    figures: RehearsalFigures,
    /// Turns of the visitors with seats, in the order in which they got them.
    turns: Vec<u64>,
    /// Times of the answers to attempts, milliseconds.
    answers_ms: Vec<u32>,
}

/// The end of a visit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Served,
    NoSeats,
    LostRace,
    TurnedAway,
}

impl Crowd {
    /// A crowd of a rehearsal whose sale opens at that time.
    pub(super) fn new(id: Uuid, site: Site, figures: RehearsalFigures, opens_at: Instant) -> Self {
        let (per_person, has_room) = (figures.per_person, figures.per_second.is_some());
        let tally = Mutex::new(Tally { figures, ..Tally::default() });
        Self { id, site, per_person, has_room, opens_at, tally }
    }

    /// The present figures, without the order of service.
    pub(super) fn figures(&self) -> RehearsalFigures {
        let tally = self.lock();
        let mut sorted = tally.answers_ms.clone();
        sorted.sort_unstable();
        RehearsalFigures {
            median_ms: percentile(&sorted, 50),
            p99_ms: percentile(&sorted, 99),
            ..tally.figures.clone()
        }
    }

    /// The figures after the last visit.
    pub(super) fn final_figures(&self) -> RehearsalFigures {
        let figures = self.figures();
        RehearsalFigures { in_turn_percent: in_turn_percent(&self.lock().turns), ..figures }
    }

    fn record_hold(&self, turn: u64, seats: u32) {
        let mut tally = self.lock();
        tally.turns.push(turn);
        tally.figures.taken += seats;
        if tally.figures.taken == tally.figures.seats {
            let took = i64::try_from(self.opens_at.elapsed().as_millis()).unwrap_or(i64::MAX);
            tally.figures.sold_out_ms = Some(took);
        }
    }

    fn record_outcome(&self, outcome: Outcome) {
        let mut tally = self.lock();
        let figures = &mut tally.figures;
        match outcome {
            Outcome::Served => figures.served += 1,
            Outcome::NoSeats => figures.no_seats += 1,
            Outcome::LostRace => figures.lost_race += 1,
            Outcome::TurnedAway => figures.turned_away += 1,
        }
    }

    /// Locks the tally. Never held across an await.
    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A simulated visitor.
pub(super) struct SimulatedVisitor {
    crowd: Arc<Crowd>,
    cookie: String,
    address: IpAddr,
    ticket: Option<String>,
    pass: Option<String>,
}

impl SimulatedVisitor {
    /// The visitor with this number. Each has its own network, so that limits per address count people.
    pub(super) fn new(crowd: Arc<Crowd>, number: u16) -> Self {
        let secret = ids::new_id().simple().to_string();
        let [first, second, third, ..] = *crowd.id.as_bytes();
        let unique_local = u16::from_be_bytes([0xfd, first]);
        let address = Ipv6Addr::new(unique_local, u16::from_be_bytes([second, third]), number, 0, 0, 0, 0, 1);
        // Behind TLS the server reads the second one.
        let cookie = format!("rowlock_visitor={secret}; __Host-rowlock_visitor={secret}");
        Self { crowd, cookie, address: address.into(), ticket: None, pass: None }
    }

    /// Arrives after that time, and tries for seats.
    pub(super) async fn visit(mut self, after: Duration) {
        tokio::time::sleep(after).await;
        let arrival = {
            let mut tally = self.crowd.lock();
            tally.figures.arrived += 1;
            u64::from(tally.figures.arrived)
        };
        let outcome = self.try_for_seats(arrival).await;
        self.crowd.record_outcome(outcome);
        if outcome != Outcome::Served && self.ticket.is_some() {
            self.send(Method::DELETE, "/queue", Body::empty()).await;
        }
    }

    async fn try_for_seats(&mut self, arrival: u64) -> Outcome {
        let turn = if self.crowd.has_room { self.wait_for_entry().await } else { Some(arrival) };
        let Some(turn) = turn else { return Outcome::TurnedAway };
        tokio::time::sleep(Duration::from_millis(ids::jitter(CHOOSING_MS))).await;
        let mut party = party_size(ids::jitter(99)).min(self.crowd.per_person);
        for _ in 0..MAX_TRIES {
            let seats = loop {
                match self.choose(party).await {
                    None => return Outcome::TurnedAway,
                    Some(seats) if !seats.is_empty() => break seats,
                    // A smaller party takes the last seats.
                    Some(_) if party > 1 => party -= 1,
                    Some(_) => return Outcome::NoSeats,
                }
            };
            match self.hold(seats).await {
                StatusCode::CREATED => {
                    self.crowd.record_hold(turn, party);
                    return Outcome::Served;
                }
                StatusCode::CONFLICT | StatusCode::LOCKED => {}
                _ => return Outcome::TurnedAway,
            }
        }
        Outcome::LostRace
    }

    /// Waits in the waiting room, and returns the place in it; `None` if it refuses.
    async fn wait_for_entry(&mut self) -> Option<u64> {
        loop {
            let view = self.attempt_entry().await?;
            match view.state {
                QueueState::Inside => {
                    self.pass = view.pass;
                    return view.place;
                }
                QueueState::Over | QueueState::Closed | QueueState::Elsewhere => return None,
                QueueState::Outside | QueueState::Waiting | QueueState::Called | QueueState::Late => {}
            }
            self.ticket = view.ticket.or_else(|| self.ticket.take());
            while self.is_waiting().await? {}
        }
    }

    async fn attempt_entry(&self) -> Option<QueueView> {
        let (status, body) = self.attempt(Method::POST, "/queue", Body::empty()).await;
        status.is_success().then(|| serde_json::from_slice(&body).ok()).flatten()
    }

    async fn is_waiting(&self) -> Option<bool> {
        tokio::time::sleep(POLL_INTERVAL).await;
        let (_, body) = self.send(Method::GET, "/queue", Body::empty()).await;
        let view: QueueView = serde_json::from_slice(&body).ok()?;
        Some(view.state == QueueState::Waiting)
    }

    /// Chooses from the suggested seats; none if fewer are free, `None` if the server refuses.
    async fn choose(&self, party: u32) -> Option<Vec<SeatIndex>> {
        let path = format!("/best?count={party}&most={SUGGESTIONS}");
        let (_, body) = self.attempt(Method::GET, &path, Body::empty()).await;
        let best: BestView = serde_json::from_slice(&body).ok()?;
        let last = best.suggestions.len().saturating_sub(1) as u64;
        let chosen = usize::try_from(ids::jitter(last)).ok().and_then(|chosen| best.suggestions.get(chosen));
        Some(chosen.map(|chosen| chosen.seats.iter().map(|line| line.seat).collect()).unwrap_or_default())
    }

    async fn hold(&self, seats: Vec<SeatIndex>) -> StatusCode {
        let request = HoldRequest { seats, ..HoldRequest::default() };
        let body = serde_json::to_vec(&request).expect("seats are numbers");
        self.attempt(Method::POST, "/holds", body.into()).await.0
    }

    /// Sends a request whose time counts.
    async fn attempt(&self, method: Method, path: &str, body: Body) -> (StatusCode, Bytes) {
        let sent_at = Instant::now();
        let answer = self.send(method, path, body).await;
        let took = u32::try_from(sent_at.elapsed().as_millis()).unwrap_or(u32::MAX);
        self.crowd.lock().answers_ms.push(took);
        answer
    }

    async fn send(&self, method: Method, path: &str, body: Body) -> (StatusCode, Bytes) {
        let mut request = axum::http::Request::builder()
            .method(method)
            .uri(format!("/api/v1/shows/{}{path}", self.crowd.id))
            .header(header::COOKIE, &self.cookie)
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", ids::new_id().to_string())
            .extension(Peer(self.address));
        for (name, value) in [("queue-ticket", &self.ticket), ("queue-pass", &self.pass)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let request = request.body(body).expect("the headers are visible ASCII");
        let response = (self.crowd.site)(request).await;
        let status = response.status();
        let body = to_bytes(response.into_body(), MAX_ANSWER_BYTES).await.unwrap_or_default();
        (status, body)
    }
}
