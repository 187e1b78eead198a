//! The map itself: every seat of a room, or of one section, where it really is.
//!
//! Drawn once; afterwards each seat's own signal changes that seat. One listener for all of them, one
//! tab stop, arrow keys that follow the room.

use std::sync::Arc;

use domain::api::{PlanView, RowView, SEAT_PITCH};
use domain::seats::SeatIndex;
use leptos::ev::{FocusEvent, KeyboardEvent, MouseEvent, PointerEvent};
use leptos::html::Div;
use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::glyphs::glyph;
use super::once::DrawnOnce;
use super::room::Room;
use super::session::Session;
use super::steps::{Step, Steps};
use crate::browser;

/// Width of a seat's target in the normal view, pixels.
const SEAT_PX: i32 = 25;
/// A seat narrower than this on screen, pixels, is too small for a finger: a tap there looks closer.
const SMALLEST_TARGET_PX: f64 = 22.0;
/// Free space around the seats, plan units; the row letters stand in it.
const MARGIN: i32 = 2 * SEAT_PITCH;
/// Distance of a row's letter from the row's end, plan units.
const LETTER_DISTANCE: f64 = 21.0;

/// How close one looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zoom {
    /// The whole room in view.
    Fit,
    /// Every seat large enough to be tapped.
    Normal,
    /// Larger still.
    Large,
}

impl Zoom {
    const fn name(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Normal => "normal",
            Self::Large => "large",
        }
    }

    const fn closer(self) -> Self {
        match self {
            Self::Fit => Self::Normal,
            Self::Normal | Self::Large => Self::Large,
        }
    }

    const fn further(self) -> Self {
        match self {
            Self::Large => Self::Normal,
            Self::Normal | Self::Fit => Self::Fit,
        }
    }
}

/// The map of a section, or of the whole room.
pub fn grid(session: Session, room: &Arc<Room>, section: Option<usize>) -> impl IntoView + use<> {
    let rows: Vec<(&str, &RowView)> = room.rows(section).collect();
    let steps = StoredValue::new(Steps::new(rows.iter().map(|(_, row)| *row)));
    let frame = Frame::around(room.plan(), &rows, section.is_none());
    let zoom = RwSignal::new(if browser::has_mouse() { Zoom::Fit } else { Zoom::Normal });
    let pan = NodeRef::<Div>::new();
    let pointed = RwSignal::new(None::<SeatIndex>);
    let focused = StoredValue::new(None::<SeatIndex>);
    // A room of several parts has several rows A.
    let row_name = |part: &str, row: &RowView| {
        if part.is_empty() { format!("Row {}", row.label) } else { format!("{part}, row {}", row.label) }
    };
    let drawn = rows.iter().map(|(part, row)| row_view(session, room, row, row_name(part, row))).drawn_once();
    let focus_mark = section.is_none().then(|| focus_view(room.plan()));
    let direction = section.is_some().then(|| direction_view(room.plan(), &frame));

    Effect::new(move |_| start_at_the_middle(session, steps, focused, pan));
    let tap = move |event: MouseEvent| {
        let Some((seat, target)) = seat_at(&event) else { return };
        // A finger's tap on a tiny seat is a guess, so look closer first.
        let by_finger = event.dyn_ref::<PointerEvent>().is_some_and(|event| event.pointer_type() == "touch");
        if by_finger && target.get_bounding_client_rect().width() < SMALLEST_TARGET_PX {
            look(pan, zoom, Zoom::Normal);
            after_paint(move || scroll_to(pan, &target));
            return;
        }
        set_tab_stop(focused, seat);
        session.tap(seat);
    };
    let key = move |event: KeyboardEvent| {
        let Some((seat, _)) = seat_at(&event) else { return };
        if matches!(event.key().as_str(), " " | "Enter") {
            event.prevent_default();
            // A key held down is one press, not take and let go by turns.
            if !event.repeat() {
                session.tap(seat);
            }
        } else if let Some(step) = Step::of_key(&event.key(), event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            let next = steps.with_value(|steps| steps.step(seat, step));
            set_tab_stop(focused, next);
            browser::focus(&format!("seat-{next}"));
        }
    };
    let point = move |event: PointerEvent| pointed.set(seat_at(&event).map(|(seat, _)| seat));
    let focus = move |event: FocusEvent| pointed.set(seat_at(&event).map(|(seat, _)| seat));

    view! {
        <div class="room-view">
            {direction}
            <div class="room-zoom" role="group" aria-label="Size of the map">
                <button type="button" class="zoom-button" aria-label="Show more of the room"
                    disabled=move || zoom.get() == Zoom::Fit on:click=move |_| look(pan, zoom, zoom.get_untracked().further())>"−"</button>
                <button type="button" class="zoom-button" aria-label="Show larger seats"
                    disabled=move || zoom.get() == Zoom::Large on:click=move |_| look(pan, zoom, zoom.get_untracked().closer())>"+"</button>
            </div>
            <div class="room-pan" node_ref=pan data-zoom=move || zoom.get().name()
                style=("--plan-width", format!("{}px", frame.width * SEAT_PX / SEAT_PITCH))
                style=("--plan-aspect", format!("{} / {}", frame.width, frame.height))>
                <svg class="room" role="grid" aria-label="Seats" aria-multiselectable="true" viewBox=frame.view_box() preserveAspectRatio="xMidYMid meet"
                    on:click=tap on:keydown=key on:pointerover=point on:focusin=focus on:pointerleave=move |_| pointed.set(None)>
                    {focus_mark}
                    {drawn}
                </svg>
            </div>
            <p class="room-readout" aria-hidden="true">{move || readout(session, pointed.get())}</p>
        </div>
    }
}

