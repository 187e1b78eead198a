//! The reconciler finishes abandoned payments. Webhooks are lost in these tests, so only the reconciler gets the
//! outcomes. A charge that reaches its gateway after the payment was voided as unknown is voided again, and counts as a
//! late payment. In an outage of the gateway timestamps in the database move back in steps, and every due effect is
//! attempted.

use simulator::payment::Status;

use crate::buyer::{self, Buyer, id_of};
use crate::faults::gateway_proxy::{Availability, GatewayProxy};
use crate::faults::injector::{EffectFault, FaultInjector};
use crate::prelude::*;
use crate::replicas::Replica;
use crate::telemetry::{TOKEN, value};

/// No server listens there: webhooks are lost.
pub const NO_WEBHOOKS: (&str, &str) = ("PUBLIC_URL", "http://127.0.0.1:9");

/// Servers that get no webhook and must query the gateway.
pub struct WebhookOutage {
    pub world: World,
    pub gateway: GatewayProxy,
    pub injector: Arc<FaultInjector>,
    pub replicas: Vec<Replica>,
    servers: Arc<[String]>,
    client: reqwest::Client,
}

impl WebhookOutage {
    pub async fn start(replicas: usize) -> Self {
        let injector = Arc::<FaultInjector>::default();
        let gateway = GatewayProxy::open(Arc::clone(&injector)).await;
        let world = World::start(0, &[("SIMULATOR_URL", gateway.url.as_str())]).await;
        let settings = [NO_WEBHOOKS, ("METRICS_TOKEN", TOKEN)];
        let replicas: Vec<Replica> = (0..replicas).map(|_| Replica::new(&world, &settings)).collect();
        join_all(replicas.iter().map(Replica::start)).await;
        let servers = replicas.iter().map(|replica| replica.url.clone()).collect();
        Self { world, gateway, injector, replicas, servers, client: buyer::client() }
    }

    pub async fn check_out(&self, seat: u32) -> (Buyer, Uuid) {
        let buyer = Buyer::new(&self.client, &self.servers, self.world.show, format!("{seat}@example.org"));
        let hold = expect_answer(buyer.hold(&[seat]).await.expect("an answer"), StatusCode::CREATED);
        let booking = expect_answer(buyer.book(&hold).await.expect("an answer"), StatusCode::CREATED);
        (buyer, id_of(&booking))
    }

    pub async fn check_out_and_pay(&self, seat: u32, token: Option<&str>) -> (Buyer, Uuid) {
        let (buyer, booking) = self.check_out(seat).await;
        expect_answer(buyer.pay(booking, token).await.expect("an answer"), StatusCode::OK);
        (buyer, booking)
    }

    pub async fn run_statement(&self, bookings: &[Uuid], statement: &'static str) {
        self.world.run(sqlx::query(statement).bind(bookings)).await;
    }

    pub async fn age_payments(&self, bookings: &[Uuid]) {
        self.run_statement(
            bookings,
            "UPDATE payments SET updated_at = now() - interval '1 minute' WHERE booking_id = ANY($1)",
        )
        .await;
    }

    pub async fn expire_bookings(&self, bookings: &[Uuid]) {
        let over =
            "UPDATE bookings SET expires_at = now() - interval '1 second', version = version + 1 WHERE id = ANY($1)";
        self.run_statement(bookings, over).await;
    }

    pub async fn wait_for_state(&self, (buyer, booking): &(Buyer, Uuid), state: &str, money: &str) {
        wait_until(&format!("booking {booking} is {state} and {money}"), || async {
            buyer.booking(*booking).await.is_ok_and(|found| found["state"] == state && found["money"] == money)
        })
        .await;
    }

    pub async fn wait_until_balanced(&self) {
        self.world.books(self.world.setting("REDIS_URL"), &self.gateway.simulator).wait_until_balanced().await;
    }

    pub async fn end(self) {
        for replica in &self.replicas {
            replica.kill().await;
        }
        self.world.end().await;
    }
}

