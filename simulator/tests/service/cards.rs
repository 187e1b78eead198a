//! Every card has the outcome its table documents.

use std::time::{Duration, Instant};

use simulator::payment::Status;
use simulator::webhooks::EventKind;

use crate::merchant::{LATE, Merchant};

async fn expect_outcome(token: &str, first: Status, last: EventKind) {
    let merchant = Merchant::new().await;
    let payment = merchant.open("pay:1", Some(token)).await;
    assert_eq!(payment.status, first, "{token}");
    let event = merchant.events(1).await.remove(0);
    assert_eq!(event.kind, last, "{token}");
    assert_eq!((event.payment.id.as_str(), event.payment.reference.as_str()), (payment.id.as_str(), "booking 7"));
    assert_eq!((event.payment.amount_minor, event.payment.currency.as_str()), (2500, "EUR"));
    assert_eq!(merchant.look_up("pay:1").await.status, event.payment.status, "the event has the current status");
}

#[tokio::test]
async fn paid_succeeds_at_once() {
    expect_outcome("tok_paid", Status::Succeeded, EventKind::PaymentSucceeded).await;
}

#[tokio::test]
async fn declined_fails_at_once() {
    expect_outcome("tok_declined", Status::Failed, EventKind::PaymentFailed).await;
}

#[tokio::test]
async fn pending_then_paid_sends_a_webhook() {
    expect_outcome("tok_pending_paid", Status::Pending, EventKind::PaymentSucceeded).await;
}

#[tokio::test]
async fn pending_then_failed_sends_a_webhook() {
    expect_outcome("tok_pending_failed", Status::Pending, EventKind::PaymentFailed).await;
}

#[tokio::test]
async fn slow_succeeds_with_a_late_answer() {
    let started = Instant::now();
    expect_outcome("tok_slow", Status::Succeeded, EventKind::PaymentSucceeded).await;
    assert!(started.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn no_answer_succeeds_and_a_retry_is_answered() {
    let merchant = Merchant::new().await;
    let body = merchant.payment(Some("tok_no_answer_paid"));
    let unanswered = merchant.post("/v1/payments", "pay:1", &body).timeout(Duration::from_millis(250)).send().await;
    assert!(unanswered.expect_err("no answer").is_timeout());
    assert!(matches!(
        merchant.open("pay:1", Some("tok_no_answer_paid")).await.status,
        Status::Pending | Status::Succeeded
    ));
    assert_eq!(merchant.events(1).await[0].kind, EventKind::PaymentSucceeded);
    assert_eq!(merchant.look_up("pay:1").await.status, Status::Succeeded);
}

#[tokio::test]
async fn duplicate_webhooks_are_one_event_three_times() {
    let merchant = Merchant::new().await;
    merchant.open("pay:1", Some("tok_duplicate_webhooks")).await;
    let events = merchant.events(3).await;
    assert!(events.iter().all(|event| *event == events[0]));
}

#[tokio::test]
async fn a_late_webhook_arrives_after_the_late_time() {
    let merchant = Merchant::new().await;
    let started = Instant::now();
    assert_eq!(merchant.open("pay:1", Some("tok_late_webhook")).await.status, Status::Succeeded);
    assert!(merchant.events_now().is_empty());
    merchant.events(1).await;
    assert!(started.elapsed() >= LATE);
}

#[tokio::test]
async fn a_webhook_is_retried_until_the_merchant_accepts_it() {
    let merchant = Merchant::refusing_webhooks(3).await;
    merchant.open("pay:1", Some("tok_paid")).await;
    assert_eq!(merchant.events(1).await[0].kind, EventKind::PaymentSucceeded);
}

#[tokio::test]
async fn a_voided_pending_payment_is_never_charged() {
    let merchant = Merchant::new().await;
    let payment = merchant.open("pay:1", Some("tok_pending_paid")).await;
    assert_eq!(merchant.void(&payment.id).await.status(), 200);
    // A second pending payment, begun later, settles after the first one would have.
    merchant.open("pay:2", Some("tok_pending_paid")).await;
    merchant.events(2).await;
    assert_eq!(merchant.events_now(), [EventKind::PaymentVoided, EventKind::PaymentSucceeded]);
    assert_eq!(merchant.look_up("pay:1").await.status, Status::Voided);
}

#[tokio::test]
async fn reordered_webhooks_send_the_success_before_the_earlier_failure() {
    let merchant = Merchant::new().await;
    let payment = merchant.open("pay:1", Some("tok_reordered_webhooks")).await;
    assert_eq!(payment.status, Status::Succeeded);
    let events = merchant.events(2).await;
    assert_eq!(merchant.events_now(), [EventKind::PaymentSucceeded, EventKind::PaymentFailed]);
    assert!(events[1].created_ms < events[0].created_ms);
    assert_eq!(events[1].payment.failure.as_deref(), Some("card_declined"));
    assert_eq!(merchant.look_up("pay:1").await.status, Status::Succeeded);
}

#[tokio::test]
async fn another_amount_is_in_the_answer_the_event_and_the_payment() {
    let merchant = Merchant::new().await;
    let payment = merchant.open("pay:1", Some("tok_another_amount")).await;
    assert_eq!((payment.status, payment.amount_minor), (Status::Succeeded, 2499));
    assert_eq!(merchant.events(1).await[0].payment.amount_minor, 2499);
    assert_eq!(merchant.look_up("pay:1").await.amount_minor, 2499);
}
