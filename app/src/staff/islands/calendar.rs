//! Planning on the calendar of a week: a film that is dragged onto a free time, or the link of a free time, fills in the
//! form of a new show. A draft that is dragged onto a free time moves there; the link of a free time fills in the form that
//! moves the chosen draft. Forms save; the server checks them again.
//!
//! The calendar itself is rendered by the server only. The listeners read the attributes of its cells.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and does not document it")]

use language::{Arg, Moment, say, time_of_day};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, KeyboardEvent, MouseEvent, PointerEvent};

use crate::browser::{self, events};

/// Groups of messages the island uses. Its page carries them.
pub const WORDS: &[&str] = &["calendar", "date"];
/// Step of the calendar's times, minutes.
pub const STEP_MINUTES: u32 = 5;
/// Minutes per day.
pub const DAY_MINUTES: u32 = 24 * 60;
/// Movement below this while pressed is a click, pixels.
const DRAG_PX: f64 = 4.0;
/// Half a step: a draft that is dragged by less keeps its start.
const HALF_STEP: f64 = STEP_MINUTES as f64 / 2.0;
/// Id of the button that adds a show.
pub const ADD_BUTTON: &str = "add-show";
/// Id of the button that moves a draft.
pub const MOVE_BUTTON: &str = "move-draft";
/// Name of the field of the draft to be moved.
pub const DRAFT: &str = "draft";
/// Names of the fields of a new show's screen, day and time.
pub const NEW_PLACE: [&str; 3] = ["screen", "day", "time"];
/// Names of the fields of a moved draft's screen, day and time.
pub const MOVE_PLACE: [&str; 3] = ["move_screen", "move_day", "move_time"];

/// A range of local time, in minutes since a midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinuteRange {
    /// Its first minute.
    pub from: u32,
    /// The first minute after it.
    pub until: u32,
}

impl MinuteRange {
    /// Its length.
    #[must_use]
    pub const fn minutes(self) -> u32 {
        self.until.saturating_sub(self.from)
    }

    /// Returns true if both have a minute in common.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.from < other.until && other.from < self.until
    }

    /// The same range, so many minutes later.
    #[must_use]
    pub const fn later(self, minutes: u32) -> Self {
        Self { from: self.from + minutes, until: self.until + minutes }
    }

    /// `20:15–22:35`, in the reader's format.
    pub fn in_words(self) -> String {
        format!("{}–{}", clock_words(self.from), clock_words(self.until))
    }
}

/// A time of day in the reader's format. After midnight the clock starts again.
pub fn clock_words(minute: u32) -> String {
    time_of_day(u16::try_from(minute % DAY_MINUTES).unwrap_or_default(), language::current())
}

/// A day in the reader's format, from `2026-12-07`.
pub fn day_words(day: &str) -> String {
    Moment::parse(day).map_or_else(|| day.to_owned(), |moment| moment.date(language::current()))
}

/// The time of a show on its screen, in minutes since the first midnight of the week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenTime {
    /// Slug of the screen.
    pub screen: String,
    /// From the show's start to the end of cleaning.
    pub range: MinuteRange,
    /// Value of the show in the field of drafts; `None` if it is published.
    pub draft: Option<String>,
}

/// A place on the calendar: screen, day and minute of the day.
type CalendarPlace = (String, String, u32);

/// Something that can be dragged.
#[derive(Clone, Debug, PartialEq)]
enum Dragged {
    /// A film of the list, by its slug.
    Film(String),
    /// A draft, by its value in the field of drafts, and its place.
    Draft(String, CalendarPlace),
}

/// A pressed film or draft.
#[derive(Clone, Debug, PartialEq)]
struct Pressed {
    item: Dragged,
    /// Running time of a film; a draft has its cleaning in it.
    minutes: u32,
    /// Minutes from the start under the pointer back to the start of the show.
    grip: f64,
    pointer: i32,
    /// Position of the press in the window.
    at: (i32, i32),
}

