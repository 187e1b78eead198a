//! Refunds.

use ::simulator::payment::RefundStatus;

use super::setup::{ContractSetup, ids_without_gateway_ref, money};
use crate::{GatewayError, PaymentEventKind, PaymentIds, RefundAnswer, refund_key};
use platform::ids;

async fn refused(setup: &ContractSetup, payment: &PaymentIds, minor: i64, key: &str) {
    let refused = setup.gateway.refund(payment, money(minor), key, &[]).await.expect_err("refused");
    assert!(matches!(refused, GatewayError::Refused { .. }), "{minor}: {refused}");
}

async fn refunded(setup: &ContractSetup, payment: &PaymentIds) -> i64 {
    setup.gateway.status(payment).await.expect("an answer").expect("a payment").refunded.minor
}

pub(super) async fn a_refund_is_idempotent_and_never_exceeds_the_charge(setup: ContractSetup) {
    let paid = setup.charged(Some("paid")).await;
    let key = refund_key(paid.booking, 0);
    refused(&setup, &paid, 2_501, &refund_key(paid.booking, 1)).await;
    for _ in 0..2 {
        setup.gateway.refund(&paid, money(2_250), &key, &[]).await.expect("refunded");
    }
    assert_eq!(refunded(&setup, &paid).await, 2_250);
    refused(&setup, &paid, 1, &key).await;
    refused(&setup, &paid, 251, &refund_key(paid.booking, 2)).await;
    assert_eq!(refunded(&setup, &paid).await, 2_250);
}

pub(super) async fn partial_refunds_have_separate_keys(setup: ContractSetup) {
    let paid = setup.charged(Some("paid")).await;
    for piece in 1..=2 {
        let key = refund_key(paid.booking, piece);
        setup.gateway.refund(&paid, money(1_250), &key, &[]).await.expect("refunded");
    }
    assert_eq!(refunded(&setup, &paid).await, 2_500);
}

pub(super) async fn a_refund_without_a_charge_is_refused(setup: ContractSetup) {
    let unknown = ids_without_gateway_ref(ids::new_id());
    refused(&setup, &unknown, 1, &refund_key(unknown.booking, 0)).await;
    let open = setup.charged(None).await;
    refused(&setup, &open, 1, &refund_key(open.booking, 0)).await;
}

/// The service's refunds by status, oldest first.
fn known(setup: &ContractSetup, payment: &PaymentIds) -> Vec<RefundStatus> {
    let id = payment.gateway_ref.as_deref().expect("it was noted");
    setup.simulator.ledger.get(id).expect("a payment").refunds.iter().map(|refund| refund.status).collect()
}

pub(super) async fn a_refund_is_found_after_stripe_forgets_its_key(setup: ContractSetup) {
    // A partial refund, which would leave enough money for a duplicate, and a full one.
    for minor in [1_000, 2_500] {
        let paid = setup.charged(Some("paid")).await;
        let key = refund_key(paid.booking, 1);
        setup.gateway.refund(&paid, money(minor), &key, &[]).await.expect("refunded");
        setup.simulator.ledger.forget_refund_keys();
        setup.gateway.refund(&paid, money(minor), &key, &[]).await.expect("it is there");
        assert_eq!(refunded(&setup, &paid).await, minor);
        refused(&setup, &paid, 1, &key).await;
        assert_eq!(known(&setup, &paid), [RefundStatus::Succeeded]);
    }
}

pub(super) async fn only_acknowledged_failed_refunds_are_sent_again(setup: ContractSetup) {
    let paid = setup.charged(Some("paid")).await;
    let id = paid.gateway_ref.clone().expect("it was noted");
    let key = refund_key(paid.booking, 0);
    let mut lost = Vec::new();
    let ask = async |lost: &[String]| setup.gateway.refund(&paid, money(2_500), &key, lost).await.expect("an answer");
    for failures in 0..2 {
        assert_eq!(ask(&lost).await, RefundAnswer::Settled);
        assert_eq!(known(&setup, &paid).len(), failures + 1);
        setup.simulator.set_refund_status(&id, failures, RefundStatus::Failed).expect("it is there");
        // The failure is unacknowledged: each retry returns it, and no other refund is made.
        for _ in 0..2 {
            let RefundAnswer::Failed { refund, why } = ask(&lost).await else { panic!("it failed") };
            assert!(!lost.contains(&refund) && !why.is_empty(), "{refund}: {why}");
            assert_eq!(known(&setup, &paid).len(), failures + 1);
        }
        let RefundAnswer::Failed { refund, .. } = ask(&lost).await else { panic!("it failed") };
        lost.push(refund);
    }
    for _ in 0..2 {
        assert_eq!(ask(&lost).await, RefundAnswer::Settled);
    }
    assert_eq!(known(&setup, &paid), [RefundStatus::Failed, RefundStatus::Failed, RefundStatus::Succeeded]);
    assert_eq!(refunded(&setup, &paid).await, 2_500);
}

pub(super) async fn a_pending_refund_stays_pending_until_it_settles(setup: ContractSetup) {
    let paid = setup.charged(Some("paid")).await;
    let id = paid.gateway_ref.clone().expect("it was noted");
    let key = refund_key(paid.booking, 0);
    let ask = async || setup.gateway.refund(&paid, money(2_500), &key, &[]).await.expect("an answer");
    setup.simulator.ledger.hold_refunds(true);
    for _ in 0..2 {
        assert_eq!(ask().await, RefundAnswer::Pending);
    }
    // A repeated call with the same key would return Stripe's stored answer, "pending".
    setup.simulator.set_refund_status(&id, 0, RefundStatus::Succeeded).expect("it is there");
    assert_eq!(ask().await, RefundAnswer::Settled);
    assert_eq!(known(&setup, &paid), [RefundStatus::Succeeded]);
    let settled = PaymentEventKind::RefundSettled { number: Some(0) };
    assert!(setup.received_events(3).await.iter().any(|news| news.booking == paid.booking && news.kind == settled));
}
