//! The requests that bring a hold after the wish, one at a time, and what their answers mean.

use domain::api::{AreaProblem, AreaQuantity, HoldChange, HoldRequest, HoldView, SeatProblem};
use domain::seats::{SeatIndex, put_as_read};
use gloo_net::http::Method;
use leptos::task::spawn_local;

use super::cart::{Cart, Intent};
use crate::browser::calls::{self, Failure};
use crate::browser::{events, ids};
use crate::language::{Arg, listed};
use crate::say;
use crate::seat_map::session::Session;
use crate::seat_map::telling::notices::{Notice, places_in_words};

/// How long an answer's news of a seat may be ahead of the live map, milliseconds.
const GUESS_MS: u32 = 2_000;

impl Session {
    /// Sends the next request, if one is due; its answer calls this again.
    pub(in crate::seat_map) fn pump(self) {
        // Looked at first: every change of the cart voids the questions on their way.
        if !self.cart.with_untracked(Cart::is_due) {
            return;
        }
        let Some((number, intent)) = self.change_cart(|cart| cart.next_intent().map(|intent| (cart.number(), intent)))
        else {
            return;
        };
        spawn_local(async move {
            let key = ids::new_key();
            let answer = self.ask(&intent, &key).await;
            if self.cart.with_untracked(Cart::number) == number {
                self.hear_answer(&intent, answer).await;
            } else {
                self.change_cart(Cart::answered);
                self.recall();
            }
            self.pump();
        });
    }

    async fn ask(&self, intent: &Intent, key: &str) -> Result<Option<HoldView>, Failure> {
        match intent {
            Intent::Take { seats, places } => {
                let (area, quantity) = (places.map(|places| places.area), places.map(|places| places.quantity));
                let body = HoldRequest { seats: seats.clone(), area, quantity };
                let path = self.path("/holds");
                let answer = calls::take(
                    &path,
                    key,
                    &body,
                    || self.notice.set(Some(Notice::proving())),
                    || self.cart.with_untracked(|cart| still_wanted(cart, seats, *places)),
                );
                let answer = answer.await;
                // The puzzle is solved, or was given up.
                self.unsay(&Notice::proving());
                answer
            }
            Intent::Change { hold, add, remove, add_places, remove_places } => {
                let body = HoldChange {
                    add: add.clone(),
                    remove: remove.clone(),
                    add_places: add_places.clone(),
                    remove_places: remove_places.clone(),
                };
                calls::ask(Method::PATCH, &self.path(&format!("/holds/{hold}")), key, &body).await
            }
            Intent::Drop { hold } => calls::remove(&self.path(&format!("/holds/{hold}")), key).await.map(|()| None),
        }
    }

    /// Says this no more, unless something else is said already.
    pub(in crate::seat_map) fn unsay(self, said: &Notice) {
        if self.notice.with_untracked(|notice| notice.as_ref() == Some(said)) {
            self.notice.set(None);
        }
    }

    async fn hear_answer(self, intent: &Intent, answer: Result<Option<HoldView>, Failure>) {
        let before = self.cart.with_untracked(|cart| cart.held().cloned());
        match answer {
            Ok(hold) => {
                self.note_given_back(before.as_ref(), hold.as_ref());
                self.speak_difference(before.as_ref(), hold.as_ref());
                self.change_cart(|cart| match hold {
                    Some(hold) => cart.granted(hold),
                    // No seat was left of it: asking for the rest again would go round in circles.
                    None if matches!(intent, Intent::Change { .. }) => cart.emptied(),
                    None => cart.dropped(),
                });
                self.tick();
                self.tell_tabs();
            }
            Err(failure) => self.hear_refusal(intent, failure).await,
        }
    }

    async fn hear_refusal(self, intent: &Intent, failure: Failure) {
        match (failure.code(), &failure) {
            ("seats_locked" | "seats_taken", Failure::Problem(problem)) if !problem.areas.is_empty() => {
                self.refuse_places(&problem.areas, &failure);
            }
            ("seats_locked" | "seats_taken", Failure::Problem(problem)) => self.refuse(&problem.seats),
            ("one_hold_per_show", _) => match calls::read::<HoldView>(&self.path("/hold")).await {
                Ok(hold) => self.change_cart(|cart| cart.join(hold)),
                Err(_) => self.fail(&failure),
            },
            // Dropping what is gone is done.
            ("hold_expired" | "not_found", _) if matches!(intent, Intent::Drop { .. }) => {
                self.change_cart(Cart::dropped);
            }
            ("hold_expired" | "not_found", _) if matches!(intent, Intent::Change { .. }) => {
                self.change_cart(Cart::answered);
                self.hold_is_gone();
            }
            ("waiting_list_first", _) => {
                self.others_wait.set(true);
                self.fail(&failure);
            }
            _ => self.fail(&failure),
        }
    }

