//! Planning on the calendar of a week: a film that is dragged onto a free time, or the link of a free time, fills in the
//! form of a new show. The form saves; the server checks it again.
//!
//! The calendar itself is rendered by the server only. The listeners read the attributes of its cells.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and does not document it")]

use language::{Arg, say, time_of_day};
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
/// Id of the form's button.
pub const ADD_BUTTON: &str = "add-show";

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

/// The time of a show on its screen, in minutes since the first midnight of the week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenTime {
    /// Slug of the screen.
    pub screen: String,
    /// From the show's start to the end of cleaning.
    pub range: MinuteRange,
}

/// A pressed film of the list.
#[derive(Clone, Debug, PartialEq)]
struct PressedFilm {
    /// Slug of the film.
    id: String,
    running_minutes: u32,
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

/// The block under a dragged film, and what a release did.
#[island]
pub fn StaffCalendar(
    /// The shows of the week that are not cancelled.
    taken: Vec<TakenTime>,
) -> impl IntoView {
    let proposal = RwSignal::new(None::<Proposal>);
    let announcement = RwSignal::new(String::new());
    Effect::new(move |_| {
        follow_films(taken.clone(), proposal, announcement);
        follow_links(announcement);
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

/// Listens to films that are dragged with a mouse, a pen or a finger.
fn follow_films(taken: Vec<TakenTime>, proposal: RwSignal<Option<Proposal>>, announcement: RwSignal<String>) {
    let pressed = StoredValue::new(None::<PressedFilm>);
    let cancel = move || {
        pressed.set_value(None);
        proposal.set(None);
    };
    on_pointer("pointerdown", move |event| {
        if event.button() == 0 && pressed.with_value(Option::is_none) {
            pressed.set_value(pressed_film(event));
        }
    });
    on_pointer("pointermove", move |event| {
        let Some(film) = pressed.get_value().filter(|film| film.pointer == event.pointer_id()) else { return };
        let (x, y) = (event.client_x() - film.at.0, event.client_y() - film.at.1);
        if proposal.with_untracked(Option::is_some) || f64::from(x).hypot(f64::from(y)) >= DRAG_PX {
            proposal.set(propose(&film, event, &taken));
        }
    });
    on_pointer("pointerup", move |event| {
        let Some(film) = pressed.get_value().filter(|film| film.pointer == event.pointer_id()) else { return };
        let dropped = proposal.get_untracked();
        cancel();
        browser::set_value("film", &film.id);
        match dropped {
            Some(Proposal { screen, day, range, is_free: true, .. }) => {
                fill_in(&screen, &day, range.from);
                let (from, until) = (clock_words(range.from), clock_words(range.until));
                announcement.set(say!("calendar.fits", from = Arg::Ours(&from), until = Arg::Ours(&until)));
                browser::focus(ADD_BUTTON);
            }
            Some(_) => announcement.set(say!("calendar.overlaps")),
            None => announcement.set(String::new()),
        }
    });
    on_pointer("pointercancel", move |_| cancel());
    events::on_document("keydown", move |event| {
        if event.dyn_ref::<KeyboardEvent>().is_some_and(|key| key.key() == "Escape") {
            cancel();
        }
    });
}

/// Listens to the links of free times. Without a script they load the page with the form filled in.
fn follow_links(announcement: RwSignal<String>) {
    events::on_document("click", move |event| {
        let opens_elsewhere =
            |click: &MouseEvent| click.ctrl_key() || click.meta_key() || click.shift_key() || click.button() != 0;
        if event.dyn_ref::<MouseEvent>().is_none_or(opens_elsewhere) {
            return;
        }
        let slot = target_within(&event, "[data-add]").and_then(|link| free_time(&link));
        if let Some((screen, day, from)) = slot {
            event.prevent_default();
            fill_in(&screen, &day, from);
            announcement.set(String::new());
            browser::focus("film");
        }
    });
}

/// The screen, day and start of a link.
fn free_time(link: &Element) -> Option<(String, String, u32)> {
    let (cell, row) = (closest(link, "[data-from]")?, closest(link, "[data-screen]")?);
    Some((row.get_attribute("data-screen")?, row.get_attribute("data-day")?, number(&cell, "data-from")?))
}

fn on_pointer(name: &str, mut react: impl FnMut(&PointerEvent) + 'static) {
    events::on_document(name, move |event| {
        if let Some(event) = event.dyn_ref::<PointerEvent>() {
            react(event);
        }
    });
}

fn pressed_film(event: &PointerEvent) -> Option<PressedFilm> {
    let film = target_within(event, "[data-film]")?;
    Some(PressedFilm {
        id: film.get_attribute("data-film")?,
        running_minutes: number(&film, "data-minutes")?,
        pointer: event.pointer_id(),
        at: (event.client_x(), event.client_y()),
    })
}

/// The show that starts under the pointer; `None` beside the calendar.
fn propose(film: &PressedFilm, event: &PointerEvent, taken: &[TakenTime]) -> Option<Proposal> {
    let cell = closest(&browser::element_at(event.client_x(), event.client_y())?, "[data-from]")?;
    let row = closest(&cell, "[data-screen]")?;
    let hours = MinuteRange { from: number(&cell, "data-from")?, until: number(&cell, "data-until")? };
    let sides = cell.get_bounding_client_rect();
    let is_mirrored = browser::style_of(&cell, "direction") == "rtl";
    let x = f64::from(event.client_x());
    let across = if is_mirrored { sides.right() - x } else { x - sides.left() };
    let from = start_at(across / sides.width().max(1.0), hours);
    let cleaning = browser::value_of("cleaning").trim().parse().unwrap_or(0_u32).min(DAY_MINUTES);
    let range = MinuteRange { from, until: from + film.running_minutes + cleaning };
    let minute_px = sides.width() / f64::from(hours.minutes().max(1));
    let width = f64::from(range.minutes()) * minute_px;
    // A dropped film may start before the cell under the pointer: no show starts after midnight.
    let start = (f64::from(from) - f64::from(hours.from)) * minute_px;
    let left = if is_mirrored { sides.right() - start - width } else { sides.left() + start };
    let (screen, day) = (row.get_attribute("data-screen")?, row.get_attribute("data-day")?);
    let is_free = is_free(taken, &screen, range.later(number(&row, "data-midnight")?));
    Some(Proposal { screen, day, range, is_free, left, top: sides.top(), width, height: sides.height() })
}

/// The start of a show dropped at this share of a cell: whole steps, and before midnight.
fn start_at(share: f64, cell: MinuteRange) -> u32 {
    let steps = share.clamp(0.0, 1.0) * f64::from(cell.minutes()) / f64::from(STEP_MINUTES);
    (cell.from + steps as u32 * STEP_MINUTES).min(DAY_MINUTES - STEP_MINUTES)
}

/// Returns true if no show is on the screen in this range of the week.
fn is_free(taken: &[TakenTime], screen: &str, range: MinuteRange) -> bool {
    !taken.iter().any(|show| show.screen == screen && show.range.overlaps(range))
}

fn fill_in(screen: &str, day: &str, from: u32) {
    let time = field_time(from);
    for (field, value) in [("screen", screen), ("day", day), ("time", time.as_str())] {
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
        assert_eq!(start_at(0.0, evening), 18 * 60);
        assert_eq!(start_at(0.5, evening), 21 * 60);
        assert_eq!(start_at(0.51, evening), 21 * 60, "3.6 minutes later");
        assert_eq!(start_at(0.52, evening), 21 * 60 + 5);
        assert_eq!(start_at(1.5, evening), 23 * 60 + 55);
        assert_eq!(start_at(0.5, range(25 * 60, 26 * 60)), 23 * 60 + 55, "the row's own day");
    }

    #[test]
    fn a_time_is_free_until_a_show_of_its_screen_starts_also_after_midnight() {
        let late = TakenTime { screen: "one".to_owned(), range: range(23 * 60, 25 * 60) };
        let taken = [late];
        assert!(is_free(&taken, "one", range(21 * 60, 23 * 60)) && is_free(&taken, "two", range(23 * 60, 24 * 60)));
        assert!(!is_free(&taken, "one", range(21 * 60, 23 * 60 + 5)));
        let next_day = |from, until| range(from, until).later(DAY_MINUTES);
        assert!(!is_free(&taken, "one", next_day(30, 150)) && is_free(&taken, "one", next_day(60, 180)));
    }
}
