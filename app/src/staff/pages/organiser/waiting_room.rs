//! The waiting room of a show: its state, the published draw, and forms to switch it on, change it or switch it off.
//! The figures refresh automatically on pages without a form.

use domain::api::waiting_room::DrawView;
use domain::time::MINUTE_MS;
use domain::waiting_room::{MAX_PER_SECOND, PASS_MS, WaitingRoomStatus};
use language::{Arg, number, say};
use leptos::prelude::*;
use uuid::Uuid;

use super::fields::{Field, hidden};
use super::{Desk, Form, Tab, frame, head, tabbed, when};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page};

/// Initial value for people per second: it fills a room of some hundred seats within half a minute.
const DEFAULT_PACE: u32 = 10;
/// Length of a local time to the minute, as fields have it: `2026-12-01T10:00`.
const MINUTE_CHARS: usize = 16;

/// The name of the field of the opening time.
pub const OPENS: &str = "opens";
/// The name of the field of the pace.
pub const PER_SECOND: &str = "per_second";
/// The name of the hidden field of the version that a form is based on.
const SEEN: &str = "seen";
const OPENING: Field = Field::moment(OPENS, "waiting_room.opens").required().marked();
const PACE: Field = Field::number(PER_SECOND, "waiting_room.pace").required().marked().between(1, MAX_PER_SECOND);
const WHY: Field = Field::reason("room-reason", "organiser.reason");

/// The page of a show's waiting room.
#[derive(Clone, Debug)]
pub struct WaitingRoomPage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The show.
    pub show: Uuid,
    /// Title of its film.
    pub title: String,
    /// Start of the show, local.
    pub starts_local: String,
    /// Its waiting room, if switched on.
    pub room: Option<WaitingRoomState>,
    /// The requested part of the page.
    pub part: RoomPart,
    /// True if booking is closed, so that nothing can be changed.
    pub is_closed: bool,
    /// Suggested opening time to the minute: the start of sales, if in the future. May be empty.
    pub suggested: String,
}

/// The state of a waiting room.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingRoomState {
    /// Opening time, local, to the second.
    pub opens_local: String,
    /// True if the opening time can no longer change.
    pub is_settled: bool,
    /// True if seats are on sale. Otherwise no one is called.
    pub is_on_sale: bool,
    /// The queue, as visitors see it.
    pub queue: WaitingRoomStatus,
    /// People inside, and people called but not inside yet.
    pub inside: u64,
    /// Most people inside; `None` before the opening.
    pub limit: Option<u64>,
    /// The published data of its draw.
    pub draw: DrawView,
    /// Identifies the state shown here, for the version check of a change.
    pub seen: String,
}

/// A part of the page. Without a waiting room it is the form that switches one on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomPart {
    /// The figures.
    Figures {
        /// True if automatic refresh is switched off.
        is_still: bool,
    },
    /// The form of its terms, with the refused values, if any.
    Terms(Option<Form>),
    /// The form that switches it off.
    End(Form),
}

impl Page for WaitingRoomPage {
    fn head(&self) -> Head {
        head(format!("{}: {}", say!("waiting_room.title"), self.title))
    }

    fn view(self) -> Markup {
        let Self { desk, show, title, starts_local, room, part, is_closed, suggested } = self;
        let key = &desk.key;
        let base = format!("/staff/{}/shows/{show}", desk.theatre);
        let here = format!("{base}/waiting-room");
        let content = match (room, part) {
            (None, _) if is_closed => {
                view! { <p data-testid="room-state" data-state="closed">{say!("waiting_room.closed")}</p> }
                    .into_markup()
            }
            (None, RoomPart::Terms(Some(form))) => off(&here, &form, key),
            (None, _) => off(&here, &Form::new([(OPENS, suggested), (PER_SECOND, DEFAULT_PACE.to_string())]), key),
            (Some(room), RoomPart::Figures { is_still }) => figures(&here, show, room, is_closed, is_still),
            (Some(room), RoomPart::Terms(form)) => {
                let form = form.unwrap_or_else(|| {
                    let pace = room.queue.per_second.to_string();
                    Form::new([(OPENS, minute(&room.opens_local)), (PER_SECOND, pace.as_str())])
                });
                change(&here, &room, &form, key)
            }
            (Some(room), RoomPart::End(form)) => end(&here, room, &form, key),
        };
        let content = view! {
            <div class="organiser-facts"><p><a href=base><bdi>{title}</bdi>" · "{when(&starts_local)}</a></p></div>
            {content}
        };
        frame(&desk, say!("waiting_room.title"), tabbed(&desk, Some(Tab::Programme), content.into_markup()))
    }
}

