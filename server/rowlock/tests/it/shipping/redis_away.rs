//! Redis is away behind the proxy that is shipped. Holds alone are refused; payments, tickets, the door, tills and
//! cancelling go on, and a replica restarts meanwhile. `ROWLOCK_REDIS_AWAY_S=60` keeps Redis away for a minute.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Running, file, is_used, program, proxy};
use crate::box_office::{at_work, desk};
use crate::door::{Device, codes, device, tonight};
use crate::faults::till::Till;
use crate::faults::wires::Wires;
use crate::ports;
use crate::redis_process::{Redis, hold_at_last, try_hold};
use crate::replicas::Replica;
use crate::world::{Visitor, World, text, until};

const NAMES: [&str; 2] = ["one", "two"];
/// Pause between two looks of a visitor at a show.
const PACE: Duration = Duration::from_millis(100);

/// The way in which Redis is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    /// Its process stops: connections stay open, nothing is answered.
    Frozen,
    /// Its process is killed, and what it knew is lost.
    Killed,
}

/// Two replicas behind the proxy, and a third server beside it at which staff signed in.
struct Site {
    world: World,
    redis: Redis,
    till: Till,
    replicas: [Replica; 2],
    control: PathBuf,
    _proxy: Running,
    public: String,
}

impl Site {
    async fn open(program: PathBuf) -> Self {
        let redis = Redis::start(&[]).await;
        let till = Till::open(Arc::<Wires>::default()).await;
        let redis_url = redis.url();
        let settings = [("REDIS_URL", redis_url.as_str()), ("SIMULATOR_URL", till.url.as_str())];
        let world = World::start(1, &settings).await;
        let port = ports::free().port();
        let public = format!("http://127.0.0.1:{port}");
        let replicas =
            NAMES.map(|_| Replica::new(&world, &[("PUBLIC_URL", public.as_str()), ("TRUSTED_PROXIES", "1")]));
        let control = std::env::temp_dir().join(format!("rowlock-proxy-{port}"));
        let text = proxy(port, &control, [&replicas[0].url, &replicas[1].url]);
        join_all(replicas.iter().map(Replica::start)).await;
        let file = file("haproxy.cfg", &text);
        let running = Running::start(Command::new(program).arg("-db").arg("-f").arg(&file), &file, port).await;
        let site = Self { world, redis, till, replicas, control, _proxy: running, public };
        until("both replicas are used", || site.uses_both()).await;
        site
    }

    async fn uses_both(&self) -> bool {
        is_used(&self.control, NAMES[0]).await && is_used(&self.control, NAMES[1]).await
    }

    /// The same person, by way of the proxy.
    fn through(&self, visitor: &Visitor) -> Visitor {
        Visitor { base: self.public.clone(), ..visitor.clone() }
    }

    fn visitor(&self) -> Visitor {
        self.through(&self.world.visitor())
    }

    /// A replica's own readiness.
    async fn readiness(&self, replica: &Replica) -> (StatusCode, Value) {
        let visitor = Visitor { base: replica.url.clone(), ..self.world.visitor() };
        visitor.get("/readyz").await
    }

    async fn take_redis_away(&mut self, away: Away) {
        match away {
            Away::Frozen => self.redis.freeze().await,
            Away::Killed => self.redis.kill().await,
        }
    }

    async fn bring_redis_back(&mut self, away: Away) {
        match away {
            Away::Frozen => self.redis.thaw().await,
            Away::Killed => self.redis.restart(&[]),
        }
        self.redis.answers().await;
    }

    async fn end(self) {
        for replica in &self.replicas {
            replica.kill().await;
        }
        let _ = std::fs::remove_file(&self.control);
        self.world.end().await;
    }
}

/// Looks at a show and at the page of its film again and again; no answer may be missing or a 503.
async fn keep_looking(visitor: Visitor, stop: Arc<AtomicBool>) {
    let mut pace = tokio::time::interval(PACE);
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        for path in [format!("/api/v1/shows/{}", visitor.show), format!("/shows/{}", visitor.show)] {
            let (status, body) = visitor.raw(Method::GET, &path, Value::Null, "").await;
            assert_eq!(status, StatusCode::OK, "{path}: {body}");
        }
    }
}

