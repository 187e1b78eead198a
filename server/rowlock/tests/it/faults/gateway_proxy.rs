//! The payment simulator, with a switch in front of it that makes it unavailable.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::Response;
use futures::stream;
use simulator::payment::{NewPayment, Protocol};
use simulator::{Simulator, cards};
use tokio::sync::watch;

use super::injector::{AnswerFate, FaultInjector};
use crate::prelude::*;

/// Largest forwarded request, in bytes.
const MAX_REQUEST_BYTES: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Availability {
    #[default]
    Up,
    Down,
    Hanging,
}

#[derive(Clone)]
pub struct GatewayProxy {
    pub url: String,
    pub simulator: Simulator,
    availability: Arc<watch::Sender<Availability>>,
    status_queries: Arc<Mutex<HashMap<Uuid, u32>>>,
    /// Bookings whose charge gets an error here, although the simulator has their payment.
    rejected: Arc<Mutex<HashSet<Uuid>>>,
    refused_requests: Arc<AtomicU32>,
    injector: Arc<FaultInjector>,
}

impl GatewayProxy {
    /// Starts one; `injector` injects faults into its answers.
    pub async fn open(injector: Arc<FaultInjector>) -> Self {
        // Fails if another test of this process has installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let simulator = default_simulator(&url);
        let gateway = Self {
            url,
            simulator: simulator.clone(),
            availability: Arc::default(),
            status_queries: Arc::default(),
            rejected: Arc::default(),
            refused_requests: Arc::default(),
            injector,
        };
        let router = simulator::router(simulator).layer(middleware::from_fn_with_state(gateway.clone(), receive));
        tokio::spawn(async move { axum::serve(listener, router).await });
        gateway
    }

    pub fn set_availability(&self, availability: Availability) {
        self.availability.send_replace(availability);
    }

    /// Answers the charge of this booking as if the API key were invalid. The booking goes to another gateway, although
    /// the simulator has a payment for it.
    pub fn reject_charge(&self, booking: Uuid) {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner).insert(booking);
    }

    fn is_rejected(&self, booking: Uuid) -> bool {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner).contains(&booking)
    }

    pub fn status_queries(&self, booking: Uuid) -> u32 {
        let queries = self.status_queries.lock().unwrap_or_else(PoisonError::into_inner);
        queries.get(&booking).copied().unwrap_or(0)
    }

    pub fn refused_requests(&self) -> u32 {
        self.refused_requests.load(Ordering::SeqCst)
    }

    pub fn press_pay(&self, booking: Uuid) {
        let payment = self.simulator.ledger.get_by_key(&format!("pay:{booking}")).expect("the payment is open");
        let paid = cards::by_name("paid").expect("there is such a card");
        self.simulator.pay(&payment.id, paid, None).expect("the payment succeeds");
    }

    /// Opens a payment without a row in the database, and pays it with this card if one is named. Sends no webhook.
    pub fn open_unrecorded_payment(&self, reference: &str, key: &str, card: Option<&str>) {
        let now = platform::clock::now();
        let asked = NewPayment {
            amount_minor: PRICE,
            currency: "EUR".to_owned(),
            reference: reference.to_owned(),
            description: String::new(),
            return_url: "http://127.0.0.1:9/".to_owned(),
            cancel_url: None,
            webhook_url: "http://127.0.0.1:9/".to_owned(),
            expires_at_ms: now.plus_ms(600_000).0,
            token: None,
            protocol: Protocol::Own,
        };
        let id = format!("pay_{}", key.replace([':', '-'], ""));
        self.simulator.ledger.open(key, asked, id.clone(), now.0).expect("the payment is opened");
        if let Some(card) = card {
            self.simulator.pay(&id, cards::by_name(card).expect("a card"), None).expect("the payment is charged");
        }
    }

    fn count_status_query(&self, booking: Uuid) {
        *self.status_queries.lock().unwrap_or_else(PoisonError::into_inner).entry(booking).or_default() += 1;
    }

    fn effect_of(&self, method: &Method, uri: &Uri, body: &Bytes) -> Option<(Uuid, &'static str)> {
        if method != Method::POST {
            return None;
        }
        let of_payment = |id: &str| {
            let payment = self.simulator.ledger.get(id).ok()?;
            Uuid::parse_str(&payment.request.reference).ok()
        };
        let path: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        match path[..] {
            ["v1", "payments"] => {
                let asked: Value = serde_json::from_slice(body).ok()?;
                Some((Uuid::parse_str(asked["reference"].as_str()?).ok()?, "charge"))
            }
            ["v1", "payment_intents"] => {
                let fields: Vec<(String, String)> = serde_urlencoded::from_bytes(body).ok()?;
                let (_, booking) = fields.iter().find(|(name, _)| name == "metadata[booking]")?;
                Some((Uuid::parse_str(booking).ok()?, "charge"))
            }
            ["v1", "payments", id, "void" | "refunds"] if self.is_rejected(of_payment(id)?) => {
                Some((of_payment(id)?, "void_left"))
            }
            ["v1", "payments", id, "void"] => Some((of_payment(id)?, "void_payment")),
            ["v1", "payments", id, "refunds"] => {
                let booking = of_payment(id)?;
                Some((booking, self.injector.pick_armed(booking, &["refund", "refund_part"])))
            }
            _ => None,
        }
    }
}

async fn receive(State(gateway): State<GatewayProxy>, request: Request, next: Next) -> Response {
    let mut changes = gateway.availability.subscribe();
    let received = *changes.borrow_and_update();
    if received != Availability::Up {
        gateway.refused_requests.fetch_add(1, Ordering::SeqCst);
        if received == Availability::Hanging {
            // An error means that the test is over.
            let _ = changes.changed().await;
        }
        return cut();
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_REQUEST_BYTES).await else { return cut() };
    let query = parts.uri.query().unwrap_or_default();
    if let Some(asked) = query.strip_prefix("key=pay:").and_then(|id| Uuid::parse_str(id).ok()) {
        gateway.count_status_query(asked);
    }
    let effect = gateway.effect_of(&parts.method, &parts.uri, &body);
    let request = Request::from_parts(parts, Body::from(body));
    let Some((booking, effect)) = effect else { return next.run(request).await };
    gateway.injector.wait_until_registered(booking).await;
    if effect == "charge" && gateway.is_rejected(booking) {
        let mut refused = next.run(request).await;
        *refused.status_mut() = StatusCode::FORBIDDEN;
        return refused;
    }
    if matches!(effect, "void_payment" | "void_left") && gateway.injector.take_pay_when_voided(booking) {
        gateway.press_pay(booking);
    }
    if !gateway.injector.reaches_service(booking, effect) {
        return cut();
    }
    let calling_server = gateway.injector.calling_server();
    let response = next.run(request).await;
    match gateway.injector.answer(calling_server, &[(booking, effect)]).await {
        AnswerFate::Arrives => response,
        AnswerFate::Lost | AnswerFate::HeldBack => cut(),
    }
}

/// An answer whose connection is closed before its first byte.
fn cut() -> Response {
    let broken = stream::once(async { Err::<Bytes, _>(std::io::Error::other("the connection is cut")) });
    Response::new(Body::from_stream(broken))
}
