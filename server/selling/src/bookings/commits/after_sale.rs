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

use super::{BookingDetails, MAX_MAILS_PER_BATCH};
use crate::bookings::effects::{self, EffectError};
use crate::bookings::mails::ticket_mails;
use crate::{SellingState, outbox};
use http::ApiResult;
use seats::seat_locks::{FencedSelection, MAX_PER_CALL, with_map};
use tickets::{ComposedMails, MailBatch, MailBatchFailure, MailError, Ticket};

/// A booking that was sold, as it was committed.
#[derive(Clone)]
pub(super) struct SoldBooking {
    pub(super) found: Arc<BookingDetails>,
    /// The time before the write: the head start of its effects counts from then.
    pub(super) at: Instant,
}

/// Queues the map updates of these committed bookings, sold at that time; then their tickets are mailed.
pub(super) fn enqueue(state: &SellingState, sold: Vec<Arc<BookingDetails>>, at: Instant) {
    for found in sold {
        let start = || drop(state.tasks.spawn(serve_marks(state.clone())));
        if state.commits.marks.add(SoldBooking { found, at }, start).is_err() {
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

async fn mark_batch(state: SellingState, marks: Vec<SoldBooking>) {
    let mut shows: BTreeMap<Uuid, Vec<SoldBooking>> = BTreeMap::new();
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
                    tracing::debug!(%show, sales = part.len(), "mark sales on the map failed; the relay retries it");
                    unmarked.extend(part.iter().map(|sold| sold.found.row.id));
                }
            }
        }
    }
    send(&state, marked);
    make_mails_due(&state, &unmarked).await;
}

async fn book(state: &SellingState, show: Uuid, marks: &[SoldBooking]) -> ApiResult<()> {
    let show = state.catalogue.find_show(show).await?;
    let sales: Vec<FencedSelection> = marks.iter().map(|sold| sold.found.row.sale()).collect();
    with_map(state, &show, || state.locks.book_all(show.id, &sales)).await
}

/// Mails of one batch that are sent concurrently.
const MAX_CONCURRENT: usize = 4;
/// Maximum age of a sale whose mails are sent unchecked. The relay checks older sales, which may have been cancelled.
const FRESH_FOR: Duration = Duration::from_secs(2);
/// Deadline of a mail after its sale. Shorter than the head start before the relay, and shorter than the time a
/// stopping server waits for running work: duplicates are rare.
const MAILED_WITHIN: Duration = Duration::from_secs(8);

/// Queues the tickets of these bookings for mailing. Their map updates are done, but not yet removed from the outbox.
pub(super) fn send(state: &SellingState, sold: Vec<SoldBooking>) {
    let mut overflow = Vec::new();
    for sold in sold {
        let start = || drop(state.tasks.spawn(serve_mails(state.clone())));
        if let Err(sold) = state.commits.mails.add(sold, start) {
            overflow.push(sold.found.row.id);
        }
    }
    if !overflow.is_empty() {
        let state = state.clone();
        let tasks = state.tasks.clone();
        tasks.spawn(async move { leave_to_relay(&state, &overflow).await });
    }
}

async fn serve_mails(state: SellingState) {
    let mut worker = state.commits.mails.worker();
    while let Some(mails) = worker.next_batch().await {
        let mut left: Vec<Uuid> = mails.iter().map(|sold| sold.found.row.id).collect();
        let sent = mail_all(&state, mails).await;
        left.retain(|booking| !sent.contains(booking));
        if let Err(cause) = outbox::remove_all(&state, &sent, &[Effect::MarkBooked, Effect::SendTicket]).await {
            tracing::warn!(%cause, sent = sent.len(), "remove mailed tickets from the outbox failed; they are mailed again");
        }
        leave_to_relay(&state, &left).await;
    }
}

