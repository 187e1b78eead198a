//! The minimap: the whole room while the map is zoomed in, with the visible part marked.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use domain::seats::SeatIndex;
use domain::wire::Dot;
use leptos::ev::PointerEvent;
use leptos::html::{self, Div};
use leptos::prelude::*;

use super::drawing::PlanFrame;
use super::plane::Plane;
use super::zoom;
use crate::seat_map::large_rooms::canvas::Canvas;
use crate::seat_map::large_rooms::dots::Dots;
use crate::seat_map::room_plan::RoomPlan;
use crate::seat_map::session::{MapSession, SeatListener};
use crate::seat_map::signals::SendWrapper;

/// Largest distance of the view from an edge of the map at which it is at that edge, percent of the map.
const EDGE_PERCENT: f64 = 0.5;

struct Minimap {
    session: MapSession,
    frame: PlanFrame,
    /// The first seat, which has dot 0.
    first: SeatIndex,
    dots: RefCell<Dots>,
    canvas: RefCell<Option<Canvas>>,
    element: NodeRef<html::Canvas>,
    /// True if a paint is scheduled for the next frame.
    is_scheduled: Cell<bool>,
}

/// The minimap of a section or the whole room. Hidden while all of it is in view. A press on it moves the `plane`.
pub fn minimap(
    session: MapSession,
    room: &RoomPlan,
    section: Option<usize>,
    frame: PlanFrame,
    plane: Rc<Plane>,
) -> impl IntoView + use<> {
    let map = Minimap::new(session, room, section, frame);
    let (marking, showing) = (Rc::downgrade(&map), Rc::downgrade(&map));
    let mark: SeatListener = Rc::new(move |seat| {
        if let Some(map) = marking.upgrade() {
            map.mark(seat);
        }
    });
    session.minimap_listener.set_value(Some(SendWrapper::new(mark)));
    // A memo: the visible part changes with every frame of a drag, its existence rarely.
    let is_needed = Memo::new(move |_| session.map_view.part.get().is_some_and(is_worthwhile));
    Effect::new(move |_| {
        session.appearance.track();
        if is_needed.get() {
            let map = Weak::clone(&showing);
            // Hidden elements have no size. The next frame shows it.
            request_animation_frame(move || {
                if let Some(map) = map.upgrade() {
                    map.prepare_canvas();
                }
            });
        }
    });
    view(map, is_needed, plane)
}

impl Minimap {
    fn new(session: MapSession, room: &RoomPlan, section: Option<usize>, frame: PlanFrame) -> Rc<Self> {
        let seats = room.rows(section).flat_map(|(_, row)| row.x.iter().zip(&row.y).zip(&row.category));
        let dots = seats.map(|((x, y), category)| Dot { x: *x, y: *y, category: *category }).collect();
        Rc::new(Self {
            session,
            frame,
            first: room.rows(section).next().map_or(0, |(_, row)| row.first),
            dots: RefCell::new(Dots::new(dots)),
            canvas: RefCell::new(None),
            element: NodeRef::new(),
            is_scheduled: Cell::new(false),
        })
    }

    fn mark(self: &Rc<Self>, seat: SeatIndex) {
        self.dots.borrow_mut().mark(seat.wrapping_sub(self.first));
        self.paint_soon();
    }

    /// Schedules one paint for the next frame, if there is a canvas.
    fn paint_soon(self: &Rc<Self>) {
        if self.canvas.borrow().is_some() && !self.is_scheduled.replace(true) {
            let map = Rc::downgrade(self);
            // The minimap may be gone by then.
            request_animation_frame(move || {
                if let Some(map) = map.upgrade() {
                    map.paint();
                }
            });
        }
    }

    fn paint(&self) {
        self.is_scheduled.set(false);
        let due = self.dots.borrow_mut().take_paints(|seat| self.session.current_appearance(seat + self.first));
        if let Some(canvas) = &mut *self.canvas.borrow_mut() {
            canvas.paint(&due);
        }
    }

    /// Creates the canvas when the minimap becomes visible.
    fn prepare_canvas(self: &Rc<Self>) {
        let Some(element) = self.element.get_untracked() else { return };
        let (corner, size) = ((self.frame.left, self.frame.top), (self.frame.width, self.frame.height));
        if self.canvas.borrow().as_ref().is_some_and(|canvas| canvas.fits(&element, size)) {
            return;
        }
        self.canvas.replace(Canvas::new(&element, corner, size));
        self.dots.borrow_mut().reset_painted();
        self.paint_soon();
    }
}

