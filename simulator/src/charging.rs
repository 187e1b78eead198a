//! What happens when a card meets a payment: the bank's verdict now, its verdict later, and who is
//! told. The ledger decides; here is the order of things and the waiting.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use crate::cards::{Answer, Card, Telling, Verdict};
use crate::ledger::{Ledger, MAX_PAYMENTS, Movement, Outcome, Refused};
use crate::payment::{Dialect, GAVE_UP, Payment, RefundStatus, Status};
use crate::webhooks::{Courier, Event, EventKind, Letter, Place};
use crate::{clock, stripe};

/// Copies of an event for [`Telling::Thrice`].
const THRICE: u32 = 3;
/// How long before the second try the first one was, for [`Telling::Reordered`], milliseconds.
const FIRST_TRY_AGO_MS: i64 = 1_000;

/// How the simulator is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Merchants send it as a bearer token.
    pub api_key: String,
    /// Webhooks are signed with it.
    pub webhook_secret: String,
    /// Where our pages are, without a slash at the end.
    pub public_url: String,
    /// The merchant's name on the page.
    pub merchant: String,
    /// How long the bank thinks about a pending payment.
    pub pending: Duration,
    /// How long the slow card's answer takes.
    pub slow: Duration,
    /// How long the one who never gets an answer is kept on the line.
    pub no_answer: Duration,
    /// How late a late webhook is.
    pub late: Duration,
    /// The first repeat of a webhook comes within this time.
    pub backoff_base: Duration,
}

/// The whole service; cheap to clone.
#[derive(Clone)]
pub struct Simulator {
    /// How it is set up.
    pub settings: Arc<Settings>,
    /// Its payments.
    pub ledger: Arc<Ledger>,
    courier: Courier,
    /// Where events in Stripe's words go, once the merchant said so.
    stripe_endpoint: Arc<Mutex<Option<String>>>,
}

/// Why a payment could not be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// The ledger's reason.
    Refused(Refused),
    /// Too many events are waiting to be delivered.
    QueueFull,
}

impl From<Refused> for NotNow {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Simulator {
    /// An empty simulator.
    ///
    /// # Errors
    /// When the webhooks' HTTP client cannot be set up.
    pub fn new(settings: Settings) -> anyhow::Result<Self> {
        let courier = Courier::new(&settings.webhook_secret, settings.backoff_base)?;
        let ledger = Arc::new(Ledger::new(MAX_PAYMENTS));
        Ok(Self { settings: Arc::new(settings), ledger, courier, stripe_endpoint: Arc::default() })
    }

    /// From now on, events in Stripe's words go to this address.
    pub fn tell_stripe_events_to(&self, url: String) {
        *self.stripe_endpoint.lock().unwrap_or_else(PoisonError::into_inner) = Some(url);
    }

    /// True if no event is on its way to the merchant: each was accepted, or given up.
    #[must_use]
    pub fn has_delivered_all(&self) -> bool {
        self.courier.is_idle()
    }

    /// Whether a request comes from the merchant: whether it has the key as its bearer token.
    #[must_use]
    pub fn is_merchant(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        // Digests are compared, so the time it takes says nothing about the key.
        Sha256::digest(given) == Sha256::digest(&self.settings.api_key)
    }

    /// Waits as long as the answer about a card takes; whether one comes at all while somebody still listens.
    pub async fn answers(&self, card: &Card) -> bool {
        match card.answer {
            Answer::Prompt => {}
            Answer::Slow => sleep(self.settings.slow).await,
            Answer::Never => sleep(self.settings.no_answer).await,
        }
        card.answer != Answer::Never
    }

    /// The payer, or a token in their place, pays with `card`.
    ///
    /// # Errors
    /// [`NotNow`]. A payment decided earlier is no error: the outcome says that nothing changed.
    pub fn pay(&self, id: &str, card: &'static Card, fingerprint: Option<String>) -> Result<Outcome, NotNow> {
        let place = self.courier.try_place().ok_or(NotNow::QueueFull)?;
        self.ledger.give_card(id, fingerprint)?;
        let outcome = self.ledger.decide(id, card.first, clock::now_ms())?;
        if outcome.changed {
            tracing::debug!(payment = id, card = card.name, status = ?outcome.payment.status, "paid with a card");
            if card.first == Verdict::Pending {
                // The place is taken again when there is something to tell.
                drop(place);
                self.settle_later(id.to_owned(), card);
            } else {
                self.note_charge(&outcome.payment);
                self.tell(place, &outcome.payment, card.telling);
            }
        }
        Ok(outcome)
    }

    /// The payer pressed Cancel.
    ///
    /// # Errors
    /// [`NotNow`].
    pub fn give_up(&self, id: &str) -> Result<Outcome, NotNow> {
        let payment = self.ledger.get(id)?;
        if payment.may_be_tried_again() {
            // The page stays open for whoever comes back to it, until the merchant closes it.
            return Ok(Outcome { payment, changed: false });
        }
        let place = self.courier.try_place().ok_or(NotNow::QueueFull)?;
        let outcome = self.ledger.decide(id, Verdict::Declined(GAVE_UP), clock::now_ms())?;
        if outcome.changed {
            tracing::info!(payment = id, "cancelled by the payer");
            self.tell(place, &outcome.payment, Telling::Once);
        }
        Ok(outcome)
    }

