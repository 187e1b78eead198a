//! The setup of a contract test: a gateway, the simulator behind it, a webhook inbox and a payer.

use std::sync::Arc;
use std::time::Duration;

use ::simulator::{Settings, Simulator};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use domain::money::{Currency, Money};
use domain::time::{MINUTE_MS, Timestamp};
use tokio::net::TcpListener;
use tokio::sync::watch;
use uuid::Uuid;

use crate::simulator::SimulatorGateway;
use crate::stripe::StripeGateway;
use crate::{CallDeadlines, Charge, Gateway, PaymentEvent, PaymentIds, PaymentStatus};
use platform::{clock, ids};

pub(super) const API_KEY: &str = "key of the tests";
pub(super) const SECRET: &str = "secret of the tests";
/// Delay of the simulator's bank.
const PENDING: Duration = Duration::from_millis(200);
/// Deadline of each step of a test.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);
/// Deadlines of the gateways under test: a call without an answer is retried after two seconds.
pub(super) const CALL_DEADLINES: CallDeadlines =
    CallDeadlines { per_attempt: Duration::from_secs(2), in_total: Duration::from_secs(8) };

/// The API of the simulator that a test uses: its own, or the one compatible with Stripe's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Own,
    Stripe,
}

impl Protocol {
    /// The client for this API at `base`.
    pub(super) fn gateway(
        self,
        base: &str,
        public_url: &str,
        key: &str,
        secrets: &[&str],
        deadlines: CallDeadlines,
    ) -> Arc<dyn Gateway> {
        let secrets = secrets.iter().map(|secret| (*secret).to_owned()).collect();
        match self {
            Self::Own => Arc::new(SimulatorGateway::new(base, key, public_url, secrets, deadlines).expect("a client")),
            Self::Stripe => Arc::new(StripeGateway::new(base, key, secrets, deadlines).expect("a client")),
        }
    }

    /// The same with the key, the secret and the deadlines of the tests.
    pub(super) fn gateway_at(self, base: &str) -> Arc<dyn Gateway> {
        self.gateway(base, "http://127.0.0.1:9", API_KEY, &[SECRET], CALL_DEADLINES)
    }
}

pub(super) type ReceivedWebhook = (HeaderMap, Bytes);

pub(super) struct ContractSetup {
    pub(super) protocol: Protocol,
    pub(super) gateway: Arc<dyn Gateway>,
    /// The simulator's address.
    pub(super) base: String,
    /// Its state.
    pub(super) simulator: Simulator,
    inbox: Arc<watch::Sender<Vec<ReceivedWebhook>>>,
}

async fn receive(
    State(inbox): State<Arc<watch::Sender<Vec<ReceivedWebhook>>>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    inbox.send_modify(|webhooks| webhooks.push((headers, body)));
    StatusCode::OK
}

pub(super) fn money(minor: i64) -> Money {
    Money::new(minor, Currency::parse("EUR").expect("a code"))
}

/// Listens on a free port; returns the listener and its address.
pub(super) async fn port() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    (listener, base)
}

impl ContractSetup {
    pub(super) async fn open(protocol: Protocol) -> Self {
        let inbox = Arc::new(watch::Sender::new(Vec::new()));
        let (listener, public_url) = port().await;
        let router = Router::new().fallback(receive).with_state(Arc::clone(&inbox));
        tokio::spawn(async move { axum::serve(listener, router).await.expect("serving") });
        let (listener, base) = port().await;
        let simulator = Simulator::new(Settings {
            api_key: API_KEY.to_owned(),
            webhook_secret: SECRET.to_owned(),
            public_url: base.clone(),
            merchant: "Rialto".to_owned(),
            pending: PENDING,
            slow: PENDING,
            no_answer: DEADLINE,
            late: PENDING,
            backoff_base: PENDING,
        })
        .expect("a simulator");
        simulator.set_stripe_endpoint(public_url.clone());
        tokio::spawn(::simulator::serve(listener, simulator.clone(), std::future::pending()));
        let gateway = protocol.gateway(&base, &public_url, API_KEY, &[SECRET], CALL_DEADLINES);
        Self { protocol, gateway, base, simulator, inbox }
    }

