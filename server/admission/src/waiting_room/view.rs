//! A waiting room as somebody sees it.

use domain::api::waiting_room::{DrawView, QueueState, QueueView};
use domain::time::Timestamp;
use domain::waiting_room::draw::METHOD;

use super::entry::Papers;
use super::room::Room;
use super::tickets::Pass;
use crate::AdmissionState;
use catalogue::Show;
use platform::clock::rfc3339;

/// How somebody stands who brought these papers; `state` is what they were just told at the door, if they were.
pub(super) fn view(
    state: &AdmissionState,
    show: &Show,
    room: &Room,
    owner: &str,
    papers: Papers,
    told: Option<QueueState>,
) -> QueueView {
    let (now, queue) = (state.clock.now(), room.queue());
    let is_closed = catalogue::sales_open(show, now).is_err();
    let place = papers.number.and_then(|number| room.place_of(number));
    let standing = match (told, papers.number) {
        (Some(told), _) => told,
        // A pass leads to no seat any more.
        _ if show.is_called_off() => QueueState::Closed,
        _ if papers.pass.is_some() => QueueState::Inside,
        _ if is_closed => QueueState::Closed,
        (None, None) => QueueState::Outside,
        (None, Some(_)) if place.is_some_and(|place| queue.has_called(place)) => QueueState::Called,
        (None, Some(_)) => QueueState::Waiting,
    };
    let outlook = place.filter(|_| standing == QueueState::Waiting).map(|place| queue.outlook(place));
    let signer = &state.waiting_rooms.signer;
    let keeps = !matches!(standing, QueueState::Over | QueueState::Outside | QueueState::Closed);
    let ticket = papers.number.filter(|_| keeps).map(|number| signer.ticket(room.id, number));
    let pass = papers.pass.map(|pass| signer.pass(room.id, owner, pass));
    let link = ticket.as_ref().map(|ticket| link(state, show, ticket));
    let Timestamp(opens_at_ms) = room.setting().opens_at;
    QueueView {
        show: show.id,
        state: standing,
        opens_at: rfc3339(Timestamp(opens_at_ms)),
        opens_at_ms,
        queue,
        number: papers.number,
        place,
        outlook,
        ticket,
        link,
        pass,
        pass_until_ms: papers.pass.map(|Pass { until, .. }| until.0),
        draw: DrawView {
            method: METHOD.to_owned(),
            commitment: room.commitment.clone(),
            people: room.people(),
            key: room.told_key(),
        },
    }
}

/// The address that brings a ticket to another device.
fn link(state: &AdmissionState, show: &Show, ticket: &str) -> String {
    format!("{}/shows/{}/place/{ticket}", state.site.public_url.trim_end_matches('/'), show.id)
}
