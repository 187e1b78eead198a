//! The payment simulator as a [`Gateway`]: its HTTP API from our side.
//!
//! Every call has a deadline. Every call is repeated on a passing failure, and may be: each is
//! idempotent there, the charge and the refund by the key they carry, void and status by nature.

use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use domain::money::{Currency, Money};
use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use super::gateway::{Charge, ChargeAnswer, Gateway, GatewayError, GatewayPayment, PaymentStatus, VoidAnswer, pay_key};
use crate::config::Config;
use crate::ids;

/// Its name, also in the address of its webhooks.
pub const NAME: &str = "simulator";
/// How long connecting may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// How long one question may take in all, repeats included.
const TOTAL_DEADLINE: Duration = Duration::from_secs(10);
/// Attempts at one question.
const MAX_ATTEMPTS: u32 = 3;
/// First retry comes within this time, each further one within twice the one before, milliseconds.
const BACKOFF_BASE_MS: u64 = 100;
/// Largest answer we read, bytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Longest piece of a foreign text that goes into our log, characters.
const MAX_LOGGED_CHARS: usize = 200;

/// The client. One per process: it keeps connections open.
#[derive(Clone)]
pub struct SimulatorGateway {
    http: Client,
    base: Url,
    api_key: String,
    webhook_url: String,
}

#[derive(Serialize)]
struct NewPayment<'a> {
    amount_minor: i64,
    currency: &'a str,
    reference: String,
    description: String,
    return_url: &'a str,
    webhook_url: &'a str,
    expires_at_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

#[derive(Serialize)]
struct NewRefund {
    amount_minor: i64,
}

#[derive(Debug, Deserialize)]
struct Payment {
    id: String,
    status: String,
    page_url: String,
    amount_minor: i64,
    currency: Currency,
    refunded_minor: i64,
    failure: Option<String>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Deserialize)]
struct ErrorDetail {
    code: String,
    message: String,
}

/// The gateway said something its API does not have.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unexpected(String);

fn unreachable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> GatewayError {
    GatewayError::Unreachable(cause.into())
}

