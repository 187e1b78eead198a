//! A test merchant: a running simulator, an HTTP client and an inbox for webhooks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use simulator::payment::PaymentView;
use simulator::webhooks::{EventKind, GatewayEvent, SIGNATURE_HEADER, sign};
use simulator::{Settings, Simulator};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub const API_KEY: &str = "key of the tests";
pub const SECRET: &str = "secret of the tests";
/// URL the payer returns to.
pub const RETURN_URL: &str = "http://127.0.0.1:9/bookings/7";
/// Timeout of every step in these tests.
const DEADLINE: Duration = Duration::from_secs(20);
/// Time until a pending payment is decided.
pub const PENDING: Duration = Duration::from_millis(1_500);
/// Delay of a late webhook.
pub const LATE: Duration = Duration::from_millis(1_500);

/// 2100-01-01, milliseconds since 1970.
pub const FAR_FUTURE_MS: i64 = 4_102_444_800_000;

struct Inbox {
    /// Number of webhooks still to be answered with 503.
    refusals: Mutex<u32>,
    events: watch::Sender<Vec<GatewayEvent>>,
}

pub struct Merchant {
    pub base: String,
    pub client: Client,
    webhook_url: String,
    inbox: Arc<Inbox>,
}

impl Merchant {
    pub async fn new() -> Self {
        Self::refusing_webhooks(0).await
    }

    /// Creates a merchant that refuses its first `refusals` webhooks.
    pub async fn refusing_webhooks(refusals: u32) -> Self {
        let inbox = Arc::new(Inbox { refusals: Mutex::new(refusals), events: watch::Sender::new(Vec::new()) });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let webhook_url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let router = Router::new().route("/hook", post(receive)).with_state(Arc::clone(&inbox));
        tokio::spawn(async move { axum::serve(listener, router).await.expect("serving") });

        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let simulator = Simulator::new(Settings {
            api_key: API_KEY.to_owned(),
            webhook_secret: SECRET.to_owned(),
            public_url: base.clone(),
            merchant: "Rialto <Kino>".to_owned(),
            pending: PENDING,
            slow: Duration::from_millis(300),
            no_answer: DEADLINE,
            late: LATE,
            backoff_base: Duration::from_millis(20),
        })
        .expect("a simulator");
        tokio::spawn(simulator::serve(listener, simulator, std::future::pending()));
        let client = Client::builder()
            .timeout(DEADLINE)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .expect("a client");
        Self { base, client, webhook_url, inbox }
    }

    pub fn payment(&self, token: Option<&str>) -> Value {
        let mut body = json!({
            "amount_minor": 2500, "currency": "EUR", "reference": "booking 7", "description": "2 seats, C7 and C8",
            "return_url": RETURN_URL, "webhook_url": self.webhook_url, "expires_at_ms": FAR_FUTURE_MS,
        });
        if let Some(token) = token {
            body["token"] = token.into();
        }
        body
    }

    pub fn post(&self, path: &str, key: &str, body: &Value) -> RequestBuilder {
        let request = self.client.post(format!("{}{path}", self.base)).bearer_auth(API_KEY);
        request.header("idempotency-key", key).json(body)
    }

    pub async fn get(&self, path: &str) -> Response {
        self.client.get(format!("{}{path}", self.base)).bearer_auth(API_KEY).send().await.expect("an answer")
    }

    /// Opens a payment; the request must succeed.
    pub async fn open(&self, key: &str, token: Option<&str>) -> PaymentView {
        let answer = self.post("/v1/payments", key, &self.payment(token)).send().await.expect("an answer");
        assert_eq!(answer.status(), 201);
        answer.json().await.expect("a payment")
    }

    /// Returns the current payment of a key.
    pub async fn look_up(&self, key: &str) -> PaymentView {
        self.get(&format!("/v1/payments?key={key}")).await.json().await.expect("a payment")
    }

    pub async fn void(&self, id: &str) -> Response {
        let request = self.client.post(format!("{}/v1/payments/{id}/void", self.base));
        request.bearer_auth(API_KEY).send().await.expect("an answer")
    }

    /// Submits the form of the page, as the payer's browser does.
    pub async fn press(&self, page_url: &str, form: &'static str) -> Response {
        let request = self.client.post(page_url).header("content-type", "application/x-www-form-urlencoded");
        request.body(form).send().await.expect("an answer")
    }

    /// Waits for `count` events with a valid signature and returns all of them.
    pub async fn events(&self, count: usize) -> Vec<GatewayEvent> {
        let mut arriving = self.inbox.events.subscribe();
        let arrived = tokio::time::timeout(DEADLINE, arriving.wait_for(|events| events.len() >= count)).await;
        arrived.expect("events in time").expect("an open inbox").clone()
    }

    /// Returns the kinds of the events received so far.
    pub fn events_now(&self) -> Vec<EventKind> {
        self.inbox.events.borrow().iter().map(|event| event.kind).collect()
    }
}

async fn receive(State(inbox): State<Arc<Inbox>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = headers.get(SIGNATURE_HEADER).and_then(|value| value.to_str().ok()).expect("a signature");
    let signed_at = header.strip_prefix("t=").and_then(|rest| rest.split(',').next()).expect("a time");
    assert_eq!(header, sign(SECRET, signed_at.parse().expect("seconds"), &body), "signed over the raw body");
    {
        let mut refusals = inbox.refusals.lock().expect("not poisoned");
        if *refusals > 0 {
            *refusals -= 1;
            return StatusCode::SERVICE_UNAVAILABLE;
        }
    }
    let event = serde_json::from_slice(&body).expect("an event");
    inbox.events.send_modify(|events| events.push(event));
    StatusCode::OK
}
