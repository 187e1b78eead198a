//! Accessors of a piece of work, for loading and routing a batch.

use uuid::Uuid;

use super::{BookingDetails, ChargeOutcome, Key, Work};
use http::idempotency::Intent;
use payments::PaymentEvent;

impl Work {
    /// Returns the name of the step in traces.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Submit(_) => "submit",
            Self::RecordChargeOutcome(_) => "learn",
            Self::ApplyWebhook(_) => "hear",
        }
    }

    /// Returns the existing booking of the piece.
    pub(super) fn booking(&self) -> Option<Uuid> {
        match self {
            Self::Create(_) => None,
            Self::Submit(submission) => submission.new.is_none().then_some(submission.booking),
            Self::RecordChargeOutcome(charge) => Some(charge.booking),
            Self::ApplyWebhook(news) => Some(news.booking),
        }
    }

    /// Returns true for a payment in this show.
    pub(super) fn pays_in(&self, show: Uuid) -> bool {
        matches!(self, Self::Submit(submission) if submission.show.id == show)
    }

    /// Returns true if a gateway was called already: its answer is written before other payments begin.
    pub(super) const fn is_about_money(&self) -> bool {
        matches!(self, Self::RecordChargeOutcome(_) | Self::ApplyWebhook(_))
    }

    /// Returns the booking at its last lookup.
    pub(super) fn seen(&self) -> Option<&BookingDetails> {
        match self {
            Self::Submit(submission) => submission.seen.as_deref(),
            Self::RecordChargeOutcome(charge) => charge.seen.as_deref(),
            Self::Create(_) | Self::ApplyWebhook(_) => None,
        }
    }

    /// Returns the booking, or the hold that will be one.
    pub(super) fn subject(&self) -> Uuid {
        self.hold().or_else(|| self.booking()).unwrap_or_default()
    }

    /// Returns the hold that will be a booking.
    pub(super) fn hold(&self) -> Option<Uuid> {
        match self {
            Self::Create(checkout) => Some(checkout.new.row.hold_id),
            Self::Submit(submission) => submission.new.as_ref().map(|new| new.row.hold_id),
            Self::RecordChargeOutcome(_) | Self::ApplyWebhook(_) => None,
        }
    }

    pub(super) fn news(&self) -> Option<&PaymentEvent> {
        match self {
            Self::ApplyWebhook(news) => Some(news),
            Self::Create(_) | Self::Submit(_) | Self::RecordChargeOutcome(_) => None,
        }
    }

    /// Returns the key to claim, if it is not claimed yet.
    pub(super) fn key_to_claim(&self) -> Option<&Intent> {
        match self {
            Self::Create(checkout) => Some(&checkout.intent),
            Self::Submit(submission) => Some(&submission.intent),
            Self::RecordChargeOutcome(charge) => charge.new_key(),
            Self::ApplyWebhook(_) => None,
        }
    }
}

impl ChargeOutcome {
    fn new_key(&self) -> Option<&Intent> {
        self.answer.as_ref().filter(|(_, key)| *key == Key::New).map(|(intent, _)| intent)
    }
}
