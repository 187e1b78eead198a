//! Performs effects of the relay in batches: sold seats of one show go to the map in few calls, and
//! tickets are read together. The commit pipeline composes mails of bookings in memory with the same code.

use std::collections::BTreeMap;

use domain::booking::Effect;
use futures::StreamExt;
use uuid::Uuid;

use super::commits::{BookingDetails, load_current};
use super::effects::{EffectError, perform};
use super::mails::ticket_mails;
use crate::SellingState;
use http::Problem;
use seats::seat_locks::{FencedSelection, MAX_PER_CALL, with_map};
use tickets::{Ticket, TicketMail};

/// Concurrent effects, mails included; half of the default connections to Postgres.
const MAX_CONCURRENT: usize = 8;

/// Performs effects of bookings and returns their outcomes in order.
///
/// The effects must be of different bookings: the caller performs the effects of one booking one after the other.
pub(super) async fn perform_all(state: &SellingState, jobs: &[(Uuid, Effect)]) -> Vec<Result<(), EffectError>> {
    let together = |effect: &Effect| matches!(effect, Effect::MarkBooked | Effect::SendTicket);
    let ids: Vec<Uuid> = jobs.iter().filter(|(_, effect)| together(effect)).map(|(booking, _)| *booking).collect();
    let mut found = load_current(state, &ids).await;
    let mut outcomes: BTreeMap<usize, Result<(), EffectError>> = BTreeMap::new();
    let mut marks: BTreeMap<Uuid, Vec<(usize, FencedSelection)>> = BTreeMap::new();
    let mut singly = Vec::new();
    for (place, (booking, effect)) in jobs.iter().enumerate() {
        match (&mut found, effect) {
            (Ok(found), Effect::MarkBooked) => match found.get(booking) {
                Some(found) => marks.entry(found.row.show_id).or_default().push((place, found.row.sale())),
                None => drop(outcomes.insert(place, Err(EffectError::NoBooking(*booking)))),
            },
            (Ok(found), Effect::SendTicket) => singly.push((place, *booking, *effect, found.remove(booking))),
            _ => singly.push((place, *booking, *effect, None)),
        }
    }
    for (show, sales) in marks {
        for part in sales.chunks(MAX_PER_CALL) {
            let marked = mark(state, show, part).await;
            outcomes.extend(part.iter().map(|(place, _)| (*place, marked.clone().map_err(EffectError::from))));
        }
    }
    let done = futures::stream::iter(singly)
        .map(|(place, booking, effect, found)| async move {
            let done = match found {
                Some(found) => ticket(state, &found).await,
                None => perform(state, booking, effect).await,
            };
            (place, done)
        })
        .buffer_unordered(MAX_CONCURRENT);
    outcomes.extend(done.collect::<Vec<_>>().await);
    outcomes.into_values().collect()
}

/// Marks these sales as booked on the map.
async fn mark(state: &SellingState, show: Uuid, sales: &[(usize, FencedSelection)]) -> Result<(), Problem> {
    let show = state.catalogue.find_show(show).await?;
    let sales: Vec<FencedSelection> = sales.iter().map(|(_, sale)| sale.clone()).collect();
    with_map(state, &show, || state.locks.book_all(show.id, &sales)).await
}

/// Mails the tickets of a loaded booking.
async fn ticket(state: &SellingState, found: &BookingDetails) -> Result<(), EffectError> {
    let show = state.catalogue.find_show(found.row.show_id).await?;
    ticket_mails::send(state, &show, &found.row, seats(found)).await
}

/// Returns the mails with these tickets of a loaded booking.
pub(super) async fn mails_of(
    state: &SellingState,
    found: &BookingDetails,
    tickets: &[Ticket],
) -> Result<Vec<TicketMail>, EffectError> {
    let show = state.catalogue.find_show(found.row.show_id).await?;
    ticket_mails::of_sale(state, &show, &found.row, seats(found), tickets).await
}

/// Returns label and category of each seat.
fn seats(found: &BookingDetails) -> Vec<(String, String)> {
    found.lines.iter().map(|line| (line.label.clone(), line.category.clone())).collect()
}
