//! The crowd of a demo: simulated visitors who hold seats, pay for a few, and give the others back.
//!
//! It is a client of the HTTP API like any other, with cookies, idempotency keys and rate limits. It visits the shows
//! whose live maps are open, which the server lists at `/demo/watched`. To change each of 370 shows every few seconds, it
//! would need more attempts than an address may make, and most of a small machine's CPU. A watched show gets a visitor
//! every three to five seconds. While no show is watched, a random one gets a visitor every half a minute.
//!
//! At the start it sells some shows in part and one completely, with a waiting list. Most seats come back: `choices` has
//! the share of visitors who pay, and the share of sold seats at which they stop.

mod choices;
mod pace;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use domain::api::catalogue::{CityView, ShowList, ShowStatus, ShowView};
use domain::api::{BestView, HoldView};
use domain::party_size::party_size;
use domain::seats::SeatIndex;
use reqwest::{Client, Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use uuid::Uuid;

use crate::{clock, webhooks};
pub use choices::Ending;
use choices::{EarlySales, SeatShares, find_free_run, pick_suggestion};
use pace::Pace;

/// Interval at which the watched shows are read.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Maximum delay of the first visit of a show that is newly watched, milliseconds: people see it within ten seconds.
const FIRST_VISIT_WITHIN_MS: u64 = 2_000;
/// Time between two visits of a watched show, milliseconds, and its random addition.
const VISIT_EVERY_MS: i64 = 3_000;
const VISIT_SPREAD_MS: u64 = 2_000;
/// Time between two visits while no show is watched, milliseconds, and its random addition.
const RANDOM_VISIT_EVERY_MS: i64 = 20_000;
const RANDOM_VISIT_SPREAD_MS: u64 = 20_000;
/// Time for which a visitor holds seats, milliseconds, and its random addition.
const LINGER_MS: u64 = 4_000;
const LINGER_SPREAD_MS: u64 = 6_000;
/// Suggestions to choose from: the most that the API sends.
const SUGGESTIONS: usize = 8;
/// Seats of a room from which on visitors sit anywhere: ranking all of its seats for each visit would cost too much.
const LARGE_ROOM_SEATS: usize = 2_000;
/// Maximum number of parties that buy one show at the start.
const MAX_EARLY_PARTIES: usize = 600;
/// People who wait for seats of the show that is sold out.
const WAITING_PEOPLE: usize = 3;
/// Pause after a refusal for too much load that names none, and the longest one, seconds.
const PAUSE_S: i64 = 5;
const MAX_PAUSE_S: i64 = 60;
/// The test card that is charged at once.
const CARD: &str = "tok_paid";
const NAMES: [&str; 6] = ["Ana Duarte", "Jonas Weber", "Priya Nair", "Tiago Rocha", "Marie Vogel", "Arjun Deshpande"];

/// Random draws, percent.
fn draw_percent() -> u64 {
    clock::jitter(99)
}

fn draw_party() -> usize {
    party_size(draw_percent()) as usize
}

fn jitter_ms(limit: u64) -> i64 {
    clock::jitter(limit).cast_signed()
}

/// A simulated visitor with a separate cookie.
struct DemoVisitor {
    cookie: String,
    name: &'static str,
    email: String,
}

impl DemoVisitor {
    fn new() -> Self {
        let secret = clock::new_uuid().simple().to_string();
        let name = NAMES[usize::try_from(clock::jitter(NAMES.len() as u64 - 1)).unwrap_or_default()];
        Self {
            // Behind TLS the server reads the second one.
            cookie: format!("rowlock_visitor={secret}; __Host-rowlock_visitor={secret}"),
            name,
            email: format!("crowd-{}@example.org", &secret[..12]),
        }
    }
}

/// The seats of a visit, how long they are held, and what follows.
#[derive(Clone, Copy, Debug)]
pub struct VisitPlan {
    /// Number of seats.
    pub party: usize,
    /// Time from the hold to its end.
    pub linger: Duration,
    /// The end of the visit, unless the show is well sold.
    pub ending: Ending,
}

impl VisitPlan {
    fn draw() -> Self {
        Self {
            party: draw_party(),
            linger: Duration::from_millis(LINGER_MS + clock::jitter(LINGER_SPREAD_MS)),
            ending: Ending::of_draw(draw_percent()),
        }
    }
}

/// The states of `GET …/seats`, a digit per seat.
#[derive(Deserialize)]
struct SeatStates {
    states: String,
}

/// The crowd of one site.
pub struct DemoCrowd {
    http: Client,
    site: String,
    /// End of the pause that the server asked for, milliseconds since 1970.
    paused_until_ms: AtomicI64,
}

impl DemoCrowd {
    /// Creates the crowd of the site at this address.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn new(site: &str) -> anyhow::Result<Self> {
        let site = site.trim_end_matches('/').to_owned();
        Ok(Self { http: webhooks::http_client()?, site, paused_until_ms: AtomicI64::new(0) })
    }

    /// Visits shows until it is dropped, with at most `visitors` at a time. Errors are logged: the site may restart.
    pub async fn run(self: Arc<Self>, visitors: usize) {
        let early = Arc::clone(&self);
        tokio::spawn(async move {
            if let Err(error) = early.sell_early().await {
                tracing::warn!(%error, "selling seats at the start failed");
            }
        });
        let places = Arc::new(Semaphore::new(visitors));
        let (mut pace, mut random_at_ms) = (Pace::default(), 0);
        loop {
            sleep(LOOK_EVERY).await;
            let now = clock::now_ms();
            if self.pause_left(now) > Duration::ZERO {
                continue;
            }
            match self.watched_shows().await {
                Ok(watched) => pace.set_watched(&watched, || now + jitter_ms(FIRST_VISIT_WITHIN_MS)),
                Err(error) => {
                    tracing::debug!(%error, "reading the watched shows failed");
                    continue;
                }
            }
            while let Some(show) = pace.next_due(now)
                && let Ok(place) = Arc::clone(&places).try_acquire_owned()
            {
                pace.schedule(show, now + VISIT_EVERY_MS + jitter_ms(VISIT_SPREAD_MS));
                self.spawn_visit(show, place);
            }
            if pace.is_idle()
                && now >= random_at_ms
                && let Ok(place) = Arc::clone(&places).try_acquire_owned()
            {
                random_at_ms = now + RANDOM_VISIT_EVERY_MS + jitter_ms(RANDOM_VISIT_SPREAD_MS);
                match self.any_show().await {
                    Ok(Some(show)) => self.spawn_visit(show, place),
                    Ok(None) => {}
                    Err(error) => tracing::debug!(%error, "looking for a show failed"),
                }
            }
        }
    }

    fn spawn_visit(self: &Arc<Self>, show: Uuid, place: OwnedSemaphorePermit) {
        let crowd = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = crowd.visit(show, VisitPlan::draw()).await {
                tracing::debug!(%show, %error, "visit failed");
            }
            drop(place);
        });
    }

    /// Returns the shows with open live maps.
    ///
    /// # Errors
    /// When the site does not answer, or is not a demo with a crowd.
    pub async fn watched_shows(&self) -> anyhow::Result<Vec<Uuid>> {
        let answer = self.http.get(format!("{}/demo/watched", self.site)).send().await?.error_for_status()?;
        Ok(answer.json().await?)
    }

    /// Holds seats of a show, waits, and pays or gives them back. A refusal ends the visit: another was faster, or the
    /// show is not on sale.
    ///
    /// # Errors
    /// When the site does not answer.
    pub async fn visit(&self, show: Uuid, plan: VisitPlan) -> anyhow::Result<()> {
        let visitor = DemoVisitor::new();
        let Some(states) = self.seat_states(&visitor, show).await? else { return Ok(()) };
        let shares = SeatShares::of(&states);
        if !shares.has_room() {
            return Ok(());
        }
        let Some(seats) = self.choose_seats(&visitor, show, plan.party, &states).await? else { return Ok(()) };
        let Some(hold) = self.hold(&visitor, show, &seats).await? else { return Ok(()) };
        sleep(plan.linger).await;
        let path = format!("/shows/{show}/holds/{}", hold.id);
        match plan.ending.in_show(shares) {
            Ending::Pays => self.pay(&visitor, &hold).await?,
            Ending::Leaves => {
                self.send(&visitor, Method::POST, &format!("{path}/leave"), Value::Null).await?;
            }
            Ending::Releases => {
                self.send(&visitor, Method::DELETE, &path, Value::Null).await?;
            }
        }
        Ok(())
    }

    /// Sells some shows in part and one completely, unless they are already.
    async fn sell_early(&self) -> anyhow::Result<()> {
        let shows = self.shows_to_come().await?;
        let sales = EarlySales::of(&shows, clock::now_ms());
        for (show, percent) in &sales.part_sold {
            self.sell_part(show.id, *percent).await?;
        }
        if let Some(show) = sales.sold_out {
            self.sell_out(show.id).await?;
        }
        tracing::info!(
            part_sold = sales.part_sold.len(),
            sold_out = sales.sold_out.is_some(),
            "shows sold at the start"
        );
        Ok(())
    }

    /// Buys seats side by side until so many percent are sold.
    async fn sell_part(&self, show: Uuid, percent: u64) -> anyhow::Result<()> {
        for _ in 0..MAX_EARLY_PARTIES {
            self.wait_for_pause().await;
            let visitor = DemoVisitor::new();
            let Some(states) = self.seat_states(&visitor, show).await? else { return Ok(()) };
            if SeatShares::of(&states).sold_percent >= percent {
                return Ok(());
            }
            let party = draw_party();
            if let Some(seats) = self.choose_seats(&visitor, show, party, &states).await? {
                self.buy(&visitor, show, &seats).await?;
            }
        }
        Ok(())
    }

    /// Buys all free seats of a show, and joins its waiting list.
    ///
    /// # Errors
    /// When the site does not answer.
    pub async fn sell_out(&self, show: Uuid) -> anyhow::Result<()> {
        for parties in 0..MAX_EARLY_PARTIES {
            self.wait_for_pause().await;
            let visitor = DemoVisitor::new();
            let Some(states) = self.seat_states(&visitor, show).await? else { return Ok(()) };
            let largest = draw_party();
            match (1..=largest).rev().find_map(|size| find_free_run(&states, size, 0)) {
                Some(seats) => self.buy(&visitor, show, &seats).await?,
                // It was sold out by an earlier run, which has joined the list.
                None if parties == 0 => return Ok(()),
                None => break,
            }
        }
        for _ in 0..WAITING_PEOPLE {
            let visitor = DemoVisitor::new();
            let entry = json!({ "quantity": 2, "email": visitor.email });
            self.send(&visitor, Method::POST, &format!("/shows/{show}/waiting-list"), entry).await?;
        }
        Ok(())
    }

    async fn buy(&self, visitor: &DemoVisitor, show: Uuid, seats: &[SeatIndex]) -> anyhow::Result<()> {
        match self.hold(visitor, show, seats).await? {
            Some(hold) => self.pay(visitor, &hold).await,
            None => Ok(()),
        }
    }

    /// Returns a random show on sale.
    async fn any_show(&self) -> anyhow::Result<Option<Uuid>> {
        let mut shows = self.shows_to_come().await?;
        shows.retain(|show| show.status == ShowStatus::OnSale);
        let last = shows.len().saturating_sub(1) as u64;
        Ok(shows.get(usize::try_from(clock::jitter(last))?).map(|show| show.id))
    }

    /// Returns the next shows of every city.
    async fn shows_to_come(&self) -> anyhow::Result<Vec<ShowView>> {
        let visitor = DemoVisitor::new();
        let Some(cities) = self.send(&visitor, Method::GET, "/cities", Value::Null).await? else { return Ok(vec![]) };
        let mut shows = Vec::new();
        for city in cities.json::<Vec<CityView>>().await? {
            let path = format!("/shows?city={}", city.id);
            if let Some(found) = self.send(&visitor, Method::GET, &path, Value::Null).await? {
                shows.extend(found.json::<ShowList>().await?.shows);
            }
        }
        Ok(shows)
    }

    async fn seat_states(&self, visitor: &DemoVisitor, show: Uuid) -> anyhow::Result<Option<String>> {
        match self.send(visitor, Method::GET, &format!("/shows/{show}/seats"), Value::Null).await? {
            Some(answer) => Ok(Some(answer.json::<SeatStates>().await?.states)),
            None => Ok(None),
        }
    }

    /// Chooses seats side by side, near the best spot of the room; in a large room, anywhere.
    async fn choose_seats(
        &self,
        visitor: &DemoVisitor,
        show: Uuid,
        party: usize,
        states: &str,
    ) -> anyhow::Result<Option<Vec<SeatIndex>>> {
        if states.len() >= LARGE_ROOM_SEATS {
            let from = usize::try_from(clock::jitter(states.len() as u64))?;
            return Ok(find_free_run(states, party, from));
        }
        let path = format!("/shows/{show}/best?count={party}&most={SUGGESTIONS}");
        match self.send(visitor, Method::GET, &path, Value::Null).await? {
            Some(answer) => Ok(pick_suggestion(&answer.json::<BestView>().await?, clock::jitter(u64::from(u32::MAX)))),
            None => Ok(None),
        }
    }

    async fn hold(&self, visitor: &DemoVisitor, show: Uuid, seats: &[SeatIndex]) -> anyhow::Result<Option<HoldView>> {
        let body = json!({ "seats": seats });
        match self.send(visitor, Method::POST, &format!("/shows/{show}/holds"), body).await? {
            Some(answer) => Ok(Some(answer.json().await?)),
            None => Ok(None),
        }
    }

    async fn pay(&self, visitor: &DemoVisitor, hold: &HoldView) -> anyhow::Result<()> {
        let booking = json!({
            "show": hold.show, "hold": hold.id, "buyer": { "name": visitor.name, "email": visitor.email },
            "pay": { "total_minor": hold.total.minor, "payment_token": CARD },
        });
        self.send(visitor, Method::POST, "/bookings", booking).await?;
        Ok(())
    }

    /// Sends a request under `/api/v1` with a fresh key; a body of `null` is none. Returns `None` for a refusal. One for
    /// too much load pauses the whole crowd.
    async fn send(
        &self,
        visitor: &DemoVisitor,
        method: Method,
        path: &str,
        body: Value,
    ) -> anyhow::Result<Option<Response>> {
        let mut request = self
            .http
            .request(method, format!("{}/api/v1{path}", self.site))
            .header("cookie", &visitor.cookie)
            .header("idempotency-key", clock::new_uuid().to_string());
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(Some(answer));
        }
        let retry_after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let problem: Value = answer.json().await.unwrap_or_default();
        tracing::debug!(path, %status, code = %problem["code"], "request refused");
        if status == StatusCode::SERVICE_UNAVAILABLE || problem["code"] == "too_many_attempts" {
            let seconds: i64 = retry_after.unwrap_or(PAUSE_S).clamp(1, MAX_PAUSE_S);
            self.paused_until_ms.fetch_max(clock::now_ms() + seconds * 1_000, Ordering::Relaxed);
        }
        Ok(None)
    }

    async fn wait_for_pause(&self) {
        sleep(self.pause_left(clock::now_ms())).await;
    }

    fn pause_left(&self, now_ms: i64) -> Duration {
        let left = self.paused_until_ms.load(Ordering::Relaxed) - now_ms;
        Duration::from_millis(left.max(0).unsigned_abs())
    }
}
