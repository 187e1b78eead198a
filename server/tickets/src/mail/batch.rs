//! Many ticket mails at a time: composed, and written where they go into a folder, in one errand for a thread that may
//! wait. All requests share another, which would do nothing else meanwhile; and an errand each would wake two threads a
//! mail.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lettre::AsyncTransport;
use lettre::address::Envelope;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::mail_text::write;
use super::{MailError, Mailer, TicketMail, Way, not_delivered, put};

/// The ticket mails of one booking.
pub struct MailBatch {
    /// The booking.
    pub booking: Uuid,
    /// In the order they go out; after one that fails, none does.
    pub mails: Vec<TicketMail>,
    /// Not begun any more from then on…
    pub begin_by: Instant,
    /// …nor waited for.
    pub until: Instant,
}

/// Letters whose mails are in the folder, or ready for the mail server.
pub struct ComposedMails {
    /// The booking.
    pub booking: Uuid,
    /// For the mail server: envelope and message.
    ready: Vec<(Envelope, Vec<u8>)>,
    /// The result of the mails that go to the folder, or that follow the last one for the server.
    others: Result<(), MailError>,
    begin_by: Instant,
    until: Instant,
}

impl Mailer {
    /// Composes mails, and writes them into the folder if that is configured. [`Mailer::send_composed`] returns the result of
    /// each: a failure of one does not affect the others.
    ///
    /// # Errors
    /// [`MailError`], for all of them: the errand was lost, or lasted until one of them is not waited for any more.
    pub async fn compose(&self, letters: Vec<MailBatch>) -> Result<Vec<ComposedMails>, MailError> {
        let Some(until) = letters.iter().map(|letters| letters.until).min() else { return Ok(Vec::new()) };
        let mailer = self.clone();
        let errand = tokio::task::spawn_blocking(move || {
            letters.into_iter().map(|letters| mailer.compose_one(letters)).collect::<Vec<_>>()
        });
        // It cannot be cut off. What it still writes has the same names as what is written in its place.
        let composed = timeout_at(until, errand).await.map_err(|_| MailError::TooLate)?;
        composed.map_err(not_delivered)
    }

    /// Sends the composed mails to the mail server, and returns whether all mails of these letters were sent.
    ///
    /// # Errors
    /// [`MailError`], of the first mail that did not. One that is cut off may arrive nevertheless, as any other.
    pub async fn send_composed(&self, composed: ComposedMails) -> Result<(), MailError> {
        let ComposedMails { ready, others, begin_by, until, .. } = composed;
        if let Way::Smtp(smtp) = &self.way {
            if Instant::now() >= begin_by {
                return Err(MailError::TooLate);
            }
            for (envelope, message) in &ready {
                let sent = timeout_at(until, smtp.send_raw(envelope, message)).await;
                sent.map_err(|_| MailError::TooLate)?.map_err(not_delivered)?;
            }
        }
        others
    }

    /// For a thread that may wait.
    fn compose_one(&self, letters: MailBatch) -> ComposedMails {
        let MailBatch { booking, mails, begin_by, until } = letters;
        let mut ready = Vec::new();
        let others = if Instant::now() >= begin_by {
            Err(MailError::TooLate)
        } else {
            // A panic is a defect in one mail; the other mails continue.
            let done = catch_unwind(AssertUnwindSafe(|| self.compose_in_order(&mails, &mut ready)));
            done.unwrap_or(Err(MailError::Panicked))
        };
        ComposedMails { booking, ready, others, begin_by, until }
    }

    fn compose_in_order(&self, mails: &[TicketMail], ready: &mut Vec<(Envelope, Vec<u8>)>) -> Result<(), MailError> {
        for mail in mails {
            let message = write(&self.from, mail)?;
            match &self.way {
                Way::Folder(folder) => put(folder, &mail.name(), &message.formatted()).map_err(not_delivered)?,
                Way::Smtp(_) => ready.push((message.envelope().clone(), message.formatted())),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
