//! A buyer who does not give up: whatever dies, the same request is sent again with the same key, to
//! this server or to another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::text;

/// One request may take this long; a charge takes ten seconds at most.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// A request is given up after this long, unless the test sets another time.
const PERSISTENCE: Duration = Duration::from_secs(40);
/// A request that died with its server keeps its key for minutes: after so many answers that it is still
/// running, the same wish is sent with a new one.
const STILL_RUNNING_AT_MOST: u32 = 5;
/// First pause, milliseconds; doubles a few times, with full jitter.
const FIRST_PAUSE_MS: u64 = 40;

/// Somebody with a browser's cookie and a mail address.
#[derive(Clone)]
pub struct Buyer {
    client: reqwest::Client,
    servers: Arc<[String]>,
    cookie: String,
    pub email: String,
    pub show: Uuid,
    /// What they say at checkout about money that comes too late.
    if_late: Option<&'static str>,
    /// The time after which a request is given up.
    persistence: Duration,
}

/// Status and JSON, or why there is none.
pub type Told = Result<(StatusCode, Value), String>;

/// What buyers ask with.
pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().timeout(ANSWER_WITHIN).no_proxy();
    client.redirect(reqwest::redirect::Policy::none()).build().expect("a client")
}

impl Buyer {
    /// One whom nobody has seen.
    pub fn new(client: &reqwest::Client, servers: &Arc<[String]>, show: Uuid, email: String) -> Self {
        let cookie = format!("rowlock_visitor={}", platform::ids::new_id().simple());
        Self {
            client: client.clone(),
            servers: Arc::clone(servers),
            cookie,
            email,
            show,
            if_late: None,
            persistence: PERSISTENCE,
        }
    }

    /// The same buyer with requests repeated without a deadline: the test has its own.
    pub fn without_end(self) -> Self {
        Self { persistence: Duration::MAX, ..self }
    }

    /// The same, saying this about money that comes too late.
    pub fn with_late_wish(self, if_late: Option<&'static str>) -> Self {
        Self { if_late, ..self }
    }

    /// Asks until there is an answer that will not pass.
    pub async fn ask(&self, method: Method, path: &str, body: &Value) -> Told {
        let began = Instant::now();
        let (mut key, mut still_running) = (platform::ids::new_id(), 0);
        let mut attempt = 0;
        loop {
            let told = self.ask_once(&method, path, body, key, attempt).await;
            let is_running = matches!(&told, Ok((_, answer)) if answer["code"] == "still_running");
            match &told {
                Ok((status, _)) if !is_running && !is_passing(*status) => return told,
                Ok((status, answer)) if began.elapsed() > self.persistence => {
                    return Err(format!("{method} {path}: for too long {status} {answer}"));
                }
                Err(cause) if began.elapsed() > self.persistence => return Err(format!("{method} {path}: {cause}")),
                _ => {}
            }
            still_running += u32::from(is_running);
            if still_running == STILL_RUNNING_AT_MOST {
                (key, still_running) = (platform::ids::new_id(), 0);
            }
            let pause = platform::ids::jitter(FIRST_PAUSE_MS << attempt.min(3));
            tokio::time::sleep(Duration::from_millis(pause)).await;
            attempt += 1;
        }
    }

    /// Asks the next server once.
    pub async fn ask_once(&self, method: &Method, path: &str, body: &Value, key: Uuid, attempt: usize) -> Told {
        let server = &self.servers[attempt % self.servers.len()];
        let mut request = self.client.request(method.clone(), format!("{server}{path}"));
        request = request.header("cookie", &self.cookie).header("idempotency-key", key.to_string());
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(|cause| format!("{cause:?}"))?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(|cause| format!("{cause:?}"))?;
        if bytes.is_empty() {
            return Ok((status, Value::Null));
        }
        let body = serde_json::from_slice(&bytes);
        body.map(|body| (status, body)).map_err(|_| format!("{status} {}", String::from_utf8_lossy(&bytes)))
    }

    pub async fn hold(&self, seats: &[u32]) -> Told {
        self.ask(Method::POST, &format!("/api/v1/shows/{}/holds", self.show), &json!({ "seats": seats })).await
    }

    fn wish(&self, hold: &Value) -> Value {
        let buyer = json!({ "name": "Ann Example", "email": self.email });
        let mut wish = json!({ "show": self.show, "hold": hold["id"], "buyer": buyer });
        if let Some(if_late) = self.if_late {
            wish["if_late"] = if_late.into();
        }
        wish
    }

    pub async fn book(&self, hold: &Value) -> Told {
        self.ask(Method::POST, "/api/v1/bookings", &self.wish(hold)).await
    }

    /// What checks out a hold and pays for it in one request.
    pub fn order(&self, hold: &Value, token: Option<&str>) -> Value {
        let mut order = self.wish(hold);
        order["pay"] = json!({ "total_minor": hold["total"]["minor"] });
        if let Some(token) = token {
            order["pay"]["payment_token"] = token.into();
        }
        order
    }

    /// Checks out and pays in one request.
    pub async fn buy(&self, hold: &Value, token: Option<&str>) -> Told {
        self.ask(Method::POST, "/api/v1/bookings", &self.order(hold, token)).await
    }

    pub async fn pay(&self, booking: Uuid, token: Option<&str>) -> Told {
        let body = token.map_or_else(|| json!({}), |token| json!({ "payment_token": token }));
        self.ask(Method::POST, &format!("/api/v1/bookings/{booking}/confirm"), &body).await
    }

    /// Their booking as it stands.
    pub async fn booking(&self, booking: Uuid) -> Result<Value, String> {
        match self.ask(Method::GET, &format!("/api/v1/bookings/{booking}"), &Value::Null).await? {
            (StatusCode::OK, found) => Ok(found),
            (status, problem) => Err(format!("booking {booking}: {status} {problem}")),
        }
    }
}

/// Whether it is worth asking again.
fn is_passing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// The id in an answer.
pub fn id_of(answer: &Value) -> Uuid {
    Uuid::parse_str(text(&answer["id"])).expect("an id")
}
