//! The waiting room as one visitor sees it.

use domain::api::waiting_room::{DrawView, QueueState, QueueView};
use domain::time::Timestamp;
use domain::waiting_room::draw::METHOD;

use super::entry::Credentials;
use super::room::ActiveRoom;
use super::tickets::Pass;
use crate::AdmissionState;
use catalogue::Show;
use platform::clock::rfc3339;

/// Builds the view for a visitor with these credentials; `entered_state` is the state that an attempt to enter has
/// returned.
pub(super) fn view(
    state: &AdmissionState,
    show: &Show,
    room: &ActiveRoom,
    owner: &str,
    credentials: Credentials,
    entered_state: Option<QueueState>,
) -> QueueView {
    let (now, queue) = (state.clock.now(), room.queue());
    let is_closed = catalogue::sales_open(show, now).is_err();
    let place = credentials.number.and_then(|number| room.place_of(number));
    let queue_state = match (entered_state, credentials.number) {
        (Some(entered_state), _) => entered_state,
        // The pass of a cancelled show is useless.
        _ if show.is_called_off() => QueueState::Closed,
        _ if credentials.pass.is_some() => QueueState::Inside,
        _ if is_closed => QueueState::Closed,
        (None, None) => QueueState::Outside,
        (None, Some(_)) if place.is_some_and(|place| queue.has_called(place)) => QueueState::Called,
        (None, Some(_)) => QueueState::Waiting,
    };
    let outlook = place.filter(|_| queue_state == QueueState::Waiting).map(|place| queue.outlook(place));
    let signer = &state.waiting_rooms.signer;
    let keeps = !matches!(queue_state, QueueState::Over | QueueState::Outside | QueueState::Closed);
    let ticket = credentials.number.filter(|_| keeps).map(|number| signer.ticket(room.id, number));
    let pass = credentials.pass.map(|pass| signer.pass(room.id, owner, pass));
    let link = ticket.as_ref().map(|ticket| link(state, show, ticket));
    let Timestamp(opens_at_ms) = room.settings().opens_at;
    QueueView {
        show: show.id,
        state: queue_state,
        opens_at: rfc3339(Timestamp(opens_at_ms)),
        opens_at_ms,
        queue,
        number: credentials.number,
        place,
        outlook,
        ticket,
        link,
        pass,
        pass_until_ms: credentials.pass.map(|Pass { until, .. }| until.0),
        draw: DrawView {
            method: METHOD.to_owned(),
            commitment: room.commitment.clone(),
            people: room.people(),
            key: room.published_key(),
        },
    }
}

/// The address that transfers a ticket to another device.
fn link(state: &AdmissionState, show: &Show, ticket: &str) -> String {
    format!("{}/shows/{}/place/{ticket}", state.site.public_url.trim_end_matches('/'), show.id)
}