/// Mails tickets, and returns the bookings whose mails were sent. All others are left to the relay.
async fn mail_all(state: &SellingState, mails: Vec<SoldBooking>) -> Vec<Uuid> {
    let ids: Vec<Uuid> = mails.iter().map(|sold| sold.found.row.id).collect();
    // The relay mails tickets that cannot be read now.
    let mut codes = tickets::of_bookings(&state.pg, &ids).await.unwrap_or_else(|cause| {
        tracing::warn!(%cause, left = ids.len(), "read tickets for their mails failed; the relay mails them");
        HashMap::new()
    });
    let sold = mails.into_iter().filter_map(|sold| Some((codes.remove(&sold.found.row.id)?, sold)));
    let sold: Vec<_> = sold.collect();
    let batches =
        stream::iter(sold).map(|(codes, sold)| load_mails(state, sold, codes)).buffer_unordered(MAX_CONCURRENT);
    // Mails in memory are composed in one chunk, mostly the whole batch; those that must be read first follow.
    let chunks = batches.filter_map(std::future::ready).ready_chunks(MAX_MAILS_PER_BATCH);
    let composed = chunks.map(|batches| compose(state, batches)).buffer_unordered(MAX_CONCURRENT);
    let sent =
        composed.flat_map(stream::iter).map(|composed| send_one(state, composed)).buffer_unordered(MAX_CONCURRENT);
    sent.filter_map(std::future::ready).collect().await
}

/// Returns the mails of a booking, if it was sold just now.
async fn load_mails(
    state: &SellingState,
    SoldBooking { found, at }: SoldBooking,
    codes: Vec<Ticket>,
) -> Option<MailBatch> {
    let (booking, begin_by, until) = (found.row.id, at + FRESH_FOR, at + MAILED_WITHIN);
    if Instant::now() >= begin_by {
        return None;
    }
    let mails = timeout_at(begin_by, catch_panic(effects::mails_of(state, &found, &codes))).await;
    match mails.unwrap_or_else(|_| Err(MailError::TooLate.into())) {
        Ok(mails) => Some(MailBatch { booking, mails, begin_by, until }),
        Err(cause) => {
            log_failure(booking, &cause);
            None
        }
    }
}

async fn compose(state: &SellingState, batches: Vec<MailBatch>) -> Vec<ComposedMails> {
    let left = batches.len();
    catch_panic(state.mailer.compose(batches)).await.unwrap_or_else(|cause: MailError| {
        tracing::warn!(%cause, left, "compose a batch of ticket mails failed; the relay mails them");
        Vec::new()
    })
}

async fn send_one(state: &SellingState, composed: ComposedMails) -> Option<Uuid> {
    let booking = composed.booking;
    let sent: Result<(), MailBatchFailure> = catch_panic(state.mailer.send_composed(composed)).await;
    let Err(MailBatchFailure { sent, cause }) = sent else { return Some(booking) };
    // The first mail is the buyer's.
    if sent > 0 {
        if cause.is_undeliverable() {
            ticket_mails::log_refused_friend(booking, &cause);
            return Some(booking);
        }
        // Boxed: connecting takes kilobytes.
        if let Err(cause) = Box::pin(outbox::mark_buyer_mailed(&state.pg, booking)).await {
            tracing::warn!(%booking, %cause, "record the buyer's mail of {booking} failed; it is sent again");
        }
    }
    log_failure(booking, &EffectError::from(cause));
    None
}

/// Turns a panic into an error, so that a bug in one mail does not stop the others.
async fn catch_panic<T, E: From<MailError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(MailError::Panicked.into()))
}

fn log_failure(booking: Uuid, cause: &EffectError) {
    if matches!(cause, EffectError::Mail(MailError::Panicked)) {
        tracing::error!(%booking, "mail the tickets of {booking} failed: a panic; the relay retries it");
    } else {
        tracing::warn!(%booking, %cause, "mail the tickets of {booking} failed; the relay retries it");
    }
}

/// Leaves these mails to the relay, due at once, and removes their map updates: the sales are on the map.
async fn leave_to_relay(state: &SellingState, bookings: &[Uuid]) {
    if let Err(cause) = outbox::remove_all(state, bookings, &[Effect::MarkBooked]).await {
        tracing::warn!(%cause, left = bookings.len(), "remove map updates from the outbox failed; they are repeated");
    }
    make_mails_due(state, bookings).await;
}

/// Makes these mails due for the relay at once.
async fn make_mails_due(state: &SellingState, bookings: &[Uuid]) {
    if let Err(cause) = outbox::make_due(state, bookings, Effect::SendTicket).await {
        tracing::warn!(%cause, left = bookings.len(), "make ticket mails due failed; they wait for their head start");
    }
}
