//! Where sagas are played: one server process, with a proxy on each way out of it.

mod order;

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::sync::{Barrier, watch};
use uuid::Uuid;

use super::mail_wire::Post;
use super::notes::Notes;
use super::redis_wire;
use super::sagas::Saga;
use super::till::Till;
use super::wires::{Fault, Wires};
use crate::buyer::{self, Buyer};
use crate::replicas::Replica;
use crate::world::{API_KEY, SECRET, World, insert_show};

/// No case ends and no server is started anew for this long: those that are left do not come to their end. Each fault
/// kills once, and cases take turns: how long all of them take is a matter of the machine.
const CASE_PATIENCE: Duration = Duration::from_secs(90);
/// How often a predicate is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(150);
/// How often the clock of leases and pauses is put forward.
const PUT_FORWARD_EVERY: Duration = Duration::from_millis(300);
/// The server is killed when nobody else has come to the place for so long: one kill then serves many…
///
/// A pause, for there is no predicate in its place: whoever is still to come may be a lease or another try away, and
/// those who are there must not wait for that. Nothing is proved by it: who comes a moment too late has a kill of their
/// own, and what a case must come to is awaited in [`Stage::ends`].
const QUIET: Duration = Duration::from_millis(200);
/// …or after so many times that: Redis is asked again by then, and the place is passed.
const QUIETS_AT_MOST: u32 = 3;
/// Seats of an order.
const SEATS: u32 = 2;

/// One saga, and what goes wrong in it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub saga: Saga,
    pub strike: Option<(&'static str, Fault)>,
}

/// A booking and its buyer.
pub struct Order {
    pub buyer: Buyer,
    pub booking: Uuid,
    pub reference: String,
    /// The first of its seats.
    pub seat: u32,
    strike: Option<(&'static str, Fault)>,
}

/// A show that will begin while people pay for it.
struct Premiere {
    show: Uuid,
    everybody: Barrier,
}

pub struct Stage {
    pub world: World,
    pub till: Till,
    /// The second gateway, where there is one.
    second: Option<Till>,
    pub post: Post,
    pub wires: Arc<Wires>,
    pub notes: Notes,
    redis_url: String,
    server: Replica,
    /// Cases that have ended, and starts of the server after it was killed.
    progress: watch::Sender<u64>,
    servers: Arc<[String]>,
    client: reqwest::Client,
    next_seat: AtomicU32,
    premiere: Mutex<Arc<Premiere>>,
    /// What went wrong with the faults themselves.
    problems: Mutex<Vec<String>>,
}

impl Stage {
    /// With one gateway.
    pub async fn open() -> Self {
        Self::open_with(Arc::default(), None).await
    }

    /// With a second gateway, which is spoken to in Stripe's words.
    pub async fn open_with_two_gateways() -> Self {
        let wires = Arc::<Wires>::default();
        let second = Till::open(Arc::clone(&wires)).await;
        Self::open_with(wires, Some(second)).await
    }

    async fn open_with(wires: Arc<Wires>, second: Option<Till>) -> Self {
        let till = Till::open(Arc::clone(&wires)).await;
        let post = Post::open(Arc::clone(&wires)).await;
        let redis_url = std::env::var("REDIS_URL").expect("REDIS_URL; `cargo xtask test` sets it");
        let proxied = behind_proxy(&redis_url, &wires).await;
        let mut settings = vec![
            ("SIMULATOR_URL", till.url.as_str()),
            ("SMTP_URL", post.url.as_str()),
            ("REDIS_URL", proxied.as_str()),
        ];
        if let Some(second) = &second {
            settings.extend([("PAYMENT_GATEWAYS", "simulator,stripe"), ("STRIPE_URL", second.url.as_str())]);
            settings.extend([("STRIPE_SECRET_KEY", API_KEY), ("STRIPE_WEBHOOK_SECRET", SECRET)]);
        }
        let world = World::start(0, &settings).await;
        let notes = Notes::begin(world.pg.clone()).await;
        let server = Replica::new(&world, &[]);
        if let Some(second) = &second {
            second.simulator.tell_stripe_events_to(format!("{}/api/v1/webhooks/payments/stripe", server.url));
        }
        server.start().await;
        wires.await_introductions();
        let premiere = Premiere { show: world.show, everybody: Barrier::new(1) };
        Self {
            servers: [server.url.clone()].into(),
            client: buyer::client(),
            next_seat: AtomicU32::new(0),
            progress: watch::Sender::new(0),
            premiere: Mutex::new(Arc::new(premiere)),
            problems: Mutex::default(),
            world,
            till,
            second,
            post,
            wires,
            notes,
            redis_url,
            server,
        }
    }

