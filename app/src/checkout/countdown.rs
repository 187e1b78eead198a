//! The countdown of a hold, counted by the server's clock.

use domain::time::{MINUTE_MS, SECOND_MS};
use leptos::prelude::*;

use crate::language::clock;
use crate::say;
use crate::seat_map::own_seats::own_hold;
use crate::seat_map::session::MapSession;

/// From here on the countdown looks urgent and offers more time, milliseconds.
const URGENT_MS: i64 = 2 * MINUTE_MS;
/// Times left at which it is also announced, milliseconds.
const ANNOUNCED_AT_MS: [i64; 3] = [2 * MINUTE_MS, MINUTE_MS, 15 * SECOND_MS];
/// A smaller extension is not offered, milliseconds.
const MIN_EXTENSION_MS: i64 = 10 * SECOND_MS;

pub fn countdown(session: MapSession) -> impl IntoView {
    Effect::new(move |_| {
        if let Some(left) = session.countdown_ms.get().filter(|left| ANNOUNCED_AT_MS.contains(left)) {
            session.announcement.set(in_words(left));
        }
    });
    let urgent = move || session.countdown_ms.get().is_some_and(|left| left <= URGENT_MS);
    // The server's cap is final: nothing is offered once it is reached.
    let can_grow = Memo::new(move |_| {
        session.cart.with(|cart| {
            cart.held().is_some_and(|held| !held.paying && held.latest_ms - held.expires_at_ms >= MIN_EXTENSION_MS)
        })
    });
    view! {
        <p class="countdown" data-testid="countdown" role="timer" aria-label=say!("cart.time_left")
            data-urgent=move || if urgent() { "true" } else { "false" }
            hidden=move || session.countdown_ms.get().is_none()>
            {move || session.countdown_ms.get().map(shown).unwrap_or_default()}
        </p>
        <button type="button" class="countdown-more" data-testid="extend" hidden=move || !(urgent() && can_grow.get())
            aria-disabled=move || if session.is_extending.get() { "true" } else { "false" }
            on:click=move |_| own_hold::extend_hold(session)>{say!("cart.keep_longer")}</button>
    }
}

fn in_words(left_ms: i64) -> String {
    match (left_ms / MINUTE_MS, left_ms / SECOND_MS) {
        (0, seconds) => say!("cart.seconds_left", seconds = seconds),
        (minutes, _) => say!("cart.minutes_left", minutes = minutes),
    }
}

/// `4:09`.
fn shown(left_ms: i64) -> String {
    let seconds = left_ms / SECOND_MS;
    clock(seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_full_sentences() {
        let said = ANNOUNCED_AT_MS.map(in_words);
        assert_eq!(said[0], "2 minutes left to pay for your seats.");
        assert_eq!(said[1], "One minute left to pay for your seats.");
        assert_eq!(said[2], "15 seconds left to pay for your seats.");
    }

    #[test]
    fn the_countdown_shows_minutes_and_seconds() {
        assert_eq!((shown(249_000), shown(9_000), shown(0)), ("4:09".to_owned(), "0:09".to_owned(), "0:00".to_owned()));
    }
}
