//! The map: every seat of a room or a section at its real position.
//!
//! Drawn once as markup; afterwards each seat's own signal repaints that seat. One listener for all seats, one tab
//! stop, and arrow keys that follow the rows. `after_seats` loads what moves and magnifies it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use domain::api::RowView;
use domain::seats::SeatIndex;
use language::say;
use leptos::ev::{FocusEvent, KeyboardEvent, MouseEvent, PointerEvent};
use leptos::html::Div;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::wasm_split;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use super::card::{sight_of, words_of};
use super::direction::direction_view;
use super::drawing::{self, PlanFrame};
use super::map_view::ZoomRequest;
use super::steps::{MapStep, Steps};
use super::{after_seats, legend, zoom};
use crate::browser;
use crate::seat_map::deferred::{MountedPart, SplitLoaderError, deferred, mount_part};
use crate::seat_map::own_seats::{areas, wishes};
use crate::seat_map::room_plan::RoomPlan;
use crate::seat_map::session::MapSession;

/// A seat narrower than this on screen, pixels, is too small for a finger: a tap zooms in first.
/// WCAG 2.2 (2.5.8) requires 24.
const SMALLEST_TARGET_PX: f64 = 24.0;

/// The state of the map, which lives as long as its listeners.
struct Grid {
    session: MapSession,
    room: Arc<RoomPlan>,
    steps: Steps,
    /// The seat with the tab stop.
    focused: Cell<Option<SeatIndex>>,
    /// The seat tapped last, whose card has been seen. Not the seat pointed at: a finger points before it taps.
    tapped: Cell<Option<SeatIndex>>,
    /// The effects that keep the seats painted.
    painters: RefCell<Vec<RenderEffect<()>>>,
}

/// The map of a section, turned upright, or of the whole room.
#[wasm_split(seats, wasm_split_path = ::leptos::wasm_split, fallible)]
pub fn grid_part(
    session: MapSession,
    room: Arc<RoomPlan>,
    section: Option<usize>,
    place: HtmlElement,
) -> Result<MountedPart, SplitLoaderError> {
    let on_screen = section.map_or_else(|| Arc::clone(&room), |section| Arc::new(room.turned_upright(section)));
    let direction = section.map(|section| direction_view(&on_screen, section));
    Ok(mount_part(place, move || (direction, grid(session, &room, &on_screen, section))))
}

/// Loads the code of [`grid_part`] before it is needed. That repeats a failed load.
pub fn load_early(session: MapSession) {
    spawn_local(async move {
        if code_part().await.is_err() {
            // The cart is needed without the map as well.
            session.was_map_drawn.set(true);
        }
    });
}

#[wasm_split(seats, wasm_split_path = ::leptos::wasm_split, fallible)]
fn code_part() -> Result<(), SplitLoaderError> {
    Ok(())
}

/// Draws the map of a section, or of the whole room. `on_screen` is the room as it is drawn: it may be turned.
fn grid(
    session: MapSession,
    room: &Arc<RoomPlan>,
    on_screen: &Arc<RoomPlan>,
    section: Option<usize>,
) -> impl IntoView + use<> {
    let rows: Vec<(&str, &RowView)> = on_screen.rows(section).collect();
    let frame = PlanFrame::around(on_screen.plan(), &rows, section.is_none());
    let grid = Rc::new(Grid {
        session,
        room: Arc::clone(room),
        steps: Steps::new(rows.iter().map(|(_, row)| *row)),
        focused: Cell::new(None),
        tapped: Cell::new(None),
        painters: RefCell::new(Vec::new()),
    });
    session.minimap_listener.set_value(None);
    session.map_view.reset();
    let markup = drawing::markup(on_screen, &rows, &frame, section.is_none());
    let scroller = NodeRef::<Div>::new();
    let seats: Vec<SeatIndex> = rows.iter().flat_map(|(_, row)| (row.first..).take(row.numbers.len())).collect();
    // A proposal points at a seat before its section is on screen.
    if session.pointed_seat.get_untracked().is_some_and(|seat| !seats.contains(&seat)) {
        session.pointed_seat.set(None);
    }
    let drawing_grid = Rc::clone(&grid);
    Effect::new(move |_: Option<()>| {
        if scroller.get().is_some() {
            drawing_grid.keep_painted(&seats);
            drawing_grid.set_first_tab_stop();
            session.was_map_drawn.set(true);
        }
    });
    let room = Arc::clone(on_screen);
    let after_seats = deferred(
        move || session.is_drawn(),
        "minimap-coming",
        move |place| {
            Box::pin(after_seats::after_seats_part(session, Arc::clone(&room), section, frame, scroller, place))
        },
    );
    let (tapping, typing, pointing, focusing) =
        (Rc::clone(&grid), Rc::clone(&grid), Rc::clone(&grid), Rc::clone(&grid));

    view! {
        <div class="room-view">
            {after_seats}
            <div class="room-pan" data-testid="room-pan" node_ref=scroller
                style=("--plan-aspect", format!("{} / {}", frame.width, frame.height))>
                <div class="room-plane" style=("--plan-width", frame.width.to_string())>
                    <svg class="room" role="grid" aria-label=say!("map.seats") aria-multiselectable="true" viewBox=frame.view_box() preserveAspectRatio="xMidYMid meet"
                        data-hide=move || legend::hidden(session)
                        on:click=move |event| tapping.tap(&event) on:keydown=move |event| typing.key(&event)
                        on:pointerover=move |event: PointerEvent| pointing.point_at(&event)
                        on:focusin=move |event: FocusEvent| focusing.point_at(&event)
                        inner_html=markup></svg>
                </div>
            </div>
        </div>
    }
}

