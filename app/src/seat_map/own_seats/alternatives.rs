//! Looks for other seats for a visitor who cannot have the seats they chose.

use domain::api::{BestView, SeatLine};
use domain::seats::{MAX_SEATS_PER_HOLD, SeatIndex};
use leptos::task::spawn_local;

use super::cart::Cart;
use super::nearest::nearest;
use super::offer::{SeatOffer, sum};
use crate::browser::{self, calls};
use crate::seat_map::appearance::SeatAppearance;
use crate::seat_map::session::MapSession;

/// The free seats nearest to the visitor's own, or nearest to the lost seats without own seats. As many as were lost.
pub(in crate::seat_map) fn nearest_offer(session: MapSession, lost: &[SeatIndex]) -> Option<SeatOffer> {
    let takes_more = |cart: &Cart| !cart.is_paying() && cart.count() + lost.len() <= MAX_SEATS_PER_HOLD;
    let room = session.room.get_untracked().filter(|_| session.cart.with_untracked(takes_more))?;
    let seats = session.cart.with_untracked(|cart| {
        session.board.with_value(|board| {
            nearest(&room, lost, cart.want(), |seat| board.look(seat, cart) == SeatAppearance::Available)
        })
    })?;
    let lines: Vec<SeatLine> = seats.iter().filter_map(|seat| room.line(*seat)).collect();
    Some(SeatOffer::instead(&lines, sum(&lines)?))
}

/// Finds as many free seats as were lost and adds them to the notice on show as an offer.
pub(in crate::seat_map) fn offer_alternatives(session: MapSession, lost: &[SeatIndex]) {
    if let Some(offer) = nearest_offer(session, lost) {
        session.notice.update(|notice| {
            if let Some(notice) = notice {
                notice.offer = Some(offer);
            }
        });
        return;
    }
    let category = session.room.with_untracked(|room| {
        let room = room.as_ref()?;
        lost.first().and_then(|seat| room.seat(*seat)).map(|seat| seat.category.name.clone())
    });
    let (Some(category), count) = (category, lost.len()) else { return };
    let about = session.notice.get_untracked();
    spawn_local(async move {
        let path = session.path(&format!("/best?count={count}&category={}&most=1", browser::encoded(&category)));
        let Ok(best) = calls::read::<BestView>(&path).await else { return };
        let Some(place) = best.suggestions.into_iter().next() else { return };
        let offer = SeatOffer::instead(&place.seats, place.total);
        session.notice.update(|notice| {
            // Only while the notice is still the same.
            if *notice == about
                && let Some(notice) = notice
            {
                notice.offer = Some(offer);
            }
        });
    });
}
