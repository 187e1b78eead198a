//! The contract of all gateways, tested over HTTP: our simulator with its own protocol and with Stripe's, and services that
//! misbehave.

mod failures;
mod ledger;
mod payments;
mod refunds;
mod setup;
mod webhooks;

use setup::{ContractSetup, Protocol};

/// Defines one test per gateway for each of these functions.
macro_rules! on_every_gateway {
    ($($file:ident: $($test:ident),+;)+) => {
        mod simulator {
            use super::*;
            $($(
                #[tokio::test]
                async fn $test() {
                    super::$file::$test(ContractSetup::open(Protocol::Own).await).await;
                }
            )+)+
        }
        mod stripe {
            use super::*;
            $($(
                #[tokio::test]
                async fn $test() {
                    super::$file::$test(ContractSetup::open(Protocol::Stripe).await).await;
                }
            )+)+
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
mod stripe_only {
    use super::{ContractSetup, Protocol, refunds};

    #[tokio::test]
    async fn a_refund_is_found_after_stripe_forgets_its_key() {
        refunds::a_refund_is_found_after_stripe_forgets_its_key(ContractSetup::open(Protocol::Stripe).await).await;
    }

    #[tokio::test]
    async fn a_pending_refund_stays_pending_until_it_settles() {
        refunds::a_pending_refund_stays_pending_until_it_settles(ContractSetup::open(Protocol::Stripe).await).await;
    }

    #[tokio::test]
    async fn only_acknowledged_failed_refunds_are_sent_again() {
        refunds::only_acknowledged_failed_refunds_are_sent_again(ContractSetup::open(Protocol::Stripe).await).await;
    }
}

on_every_gateway! {
    payments:
        a_charge_without_a_token_opens_a_payment_page,
        a_card_is_charged_or_declined_at_once,
        a_pending_card_is_charged_or_declined_later,
        a_charge_whose_answer_is_lost_is_retried,
        all_tokens_of_a_card_have_one_fingerprint,
        a_payment_has_the_fingerprint_of_its_card,
        the_status_of_an_unknown_payment_is_none,
        a_payment_without_a_recorded_id_is_found_by_its_booking,
        void_returns_voided_or_already_charged,
        a_voided_payment_is_never_charged,
        a_retry_with_changed_details_returns_the_first_charge;
    refunds:
        a_refund_is_idempotent_and_never_exceeds_the_charge,
        partial_refunds_have_separate_keys,
        a_refund_without_a_charge_is_refused;
    ledger:
        the_ledger_lists_charges_and_refunds,
        ledger_pages_list_each_payment_once,
        a_ledger_window_lists_payments_charged_or_refunded_in_it;
    webhooks:
        a_payment_outcome_is_sent_as_a_signed_webhook,
        a_webhook_with_a_wrong_missing_or_stale_signature_is_refused,
        a_signature_with_either_active_secret_is_accepted,
        refunds_and_voids_are_sent_as_webhooks,
        reordered_webhooks_keep_their_event_times,
        a_signed_body_that_is_no_event_is_malformed;
    failures:
        a_refused_connection_returns_not_sent,
        a_wrong_api_key_returns_not_sent,
        a_timeout_returns_unreachable,
        temporary_failures_are_retried_and_then_return_unreachable,
        a_lost_answer_followed_by_unauthorized_returns_unreachable,
        a_refusal_is_not_retried,
        a_payment_required_answer_is_a_refusal,
        an_answer_above_the_size_limit_returns_unreachable;
}
