//! The state of a waiting room visit in words.

use domain::api::waiting_room::{QueueState, QueueView};
use domain::time::{SECOND_MS, Timestamp};
use domain::waiting_room::ExpectedWait;
use language::{Arg, clock, say};
use leptos::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueueWords {
    pub(super) title: String,
    pub(super) text: String,
    pub(super) wait: Option<String>,
}

impl QueueWords {
    /// The announced text, without the heading.
    pub(super) fn announced(&self) -> String {
        self.wait.iter().fold(self.text.clone(), |text, wait| format!("{text} {wait}"))
    }
}

/// The name of a state, for tests and style.
pub(super) const fn name(state: QueueState) -> &'static str {
    match state {
        QueueState::Outside => "outside",
        QueueState::Waiting => "waiting",
        QueueState::Called => "called",
        QueueState::Late => "late",
        QueueState::Inside => "inside",
        QueueState::Elsewhere => "elsewhere",
        QueueState::Over => "over",
        QueueState::Closed => "closed",
    }
}

/// The text in front of the page title when it is the visitor's turn.
pub(super) fn headline(state: QueueState) -> Option<String> {
    match state {
        QueueState::Called | QueueState::Late => Some(say!("queue.called_title")),
        QueueState::Inside => Some(say!("queue.inside_title")),
        QueueState::Outside | QueueState::Waiting | QueueState::Elsewhere | QueueState::Over | QueueState::Closed => {
            None
        }
    }
}

