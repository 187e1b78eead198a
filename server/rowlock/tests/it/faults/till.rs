//! The payment simulator, and a door in front of it that may be shut.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::Response;
use futures::stream;
use serde_json::Value;
use simulator::payment::{Dialect, NewPayment};
use simulator::{Simulator, cards};
use tokio::sync::watch;
use uuid::Uuid;

use super::wires::{Answer, Wires};
use crate::world::{PRICE, simulator_at};

/// Largest request that is passed on, bytes.
const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// How those are received who come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Door {
    /// They are served.
    #[default]
    Open,
    /// They are cut off.
    Shut,
    /// They wait for as long as it is so.
    Hangs,
}

/// A gateway of a test's own.
#[derive(Clone)]
pub struct Till {
    pub url: String,
    pub simulator: Simulator,
    door: Arc<watch::Sender<Door>>,
    /// How often each booking's payment was asked about.
    questions: Arc<Mutex<HashMap<Uuid, u32>>>,
    /// Bookings whose charge is turned away here, though the gateway behind the door has it.
    turned_away: Arc<Mutex<HashSet<Uuid>>>,
    /// How often anybody came while it was not open.
    in_vain: Arc<AtomicU32>,
    wires: Arc<Wires>,
}

impl Till {
    /// Starts one; `wires` say what goes wrong on the way to it.
    pub async fn open(wires: Arc<Wires>) -> Self {
        // A second test of the process finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let simulator = simulator_at(&url);
        let till = Self {
            url,
            simulator: simulator.clone(),
            door: Arc::default(),
            questions: Arc::default(),
            turned_away: Arc::default(),
            in_vain: Arc::default(),
            wires,
        };
        let router = simulator::router(simulator).layer(middleware::from_fn_with_state(till.clone(), receive));
        tokio::spawn(async move { axum::serve(listener, router).await });
        till
    }

    /// From now on they are received so.
    pub fn set_door(&self, door: Door) {
        self.door.send_replace(door);
    }

    /// The charge of this booking is turned away, as if our key was not good for it. The booking goes elsewhere,
    /// and all the same there is a payment here.
    pub fn turn_away(&self, booking: Uuid) {
        self.turned_away.lock().unwrap_or_else(PoisonError::into_inner).insert(booking);
    }

    fn turns_away(&self, booking: Uuid) -> bool {
        self.turned_away.lock().unwrap_or_else(PoisonError::into_inner).contains(&booking)
    }

    /// How often somebody asked how the payment of a booking stands.
    pub fn questions(&self, booking: Uuid) -> u32 {
        let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        questions.get(&booking).copied().unwrap_or(0)
    }

    /// Requests that came while it was not open.
    pub fn in_vain(&self) -> u32 {
        self.in_vain.load(Ordering::SeqCst)
    }

    /// The payer of a booking presses Pay on the gateway's page.
    pub fn press_pay(&self, booking: Uuid) {
        let payment = self.simulator.ledger.get_by_key(&format!("pay:{booking}")).expect("the payment is open");
        let paid = cards::by_name("paid").expect("there is such a card");
        self.simulator.pay(&payment.id, paid, None).expect("the gateway takes it");
    }

    /// Opens a payment that no server has a row of, and pays it with that card if one is named. No webhook arrives.
    pub fn open_unheard(&self, reference: &str, key: &str, card: Option<&str>) {
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
            dialect: Dialect::Own,
        };
        let id = format!("pay_{}", key.replace([':', '-'], ""));
        self.simulator.ledger.open(key, asked, id.clone(), now.0).expect("it is opened");
        if let Some(card) = card {
            self.simulator.pay(&id, cards::by_name(card).expect("a card"), None).expect("it is charged");
        }
    }

    fn note_question(&self, booking: Uuid) {
        *self.questions.lock().unwrap_or_else(PoisonError::into_inner).entry(booking).or_default() += 1;
    }

    /// Whose effect a request is, and which.
    fn effect_of(&self, method: &Method, uri: &Uri, body: &Bytes) -> Option<(Uuid, &'static str)> {
        if method != Method::POST {
            return None;
        }
        let of_payment = |id: &str| {
            let payment = self.simulator.ledger.get(id).ok()?;
            Uuid::parse_str(&payment.asked.reference).ok()
        };
        let path: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
        match path[..] {
            ["v1", "payments"] => {
                let asked: Value = serde_json::from_slice(body).ok()?;
                Some((Uuid::parse_str(asked["reference"].as_str()?).ok()?, "charge"))
            }
            // In Stripe's words.
            ["v1", "payment_intents"] => {
                let fields: Vec<(String, String)> = serde_urlencoded::from_bytes(body).ok()?;
                let (_, booking) = fields.iter().find(|(name, _)| name == "metadata[booking]")?;
                Some((Uuid::parse_str(booking).ok()?, "charge"))
            }
            ["v1", "payments", id, "void" | "refunds"] if self.turns_away(of_payment(id)?) => {
                Some((of_payment(id)?, "void_left"))
            }
            ["v1", "payments", id, "void"] => Some((of_payment(id)?, "void_payment")),
            ["v1", "payments", id, "refunds"] => {
                let booking = of_payment(id)?;
                Some((booking, self.wires.which(booking, &["refund", "refund_part"])))
            }
            _ => None,
        }
    }
}

async fn receive(State(till): State<Till>, request: Request, next: Next) -> Response {
    let mut changes = till.door.subscribe();
    let received = *changes.borrow_and_update();
    if received != Door::Open {
        till.in_vain.fetch_add(1, Ordering::SeqCst);
        if received == Door::Hangs {
            // An error says that the test is over.
            let _ = changes.changed().await;
        }
        return cut();
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_REQUEST_BYTES).await else { return cut() };
    let query = parts.uri.query().unwrap_or_default();
    if let Some(asked) = query.strip_prefix("key=pay:").and_then(|id| Uuid::parse_str(id).ok()) {
        till.note_question(asked);
    }
    let effect = till.effect_of(&parts.method, &parts.uri, &body);
    let request = Request::from_parts(parts, Body::from(body));
    let Some((booking, effect)) = effect else { return next.run(request).await };
    till.wires.introduced(booking).await;
    if effect == "charge" && till.turns_away(booking) {
        let mut refused = next.run(request).await;
        *refused.status_mut() = StatusCode::FORBIDDEN;
        return refused;
    }
    if matches!(effect, "void_payment" | "void_left") && till.wires.pays_now(booking) {
        till.press_pay(booking);
    }
    if !till.wires.lets_through(booking, effect) {
        return cut();
    }
    let asker = till.wires.asker();
    let response = next.run(request).await;
    match till.wires.answer(asker, &[(booking, effect)]).await {
        Answer::Arrives => response,
        Answer::Lost | Answer::KeptBack => cut(),
    }
}

/// An answer that breaks off before its first byte.
fn cut() -> Response {
    let broken = stream::once(async { Err::<Bytes, _>(std::io::Error::other("the connection is cut")) });
    Response::new(Body::from_stream(broken))
}
