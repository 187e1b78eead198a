//! The rehearsal of a show's on-sale: its form, its live figures and map, and its verdict with advice.

use std::sync::Arc;

use domain::layout::Layout;
use domain::rehearsal::{Advice, MAX_ARRIVAL_MINUTES, MAX_PEOPLE, RehearsalEnd, RehearsalFigures, RehearsalRequest};
use domain::seats::SeatState;
use language::{number, say};
use leptos::prelude::*;
use uuid::Uuid;

use super::fields::{Field, hidden};
use super::form::REASON;
use super::{Desk, Form, Tab, frame, head, tabbed, when};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page};
use crate::site;

const PEOPLE: &str = "people";
const MINUTES: &str = "minutes";
/// Initial values of the form.
const DEFAULT_PEOPLE: u32 = 500;
const DEFAULT_MINUTES: u32 = 2;
const CROWD: Field = Field::number(PEOPLE, "rehearsal.people").required().marked().between(1, MAX_PEOPLE);
const ARRIVAL: Field = Field::number(MINUTES, "rehearsal.minutes").required().marked().between(0, MAX_ARRIVAL_MINUTES);
const WHY: Field = Field::reason("rehearsal-reason", "organiser.reason");

/// The page of a show's rehearsal.
#[derive(Clone, Debug)]
pub struct RehearsalPage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The show.
    pub show: Uuid,
    /// Title of its film.
    pub title: String,
    /// Start of the show, local.
    pub starts_local: String,
    /// Its running or last rehearsal.
    pub rehearsal: Option<ShownRehearsal>,
    /// A refused form, or an empty one.
    pub form: Form,
}

/// A running rehearsal, or the last one.
#[derive(Clone, Debug)]
pub struct ShownRehearsal {
    /// Its figures.
    pub figures: RehearsalFigures,
    /// How it ended; `None` while it runs.
    pub end: Option<RehearsalEnd>,
    /// The room.
    pub room: Arc<Layout>,
    /// A byte per seat ([`SeatState`]); empty without a map.
    pub map: Vec<u8>,
}

/// The rehearsal of a sent form; `None` if a field is refused.
pub fn rehearsal_request(form: &mut Form) -> Option<RehearsalRequest> {
    let people = form.whole_up_to(PEOPLE, MAX_PEOPLE);
    let arrival_minutes = form.whole_up_to(MINUTES, MAX_ARRIVAL_MINUTES);
    form.check_reason();
    (!form.is_refused()).then(|| RehearsalRequest { people, arrival_minutes, reason: form.text(REASON) })
}

impl Page for RehearsalPage {
    fn head(&self) -> Head {
        head(format!("{}: {}", say!("rehearsal.title"), self.title))
    }

    fn view(self) -> Markup {
        let Self { desk, show, title, starts_local, rehearsal, form } = self;
        let base = format!("/staff/{}/shows/{show}", desk.theatre);
        let here = format!("{base}/rehearsal");
        let is_running = rehearsal.as_ref().is_some_and(|rehearsal| rehearsal.end.is_none());
        let start = (!is_running).then(|| start_form(&here, form, &desk.key));
        let shown = rehearsal.map(|rehearsal| rehearsal_view(&here, rehearsal));
        let content = view! {
            <div class="organiser-facts"><p><a href=base><bdi>{title}</bdi>" · "{when(&starts_local)}</a></p></div>
            {shown}
            {start}
        };
        frame(&desk, say!("rehearsal.title"), tabbed(&desk, Some(Tab::Programme), content.into_markup()))
    }
}

