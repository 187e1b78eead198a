//! A buyer who repeats each request with the same idempotency key, at the same server or the next one, until a final
//! answer arrives.

use crate::prelude::*;

/// Timeout of one request; a charge takes ten seconds at most.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// A request is retried for this long, unless the test sets another deadline.
const RETRY_FOR: Duration = Duration::from_secs(40);
/// A request that died with its server keeps its key for minutes. After this many `still_running` answers, the body is
/// sent with a new key.
const MAX_STILL_RUNNING: u32 = 5;
/// First back-off, in milliseconds; doubles up to three times, with full jitter.
const FIRST_BACKOFF_MS: u64 = 40;

#[derive(Clone)]
pub struct Buyer {
    client: reqwest::Client,
    servers: Arc<[String]>,
    cookie: String,
    pub email: String,
    pub show: Uuid,
    /// `if_late` of the checkout: what happens to a payment that arrives too late.
    if_late: Option<&'static str>,
    retry_for: Duration,
}

/// Status and JSON of an answer, or the cause of a failed request.
pub type RequestResult = Result<(StatusCode, Value), String>;

pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().timeout(ANSWER_WITHIN).no_proxy();
    client.redirect(reqwest::redirect::Policy::none()).build().expect("a client")
}

impl Buyer {
    pub fn new(client: &reqwest::Client, servers: &Arc<[String]>, show: Uuid, email: String) -> Self {
        let cookie = format!("rowlock_visitor={}", new_id().simple());
        Self {
            client: client.clone(),
            servers: Arc::clone(servers),
            cookie,
            email,
            show,
            if_late: None,
            retry_for: RETRY_FOR,
        }
    }

    /// The same buyer with retries without a deadline, for tests that have their own.
    pub fn without_deadline(self) -> Self {
        Self { retry_for: Duration::MAX, ..self }
    }

    pub fn with_late_payment_choice(self, if_late: Option<&'static str>) -> Self {
        Self { if_late, ..self }
    }

    pub async fn send_with_retries(&self, method: Method, path: &str, body: &Value) -> RequestResult {
        let began = Instant::now();
        let (mut key, mut still_running) = (new_id(), 0);
        let mut attempt = 0;
        loop {
            let result = self.send_once(&method, path, body, key, attempt).await;
            let is_running = matches!(&result, Ok((_, answer)) if answer["code"] == "still_running");
            match &result {
                Ok((status, _)) if !is_running && !is_retryable(*status) => return result,
                Ok((status, answer)) if began.elapsed() > self.retry_for => {
                    return Err(format!("{method} {path}: retries exhausted, last answer {status} {answer}"));
                }
                Err(cause) if began.elapsed() > self.retry_for => return Err(format!("{method} {path}: {cause}")),
                _ => {}
            }
            still_running += u32::from(is_running);
            if still_running == MAX_STILL_RUNNING {
                (key, still_running) = (new_id(), 0);
            }
            let backoff_ms = platform::ids::jitter(FIRST_BACKOFF_MS << attempt.min(3));
            tokio::time::sleep(Duration::from_millis(backoff_ms)).await;
            attempt += 1;
        }
    }

    /// Sends a request once, to the server whose turn it is at this attempt.
    pub async fn send_once(
        &self,
        method: &Method,
        path: &str,
        body: &Value,
        key: Uuid,
        attempt: usize,
    ) -> RequestResult {
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

    pub async fn hold(&self, seats: &[u32]) -> RequestResult {
        self.send_with_retries(Method::POST, &format!("/api/v1/shows/{}/holds", self.show), &json!({ "seats": seats }))
            .await
    }

    fn checkout_body(&self, hold: &Value) -> Value {
        let buyer = json!({ "name": "Ann Example", "email": self.email });
        let mut body = json!({ "show": self.show, "hold": hold["id"], "buyer": buyer });
        if let Some(if_late) = self.if_late {
            body["if_late"] = if_late.into();
        }
        body
    }

    pub async fn book(&self, hold: &Value) -> RequestResult {
        self.send_with_retries(Method::POST, "/api/v1/bookings", &self.checkout_body(hold)).await
    }

    pub fn purchase_body(&self, hold: &Value, token: Option<&str>) -> Value {
        let mut body = self.checkout_body(hold);
        body["pay"] = json!({ "total_minor": hold["total"]["minor"] });
        if let Some(token) = token {
            body["pay"]["payment_token"] = token.into();
        }
        body
    }

    pub async fn buy(&self, hold: &Value, token: Option<&str>) -> RequestResult {
        self.send_with_retries(Method::POST, "/api/v1/bookings", &self.purchase_body(hold, token)).await
    }

    pub async fn pay(&self, booking: Uuid, token: Option<&str>) -> RequestResult {
        let body = token.map_or_else(|| json!({}), |token| json!({ "payment_token": token }));
        self.send_with_retries(Method::POST, &format!("/api/v1/bookings/{booking}/confirm"), &body).await
    }

    pub async fn booking(&self, booking: Uuid) -> Result<Value, String> {
        match self.send_with_retries(Method::GET, &format!("/api/v1/bookings/{booking}"), &Value::Null).await? {
            (StatusCode::OK, found) => Ok(found),
            (status, problem) => Err(format!("booking {booking}: {status} {problem}")),
        }
    }
}

fn is_retryable(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

pub fn id_of(answer: &Value) -> Uuid {
    Uuid::parse_str(text(&answer["id"])).expect("an id")
}
