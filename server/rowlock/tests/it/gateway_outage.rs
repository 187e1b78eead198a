//! The gateway is down for twenty simulated minutes: timestamps in the database move back in steps, and every due
//! effect is attempted.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::json;
use uuid::Uuid;

use crate::buyer::Buyer;
use crate::faults::gateway_proxy::Availability;
use crate::faults::injector::EffectFault;
use crate::reconciler::WebhookOutage;
use crate::world::{text, wait_until};

/// Length of the outage.
const OUTAGE_S: i64 = 20 * 60;
/// One step of simulated time.
const STEP_S: i64 = 20;
/// A payment attempt must be answered within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// Timestamps in Postgres.
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
        let moved = sqlx::query(statement).bind(seconds as f64).execute(&outage.world.pg).await;
        moved.expect("time passes");
    }
}

/// A new buyer's attempt to pay.
async fn try_to_pay(person: &(Buyer, Uuid)) -> (StatusCode, serde_json::Value) {
    let path = format!("/api/v1/bookings/{}/confirm", person.1);
    let (began, key) = (Instant::now(), platform::ids::new_id());
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
    assert_eq!(
        outage.world.count("SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL").await,
        0,
        "nothing is parked"
    );
    assert_eq!(
        outage.world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await,
        0,
        "no booking is decided without an answer"
    );

    outage.gateway.set_availability(Availability::Up);
    // Breakers use a clock that the test cannot move, and stay open for some seconds. Then payments work again.
    for (replica, seat) in (0..2).zip(40..) {
        let (buyer, booking) = outage.check_out(seat).await;
        let path = format!("/api/v1/bookings/{booking}/confirm");
        let paid = json!({ "payment_token": "tok_paid" });
        wait_until("payments succeed again", || async {
            let answer = buyer.send_once(&Method::POST, &path, &paid, platform::ids::new_id(), replica).await;
            answer.is_ok_and(|(status, _)| status == StatusCode::OK)
        })
        .await;
    }
    // One cycle of the reconciler.
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
    let (status, answer) = buyer.pay(booking, Some("tok_paid")).await.expect("an answer");
    assert_eq!((status, text(&answer["state"])), (StatusCode::OK, "CONFIRMED"), "{answer}");
    outage.wait_until_balanced().await;
    outage.end().await;
}