fn row_view(session: Session, room: &Room, row: &RowView, name: String) -> impl IntoView + use<> {
    let seats = (row.first..).take(row.numbers.len()).map(|seat| seat_view(session, room, seat)).drawn_once();
    let letters = letter_places(row).into_iter().map(|(x, y)| {
        view! { <text class="row-letter" x=x y=y aria-hidden="true">{row.label.clone()}</text> }
    });
    view! {
        <g role="row" aria-label=name>
            {letters.drawn_once()}
            {seats}
        </g>
    }
}

fn seat_view(session: Session, room: &Room, seat: SeatIndex) -> Option<impl IntoView + use<>> {
    let facts = room.seat(seat)?;
    let (words, kind) = (facts.in_words(), facts.category.kind);
    let look = session.look_of(seat);
    let (state, label, selected, disabled, drawing) = (look.clone(), look.clone(), look.clone(), look.clone(), look);
    Some(view! {
        <g id=format!("seat-{seat}") class=format!("seat cat-{}", facts.category_index % 8) role="gridcell" tabindex="-1"
            data-seat=seat transform=format!("translate({} {})", facts.x, facts.y)
            data-state=move || state.get().state()
            aria-selected=move || if selected.get().state() == "mine" { "true" } else { "false" }
            aria-disabled=move || disabled.get().is_out_of_reach().then_some("true")
            aria-label=move || format!("{words}, {}", label.get().in_words())>
            <rect class="seat-target" x="-10" y="-10" width="20" height="20" rx="6"></rect>
            <use href=move || glyph(drawing.get(), kind)></use>
        </g>
    })
}

/// Screen or stage: a wide arc of light, as seen from the seats.
fn focus_view(plan: &PlanView) -> impl IntoView + use<> {
    let [x, y, width] = plan.focus_at;
    let half = width / 2;
    let arc = format!("M{} {} Q{x} {} {} {}", x - half, y + 10, y - 14, x + half, y + 10);
    let light =
        format!("{arc} L{} {} Q{x} {} {} {} Z", x + half - half / 10, y + 46, y + 20, x - half + half / 10, y + 46);
    let label = if plan.focus == "stage" { "Stage" } else { "Screen" };
    view! {
        <g class="focus-mark" aria-hidden="true">
            <path class="focus-light" d=light></path>
            <path class="focus-arc" d=arc></path>
            <text class="focus-label" x=x y=y + 24>{label}</text>
        </g>
    }
}

