//! A running sale whose processes are killed at random moments: servers, Redis, Postgres.
//!
//! Two servers, a Redis with its append-only file, a Postgres, all of this test's own; buyers buy all the
//! while. A dozen kills by default, `ROWLOCK_KILLS=100` for all of them. Every run says its seed;
//! `ROWLOCK_SEED` draws the same victims and moments again.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::StatusCode;
use serde_json::Value;
use uuid::Uuid;

use crate::buyer::{self, Buyer, id_of};
use crate::faults::till::Till;
use crate::faults::wires::Wires;
use crate::postgres_process::Postgres;
use crate::redis_process::Redis;
use crate::replicas::Replica;
use crate::world::{World, insert_show, text};

/// Kills when nobody asks for more.
const USUAL_KILLS: u32 = 12;
/// People buying at once.
const BUYERS: u64 = 12;
/// Seats of a show.
const SEATS: u32 = 300;
/// A show is no longer offered when so many of its seats were held by somebody: the rest would only be looked for.
const ALMOST_SOLD_OUT: usize = 240;
/// A kill comes this long after the sale was seen to go on, at most, milliseconds.
const MOMENT_MS: u64 = 400;
/// What was killed is started again after this long, at most, milliseconds.
const DOWN_MS: u64 = 600;
/// Bookings that must be made between two kills.
const SALES_BETWEEN: usize = 3;
/// How long a sale may take to go on after a kill.
const GOES_ON_WITHIN: Duration = Duration::from_secs(60);
/// How often predicates are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How long a buyer waits for the end of a payment before buying elsewhere.
const WAITS_FOR_AN_END: Duration = Duration::from_secs(5);

/// How often somebody looks at a show.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
/// The latest shows are looked at, so many.
const SHOWS_LOOKED_AT: usize = 3;

/// Most pay at once; the others keep the reconciler and the webhooks busy.
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

/// What buyers were told.
#[derive(Default)]
struct Told {
    /// Bookings they were told are CONFIRMED, with the show and seats.
    confirmed: HashMap<Uuid, (Uuid, Vec<u32>)>,
    /// Seats of each show that somebody held: sold, or held for minutes after a declined card.
    taken: HashMap<Uuid, BTreeSet<u32>>,
    /// Answers that no fault excuses.
    surprises: Vec<String>,
}

struct Sale {
    world: World,
    till: Till,
    redis: tokio::sync::Mutex<Redis>,
    redis_url: String,
    postgres: tokio::sync::Mutex<Postgres>,
    /// Has every commit that was acknowledged, where there is one.
    standby: Option<Postgres>,
    servers: [Replica; 2],
    shows: Mutex<Vec<Uuid>>,
    told: Mutex<Told>,
    is_over: AtomicBool,
}

impl Sale {
    async fn begin() -> Self {
        let postgres = Postgres::start().await;
        let url = postgres.url();
        Self::begin_on(postgres, None, url).await
    }

    /// With a synchronous standby; the servers know both addresses.
    async fn begin_beside_a_standby() -> Self {
        let postgres = Postgres::start().await;
        let standby = postgres.standby().await;
        postgres.commit_with_the_standby().await;
        let url = format!("postgres://rowlock@{},{}/postgres", postgres.address(), standby.address());
        Self::begin_on(postgres, Some(standby), url).await
    }