fn view(map: Rc<Minimap>, is_needed: Memo<bool>, plane: Rc<Plane>) -> impl IntoView {
    let (element, frame, part) = (map.element, map.frame, map.session.map_view.part);
    let (minimap, window) = (NodeRef::<Div>::new(), NodeRef::<Div>::new());
    let (corner, is_moved_here) = (Cell::new(""), Rc::new(Cell::new(false)));
    let is_moving = Rc::clone(&is_moved_here);
    Effect::new(move |_| {
        let (Some(minimap), Some(window), Some(part)) = (minimap.get(), window.get(), part.get()) else { return };
        let [left, top, width, height] = part;
        let percent = |share: f64| format!("{}%", zoom::decimal(share));
        // A move changes only the transform, in percent of the window's own size: nothing is laid out.
        let moved = |from: f64, length: f64| percent(100.0 * from / length.max(0.1));
        let place = format!("translate({}, {})", moved(left, width), moved(top, height));
        for (name, value) in [("width", percent(width)), ("height", percent(height)), ("transform", place)] {
            // Fails only for properties that do not exist.
            let _ = web_sys::HtmlElement::style(&window).set_property(name, &value);
        }
        // A press on the minimap does not move it from under the finger, whose next tap would take a seat.
        let free = free_corner(part);
        if !is_moved_here.replace(false) && corner.replace(free) != free {
            // Does not fail: the name is valid.
            let _ = minimap.set_attribute("data-corner", free);
        }
    });
    let pressed = Rc::new(Cell::new(false));
    let held = Rc::clone(&pressed);
    let go = Rc::new(move |event: &PointerEvent| {
        // Keeps the minimap alive as long as its view.
        let Some(canvas) = map.element.get_untracked() else { return };
        let place = canvas.get_bounding_client_rect();
        let share = |at: i32, from: f64, length: f64| 100.0 * (f64::from(at) - from) / length.max(1.0);
        let at = (
            share(event.client_x(), place.left(), place.width()),
            share(event.client_y(), place.top(), place.height()),
        );
        is_moving.set(true);
        plane.show(at);
    });
    let drag = Rc::clone(&go);
    view! {
        // For eyes and pointers only. Keys move the map by moving the focus.
        <div class="minimap" data-testid="minimap" aria-hidden="true" hidden=move || !is_needed.get() node_ref=minimap
            style=("--plan-aspect", format!("{} / {}", frame.width, frame.height))
            on:pointerdown=move |event| {
                event.prevent_default();
                held.set(true);
                go(&event);
            }
            on:pointermove=move |event| {
                if event.buttons() == 0 {
                    pressed.set(false);
                } else if pressed.get() {
                    drag(&event);
                }
            }>
            <canvas class="minimap-seats" node_ref=element></canvas>
            <div class="minimap-window" node_ref=window></div>
        </div>
    }
}

/// True if the map overhangs its view by more than the edges.
fn is_worthwhile([_, _, width, height]: [f64; 4]) -> bool {
    width.min(height) < 100.0 - 2.0 * EDGE_PERCENT
}

/// The corner of the view for the minimap: never over a corner of the map, because a seat there cannot be moved from
/// under it.
fn free_corner([left, top, width, _]: [f64; 4]) -> &'static str {
    let is_at_left = left < EDGE_PERCENT;
    let is_at_right = left + width > 100.0 - EDGE_PERCENT;
    match (is_at_left, is_at_right) {
        (false, true) => "top left",
        (true, true) if top < EDGE_PERCENT => "bottom right",
        _ => "top right",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimap_covers_no_corner_of_the_map() {
        let corner = |left, top| free_corner([left, top, 60.0, 60.0]);
        assert_eq!([corner(0.0, 0.0), corner(20.0, 0.0), corner(0.0, 40.0)], ["top right"; 3]);
        assert_eq!([corner(40.0, 0.0), corner(40.0, 40.0)], ["top left"; 2]);
        // The whole width is in view.
        assert_eq!(free_corner([0.0, 0.0, 100.0, 60.0]), "bottom right");
        assert_eq!(free_corner([0.0, 40.0, 100.0, 60.0]), "top right");
    }

    #[test]
    fn a_map_that_hardly_overhangs_has_no_minimap() {
        assert!(!is_worthwhile([0.0, 0.4, 100.0, 99.4]), "it would cover the same seats wherever the map is moved");
        assert!(is_worthwhile([0.0, 0.0, 100.0, 98.0]));
    }
}