impl Grid {
    fn keep_painted(&self, seats: &[SeatIndex]) {
        let painters = seats.iter().filter_map(|seat| {
            let (seat, room, element) = (*seat, Arc::clone(&self.room), browser::element(&format!("seat-{seat}"))?);
            let (session, mut painted) = (self.session, None);
            let look = session.appearance_signal(seat);
            Some(RenderEffect::new(move |_| {
                let look = look.get();
                let before = painted.replace(look);
                if let Some(facts) = room.seat(seat).filter(|_| before != Some(look)) {
                    drawing::paint(&element, before, look, facts.category.kind, &words_of(room.plan(), &facts));
                }
                session.redraw_in_minimap(seat);
            }))
        });
        let painters = painters.collect();
        self.painters.replace(painters);
    }

    fn zoom(&self, request: ZoomRequest) {
        self.session.map_view.wanted.set(Some(request));
    }

    fn tap(&self, event: &MouseEvent) {
        let Some((seat, target)) = seat_at(event) else {
            return focus_area(event);
        };
        // A finger's tap on a tiny seat is a guess, so zoom in first.
        let by_finger = event.dyn_ref::<PointerEvent>().is_some_and(|event| event.pointer_type() == "touch");
        let is_first_tap = self.tapped.replace(Some(seat)) != Some(seat);
        self.session.pointed_seat.set(Some(seat));
        if by_finger && target.get_bounding_client_rect().width() < SMALLEST_TARGET_PX {
            let about = (f64::from(event.client_x()), f64::from(event.client_y()));
            self.zoom(ZoomRequest::ForFingers(about));
            return;
        }
        // A mouse has seen the card's warning before it presses; a finger sees it now.
        if by_finger && is_first_tap && self.is_free_with_restricted_view(seat) {
            return;
        }
        self.set_tab_stop(seat);
        wishes::tap_seat(self.session, seat);
    }

    fn is_free_with_restricted_view(&self, seat: SeatIndex) -> bool {
        // Staff who look up a seat take none.
        let is_free = !self.session.is_read_only && self.session.current_appearance(seat).state() == "available";
        let sight = self.room.seat(seat).and_then(|facts| sight_of(self.room.plan(), &facts));
        is_free && sight.is_some_and(|sight| sight.is_restricted())
    }

    fn key(&self, event: &KeyboardEvent) {
        let key = event.key();
        let Some((seat, _)) = seat_at(event) else {
            if matches!(key.as_str(), " " | "Enter") {
                event.prevent_default();
                focus_area(event);
            }
            return;
        };
        if let Some(step) = MapStep::of_key(&key, event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            let next = self.steps.step(seat, step);
            self.set_tab_stop(next);
            browser::focus(&format!("seat-{next}"));
            return;
        }
        if event.ctrl_key() || event.meta_key() || event.alt_key() {
            return;
        }
        match key.as_str() {
            " " | "Enter" => {
                event.prevent_default();
                // A held key is one press, not taking and releasing in turns.
                if !event.repeat() {
                    wishes::tap_seat(self.session, seat);
                }
            }
            "+" => self.zoom(ZoomRequest::By(zoom::STEP)),
            "-" => self.zoom(ZoomRequest::By(1.0 / zoom::STEP)),
            "0" => self.zoom(ZoomRequest::Whole),
            _ => {}
        }
    }

    fn point_at(&self, event: &web_sys::Event) {
        let seat = seat_at(event).map(|(seat, _)| seat);
        if seat.is_some() && seat != self.session.pointed_seat.get_untracked() {
            self.session.pointed_seat.set(seat);
        }
    }

    fn set_tab_stop(&self, seat: SeatIndex) {
        let set = |seat: SeatIndex, value: &str| {
            if let Some(element) = browser::element(&format!("seat-{seat}")) {
                // Fails only for invalid attribute names.
                let _ = element.set_attribute("tabindex", value);
            }
        };
        if let Some(before) = self.focused.get() {
            set(before, "-1");
        }
        set(seat, "0");
        self.focused.set(Some(seat));
    }

    fn set_first_tab_stop(&self) {
        let free = |seat| self.session.current_appearance(seat).state() == "available";
        if let Some(seat) = self.steps.start(free) {
            self.set_tab_stop(seat);
        }
    }
}

/// The seat an event happened on, and its element.
fn seat_at(event: &web_sys::Event) -> Option<(SeatIndex, web_sys::Element)> {
    let target = closest(event, "[data-seat]")?;
    Some((target.get_attribute("data-seat")?.parse().ok()?, target))
}

/// Moves the focus from the area an event happened on to its card.
fn focus_area(event: &web_sys::Event) {
    if let Some(area) = closest(event, "[data-area]").and_then(|area| area.get_attribute("data-area")) {
        areas::focus_card(area);
    }
}

fn closest(event: &web_sys::Event, selector: &str) -> Option<web_sys::Element> {
    event.target()?.dyn_into::<web_sys::Element>().ok()?.closest(selector).ok()?
}
