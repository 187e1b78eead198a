//! What was just sold is told to the map at once, many sales in a call, by the replica that committed them.
//!
//! The outbox has it as well, with a head start: whatever is lost or fails here, the relay does after that.

use std::collections::BTreeMap;

use domain::booking::Effect;
use uuid::Uuid;

use crate::bookings::sql::BookingRow;
use crate::seat_locks::{MAX_PER_CALL, Sale, with_map};
use crate::web::Problem;
use crate::{AppState, outbox};

/// Sales that may wait to be told; those beyond are left to the relay.
const MAX_MARKS: usize = 8_192;

/// A sale to be told.
pub(super) struct Mark {
    show: Uuid,
    booking: Uuid,
    sale: Sale,
}

/// Has the map told of these bookings, which are sold and committed.
pub(super) fn tell<'a>(state: &AppState, sold: impl Iterator<Item = &'a BookingRow>) {
    for row in sold {
        if state.commits.marks.len() >= MAX_MARKS {
            return;
        }
        if state.commits.marks.join(Mark { show: row.show_id, booking: row.id, sale: row.sale() }) {
            state.tasks.spawn(serve(state.clone()));
        }
    }
}

/// Tells sales until none waits.
async fn serve(state: AppState) {
    while let Some(marks) = state.commits.marks.gather().await {
        let mut shows: BTreeMap<Uuid, Vec<Mark>> = BTreeMap::new();
        for mark in marks {
            shows.entry(mark.show).or_default().push(mark);
        }
        let mut told = Vec::new();
        for (show, marks) in shows {
            for part in marks.chunks(MAX_PER_CALL) {
                match book(&state, show, part).await {
                    Ok(()) => told.extend(part.iter().map(|mark| mark.booking)),
                    // The cause was logged where it arose.
                    Err(_) => tracing::debug!(%show, sales = part.len(), "sales are left for the relay to tell"),
                }
            }
        }
        if let Err(cause) = outbox::done_all_now(&state, &told, Effect::MarkBooked).await {
            tracing::warn!(%cause, sales = told.len(), "sales that the map knows stay in the outbox, and are told again");
        }
    }
}

async fn book(state: &AppState, show: Uuid, marks: &[Mark]) -> Result<(), Problem> {
    let show = state.catalogue.known_show(show).await?;
    let sales: Vec<Sale> = marks.iter().map(|mark| mark.sale.clone()).collect();
    with_map(state, &show, || state.locks.book_all(show.id, &sales)).await
}