    /// The merchant calls a payment off.
    ///
    /// # Errors
    /// [`NotNow`].
    pub fn void(&self, id: &str) -> Result<Payment, NotNow> {
        let place = self.courier.try_place().ok_or(NotNow::QueueFull)?;
        let outcome = self.ledger.void(id)?;
        if outcome.changed {
            tracing::info!(payment = id, "voided");
            self.tell(place, &outcome.payment, Telling::Once);
        }
        Ok(outcome.payment)
    }

    /// The merchant sends money back.
    ///
    /// # Errors
    /// [`NotNow`].
    pub fn refund(
        &self,
        id: &str,
        key: &str,
        amount_minor: i64,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Payment, NotNow> {
        let place = self.courier.try_place().ok_or(NotNow::QueueFull)?;
        let outcome = self.ledger.refund_noted(id, key, amount_minor, metadata)?;
        if outcome.changed {
            tracing::info!(payment = id, amount_minor, "refunded");
            let last = outcome.payment.refunds.len().saturating_sub(1);
            self.ledger.note_movement(id, Movement::Refund(last), clock::now_ms());
            let letters = self.letters(EventKind::RefundSucceeded, &outcome.payment, clock::now_ms());
            self.courier.send(place, letters, 1, Duration::ZERO);
        }
        Ok(outcome.payment)
    }

    /// The bank's word on a refund, told to a merchant who speaks Stripe's words; the others hear of refunds once.
    ///
    /// # Errors
    /// [`NotNow`].
    pub fn refund_becomes(&self, id: &str, refund: usize, status: RefundStatus) -> Result<Payment, NotNow> {
        let place = self.courier.try_place().ok_or(NotNow::QueueFull)?;
        let outcome = self.ledger.refund_becomes(id, refund, status)?;
        let endpoint = self.stripe_endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(url) = endpoint.filter(|_| outcome.changed) {
            let letters = stripe::refund_letters(&outcome.payment, refund, clock::now_ms(), &url);
            self.courier.send(place, letters, 1, Duration::ZERO);
        }
        Ok(outcome.payment)
    }

    fn settle_later(&self, id: String, card: &'static Card) {
        let simulator = self.clone();
        tokio::spawn(async move {
            sleep(simulator.settings.pending).await;
            let place = simulator.courier.place().await;
            // Voided meanwhile, or forgotten: then there is nothing left to say.
            if let Ok(Outcome { payment, changed: true }) = simulator.ledger.settle(&id, card.later) {
                tracing::info!(payment = id, status = ?payment.status, "settled");
                simulator.note_charge(&payment);
                simulator.tell(place, &payment, card.telling);
            }
        });
    }

    fn note_charge(&self, payment: &Payment) {
        if payment.status == Status::Succeeded {
            self.ledger.note_movement(&payment.id, Movement::Charge, clock::now_ms());
        }
    }

    fn tell(&self, place: Place, payment: &Payment, telling: Telling) {
        let kind = match payment.status {
            Status::Succeeded => EventKind::PaymentSucceeded,
            Status::Failed => EventKind::PaymentFailed,
            Status::Voided => EventKind::PaymentVoided,
            Status::RequiresPayer if payment.failure.is_some() => EventKind::PaymentFailed,
            Status::RequiresPayer | Status::Pending => return,
        };
        let now_ms = clock::now_ms();
        let mut letters = self.letters(kind, payment, now_ms);
        if telling == Telling::Reordered {
            letters.extend(self.letters(EventKind::PaymentFailed, &first_try(payment), now_ms - FIRST_TRY_AGO_MS));
        }
        let (copies, delay) = match telling {
            Telling::Once | Telling::Reordered => (1, Duration::ZERO),
            Telling::Thrice => (THRICE, Duration::ZERO),
            Telling::Late => (1, self.settings.late),
        };
        self.courier.send(place, letters, copies, delay);
    }

    /// What the merchant is told, in the words it used. Nothing, if those are Stripe's and it never said
    /// where events go.
    fn letters(&self, kind: EventKind, payment: &Payment, created_ms: i64) -> Vec<Letter> {
        let Dialect::Stripe(terms) = &payment.asked.dialect else {
            return vec![Event::new(kind, payment, created_ms).letter(&payment.asked.webhook_url)];
        };
        let endpoint = self.stripe_endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        endpoint.map(|url| stripe::letters(kind, payment, terms, created_ms, &url)).unwrap_or_default()
    }
}

/// The payment as it stood after a try that failed.
fn first_try(payment: &Payment) -> Payment {
    let status = if payment.may_be_tried_again() { Status::RequiresPayer } else { Status::Failed };
    Payment { status, failure: Some("card_declined"), taken_minor: 0, ..payment.clone() }
}
