//! Charging, asking, calling off.

use super::house::{House, Words, money, unnoted};
use crate::{Charge, GatewayError, Known, PaymentStatus, VoidAnswer};
use platform::ids;

fn succeeded(minor: i64) -> PaymentStatus {
    PaymentStatus::Succeeded { amount: money(minor) }
}

fn failed(why: &str) -> PaymentStatus {
    PaymentStatus::Failed { why: why.to_owned() }
}

pub(super) async fn a_charge_without_a_token_leads_to_the_gateways_page(house: House) {
    let charge = house.charge(None);
    let first = house.gateway.charge(&charge).await.expect("opened");
    let PaymentStatus::Pending { pay_url: Some(page) } = &first.status else { panic!("{first:?}") };
    assert!(page.starts_with(&house.base), "{page}");
    assert_eq!(house.gateway.charge(&charge).await.expect("repeated"), first);
    let known = Known { booking: charge.booking, gateway_ref: Some(first.gateway_ref.clone()) };
    assert_eq!(house.status(&known).await, first.status);
    house.press(page, "card=paid&action=pay").await;
    assert_eq!(house.status(&known).await, succeeded(2_500));
}

pub(super) async fn cards_are_decided_at_once(house: House) {
    for (card, expected) in [
        ("paid", succeeded(2_500)),
        ("declined", failed("card_declined")),
        ("slow", succeeded(2_500)),
        ("another_amount", succeeded(2_499)),
    ] {
        let charge = house.charge(Some(card));
        for _ in 0..2 {
            let answer = house.gateway.charge(&charge).await.expect("an answer");
            assert_eq!(answer.status, expected, "{card}");
            let known = Known { booking: charge.booking, gateway_ref: Some(answer.gateway_ref) };
            assert_eq!(house.status(&known).await, expected, "{card}");
        }
    }
}

pub(super) async fn cards_are_decided_later(house: House) {
    // A bank's reason is a word of each gateway's own.
    let declined = match house.words {
        Words::Own => failed("bank_declined"),
        Words::Stripes => failed("card_declined"),
    };
    for (card, expected) in [("pending_paid", succeeded(2_500)), ("pending_failed", declined)] {
        let charge = house.charge(Some(card));
        let answer = house.gateway.charge(&charge).await.expect("an answer");
        assert_eq!(answer.status, PaymentStatus::Pending { pay_url: None }, "{card}");
        let known = Known { booking: charge.booking, gateway_ref: Some(answer.gateway_ref) };
        house.becomes(&known, &expected).await;
    }
}

pub(super) async fn an_answer_that_was_lost_is_asked_for_again(house: House) {
    let charge = house.charge(Some("no_answer_paid"));
    let answer = house.gateway.charge(&charge).await.expect("the second try is answered");
    let known = Known { booking: charge.booking, gateway_ref: Some(answer.gateway_ref) };
    house.becomes(&known, &succeeded(2_500)).await;
}

pub(super) async fn every_token_of_a_card_is_of_one_instrument(house: House) {
    let token = |card: &str| house.charge(Some(card)).token.expect("a token");
    let of = async |card: &str| house.gateway.fingerprint(&token(card)).await.expect("an answer");
    let one = of("paid@1111.a").await;
    assert!(one.as_ref().is_some_and(|name| !name.contains("1111")), "{one:?}");
    assert_eq!(of("paid@1111.b").await, one);
    assert_eq!(of("declined@1111").await, one);
    assert!(of("paid@2222").await.is_some_and(|other| Some(other) != one));
    assert_eq!(of("paid@").await, None, "it has no name");
    assert_eq!(of("no_such_card").await, None);
    assert_eq!(of("paid/../../payments?key=1#").await, None, "a stranger's token leads nowhere else");
}

