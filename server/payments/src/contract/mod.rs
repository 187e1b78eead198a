//! The contract of all gateways, tested over HTTP: our simulator with its own protocol and with Stripe's, and services that
//! misbehave.

mod failures;
mod ledger;
mod payments;
mod refunds;
mod setup;
mod webhooks;

use setup::{ContractSetup, Protocol};

/// Each of these tests, on every gateway.
macro_rules! on_every_gateway {
    ($($room:ident: $($test:ident),+;)+) => {
        mod simulator {
            use super::*;
            $($(#[tokio::test] async fn $test() { super::$room::$test(ContractSetup::open(Protocol::Own).await).await; })+)+
        }
        mod stripe {
            use super::*;
            $($(#[tokio::test] async fn $test() { super::$room::$test(ContractSetup::open(Protocol::Stripe).await).await; })+)+
        }
    };
}

#[test]
fn every_adapter_has_a_module_of_these_tests() {
    for adapter in &crate::ADAPTERS {
        let module = format!("        mod {} {{", adapter.name);
        assert!(include_str!("mod.rs").contains(&module), "on_every_gateway! lacks {}", adapter.name);
    }
}

/// Tests for Stripe only: it forgets keys, and a refund can be pending for days.
mod stripe_alone {
    use super::{ContractSetup, Protocol, refunds};

    #[tokio::test]
    async fn a_refund_is_found_again_when_its_key_is_forgotten() {
        refunds::a_refund_is_found_again_when_its_key_is_forgotten(ContractSetup::open(Protocol::Stripe).await).await;
    }

    #[tokio::test]
    async fn a_refund_on_its_way_is_no_refund_yet() {
        refunds::a_refund_on_its_way_is_no_refund_yet(ContractSetup::open(Protocol::Stripe).await).await;
    }

    #[tokio::test]
    async fn a_refund_that_failed_is_asked_for_again_and_no_other() {
        refunds::a_refund_that_failed_is_asked_for_again_and_no_other(ContractSetup::open(Protocol::Stripe).await)
            .await;
    }
}

on_every_gateway! {
    payments:
        a_charge_without_a_token_leads_to_the_gateways_page,
        cards_are_decided_at_once,
        cards_are_decided_later,
        an_answer_that_was_lost_is_asked_for_again,
        every_token_of_a_card_is_of_one_instrument,
        a_payment_names_the_instrument_that_paid,
        a_payment_nobody_made_is_not_there,
        a_payment_is_found_before_its_id_was_noted,
        void_says_voided_or_charged,
        a_voided_payment_is_never_charged,
        a_changed_charge_answers_how_the_first_one_stands;
    refunds:
        a_refund_repeats_harmlessly_and_never_exceeds_the_charge,
        pieces_have_keys_of_their_own,
        what_was_never_charged_cannot_be_sent_back;
    ledger:
        the_ledger_has_what_was_charged_and_what_went_back,
        a_ledger_is_read_page_by_page,
        a_window_has_what_moved_in_it;
    webhooks:
        the_end_of_a_payment_is_told_and_believed,
        only_its_own_signature_of_now_over_these_bytes_is_believed,
        either_of_two_secrets_is_believed,
        refunds_are_told,
        an_order_of_events_that_cannot_be_is_told_as_it_comes,
        signed_nonsense_is_malformed;
    failures:
        nobody_there_means_it_was_not_asked,
        a_wrong_key_means_it_was_turned_away,
        no_answer_means_we_do_not_know,
        passing_failures_are_repeated_a_few_times_and_then_unknown,
        a_lost_answer_followed_by_a_closed_door_is_unknown,
        a_definite_no_is_asked_once,
        an_endless_answer_is_not_read_to_its_end;
}
