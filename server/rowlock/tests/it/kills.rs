//! A running sale whose processes are killed at random moments: servers, Redis, Postgres.
//!
//! It uses two servers, a Redis with its append-only file, and a Postgres, all started by this test; buyers buy
//! continuously. A dozen kills by default, `ROWLOCK_KILLS=100` for all of them. Every run prints its seed;
//! `ROWLOCK_SEED` repeats its victims and moments.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::buyer::{self, Buyer, id_of};
use crate::faults::gateway_proxy::GatewayProxy;
use crate::faults::injector::FaultInjector;
use crate::postgres_process::Postgres;
use crate::prelude::*;
use crate::redis_process::Redis;
use crate::replicas::Replica;

const DEFAULT_KILLS: u32 = 12;
const BUYERS: u64 = 12;
const SEATS: u32 = 300;
/// A show is replaced when this many of its seats were held: buyers would mostly collide over the rest.
const REPLACE_SHOW_AFTER: usize = 240;
/// Maximum delay of a kill after the sale made progress, in milliseconds.
const MAX_KILL_DELAY_MS: u64 = 400;
/// Maximum downtime of a killed process, in milliseconds.
const MAX_DOWNTIME_MS: u64 = 600;
/// Bookings that must be confirmed between two kills.
const SALES_BETWEEN_KILLS: usize = 3;
/// Time limit for the sale to make progress after a kill.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time that a buyer waits for the end of a payment before buying elsewhere.
const PAYMENT_TIMEOUT: Duration = Duration::from_secs(5);

const MAP_REQUEST_INTERVAL: Duration = Duration::from_millis(100);
const SHOWS_REQUESTED: usize = 3;