    async fn begin_on(postgres: Postgres, standby: Option<Postgres>, url: String) -> Self {
        // As `cargo xtask run` has them.
        let redis = Redis::start(&["appendonly yes", "appendfsync everysec", "maxmemory-policy noeviction"]).await;
        let till = Till::open(Arc::<Wires>::default()).await;
        let redis_url = redis.url();
        let settings = [("REDIS_URL", redis_url.as_str()), ("SIMULATOR_URL", till.url.as_str())];
        let world = World::start_on(url, 0, &settings).await;
        let servers = [Replica::new(&world, &[]), Replica::new(&world, &[])];
        tokio::join!(servers[0].start(), servers[1].start());
        Self {
            shows: Mutex::new(vec![world.show]),
            redis: redis.into(),
            postgres: postgres.into(),
            standby,
            told: Mutex::default(),
            is_over: AtomicBool::new(false),
            world,
            till,
            redis_url,
            servers,
        }
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shows(&self) -> std::sync::MutexGuard<'_, Vec<Uuid>> {
        self.shows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Buys and buys, until the sale is over.
    async fn keep_buying(&self, number: u64, seed: u64) {
        let mut chance = StdRng::seed_from_u64(seed.wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let client = buyer::client();
        // Half of them prefer the other server.
        let mut servers: Vec<String> = self.servers.iter().map(|server| server.url.clone()).collect();
        servers.rotate_left((number % 2) as usize);
        let servers: Arc<[String]> = servers.into();
        while !self.is_over.load(Ordering::SeqCst) {
            let show = *self.shows().last().expect("there is one");
            // A new person each time: whoever has many cards declined is told to wait.
            let person = format!("{number}.{}@example.org", chance.random::<u64>());
            let buyer = Buyer::new(&client, &servers, show, person);
            if let Err(surprise) = self.buy(&buyer, &mut chance).await {
                self.told().surprises.push(surprise);
            }
        }
    }

    /// People who only look, at both servers. After a kill Redis may have lost its last second or two; who
    /// looks at a show there tells it that the servers have seen more, and its map is built anew.
    async fn keep_looking(&self) {
        let client = buyer::client();
        let mut again = tokio::time::interval(LOOKS_EVERY);
        while !self.is_over.load(Ordering::SeqCst) {
            again.tick().await;
            let shows: Vec<Uuid> = self.shows().iter().rev().take(SHOWS_LOOKED_AT).copied().collect();
            for (show, server) in shows.iter().flat_map(|show| self.servers.iter().map(move |server| (show, server))) {
                // Whoever gets no answer looks again.
                let _ = client.get(format!("{}/api/v1/shows/{show}/seats", server.url)).send().await;
            }
        }
    }

    /// One purchase. What a kill may cost somebody is no error: a hold, a seat that another took.
    async fn buy(&self, buyer: &Buyer, chance: &mut StdRng) -> Result<(), String> {
        let first = chance.random_range(0..SEATS - 2);
        let wanted: Vec<u32> = (first..=first + chance.random_range(0..3)).collect();
        let card = CARDS[chance.random_range(0..CARDS.len())];
        let hold = match buyer.hold(&wanted).await? {
            (StatusCode::CREATED, hold) => hold,
            (StatusCode::CONFLICT | StatusCode::LOCKED, _) => return Ok(()),
            (status, answer) => return Err(format!("a hold was answered {status} {answer}")),
        };
        self.told().taken.entry(buyer.show).or_default().extend(&wanted);
        // Half of them check out and pay in one request.
        let paid = if chance.random() {
            buyer.buy(&hold, Some(card)).await?
        } else {
            in_two_steps(buyer, &hold, card).await?
        };
        let booking = match paid {
            (StatusCode::CREATED | StatusCode::OK, answer) => {
                self.note(buyer, &answer, &wanted);
                id_of(&answer)
            }
            // Redis lost the hold, or somebody else has a seat of it.
            (StatusCode::GONE | StatusCode::CONFLICT, answer) if answer["code"] != "price_changed" => return Ok(()),
            (status, answer) => return Err(format!("paying for {} was answered {status} {answer}", hold["id"])),
        };
        let began = Instant::now();
        while began.elapsed() < WAITS_FOR_AN_END {
            let answer = buyer.booking(booking).await?;
            self.note(buyer, &answer, &wanted);
            if matches!(text(&answer["state"]), "CONFIRMED" | "CANCELLED" | "EXPIRED") {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    fn note(&self, buyer: &Buyer, booking: &Value, seats: &[u32]) {
        if booking["state"] == "CONFIRMED" {
            self.told().confirmed.insert(id_of(booking), (buyer.show, seats.to_vec()));
        }
    }

    /// Waits until so many more bookings were confirmed to their buyers.
    async fn goes_on(&self, after: &str) {
        let before = self.told().confirmed.len();
        let goes_on = async {
            while self.told().confirmed.len() < before + SALES_BETWEEN {
                self.offer_another_show().await;
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let in_time = tokio::time::timeout(GOES_ON_WITHIN, goes_on).await;
        in_time.unwrap_or_else(|_| panic!("the sale does not go on after {after}: {:?}", self.told().surprises));
    }

    async fn offer_another_show(&self) {
        let show = *self.shows().last().expect("there is one");
        let taken = self.told().taken.get(&show).map_or(0, BTreeSet::len);
        if taken >= ALMOST_SOLD_OUT {
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
                redis.answers().await;
            }
            Victim::Postgres => {
                let mut postgres = self.postgres.lock().await;
                postgres.kill().await;
                tokio::time::sleep(down).await;
                postgres.restart();
                postgres.comes_back().await;
            }
        }
    }

    async fn kill_at_random_moments(&self, kills: u32, seed: u64) -> HashMap<Victim, u32> {
        let mut chance = StdRng::seed_from_u64(seed);
        let mut killed = HashMap::new();
        self.goes_on("its beginning").await;
        for number in 1..=kills {
            let moment = Duration::from_millis(chance.random_range(0..=MOMENT_MS));
            let down = Duration::from_millis(chance.random_range(0..=DOWN_MS));
            let victim = VICTIMS[chance.random_range(0..VICTIMS.len())];
            tokio::time::sleep(moment).await;
            self.kill(victim, down).await;
            *killed.entry(victim).or_default() += 1;
            self.goes_on(&format!("kill {number}, of {victim:?}, seed {seed}")).await;
        }
        self.is_over.store(true, Ordering::SeqCst);
        killed
    }

    /// The machine of the primary is lost; its standby takes its place. The primary comes back on what it had, as one that
    /// does not know of that; a server that starts then asks both.
    async fn lose_the_primary(&self) {
        let standby = self.standby.as_ref().expect("there is a standby");
        self.goes_on("its beginning").await;
        let mut primary = self.postgres.lock().await;
        primary.kill().await;
        standby.promote().await;
        self.goes_on("the promotion").await;

        primary.restart();
        primary.comes_back().await;
        let there = primary.url_like(self.world.database_url());
        let written = async || {
            let there = platform::database::connect(&there, 1).await.expect("it answers");
            sqlx::query_scalar::<_, i64>("SELECT count(*) FROM booking_events")
                .fetch_one(&there)
                .await
                .expect("a count")
        };
        let before = written().await;
        self.servers[1].kill().await;
        self.servers[1].start().await;
        self.goes_on("the return of the old primary").await;
        assert_eq!(written().await, before, "nothing is written to the primary of before");
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// The minute of one reconciler cycle is over.
    async fn one_cycle_later(&self) {
        for statement in [
            "UPDATE outbox SET run_after = run_after - interval '60 seconds'",
            "UPDATE payments SET updated_at = updated_at - interval '60 seconds'",
        ] {
            sqlx::query(statement).execute(&self.world.pg).await.expect("time passes");
        }
    }

    /// What buyers were told still holds: by the API, and no seat was promised twice.
    async fn promises_hold(&self) {
        let told = std::mem::take(&mut *self.told());
        assert!(told.surprises.is_empty(), "no fault excuses this: {:#?}", told.surprises);
        let promised: Vec<Uuid> = told.confirmed.keys().copied().collect();
        let kept: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM bookings WHERE id = ANY($1) AND state = 'CONFIRMED'")
            .bind(&promised)
            .fetch_all(&self.world.pg)
            .await
            .expect("bookings can be read");
        let lost: Vec<&Uuid> = promised.iter().filter(|id| !kept.contains(id)).collect();
        assert!(lost.is_empty(), "buyers were told that these are CONFIRMED: {lost:?}");
        let mut seats = HashMap::new();
        for (booking, (show, of_booking)) in &told.confirmed {
            for seat in of_booking {
                let other = seats.insert((show, seat), booking);
                assert!(other.is_none(), "seat {seat} of {show} was promised to {other:?} and to {booking}");
            }
        }
    }
}

impl Sale {
    async fn end(self) {
        let Self { world, servers, redis, postgres, standby, .. } = self;
        for server in &servers {
            server.kill().await;
        }
        world.end().await;
        drop((redis, postgres, standby));
    }
}

/// Checks out, and then pays.
async fn in_two_steps(buyer: &Buyer, hold: &Value, card: &str) -> buyer::Told {
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
async fn a_sale_whose_servers_and_stores_are_killed_loses_no_booking_and_no_money() {
    let kills = number_from("ROWLOCK_KILLS").map_or(USUAL_KILLS, |kills| u32::try_from(kills).expect("not so many"));
    let fresh = || u64::from_be_bytes(*platform::ids::random_bits().first_chunk().expect("there are sixteen"));
    let seed = number_from("ROWLOCK_SEED").unwrap_or_else(fresh);
    println!("{kills} kills, ROWLOCK_SEED={seed}");
    let began = Instant::now();
    let sale = Sale::begin().await;
    let buyers = futures::future::join_all((0..BUYERS).map(|number| sale.keep_buying(number, seed)));
    let (_, (), killed) = tokio::join!(buyers, sale.keep_looking(), sale.kill_at_random_moments(kills, seed));

    sale.one_cycle_later().await;
    let totals = sale.world.books(&sale.redis_url, &sale.till.simulator).balance().await;
    println!("{killed:?} in {:?}: {totals:?}", began.elapsed());
    assert!(totals.confirmed >= kills as usize * SALES_BETWEEN, "it was a sale: {totals:?}");
    sale.promises_hold().await;
    sale.end().await;
}

/// Every sale that was acknowledged was on the standby's disk by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_sale_whose_postgres_node_is_lost_goes_on_at_the_standby_and_loses_nothing() {
    let seed = u64::from_be_bytes(*platform::ids::random_bits().first_chunk().expect("there are sixteen"));
    let sale = Sale::begin_beside_a_standby().await;
    let buyers = futures::future::join_all((0..BUYERS).map(|number| sale.keep_buying(number, seed)));
    tokio::join!(buyers, sale.keep_looking(), sale.lose_the_primary());

    sale.one_cycle_later().await;
    let totals = sale.world.books(&sale.redis_url, &sale.till.simulator).balance().await;
    assert!(totals.confirmed >= 3 * SALES_BETWEEN, "it was a sale: {totals:?}");
    sale.promises_hold().await;
    sale.end().await;
}
