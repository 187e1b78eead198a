//! What a piece of work is about, for those who load and lead a batch.

use uuid::Uuid;

use super::{Checkout, Found, Key, Lesson, Work};
use crate::idempotency::Intent;
use crate::payments::PaymentNews;

impl Work {
    /// Its name for those who trace it.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Submit(_) => "submit",
            Self::Learn(_) => "learn",
            Self::Hear(_) => "hear",
        }
    }

    /// The booking it is about, if there is one yet.
    pub(super) fn booking(&self) -> Option<Uuid> {
        match self {
            Self::Create(_) => None,
            Self::Submit(submission) => Some(submission.booking),
            Self::Learn(lesson) => Some(lesson.booking),
            Self::Hear(news) => Some(news.booking),
        }
    }

    /// Its booking as it stood when it was seen last.
    pub(super) fn seen(&self) -> Option<&Found> {
        match self {
            Self::Submit(submission) => submission.seen.as_deref(),
            Self::Learn(lesson) => lesson.seen.as_deref(),
            Self::Create(_) | Self::Hear(_) => None,
        }
    }

    /// The booking, or the hold that will be one.
    pub(super) fn subject(&self) -> Uuid {
        match self {
            Self::Create(checkout) => checkout.wanted.hold_id,
            Self::Submit(_) | Self::Learn(_) | Self::Hear(_) => self.booking().unwrap_or_default(),
        }
    }

    pub(super) fn checkout(&self) -> Option<&Checkout> {
        match self {
            Self::Create(checkout) => Some(checkout),
            Self::Submit(_) | Self::Learn(_) | Self::Hear(_) => None,
        }
    }

    pub(super) fn news(&self) -> Option<&PaymentNews> {
        match self {
            Self::Hear(news) => Some(news),
            Self::Create(_) | Self::Submit(_) | Self::Learn(_) => None,
        }
    }

    /// The key it will claim, if it has one nobody claimed yet.
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
    fn new_key(&self) -> Option<&Intent> {
        self.answer.as_ref().filter(|(_, key)| *key == Key::New).map(|(intent, _)| intent)
    }
}
