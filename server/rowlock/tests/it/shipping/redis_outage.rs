//! A Redis outage behind the shipped proxy. Only holds are refused; payments, tickets, the door, tills and
//! cancellations continue, and a replica restarts meanwhile. `ROWLOCK_REDIS_AWAY_S=60` extends the outage to a minute.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::process::Command;

use super::{RunningProgram, file, is_used, program, proxy};
use crate::box_office::{desk_path, seller_with_open_till};
use crate::door::{Device, codes, device, tonight};
use crate::faults::gateway_proxy::GatewayProxy;
use crate::faults::injector::FaultInjector;
use crate::prelude::*;
use crate::redis_process::{Redis, hold_with_retries, try_hold};
use crate::replicas::{Replica, free_address};

const NAMES: [&str; 2] = ["one", "two"];
const PACE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outage {
    /// Its process is suspended: connections stay open, and nothing is answered.
    Frozen,
    /// Its process is killed, and its data is lost.
    Killed,
}

/// Two replicas behind the proxy, and a third server at which staff sign in.
struct ProxiedSite {
    world: World,
    redis: Redis,
    gateway: GatewayProxy,
    replicas: [Replica; 2],
    control: PathBuf,
    _proxy: RunningProgram,
    public: String,
}

impl ProxiedSite {
    async fn open(program: PathBuf) -> Self {
        let redis = Redis::start(&[]).await;
        let gateway = GatewayProxy::open(Arc::<FaultInjector>::default()).await;
        let redis_url = redis.url();
        let settings = [("REDIS_URL", redis_url.as_str()), ("SIMULATOR_URL", gateway.url.as_str())];
        let world = World::start(1, &settings).await;
        let port = free_address().port();
        let public = format!("http://127.0.0.1:{port}");
        let replicas =
            NAMES.map(|_| Replica::new(&world, &[("PUBLIC_URL", public.as_str()), ("TRUSTED_PROXIES", "1")]));
        let control = std::env::temp_dir().join(format!("rowlock-proxy-{port}"));
        let text = proxy(port, &control, [&replicas[0].url, &replicas[1].url]);
        join_all(replicas.iter().map(Replica::start)).await;
        let file = file("haproxy.cfg", &text);
        let running = RunningProgram::start(Command::new(program).arg("-db").arg("-f").arg(&file), &file, port).await;
        let site = Self { world, redis, gateway, replicas, control, _proxy: running, public };
        wait_until("both replicas are used", || site.uses_both()).await;
        site
    }

    async fn uses_both(&self) -> bool {
        is_used(&self.control, NAMES[0]).await && is_used(&self.control, NAMES[1]).await
    }

    fn through(&self, visitor: &Visitor) -> Visitor {
        Visitor { base: self.public.clone(), ..visitor.clone() }
    }

    fn visitor(&self) -> Visitor {
        self.through(&self.world.visitor())
    }

    async fn readiness(&self, replica: &Replica) -> (StatusCode, Value) {
        let visitor = Visitor { base: replica.url.clone(), ..self.world.visitor() };
        visitor.get("/readyz").await
    }

    async fn take_redis_away(&mut self, outage: Outage) {
        match outage {
            Outage::Frozen => self.redis.freeze().await,
            Outage::Killed => self.redis.kill().await,
        }
    }

    async fn bring_redis_back(&mut self, outage: Outage) {
        match outage {
            Outage::Frozen => self.redis.thaw().await,
            Outage::Killed => self.redis.restart(&[]),
        }
        self.redis.wait_until_ready().await;
    }

    async fn end(self) {
        for replica in &self.replicas {
            replica.kill().await;
        }
        let _ = std::fs::remove_file(&self.control);
        self.world.end().await;
    }
}

/// Repeatedly requests a show and the page of its film; every request must be answered, and not with a 503.
async fn keep_requesting(visitor: Visitor, stop: Arc<AtomicBool>) {
    let mut pace = tokio::time::interval(PACE);
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        for path in [format!("/api/v1/shows/{}", visitor.show), format!("/shows/{}", visitor.show)] {
            let (status, body) = visitor.raw(Method::GET, &path, Value::Null, "").await;
            assert_eq!(status, StatusCode::OK, "{path}: {body}");
        }
    }
}

/// Visitors and staff in several states when the outage begins.
struct Participants {
    /// On the gateway's page, with its URL.
    ann: (Visitor, Value, String),
    bob: (Visitor, Value),
    cat: (Visitor, Value),
    dan: (Visitor, Value),
    door: Device,
    /// A seller at the counter without an open till.
    seller: Visitor,
}

impl Participants {
    async fn arrive(site: &ProxiedSite) -> Self {
        let [ann, bob, dan] = [(); 3].map(|()| site.visitor());
        let pending = ann.check_out(&[1]).await.1;
        let pending = expect_state(ann.pay(&pending, None).await, StatusCode::OK, "PAYMENT_PENDING");
        let page = text(&pending["pay_url"]).to_owned();
        let check_out = bob.check_out(&[2]).await.1;
        let cat = site.through(&tonight(&site.world).await);
        let ticket = cat.buy_seats(&[3], "tok_paid").await;
        let unwanted = dan.buy_seats(&[4], "tok_paid").await;
        let at_door = device(&site.world, cat.show, "Door").await;
        let door = Device { browser: site.through(&at_door.browser), ..at_door };
        let seller = site.through(&seller_with_open_till(&site.world, "sam@example.org").await.visitor());
        Self {
            ann: (ann, pending, page),
            bob: (bob, check_out),
            cat: (cat, ticket),
            dan: (dan, unwanted),
            door,
            seller,
        }
    }
}

