//! Tickets of what was just sold, once the map knows it, are mailed by the replica that sold them: what they say is
//! at hand, and nobody need take them off the outbox first.
//!
//! The outbox has them as well, with a head start: whatever is lost here, the relay sends after that; what fails or comes
//! too late, as soon as the mails that went out with it are done.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use domain::booking::Effect;
use futures::{FutureExt, StreamExt};
use tokio::time::timeout_at;
use uuid::Uuid;

use super::marks::Sold;
use crate::bookings::chores;
use crate::{AppState, outbox};

/// Tickets that may wait to be mailed; those beyond are left to the relay.
const MAX_MAILS: usize = 1_024;
/// Mails of one batch on their way at the same time.
const SIDE_BY_SIDE: usize = 4;
/// Whoever bought longer ago may have cancelled, or been moved, meanwhile: the relay looks before it mails.
const FRESH_FOR: Duration = Duration::from_secs(2);
/// A mail is on its way until so long after the sale: less than the head start, and than a server that stops waits for what
/// it has begun, so that hardly one goes out twice.
const MAILED_WITHIN: Duration = Duration::from_secs(8);

/// Has the tickets of these bookings mailed.
pub(super) fn send(state: &AppState, sold: Vec<Sold>) {
    let mut beyond = Vec::new();
    for sold in sold {
        if state.commits.mails.len() >= MAX_MAILS {
            beyond.push(sold.found.row.id);
        } else if state.commits.mails.join(sold) {
            state.tasks.spawn(serve(state.clone()));
        }
    }
    if !beyond.is_empty() {
        let state = state.clone();
        let tasks = state.tasks.clone();
        tasks.spawn(async move { leave(&state, &beyond).await });
    }
}

/// Mails tickets until none waits.
async fn serve(state: AppState) {
    while let Some(mails) = state.commits.mails.gather().await {
        let sending = futures::stream::iter(mails).map(|sold| mail(&state, sold));
        let outcomes: Vec<(Uuid, bool)> = sending.buffer_unordered(SIDE_BY_SIDE).collect().await;
        let (sent, left): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, is_sent)| *is_sent);
        let ids = |bookings: Vec<(Uuid, bool)>| bookings.into_iter().map(|(id, _)| id).collect::<Vec<Uuid>>();
        let (sent, left) = (ids(sent), ids(left));
        if let Err(cause) = outbox::done_all_now(&state, &sent, Effect::SendTicket).await {
            tracing::warn!(%cause, sent = sent.len(), "tickets that were mailed stay in the outbox, and are mailed again");
        }
        leave(&state, &left).await;
    }
}

/// The booking, and whether its tickets were mailed.
async fn mail(state: &AppState, Sold { found, at }: Sold) -> (Uuid, bool) {
    let booking = found.row.id;
    if at.elapsed() > FRESH_FOR {
        return (booking, false);
    }
    // A panic is a bug of ours in one mail; the line goes on with the others.
    let sent = AssertUnwindSafe(chores::ticket(state, &found)).catch_unwind();
    match timeout_at(at + MAILED_WITHIN, sent).await {
        Ok(Ok(Ok(()))) => return (booking, true),
        Ok(Ok(Err(cause))) => {
            tracing::warn!(%booking, %cause, "the tickets of {booking} are left for the relay to mail");
        }
        Ok(Err(_)) => tracing::error!(%booking, "mailing the tickets of {booking} panicked; the relay tries again"),
        Err(_) => tracing::warn!(%booking, "the tickets of {booking} are left for the relay: it took too long"),
    }
    (booking, false)
}

/// The relay mails these at once.
async fn leave(state: &AppState, bookings: &[Uuid]) {
    if let Err(cause) = outbox::due_now(state, bookings, Effect::SendTicket).await {
        tracing::warn!(%cause, left = bookings.len(), "tickets are mailed when their head start is over");
    }
}
