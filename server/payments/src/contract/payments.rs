//! Charges, status calls and voids.

use super::setup::{ContractSetup, Protocol, ids_without_gateway_ref, money};
use crate::{Charge, GatewayError, PaymentIds, PaymentStatus, VoidAnswer};
use platform::ids;

fn succeeded(minor: i64) -> PaymentStatus {
    PaymentStatus::Succeeded { amount: money(minor) }
}

fn failed(why: &str) -> PaymentStatus {
    PaymentStatus::Failed { why: why.to_owned() }
}

pub(super) async fn a_charge_without_a_token_opens_a_payment_page(setup: ContractSetup) {
    let charge = setup.charge(None);
    let first = setup.gateway.charge(&charge).await.expect("opened");
    let PaymentStatus::Pending { pay_url: Some(page) } = &first.status else { panic!("{first:?}") };
    assert!(page.starts_with(&setup.base), "{page}");
    assert_eq!(setup.gateway.charge(&charge).await.expect("repeated"), first);
    let known = PaymentIds { booking: charge.booking, gateway_ref: Some(first.gateway_ref.clone()) };
    assert_eq!(setup.status(&known).await, first.status);
    setup.submit_form(page, "card=paid&action=pay").await;
    assert_eq!(setup.status(&known).await, succeeded(2_500));
}

pub(super) async fn a_card_is_charged_or_declined_at_once(setup: ContractSetup) {
    for (card, expected) in [
        ("paid", succeeded(2_500)),
        ("declined", failed("card_declined")),
        ("slow", succeeded(2_500)),
        ("another_amount", succeeded(2_499)),
    ] {
        let charge = setup.charge(Some(card));
        for _ in 0..2 {
            let answer = setup.gateway.charge(&charge).await.expect("an answer");
            assert_eq!(answer.status, expected, "{card}");
            let known = PaymentIds { booking: charge.booking, gateway_ref: Some(answer.gateway_ref) };
            assert_eq!(setup.status(&known).await, expected, "{card}");
        }
    }
}

pub(super) async fn a_pending_card_is_charged_or_declined_later(setup: ContractSetup) {
    // Each gateway has its own code for a decline by the bank.
    let declined = match setup.protocol {
        Protocol::Own => failed("bank_declined"),
        Protocol::Stripe => failed("card_declined"),
    };
    for (card, expected) in [("pending_paid", succeeded(2_500)), ("pending_failed", declined)] {
        let charge = setup.charge(Some(card));
        let answer = setup.gateway.charge(&charge).await.expect("an answer");
        assert_eq!(answer.status, PaymentStatus::Pending { pay_url: None }, "{card}");
        let known = PaymentIds { booking: charge.booking, gateway_ref: Some(answer.gateway_ref) };
        setup.wait_for_status(&known, &expected).await;
    }
}

pub(super) async fn a_charge_whose_answer_is_lost_is_retried(setup: ContractSetup) {
    let charge = setup.charge(Some("no_answer_paid"));
    let answer = setup.gateway.charge(&charge).await.expect("the second attempt is answered");
    let known = PaymentIds { booking: charge.booking, gateway_ref: Some(answer.gateway_ref) };
    setup.wait_for_status(&known, &succeeded(2_500)).await;
}

pub(super) async fn all_tokens_of_a_card_have_one_fingerprint(setup: ContractSetup) {
    let token = |card: &str| setup.charge(Some(card)).token.expect("a token");
    let of = async |card: &str| setup.gateway.fingerprint(&token(card)).await.expect("an answer");
    let one = of("paid@1111.a").await;
    assert!(one.as_ref().is_some_and(|name| !name.contains("1111")), "{one:?}");
    assert_eq!(of("paid@1111.b").await, one);
    assert_eq!(of("declined@1111").await, one);
    assert!(of("paid@2222").await.is_some_and(|other| Some(other) != one));
    assert_eq!(of("paid@").await, None, "it has no fingerprint");
    assert_eq!(of("no_such_card").await, None);
    assert_eq!(of("paid/../../payments?key=1#").await, None, "an untrusted token stays in its path segment");
}

