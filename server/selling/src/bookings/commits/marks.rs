//! The replica that committed sales updates the map at once, many sales in a call.
//!
//! The outbox has the updates too, with a head start: updates that are lost or fail here are done by the relay after
//! it. A successful update is removed from the outbox together with the mail (`mails`), which follows at once, in one
//! statement.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;
use uuid::Uuid;

use super::{BookingDetails, mails};
use crate::SellingState;
use http::Problem;
use seats::seat_locks::{FencedSelection, MAX_PER_CALL, with_map};

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
        let start = || drop(state.tasks.spawn(serve(state.clone())));
        if state.commits.marks.add(Sold { found, at }, start).is_err() {
            return;
        }
    }
}

/// Updates the map until the queue is empty.
async fn serve(state: SellingState) {
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
    mails::send(&state, marked);
    mails::leave_to_relay(&state, &unmarked).await;
}

async fn book(state: &SellingState, show: Uuid, marks: &[Sold]) -> Result<(), Problem> {
    let show = state.catalogue.find_show(show).await?;
    let sales: Vec<FencedSelection> = marks.iter().map(|sold| sold.found.row.sale()).collect();
    with_map(state, &show, || state.locks.book_all(show.id, &sales)).await
}
