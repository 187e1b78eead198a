//! Webhooks: signed, retried until the merchant accepts them, in a bounded queue.
//!
//! `Payment-Signature: t=<unix seconds>,v1=<hex HMAC-SHA-256 of "<t>.<raw body>">`, computed for every
//! attempt because merchants refuse old signatures. Payments of Stripe's API use Stripe's header name and
//! body. A queue slot is acquired *before* a payment changes, so that every charge can be reported.
//! Events of one payment may arrive out of order.

use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use reqwest::Client;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::clock;
use crate::ledger::{LedgerError, LedgerResult};
use crate::payment::{Payment, Status};

/// Name of the signature header.
pub const SIGNATURE_HEADER: &str = "payment-signature";
/// Capacity of the queue of undelivered events; beyond it new payments are refused.
const MAX_UNDELIVERED: usize = 10_000;
/// Maximum number of concurrent deliveries.
const MAX_CONCURRENT: usize = 256;
/// Maximum number of attempts per event.
const MAX_ATTEMPTS: u32 = 8;
/// Maximum back-off between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Timeout of an answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// Timeout of a connection attempt.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// The payment was charged.
    #[serde(rename = "payment.succeeded")]
    PaymentSucceeded,
    /// The payment failed.
    #[serde(rename = "payment.failed")]
    PaymentFailed,
    /// The merchant voided the payment.
    #[serde(rename = "payment.voided")]
    PaymentVoided,
    /// A refund was made.
    #[serde(rename = "refund.succeeded")]
    RefundSucceeded,
}

/// An event: the body of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayEvent {
    /// The id, the same for every attempt.
    pub id: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// Time of the event, milliseconds since 1970.
    pub created_ms: i64,
    /// The payment at that time.
    pub payment: EventPayment,
}

/// The payment in an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPayment {
    /// The payment id.
    pub id: String,
    /// The merchant's reference.
    pub reference: String,
    /// Amount in minor units.
    pub amount_minor: i64,
    /// ISO 4217 code.
    pub currency: String,
    /// The status.
    pub status: Status,
    /// Amount refunded, minor units.
    pub refunded_minor: i64,
    /// Stable failure code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl GatewayEvent {
    /// Creates the event `kind` of `payment` at `created_ms`.
    #[must_use]
    pub fn new(kind: EventKind, payment: &Payment, created_ms: i64) -> Self {
        Self {
            id: clock::new_id("evt"),
            kind,
            created_ms,
            payment: EventPayment {
                id: payment.id.clone(),
                reference: payment.request.reference.clone(),
                amount_minor: payment.amount_minor(),
                currency: payment.request.currency.clone(),
                status: payment.status,
                refunded_minor: payment.refunded_minor(),
                failure: payment.failure.map(str::to_owned),
            },
        }
    }

    /// Builds the webhook request to the merchant's URL.
    #[must_use]
    pub fn to_webhook(&self, url: &str) -> WebhookRequest {
        WebhookRequest {
            url: url.to_owned(),
            body: serde_json::to_string(self).expect("an event is plain data"),
            event_id: self.id.clone(),
            header: SIGNATURE_HEADER,
        }
    }
}

/// A webhook request to send.
#[derive(Clone, Debug)]
pub struct WebhookRequest {
    /// The URL.
    pub url: String,
    /// The signed body.
    pub body: String,
    /// The event id, for the log.
    pub event_id: String,
    /// Name of the signature header.
    pub header: &'static str,
}

/// Computes the signature header of a body, signed at `now_s` seconds since 1970.
#[must_use]
pub fn sign(secret: &str, now_s: i64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(now_s.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    format!("t={now_s},v1={}", hex::encode(mac.finalize().into_bytes()))
}

/// Creates an HTTP client with deadlines.
///
/// # Errors
/// When the client cannot be created.
pub(crate) fn http_client() -> anyhow::Result<Client> {
    // One crypto provider for the whole process; later installations fail harmlessly.
    let _already_there = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .connect_timeout(CONNECT_DEADLINE)
        .timeout(ANSWER_DEADLINE)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    Ok(client.build()?)
}

/// A slot in the queue of undelivered events.
pub type QueueSlot = OwnedSemaphorePermit;

/// Delivers webhooks; cheap to clone.
#[derive(Clone)]
pub struct WebhookSender {
    http: Client,
    secret: Arc<str>,
    slots: Arc<Semaphore>,
    deliveries: Arc<Semaphore>,
    backoff_base: Duration,
}

impl WebhookSender {
    /// Creates a sender that signs with `secret`; the first retry follows within `backoff_base`.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn new(secret: &str, backoff_base: Duration) -> anyhow::Result<Self> {
        Ok(Self {
            http: http_client()?,
            secret: secret.into(),
            slots: Arc::new(Semaphore::new(MAX_UNDELIVERED)),
            deliveries: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            backoff_base,
        })
    }

    /// Acquires a slot.
    ///
    /// # Errors
    /// [`LedgerError::QueueFull`].
    pub fn try_acquire_slot(&self) -> LedgerResult<QueueSlot> {
        Arc::clone(&self.slots).try_acquire_owned().map_err(|_| LedgerError::QueueFull)
    }

    /// Returns `true` when the queue is empty.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.slots.available_permits() == MAX_UNDELIVERED
    }

    /// Waits for a free slot.
    pub async fn acquire_slot(&self) -> QueueSlot {
        Arc::clone(&self.slots).acquire_owned().await.expect("the queue is never closed")
    }

    /// Delivers `requests` in the background, in order, each `copies` times, starting after `delay`.
    pub fn send(&self, slot: QueueSlot, requests: Vec<WebhookRequest>, copies: u32, delay: Duration) {
        let sender = self.clone();
        tokio::spawn(async move {
            sleep(delay).await;
            for request in &requests {
                for _ in 0..copies {
                    sender.deliver(request).await;
                }
            }
            drop(slot);
        });
    }

    async fn deliver(&self, request: &WebhookRequest) {
        let event_id = request.event_id.as_str();
        for attempt in 1..=MAX_ATTEMPTS {
            let permit = self.deliveries.acquire().await.expect("the semaphore is never closed");
            let signature = sign(&self.secret, clock::now_ms() / 1_000, request.body.as_bytes());
            let sent = self
                .http
                .post(&request.url)
                .header("content-type", "application/json")
                .header(request.header, signature)
                .body(request.body.clone())
                .send()
                .await;
            drop(permit);
            match sent {
                Ok(response) if response.status().is_success() => return,
                Ok(response) => tracing::warn!(event_id, attempt, status = %response.status(), "webhook not accepted"),
                Err(error) => tracing::warn!(event_id, attempt, %error, "webhook not delivered"),
            }
            if attempt < MAX_ATTEMPTS {
                sleep(self.backoff(attempt)).await;
            }
        }
        tracing::error!(event_id, attempts = MAX_ATTEMPTS, "webhook given up");
    }

    /// Draws a back-off with full jitter below a doubling bound, so that retries spread out.
    fn backoff(&self, attempt: u32) -> Duration {
        let bound = self.backoff_base.saturating_mul(1 << (attempt - 1)).min(MAX_BACKOFF);
        Duration::from_millis(clock::jitter(u64::try_from(bound.as_millis()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_hmac_sha_256_of_time_dot_body() {
        // Computed with: printf '1795000000.hello' | openssl dgst -sha256 -hmac secret
        let expected = "t=1795000000,v1=5386974c8d502619b331b6c9d13406991398c847eba91e921e6f93a6b6edcca9";
        assert_eq!(sign("secret", 1_795_000_000, b"hello"), expected);
    }
}
