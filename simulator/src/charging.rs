//! Charging: the bank's first verdict on a payment, its later verdict, and the webhooks. The ledger
//! decides; this module orders the steps and waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use crate::cards::{AnswerTiming, BankVerdict, Card, WebhookDelivery};
use crate::ledger::{Ledger, LedgerOutcome, LedgerResult, MAX_PAYMENTS, Movement};
use crate::payment::{CANCELLED_BY_PAYER, Payment, Protocol, RefundStatus, Status};
use crate::webhooks::{EventKind, GatewayEvent, QueueSlot, WebhookRequest, WebhookSender};
use crate::{clock, stripe};

/// Copies of an event for [`WebhookDelivery::Thrice`].
const THRICE: u32 = 3;
/// Time between the first and the second try, for [`WebhookDelivery::Reordered`], milliseconds.
const FIRST_TRY_AGO_MS: i64 = 1_000;

/// Settings of the simulator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The key merchants send as a bearer token.
    pub api_key: String,
    /// The secret that signs webhooks.
    pub webhook_secret: String,
    /// Base URL of the pages, without a slash at the end.
    pub public_url: String,
    /// The merchant's name on the page.
    pub merchant: String,
    /// Time until a pending payment is decided.
    pub pending: Duration,
    /// Delay of the slow card's answer.
    pub slow: Duration,
    /// Delay of the answer that a client is meant to give up on.
    pub no_answer: Duration,
    /// Delay of a late webhook.
    pub late: Duration,
    /// Maximum back-off before the first retry of a webhook.
    pub backoff_base: Duration,
}

/// The simulator service; cheap to clone.
#[derive(Clone)]
pub struct Simulator {
    /// The settings.
    pub settings: Arc<Settings>,
    /// The payments.
    pub ledger: Arc<Ledger>,
    webhook_sender: WebhookSender,
    /// URL of Stripe events, once the merchant registered one.
    stripe_endpoint: Arc<Mutex<Option<String>>>,
}

impl Simulator {
    /// Creates a simulator without payments.
    ///
    /// # Errors
    /// When the HTTP client of the webhooks cannot be created.
    pub fn new(settings: Settings) -> anyhow::Result<Self> {
        let webhook_sender = WebhookSender::new(&settings.webhook_secret, settings.backoff_base)?;
        let ledger = Arc::new(Ledger::new(MAX_PAYMENTS));
        Ok(Self { settings: Arc::new(settings), ledger, webhook_sender, stripe_endpoint: Arc::default() })
    }

    /// Sets the URL of Stripe events.
    pub fn set_stripe_endpoint(&self, url: String) {
        *self.stripe_endpoint.lock().unwrap_or_else(PoisonError::into_inner) = Some(url);
    }