    /// Plays all of them side by side; their bookings. Fails with every case that does not end as it should.
    ///
    /// With two gateways one after the other: whatever goes wrong at the first opens its breaker if it happens
    /// often enough in a row, and then bookings begin at the second.
    pub async fn play(&self, cases: &[Case]) -> Vec<Uuid> {
        let mut outcomes = Vec::new();
        // The premiere comes last: servers are started anew when it begins.
        let (premiere, others): (Vec<Case>, Vec<Case>) =
            cases.iter().copied().partition(|case| case.saga == Saga::ShowStarted);
        for batch in [others, premiere] {
            let show = insert_show(&self.world.pg, 300_000, 24 * 3600).await;
            let premiere = Premiere { show, everybody: Barrier::new(batch.len()) };
            *self.premiere.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(premiere);
            let side_by_side = if self.second.is_some() { 1 } else { batch.len().max(1) };
            let played =
                stream::iter(&batch).map(|case| self.play_one(*case)).buffered(side_by_side).collect::<Vec<_>>();
            tokio::select! {
                played = played => outcomes.extend(batch.iter().copied().zip(played)),
                () = self.put_clocks_forward() => unreachable!("time goes on"),
                () = self.kill_whoever_is_there() => unreachable!("so does this"),
            }
        }
        let mut failures: Vec<String> = self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut bookings = Vec::new();
        for case in cases {
            let at = outcomes.iter().position(|(other, _)| other.saga == case.saga && other.strike == case.strike);
            match outcomes.swap_remove(at.expect("each was played")).1 {
                Ok(booking) => bookings.push(booking),
                Err(why) => failures.push(format!("{:?} with {:?}: {why}", case.saga, case.strike)),
            }
        }
        assert!(failures.is_empty(), "{} of {} went wrong:\n{}", failures.len(), cases.len(), failures.join("\n"));
        bookings
    }

    async fn play_one(&self, case: Case) -> Result<Uuid, String> {
        let Some(order) = self.while_there_is_progress(self.order(case)).await else {
            return Err("there is no booking".to_owned());
        };
        let order = order?;
        let played = async {
            case.saga.play(self, &order).await?;
            self.ends(&order, case.saga.ends()).await
        };
        let outcome = match self.while_there_is_progress(played).await {
            Some(Ok(())) => Ok(order.booking),
            Some(Err(why)) => Err(format!("{why}; {}", self.story(&order).await)),
            None => Err(format!("it does not come to its end; {}", self.story(&order).await)),
        };
        self.note_progress();
        outcome
    }

    fn note_progress(&self) {
        self.progress.send_modify(|steps| *steps += 1);
    }

    /// Waits for something; gives up when it has not come, and there was no progress, for [`CASE_PATIENCE`].
    async fn while_there_is_progress<T>(&self, awaited: impl Future<Output = T>) -> Option<T> {
        let mut progress = self.progress.subscribe();
        let mut awaited = std::pin::pin!(awaited);
        loop {
            tokio::select! {
                outcome = &mut awaited => return Some(outcome),
                stepped = tokio::time::timeout(CASE_PATIENCE, progress.changed()) => {
                    stepped.ok()?.expect("the stage is there");
                }
            }
        }
    }

    async fn start_anew(&self) {
        self.server.start().await;
        self.note_progress();
    }

