//! Breakers, queues and the choice between gateways, with a scripted gateway.

use std::collections::VecDeque;

use async_trait::async_trait;
use domain::money::Currency;
use tokio::sync::Notify;

use super::*;
use crate::{PaymentStatus, RefundAnswer};

/// Deadline of each step of a test.
const DEADLINE: Duration = Duration::from_secs(20);

/// The behaviour of the scripted gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Answers,
    Fails,
    Hangs,
}

struct ScriptedGateway {
    name: &'static str,
    token: &'static str,
    behaviour: Mutex<Behaviour>,
    /// The received calls, in order.
    calls: Mutex<VecDeque<&'static str>>,
    hung: Notify,
}

impl ScriptedGateway {
    fn new(name: &'static str, token: &'static str) -> Arc<Self> {
        let (behaviour, calls) = (Mutex::new(Behaviour::Answers), Mutex::default());
        Arc::new(Self { name, token, behaviour, calls, hung: Notify::new() })
    }

    fn set_behaviour(&self, behaviour: Behaviour) {
        *self.behaviour.lock().expect("not poisoned") = behaviour;
    }

    /// Number of calls of this kind.
    fn count_calls(&self, what: &str) -> usize {
        self.calls.lock().expect("not poisoned").iter().filter(|call| **call == what).count()
    }

    async fn answer<T>(&self, what: &'static str, answer: T) -> Result<T, GatewayError> {
        self.calls.lock().expect("not poisoned").push_back(what);
        let behaviour = *self.behaviour.lock().expect("not poisoned");
        match behaviour {
            Behaviour::Answers => Ok(answer),
            Behaviour::Fails => Err(GatewayError::unreachable("failed")),
            Behaviour::Hangs => {
                self.hung.notified().await;
                Err(GatewayError::unreachable("hung"))
            }
        }
    }
}

#[async_trait]
impl Gateway for ScriptedGateway {
    fn name(&self) -> &'static str {
        self.name
    }

    fn takes_token(&self, token: &str) -> bool {
        token.starts_with(self.token)
    }

    async fn fingerprint(&self, token: &str) -> Result<Option<String>, GatewayError> {
        self.answer("instrument", Some(token.to_owned())).await
    }

    async fn charge(&self, charge: &Charge) -> Result<ChargeAnswer, GatewayError> {
        let status = PaymentStatus::Succeeded { amount: charge.amount };
        self.answer("charge", ChargeAnswer { gateway_ref: "1".to_owned(), status }).await
    }

    async fn status(&self, _: &PaymentIds) -> Result<Option<GatewayPayment>, GatewayError> {
        self.answer("status", None).await
    }

    async fn void(&self, _: &PaymentIds) -> Result<VoidAnswer, GatewayError> {
        self.answer("void", VoidAnswer::Voided).await
    }

    async fn refund(&self, _: &PaymentIds, _: Money, _: &str, _: &[String]) -> Result<RefundAnswer, GatewayError> {
        self.answer("refund", RefundAnswer::Settled).await
    }

    async fn ledger(&self, _: Window, _: Option<&str>) -> Result<LedgerPage, GatewayError> {
        self.answer("ledger", LedgerPage { entries: Vec::new(), next: None }).await
    }

    fn read_webhook(&self, _: &HeaderMap, _: &[u8], _: Timestamp) -> Result<Option<PaymentEvent>, WebhookRefused> {
        Ok(None)
    }
}

fn charge() -> Charge {
    Charge {
        booking: ids::new_id(),
        reference: String::new(),
        amount: Money::new(2_500, Currency::parse("EUR").expect("a code")),
        description: String::new(),
        return_url: String::new(),
        cancel_url: String::new(),
        token: None,
        expires_at: Timestamp(0),
    }
}

/// Opens the breaker of a gateway.
async fn open_breaker(gateways: &Gateways, gateway: &ScriptedGateway) {
    gateway.set_behaviour(Behaviour::Fails);
    let guarded = gateways.find(gateway.name).expect("it is one of them");
    for _ in 0..BREAKER.failures_to_open {
        let error = guarded.charge(&charge()).await.expect_err("unreachable");
        assert!(matches!(error, GatewayError::Unreachable(_)), "{error}");
    }
    assert!(!guarded.is_available());
}

/// Two scripted gateways, and the configuration of both.
fn two_gateways() -> (Arc<ScriptedGateway>, Arc<ScriptedGateway>, Gateways) {
    let (first, second) = (ScriptedGateway::new("first", "tok_"), ScriptedGateway::new("second", "pm_"));
    let gateways = Gateways::new(vec![first.clone(), second.clone()]);
    (first, second, gateways)
}

