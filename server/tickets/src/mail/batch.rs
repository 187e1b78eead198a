//! Batches of ticket mails: composes many mails, and writes them into the folder, in one job on a blocking thread. On the
//! thread of the requests this would block them; one job per mail would wake two threads a mail.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lettre::AsyncTransport;
use lettre::address::Envelope;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::mail_text::write;
use super::{MailError, Mailer, TicketMail, Transport, not_delivered, refused_or_not_delivered, write_file};

/// The ticket mails of one booking.
pub struct MailBatch {
    /// The booking.
    pub booking: Uuid,
    /// The mails in sending order. A failure skips those after it.
    pub mails: Vec<TicketMail>,
    /// Deadline of starting.
    pub begin_by: Instant,
    /// Deadline of waiting for the result.
    pub until: Instant,
}

/// The mails of one booking, written into the folder or ready for the mail server.
pub struct ComposedMails {
    /// The booking.
    pub booking: Uuid,
    /// Envelope and message of each mail for the mail server.
    ready: Vec<(Envelope, Vec<u8>)>,
    /// The number of mails written into the folder.
    written: usize,
    /// The result of the mails that are not in `ready`: written into the folder, or failed.
    others: Result<(), MailError>,
    begin_by: Instant,
    until: Instant,
}

/// The failure of one mail of a booking.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct MailBatchFailure {
    /// The number of mails that were handed over before it.
    pub sent: usize,
    /// The cause.
    pub cause: MailError,
}

impl From<MailError> for MailBatchFailure {
    /// The failure of the first mail.
    fn from(cause: MailError) -> Self {
        Self { sent: 0, cause }
    }
}

impl Mailer {
    /// Composes batches, and writes them into the folder if one is configured. [`Mailer::send_composed`] returns the result
    /// of each: a failure of one does not affect the others.
    ///
    /// # Errors
    /// [`MailError`], for all batches: the job panicked, or the first deadline passed.
    pub async fn compose(&self, batches: Vec<MailBatch>) -> Result<Vec<ComposedMails>, MailError> {
        let Some(until) = batches.iter().map(|batch| batch.until).min() else { return Ok(Vec::new()) };
        let mailer = self.clone();
        let job = tokio::task::spawn_blocking(move || {
            batches.into_iter().map(|batch| mailer.compose_one(batch)).collect::<Vec<_>>()
        });
        // A blocking job cannot be cancelled. A retry overwrites the files that it still writes.
        let composed = timeout_at(until, job).await.map_err(|_| MailError::TooLate)?;
        composed.map_err(not_delivered)
    }

    /// Sends composed mails to the mail server. Succeeds if all mails of the booking were sent or written.
    ///
    /// # Errors
    /// [`MailBatchFailure`] of the first mail that failed. A cancelled mail may arrive nevertheless.
    pub async fn send_composed(&self, composed: ComposedMails) -> Result<(), MailBatchFailure> {
        let ComposedMails { ready, written, others, begin_by, until, .. } = composed;
        let mut sent = written;
        if let Transport::Smtp(smtp) = &self.transport {
            if Instant::now() >= begin_by {
                return Err(MailError::TooLate.into());
            }
            for (envelope, message) in &ready {
                let result = match timeout_at(until, smtp.send_raw(envelope, message)).await {
                    Ok(answer) => answer.map(drop).map_err(refused_or_not_delivered),
                    Err(_) => Err(MailError::TooLate),
                };
                result.map_err(|cause| MailBatchFailure { sent, cause })?;
                sent += 1;
            }
        }
        others.map_err(|cause| MailBatchFailure { sent, cause })
    }

    /// Composes a batch. Blocks the thread.
    fn compose_one(&self, batch: MailBatch) -> ComposedMails {
        let MailBatch { booking, mails, begin_by, until } = batch;
        let (mut ready, mut written) = (Vec::new(), 0);
        let others = if Instant::now() >= begin_by {
            Err(MailError::TooLate)
        } else {
            // A panic is a defect in one mail; the other mails continue.
            let done = catch_unwind(AssertUnwindSafe(|| self.compose_in_order(&mails, &mut ready, &mut written)));
            done.unwrap_or(Err(MailError::Panicked))
        };
        ComposedMails { booking, ready, written, others, begin_by, until }
    }

    fn compose_in_order(
        &self,
        mails: &[TicketMail],
        ready: &mut Vec<(Envelope, Vec<u8>)>,
        written: &mut usize,
    ) -> Result<(), MailError> {
        for mail in mails {
            let message = write(&self.from, mail)?;
            match &self.transport {
                Transport::Folder(folder) => {
                    write_file(folder, &mail.name(), &message.formatted()).map_err(not_delivered)?;
                    *written += 1;
                }
                Transport::Smtp(_) => ready.push((message.envelope().clone(), message.formatted())),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