/// Most cards pay at once; the others exercise the reconciler and the webhooks.
const CARDS: [&str; 8] = [
    "tok_paid",
    "tok_paid",
    "tok_paid",
    "tok_paid",
    "tok_declined",
    "tok_pending_paid",
    "tok_pending_failed",
    "tok_duplicate_webhooks",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Victim {
    OneServer,
    OtherServer,
    Redis,
    Postgres,
}

const VICTIMS: [Victim; 4] = [Victim::OneServer, Victim::OtherServer, Victim::Redis, Victim::Postgres];

#[derive(Default)]
struct BuyerAnswers {
    /// Bookings reported as CONFIRMED, with the show and seats.
    confirmed: HashMap<Uuid, (Uuid, Vec<u32>)>,
    /// Seats of each show that were held: sold, or held for minutes after a declined card.
    taken: HashMap<Uuid, BTreeSet<u32>>,
    unexpected: Vec<String>,
}

struct RunningSale {
    world: World,
    gateway: GatewayProxy,
    redis: tokio::sync::Mutex<Redis>,
    redis_url: String,
    postgres: tokio::sync::Mutex<Postgres>,
    /// Has every acknowledged commit, if there is a standby.
    standby: Option<Postgres>,
    servers: [Replica; 2],
    shows: Mutex<Vec<Uuid>>,
    answers: Mutex<BuyerAnswers>,
    is_over: AtomicBool,
}

impl RunningSale {
    async fn start() -> Self {
        let postgres = Postgres::start().await;
        let url = postgres.url();
        Self::start_on(postgres, None, url).await
    }

    /// With a synchronous standby; the servers get both addresses.
    async fn start_with_standby() -> Self {
        let postgres = Postgres::start().await;
        let standby = postgres.standby().await;
        postgres.require_synchronous_standby().await;
        let url = format!("postgres://rowlock@{},{}/postgres", postgres.address(), standby.address());
        Self::start_on(postgres, Some(standby), url).await
    }

    async fn start_on(postgres: Postgres, standby: Option<Postgres>, url: String) -> Self {
        // Settings of `cargo xtask run`.
        let redis = Redis::start(&["appendonly yes", "appendfsync everysec", "maxmemory-policy noeviction"]).await;
        let gateway = GatewayProxy::open(Arc::<FaultInjector>::default()).await;
        let redis_url = redis.url();
        let settings = [("REDIS_URL", redis_url.as_str()), ("SIMULATOR_URL", gateway.url.as_str())];
        let world = World::start_on(url, 0, &settings).await;
        let servers = [Replica::new(&world, &[]), Replica::new(&world, &[])];
        tokio::join!(servers[0].start(), servers[1].start());
        Self {
            shows: Mutex::new(vec![world.show]),
            redis: redis.into(),
            postgres: postgres.into(),
            standby,
            answers: Mutex::default(),
            is_over: AtomicBool::new(false),
            world,
            gateway,
            redis_url,
            servers,
        }
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, BuyerAnswers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shows(&self) -> std::sync::MutexGuard<'_, Vec<Uuid>> {
        self.shows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn keep_buying(&self, number: u64, seed: u64) {
        let mut chance = StdRng::seed_from_u64(seed.wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let client = buyer::client();
        // Half of them prefer the other server.
        let mut servers: Vec<String> = self.servers.iter().map(|server| server.url.clone()).collect();
        servers.rotate_left((number % 2) as usize);
        let servers: Arc<[String]> = servers.into();
        while !self.is_over.load(Ordering::SeqCst) {
            let show = *self.shows().last().expect("there is one");
            // A new buyer each time, because many declined cards of one buyer are rate limited.
            let person = format!("{number}.{}@example.org", chance.random::<u64>());
            let buyer = Buyer::new(&client, &servers, show, person);
            if let Err(surprise) = self.buy(&buyer, &mut chance).await {
                self.answers().unexpected.push(surprise);
            }
        }
    }

    /// Requests maps at both servers. After a kill Redis may have lost its last second or two; a request for the show's
    /// map detects the lower version, and the map is rebuilt.
    async fn keep_requesting_maps(&self) {
        let client = buyer::client();
        let mut again = tokio::time::interval(MAP_REQUEST_INTERVAL);
        while !self.is_over.load(Ordering::SeqCst) {
            again.tick().await;
            let shows: Vec<Uuid> = self.shows().iter().rev().take(SHOWS_REQUESTED).copied().collect();
            for (show, server) in shows.iter().flat_map(|show| self.servers.iter().map(move |server| (show, server))) {
                // A failed request is repeated later.
                let _ = client.get(format!("{}/api/v1/shows/{show}/seats", server.url)).send().await;
            }
        }
    }

    /// One purchase. A kill may cost a hold or a seat; that is no error.
    async fn buy(&self, buyer: &Buyer, chance: &mut StdRng) -> Result<(), String> {
        let first = chance.random_range(0..SEATS - 2);
        let wanted: Vec<u32> = (first..=first + chance.random_range(0..3)).collect();
        let card = CARDS[chance.random_range(0..CARDS.len())];
        let hold = match buyer.hold(&wanted).await? {
            (StatusCode::CREATED, hold) => hold,
            (StatusCode::CONFLICT | StatusCode::LOCKED, _) => return Ok(()),
            (status, answer) => return Err(format!("a hold was answered {status} {answer}")),
        };
        self.answers().taken.entry(buyer.show).or_default().extend(&wanted);
        // Half of them check out and pay in one request.
        let paid = if chance.random() {
            buyer.buy(&hold, Some(card)).await?
        } else {
            check_out_then_pay(buyer, &hold, card).await?
        };
        let booking = match paid {
            (StatusCode::CREATED | StatusCode::OK, answer) => {
                self.note(buyer, &answer, &wanted);
                id_of(&answer)
            }
            // Redis lost the hold, or another buyer has one of its seats.
            (StatusCode::GONE | StatusCode::CONFLICT, answer) if answer["code"] != "price_changed" => return Ok(()),
            (status, answer) => return Err(format!("paying for {} was answered {status} {answer}", hold["id"])),
        };
        let began = Instant::now();
        while began.elapsed() < PAYMENT_TIMEOUT {
            let answer = buyer.booking(booking).await?;
            self.note(buyer, &answer, &wanted);
            if matches!(text(&answer["state"]), "CONFIRMED" | "CANCELLED" | "EXPIRED") {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    fn note(&self, buyer: &Buyer, booking: &Value, seats: &[u32]) {
        if booking["state"] == "CONFIRMED" {
            self.answers().confirmed.insert(id_of(booking), (buyer.show, seats.to_vec()));
        }
    }

    async fn wait_for_progress(&self, after: &str) {
        let before = self.answers().confirmed.len();
        let confirmed = async {
            while self.answers().confirmed.len() < before + SALES_BETWEEN_KILLS {
                self.offer_another_show().await;
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let in_time = tokio::time::timeout(PROGRESS_TIMEOUT, confirmed).await;
        in_time.unwrap_or_else(|_| panic!("the sale makes no progress after {after}: {:?}", self.answers().unexpected));
    }

    async fn offer_another_show(&self) {
        let show = *self.shows().last().expect("there is one");
        let taken = self.answers().taken.get(&show).map_or(0, BTreeSet::len);
        if taken >= REPLACE_SHOW_AFTER {
            let next = insert_show(&self.world.pg, 300_000, 24 * 3600).await;
            self.shows().push(next);
        }
    }

    async fn kill(&self, victim: Victim, down: Duration) {
        match victim {
            Victim::OneServer | Victim::OtherServer => {
                let server = &self.servers[usize::from(victim == Victim::OtherServer)];
                server.kill().await;
                tokio::time::sleep(down).await;
                server.start().await;
            }
            Victim::Redis => {
                let mut redis = self.redis.lock().await;
                redis.kill().await;
                tokio::time::sleep(down).await;
                redis.restart(&[]);
                redis.wait_until_ready().await;
            }
            Victim::Postgres => {
                let mut postgres = self.postgres.lock().await;
                postgres.kill().await;
                tokio::time::sleep(down).await;
                postgres.restart();
                postgres.wait_until_restarted().await;
            }
        }
    }

    async fn kill_at_random_moments(&self, kills: u32, seed: u64) -> HashMap<Victim, u32> {
        let mut chance = StdRng::seed_from_u64(seed);
        let mut killed = HashMap::new();
        self.wait_for_progress("its beginning").await;
        for number in 1..=kills {
            let moment = Duration::from_millis(chance.random_range(0..=MAX_KILL_DELAY_MS));
            let down = Duration::from_millis(chance.random_range(0..=MAX_DOWNTIME_MS));
            let victim = VICTIMS[chance.random_range(0..VICTIMS.len())];
            tokio::time::sleep(moment).await;
            self.kill(victim, down).await;
            *killed.entry(victim).or_default() += 1;
            self.wait_for_progress(&format!("kill {number}, of {victim:?}, seed {seed}")).await;
        }
        self.is_over.store(true, Ordering::SeqCst);
        killed
    }

    /// The primary's machine fails and the standby is promoted. The old primary restarts on its files, without knowing;
    /// a server that starts then connects to both.
    async fn fail_over(&self) {
        let standby = self.standby.as_ref().expect("there is a standby");
        self.wait_for_progress("its beginning").await;
        let mut primary = self.postgres.lock().await;
        primary.kill().await;
        standby.promote().await;
        self.wait_for_progress("the promotion").await;

        primary.restart();
        primary.wait_until_restarted().await;
        let there = primary.url_like(self.world.database_url());
        let written = async || {
            let there = platform::database::connect(&there, 1).await.expect("it answers");
            let sql = "SELECT count(*) FROM booking_events";
            sqlx::query_scalar::<_, i64>(sql).fetch_one(&there).await.expect("a count")
        };
        let before = written().await;
        self.servers[1].kill().await;
        self.servers[1].start().await;
        self.wait_for_progress("the return of the old primary").await;
        assert_eq!(written().await, before, "nothing is written to the old primary");
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Ages the timestamps by one reconciler cycle.
    async fn age_one_cycle(&self) {
        for statement in [
            "UPDATE outbox SET run_after = run_after - interval '60 seconds'",
            "UPDATE payments SET updated_at = updated_at - interval '60 seconds'",
        ] {
            self.world.execute(statement).await;
        }
    }

    /// Checks that confirmed bookings are still confirmed in the API, and that no seat was confirmed twice.
    async fn assert_confirmed_bookings_hold(&self) {
        let answers = std::mem::take(&mut *self.answers());
        assert!(answers.unexpected.is_empty(), "no fault explains these answers: {:#?}", answers.unexpected);
        let promised: Vec<Uuid> = answers.confirmed.keys().copied().collect();
        let kept: Vec<Uuid> = self
            .world
            .values(
                sqlx::query_scalar("SELECT id FROM bookings WHERE id = ANY($1) AND state = 'CONFIRMED'")
                    .bind(&promised),
            )
            .await;
        let lost: Vec<&Uuid> = promised.iter().filter(|id| !kept.contains(id)).collect();
        assert!(lost.is_empty(), "these were reported as CONFIRMED: {lost:?}");
        let mut seats = HashMap::new();
        for (booking, (show, of_booking)) in &answers.confirmed {
            for seat in of_booking {
                let other = seats.insert((show, seat), booking);
                assert!(other.is_none(), "seat {seat} of {show} was confirmed to {other:?} and to {booking}");
            }
        }
    }
}

impl RunningSale {
    async fn end(self) {
        let Self { world, servers, redis, postgres, standby, .. } = self;
        for server in &servers {
            server.kill().await;
        }
        world.end().await;
        drop((redis, postgres, standby));
    }
}

async fn check_out_then_pay(buyer: &Buyer, hold: &Value, card: &str) -> buyer::RequestResult {
    match buyer.book(hold).await? {
        (StatusCode::CREATED, booking) => buyer.pay(id_of(&booking), Some(card)).await,
        // Redis lost the hold.
        (StatusCode::GONE, answer) => Ok((StatusCode::GONE, answer)),
        (status, answer) => Err(format!("booking {} was answered {status} {answer}", hold["id"])),
    }
}

fn number_from(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty())?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {value:?}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn sale_with_killed_servers_and_stores_loses_no_booking_and_no_money() {
    let kills =
        number_from("ROWLOCK_KILLS").map_or(DEFAULT_KILLS, |kills| u32::try_from(kills).expect("a number of kills"));
    let fresh = || u64::from_be_bytes(*platform::ids::random_bits().first_chunk().expect("there are sixteen"));
    let seed = number_from("ROWLOCK_SEED").unwrap_or_else(fresh);
    println!("{kills} kills, ROWLOCK_SEED={seed}");
    let began = Instant::now();
    let sale = RunningSale::start().await;
    let buyers = join_all((0..BUYERS).map(|number| sale.keep_buying(number, seed)));
    let (_, (), killed) = tokio::join!(buyers, sale.keep_requesting_maps(), sale.kill_at_random_moments(kills, seed));

    sale.age_one_cycle().await;
    let totals = sale.world.books(&sale.redis_url, &sale.gateway.simulator).wait_until_balanced().await;
    println!("{killed:?} in {:?}: {totals:?}", began.elapsed());
    assert!(totals.confirmed >= kills as usize * SALES_BETWEEN_KILLS, "too few sales: {totals:?}");
    sale.assert_confirmed_bookings_hold().await;
    sale.end().await;
}

/// Every acknowledged sale was on the standby's disk.
#[tokio::test(flavor = "multi_thread")]
async fn sale_continues_at_the_standby_after_the_primary_is_lost() {
    let seed = u64::from_be_bytes(*platform::ids::random_bits().first_chunk().expect("there are sixteen"));
    let sale = RunningSale::start_with_standby().await;
    let buyers = join_all((0..BUYERS).map(|number| sale.keep_buying(number, seed)));
    tokio::join!(buyers, sale.keep_requesting_maps(), sale.fail_over());

    sale.age_one_cycle().await;
    let totals = sale.world.books(&sale.redis_url, &sale.gateway.simulator).wait_until_balanced().await;
    assert!(totals.confirmed >= 3 * SALES_BETWEEN_KILLS, "too few sales: {totals:?}");
    sale.assert_confirmed_bookings_hold().await;
    sale.end().await;
}