    /// Waits until the booking stands so, its ticket was mailed if it has one, and nothing is left to do.
    pub async fn stands(&self, order: &Order, (state, money): (&str, &str)) -> Result<(), String> {
        loop {
            let booking = order.buyer.booking(order.booking).await?;
            let stands = booking["state"] == state && booking["money"] == money;
            let is_told = state != "CONFIRMED" || self.post.mails_to(&order.buyer.email) > 0;
            if stands && is_told && self.left_to_do(order).await == 0 {
                return Ok(());
            }
            self.look_again().await;
        }
    }

    /// The same, once what was to go wrong did.
    async fn ends(&self, order: &Order, ends: (&str, &str)) -> Result<(), String> {
        while !self.has_struck(order).await {
            self.look_again().await;
        }
        self.stands(order, ends).await
    }

    async fn has_struck(&self, order: &Order) -> bool {
        match order.strike {
            None => true,
            Some((effect, fault)) if fault.is_on_the_way() => self.wires.has_struck(order.booking, effect),
            Some((effect, _)) => self.notes.has_struck(order.booking, effect).await,
        }
    }

    /// Effects in the outbox for this booking.
    pub async fn left_to_do(&self, order: &Order) -> i64 {
        let count = sqlx::query_scalar("SELECT count(*) FROM outbox WHERE booking_id = $1").bind(order.booking);
        count.fetch_one(&self.world.pg).await.expect("the outbox is counted")
    }

    pub async fn look_again(&self) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }

    /// The booking's story and what is left to do, for whoever reads of a failure.
    async fn story(&self, order: &Order) -> String {
        let told = sqlx::query_scalar::<_, String>(
            "SELECT 'booking ' || id || ' is ' || state || ', its money ' || money || '; story: '
                    || coalesce((SELECT string_agg(event || ' (' || actor || ')', ', ' ORDER BY number)
                                 FROM booking_events WHERE booking_id = id), '')
                    || '; to do: ' || coalesce((SELECT string_agg(effect || ' after ' || attempts || ' tries', ', ' ORDER BY outbox.id)
                                 FROM outbox WHERE booking_id = bookings.id), 'nothing')
             FROM bookings WHERE id = $1",
        );
        let told = told.bind(order.booking).fetch_one(&self.world.pg).await;
        let told = told.unwrap_or_else(|cause| cause.to_string());
        format!("{told}; the fault {}", if self.has_struck(order).await { "struck" } else { "never struck" })
    }

    /// The booking's time is over, and nobody heard of its payment for an hour.
    pub async fn time_is_over(&self, order: &Order) {
        for statement in [
            "UPDATE bookings SET expires_at = now() - interval '1 second', version = version + 1 WHERE id = $1",
            "UPDATE payments SET updated_at = now() - interval '1 hour' WHERE booking_id = $1",
        ] {
            sqlx::query(statement).bind(order.booking).execute(&self.world.pg).await.expect("time passes");
        }
    }

    /// The claims ran out so long ago that they were taken over and given back.
    pub async fn lose_claims(&self, order: &Order) {
        let lost = sqlx::query("UPDATE seat_claims SET state = 'released' WHERE booking_id = $1");
        let lost = lost.bind(order.booking).execute(&self.world.pg).await.expect("claims are lost");
        assert_eq!(lost.rows_affected(), u64::from(SEATS));
    }

    /// Once all who are in it wait for it, the show begins. A server believes for minutes what it knows of a
    /// show, so it is started anew.
    pub async fn the_show_begins(&self) {
        let premiere = Arc::clone(&self.premiere.lock().unwrap_or_else(PoisonError::into_inner));
        if premiere.everybody.wait().await.is_leader() {
            let begins = sqlx::query("UPDATE shows SET starts_at = now() - interval '1 minute' WHERE id = $1");
            begins.bind(premiere.show).execute(&self.world.pg).await.expect("the show begins");
            self.server.kill().await;
            self.start_anew().await;
        }
        premiere.everybody.wait().await;
    }