pub(super) async fn a_payment_has_the_fingerprint_of_its_card(setup: ContractSetup) {
    let of =
        async |known: &PaymentIds| setup.gateway.status(known).await.expect("an answer").expect("known").instrument;
    let token = setup.charge(Some("paid@1111.a")).token.expect("a token");
    let name = setup.gateway.fingerprint(&token).await.expect("an answer");
    assert!(name.is_some());
    assert_eq!(of(&setup.charged(Some("paid@1111.b")).await).await, name, "the fingerprint of its tokens");
    assert_eq!(of(&setup.charged(Some("paid@")).await).await, None, "it has no fingerprint");
    // A payment page has no fingerprint before it is paid.
    let charge = setup.charge(None);
    let opened = setup.gateway.charge(&charge).await.expect("opened");
    let PaymentStatus::Pending { pay_url: Some(page) } = &opened.status else { panic!("{opened:?}") };
    let known = PaymentIds { booking: charge.booking, gateway_ref: Some(opened.gateway_ref.clone()) };
    assert_eq!(of(&known).await, None);
    setup.submit_form(page, "card=paid%401111.c&action=pay").await;
    assert_eq!(setup.status(&known).await, succeeded(2_500));
    assert_eq!(of(&known).await, name, "the page and the token give one fingerprint");
}

pub(super) async fn the_status_of_an_unknown_payment_is_none(setup: ContractSetup) {
    assert_eq!(setup.gateway.status(&ids_without_gateway_ref(ids::new_id())).await.expect("an answer"), None);
}

pub(super) async fn a_payment_without_a_recorded_id_is_found_by_its_booking(setup: ContractSetup) {
    let paid = setup.charged(Some("paid")).await;
    assert_eq!(setup.status(&ids_without_gateway_ref(paid.booking)).await, succeeded(2_500));
    assert_eq!(
        setup.gateway.void(&ids_without_gateway_ref(paid.booking)).await.expect("an answer"),
        VoidAnswer::AlreadyCharged(money(2_500))
    );
    let pending = setup.charged(Some("pending_paid")).await;
    let voided = setup.gateway.void(&ids_without_gateway_ref(pending.booking)).await.expect("an answer");
    // On a slow machine the bank may have decided before the void.
    assert!(matches!(voided, VoidAnswer::Voided | VoidAnswer::AlreadyCharged(_)), "{voided:?}");
}

pub(super) async fn void_returns_voided_or_already_charged(setup: ContractSetup) {
    for card in [None, Some("declined")] {
        let open = setup.charged(card).await;
        for _ in 0..2 {
            assert_eq!(setup.gateway.void(&open).await.expect("an answer"), VoidAnswer::Voided, "{card:?}");
        }
    }
    for (card, taken) in [("paid", 2_500), ("another_amount", 2_499)] {
        let paid = setup.charged(Some(card)).await;
        let answer = setup.gateway.void(&paid).await.expect("an answer");
        assert_eq!(answer, VoidAnswer::AlreadyCharged(money(taken)), "{card}");
    }
}

pub(super) async fn a_voided_payment_is_never_charged(setup: ContractSetup) {
    let charge = setup.charge(None);
    let answer = setup.gateway.charge(&charge).await.expect("opened");
    let known = PaymentIds { booking: charge.booking, gateway_ref: Some(answer.gateway_ref) };
    setup.gateway.void(&known).await.expect("voided");
    assert_eq!(setup.gateway.charge(&charge).await.expect("an answer").status, PaymentStatus::Voided);
    // Voided before it was charged: either the gateway cannot promise it, or the charge is refused.
    let late = setup.charge(Some("paid"));
    match setup.gateway.void(&ids_without_gateway_ref(late.booking)).await.expect("an answer") {
        VoidAnswer::Unknown => assert_eq!(setup.protocol, Protocol::Own),
        VoidAnswer::Voided => {
            setup.gateway.charge(&late).await.expect_err("barred");
            assert_eq!(setup.gateway.status(&ids_without_gateway_ref(late.booking)).await.expect("an answer"), None);
        }
        VoidAnswer::AlreadyCharged(_) => panic!("it was not charged"),
    }
}

pub(super) async fn a_retry_with_changed_details_returns_the_first_charge(setup: ContractSetup) {
    let charge = setup.charge(Some("paid"));
    let first = setup.gateway.charge(&charge).await.expect("charged");
    let changed = Charge { amount: money(1), description: "another name".to_owned(), ..charge };
    assert_eq!(setup.gateway.charge(&changed).await.expect("an answer"), first);
    assert_eq!(setup.status(&ids_without_gateway_ref(changed.booking)).await, succeeded(2_500));
    let charge = setup.charge(None);
    let first = setup.gateway.charge(&charge).await.expect("opened");
    match setup.gateway.charge(&Charge { amount: money(1), ..charge }).await {
        Ok(answer) => assert_eq!(answer, first),
        // An unpaid page cannot be found by its booking: unknown, and not refused.
        Err(error) => assert!(matches!(error, GatewayError::Undecided(_)), "{error}"),
    }
}
