//! A call to a gateway over HTTP: a deadline for the whole call and for each attempt, few attempts, and pauses with full
//! jitter. All calls are idempotent.
//!
//! The result distinguishes what is *not* known afterwards. An attempt that failed while connecting was not sent; any other
//! attempt without an answer may have taken effect.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

use super::gateway::GatewayError;
use platform::{ids, telemetry};

/// Deadline of connecting.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// Maximum number of attempts per call.
pub(super) const MAX_ATTEMPTS: u32 = 3;
/// Half of the maximum pause before the first retry, milliseconds. Pauses have full jitter; their maximum doubles.
const BACKOFF_BASE_MS: u64 = 100;
/// Maximum size of an answer, bytes.
pub(super) const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Maximum size of a ledger page, bytes: a hundred objects of several thousand each.
pub(super) const MAX_PAGE_BYTES: usize = 1024 * 1024;
/// Maximum length of a gateway's text in our log, characters.
const MAX_LOGGED_CHARS: usize = 200;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Deadlines of calls to a gateway.
#[derive(Clone, Copy, Debug)]
pub struct CallDeadlines {
    /// Deadline of one attempt: short enough that a lost answer is retried while the buyer waits.
    pub per_attempt: Duration,
    /// Deadline of a call with all its attempts.
    pub in_total: Duration,
}

impl Default for CallDeadlines {
    fn default() -> Self {
        Self { per_attempt: Duration::from_secs(4), in_total: Duration::from_secs(10) }
    }
}

/// A gateway's parsed answer.
pub(super) enum ParsedAnswer<T> {
    /// The answer.
    Answer(T),
    /// The gateway refused the call finally.
    Refused {
        /// The gateway's code.
        code: String,
        /// The gateway's message.
        message: String,
    },
    /// No usable answer; a retry may have one.
    Retryable(String),
    /// No usable answer, and a retry would have none either.
    Unknown(String),
}

impl<T: DeserializeOwned> ParsedAnswer<T> {
    /// Parses the body of a 2xx answer.
    pub(super) fn of_success(status: StatusCode, body: &[u8]) -> Self {
        match serde_json::from_slice(body) {
            Ok(answer) => Self::Answer(answer),
            Err(cause) => Self::Retryable(format!("{status} with an unreadable body: {cause}")),
        }
    }

    /// A refusal whose body is not in the gateway's format.
    pub(super) fn refused_unreadably(body: &[u8]) -> Self {
        Self::Refused { code: "unreadable".to_owned(), message: String::from_utf8_lossy(body).into_owned() }
    }
}

/// The cause of a failure: the answer is not in the gateway's API, or reports a failure of the gateway.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UnexpectedAnswer(String);

/// The failure of one attempt, and true if it may be retried.
type AttemptFailure = (GatewayError, bool);

/// The HTTP client of one gateway, with a connection pool.
#[derive(Clone)]
pub(super) struct GatewayClient {
    http: Client,
    name: &'static str,
    deadlines: CallDeadlines,
}

impl GatewayClient {
    /// A client of the gateway `name`; `beside_us`: it runs on our network, and is called without a proxy.
    pub(super) fn new(name: &'static str, deadlines: CallDeadlines, beside_us: bool) -> anyhow::Result<Self> {
        // One crypto provider for the whole process; a second installation has no effect.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder()
            .connect_timeout(CONNECT_DEADLINE)
            .timeout(deadlines.in_total)
            // A gateway that redirects a charge elsewhere is not our gateway.
            .redirect(reqwest::redirect::Policy::none());
        let http = if beside_us { http.no_proxy() } else { http };
        Ok(Self { http: http.build()?, name, deadlines })
    }

    /// The reqwest client, which builds the requests.
    pub(super) const fn http(&self) -> &Client {
        &self.http
    }

    /// Sends a request, with retries, until it has a final answer or is out of attempts or time.
    pub(super) async fn ask<T>(
        &self,
        request: RequestBuilder,
        read: impl Fn(StatusCode, &HeaderMap, &[u8]) -> ParsedAnswer<T>,
    ) -> Result<T, GatewayError> {
        self.ask_up_to(MAX_ANSWER_BYTES, request, read).await
    }

    /// The same for an answer of at most `max_bytes`.
    pub(super) async fn ask_up_to<T>(
        &self,
        max_bytes: usize,
        request: RequestBuilder,
        read: impl Fn(StatusCode, &HeaderMap, &[u8]) -> ParsedAnswer<T>,
    ) -> Result<T, GatewayError> {
        let deadline = Instant::now() + self.deadlines.in_total;
        let mut maybe_done = false;
        let mut attempts = 1;
        loop {
            let attempt = request
                .try_clone()
                .ok_or_else(|| GatewayError::unreachable("a streamed request cannot be repeated"))?;
            let until = deadline.min(Instant::now() + self.deadlines.per_attempt);
            let (failure, again) = match timeout_at(until, send_once(attempt, max_bytes, &read)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(elapsed) => unknown(elapsed),
            };
            let cause = match failure {
                GatewayError::NotSent(cause) => cause,
                GatewayError::Unreachable(cause) => {
                    maybe_done = true;
                    cause
                }
                answered @ (GatewayError::Refused { .. } | GatewayError::Undecided(_)) => return Err(answered),
            };
            let last = !again || attempts == MAX_ATTEMPTS;
            let pause = Duration::from_millis(ids::jitter(BACKOFF_BASE_MS << attempts));
            if last || timeout_at(deadline, sleep(pause)).await.is_err() {
                return Err(if maybe_done { GatewayError::Unreachable(cause) } else { GatewayError::NotSent(cause) });
            }
            tracing::warn!(%cause, attempts, gateway = self.name, "call to the gateway failed; retrying");
            attempts += 1;
        }
    }
}

/// The failure of an attempt that may have taken effect and may be retried.
fn unknown(cause: impl Into<Cause>) -> AttemptFailure {
    (GatewayError::unreachable(cause), true)
}

async fn send_once<T>(
    request: RequestBuilder,
    max_bytes: usize,
    read: &impl Fn(StatusCode, &HeaderMap, &[u8]) -> ParsedAnswer<T>,
) -> Result<T, AttemptFailure> {
    let request = match telemetry::traces::trace_parent_header() {
        Some((name, value)) => request.header(name, value),
        None => request,
    };
    let sent = request.send().await;
    let mut response =
        sent.map_err(|cause| if cause.is_connect() { (GatewayError::not_sent(cause), true) } else { unknown(cause) })?;
    let status = response.status();
    let headers = response.headers().clone();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unknown)? {
        body.extend_from_slice(&chunk);
        if body.len() > max_bytes {
            return Err(unknown(UnexpectedAnswer(format!("{status} with more than {max_bytes} bytes"))));
        }
    }
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err((GatewayError::not_sent(UnexpectedAnswer(format!("turned away with {status}"))), false));
    }
    match read(status, &headers, &body) {
        ParsedAnswer::Answer(answer) => Ok(answer),
        ParsedAnswer::Retryable(why) => Err(unknown(UnexpectedAnswer(why))),
        ParsedAnswer::Unknown(why) => Err((GatewayError::unreachable(UnexpectedAnswer(why)), false)),
        ParsedAnswer::Refused { code, message } => {
            let message = message.chars().take(MAX_LOGGED_CHARS).collect();
            Err((GatewayError::Refused { status: status.as_u16(), code, message }, false))
        }
    }
}
