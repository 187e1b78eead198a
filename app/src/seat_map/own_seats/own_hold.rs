//! The visitor's own hold as the server tells it: asking for it, counting it down, and saying the right
//! thing when it is gone.
//!
//! A hold that is gone was given back, ran out, or became a booking. Only the first two are a loss, and
//! only the server knows for certain, so the countdown's zero is a reason to ask, not an answer.

use domain::api::HoldView;
use domain::seats::{SeatState, put_as_read};
use domain::time::{SECOND_MS, Timestamp};
use domain::wire::Mine;
use gloo_net::http::Method;
use leptos::task::spawn_local;
use uuid::Uuid;

use super::cart::Cart;
use crate::browser::calls;
use crate::browser::{clock, events, ids};
use crate::say;
use crate::seat_map::session::Session;
use crate::seat_map::telling::notices::{Notice, places_in_words};

/// By then the beacon of a tab that closed has arrived, milliseconds.
const BEACON_MS: u32 = 1_500;
/// A hold that ends within this of the server's word was ended by time, not by hand, milliseconds.
const END_TOLERANCE_MS: i64 = 2 * SECOND_MS;
/// How long the countdown stands at zero without a word from the server before we believe it,
/// milliseconds.
const END_PATIENCE_MS: f64 = 2_000.0;

/// A countdown at zero that waits for the server's word.
#[derive(Clone, Copy)]
pub(in crate::seat_map) struct Ending {
    /// When it is given up, on the monotonic clock.
    until: f64,
    /// Whether a question is on its way.
    asked: bool,
}

impl Session {
    /// Asks the server what this visitor holds. That also gives a hold its full time back that a
    /// closing tab had shortened.
    pub fn recall(self) {
        spawn_local(self.ask_what_is_held());
    }

    /// Asks now, and once more when a beacon on its way has arrived: it may shorten the hold after our
    /// question gave it its time back.
    pub(in crate::seat_map) fn recall_past_beacons(self) {
        spawn_local(async move {
            self.ask_what_is_held().await;
            events::after(BEACON_MS).await;
            self.ask_what_is_held().await;
        });
    }

    async fn ask_what_is_held(self) {
        let turn = self.turn.get_value();
        let answer = calls::read::<Option<HoldView>>(&self.path("/hold")).await;
        if self.turn.get_value() != turn {
            return;
        }
        // Without an answer the live connection or the next tap will tell.
        if let Ok(hold) = answer {
            if hold.is_some() {
                self.ending.set_value(None);
            }
            self.learn(hold);
        }
    }

    /// Asks for more time for what is held, as much as the show allows. Once at a time: a second press while the first
    /// has no answer asks for nothing.
    pub fn extend(self) {
        if self.extending.get_untracked() {
            return;
        }
        let held = self
            .cart
            .with_untracked(|cart| cart.held().filter(|held| !held.paying).map(|held| (held.id, held.expires_at_ms)));
        let Some((hold, ended_ms)) = held else { return };
        self.extending.set(true);
        spawn_local(async move {
            let path = self.path(&format!("/holds/{hold}/extend"));
            let answer = calls::ask::<HoldView>(Method::POST, &path, &ids::new_key(), &()).await;
            self.extending.set(false);
            match answer {
                Ok(hold) => {
                    match Notice::less_time(hold.expires_at_ms - ended_ms, hold.latest_ms - ended_ms) {
                        Some(notice) => self.notice.set(Some(notice)),
                        None => self.spoken.set(say!("map.more_time")),
                    }
                    // Seats may have been taken or let go since it was asked: of those this answer knows nothing.
                    if self.change_cart(|cart| cart.lasts_longer(&hold)) {
                        self.tick();
                    } else {
                        self.recall();
                    }
                    self.tell_tabs();
                }
                // The clock tells the rest.
                Err(failure) if failure.code() == "hold_capped" => self.recall(),
                Err(failure) => {
                    self.notice.set(Some(Notice::failed(&failure)));
                    self.doubt(&failure);
                    self.recall();
                }
            }
        });
    }

    /// What the live connection says about the own hold. It may be older than the answer to a request,
    /// so a difference only makes us ask.
    pub(in crate::seat_map) fn hear_mine(self, mine: Option<&Mine>) {
        let differs = self.cart.with_untracked(|cart| match (cart.held(), mine) {
            (None, None) => false,
            (Some(held), Some(mine)) => {
                held.id != mine.hold
                    || held.expires_at_ms != mine.expires_at.0
                    || held.paying != mine.paying
                    || !held.seats.iter().map(|line| line.seat).eq(mine.seats.iter().copied())
            }
            _ => true,
        });
        if differs {
            self.recall();
        }
    }

