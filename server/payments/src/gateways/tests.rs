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
    Away,
    Hangs,
}

struct Scripted {
    name: &'static str,
    token: &'static str,
    mood: Mutex<Behaviour>,
    /// The calls it got, in order.
    asked: Mutex<VecDeque<&'static str>>,
    hung: Notify,
}

impl Scripted {
    fn new(name: &'static str, token: &'static str) -> Arc<Self> {
        let (mood, asked) = (Mutex::new(Behaviour::Answers), Mutex::default());
        Arc::new(Self { name, token, mood, asked, hung: Notify::new() })
    }

    fn is(&self, mood: Behaviour) {
        *self.mood.lock().expect("not poisoned") = mood;
    }

    fn times(&self, what: &str) -> usize {
        self.asked.lock().expect("not poisoned").iter().filter(|asked| **asked == what).count()
    }

    async fn asked<T>(&self, what: &'static str, answer: T) -> Result<T, GatewayError> {
        self.asked.lock().expect("not poisoned").push_back(what);
        let mood = *self.mood.lock().expect("not poisoned");
        match mood {
            Behaviour::Answers => Ok(answer),
            Behaviour::Away => Err(GatewayError::unreachable("away")),
            Behaviour::Hangs => {
                self.hung.notified().await;
                Err(GatewayError::unreachable("hung"))
            }
        }
    }
}

#[async_trait]
impl Gateway for Scripted {
    fn name(&self) -> &'static str {
        self.name
    }

    fn takes_token(&self, token: &str) -> bool {
        token.starts_with(self.token)
    }

    async fn fingerprint(&self, token: &str) -> Result<Option<String>, GatewayError> {
        self.asked("instrument", Some(token.to_owned())).await
    }

    async fn charge(&self, charge: &Charge) -> Result<ChargeAnswer, GatewayError> {
        let status = PaymentStatus::Succeeded { amount: charge.amount };
        self.asked("charge", ChargeAnswer { gateway_ref: "1".to_owned(), status }).await
    }

    async fn status(&self, _: &PaymentIds) -> Result<Option<GatewayPayment>, GatewayError> {
        self.asked("status", None).await
    }

    async fn void(&self, _: &PaymentIds) -> Result<VoidAnswer, GatewayError> {
        self.asked("void", VoidAnswer::Voided).await
    }

    async fn refund(&self, _: &PaymentIds, _: Money, _: &str, _: &[String]) -> Result<RefundAnswer, GatewayError> {
        self.asked("refund", RefundAnswer::Settled).await
    }

    async fn ledger(&self, _: Window, _: Option<&str>) -> Result<LedgerPage, GatewayError> {
        self.asked("ledger", LedgerPage { entries: Vec::new(), next: None }).await
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

async fn exhaust(gateways: &Gateways, gateway: &Scripted) {
    gateway.is(Behaviour::Away);
    let guarded = gateways.find(gateway.name).expect("it is one of them");
    for _ in 0..BREAKER.failures_to_open {
        let error = guarded.charge(&charge()).await.expect_err("away");
        assert!(matches!(error, GatewayError::Unreachable(_)), "{error}");
    }
    assert!(!guarded.is_available());
}

/// Both gateways, and what they are in.
fn both() -> (Arc<Scripted>, Arc<Scripted>, Gateways) {
    let (first, second) = (Scripted::new("first", "tok_"), Scripted::new("second", "pm_"));
    let gateways = Gateways::new(vec![first.clone(), second.clone()]);
    (first, second, gateways)
}

#[tokio::test]
async fn the_first_is_chosen_until_it_fails_too_often_and_then_the_second() {
    let (first, second, gateways) = both();
    assert_eq!(gateways.first_choice(), "first");
    exhaust(&gateways, &first).await;
    assert_eq!(gateways.first_choice(), "second");
    assert!(gateways.require_available().is_ok());
    exhaust(&gateways, &second).await;
    assert_eq!(gateways.first_choice(), "first", "there is always a first choice");
    let refused = gateways.require_available().expect_err("no gateway accepts charges");
    assert_eq!(refused.code(), Code::GatewayUnavailable);
}

#[tokio::test]
async fn an_open_gateway_gets_no_charges_and_closes_after_a_free_probe() {
    let (first, _, gateways) = both();
    exhaust(&gateways, &first).await;
    let charges = first.times("charge");
    let guarded = gateways.find("first").expect("it is one of them");
    let error = guarded.charge(&charge()).await.expect_err("resting");
    assert!(matches!(error, GatewayError::NotSent(_)), "{error}");
    first.is(Behaviour::Answers);
    let back = async {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        while !guarded.is_available() {
            again.tick().await;
            // Also when its rest is over, money is not what it is tried with.
            if !guarded.is_available() {
                guarded.charge(&charge()).await.expect_err("resting");
            }
            gateways.probe().await;
        }
    };
    tokio::time::timeout(DEADLINE, back).await.expect("it comes back");
    assert_eq!((first.times("charge"), first.times("status")), (charges, 1));
    guarded.charge(&charge()).await.expect("it is asked again");
}

#[tokio::test]
async fn a_refusal_counts_as_a_success_for_the_breaker() {
    let (_, _, gateways) = both();
    let guarded = gateways.find("first").expect("it is one of them");
    for _ in 0..2 * BREAKER.failures_to_open {
        let refused = async { Err::<(), _>(GatewayError::refused("no", "no")) };
        guarded.through(refused).await.expect_err("refused");
    }
    assert!(guarded.is_available());
}

#[tokio::test]
async fn the_queue_is_bounded_and_a_call_that_timed_out_in_it_was_not_sent() {
    let (first, _, gateways) = both();
    first.is(Behaviour::Hangs);
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
    tokio::time::timeout(DEADLINE, full).await.expect("all places are taken");
    // One more is not even let in to wait.
    let error = gateways.find("first").expect("there").charge(&charge()).await.expect_err("busy");
    assert!(matches!(error, GatewayError::NotSent(_)), "{error}");
    // Calls that timed out in the queue were not sent.
    let mut not_asked = 0;
    while not_asked < MAX_WAITING {
        let over = tokio::time::timeout(DEADLINE, calls.join_next()).await.expect("in time").expect("some are left");
        assert!(matches!(over.expect("joined"), Err(GatewayError::NotSent(_))));
        not_asked += 1;
    }
    assert_eq!(first.times("charge"), MAX_AT_ONCE);
    first.hung.notify_waiters();
}

#[test]
fn a_booking_moves_to_an_open_gateway_it_has_not_left() {
    let (_, _, gateways) = both();
    assert_eq!(gateways.first_choice_except(&["first".to_owned()]), Some("second"));
    assert_eq!(gateways.first_choice_except(&["first".to_owned(), "second".to_owned()]), None);
}

#[test]
fn a_token_goes_only_to_its_gateway() {
    let (_, _, gateways) = both();
    let token_for = |gateway, token: &str| gateways.token_for(gateway, Some(token.to_owned()));
    assert_eq!(token_for("first", "tok_paid").as_deref(), Some("tok_paid"));
    assert_eq!(token_for("second", "tok_paid"), None);
    assert_eq!(token_for("second", "pm_paid").as_deref(), Some("pm_paid"));
    // Unknown tokens: the called gateway refuses them itself.
    assert_eq!(token_for("second", "nonsense").as_deref(), Some("nonsense"));
    assert_eq!(gateways.token_for("first", None), None);
}
