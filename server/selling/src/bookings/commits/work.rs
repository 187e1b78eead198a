//! Accessors of a piece of work, for loading and routing a batch.

use uuid::Uuid;

use super::{Found, Key, Lesson, Said, Work};
use http::idempotency::Intent;
use payments::{PaymentNews, PaymentStatus};

impl Work {
    /// Returns the name of the step in traces.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Submit(_) => "submit",
            Self::Learn(_) => "learn",
            Self::Hear(_) => "hear",
        }
    }

    /// Returns the existing booking of the piece.
    pub(super) fn booking(&self) -> Option<Uuid> {
        match self {
            Self::Create(_) => None,
            Self::Submit(submission) => submission.new.is_none().then_some(submission.booking),
            Self::Learn(lesson) => Some(lesson.booking),
            Self::Hear(news) => Some(news.booking),
        }
    }

    /// Returns true for a payment in this show.
    pub(super) fn pays_in(&self, show: Uuid) -> bool {
        matches!(self, Self::Submit(submission) if submission.show.id == show)
    }

    /// Returns true if a gateway was called already: its answer is written before other payments begin.
    pub(super) const fn is_about_money(&self) -> bool {
        matches!(self, Self::Learn(_) | Self::Hear(_))
    }

    /// Returns the booking at its last lookup.
    pub(super) fn seen(&self) -> Option<&Found> {
        match self {
            Self::Submit(submission) => submission.seen.as_deref(),
            Self::Learn(lesson) => lesson.seen.as_deref(),
            Self::Create(_) | Self::Hear(_) => None,
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
            Self::Learn(_) | Self::Hear(_) => None,
        }
    }

    pub(super) fn news(&self) -> Option<&PaymentNews> {
        match self {
            Self::Hear(news) => Some(news),
            Self::Create(_) | Self::Submit(_) | Self::Learn(_) => None,
        }
    }

    /// Returns the key to claim, if it is not claimed yet.
    pub(super) fn key_to_claim(&self) -> Option<&Intent> {
        match self {
            Self::Create(checkout) => Some(&checkout.intent),
            Self::Submit(submission) => Some(&submission.intent),
            Self::Learn(lesson) => lesson.new_key(),
            Self::Hear(_) => None,
        }
    }
}

impl Lesson {
    /// Returns true if the payment succeeded.
    pub(super) const fn is_paid(&self) -> bool {
        matches!(&self.said, Some(Said { status: PaymentStatus::Succeeded { .. }, .. }))
    }

    fn new_key(&self) -> Option<&Intent> {
        self.answer.as_ref().filter(|(_, key)| *key == Key::New).map(|(intent, _)| intent)
    }
}