async fn checked_out(visitor: &Visitor, seat: u32) -> Value {
    let (status, hold) = visitor.hold(&[seat]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let (status, booking) = visitor.book(&hold).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    booking
}

/// People in the middle of things when Redis goes.
struct People {
    /// At the gateway's page, with its address.
    ann: (Visitor, Value, String),
    /// Checked out, and about to pay.
    bob: (Visitor, Value),
    /// Has a ticket for tonight.
    cat: (Visitor, Value),
    /// Has a ticket, and no time after all.
    dan: (Visitor, Value),
    door: Device,
    /// Sells at the counter, and has no till open.
    seller: Visitor,
}

impl People {
    async fn come(site: &Site) -> Self {
        let [ann, bob, dan] = [(); 3].map(|()| site.visitor());
        let pending = checked_out(&ann, 1).await;
        let (_, pending) = ann.pay(&pending, None).await;
        assert_eq!(pending["state"], "PAYMENT_PENDING", "{pending}");
        let page = text(&pending["pay_url"]).to_owned();
        let checked_out = checked_out(&bob, 2).await;
        let cat = site.through(&tonight(&site.world).await);
        let ticket = cat.bought(&[3], "tok_paid").await;
        let unwanted = dan.bought(&[4], "tok_paid").await;
        let at_door = device(&site.world, cat.show, "Door").await;
        let door = Device { browser: site.through(&at_door.browser), ..at_door };
        let seller = site.through(&at_work(&site.world, "sam@example.org").await.visitor());
        Self {
            ann: (ann, pending, page),
            bob: (bob, checked_out),
            cat: (cat, ticket),
            dan: (dan, unwanted),
            door,
            seller,
        }
    }
}

/// Everything a cinema does that needs no seat lock.
async fn goes_on(site: &Site, people: &People) {
    let People { ann: (ann, pending, page), bob: (bob, checked_out), cat: (cat, ticket), dan: (dan, unwanted), .. } =
        people;
    // Paying: the gateway's webhook comes in by the proxy.
    let card = ann.client.post(page).header("content-type", "application/x-www-form-urlencoded").body("card=paid");
    assert_eq!(card.send().await.expect("the gateway answers").status(), StatusCode::SEE_OTHER);
    ann.sees_booking(pending, "CONFIRMED").await;
    let heard = "SELECT count(*) FROM webhook_events";
    until("the webhook is noted", || async { site.world.count(heard).await > 0 }).await;
    // A checkout from before.
    let (status, paid) = bob.pay(checked_out, Some("tok_paid")).await;
    assert_eq!((status, &paid["state"]), (StatusCode::OK, &json!("CONFIRMED")), "{paid}");
    // Their tickets are mailed, although the sales are not on the map.
    let (unmailed, unmarked) = (
        "SELECT count(*) FROM outbox WHERE effect = 'send_ticket'",
        "SELECT count(*) FROM outbox WHERE effect = 'mark_booked'",
    );
    until("tickets are mailed", || async { site.world.count(unmailed).await == 0 }).await;
    assert!(site.world.count(unmarked).await > 0, "the marks wait for Redis");
    // A ticket, and the door.
    let code = &codes(&site.world, ticket).await[0];
    let (status, opened) = cat.raw(Method::GET, &format!("/tickets/{code}"), Value::Null, "").await;
    assert_eq!(status, StatusCode::OK, "{opened}");
    assert_eq!(people.door.outcome(code).await, "admitted");
    // Cancelling: the money is on its way back before any seat is.
    let (status, cancelled) = dan.cancel(unwanted, None).await;
    assert_eq!((status, &cancelled["state"]), (StatusCode::OK, &json!("CANCELLED")), "{cancelled}");
    dan.sees_money(unwanted, "REFUNDED").await;
    // The counter sees its shows and its till.
    for path in [desk("shows"), desk("till")] {
        let (status, answer) = people.seller.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
    }
}

async fn only_holds_are_refused_while_redis_is_away(away: Away) {
    let Some(program) = program("HAPROXY", "haproxy") else { return };
    let mut site = Site::open(program).await;
    let people = People::come(&site).await;
    let (stop, visitor) = (Arc::<AtomicBool>::default(), site.visitor());
    let looking = tokio::spawn(keep_looking(visitor, Arc::clone(&stop)));
    let began = Instant::now();
    site.take_redis_away(away).await;

    // A seat that no other visitor takes: a frozen Redis runs the calls it was sent once it continues, and she may hold it then.
    let eve = site.visitor();
    until("holds are refused", || async { try_hold(&eve, &[9], "while-away").await.is_sent_away() }).await;
    goes_on(&site, &people).await;
    // A new process never saw Redis, and serves.
    site.replicas[1].stop().await;
    site.replicas[1].start().await;
    for replica in &site.replicas {
        let is_told = || async { site.readiness(replica).await.1["lock_store"] == json!(false) };
        until("readiness reports the lock store", is_told).await;
        let (status, said) = site.readiness(replica).await;
        assert_eq!(
            (status, &said["database"], &said["schema"]),
            (StatusCode::OK, &json!(true), &json!(true)),
            "{said}"
        );
    }
    until("both replicas are used", || site.uses_both()).await;
    assert!(try_hold(&eve, &[9], "still-away").await.is_sent_away());
    if let Ok(seconds) = std::env::var("ROWLOCK_REDIS_AWAY_S") {
        let whole = Duration::from_secs(seconds.parse().expect("ROWLOCK_REDIS_AWAY_S is a number of seconds"));
        tokio::time::sleep(whole.saturating_sub(began.elapsed())).await;
        assert!(try_hold(&eve, &[9], "long-away").await.is_sent_away());
    }
    println!("Redis was away for {:?}", began.elapsed());

    site.bring_redis_back(away).await;
    // At each replica, and at the one that was started without it.
    for (replica, seat) in site.replicas.iter().zip([5, 6]) {
        let fay = Visitor { base: replica.url.clone(), ..site.world.visitor() };
        let held = hold_at_last(&fay, &[seat]).await;
        assert_eq!(held.status, StatusCode::CREATED, "{held:?}");
        let (status, booking) = fay.buy(&held.body, Some("tok_paid")).await;
        assert_eq!((status, &booking["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{booking}");
    }
    stop.store(true, Ordering::Relaxed);
    looking.await.expect("every look was answered");
    for (seat, state) in [(1, '2'), (2, '2'), (4, '0')] {
        eve.sees(seat, state).await;
    }
    let totals = site.world.books(&site.redis.url(), &site.till.simulator).balance().await;
    assert_eq!(totals.confirmed, 5, "{totals:?}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_redis_takes_holds_away_and_nothing_else() {
    only_holds_are_refused_while_redis_is_away(Away::Frozen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_redis_takes_holds_away_and_nothing_else() {
    only_holds_are_refused_while_redis_is_away(Away::Killed).await;
}