    fn stripe_endpoint(&self) -> Option<String> {
        self.stripe_endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns `true` when the webhook queue is empty: each event was accepted or given up.
    #[must_use]
    pub fn has_delivered_all(&self) -> bool {
        self.webhook_sender.is_idle()
    }

    /// Returns `true` when a request has the merchant's key as its bearer token.
    #[must_use]
    pub fn is_merchant(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        // Digests are compared, so the duration reveals nothing about the key.
        Sha256::digest(given) == Sha256::digest(&self.settings.api_key)
    }

    /// Waits for the answer time of a card. Returns `false` when the client must get no answer.
    pub async fn wait_for_answer(&self, card: &Card) -> bool {
        match card.answer {
            AnswerTiming::Prompt => {}
            AnswerTiming::Slow => sleep(self.settings.slow).await,
            AnswerTiming::Never => sleep(self.settings.no_answer).await,
        }
        card.answer != AnswerTiming::Never
    }

    /// Charges `card`, chosen by the payer or given as a token.
    ///
    /// # Errors
    /// A payment that was already decided is no error: the outcome has `changed` unset.
    pub fn pay(&self, id: &str, card: &'static Card, fingerprint: Option<String>) -> LedgerResult<LedgerOutcome> {
        let slot = self.webhook_sender.try_acquire_slot()?;
        self.ledger.set_card(id, fingerprint)?;
        let outcome = self.ledger.decide(id, card.first, clock::now_ms())?;
        if outcome.changed {
            tracing::debug!(payment = id, card = card.name, status = ?outcome.payment.status, "paid with a card");
            if card.first == BankVerdict::Pending {
                // A slot is acquired again when there is an event to send.
                drop(slot);
                self.settle_later(id.to_owned(), card);
            } else {
                self.note_charge(&outcome.payment);
                self.send_event(slot, &outcome.payment, card.webhooks);
            }
        }
        Ok(outcome)
    }

    /// Cancels a payment on behalf of the payer.
    pub fn cancel_by_payer(&self, id: &str) -> LedgerResult<LedgerOutcome> {
        let payment = self.ledger.get(id)?;
        if payment.allows_retry() {
            // The page stays open for another try until the merchant closes it.
            return Ok(LedgerOutcome { payment, changed: false });
        }
        let slot = self.webhook_sender.try_acquire_slot()?;
        let outcome = self.ledger.decide(id, BankVerdict::Declined(CANCELLED_BY_PAYER), clock::now_ms())?;
        if outcome.changed {
            tracing::info!(payment = id, "cancelled by the payer");
            self.send_event(slot, &outcome.payment, WebhookDelivery::Once);
        }
        Ok(outcome)
    }

    /// Voids a payment on behalf of the merchant.
    pub fn void(&self, id: &str) -> LedgerResult<Payment> {
        let slot = self.webhook_sender.try_acquire_slot()?;
        let outcome = self.ledger.void(id)?;
        if outcome.changed {
            tracing::info!(payment = id, "voided");
            self.send_event(slot, &outcome.payment, WebhookDelivery::Once);
        }
        Ok(outcome.payment)
    }

    /// Refunds a payment on behalf of the merchant.
    pub fn refund(
        &self,
        id: &str,
        key: &str,
        amount_minor: i64,
        metadata: &BTreeMap<String, String>,
    ) -> LedgerResult<Payment> {
        let slot = self.webhook_sender.try_acquire_slot()?;
        let outcome = self.ledger.refund(id, key, amount_minor, metadata)?;
        if outcome.changed {
            tracing::info!(payment = id, amount_minor, "refunded");
            let last = outcome.payment.refunds.len().saturating_sub(1);
            self.ledger.note_movement(id, Movement::Refund(last), clock::now_ms());
            let webhook_requests = self.webhook_requests(EventKind::RefundSucceeded, &outcome.payment, clock::now_ms());
            self.webhook_sender.send(slot, webhook_requests, 1, Duration::ZERO);
        }
        Ok(outcome.payment)
    }

    /// Sets the bank's status of a refund. Only Stripe events report it; the other API reports a refund once.
    pub fn set_refund_status(&self, id: &str, refund: usize, status: RefundStatus) -> LedgerResult<Payment> {
        let slot = self.webhook_sender.try_acquire_slot()?;
        let outcome = self.ledger.set_refund_status(id, refund, status)?;
        if let Some(url) = self.stripe_endpoint().filter(|_| outcome.changed) {
            let webhook_requests = stripe::refund_webhooks(&outcome.payment, refund, clock::now_ms(), &url);
            self.webhook_sender.send(slot, webhook_requests, 1, Duration::ZERO);
        }
        Ok(outcome.payment)
    }

    fn settle_later(&self, id: String, card: &'static Card) {
        let simulator = self.clone();
        tokio::spawn(async move {
            sleep(simulator.settings.pending).await;
            let slot = simulator.webhook_sender.acquire_slot().await;
            // A payment that was voided or evicted meanwhile has no event.
            if let Ok(LedgerOutcome { payment, changed: true }) = simulator.ledger.settle(&id, card.later) {
                tracing::info!(payment = id, status = ?payment.status, "settled");
                simulator.note_charge(&payment);
                simulator.send_event(slot, &payment, card.webhooks);
            }
        });
    }

    fn note_charge(&self, payment: &Payment) {
        if payment.status == Status::Succeeded {
            self.ledger.note_movement(&payment.id, Movement::Charge, clock::now_ms());
        }
    }

    fn send_event(&self, slot: QueueSlot, payment: &Payment, delivery: WebhookDelivery) {
        let kind = match payment.status {
            Status::Succeeded => EventKind::PaymentSucceeded,
            Status::Failed => EventKind::PaymentFailed,
            Status::Voided => EventKind::PaymentVoided,
            Status::RequiresPayer if payment.failure.is_some() => EventKind::PaymentFailed,
            Status::RequiresPayer | Status::Pending => return,
        };
        let now_ms = clock::now_ms();
        let mut webhook_requests = self.webhook_requests(kind, payment, now_ms);
        if delivery == WebhookDelivery::Reordered {
            let (failed, then) = (first_try(payment), now_ms - FIRST_TRY_AGO_MS);
            webhook_requests.extend(self.webhook_requests(EventKind::PaymentFailed, &failed, then));
        }
        let (copies, delay) = match delivery {
            WebhookDelivery::Once | WebhookDelivery::Reordered => (1, Duration::ZERO),
            WebhookDelivery::Thrice => (THRICE, Duration::ZERO),
            WebhookDelivery::Late => (1, self.settings.late),
        };
        self.webhook_sender.send(slot, webhook_requests, copies, delay);
    }

    /// Builds the webhooks of an event in the API the merchant used. There are none for Stripe's API without a
    /// registered URL.
    fn webhook_requests(&self, kind: EventKind, payment: &Payment, created_ms: i64) -> Vec<WebhookRequest> {
        let Protocol::Stripe(terms) = &payment.request.protocol else {
            return vec![GatewayEvent::new(kind, payment, created_ms).to_webhook(&payment.request.webhook_url)];
        };
        self.stripe_endpoint().map(|url| stripe::webhooks(kind, payment, terms, created_ms, &url)).unwrap_or_default()
    }
}

/// Returns the payment as it was after a failed first try.
fn first_try(payment: &Payment) -> Payment {
    let status = if payment.allows_retry() { Status::RequiresPayer } else { Status::Failed };
    Payment { status, failure: Some("card_declined"), taken_minor: 0, ..payment.clone() }
}
