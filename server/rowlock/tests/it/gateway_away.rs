//! The gateway is away for twenty minutes. They are simulated: instants in the database move back in
//! steps, and everything that is due by then is tried.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::json;
use uuid::Uuid;

use crate::buyer::Buyer;
use crate::faults::till::Door;
use crate::faults::wires::Fault;
use crate::reconciling::Deaf;
use crate::world::{text, until};

/// So long it is away.
const AWAY_S: i64 = 20 * 60;
/// One step of that.
const STEP_S: i64 = 20;
/// Nobody waits longer to hear that it is away.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Everything that lives on Postgres' side of the clock.
const TIME_PASSES: [&str; 5] = [
    "UPDATE bookings SET expires_at = expires_at - $1 * interval '1 second', version = version + 1
     WHERE state NOT IN ('CANCELLED', 'EXPIRED', 'CONFIRMED')",
    "UPDATE payments SET updated_at = updated_at - $1 * interval '1 second'",
    "UPDATE seat_claims SET expires_at = expires_at - $1 * interval '1 second'",
    "UPDATE outbox SET run_after = run_after - $1 * interval '1 second'",
    "UPDATE idempotency_keys SET expires_at = expires_at - $1 * interval '1 second'",
];

/// Effects that may be tried now: of each booking only the first.
const DUE: &str = "
    SELECT count(*) FROM outbox due WHERE run_after <= now() AND parked_why IS NULL
      AND NOT EXISTS (SELECT 1 FROM outbox earlier WHERE earlier.booking_id = due.booking_id
                        AND earlier.id < due.id AND earlier.parked_why IS NULL)";

async fn time_passes(deaf: &Deaf, seconds: i64) {
    for statement in TIME_PASSES {
        let moved = sqlx::query(statement).bind(seconds as f64).execute(&deaf.world.pg).await;
        moved.expect("time passes");
    }
}

/// What a new buyer is told on Pay.
async fn tries_to_pay(person: &(Buyer, Uuid)) -> (StatusCode, serde_json::Value) {
    let path = format!("/api/v1/bookings/{}/confirm", person.1);
    let (began, key) = (Instant::now(), platform::ids::new_id());
    let told = person.0.ask_once(&Method::POST, &path, &json!({ "payment_token": "tok_paid" }), key, 0).await;
    assert!(began.elapsed() < ANSWER_WITHIN, "nobody waits for ever: {:?}", began.elapsed());
    told.expect("the server answers")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_away_for_twenty_minutes_leaves_nothing_stuck() {
    let deaf = Deaf::begin(2).await;
    // Under way when it goes: the bank will say yes, the payer will pay, nobody will pay, money is to go back.
    let bank = deaf.pays(0, Some("tok_pending_paid")).await;
    let page = deaf.pays(1, None).await;
    let nobody = deaf.pays(2, None).await;
    let refund = deaf.pays(3, None).await;
    deaf.with(&[refund.1], "UPDATE seat_claims SET state = 'released' WHERE booking_id = ANY($1)").await;
    deaf.wires.arm(refund.1, "refund", Fault::Refused);
    deaf.till.press_pay(refund.1);
    deaf.unheard(&[refund.1]).await;
    until("the refund was tried", || async { deaf.wires.has_struck(refund.1, "refund") }).await;

    deaf.till.set_door(Door::Shut);
    deaf.wires.lift(refund.1, "refund");
    deaf.till.press_pay(page.1);
    let (mut late, mut sent_away) = (Vec::new(), 0);
    for seat in 10..16 {
        let person = deaf.checks_out(seat).await;
        let (status, answer) = tries_to_pay(&person).await;
        match status {
            // Sent away, with a time to come back; the seats stay theirs.
            StatusCode::SERVICE_UNAVAILABLE => {
                assert_eq!(text(&answer["code"]), "gateway_unavailable", "{answer}");
                sent_away += 1;
            }
            // Before anybody knew that it was away.
            _ => {
                assert_eq!((status, text(&answer["state"])), (StatusCode::OK, "PAYMENT_PENDING"), "{answer}");
                assert_eq!(sent_away, 0, "once it is known to be away, nobody's money is asked for");
            }
        }
        late.push(person);
    }
    assert!(sent_away > 0, "the first few find out, the others are told at once");
    for _ in 0..AWAY_S / STEP_S {
        time_passes(&deaf, STEP_S).await;
        until("what is due was tried", || async { deaf.world.count(DUE).await == 0 }).await;
    }
    assert_eq!(
        deaf.world.count("SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL").await,
        0,
        "nobody is needed"
    );
    assert_eq!(
        deaf.world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await,
        0,
        "nothing is guessed"
    );

    deaf.till.set_door(Door::Open);
    // Breakers rest on a clock that nobody puts forward, for some seconds; then money is taken again.
    for (replica, seat) in (0..2).zip(40..) {
        let (buyer, booking) = deaf.checks_out(seat).await;
        let path = format!("/api/v1/bookings/{booking}/confirm");
        let paid = json!({ "payment_token": "tok_paid" });
        until("payments are taken again", || async {
            let told = buyer.ask_once(&Method::POST, &path, &paid, platform::ids::new_id(), replica).await;
            told.is_ok_and(|(status, _)| status == StatusCode::OK)
        })
        .await;
    }
    // One cycle of the reconciler.
    time_passes(&deaf, 60).await;
    deaf.ends(&bank, "CONFIRMED", "PAID").await;
    deaf.ends(&page, "CONFIRMED", "PAID").await;
    deaf.ends(&nobody, "EXPIRED", "FAILED").await;
    deaf.ends(&refund, "CANCELLED", "REFUNDED").await;
    for person in &late {
        until("who came meanwhile has paid nothing, or has seats", || async {
            let found = person.0.booking(person.1).await.unwrap_or_default();
            matches!(found["state"].as_str(), Some("EXPIRED" | "CANCELLED" | "CONFIRMED"))
        })
        .await;
    }
    let (buyer, booking) = deaf.checks_out(50).await;
    let (status, answer) = buyer.pay(booking, Some("tok_paid")).await.expect("an answer");
    assert_eq!((status, text(&answer["state"])), (StatusCode::OK, "CONFIRMED"), "{answer}");
    deaf.balance().await;
    deaf.end().await;
}