/// The show that a release of the pointer would propose.
#[derive(Clone, Debug, PartialEq)]
struct Proposal {
    /// Slug of the screen.
    screen: String,
    /// The day, `2026-12-07`.
    day: String,
    /// From its start to the end of cleaning, minutes since the day's midnight.
    range: MinuteRange,
    is_free: bool,
    /// Its block in the window, pixels.
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

/// The block under a dragged film or draft, and what a release did.
#[island]
pub fn StaffCalendar(
    /// The shows of the week that are not cancelled.
    taken: Vec<TakenTime>,
) -> impl IntoView {
    let proposal = RwSignal::new(None::<Proposal>);
    let announcement = RwSignal::new(String::new());
    Effect::new(move |_| {
        let was_dragged = StoredValue::new(false);
        follow_drags(taken.clone(), proposal, announcement, was_dragged);
        follow_links(announcement, was_dragged);
    });
    view! {
        <div>
            <p role="status" class="small" data-testid="calendar-announcement">{move || announcement.get()}</p>
            {move || proposal.get().map(block)}
        </div>
    }
}

fn block(proposal: Proposal) -> impl IntoView {
    let px = |pixels: f64| format!("{pixels}px");
    let is_refused = (!proposal.is_free).then_some("true");
    view! {
        <div class="calendar-proposal" data-testid="calendar-proposal" data-refused=is_refused style:left=px(proposal.left)
            style:top=px(proposal.top) style:width=px(proposal.width) style:height=px(proposal.height)>
            {proposal.range.in_words()}
        </div>
    }
}

/// Listens to films and drafts that are dragged with a mouse, a pen or a finger.
fn follow_drags(
    taken: Vec<TakenTime>,
    proposal: RwSignal<Option<Proposal>>,
    announcement: RwSignal<String>,
    was_dragged: StoredValue<bool>,
) {
    let (pressed, taken) = (StoredValue::new(None::<Pressed>), StoredValue::new(taken));
    let propose =
        move |pressed: &Pressed, event: &PointerEvent| taken.with_value(|taken| propose(pressed, event, taken));
    let cancel = move || {
        pressed.set_value(None);
        proposal.set(None);
    };
    on_pointer("pointerdown", move |event| {
        if event.button() == 0 && pressed.with_value(Option::is_none) {
            was_dragged.set_value(false);
            pressed.set_value(pressed_item(event));
        }
    });
    on_pointer("pointermove", move |event| {
        let Some(pressed) = pressed.get_value().filter(|pressed| pressed.pointer == event.pointer_id()) else { return };
        // The page sees no release over a menu or another window.
        if event.buttons() == 0 {
            cancel();
            return;
        }
        let (x, y) = (event.client_x() - pressed.at.0, event.client_y() - pressed.at.1);
        if was_dragged.get_value() || f64::from(x).hypot(f64::from(y)) >= DRAG_PX {
            let proposed = propose(&pressed, event);
            // A shaky tap opens the page of a draft in the agenda, which proposes nothing.
            if proposed.is_some() {
                was_dragged.set_value(true);
            }
            proposal.set(proposed);
        }
    });
    on_pointer("pointerup", move |event| {
        let released = pressed.get_value().filter(|pressed| pressed.pointer == event.pointer_id());
        let Some(pressed) = released else { return };
        // The page may have scrolled since the last movement.
        let dropped = proposal.get_untracked().and_then(|_| propose(&pressed, event));
        cancel();
        announcement.set(String::new());
        if let Dragged::Film(film) = &pressed.item {
            browser::set_value("film", film);
        }
        match dropped {
            Some(dropped) if dropped.is_free => drop_on_free_time(pressed.item, dropped, announcement),
            Some(_) => announcement.set(say!("calendar.overlaps")),
            None => {}
        }
    });
    on_pointer("pointercancel", move |_| cancel());
    events::on_document("keydown", move |event| {
        if event.dyn_ref::<KeyboardEvent>().is_some_and(|key| key.key() == "Escape") {
            cancel();
        } else {
            // A key that opens a link follows no drag.
            was_dragged.set_value(false);
        }
    });
}

/// Fills in the form of a dropped film, and sends that of a dropped draft, unless it is where it was.
fn drop_on_free_time(item: Dragged, Proposal { screen, day, range, .. }: Proposal, announcement: RwSignal<String>) {
    let place = (screen, day, range.from);
    match item {
        Dragged::Film(_) => {
            fill_in(NEW_PLACE, &place);
            let (from, until) = (clock_words(range.from), clock_words(range.until));
            announcement.set(say!("calendar.fits", from = Arg::Ours(&from), until = Arg::Ours(&until)));
            browser::focus(ADD_BUTTON);
        }
        Dragged::Draft(draft, before) if before != place => {
            browser::set_value(DRAFT, &draft);
            fill_in(MOVE_PLACE, &place);
            browser::click(MOVE_BUTTON);
        }
        Dragged::Draft(..) => {}
    }
}

/// Listens to the links of free times. Without a script they load the page with the form filled in.
fn follow_links(announcement: RwSignal<String>, was_dragged: StoredValue<bool>) {
    events::on_document("click", move |event| {
        let opens_elsewhere =
            |click: &MouseEvent| click.ctrl_key() || click.meta_key() || click.shift_key() || click.button() != 0;
        if event.dyn_ref::<MouseEvent>().is_none_or(opens_elsewhere) {
            return;
        }
        // The release of a dragged draft does not open its page.
        if was_dragged.get_value() && target_within(&event, "[data-draft]").is_some() {
            event.prevent_default();
        }
        if let Some(place) = target_within(&event, "[data-add]").and_then(|link| place_of(&link)) {
            event.prevent_default();
            // The link names a new show, so the form of a chosen draft is announced.
            let (fields, next, words) = if browser::value_of(DRAFT).is_empty() {
                (NEW_PLACE, "film", String::new())
            } else {
                let (day, time) = (day_words(&place.1), clock_words(place.2));
                let words = say!("calendar.move_filled", day = Arg::Ours(&day), time = Arg::Ours(&time));
                (MOVE_PLACE, MOVE_BUTTON, words)
            };
            announcement.set(words);
            fill_in(fields, &place);
            browser::focus(next);
        }
    });
}

/// The place where the cell of an element starts.
fn place_of(element: &Element) -> Option<CalendarPlace> {
    let (cell, row) = (closest(element, "[data-from]")?, closest(element, "[data-screen]")?);
    Some((row.get_attribute("data-screen")?, row.get_attribute("data-day")?, number(&cell, "data-from")?))
}

fn on_pointer(name: &str, mut react: impl FnMut(&PointerEvent) + 'static) {
    events::on_document(name, move |event| {
        if let Some(event) = event.dyn_ref::<PointerEvent>() {
            react(event);
        }
    });
}

fn pressed_item(event: &PointerEvent) -> Option<Pressed> {
    let element = target_within(event, "[data-film], [data-draft]")?;
    let (item, grip) = match element.get_attribute("data-draft") {
        None => (Dragged::Film(element.get_attribute("data-film")?), 0.0),
        Some(draft) => {
            let cell = closest(&element, "[data-from]")?;
            let inside = share_of(&cell, event) * f64::from(hours_of(&cell)?.minutes());
            (Dragged::Draft(draft, place_of(&cell)?), inside - HALF_STEP)
        }
    };
    let at = (event.client_x(), event.client_y());
    Some(Pressed { item, minutes: number(&element, "data-minutes")?, grip, pointer: event.pointer_id(), at })
}

/// The show that a release under the pointer would make; `None` beside the calendar.
fn propose(pressed: &Pressed, event: &PointerEvent, taken: &[TakenTime]) -> Option<Proposal> {
    let cell = closest(&browser::element_at(event.client_x(), event.client_y())?, "[data-from]")?;
    // The agenda of a narrow screen has no scale of hours.
    if browser::style_of(&cell, "display") != "table-cell" {
        return None;
    }
    let row = closest(&cell, "[data-screen]")?;
    let hours = hours_of(&cell)?;
    let sides = cell.get_bounding_client_rect();
    let from = start_at(share_of(&cell, event), hours, pressed.grip);
    let (draft, cleaning) = match &pressed.item {
        Dragged::Film(_) => (None, browser::value_of("cleaning").trim().parse().unwrap_or(0_u32).min(DAY_MINUTES)),
        Dragged::Draft(draft, _) => (Some(draft.as_str()), 0),
    };
    let range = MinuteRange { from, until: from + pressed.minutes + cleaning };
    let minute_px = sides.width() / f64::from(hours.minutes().max(1));
    let width = f64::from(range.minutes()) * minute_px;
    // A dropped show may start before the cell under the pointer: a draft is held where it was pressed, and no show starts
    // after midnight.
    let start = (f64::from(from) - f64::from(hours.from)) * minute_px;
    let left = if is_mirrored(&cell) { sides.right() - start - width } else { sides.left() + start };
    let (screen, day) = (row.get_attribute("data-screen")?, row.get_attribute("data-day")?);
    let is_free = is_free(taken, draft, &screen, range.later(number(&row, "data-midnight")?));
    Some(Proposal { screen, day, range, is_free, left, top: sides.top(), width, height: sides.height() })
}

fn hours_of(cell: &Element) -> Option<MinuteRange> {
    Some(MinuteRange { from: number(cell, "data-from")?, until: number(cell, "data-until")? })
}

fn is_mirrored(cell: &Element) -> bool {
    browser::style_of(cell, "direction") == "rtl"
}

/// The part of a cell before the pointer, 0 to 1.
fn share_of(cell: &Element, event: &PointerEvent) -> f64 {
    let (sides, x) = (cell.get_bounding_client_rect(), f64::from(event.client_x()));
    let across = if is_mirrored(cell) { sides.right() - x } else { x - sides.left() };
    (across / sides.width().max(1.0)).clamp(0.0, 1.0)
}

/// The start of a show dropped at this share of a cell, less the minutes before its grip: whole steps of one day.
fn start_at(share: f64, cell: MinuteRange, grip: f64) -> u32 {
    let minute = f64::from(cell.from) + share * f64::from(cell.minutes()) - grip;
    // The conversion makes a start before midnight 0.
    let steps = (minute / f64::from(STEP_MINUTES)) as u32;
    (steps * STEP_MINUTES).min(DAY_MINUTES - STEP_MINUTES)
}

/// Returns true if no show but the dragged draft is on the screen in this range of the week.
fn is_free(taken: &[TakenTime], dragged: Option<&str>, screen: &str, range: MinuteRange) -> bool {
    let is_other = |show: &TakenTime| dragged.is_none() || show.draft.as_deref() != dragged;
    !taken.iter().any(|show| is_other(show) && show.screen == screen && show.range.overlaps(range))
}

fn fill_in(fields: [&str; 3], (screen, day, from): &CalendarPlace) {
    let time = field_time(*from);
    for (field, value) in fields.into_iter().zip([screen, day, &time]) {
        browser::set_value(field, value);
    }
}

/// A time of day as fields and addresses contain it: `20:15`.
pub fn field_time(minute: u32) -> String {
    format!("{:02}:{:02}", minute / 60 % 24, minute % 60)
}

fn target_within(event: &Event, selector: &str) -> Option<Element> {
    let target: Element = event.target()?.dyn_into().ok()?;
    closest(&target, selector)
}

fn closest(element: &Element, selector: &str) -> Option<Element> {
    element.closest(selector).ok().flatten()
}

fn number(element: &Element, attribute: &str) -> Option<u32> {
    element.get_attribute(attribute)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(from: u32, until: u32) -> MinuteRange {
        MinuteRange { from, until }
    }

    #[test]
    fn a_dropped_film_starts_at_a_whole_step_before_midnight() {
        let evening = range(18 * 60, 24 * 60);
        assert_eq!(start_at(0.0, evening, 0.0), 18 * 60);
        assert_eq!(start_at(0.5, evening, 0.0), 21 * 60);
        assert_eq!(start_at(0.51, evening, 0.0), 21 * 60, "3.6 minutes later");
        assert_eq!(start_at(0.52, evening, 0.0), 21 * 60 + 5);
        assert_eq!(start_at(1.5, evening, 0.0), 23 * 60 + 55);
        assert_eq!(start_at(0.5, range(25 * 60, 26 * 60), 0.0), 23 * 60 + 55, "the row's own day");
    }

    #[test]
    fn a_dragged_draft_is_held_where_it_was_pressed() {
        // Pressed in its middle: the draft runs from 20:00 to 22:00.
        let (draft, grip) = (range(20 * 60, 22 * 60), 60.0 - HALF_STEP);
        assert_eq!(start_at(0.5, draft, grip), 20 * 60);
        assert_eq!((start_at(0.485, draft, grip), start_at(0.515, draft, grip)), (20 * 60, 20 * 60), "1.8 minutes");
        assert_eq!((start_at(0.45, draft, grip), start_at(0.55, draft, grip)), (19 * 60 + 55, 20 * 60 + 5));
        assert_eq!(start_at(0.0, range(0, 60), grip), 0, "not on the day before");
    }

    #[test]
    fn a_time_is_free_until_a_show_of_its_screen_starts_also_after_midnight() {
        let late = TakenTime { screen: "one".to_owned(), range: range(23 * 60, 25 * 60), draft: Some("a".to_owned()) };
        let taken = [late];
        let is_free = |screen, range| is_free(&taken, None, screen, range);
        assert!(is_free("one", range(21 * 60, 23 * 60)) && is_free("two", range(23 * 60, 24 * 60)));
        assert!(!is_free("one", range(21 * 60, 23 * 60 + 5)));
        let next_day = |from, until| range(from, until).later(DAY_MINUTES);
        assert!(!is_free("one", next_day(30, 150)) && is_free("one", next_day(60, 180)));
    }

    #[test]
    fn a_dragged_draft_does_not_overlap_itself() {
        let show = |draft: Option<&str>, from, until| TakenTime {
            screen: "one".to_owned(),
            range: range(from, until),
            draft: draft.map(str::to_owned),
        };
        let taken = [show(Some("a"), 600, 720), show(Some("b"), 800, 900), show(None, 1_000, 1_100)];
        assert!(is_free(&taken, Some("a"), "one", range(650, 770)));
        assert!(!is_free(&taken, Some("a"), "one", range(700, 820)) && !is_free(&taken, None, "one", range(650, 770)));
        assert!(!is_free(&taken, None, "one", range(1_000, 1_010)), "a published show has no value");
    }
}
