//! The work of the replica that committed a sale: it updates the map at once, many sales in a call, and then mails the
//! tickets, whose contents it has in memory.
//!
//! The outbox has both, with a head start: updates and mails that are lost or fail here are done by the relay after it,
//! and a mail that fails or is too late is due for the relay as soon as the mails of its batch are done. The map update
//! and the mail of a sale leave the outbox together, in one statement. A crash in between repeats the map update, which
//! is idempotent.
//!
//! The mails of a batch are composed in one job off the threads that serve requests, and written in that job where
//! mails go into a folder (`tickets/mail/batch.rs`).

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use domain::booking::Effect;
use futures::{FutureExt, StreamExt, stream};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::{BookingDetails, MAILS_TOGETHER};
use crate::bookings::effects::{self, EffectError};
use crate::{SellingState, outbox};
use http::ApiResult;
use seats::seat_locks::{FencedSelection, MAX_PER_CALL, with_map};
use tickets::{ComposedMails, MailBatch, MailError, Ticket};

/// A booking that was sold, as it was committed.
#[derive(Clone)]
pub(super) struct Sold {
    pub(super) found: Arc<BookingDetails>,
    /// The time before the write: the head start of its effects counts from then.
    pub(super) at: Instant,
}

/// Queues the map updates of these committed bookings, sold at that time; then their tickets are mailed.
pub(super) fn enqueue(state: &SellingState, sold: Vec<Arc<BookingDetails>>, at: Instant) {
    for found in sold {
        let start = || drop(state.tasks.spawn(serve_marks(state.clone())));
        if state.commits.marks.add(Sold { found, at }, start).is_err() {
            return;
        }
    }
}

async fn serve_marks(state: SellingState) {
    let mut worker = state.commits.marks.worker();
    while let Some(marks) = worker.next_batch().await {
        // In its own task: a panic leaves one batch to the relay, and the queue is still served.
        // Boxed, because kilobytes would be moved with it.
        let done = state.tasks.spawn(Box::pin(mark_batch(state.clone(), marks)));
        if let Err(cause) = done.await {
            tracing::error!(%cause, "a map update panicked; the relay repeats it");
        }
    }
}

async fn mark_batch(state: SellingState, marks: Vec<Sold>) {
    let mut shows: BTreeMap<Uuid, Vec<Sold>> = BTreeMap::new();
    for sold in marks {
        shows.entry(sold.found.row.show_id).or_default().push(sold);
    }
    let (mut marked, mut unmarked) = (Vec::new(), Vec::new());
    for (show, marks) in shows {
        for part in marks.chunks(MAX_PER_CALL) {
            match book(&state, show, part).await {
                Ok(()) => marked.extend_from_slice(part),
                // The cause was logged where it arose.
                Err(_) => {
                    tracing::debug!(%show, sales = part.len(), "putting sales on the map failed; the relay does it");
                    unmarked.extend(part.iter().map(|sold| sold.found.row.id));
                }
            }
        }
    }
    send(&state, marked);
    leave_to_relay(&state, &unmarked).await;
}

async fn book(state: &SellingState, show: Uuid, marks: &[Sold]) -> ApiResult<()> {
    let show = state.catalogue.find_show(show).await?;
    let sales: Vec<FencedSelection> = marks.iter().map(|sold| sold.found.row.sale()).collect();
    with_map(state, &show, || state.locks.book_all(show.id, &sales)).await
}

/// Mails of one batch that are sent concurrently.
const MAX_CONCURRENT: usize = 4;
/// Older sales may have been cancelled or moved: the relay checks before it mails.
const FRESH_FOR: Duration = Duration::from_secs(2);
/// Deadline of a mail after its sale. Shorter than the head start before the relay, and shorter than the time a
/// stopping server waits for running work: duplicates are rare.
const MAILED_WITHIN: Duration = Duration::from_secs(8);

/// Queues the tickets of these bookings for mailing. Their map updates are done, but not yet removed from the outbox.
pub(super) fn send(state: &SellingState, sold: Vec<Sold>) {
    let mut beyond = Vec::new();
    for sold in sold {
        let start = || drop(state.tasks.spawn(serve_mails(state.clone())));
        if let Err(sold) = state.commits.mails.add(sold, start) {
            beyond.push(sold.found.row.id);
        }
    }
    if !beyond.is_empty() {
        let state = state.clone();
        let tasks = state.tasks.clone();
        tasks.spawn(async move { leave(&state, &beyond).await });
    }
}