fn ids(people: &[(Buyer, Uuid)]) -> Vec<Uuid> {
    people.iter().map(|(_, booking)| *booking).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_payments_are_finished_by_the_reconciler() {
    let outage = WebhookOutage::start(2).await;
    let held = outage.check_out(0).await;
    let paid = outage.check_out_and_pay(1, None).await;
    let declined = outage.check_out_and_pay(2, Some("tok_pending_failed")).await;
    let unpaid = outage.check_out_and_pay(3, None).await;
    outage.gateway.press_pay(paid.1);
    outage.expire_bookings(&[held.1, unpaid.1]).await;
    outage.age_payments(&[paid.1, declined.1, unpaid.1]).await;
    outage.wait_for_state(&held, "EXPIRED", "NONE").await;
    outage.wait_for_state(&paid, "CONFIRMED", "PAID").await;
    outage.wait_for_state(&unpaid, "EXPIRED", "FAILED").await;
    wait_until("the gateway was queried after the decline", || async {
        outage.age_payments(&[declined.1]).await;
        declined.0.booking(declined.1).await.is_ok_and(|found| found["state"] == "CANCELLED")
    })
    .await;
    outage.wait_until_balanced().await;
    outage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_found_when_its_buyer_returns_at_once_is_not_counted_as_rescued() {
    let outage = WebhookOutage::start(1).await;
    let (returned, silent) = (outage.check_out_and_pay(0, None).await, outage.check_out_and_pay(1, None).await);
    // The buyer's return makes the payment due, and leaves the booking as it was.
    outage.gateway.press_pay(returned.1);
    outage.age_payments(&[returned.1]).await;
    outage.wait_for_state(&returned, "CONFIRMED", "PAID").await;

    let waiting =
        "UPDATE bookings SET updated_at = now() - interval '1 minute', version = version + 1 WHERE id = ANY($1)";
    outage.run_statement(&[silent.1], waiting).await;
    outage.gateway.press_pay(silent.1);
    outage.age_payments(&[silent.1]).await;
    outage.wait_for_state(&silent, "CONFIRMED", "PAID").await;
    let rescued = || value(&outage.replicas[0].url, "rowlock_bookings_rescued_total");
    wait_until("the silent payment is counted", || async { rescued().await > 0.0 }).await;
    assert_eq!(rescued().await, 1.0, "the other payment is not counted");
    outage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_money_without_a_next_step_becomes_a_ticket_or_a_refund() {
    let outage = WebhookOutage::start(1).await;
    let (sold, lost) = (outage.check_out_and_pay(0, None).await, outage.check_out_and_pay(1, None).await);
    outage.run_statement(&[lost.1], "UPDATE seat_claims SET state = 'released' WHERE booking_id = ANY($1)").await;
    for (_, booking) in [&sold, &lost] {
        outage.gateway.press_pay(*booking);
    }
    // State after a crash between two steps, if they were separate transactions.
    let left_behind = "UPDATE bookings SET state = 'PAYMENT_SUCCEEDED', money = 'PAID', version = version + 1,
                              updated_at = now() - interval '10 seconds' WHERE id = ANY($1)";
    outage.run_statement(&[sold.1, lost.1], left_behind).await;
    outage.wait_for_state(&sold, "CONFIRMED", "PAID").await;
    outage.wait_for_state(&lost, "CANCELLED", "REFUNDED").await;
    outage.wait_until_balanced().await;
    outage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_query_a_payment_once() {
    let outage = WebhookOutage::start(3).await;
    let people = join_all((0..30).map(|seat| outage.check_out_and_pay(seat, None))).await;
    let bookings = ids(&people);
    outage.age_payments(&bookings).await;
    wait_until("every payment was queried", || async {
        bookings.iter().all(|booking| outage.gateway.status_queries(*booking) > 0)
    })
    .await;
    // An overdue booking is settled in a later round of the reconciler; by then every replica has had a round.
    let late = outage.check_out(100).await;
    outage.expire_bookings(&[late.1]).await;
    outage.wait_for_state(&late, "EXPIRED", "NONE").await;
    let asked_twice: Vec<_> = bookings.iter().filter(|booking| outage.gateway.status_queries(**booking) > 1).collect();
    assert!(asked_twice.is_empty(), "queried by several replicas: {asked_twice:?}");
    outage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_gateway_does_not_delay_the_release_of_seats() {
    let outage = WebhookOutage::start(1).await;
    // Many more than are queried concurrently: the last query would come after the test's timeout.
    let people = join_all((0..60).map(|seat| outage.check_out_and_pay(seat, None))).await;
    let held = outage.check_out(100).await;
    outage.gateway.set_availability(Availability::Hanging);
    outage.age_payments(&ids(&people)).await;
    wait_until("a query hangs", || async { outage.gateway.refused_requests() > 0 }).await;
    outage.expire_bookings(&[held.1]).await;
    outage.wait_for_state(&held, "EXPIRED", "NONE").await;
    outage.gateway.set_availability(Availability::Up);
    outage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_booking_does_not_delay_the_outcome_of_another() {
    let outage = WebhookOutage::start(1).await;
    let locked = outage.check_out_and_pay(0, None).await;
    let other = outage.check_out_and_pay(1, None).await;
    for (_, booking) in [&locked, &other] {
        outage.gateway.press_pay(*booking);
    }
    let keeper = outage.world.lock_booking(&locked.1.to_string()).await;
    outage.age_payments(&[locked.1]).await;
    wait_until("its outcome is known", || async { outage.gateway.status_queries(locked.1) > 0 }).await;
    // Due in a later round than the locked one.
    outage.age_payments(&[other.1]).await;
    outage.wait_for_state(&other, "CONFIRMED", "PAID").await;
    keeper.rollback().await.expect("the lock is released");
    outage.age_payments(&[locked.1]).await;
    outage.wait_for_state(&locked, "CONFIRMED", "PAID").await;
    outage.wait_until_balanced().await;
    outage.end().await;
}

/// Expired bookings whose charge never reached the gateway: it answered their voids with "unknown".
async fn expire_with_unknown_voids(outage: &WebhookOutage, seats: &[u32]) -> Vec<(Buyer, Uuid)> {
    let mut people = Vec::new();
    for seat in seats {
        people.push(outage.check_out(*seat).await);
    }
    outage.gateway.set_availability(Availability::Down);
    for (buyer, booking) in &people {
        // The server's answer does not matter here.
        let _ = buyer.pay(*booking, Some("tok_paid")).await;
    }
    let ids: Vec<Uuid> = people.iter().map(|(_, booking)| *booking).collect();
    outage
        .run_statement(&ids, "UPDATE outbox SET run_after = now() + interval '1 hour' WHERE booking_id = ANY($1)")
        .await;
    outage.expire_bookings(&ids).await;
    outage.gateway.set_availability(Availability::Up);
    outage.age_payments(&ids).await;
    wait_until("the bookings have expired", || async {
        outage.world.count("SELECT count(*) FROM bookings WHERE state = 'EXPIRED'").await == ids.len() as i64
    })
    .await;
    outage.run_statement(&ids, "UPDATE outbox SET run_after = now() WHERE booking_id = ANY($1)").await;
    for person in &people {
        outage.wait_for_state(person, "EXPIRED", "FAILED").await;
    }
    outage.world.wait_for_empty_outbox().await;
    let planned = "SELECT count(*) FROM unknown_voids WHERE checks = 0 AND check_at = since + interval '1 minute'";
    assert_eq!(outage.world.count(planned).await, ids.len() as i64, "the next void is in a minute");
    people
}

/// The charge of a booking reaches the gateway after all; without a card it waits for its payer.
fn charge_late(outage: &WebhookOutage, booking: Uuid, card: Option<&str>) {
    outage.gateway.open_unrecorded_payment(&booking.to_string(), &format!("pay:{booking}"), card);
}

fn payment_status(outage: &WebhookOutage, booking: Uuid) -> Status {
    outage.gateway.simulator.ledger.get_by_key(&format!("pay:{booking}")).expect("a payment").status
}

async fn make_checks_due(outage: &WebhookOutage, bookings: &[Uuid]) {
    let later =
        "UPDATE unknown_voids SET since = since - (check_at - now()), check_at = now() WHERE booking_id = ANY($1)";
    outage.run_statement(bookings, later).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn charge_after_its_void_is_a_late_payment_and_a_pending_one_is_voided() {
    let outage = WebhookOutage::start(2).await;
    let people = expire_with_unknown_voids(&outage, &[0, 1, 2]).await;
    let [placed, returned, stopped] = [people[0].1, people[1].1, people[2].1];
    // Its seat is sold by then: the money is refunded.
    outage.check_out_and_pay(1, Some("tok_paid")).await;
    charge_late(&outage, placed, Some("no_answer_paid"));
    charge_late(&outage, returned, Some("paid"));
    charge_late(&outage, stopped, None);
    wait_until("the bank has approved", || async { payment_status(&outage, placed) == Status::Succeeded }).await;
    assert_eq!(outage.world.count("SELECT count(*) FROM bookings WHERE money <> 'FAILED'").await, 1, "no news arrives");
    make_checks_due(&outage, &[placed, returned, stopped]).await;
    outage.wait_for_state(&people[0], "EXPIRED", "MOVED").await;
    outage.wait_for_state(&people[1], "EXPIRED", "REFUNDED").await;
    outage.world.wait_for_count("no check is left", "SELECT count(*) FROM unknown_voids", 0).await;
    assert_eq!(payment_status(&outage, stopped), Status::Voided);
    outage.wait_for_state(&people[2], "EXPIRED", "FAILED").await;
    assert_eq!(outage.world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, 2);
    outage.wait_until_balanced().await;
    outage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_payment_is_voided_four_more_times_by_one_replica_even_after_a_restart() {
    let outage = WebhookOutage::start(2).await;
    let people = expire_with_unknown_voids(&outage, &[5]).await;
    let booking = people[0].1;
    let planned = [
        "SELECT count(*) FROM unknown_voids
         WHERE checks = 1 AND check_at - since BETWEEN interval '599 seconds' AND interval '11 minutes'",
        "SELECT count(*) FROM unknown_voids
         WHERE checks = 2 AND check_at - since BETWEEN interval '3599 seconds' AND interval '61 minutes'",
        "SELECT count(*) FROM unknown_voids
         WHERE checks = 3 AND check_at - since BETWEEN interval '86399 seconds' AND interval '24 hours 1 minute'",
        "SELECT 1 - count(*) FROM unknown_voids",
    ];
    for (number, planned) in (1..).zip(planned) {
        if number == 2 {
            join_all(outage.replicas.iter().map(Replica::kill)).await;
            join_all(outage.replicas.iter().map(Replica::start)).await;
        }
        let before = outage.gateway.status_queries(booking);
        make_checks_due(&outage, &[booking]).await;
        wait_until(&format!("check {number} has run"), || async { outage.world.count(planned).await == 1 }).await;
        assert_eq!(outage.gateway.status_queries(booking), before + 1, "check {number} is made by one replica");
    }
    outage.wait_for_state(&people[0], "EXPIRED", "FAILED").await;
    outage.wait_until_balanced().await;
    outage.end().await;
}

const OUTAGE_S: i64 = 20 * 60;
const STEP_S: i64 = 20;
/// A payment attempt must be answered within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

const AGE_STATEMENTS: [&str; 5] = [
    "UPDATE bookings SET expires_at = expires_at - $1 * interval '1 second', version = version + 1
     WHERE state NOT IN ('CANCELLED', 'EXPIRED', 'CONFIRMED')",
    "UPDATE payments SET updated_at = updated_at - $1 * interval '1 second'",
    "UPDATE seat_claims SET expires_at = expires_at - $1 * interval '1 second'",
    "UPDATE outbox SET run_after = run_after - $1 * interval '1 second'",
    "UPDATE idempotency_keys SET expires_at = expires_at - $1 * interval '1 second'",
];

/// Due effects: of each booking only the first.
const DUE: &str = "
    SELECT count(*) FROM outbox due WHERE run_after <= now() AND parked_why IS NULL
      AND NOT EXISTS (SELECT 1 FROM outbox earlier WHERE earlier.booking_id = due.booking_id
                        AND earlier.id < due.id AND earlier.parked_why IS NULL)";

async fn move_time(outage: &WebhookOutage, seconds: i64) {
    for statement in AGE_STATEMENTS {
        outage.world.run(sqlx::query(statement).bind(seconds as f64)).await;
    }
}

async fn try_to_pay(person: &(Buyer, Uuid)) -> (StatusCode, Value) {
    let path = format!("/api/v1/bookings/{}/confirm", person.1);
    let (began, key) = (Instant::now(), new_id());
    let answer = person.0.send_once(&Method::POST, &path, &json!({ "payment_token": "tok_paid" }), key, 0).await;
    assert!(began.elapsed() < ANSWER_TIMEOUT, "answered after the deadline: {:?}", began.elapsed());
    answer.expect("the server answers")
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_outage_of_twenty_minutes_leaves_nothing_stuck() {
    let outage = WebhookOutage::start(2).await;
    // In progress when it goes down: a pending bank approval, an open page that will be paid, one that will not, and a
    // refund.
    let bank = outage.check_out_and_pay(0, Some("tok_pending_paid")).await;
    let page = outage.check_out_and_pay(1, None).await;
    let unpaid = outage.check_out_and_pay(2, None).await;
    let refund = outage.check_out_and_pay(3, None).await;
    outage.run_statement(&[refund.1], "UPDATE seat_claims SET state = 'released' WHERE booking_id = ANY($1)").await;
    outage.injector.arm(refund.1, "refund", EffectFault::Refused);
    outage.gateway.press_pay(refund.1);
    outage.age_payments(&[refund.1]).await;
    wait_until("the refund was attempted", || async { outage.injector.has_struck(refund.1, "refund") }).await;

    outage.gateway.set_availability(Availability::Down);
    outage.injector.stop_refusing(refund.1, "refund");
    outage.gateway.press_pay(page.1);
    let (mut late, mut refused) = (Vec::new(), 0);
    for seat in 10..16 {
        let person = outage.check_out(seat).await;
        let (status, answer) = try_to_pay(&person).await;
        match status {
            // Refused with a `Retry-After`; the buyer keeps the seats.
            StatusCode::SERVICE_UNAVAILABLE => {
                assert_eq!(text(&answer["code"]), "gateway_unavailable", "{answer}");
                refused += 1;
            }
            // The circuit breaker is still closed.
            _ => {
                assert_eq!((status, text(&answer["state"])), (StatusCode::OK, "PAYMENT_PENDING"), "{answer}");
                assert_eq!(refused, 0, "an open breaker sends no charge");
            }
        }
        late.push(person);
    }
    assert!(refused > 0, "the breaker opens after the first few");
    for _ in 0..OUTAGE_S / STEP_S {
        move_time(&outage, STEP_S).await;
        outage.world.wait_for_count("every due effect was attempted", DUE, 0).await;
    }
    assert_eq!(outage.world.count("SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL").await, 0);
    assert_eq!(outage.world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, 0);

    outage.gateway.set_availability(Availability::Up);
    // Breakers use a clock that the test cannot move, and stay open for some seconds. Then payments work again.
    for (replica, seat) in (0..2).zip(40..) {
        let (buyer, booking) = outage.check_out(seat).await;
        let path = format!("/api/v1/bookings/{booking}/confirm");
        let paid = json!({ "payment_token": "tok_paid" });
        wait_until("payments succeed again", || async {
            let answer = buyer.send_once(&Method::POST, &path, &paid, new_id(), replica).await;
            answer.is_ok_and(|(status, _)| status == StatusCode::OK)
        })
        .await;
    }
    move_time(&outage, 60).await;
    outage.wait_for_state(&bank, "CONFIRMED", "PAID").await;
    outage.wait_for_state(&page, "CONFIRMED", "PAID").await;
    outage.wait_for_state(&unpaid, "EXPIRED", "FAILED").await;
    outage.wait_for_state(&refund, "CANCELLED", "REFUNDED").await;
    for person in &late {
        wait_until("buyers of the outage have paid nothing, or have seats", || async {
            let found = person.0.booking(person.1).await.unwrap_or_default();
            matches!(found["state"].as_str(), Some("EXPIRED" | "CANCELLED" | "CONFIRMED"))
        })
        .await;
    }
    let (buyer, booking) = outage.check_out(50).await;
    expect_state(buyer.pay(booking, Some("tok_paid")).await.expect("an answer"), StatusCode::OK, "CONFIRMED");
    outage.wait_until_balanced().await;
    outage.end().await;
}
