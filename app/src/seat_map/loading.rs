//! Loads the room plan, and the sections of a large room, and retries failed loads.
//!
//! The page shows a skeleton meanwhile, so a failed read is retried automatically, with full jitter and doubling
//! pauses, for as long as its result is wanted.

use std::sync::Arc;

use domain::api::PlanView;
use leptos::task::spawn_local;

use super::live::board::Board;
use super::notice::Notice;
use super::room_plan::RoomPlan;
use super::session::MapSession;
use super::signals::PageSignal;
use crate::browser::calls::{self, Failure};
use crate::browser::{events, ids};

/// Message for a missing answer. Only that can be the fault of the visitor's connection.
const UNREACHABLE: &str = "map.room_unreachable";
/// Longest pause before the first retry, milliseconds. Doubles with each further retry…
const FIRST_PAUSE_MS: u32 = 1_000;
/// …up to this.
const LONGEST_PAUSE_MS: u32 = 16_000;

/// Loads the room plan and then calls `then`. A second call retries at once.
pub(super) fn load_room(session: MapSession, then: impl FnOnce() + 'static) {
    session.load_failure.set(None);
    let number = session.room_load.update_value(|number| {
        *number += 1;
        *number
    });
    spawn_local(async move {
        let is_wanted = || session.room_load.get_value() == number;
        let on_failure = |failure: &Failure| {
            let words = Some(failure.in_words(UNREACHABLE));
            // Set only when it changes, so that the retry button stays under the finger.
            if is_wanted() && session.load_failure.with_untracked(|said| *said != words) {
                session.load_failure.set(words);
            }
        };
        let plan = read(&session.path("/plan"), is_wanted, on_failure).await;
        let Some(plan) = plan.filter(|_| session.room.with_untracked(Option::is_none)) else { return };
        session.board.set_value(Board::new(plan.seat_count));
        session.free_seats.set_value(plan.sections.iter().map(|part| PageSignal::new(part.count)).collect());
        session.room.set(Some(Arc::new(RoomPlan::new(plan))));
        then();
    });
}

/// Loads the rows of a section of a large room while they are wanted, and then calls `then`.
pub fn load_section(
    session: MapSession,
    section: usize,
    is_wanted: impl Fn() -> bool + 'static,
    then: impl FnOnce() + 'static,
) {
    spawn_local(async move {
        let is_missing =
            || session.room.with_untracked(|room| room.as_ref().is_some_and(|room| !room.is_loaded(section)));
        let is_awaited = || is_missing() && is_wanted();
        let mut said = None::<Notice>;
        let on_failure = |failure: &Failure| {
            // Shown once per load: a notice that was closed does not return.
            if said.is_none() && is_awaited() {
                let notice = Notice::failed(failure);
                session.notice.set(Some(notice.clone()));
                said = Some(notice);
            }
        };
        let plan = read(&session.path(&format!("/plan?section={section}")), is_awaited, on_failure).await;
        let Some(plan) = plan.filter(|_| is_missing()) else { return };
        session.room.update(|room| {
            if let Some(room) = room {
                Arc::make_mut(room).merge(plan);
            }
        });
        if let Some(said) = said {
            session.dismiss(&said);
        }
        if is_wanted() {
            then();
        }
    });
}

/// Reads a room plan or a part of it. `None` once it is not wanted any more, or after a final failure.
async fn read(path: &str, is_wanted: impl Fn() -> bool, mut on_failure: impl FnMut(&Failure)) -> Option<PlanView> {
    let mut longest_ms = FIRST_PAUSE_MS;
    loop {
        let failure = match calls::read::<PlanView>(path).await {
            Ok(plan) => return Some(plan),
            Err(failure) => failure,
        };
        on_failure(&failure);
        if is_final(&failure) {
            return None;
        }
        events::after(ids::jitter(longest_ms)).await;
        longest_ms = (longest_ms * 2).min(LONGEST_PAUSE_MS);
        if !is_wanted() {
            return None;
        }
    }
}

/// Returns true if a retry cannot succeed: the request was wrong, or there is no such room.
pub(super) fn is_final(failure: &Failure) -> bool {
    (400..500).contains(&failure.status()) && failure.status() != 429
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::ProblemView;

    fn problem(status: u16, code: &str) -> Failure {
        Failure::Problem(Box::new(ProblemView { status, code: code.to_owned(), ..ProblemView::default() }))
    }

    #[test]
    fn an_overloaded_server_is_retried_and_not_reported_as_a_connection_failure() {
        let busy = problem(503, "overloaded");
        assert!(!is_final(&busy) && !is_final(&problem(429, "")) && !is_final(&Failure::Unreachable));
        assert_eq!(busy.in_words(UNREACHABLE), "Very many people are here at once. Please try again in a moment.");
        assert!(Failure::Unreachable.in_words(UNREACHABLE).contains("connection"));
    }

    #[test]
    fn an_unknown_show_is_not_retried() {
        assert!(is_final(&problem(404, "not_found")));
    }
}