    /// Nobody waits a minute for a lease to end or a gateway to be asked: a second and a half is as good.
    async fn put_clocks_forward(&self) {
        let mut again = tokio::time::interval(PUT_FORWARD_EVERY);
        loop {
            again.tick().await;
            for statement in [
                "UPDATE outbox SET run_after = now() WHERE id IN
                     (SELECT id FROM outbox WHERE parked_why IS NULL AND created_at < now() - interval '1.5 seconds'
                        AND run_after > now() + interval '3 seconds'
                        AND run_after < now() + CASE WHEN effect LIKE 'send%' THEN interval '118.5 seconds'
                                                     ELSE interval '58.5 seconds' END
                      FOR UPDATE SKIP LOCKED)",
                "UPDATE payments SET updated_at = now() - interval '21 seconds' WHERE booking_id IN
                     (SELECT payments.booking_id FROM payments JOIN bookings ON id = payments.booking_id
                      WHERE bookings.state = 'PAYMENT_PENDING'
                        AND payments.updated_at BETWEEN now() - interval '20 seconds' AND now() - interval '3 seconds'
                      FOR UPDATE OF payments SKIP LOCKED)",
            ] {
                sqlx::query(statement).execute(&self.world.pg).await.expect("time passes");
            }
            for (booking, effect) in self.wires.refused() {
                if self.attempts(booking, effect).await >= Some(2) {
                    self.wires.lift(booking, effect);
                }
            }
        }
    }

    /// How often the relay has tried it; `None` when it is not to be done any more.
    async fn attempts(&self, booking: Uuid, effect: &str) -> Option<i32> {
        sqlx::query_scalar("SELECT max(attempts) FROM outbox WHERE booking_id = $1 AND effect = $2")
            .bind(booking)
            .bind(effect)
            .fetch_one(&self.world.pg)
            .await
            .expect("the outbox is read")
    }

    /// Kills the server whenever somebody stands where it is to be killed.
    async fn kill_whoever_is_there(&self) {
        let mut again = tokio::time::interval(QUIET);
        loop {
            again.tick().await;
            let (mut there, mut quiets) = (0, 0);
            loop {
                let now_there = self.notes.at_the_gallows().await.len() + self.wires.kept_back().len();
                if now_there == 0 || (now_there == there && quiets > 0) || quiets == QUIETS_AT_MOST {
                    there = now_there;
                    break;
                }
                (there, quiets) = (now_there, quiets + 1);
                tokio::time::sleep(QUIET).await;
            }
            if there > 0 {
                self.kill().await;
            }
        }
    }

    async fn kill(&self) {
        self.server.kill().await;
        for (booking, effect) in self.wires.kept_back() {
            if self.attempts(booking, effect).await.is_none() {
                let problem = format!("booking {booking}: {effect} was noted before the server was killed");
                self.problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
            }
        }
        self.notes.end(&self.notes.at_the_gallows().await).await;
        self.wires.killed();
        // What the dead one had taken is anybody's in a minute: that minute is over.
        sqlx::query("UPDATE outbox SET run_after = now() WHERE id IN (SELECT id FROM outbox FOR UPDATE SKIP LOCKED)")
            .execute(&self.world.pg)
            .await
            .expect("time passes");
        self.start_anew().await;
    }

    /// Waits until the books balance.
    pub async fn balance(&self) {
        let mut books = self.world.books(&self.redis_url, &self.till.simulator);
        books.gateways.extend(self.second.iter().map(|second| &second.simulator));
        books.balance().await;
    }

    pub async fn end(self) {
        self.server.kill().await;
        drop(self.notes);
        self.world.end().await;
    }
}

/// The same address of Redis, by way of a proxy.
async fn behind_proxy(url: &str, wires: &Arc<Wires>) -> String {
    let mut url = reqwest::Url::parse(url).expect("REDIS_URL is an address");
    let address = format!("{}:{}", url.host_str().expect("a host"), url.port().unwrap_or(6379));
    let proxy = redis_wire::start(address, Arc::clone(wires)).await;
    let proxy: std::net::SocketAddr = proxy.parse().expect("an address");
    url.set_host(Some(&proxy.ip().to_string())).expect("a host");
    url.set_port(Some(proxy.port())).expect("a port");
    url.to_string()
}