/// An arrow towards screen or stage, where these are out of view.
fn direction_view(plan: &PlanView, frame: &Frame) -> impl IntoView + use<> {
    let [x, y, _] = plan.focus_at;
    let (dx, dy) = (x - frame.left - frame.width / 2, y - frame.top - frame.height / 2);
    // The arrow is drawn pointing up.
    let turn = whole(f64::from(dx).atan2(f64::from(-dy)).to_degrees());
    let label = if plan.focus == "stage" { "Stage" } else { "Screen" };
    view! {
        <p class="room-direction">
            <svg viewBox="-12 -12 24 24" width="22" height="22" aria-hidden="true" focusable="false">
                <path transform=format!("rotate({turn})") d="M0 9V-8M-6-2 0-8 6-2" fill="none" stroke="currentColor"
                    stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round"></path>
            </svg>
            {label}
        </p>
    }
}

/// Where a row's letter stands: past both ends, in the direction the row runs.
fn letter_places(row: &RowView) -> Vec<(i32, i32)> {
    let points: Vec<(f64, f64)> = row.x.iter().zip(&row.y).map(|(x, y)| (f64::from(*x), f64::from(*y))).collect();
    let past = |end: (f64, f64), inner: (f64, f64)| {
        let (dx, dy) = (end.0 - inner.0, end.1 - inner.1);
        let length = dx.hypot(dy).max(1.0);
        (whole(end.0 + dx / length * LETTER_DISTANCE), whole(end.1 + dy / length * LETTER_DISTANCE))
    };
    match points.as_slice() {
        [] => Vec::new(),
        [only] => vec![past(*only, (only.0 + 1.0, only.1)), past(*only, (only.0 - 1.0, only.1))],
        [first, .., last] => vec![past(*first, points[1]), past(*last, points[points.len() - 2])],
    }
}

/// The part of the plan to show.
#[derive(Clone, Copy)]
struct Frame {
    left: i32,
    top: i32,
    width: i32,
    height: i32,
}

impl Frame {
    fn around(plan: &PlanView, rows: &[(&str, &RowView)], with_focus: bool) -> Self {
        let xs = || rows.iter().flat_map(|(_, row)| row.x.iter().copied());
        let ys = || rows.iter().flat_map(|(_, row)| row.y.iter().copied());
        let [focus_x, focus_y, focus_width] = plan.focus_at;
        let focus_x = with_focus.then_some([focus_x - focus_width / 2 + MARGIN, focus_x + focus_width / 2 - MARGIN]);
        let focus_y = with_focus.then_some(focus_y + SEAT_PITCH);
        let (left, right) = bounds(xs().chain(focus_x.into_iter().flatten()));
        let (top, bottom) = bounds(ys().chain(focus_y));
        Self {
            left: left - MARGIN,
            top: top - MARGIN,
            width: right - left + 2 * MARGIN,
            // Below the last row is nothing but its seats.
            height: bottom - top + MARGIN + SEAT_PITCH,
        }
    }

    fn view_box(self) -> String {
        format!("{} {} {} {}", self.left, self.top, self.width, self.height)
    }
}

fn bounds(numbers: impl Iterator<Item = i32>) -> (i32, i32) {
    let (low, high) = numbers.fold((i32::MAX, i32::MIN), |(low, high), number| (low.min(number), high.max(number)));
    if low <= high { (low, high) } else { (0, 0) }
}

fn readout(session: Session, seat: Option<SeatIndex>) -> String {
    let in_words =
        |seat| session.room.with(|room| room.as_ref().and_then(|room| room.seat(seat).map(|facts| facts.in_words())));
    seat.and_then(in_words).unwrap_or_else(|| "Tap a seat to hold it; tap it again to let it go.".to_owned())
}