pub(super) async fn a_payment_names_the_instrument_that_paid(house: House) {
    let of = async |known: &Known| house.gateway.status(known).await.expect("an answer").expect("known").instrument;
    let token = house.charge(Some("paid@1111.a")).token.expect("a token");
    let name = house.gateway.fingerprint(&token).await.expect("an answer");
    assert!(name.is_some());
    assert_eq!(of(&house.charged(Some("paid@1111.b")).await).await, name, "as its tokens");
    assert_eq!(of(&house.charged(Some("paid@")).await).await, None, "it has no name");
    // On the gateway's page nothing is known before the payment.
    let charge = house.charge(None);
    let opened = house.gateway.charge(&charge).await.expect("opened");
    let PaymentStatus::Pending { pay_url: Some(page) } = &opened.status else { panic!("{opened:?}") };
    let known = Known { booking: charge.booking, gateway_ref: Some(opened.gateway_ref.clone()) };
    assert_eq!(of(&known).await, None);
    house.press(page, "card=paid%401111.c&action=pay").await;
    assert_eq!(house.status(&known).await, succeeded(2_500));
    assert_eq!(of(&known).await, name, "on the page as by a token");
}

pub(super) async fn a_payment_nobody_made_is_not_there(house: House) {
    assert_eq!(house.gateway.status(&unnoted(ids::new_id())).await.expect("an answer"), None);
}

pub(super) async fn a_payment_is_found_before_its_id_was_noted(house: House) {
    let paid = house.charged(Some("paid")).await;
    assert_eq!(house.status(&unnoted(paid.booking)).await, succeeded(2_500));
    assert_eq!(
        house.gateway.void(&unnoted(paid.booking)).await.expect("an answer"),
        VoidAnswer::AlreadyCharged(money(2_500))
    );
    let pending = house.charged(Some("pending_paid")).await;
    let voided = house.gateway.void(&unnoted(pending.booking)).await.expect("an answer");
    // A slow machine may ask after the bank has thought.
    assert!(matches!(voided, VoidAnswer::Voided | VoidAnswer::AlreadyCharged(_)), "{voided:?}");
}

pub(super) async fn void_says_voided_or_charged(house: House) {
    for card in [None, Some("declined")] {
        let open = house.charged(card).await;
        for _ in 0..2 {
            assert_eq!(house.gateway.void(&open).await.expect("an answer"), VoidAnswer::Voided, "{card:?}");
        }
    }
    for (card, taken) in [("paid", 2_500), ("another_amount", 2_499)] {
        let paid = house.charged(Some(card)).await;
        let answer = house.gateway.void(&paid).await.expect("an answer");
        assert_eq!(answer, VoidAnswer::AlreadyCharged(money(taken)), "{card}");
    }
}

pub(super) async fn a_voided_payment_is_never_charged(house: House) {
    let charge = house.charge(None);
    let answer = house.gateway.charge(&charge).await.expect("opened");
    let known = Known { booking: charge.booking, gateway_ref: Some(answer.gateway_ref) };
    house.gateway.void(&known).await.expect("voided");
    assert_eq!(house.gateway.charge(&charge).await.expect("an answer").status, PaymentStatus::Voided);
    // Voided before it was charged: either the gateway cannot promise it, or the charge is refused.
    let late = house.charge(Some("paid"));
    match house.gateway.void(&unnoted(late.booking)).await.expect("an answer") {
        VoidAnswer::Unknown => assert_eq!(house.words, Words::Own),
        VoidAnswer::Voided => {
            house.gateway.charge(&late).await.expect_err("barred");
            assert_eq!(house.gateway.status(&unnoted(late.booking)).await.expect("an answer"), None);
        }
        VoidAnswer::AlreadyCharged(_) => panic!("it was not charged"),
    }
}

pub(super) async fn a_changed_charge_answers_how_the_first_one_stands(house: House) {
    let charge = house.charge(Some("paid"));
    let first = house.gateway.charge(&charge).await.expect("charged");
    let changed = Charge { amount: money(1), description: "another name".to_owned(), ..charge };
    assert_eq!(house.gateway.charge(&changed).await.expect("an answer"), first);
    assert_eq!(house.status(&unnoted(changed.booking)).await, succeeded(2_500));
    let charge = house.charge(None);
    let first = house.gateway.charge(&charge).await.expect("opened");
    match house.gateway.charge(&Charge { amount: money(1), ..charge }).await {
        Ok(answer) => assert_eq!(answer, first),
        // An unpaid page cannot be found by its booking: unknown, and not refused.
        Err(error) => assert!(matches!(error, GatewayError::Unreachable(_)), "{error}"),
    }
}
