//! Tickets of what was just sold, once the map knows it, are mailed by the replica that sold them: what they say is
//! at hand, and nobody need take them off the outbox first.
//!
//! The outbox has them as well, with a head start: whatever is lost here, the relay sends after that, and what fails
//! at once.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use domain::booking::Effect;
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::Found;
use crate::bookings::chores;
use crate::{AppState, outbox};

/// Tickets that may wait to be mailed; those beyond are left to the relay.
const MAX_MAILS: usize = 1_024;
/// Mails on their way at the same time.
const SIDE_BY_SIDE: usize = 8;
/// Whatever is not sent so long after the map was told is left to the relay: well before its head start is over, so
/// that hardly a mail goes out twice.
const PATIENCE: Duration = Duration::from_secs(8);

/// Tickets to be mailed.
pub(super) struct Mail {
    found: Arc<Found>,
    until: Instant,
}

/// Has the tickets of these bookings mailed, which are sold.
pub(super) fn send(state: &AppState, sold: Vec<Arc<Found>>) {
    let until = Instant::now() + PATIENCE;
    for found in sold {
        if state.commits.mails.len() >= MAX_MAILS {
            return;
        }
        if state.commits.mails.join(Mail { found, until }) {
            state.tasks.spawn(serve(state.clone()));
        }
    }
}

/// Mails tickets until none waits.
async fn serve(state: AppState) {
    while let Some(mails) = state.commits.mails.gather().await {
        let sending = futures::stream::iter(mails).map(|mail| mail_one(&state, mail));
        let outcomes: Vec<(Uuid, bool)> = sending.buffer_unordered(SIDE_BY_SIDE).collect().await;
        let (sent, left): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, is_sent)| *is_sent);
        let ids = |bookings: Vec<(Uuid, bool)>| bookings.into_iter().map(|(id, _)| id).collect::<Vec<Uuid>>();
        let (sent, left) = (ids(sent), ids(left));
        let noted = async {
            outbox::done_all_now(&state, &sent, Effect::SendTicket).await?;
            outbox::due_now(&state, &left, Effect::SendTicket).await
        };
        if let Err(cause) = noted.await {
            tracing::warn!(%cause, sent = sent.len(), "tickets that were mailed stay in the outbox, and are mailed again");
        }
    }
}

/// The booking, and whether its tickets were mailed.
async fn mail_one(state: &AppState, Mail { found, until }: Mail) -> (Uuid, bool) {
    let booking = found.row.id;
    // A panic is a bug of ours in one mail; the line goes on with the others.
    let sent = AssertUnwindSafe(chores::ticket(state, &found)).catch_unwind();
    match timeout_at(until, sent).await {
        Ok(Ok(Ok(()))) => return (booking, true),
        Ok(Ok(Err(cause))) => {
            tracing::warn!(%booking, %cause, "the tickets of {booking} are left for the relay to mail");
        }
        Ok(Err(_)) => tracing::error!(%booking, "mailing the tickets of {booking} panicked; the relay tries again"),
        Err(_) => tracing::warn!(%booking, "the tickets of {booking} are left for the relay: it took too long"),
    }
    (booking, false)
}
