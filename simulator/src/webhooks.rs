//! Telling merchants what happened: signed, repeated until they say yes, bounded.
//!
//! `Payment-Signature: t=<unix seconds>,v1=<hex HMAC-SHA-256 of "<t>.<raw body>">`, made anew for
//! every attempt because merchants refuse old ones; for payments in Stripe's words the header has its
//! name, and the body its shape. A place in the queue is taken *before* a payment
//! changes, so that nothing is charged that could not be told. Events of one payment may overtake
//! each other, as everywhere.

use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use reqwest::Client;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::clock;
use crate::payment::{Payment, Status};

/// Name of the signature's header.
pub const SIGNATURE_HEADER: &str = "payment-signature";
/// Most events not yet delivered; beyond that new payments are refused for a while.
const MAX_UNDELIVERED: usize = 10_000;
/// Deliveries under way at once.
const MAX_UNDER_WAY: usize = 256;
/// Attempts before an event is given up.
const MAX_ATTEMPTS: u32 = 8;
/// Longest wait between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// How long a merchant may take to answer.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// How long connecting may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// The money is there.
    #[serde(rename = "payment.succeeded")]
    PaymentSucceeded,
    /// It will not come.
    #[serde(rename = "payment.failed")]
    PaymentFailed,
    /// Called off by the merchant.
    #[serde(rename = "payment.voided")]
    PaymentVoided,
    /// Money went back.
    #[serde(rename = "refund.succeeded")]
    RefundSucceeded,
}

/// An event: the webhook's body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its id, the same at every attempt.
    pub id: String,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// When, milliseconds since 1970.
    pub created_ms: i64,
    /// The payment, as it was then.
    pub payment: EventPayment,
}

/// The payment inside an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPayment {
    /// Our id.
    pub id: String,
    /// The merchant's name for it.
    pub reference: String,
    /// How much, minor units.
    pub amount_minor: i64,
    /// ISO 4217 code.
    pub currency: String,
    /// Where it stands.
    pub status: Status,
    /// How much went back.
    pub refunded_minor: i64,
    /// Why it failed, a stable word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Event {
    /// That `kind` happened to `payment` at `created_ms`.
    #[must_use]
    pub fn new(kind: EventKind, payment: &Payment, created_ms: i64) -> Self {
        Self {
            id: clock::new_id("evt"),
            kind,
            created_ms,
            payment: EventPayment {
                id: payment.id.clone(),
                reference: payment.asked.reference.clone(),
                amount_minor: payment.amount_minor(),
                currency: payment.asked.currency.clone(),
                status: payment.status,
                refunded_minor: payment.refunded_minor(),
                failure: payment.failure.map(str::to_owned),
            },
        }
    }

    /// Ready to be sent to the merchant's address.
    #[must_use]
    pub fn letter(&self, url: &str) -> Letter {
        Letter {
            url: url.to_owned(),
            body: serde_json::to_string(self).expect("an event is plain data"),
            event_id: self.id.clone(),
            header: SIGNATURE_HEADER,
        }
    }
}

/// An event on its way.
#[derive(Clone, Debug)]
pub struct Letter {
    /// Where to.
    pub url: String,
    /// The bytes that are signed.
    pub body: String,
    /// The event's id, for the log.
    pub event_id: String,
    /// Name of the signature's header.
    pub header: &'static str,
}

/// The header's value for these bytes, signed at `now_s` seconds since 1970.
#[must_use]
pub fn sign(secret: &str, now_s: i64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(now_s.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    format!("t={now_s},v1={}", hex::encode(mac.finalize().into_bytes()))
}

/// A place in the queue of undelivered events.
#[derive(Debug)]
pub struct Place {
    _permit: OwnedSemaphorePermit,
}

/// Delivers events; cheap to clone.
#[derive(Clone)]
pub struct Courier {
    http: Client,
    secret: Arc<str>,
    places: Arc<Semaphore>,
    lines: Arc<Semaphore>,
    backoff_base: Duration,
}

impl Courier {
    /// A courier that signs with `secret`; the first repeat comes within `backoff_base`.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up.
    pub fn new(secret: &str, backoff_base: Duration) -> anyhow::Result<Self> {
        // One crypto provider for the whole process; whoever comes second finds it in place.
        let _already_there = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder()
            .connect_timeout(CONNECT_DEADLINE)
            .timeout(ANSWER_DEADLINE)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()?;
        Ok(Self {
            http,
            secret: secret.into(),
            places: Arc::new(Semaphore::new(MAX_UNDELIVERED)),
            lines: Arc::new(Semaphore::new(MAX_UNDER_WAY)),
            backoff_base,
        })
    }

    /// A place, if one is free now.
    #[must_use]
    pub fn try_place(&self) -> Option<Place> {
        Arc::clone(&self.places).try_acquire_owned().ok().map(|permit| Place { _permit: permit })
    }

    /// True if no event is on its way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.places.available_permits() == MAX_UNDELIVERED
    }

    /// A place, as soon as one is free.
    pub async fn place(&self) -> Place {
        let permit = Arc::clone(&self.places).acquire_owned().await.expect("the queue is never closed");
        Place { _permit: permit }
    }

    /// Delivers `letters` in the background, one after the other, each `copies` times, the first after
    /// `delay`.
    pub fn send(&self, place: Place, letters: Vec<Letter>, copies: u32, delay: Duration) {
        let courier = self.clone();
        tokio::spawn(async move {
            sleep(delay).await;
            for letter in &letters {
                for _ in 0..copies {
                    courier.deliver(letter).await;
                }
            }
            drop(place);
        });
    }

    async fn deliver(&self, letter: &Letter) {
        let event_id = letter.event_id.as_str();
        for attempt in 1..=MAX_ATTEMPTS {
            let line = self.lines.acquire().await.expect("the lines are never closed");
            let signature = sign(&self.secret, clock::now_ms() / 1_000, letter.body.as_bytes());
            let sent = self
                .http
                .post(&letter.url)
                .header("content-type", "application/json")
                .header(letter.header, signature)
                .body(letter.body.clone())
                .send()
                .await;
            drop(line);
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

    /// Full jitter: anything up to a bound that doubles, so that many events do not come back at once.
    fn backoff(&self, attempt: u32) -> Duration {
        let bound = self.backoff_base.saturating_mul(1 << (attempt - 1)).min(MAX_BACKOFF);
        Duration::from_millis(clock::jitter(u64::try_from(bound.as_millis()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_hmac_sha_256_over_time_dot_body() {
        // Computed with: printf '1795000000.hello' | openssl dgst -sha256 -hmac secret
        let expected = "t=1795000000,v1=5386974c8d502619b331b6c9d13406991398c847eba91e921e6f93a6b6edcca9";
        assert_eq!(sign("secret", 1_795_000_000, b"hello"), expected);
    }
}