/// The seat an event happened on, and its element.
fn seat_at(event: &web_sys::Event) -> Option<(SeatIndex, web_sys::Element)> {
    let target = event.target()?.dyn_into::<web_sys::Element>().ok()?.closest("[data-seat]").ok()??;
    Some((target.get_attribute("data-seat")?.parse().ok()?, target))
}

/// Moves the map's one tab stop.
fn set_tab_stop(focused: StoredValue<Option<SeatIndex>>, seat: SeatIndex) {
    let set = |seat: SeatIndex, value: &str| {
        if let Some(element) = browser::element(&format!("seat-{seat}")) {
            // Fails for names that are no attribute; this is one.
            let _ = element.set_attribute("tabindex", value);
        }
    };
    if let Some(before) = focused.get_value() {
        set(before, "-1");
    }
    set(seat, "0");
    focused.set_value(Some(seat));
}

fn start_at_the_middle(
    session: Session,
    steps: StoredValue<Steps>,
    focused: StoredValue<Option<SeatIndex>>,
    pan: NodeRef<Div>,
) {
    let free = |seat| session.look_of(seat).get_untracked().state() == "available";
    if let Some(seat) = steps.with_value(|steps| steps.start(free)) {
        set_tab_stop(focused, seat);
    }
    after_paint(move || {
        if let Some(pan) = pan.get_untracked() {
            pan.set_scroll_left((pan.scroll_width() - pan.client_width()) / 2);
        }
    });
}

/// Changes the zoom and keeps the middle of the view in the middle.
fn look(pan: NodeRef<Div>, zoom: RwSignal<Zoom>, to: Zoom) {
    let middle = |at: i32, seen: i32, all: i32| (f64::from(at) + f64::from(seen) / 2.0) / f64::from(all.max(1));
    let Some(pan) = pan.get_untracked() else { return };
    let x = middle(pan.scroll_left(), pan.client_width(), pan.scroll_width());
    let y = middle(pan.scroll_top(), pan.client_height(), pan.scroll_height());
    zoom.set(to);
    after_paint(move || {
        pan.set_scroll_left(start_of(x * f64::from(pan.scroll_width()), pan.client_width()));
        pan.set_scroll_top(start_of(y * f64::from(pan.scroll_height()), pan.client_height()));
    });
}

/// Brings a seat to the middle of the view.
fn scroll_to(pan: NodeRef<Div>, seat: &web_sys::Element) {
    let Some(pan) = pan.get_untracked() else { return };
    let (seat, view) = (seat.get_bounding_client_rect(), pan.get_bounding_client_rect());
    let x = f64::from(pan.scroll_left()) + seat.left() - view.left();
    let y = f64::from(pan.scroll_top()) + seat.top() - view.top();
    pan.set_scroll_left(start_of(x, pan.client_width()));
    pan.set_scroll_top(start_of(y, pan.client_height()));
}

fn start_of(middle: f64, seen: i32) -> i32 {
    whole(middle - f64::from(seen) / 2.0)
}

/// Pixels, plan units and degrees all fit.
fn whole(number: f64) -> i32 {
    number.round() as i32
}

fn after_paint(then: impl FnOnce() + 'static) {
    request_animation_frame(then);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_stand_past_both_ends_of_a_row_however_it_runs() {
        let mut row = RowView {
            label: "A".to_owned(),
            first: 0,
            numbers: vec![String::new(); 3],
            x: vec![0, 20, 40],
            y: vec![5, 5, 5],
            category: vec![0; 3],
        };
        assert_eq!(letter_places(&row), [(-21, 5), (61, 5)]);
        std::mem::swap(&mut row.x, &mut row.y);
        assert_eq!(letter_places(&row), [(5, -21), (5, 61)]);
    }

    #[test]
    fn the_frame_holds_every_seat_with_room_for_letters() {
        let plan = super::super::room::tests::two_sections();
        let room = Room::new(plan);
        let rows: Vec<_> = room.rows(Some(1)).collect();
        assert_eq!(Frame::around(room.plan(), &rows, false).view_box(), "-40 40 100 60");
    }
}
