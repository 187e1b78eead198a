//! Reading the room and the sections of a large one, until they are there.
//!
//! Whoever waits for a room looks at a skeleton meanwhile, so a read that failed is made again by itself, with full
//! jitter and doubling pauses, for as long as somebody wants what it brings.

use std::sync::Arc;

use domain::api::PlanView;
use leptos::task::spawn_local;

use super::live::board::Board;
use super::room::Room;
use super::session::Session;
use super::signals::told::Told;
use super::telling::notices::Notice;
use crate::browser::calls::{self, Failure};
use crate::browser::{events, ids};
use crate::language::problem_in_words;
use crate::say;

/// Longest pause before the second try, milliseconds; doubles with each further one…
const FIRST_PAUSE_MS: u32 = 1_000;
/// …up to this.
const LONGEST_PAUSE_MS: u32 = 16_000;

/// Loads the room; `then` runs once it is there. Asked for once more, it is tried at once.
pub(super) fn load_room(session: Session, then: impl FnOnce() + 'static) {
    session.load_failure.set(None);
    let number = session.room_load.update_value(|number| {
        *number += 1;
        *number
    });
    spawn_local(async move {
        let is_wanted = || session.room_load.get_value() == number;
        let tell = |failure: &Failure| {
            let words = Some(in_words(failure));
            // Said once: the button to press stays under the finger while the same is true.
            if is_wanted() && session.load_failure.with_untracked(|said| *said != words) {
                session.load_failure.set(words);
            }
        };
        let plan = read(&session.path("/plan"), is_wanted, tell).await;
        let Some(plan) = plan.filter(|_| session.room.with_untracked(Option::is_none)) else { return };
        session.board.set_value(Board::new(plan.seat_count));
        session.free_seats.set_value(plan.sections.iter().map(|part| Told::new(part.count)).collect());
        session.room.set(Some(Arc::new(Room::new(plan))));
        then();
    });
}

/// Loads the rows of a section of a large room for as long as they are wanted; `then` runs once they are there.
pub fn load_section(
    session: Session,
    section: usize,
    is_wanted: impl Fn() -> bool + 'static,
    then: impl FnOnce() + 'static,
) {
    spawn_local(async move {
        let is_missing =
            || session.room.with_untracked(|room| room.as_ref().is_some_and(|room| !room.is_loaded(section)));
        let is_awaited = || is_missing() && is_wanted();
        let mut said = None::<Notice>;
        let tell = |failure: &Failure| {
            // Once: whoever has closed it knows.
            if said.is_none() && is_awaited() {
                let notice = Notice::failed(failure);
                session.notice.set(Some(notice.clone()));
                said = Some(notice);
            }
        };
        let plan = read(&session.path(&format!("/plan?section={section}")), is_awaited, tell).await;
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

/// What the API says of a room, or of a part of it; `None` once it is not wanted any more, or will never come.
async fn read(path: &str, is_wanted: impl Fn() -> bool, mut tell: impl FnMut(&Failure)) -> Option<PlanView> {
    let mut longest_ms = FIRST_PAUSE_MS;
    loop {
        let failure = match calls::read::<PlanView>(path).await {
            Ok(plan) => return Some(plan),
            Err(failure) => failure,
        };
        tell(&failure);
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

/// Whether the same question has the same answer in a moment: it was wrong, or there is no such room.
fn is_final(failure: &Failure) -> bool {
    (400..500).contains(&failure.status()) && failure.status() != 429
}

/// Why there is no room to look at. Only where no answer came can somebody's connection be to blame.
fn in_words(failure: &Failure) -> String {
    match failure {
        Failure::Unreachable => say!("map.room_unreachable"),
        Failure::Problem(problem) => problem_in_words(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::ProblemView;

    fn problem(status: u16, code: &str) -> Failure {
        Failure::Problem(Box::new(ProblemView {
            kind: String::new(),
            title: String::new(),
            status,
            detail: String::new(),
            code: code.to_owned(),
            seats: Vec::new(),
            areas: Vec::new(),
            findings: Vec::new(),
            puzzle: None,
            hold: None,
            request_id: None,
        }))
    }

    #[test]
    fn a_busy_box_office_is_asked_again_and_is_no_fault_of_the_connection() {
        let busy = problem(503, "overloaded");
        assert!(!is_final(&busy) && !is_final(&problem(429, "")) && !is_final(&Failure::Unreachable));
        assert_eq!(in_words(&busy), "Very many people are here at once. Please try again in a moment.");
        assert!(in_words(&Failure::Unreachable).contains("connection"));
    }

    #[test]
    fn a_show_that_is_not_there_is_not_asked_for_again() {
        assert!(is_final(&problem(404, "not_found")));
    }
}