fn start_form(here: &str, form: Form, key: &str) -> Markup {
    let is_new = form.get(PEOPLE).is_empty() && !form.is_refused();
    let form = if is_new {
        Form::new([(PEOPLE, DEFAULT_PEOPLE.to_string()), (MINUTES, DEFAULT_MINUTES.to_string())])
    } else {
        form
    };
    view! {
        <form class="organiser-form card organiser-card" action=here.to_owned() method="post" aria-labelledby="rehearse">
            <h2 id="rehearse" class="organiser-wide">{say!("rehearsal.start_title")}</h2>
            <p class="organiser-wide">{say!("rehearsal.lead")}</p>
            <p class="organiser-wide quiet">{say!("rehearsal.not_rehearsed")}</p>
            {hidden("key", key)}
            {CROWD.view(&form)}
            {ARRIVAL.view(&form)}
            {WHY.view(&form)}
            <button class="button" r#type="submit" data-testid="rehearse">{say!("rehearsal.start")}</button>
        </form>
    }
    .into_markup()
}

fn rehearsal_view(here: &str, rehearsal: ShownRehearsal) -> Markup {
    let ShownRehearsal { figures, end, room, map } = rehearsal;
    let (state, words) = state_of(end);
    let verdict = match end {
        None => stop_form(here, &figures, &room, &map),
        Some(end) => verdict(here, &figures, end),
    };
    view! {
        <p class="organiser-state" data-testid="rehearsal-state" data-state=state>{words}</p>
        <dl class="reports-totals" data-figures="figures">{lines(&figures)}</dl>
        {verdict}
    }
    .into_markup()
}

/// The state as a name for tests, and as a sentence.
fn state_of(end: Option<RehearsalEnd>) -> (&'static str, String) {
    let words = match end {
        None => say!("rehearsal.running"),
        Some(RehearsalEnd::SoldOut) => say!("rehearsal.sold_out"),
        Some(RehearsalEnd::AllServed) => say!("rehearsal.all_served"),
        Some(RehearsalEnd::Stopped) => say!("rehearsal.stopped"),
        Some(RehearsalEnd::OutOfTime) => say!("rehearsal.out_of_time"),
        Some(RehearsalEnd::GaveWay) => say!("rehearsal.gave_way"),
        Some(RehearsalEnd::Interrupted) => say!("rehearsal.interrupted"),
    };
    (end.map_or("running", Into::into), words)
}

fn lines(figures: &RehearsalFigures) -> impl IntoView + use<> {
    let of_people = |count: u32| say!("rehearsal.of", count = count, all = figures.people);
    let ms = |ms: u32| format!("{} ms", whole(ms.into()));
    let mut lines = vec![
        ("rehearsal-arrived", say!("rehearsal.arrived"), of_people(figures.arrived)),
        ("rehearsal-taken", say!("rehearsal.taken"), say!("rehearsal.of", count = figures.taken, all = figures.seats)),
        ("rehearsal-served", say!("rehearsal.served"), of_people(figures.served)),
        ("rehearsal-no-seats", say!("rehearsal.no_seats"), whole(figures.no_seats.into())),
        ("rehearsal-lost-race", say!("rehearsal.lost_race"), whole(figures.lost_race.into())),
        ("rehearsal-turned-away", say!("rehearsal.turned_away"), whole(figures.turned_away.into())),
        ("rehearsal-unserved", say!("rehearsal.unserved"), whole(figures.unserved().into())),
        ("rehearsal-median", say!("rehearsal.median"), ms(figures.median_ms)),
        ("rehearsal-p99", say!("rehearsal.slowest"), ms(figures.p99_ms)),
    ];
    if let Some(ms) = figures.sold_out_ms {
        lines.push(("rehearsal-sold-out", say!("rehearsal.sold_out_after"), format!("{} s", whole(ms / 1_000))));
    }
    if let Some(percent) = figures.in_turn_percent {
        lines.push(("rehearsal-in-turn", say!("rehearsal.in_turn"), say!("reports.percent", percent = percent)));
    }
    let lines = lines.into_iter().map(|(test, name, value)| {
        view! {
            <div class="card reports-total">
                <dt>{name}</dt>
                <dd data-testid=test>{value}</dd>
            </div>
        }
    });
    lines.collect_view()
}

fn whole(value: i64) -> String {
    number(value, language::current())
}