/// Everything that needs no seat lock continues.
async fn assert_other_work_continues(site: &ProxiedSite, people: &Participants) {
    let Participants {
        ann: (ann, pending, page), bob: (bob, check_out), cat: (cat, ticket), dan: (dan, unwanted), ..
    } = people;
    // A payment: the gateway's webhook arrives through the proxy.
    assert_eq!(ann.post_form(page, "card=paid").await.status(), StatusCode::SEE_OTHER);
    ann.wait_for_booking(pending, "CONFIRMED").await;
    let heard = "SELECT count(*) FROM webhook_events";
    wait_until("the webhook is stored", || async { site.world.count(heard).await > 0 }).await;
    expect_state(bob.pay(check_out, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    // Tickets are mailed, although the map does not show the sales.
    let (unmailed, unmarked) = (
        "SELECT count(*) FROM outbox WHERE effect = 'send_ticket'",
        "SELECT count(*) FROM outbox WHERE effect = 'mark_booked'",
    );
    site.world.wait_for_count("tickets are mailed", unmailed, 0).await;
    assert!(site.world.count(unmarked).await > 0, "map effects wait for Redis");
    let code = &codes(&site.world, ticket).await[0];
    expect_answer(cat.raw(Method::GET, &format!("/tickets/{code}"), Value::Null, "").await, StatusCode::OK);
    assert_eq!(people.door.outcome(code).await, "admitted");
    // A cancellation: the refund does not wait for the map.
    expect_state(dan.cancel(unwanted, None).await, StatusCode::OK, "CANCELLED");
    dan.wait_for_money(unwanted, "REFUNDED").await;
    for path in [desk_path("shows"), desk_path("till")] {
        let (status, answer) = people.seller.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
    }
}

async fn assert_only_holds_are_refused(outage: Outage) {
    let Some(program) = program("HAPROXY", "haproxy") else { return };
    let mut site = ProxiedSite::open(program).await;
    let people = Participants::arrive(&site).await;
    let (stop, visitor) = (Arc::<AtomicBool>::default(), site.visitor());
    let looking = tokio::spawn(keep_requesting(visitor, Arc::clone(&stop)));
    let began = Instant::now();
    site.take_redis_away(outage).await;

    // A seat that no other visitor takes: a frozen Redis executes queued calls when it continues, so she may hold it
    // then.
    let eve = site.visitor();
    wait_until("holds are refused", || async { try_hold(&eve, &[9], "while-away").await.is_unavailable() }).await;
    assert_other_work_continues(&site, &people).await;
    // A new process starts without Redis.
    site.replicas[1].stop().await;
    site.replicas[1].start().await;
    for replica in &site.replicas {
        let is_told = || async { site.readiness(replica).await.1["lock_store"] == json!(false) };
        wait_until("readiness reports the lock store", is_told).await;
        let said = expect_answer(site.readiness(replica).await, StatusCode::OK);
        assert_eq!([&said["database"], &said["schema"]], [true, true], "{said}");
    }
    wait_until("both replicas are used", || site.uses_both()).await;
    assert!(try_hold(&eve, &[9], "still-away").await.is_unavailable());
    if let Ok(seconds) = std::env::var("ROWLOCK_REDIS_AWAY_S") {
        let whole = Duration::from_secs(seconds.parse().expect("ROWLOCK_REDIS_AWAY_S is a number of seconds"));
        tokio::time::sleep(whole.saturating_sub(began.elapsed())).await;
        assert!(try_hold(&eve, &[9], "long-away").await.is_unavailable());
    }
    println!("Redis was down for {:?}", began.elapsed());

    site.bring_redis_back(outage).await;
    // At each replica, and at the one that started during the outage.
    for (replica, seat) in site.replicas.iter().zip([5, 6]) {
        let fay = Visitor { base: replica.url.clone(), ..site.world.visitor() };
        let held = hold_with_retries(&fay, &[seat]).await;
        assert_eq!(held.status, StatusCode::CREATED, "{held:?}");
        expect_state(fay.buy(&held.body, Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
    }
    stop.store(true, Ordering::Relaxed);
    looking.await.expect("every request was answered");
    for (seat, state) in [(1, '2'), (2, '2'), (4, '0')] {
        eve.wait_for_seat(seat, state).await;
    }
    let totals = site.world.books(&site.redis.url(), &site.gateway.simulator).wait_until_balanced().await;
    assert_eq!(totals.confirmed, 5, "{totals:?}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_redis_refuses_holds_and_nothing_else() {
    assert_only_holds_are_refused(Outage::Frozen).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_redis_refuses_holds_and_nothing_else() {
    assert_only_holds_are_refused(Outage::Killed).await;
}
