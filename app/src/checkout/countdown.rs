//! How long the seats are still held, counted from the server's instant.

use domain::time::{MINUTE_MS, SECOND_MS};
use leptos::prelude::*;

use crate::seat_map::session::Session;

/// From here on the countdown looks urgent, milliseconds.
const URGENT_MS: i64 = MINUTE_MS;
/// Moments at which it is also said aloud, milliseconds.
const SAID_AT_MS: [i64; 2] = [MINUTE_MS, 15 * SECOND_MS];

/// The countdown.
pub fn countdown(session: Session) -> impl IntoView {
    Effect::new(move |_| {
        if let Some(left) = session.left_ms.get().filter(|left| SAID_AT_MS.contains(left)) {
            session.spoken.set(format!("{} seconds left to pay for your seats.", left / SECOND_MS));
        }
    });
    let urgent = move || session.left_ms.get().is_some_and(|left| left <= URGENT_MS);
    view! {
        <p class="countdown" data-testid="countdown" role="timer" aria-label="Time left"
            data-urgent=move || if urgent() { "true" } else { "false" }
            hidden=move || session.left_ms.get().is_none()>
            {move || session.left_ms.get().map(shown).unwrap_or_default()}
        </p>
    }
}

/// `4:09`.
fn shown(left_ms: i64) -> String {
    let seconds = left_ms / SECOND_MS;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_reads_as_minutes_and_seconds() {
        assert_eq!((shown(249_000), shown(9_000), shown(0)), ("4:09".to_owned(), "0:09".to_owned(), "0:00".to_owned()));
    }
}