    /// A new charge of 25 euros: with the token of `card`, or without one on the payment page.
    pub(super) fn charge(&self, card: Option<&str>) -> Charge {
        let prefix = match self.protocol {
            Protocol::Own => "tok_",
            Protocol::Stripe => "pm_",
        };
        Charge {
            booking: ids::new_id(),
            reference: "K7QM-2XPA".to_owned(),
            amount: money(2_500),
            description: "ليلى <b>👩‍👩‍👧</b>\r\n".to_owned(),
            return_url: "http://127.0.0.1:9/bookings/7?submitted=1".to_owned(),
            cancel_url: "http://127.0.0.1:9/bookings/7".to_owned(),
            token: card.map(|card| format!("{prefix}{card}")),
            expires_at: clock::now().plus_ms(7 * MINUTE_MS),
        }
    }

    /// Charges `card`, and returns the ids of the payment.
    pub(super) async fn charged(&self, card: Option<&str>) -> PaymentIds {
        let charge = self.charge(card);
        let answer = self.gateway.charge(&charge).await.expect("an answer");
        PaymentIds { booking: charge.booking, gateway_ref: Some(answer.gateway_ref) }
    }

    pub(super) async fn status(&self, payment: &PaymentIds) -> PaymentStatus {
        self.gateway.status(payment).await.expect("an answer").expect("a payment").status
    }

    pub(super) async fn wait_for_status(&self, payment: &PaymentIds, expected: &PaymentStatus) {
        let reached = async {
            while self.status(payment).await != *expected {
                tokio::task::yield_now().await;
            }
        };
        let what = format!("{} becomes {expected:?}", payment.booking);
        tokio::time::timeout(DEADLINE, reached).await.unwrap_or_else(|_| panic!("timed out: {what}"));
    }

    /// Submits the form on the payment page, as a payer does.
    pub(super) async fn submit_form(&self, page: &str, form: &'static str) {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(DEADLINE);
        let request = client.build().expect("a client").post(page).body(form);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer = request.send().await.expect("a page");
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    }

    /// Waits for `enough` relevant webhooks; returns all received ones in order of arrival.
    pub(super) async fn received_webhooks(&self, enough: usize) -> Vec<ReceivedWebhook> {
        let mut inbox = self.inbox.subscribe();
        let of_interest = |webhooks: &Vec<ReceivedWebhook>| {
            webhooks.iter().filter(|webhook| self.read(webhook).expect("a valid signature").is_some()).count() >= enough
        };
        let arrived = tokio::time::timeout(DEADLINE, inbox.wait_for(of_interest)).await;
        arrived.expect("webhooks in time").expect("an open inbox").clone()
    }

    /// Waits for `enough` events; returns those of all received webhooks.
    pub(super) async fn received_events(&self, enough: usize) -> Vec<PaymentEvent> {
        self.received_webhooks(enough)
            .await
            .iter()
            .filter_map(|webhook| self.read(webhook).expect("a valid signature"))
            .collect()
    }

    fn read(&self, (headers, body): &ReceivedWebhook) -> Result<Option<PaymentEvent>, crate::WebhookRefused> {
        self.gateway.read_webhook(headers, body, clock::now())
    }

    /// A time at which a webhook that is signed now is stale.
    pub(super) fn later() -> Timestamp {
        clock::now().plus_ms(5 * MINUTE_MS + 1_000)
    }
}

/// The ids of a payment after a crash before the gateway's answer was recorded: the booking only.
pub(super) const fn ids_without_gateway_ref(booking: Uuid) -> PaymentIds {
    PaymentIds { booking, gateway_ref: None }
}