fn minute(local: &str) -> &str {
    local.get(..MINUTE_CHARS).unwrap_or(local)
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn off(here: &str, form: &Form, key: &str) -> Markup {
    view! {
        <p data-testid="room-state" data-state="off">{say!("waiting_room.is_off")}</p>
        <form class="organiser-form card organiser-card" action=format!("{here}/terms") method="post" aria-labelledby="room-terms">
            <h2 id="room-terms" class="organiser-wide">{say!("waiting_room.on_title")}</h2>
            <p class="organiser-wide">{say!("waiting_room.lead")}</p>
            {hidden("key", key)}
            {hidden(SEEN, form.get(SEEN))}
            {OPENING.view(form)}
            {PACE.view(form)}
            {WHY.view(form)}
            <button class="button" r#type="submit" data-testid="room-on">{say!("waiting_room.on")}</button>
        </form>
    }
    .into_markup()
}

fn change(here: &str, room: &WaitingRoomState, form: &Form, key: &str) -> Markup {
    let opens = if room.is_settled {
        view! { <p class="organiser-wide" data-testid="room-opened">{say!("waiting_room.opened")}</p> }.into_markup()
    } else {
        OPENING.view(form)
    };
    view! {
        <form class="organiser-form card organiser-card" action=format!("{here}/terms") method="post" aria-labelledby="room-terms">
            <h2 id="room-terms" class="organiser-wide">{say!("waiting_room.change")}</h2>
            {hidden("key", key)}
            {hidden(SEEN, seen_by(form, room))}
            {opens}
            {PACE.view(form)}
            {WHY.view(form)}
            <div class="organiser-wide organiser-ways">
                <button class="button" r#type="submit" data-testid="room-change">{say!("organiser.change")}</button>
                <a class="button button-quiet" href=here.to_owned()>{say!("waiting_room.leave_it")}</a>
            </div>
        </form>
    }
    .into_markup()
}

/// The form that switches it off, with the effects on visitors.
fn end(here: &str, room: WaitingRoomState, form: &Form, key: &str) -> Markup {
    let waiting = count(waiting(&room.queue));
    view! {
        <form class="organiser-form card organiser-card organiser-danger" action=format!("{here}/off") method="post" aria-labelledby="room-off">
            <h2 id="room-off" class="organiser-wide">{say!("waiting_room.off_title")}</h2>
            <ul class="organiser-films organiser-wide">
                <li data-testid="off-waiting">{say!("waiting_room.off_waiting", count = waiting)}</li>
                <li>{say!("waiting_room.off_inside")}</li>
                <li>{say!("waiting_room.off_again")}</li>
            </ul>
            {hidden("key", key)}
            {hidden(SEEN, seen_by(form, &room))}
            {WHY.view(form)}
            <label class="organiser-tick organiser-wide" for="room-sure">
                <input id="room-sure" name="sure" r#type="checkbox" value="true" required />
                <span>{say!("waiting_room.off_sure")}</span>
            </label>
            <div class="organiser-wide organiser-ways">
                <button class="button button-danger" r#type="submit" data-testid="room-off">{say!("waiting_room.off")}</button>
                <a class="button button-quiet" href=here.to_owned()>{say!("waiting_room.leave_it")}</a>
            </div>
        </form>
    }
    .into_markup()
}

/// The version that a form is based on. A refused form keeps its own, so a second press overwrites no newer change.
fn seen_by<'a>(form: &'a Form, room: &'a WaitingRoomState) -> &'a str {
    form.all(SEEN).next().unwrap_or(&room.seen)
}

/// People waiting: those with a place who were neither called nor left.
const fn waiting(queue: &WaitingRoomStatus) -> u64 {
    queue.joined.saturating_sub(queue.called).saturating_sub(queue.gone)
}

/// The state as a name for tests, and as a sentence.
fn state_of(room: &WaitingRoomState, is_closed: bool) -> (&'static str, String) {
    let opens = when(&room.opens_local);
    let opens = Arg::Ours(&opens);
    match &room.queue {
        _ if is_closed => ("closed", say!("waiting_room.closed")),
        queue if !queue.is_open => ("early", say!("waiting_room.early", time = opens)),
        _ if !room.is_on_sale => ("resting", say!("waiting_room.resting", time = opens)),
        queue if queue.is_sold_out => ("sold_out", say!("waiting_room.sold_out", time = opens)),
        _ => ("open", say!("waiting_room.open", time = opens)),
    }
}

fn figures(here: &str, show: Uuid, room: WaitingRoomState, is_closed: bool, is_still: bool) -> Markup {
    let (state, words) = state_of(&room, is_closed);
    let queue = &room.queue;
    let bound = match room.limit {
        Some(limit) => say!("waiting_room.limit", limit = count(limit), minutes = PASS_MS / MINUTE_MS),
        None => say!("waiting_room.limit_early"),
    };
    let lines = [
        ("room-waiting", say!("waiting_room.waiting"), waiting(queue)),
        ("room-called", say!("waiting_room.called"), queue.called),
        ("room-inside", say!("waiting_room.inside"), room.inside),
        ("room-gone", say!("waiting_room.gone"), queue.gone),
        ("room-pace", say!("waiting_room.pace"), u64::from(queue.per_second)),
        ("room-lately", say!("waiting_room.lately"), u64::from(queue.lately)),
    ];
    let lines = lines.map(|(test, name, value)| {
        view! {
            <div class="card reports-total">
                <dt>{name}</dt>
                <dd data-testid=test>{number(count(value), language::current())}</dd>
            </div>
        }
    });
    let links = (!is_closed).then(|| links(here, is_still));
    view! {
        <p class="organiser-state" data-testid="room-state" data-state=state>{words}</p>
        <dl class="reports-totals">{lines.into_iter().collect_view()}</dl>
        <p class="quiet">{bound}" "{say!("waiting_room.gone_hint")}</p>
        {links}
        {published(show, room.draw)}
    }
    .into_markup()
}

/// Links to the forms, and to switch the automatic refresh on or off, which disturbs slow readers.
fn links(here: &str, is_still: bool) -> impl IntoView + use<> {
    let (href, test, words, state) = if is_still {
        (here.to_owned(), "room-renew", say!("waiting_room.renew"), say!("waiting_room.stands_still"))
    } else {
        (format!("{here}?still=true"), "room-still", say!("waiting_room.still"), say!("waiting_room.renews"))
    };
    view! {
        <p class="quiet">{state}</p>
        <div class="organiser-ways">
            <a class="button button-quiet" href=href data-testid=test>{words}</a>
            <a class="button button-quiet" href=format!("{here}/terms") data-testid="to-room-terms">{say!("waiting_room.change")}</a>
            <a class="button button-quiet" href=format!("{here}/off") data-testid="to-room-off">{say!("waiting_room.to_off")}</a>
        </div>
    }
}

/// The published draw, which visitors can verify before and after the opening.
fn published(show: Uuid, draw: DrawView) -> impl IntoView {
    let people = draw
        .people
        .map_or_else(|| say!("waiting_room.told_later"), |people| number(count(people), language::current()));
    let key = match draw.key {
        Some(key) => view! { <dd><bdi dir="ltr" data-testid="room-key">{key}</bdi></dd> }.into_markup(),
        None => view! { <dd>{say!("waiting_room.told_later")}</dd> }.into_markup(),
    };
    view! {
        <section class="card organiser-card waiting-room-draw" aria-labelledby="room-draw">
            <h2 id="room-draw">{say!("queue.fair_title")}</h2>
            <p>{say!("queue.fair_text")}</p>
            <dl>
                <dt>{say!("queue.commitment")}</dt>
                <dd><bdi dir="ltr" data-testid="room-commitment">{draw.commitment}</bdi></dd>
                <dt>{say!("queue.people")}</dt>
                <dd>{people}</dd>
                <dt>{say!("queue.key")}</dt>
                {key}
            </dl>
            <p><a href=format!("/api/v1/shows/{show}/queue") data-testid="room-check">{say!("waiting_room.check")}</a></p>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(queue: WaitingRoomStatus) -> WaitingRoomState {
        WaitingRoomState {
            opens_local: "2026-11-21T20:15:07".to_owned(),
            is_settled: false,
            is_on_sale: true,
            queue,
            inside: 0,
            limit: None,
            draw: DrawView { method: String::new(), commitment: String::new(), people: None, key: None },
            seen: String::new(),
        }
    }

    #[test]
    fn waiting_people_have_a_place_and_were_not_called_and_did_not_leave() {
        let queue = WaitingRoomStatus { joined: 500, called: 120, gone: 30, ..WaitingRoomStatus::default() };
        assert_eq!(waiting(&queue), 350);
        assert_eq!(
            waiting(&WaitingRoomStatus { joined: 3, called: 2, gone: 5, ..queue }),
            0,
            "figures of different moments"
        );
    }

    #[test]
    fn a_room_reports_its_state() {
        let open = WaitingRoomStatus { is_open: true, ..WaitingRoomStatus::default() };
        let state = |room: &WaitingRoomState| state_of(room, false).0;
        assert_eq!(state(&room(WaitingRoomStatus::default())), "early");
        assert_eq!(state(&room(open)), "open");
        assert_eq!(state(&WaitingRoomState { is_on_sale: false, ..room(open) }), "resting");
        assert_eq!(state(&room(WaitingRoomStatus { is_sold_out: true, ..open })), "sold_out");
        assert_eq!(state_of(&room(open), true).0, "closed");
        assert!(state_of(&room(WaitingRoomStatus::default()), false).1.contains("21 Nov, 20:15"));
        assert_eq!(minute("2026-11-21T20:15:07"), "2026-11-21T20:15");
    }
}