/// The map, and the button that stops the rehearsal. A script keeps figures and map current, and hides the link.
fn stop_form(here: &str, figures: &RehearsalFigures, room: &Layout, map: &[u8]) -> Markup {
    let described = say!("rehearsal.map", count = figures.taken, all = figures.seats);
    let (size, focus) = (room.size(), room.focus());
    let front = focus.is_in_front().then(|| {
        let ([x, y], half) = (focus.at, focus.width / 2);
        view! { <line class="heat-front" x1=x - half x2=x + half y1=y y2=y /> }
    });
    let (free, taken) = (dots(room, map, SeatState::Available), dots(room, map, SeatState::Locked));
    view! {
        <form action=format!("{here}/stop") method="post">
            <button class="button button-danger" r#type="submit" data-testid="rehearsal-stop">{say!("rehearsal.stop")}</button>
        </form>
        <p data-figures-link><a href=here.to_owned() data-testid="rehearsal-refresh">{say!("rehearsal.refresh")}</a></p>
        <svg class="chart chart-room" viewBox=format!("0 0 {} {}", size.0, size.1) role="img"
            aria-labelledby="rehearsal-map-name" data-testid="rehearsal-map" data-figures="map">
            <title id="rehearsal-map-name">{described}</title>
            {front}
            <path class="heat heat-0" d=free />
            <path class="heat heat-5" d=taken />
        </svg>
        <script r#type="module" src=site::address("/pkg/live-figures.js")></script>
    }
    .into_markup()
}

/// The seats in a state as one path: lines of zero length, drawn as dots by round ends.
fn dots(room: &Layout, map: &[u8], state: SeatState) -> String {
    let seats = (0_u32..).zip(map).filter(|(_, byte)| SeatState::from_byte(**byte) == Some(state));
    seats.filter_map(|(seat, _)| room.place(seat)).map(|((x, y), _)| format!("M{x} {y}h0")).collect()
}

fn verdict(here: &str, figures: &RehearsalFigures, end: RehearsalEnd) -> Markup {
    let mut advice: Vec<String> = figures.advice(end).into_iter().map(advice_words).collect();
    if advice.is_empty() {
        advice.push(say!("rehearsal.no_advice"));
    }
    let advice = advice.into_iter().map(|words| view! { <li>{words}</li> }).collect_view();
    view! {
        <section class="card organiser-card" aria-labelledby="rehearsal-advice">
            <h2 id="rehearsal-advice">{say!("rehearsal.advice_title")}</h2>
            <ul class="organiser-films" data-testid="rehearsal-advice">{advice}</ul>
            <form action=format!("{here}/delete") method="post">
                <button class="button button-quiet" r#type="submit" data-testid="rehearsal-delete">{say!("rehearsal.delete")}</button>
            </form>
        </section>
    }
    .into_markup()
}

fn advice_words(advice: Advice) -> String {
    match advice {
        Advice::AnotherShow => say!("rehearsal.another_show"),
        Advice::LowerPersonLimit => say!("rehearsal.lower_person_limit"),
        Advice::WaitingRoom => say!("rehearsal.add_waiting_room"),
        Advice::LetInFaster => say!("rehearsal.let_in_faster"),
        Advice::SlowAnswers => say!("rehearsal.slow_answers"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_with_too_many_visitors_is_refused_beside_its_field() {
        let form = |people: &str| Form::new([(PEOPLE, people), (MINUTES, "2"), (REASON, "Opening night.")]);
        let request = rehearsal_request(&mut form("40")).expect("a request");
        assert_eq!((request.people, request.arrival_minutes), (40, 2));
        let mut refused = form("2001");
        assert_eq!(rehearsal_request(&mut refused), None);
        assert!(refused.refusal(PEOPLE).is_some());
    }

    #[test]
    fn states_have_the_names_of_the_ends() {
        assert_eq!(state_of(None).0, "running");
        assert_eq!(state_of(Some(RehearsalEnd::SoldOut)).0, "sold_out");
    }
}