async fn serve_mails(state: SellingState) {
    let mut worker = state.commits.mails.worker();
    while let Some(mails) = worker.next_batch().await {
        let mut left: Vec<Uuid> = mails.iter().map(|sold| sold.found.row.id).collect();
        let sent = mail_all(&state, mails).await;
        left.retain(|booking| !sent.contains(booking));
        if let Err(cause) = outbox::remove_all(&state, &sent, &[Effect::MarkBooked, Effect::SendTicket]).await {
            tracing::warn!(%cause, sent = sent.len(), "tickets that were mailed stay in the outbox, and are mailed again");
        }
        leave(&state, &left).await;
    }
}

/// Mails tickets, and returns the bookings whose mails were sent. All others are left to the relay.
async fn mail_all(state: &SellingState, mails: Vec<Sold>) -> Vec<Uuid> {
    let ids: Vec<Uuid> = mails.iter().map(|sold| sold.found.row.id).collect();
    // The relay mails tickets that cannot be read now.
    let mut codes = tickets::of_bookings(&state.pg, &ids).await.unwrap_or_else(|cause| {
        tracing::warn!(%cause, left = ids.len(), "reading tickets for their mails failed; the relay mails them");
        HashMap::new()
    });
    let sold = mails.into_iter().filter_map(|sold| Some((codes.remove(&sold.found.row.id)?, sold)));
    let sold: Vec<_> = sold.collect();
    let letters = stream::iter(sold).map(|(codes, sold)| read(state, sold, codes)).buffer_unordered(MAX_CONCURRENT);
    // Mails in memory are composed together, mostly the whole batch; those that must be read first follow.
    let together = letters.filter_map(std::future::ready).ready_chunks(MAILS_TOGETHER);
    let composed = together.map(|letters| compose(state, letters)).buffer_unordered(MAX_CONCURRENT);
    let sent =
        composed.flat_map(stream::iter).map(|composed| send_one(state, composed)).buffer_unordered(MAX_CONCURRENT);
    sent.filter_map(std::future::ready).collect().await
}

/// Returns the mails of a booking, if it was sold just now.
async fn read(state: &SellingState, Sold { found, at }: Sold, codes: Vec<Ticket>) -> Option<MailBatch> {
    let (booking, begin_by, until) = (found.row.id, at + FRESH_FOR, at + MAILED_WITHIN);
    if Instant::now() >= begin_by {
        return None;
    }
    let mails = timeout_at(begin_by, caught(effects::mails_of(state, &found, &codes))).await;
    match mails.unwrap_or_else(|_| Err(MailError::TooLate.into())) {
        Ok(mails) => Some(MailBatch { booking, mails, begin_by, until }),
        Err(cause) => {
            say_why(booking, &cause);
            None
        }
    }
}

async fn compose(state: &SellingState, letters: Vec<MailBatch>) -> Vec<ComposedMails> {
    let left = letters.len();
    caught(state.mailer.compose(letters)).await.unwrap_or_else(|cause: MailError| {
        tracing::warn!(%cause, left, "tickets that were to be mailed together are left for the relay");
        Vec::new()
    })
}

async fn send_one(state: &SellingState, composed: ComposedMails) -> Option<Uuid> {
    let booking = composed.booking;
    match caught(state.mailer.send_composed(composed)).await {
        Ok(()) => Some(booking),
        Err(cause) => {
            say_why(booking, &EffectError::from(cause));
            None
        }
    }
}

/// Turns a panic, a bug in one mail, into an error; the other mails are sent.
async fn caught<T, E: From<MailError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(MailError::Panicked.into()))
}

fn say_why(booking: Uuid, cause: &EffectError) {
    if matches!(cause, EffectError::Mail(MailError::Panicked)) {
        tracing::error!(%booking, "mailing the tickets of {booking} panicked; the relay tries again");
    } else {
        tracing::warn!(%booking, %cause, "the tickets of {booking} are left for the relay to mail");
    }
}

/// Leaves these mails to the relay, due at once. The sales are on the map.
async fn leave(state: &SellingState, bookings: &[Uuid]) {
    if let Err(cause) = outbox::remove_all(state, bookings, &[Effect::MarkBooked]).await {
        tracing::warn!(%cause, left = bookings.len(), "removing map updates from the outbox failed; they are repeated");
    }
    leave_to_relay(state, bookings).await;
}

/// Leaves these mails to the relay, due at once, whether or not their sales are on the map.
async fn leave_to_relay(state: &SellingState, bookings: &[Uuid]) {
    if let Err(cause) = outbox::make_due(state, bookings, Effect::SendTicket).await {
        tracing::warn!(%cause, left = bookings.len(), "tickets are mailed when their head start is over");
    }
}