/// The text of a visit. `opens` is the opening time in words.
pub(super) fn of(view: &QueueView, opens: &str) -> QueueWords {
    let opens = Arg::Ours(opens);
    let is_open = view.queue.is_open;
    let (title, text) = match (view.state, view.place, view.outlook) {
        (QueueState::Outside, ..) if is_open => (say!("queue.outside_title"), say!("queue.outside_late")),
        (QueueState::Outside, ..) => (say!("queue.outside_title"), say!("queue.outside_early", time = opens)),
        (QueueState::Waiting, Some(place), Some(outlook)) => {
            let place = i64::try_from(place).unwrap_or(i64::MAX).saturating_add(1);
            (say!("queue.place", place = place), ahead(outlook))
        }
        (QueueState::Waiting, ..) => (say!("queue.in_title"), say!("queue.in_text", time = opens)),
        (QueueState::Called, ..) => (say!("queue.called_title"), say!("queue.called_text")),
        (QueueState::Late, ..) => (say!("queue.called_title"), say!("queue.late_text")),
        (QueueState::Inside, ..) => (say!("queue.inside_title"), say!("queue.inside_text")),
        (QueueState::Elsewhere, ..) => (say!("queue.elsewhere_title"), say!("queue.elsewhere_text")),
        (QueueState::Over, ..) => (say!("queue.over_title"), say!("queue.over_text")),
        (QueueState::Closed, ..) => (say!("queue.closed_title"), say!("queue.closed_text")),
    };
    let wait = match view.outlook {
        Some(_) if view.queue.is_sold_out => Some(say!("queue.sold_out")),
        Some(outlook) => Some(wait(outlook)),
        None => None,
    };
    QueueWords { title, text, wait }
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn ahead(outlook: ExpectedWait) -> String {
    let (least, most) = (count(outlook.ahead_least), count(outlook.ahead_most));
    match least {
        _ if least == most => say!("queue.ahead", most = most),
        0 => say!("queue.ahead_most", most = most),
        _ => say!("queue.ahead_range", least = least, most = most),
    }
}

fn wait(outlook: ExpectedWait) -> String {
    let least = count(outlook.wait_least_s / 60);
    match outlook.wait_most_s.map(|most| count(most.div_ceil(60))) {
        None => say!("queue.wait_unknown", least = least),
        Some(most) if most <= 1 => say!("queue.wait_soon"),
        Some(most) if most == least => say!("queue.wait", most = most),
        Some(most) if least == 0 => say!("queue.wait_most", most = most),
        Some(most) => say!("queue.wait_range", least = least, most = most),
    }
}

/// The text of a missing connection. Visitors who wait keep their place; the time of those inside continues.
pub(super) fn offline(state: Option<QueueState>) -> String {
    match state {
        Some(QueueState::Waiting | QueueState::Called | QueueState::Late) => say!("queue.offline_kept"),
        _ => say!("queue.offline"),
    }
}

/// The countdown to the opening, or to the end of the pass.
pub(super) fn countdown(view: &QueueView, now: Timestamp) -> Option<String> {
    let left_ms = |end_ms| Some(Timestamp(end_ms).since(now)).filter(|left| *left > 0);
    match view.state {
        QueueState::Waiting if !view.queue.is_open => left_ms(view.opens_at_ms).map(opens_in),
        QueueState::Inside => left_ms(view.pass_until_ms?).map(pass_ends_in),
        _ => None,
    }
}

fn pass_ends_in(left_ms: i64) -> String {
    let seconds = left_ms / SECOND_MS;
    say!("queue.inside_left", time = Arg::Ours(&clock(seconds / 60, seconds % 60)))
}

/// The time until opening: days from two days on, hours and minutes from an hour on, then a countdown.
fn opens_in(left_ms: i64) -> String {
    let seconds = left_ms / SECOND_MS;
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    match hours {
        0 => say!("queue.opens_in", time = Arg::Ours(&clock(minutes, seconds % 60))),
        1..48 => say!("queue.opens_in_hours", hours = hours, minutes = minutes % 60),
        _ => say!("queue.opens_in_days", days = hours / 24),
    }
}

/// The link that moves the place to another device.
pub(super) fn link(link: String) -> impl IntoView {
    view! {
        <p class="field waiting-room-link">
            <label for="queue-link">{say!("queue.link")}</label>
            <input id="queue-link" data-testid="queue-link" type="text" readonly dir="ltr" value=link />
        </p>
    }
}

/// The data needed to verify the draw.
pub(super) fn draw(view: &QueueView) -> impl IntoView + use<> {
    let draw = view.draw.clone();
    let number = view.number.map(|number| (say!("queue.number"), number.to_string()));
    let people = draw.people.map(|people| (say!("queue.people"), people.to_string()));
    let key = draw.key.map(|key| (say!("queue.key"), key));
    let lines = [Some((say!("queue.commitment"), draw.commitment)), key, people, number];
    let lines = lines.into_iter().flatten().map(|(name, value)| view! { <dt>{name}</dt><dd dir="ltr">{value}</dd> });
    view! {
        <details class="waiting-room-draw">
            <summary>{say!("queue.fair_title")}</summary>
            <p>{say!("queue.fair_text")}</p>
            <dl>{lines.collect_view()}</dl>
        </details>
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::view;
    use super::*;
    use domain::waiting_room::WaitingRoomStatus;

    fn at(place: u64, lately: u32) -> QueueView {
        let queue = WaitingRoomStatus { is_open: true, lately, ..view(QueueState::Waiting).queue };
        QueueView { place: Some(place), outlook: Some(queue.outlook(place)), queue, ..view(QueueState::Waiting) }
    }

    #[test]
    fn a_place_and_a_wait_are_worded_as_ranges() {
        let next = of(&at(0, 600), "");
        assert_eq!((next.title.as_str(), next.text.as_str()), ("Your place: 1", "You are next."));
        assert_eq!(next.wait.as_deref(), Some("Less than a minute to go."));
        let later = of(&at(3_000, 300), "");
        assert_eq!(later.text, "3,000 people are ahead of you.");
        assert_eq!(later.wait.as_deref(), Some("Between 5 and 13 minutes to go."));
        let stuck = of(&at(3_000, 0), "");
        assert!(stuck.wait.as_ref().is_some_and(|wait| wait.starts_with("At least 5 minutes to go.")));
        assert_eq!(stuck.announced(), format!("{} {}", stuck.text, stuck.wait.expect("a wait")));
    }

    #[test]
    fn one_and_zero_have_their_own_wording() {
        let stuck = |place| of(&at(place, 0), "").wait.expect("a wait");
        assert!(stuck(0).starts_with("No one is being let in right now") && !stuck(0).contains('0'), "{}", stuck(0));
        assert!(stuck(600).starts_with("At least a minute to go."), "{}", stuck(600));
        let left = |ahead_least, ahead_most| {
            ahead(ExpectedWait { ahead_least, ahead_most, wait_least_s: 0, wait_most_s: None })
        };
        assert_eq!(left(0, 1), "At most one person is ahead of you.");
        assert_eq!(left(0, 3), "At most 3 people are ahead of you.");
        assert_eq!(left(1, 3), "Between 1 and 3 people are ahead of you.");
        let soon = wait(ExpectedWait { ahead_least: 0, ahead_most: 3, wait_least_s: 30, wait_most_s: Some(150) });
        assert_eq!(soon, "At most 3 minutes to go.");
    }

    #[test]
    fn the_title_announces_only_the_visitors_turn() {
        for (state, expected) in [
            (QueueState::Called, Some("It is your turn")),
            (QueueState::Late, Some("It is your turn")),
            (QueueState::Inside, Some("Come in")),
            (QueueState::Waiting, None),
            (QueueState::Over, None),
        ] {
            assert_eq!(headline(state).as_deref(), expected, "{state:?}");
        }
    }

    #[test]
    fn no_place_is_shown_before_the_opening() {
        let early = of(&view(QueueState::Waiting), "Sat 21 Nov, 20:15");
        assert!(early.text.contains("Sat 21 Nov, 20:15") && early.wait.is_none(), "{early:?}");
        assert!(of(&view(QueueState::Outside), "Sat 21 Nov, 20:15").text.contains("Sat 21 Nov, 20:15"));
    }

    #[test]
    fn the_countdown_runs_to_the_opening_and_then_to_the_end_of_the_pass() {
        let at = |view: &QueueView, ms| countdown(view, Timestamp(ms));
        let early = view(QueueState::Waiting);
        assert_eq!(at(&early, 40_000).as_deref(), Some("Opens in 1:00."));
        assert_eq!(at(&early, early.opens_at_ms), None);
        let inside = QueueView { pass_until_ms: Some(700_000), ..view(QueueState::Inside) };
        assert_eq!(at(&inside, 109_500).as_deref(), Some("9:50 left to choose your seats."));
        assert_eq!(at(&inside, 700_000), None);
        assert_eq!(at(&view(QueueState::Over), 40_000), None);
    }

    #[test]
    fn a_missing_connection_names_the_place_of_those_who_wait() {
        assert!(offline(Some(QueueState::Waiting)).contains("Your place is kept"));
        for state in [None, Some(QueueState::Outside), Some(QueueState::Inside)] {
            assert_eq!(offline(state), "No connection right now. We’ll keep trying.", "{state:?}");
        }
    }

    #[test]
    fn the_time_until_opening_is_worded_by_its_length() {
        for (seconds, words) in [
            (125, "Opens in 2:05."),
            (3_599, "Opens in 59:59."),
            (3_600, "Opens in 1 h 0 min."),
            (2 * 86_400 - 1, "Opens in 47 h 59 min."),
            (3 * 86_400, "Opens in 3 days."),
        ] {
            assert_eq!(opens_in(seconds * SECOND_MS), words);
        }
    }
}