    /// Looks at the clock: counts down, and asks what became of a hold whose time is over.
    pub(in crate::seat_map) fn tick(self) {
        let ends = self.cart.with_untracked(|cart| cart.held().map(|held| (held.expires_at_ms, held.paying)));
        let (Some((ends_ms, paying)), Some(now)) = (ends, clock::server_now()) else {
            self.ending.set_value(None);
            if self.left_ms.get_untracked().is_some() {
                self.left_ms.set(None);
            }
            return;
        };
        let left = Timestamp(ends_ms).since(now).max(0);
        // Steps of a second: the display has no finer ones, and every step repaints.
        let step = (left + SECOND_MS - 1) / SECOND_MS * SECOND_MS;
        if self.left_ms.get_untracked() != Some(step) {
            self.left_ms.set(Some(step));
        }
        if left > 0 {
            self.ending.set_value(None);
        } else if !paying && !self.off_to_pay.get_value() {
            self.ask_for_the_end();
        }
    }

    /// The countdown is at zero: another tab may be paying for the hold, which made it longer.
    fn ask_for_the_end(self) {
        let now = clock::monotonic_ms();
        let ending = self.ending.get_value().unwrap_or(Ending { until: now + END_PATIENCE_MS, asked: false });
        if now > ending.until {
            self.expire();
            return;
        }
        // The answer to a request on its way tells as well.
        let ask = !ending.asked && self.cart.with_untracked(Cart::is_settled);
        self.ending.set_value(Some(Ending { asked: ending.asked || ask, ..ending }));
        if ask {
            spawn_local(async move {
                self.ask_what_is_held().await;
                // Without an answer the next tick asks again.
                self.ending.update_value(|ending| {
                    if let Some(ending) = ending {
                        ending.asked = false;
                    }
                });
            });
        }
    }

    /// The hold's time is over.
    pub(in crate::seat_map) fn expire(self) {
        let (seats, places) = self.cart.with_untracked(|cart| (cart.want().to_vec(), cart.want_places().to_vec()));
        let mut seat_names: Vec<String> = seats.iter().map(|seat| self.name_of(*seat)).collect();
        put_as_read(&mut seat_names, String::as_str);
        let place_names = places.iter().map(|places| places_in_words(places.quantity, &self.name_of_area(places.area)));
        let names: Vec<String> = seat_names.into_iter().chain(place_names).collect();
        self.board.update_value(|board| board.note_given_back(&seats));
        self.lose_hold(Notice::expired(&names));
        self.forget_guesses_soon(seats);
    }

    /// The server knows no hold of ours any more: says why, as far as that can be known.
    pub(in crate::seat_map) fn hold_is_gone(self) {
        // Paid in another tab, or out of time: the answer that is on its way says which, and asks again if it is no booking.
        if self.off_to_pay.get_value() {
            return;
        }
        let Some(held) = self.cart.with_untracked(|cart| cart.held().cloned()) else {
            return;
        };
        let of_seats = |wanted: SeatState| held.seats.iter().filter(move |line| self.state_of(line.seat) == wanted);
        let booking = held.booking.or_else(|| self.booking_of(held.id));
        let is_sold = of_seats(SeatState::Booked).next().is_some();
        if booking.is_some() || held.paying || is_sold {
            self.change_cart(Cart::moved_on);
            self.tick();
            self.notice.set(Some(Notice::moved_on(booking)));
        } else if clock::server_now().is_none_or(|now| held.expires_at_ms - now.0 < END_TOLERANCE_MS) {
            self.expire();
        } else if of_seats(SeatState::Available).count() == held.seats.len() {
            self.lose_hold(Notice::let_go_elsewhere());
        } else {
            self.lose_hold(Notice::ended());
        }
    }

    fn lose_hold(self, notice: Notice) {
        self.change_cart(Cart::expired);
        self.tick();
        self.notice.set(Some(notice));
    }

    fn booking_of(self, hold: Uuid) -> Option<Uuid> {
        self.booked.get_value().filter(|(booked, _)| *booked == hold).map(|(_, booking)| booking)
    }

    fn learn(self, hold: Option<HoldView>) {
        if hold.is_none() && self.cart.with_untracked(|cart| cart.held().is_some() && cart.is_settled()) {
            self.hold_is_gone();
        } else if self.change_cart(|cart| cart.learn(hold)) {
            self.tick();
        }
    }
}