#[tokio::test]
async fn the_second_gateway_is_chosen_while_the_breaker_of_the_first_is_open() {
    let (first, second, gateways) = two_gateways();
    assert_eq!(gateways.first_choice(), "first");
    open_breaker(&gateways, &first).await;
    assert_eq!(gateways.first_choice(), "second");
    assert!(gateways.require_available().is_ok());
    open_breaker(&gateways, &second).await;
    assert_eq!(gateways.first_choice(), "first", "there is always a first choice");
    let refused = gateways.require_available().expect_err("no gateway accepts charges");
    assert_eq!(refused.code(), Code::GatewayUnavailable);
}

#[tokio::test]
async fn an_open_breaker_admits_no_charge_and_closes_after_a_status_probe() {
    let (first, _, gateways) = two_gateways();
    open_breaker(&gateways, &first).await;
    let charges = first.count_calls("charge");
    let guarded = gateways.find("first").expect("it is one of them");
    let error = guarded.charge(&charge()).await.expect_err("breaker open");
    assert!(matches!(error, GatewayError::NotSent(_)), "{error}");
    first.set_behaviour(Behaviour::Answers);
    let closed = async {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        while !guarded.is_available() {
            again.tick().await;
            // A charge is never the probe, even after the open period.
            if !guarded.is_available() {
                guarded.charge(&charge()).await.expect_err("breaker open");
            }
            gateways.probe().await;
        }
    };
    tokio::time::timeout(DEADLINE, closed).await.expect("the breaker closes");
    assert_eq!((first.count_calls("charge"), first.count_calls("status")), (charges, 1));
    guarded.charge(&charge()).await.expect("charges are admitted again");
}

#[tokio::test]
async fn a_refusal_counts_as_a_success_for_the_breaker() {
    let (_, _, gateways) = two_gateways();
    let guarded = gateways.find("first").expect("it is one of them");
    for _ in 0..2 * BREAKER.failures_to_open {
        let refused = async { Err::<(), _>(GatewayError::refused("no", "no")) };
        guarded.call_guarded(refused).await.expect_err("refused");
    }
    assert!(guarded.is_available());
}

#[tokio::test]
async fn an_undecided_payment_counts_as_a_success_for_the_breaker() {
    let (_, _, gateways) = two_gateways();
    let guarded = gateways.find("first").expect("it is one of them");
    for _ in 0..2 * BREAKER.failures_to_open {
        let undecided = async { Err::<(), _>(GatewayError::Undecided("the bank is processing it")) };
        guarded.call_guarded(undecided).await.expect_err("undecided");
    }
    assert!(guarded.is_available());
}

#[tokio::test]
async fn the_queue_is_bounded_and_a_call_that_timed_out_in_it_was_not_sent() {
    let (first, _, gateways) = two_gateways();
    first.set_behaviour(Behaviour::Hangs);
    let gateways = Arc::new(gateways);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..MAX_AT_ONCE + MAX_WAITING {
        let gateways = Arc::clone(&gateways);
        calls.spawn(async move { gateways.find("first").expect("there").charge(&charge()).await });
    }
    let full = async {
        while gateways.first_choice() == "first" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, full).await.expect("all slots are taken");
    // One more call does not fit into the queue.
    let error = gateways.find("first").expect("there").charge(&charge()).await.expect_err("busy");
    assert!(matches!(error, GatewayError::NotSent(_)), "{error}");
    // Calls that timed out in the queue were not sent.
    let mut not_sent = 0;
    while not_sent < MAX_WAITING {
        let over = tokio::time::timeout(DEADLINE, calls.join_next()).await.expect("in time").expect("some are left");
        assert!(matches!(over.expect("joined"), Err(GatewayError::NotSent(_))));
        not_sent += 1;
    }
    assert_eq!(first.count_calls("charge"), MAX_AT_ONCE);
    first.hung.notify_waiters();
}

#[test]
fn a_booking_moves_to_an_available_gateway_it_has_not_left() {
    let (_, _, gateways) = two_gateways();
    assert_eq!(gateways.first_choice_except(&["first".to_owned()]), Some("second"));
    assert_eq!(gateways.first_choice_except(&["first".to_owned(), "second".to_owned()]), None);
}

#[test]
fn a_token_goes_only_to_its_gateway() {
    let (_, _, gateways) = two_gateways();
    let token_for = |gateway, token: &str| gateways.token_for(gateway, Some(token.to_owned()));
    assert_eq!(token_for("first", "tok_paid").as_deref(), Some("tok_paid"));
    assert_eq!(token_for("second", "tok_paid"), None);
    assert_eq!(token_for("second", "pm_paid").as_deref(), Some("pm_paid"));
    // Unknown tokens: the called gateway refuses them itself.
    assert_eq!(token_for("second", "nonsense").as_deref(), Some("nonsense"));
    assert_eq!(gateways.token_for("first", None), None);
}