impl SimulatorGateway {
    /// The client the settings ask for.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn from_config(config: &Config) -> anyhow::Result<Self> {
        anyhow::ensure!(
            config.simulator_webhook_secret.iter().any(|secret| !secret.is_empty()),
            "SIMULATOR_WEBHOOK_SECRET is empty: no webhook could be believed"
        );
        Self::new(&config.simulator_url, &config.simulator_api_key, &config.public_url).context("SIMULATOR_URL")
    }

    /// A client of the simulator at `base_url`; its webhooks come back to us under `public_url`.
    ///
    /// # Errors
    /// When `base_url` is not an address, or TLS cannot be set up.
    pub fn new(base_url: &str, api_key: &str, public_url: &str) -> anyhow::Result<Self> {
        // One crypto provider for the whole process; whoever comes second finds it in place.
        let _already_there = rustls::crypto::ring::default_provider().install_default();
        let base = Url::parse(&format!("{}/", base_url.trim_end_matches('/')))?;
        let http = Client::builder()
            .connect_timeout(CONNECT_DEADLINE)
            .timeout(TOTAL_DEADLINE)
            // A gateway that redirects a charge elsewhere is not our gateway.
            .redirect(reqwest::redirect::Policy::none())
            // It runs beside us, also where outside calls must go through a proxy.
            .no_proxy()
            .build()?;
        let webhook_url = format!("{}/api/v1/webhooks/payments/{NAME}", public_url.trim_end_matches('/'));
        Ok(Self { http, base, api_key: api_key.to_owned(), webhook_url })
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, GatewayError> {
        let url = self.base.join(path).map_err(unreachable)?;
        Ok(self.http.request(method, url).bearer_auth(&self.api_key))
    }

    /// Asks until there is a definite answer, the attempts are used up or the time is.
    async fn ask(&self, request: RequestBuilder) -> Result<Payment, GatewayError> {
        let deadline = Instant::now() + TOTAL_DEADLINE;
        let mut attempt = 1;
        loop {
            let this_try = request.try_clone().ok_or_else(|| unreachable("a streamed request cannot be repeated"))?;
            let outcome = match timeout_at(deadline, answer_of(this_try)).await {
                Ok(outcome) => outcome,
                Err(elapsed) => return Err(unreachable(elapsed)),
            };
            match outcome {
                Err(GatewayError::Unreachable(cause)) if attempt < MAX_ATTEMPTS => {
                    tracing::warn!(%cause, attempt, gateway = NAME, "a call to the gateway failed and is repeated");
                    let pause = Duration::from_millis(ids::jitter(BACKOFF_BASE_MS << attempt));
                    if timeout_at(deadline, sleep(pause)).await.is_err() {
                        return Err(GatewayError::Unreachable(cause));
                    }
                    attempt += 1;
                }
                settled => return settled,
            }
        }
    }

    /// The payment of a booking, found by its key.
    async fn find(&self, booking: Uuid) -> Result<Option<Payment>, GatewayError> {
        match self.ask(self.request(Method::GET, &format!("v1/payments?key={}", pay_key(booking)))?).await {
            Ok(payment) => Ok(Some(payment)),
            Err(GatewayError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// One attempt. 4xx is a definite no; anything else that is not the expected document is no answer.
async fn answer_of(request: RequestBuilder) -> Result<Payment, GatewayError> {
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER_BYTES {
            return Err(unreachable(Unexpected(format!("{status} with more than {MAX_ANSWER_BYTES} bytes"))));
        }
    }
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(unreachable);
    }
    let passing = status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::REQUEST_TIMEOUT;
    if status.is_client_error() && !passing {
        let (code, message) = match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => (body.error.code, body.error.message),
            Err(_) => ("unreadable".to_owned(), String::from_utf8_lossy(&body).into_owned()),
        };
        let message = message.chars().take(MAX_LOGGED_CHARS).collect();
        return Err(GatewayError::Refused { status: status.as_u16(), code, message });
    }
    Err(unreachable(Unexpected(format!("the gateway answered {status}"))))
}

impl Payment {
    fn status(&self) -> Result<PaymentStatus, GatewayError> {
        Ok(match self.status.as_str() {
            "requires_payer" => PaymentStatus::Pending { pay_url: Some(self.page_url.clone()) },
            "pending" => PaymentStatus::Pending { pay_url: None },
            "succeeded" => PaymentStatus::Succeeded { amount: Money::new(self.amount_minor, self.currency) },
            "failed" => PaymentStatus::Failed { why: self.failure.clone().unwrap_or_else(|| "unspecified".to_owned()) },
            "voided" => PaymentStatus::Voided,
            other => return Err(unreachable(Unexpected(format!("a payment of the unknown status {other:?}")))),
        })
    }
}

#[async_trait]
impl Gateway for SimulatorGateway {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn charge(&self, charge: &Charge) -> Result<ChargeAnswer, GatewayError> {
        let body = NewPayment {
            amount_minor: charge.amount.minor,
            currency: charge.amount.currency.code(),
            reference: charge.booking.to_string(),
            description: format!("{} · {}", charge.description, charge.reference),
            return_url: &charge.return_url,
            webhook_url: &self.webhook_url,
            expires_at_ms: charge.expires_at.0,
            token: charge.token.as_deref(),
        };
        let request = self.request(Method::POST, "v1/payments")?;
        let payment = self.ask(request.header("idempotency-key", pay_key(charge.booking)).json(&body)).await?;
        Ok(ChargeAnswer { status: payment.status()?, gateway_ref: payment.id })
    }

    async fn status(&self, booking: Uuid) -> Result<Option<GatewayPayment>, GatewayError> {
        let Some(payment) = self.find(booking).await? else { return Ok(None) };
        Ok(Some(GatewayPayment {
            status: payment.status()?,
            refunded: Money::new(payment.refunded_minor, payment.currency),
            gateway_ref: payment.id,
        }))
    }

    async fn void(&self, booking: Uuid) -> Result<VoidAnswer, GatewayError> {
        let Some(payment) = self.find(booking).await? else { return Ok(VoidAnswer::Unknown) };
        match self.ask(self.request(Method::POST, &format!("v1/payments/{}/void", payment.id))?).await {
            Ok(_) => Ok(VoidAnswer::Voided),
            Err(GatewayError::Refused { status: 409, code, .. }) if code == "already_charged" => {
                Ok(VoidAnswer::AlreadyCharged(Money::new(payment.amount_minor, payment.currency)))
            }
            Err(error) => Err(error),
        }
    }

    async fn refund(&self, booking: Uuid, amount: Money, key: &str) -> Result<(), GatewayError> {
        let refuse = |code: &str, message: &str| GatewayError::Refused {
            status: StatusCode::UNPROCESSABLE_ENTITY.as_u16(),
            code: code.to_owned(),
            message: message.to_owned(),
        };
        let payment =
            self.find(booking).await?.ok_or_else(|| refuse("unknown_payment", "there is no payment to refund"))?;
        if payment.currency != amount.currency {
            return Err(refuse("currency_differs", "the payment was made in another currency"));
        }
        let request = self.request(Method::POST, &format!("v1/payments/{}/refunds", payment.id))?;
        let body = NewRefund { amount_minor: amount.minor };
        self.ask(request.header("idempotency-key", key).json(&body)).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests;