    fn refuse(self, seats: &[SeatProblem]) {
        let named: Vec<_> = seats.iter().map(|seat| seat.seat).collect();
        // The refusal is news as well: paint those seats before the live map gets round to it.
        let states: Vec<_> = seats.iter().map(|seat| (seat.seat, seat.state)).collect();
        self.cart.with_untracked(|cart| self.board.update_value(|board| board.note_refused(&states, cart)));
        self.paint();
        self.forget_guesses_soon(named.clone());
        let (has_stayed, others) = self.change_cart(|cart| (cart.refused(&named, &[]), !cart.is_empty()));
        if has_stayed {
            // Nothing was lost, so there is nothing to offer in its place.
            self.notice.set(Some(Notice::not_exchanged(seats)));
            return;
        }
        self.notice.set(Some(Notice::refused(seats, others)));
        self.offer_instead_of(&named);
    }

    /// Areas were too full. What they have left is news as well.
    fn refuse_places(self, areas: &[AreaProblem], failure: &Failure) {
        let left: Vec<_> = areas.iter().map(|area| (area.area, area.left)).collect();
        self.note_places_left(&left);
        self.change_cart(|cart| cart.refused(&[], &left));
        self.notice.set(Some(Notice::failed(failure)));
    }

    fn fail(self, failure: &Failure) {
        self.change_cart(Cart::failed);
        self.notice.set(Some(Notice::failed(failure)));
        self.doubt(failure);
        // Without an answer we do not know what is held.
        self.recall();
    }

    fn note_given_back(self, before: Option<&HoldView>, after: Option<&HoldView>) {
        let kept = |seat: SeatIndex| after.is_some_and(|hold| hold.seats.iter().any(|line| line.seat == seat));
        let gone: Vec<_> =
            before.iter().flat_map(|hold| &hold.seats).map(|line| line.seat).filter(|seat| !kept(*seat)).collect();
        if !gone.is_empty() {
            self.board.update_value(|board| board.note_given_back(&gone));
            self.forget_guesses_soon(gone);
        }
    }

    /// Believes for a moment what we know of these seats before the live map does.
    pub(in crate::seat_map) fn forget_guesses_soon(self, seats: Vec<SeatIndex>) {
        spawn_local(async move {
            events::after(GUESS_MS).await;
            self.cart.with_untracked(|cart| self.board.update_value(|board| board.forget_guesses(&seats, cart)));
            self.paint();
        });
    }

    fn speak_difference(self, before: Option<&HoldView>, after: Option<&HoldView>) {
        let names = |hold: Option<&HoldView>, without: Option<&HoldView>| -> Vec<String> {
            let has = |seat| without.is_some_and(|hold| hold.seats.iter().any(|line| line.seat == seat));
            let lines = hold.iter().flat_map(|hold| &hold.seats);
            let mut seats: Vec<_> = lines.filter(|line| !has(line.seat)).map(|line| line.label.clone()).collect();
            put_as_read(&mut seats, String::as_str);
            let had = |area| {
                let mut lines = without.into_iter().flat_map(|hold| &hold.places);
                lines.find(|line| line.area == area).map_or(0, |line| line.quantity)
            };
            let places = hold.iter().flat_map(|hold| &hold.places).filter_map(|line| {
                let more = line.quantity.saturating_sub(had(line.area));
                (more > 0).then(|| places_in_words(more, &line.label))
            });
            seats.into_iter().chain(places).collect()
        };
        let said = |names: Vec<String>, key: &str| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            (!names.is_empty()).then(|| say!(key, seats = Arg::Ours(&listed(&names))))
        };
        let parts = [said(names(after, before), "map.held_for_you"), said(names(before, after), "map.let_go")];
        self.spoken.set(parts.into_iter().flatten().collect::<Vec<_>>().join(" "));
    }
}

/// Whether all that was asked for is still wanted.
fn still_wanted(cart: &Cart, seats: &[SeatIndex], places: Option<AreaQuantity>) -> bool {
    seats.iter().all(|seat| cart.wants(*seat))
        && places.is_none_or(|places| cart.wanted_in(places.area) >= places.quantity)
}
