//! The whole room in small, while one looks closer: where one is, and a way to be elsewhere.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use domain::seats::SeatIndex;
use domain::wire::Dot;
use leptos::ev::PointerEvent;
use leptos::html::{self, Div};
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use web_sys::HtmlElement;

use super::drawing::Frame;
use super::zoom::{self, Point};
use crate::seat_map::large_rooms::canvas::Canvas;
use crate::seat_map::large_rooms::dots::Dots;
use crate::seat_map::room::Room;
use crate::seat_map::session::{Note, Session};
use crate::seat_map::signals::kept::Here;
use crate::seat_map::signals::later::{Mounted, SplitLoaderError, mounted};

/// The map of some rows in small.
struct Minimap {
    session: Session,
    frame: Frame,
    /// The first seat; dots are counted from there.
    first: SeatIndex,
    dots: RefCell<Dots>,
    canvas: RefCell<Option<Canvas>>,
    element: NodeRef<html::Canvas>,
    /// Whether the next frame will paint.
    asked: Cell<bool>,
}

/// The map of a section, or of the whole room, in small; hidden while all of it is in view. `show` brings a place of
/// it, in hundredths, to the middle of the view.
pub fn minimap(
    session: Session,
    room: &Room,
    section: Option<usize>,
    frame: Frame,
    show: Rc<dyn Fn(Point)>,
) -> impl IntoView + use<> {
    let map = Minimap::new(session, room, section, frame);
    let (noting, coming) = (Rc::downgrade(&map), Rc::downgrade(&map));
    let note: Note = Rc::new(move |seat| {
        if let Some(map) = noting.upgrade() {
            map.note(seat);
        }
    });
    session.minimap_listener.set_value(Some(Here::new(note)));
    // Where one is changes with every frame of a drag; whether it is needed hardly ever.
    let is_needed = Memo::new(move |_| session.map_view.part.with(Option::is_some));
    Effect::new(move |_| {
        session.appearance.track();
        if is_needed.get() {
            let map = Weak::clone(&coming);
            // Hidden elements have no size; it is shown by the next frame.
            request_animation_frame(move || {
                if let Some(map) = map.upgrade() {
                    map.come_up();
                }
            });
        }
    });
    view(map, is_needed, show)
}

impl Minimap {
    fn new(session: Session, room: &Room, section: Option<usize>, frame: Frame) -> Rc<Self> {
        let seats = room.rows(section).flat_map(|(_, row)| row.x.iter().zip(&row.y).zip(&row.category));
        let dots = seats.map(|((x, y), category)| Dot { x: *x, y: *y, category: *category }).collect();
        Rc::new(Self {
            session,
            frame,
            first: room.rows(section).next().map_or(0, |(_, row)| row.first),
            dots: RefCell::new(Dots::new(dots)),
            canvas: RefCell::new(None),
            element: NodeRef::new(),
            asked: Cell::new(false),
        })
    }

    /// A seat looks different now.
    fn note(self: &Rc<Self>, seat: SeatIndex) {
        self.dots.borrow_mut().note(seat.wrapping_sub(self.first));
        self.paint_soon();
    }

    /// Paints in the next frame, once for all that happens until then; not while there is nothing to see.
    fn paint_soon(self: &Rc<Self>) {
        if self.canvas.borrow().is_some() && !self.asked.replace(true) {
            let map = Rc::downgrade(self);
            // The map may be gone by then.
            request_animation_frame(move || {
                if let Some(map) = map.upgrade() {
                    map.paint();
                }
            });
        }
    }

    fn paint(&self) {
        self.asked.set(false);
        let due = self.dots.borrow_mut().take_paints(|seat| self.session.current_look(seat + self.first));
        if let Some(canvas) = &mut *self.canvas.borrow_mut() {
            canvas.paint(&due);
        }
    }

    /// Takes the canvas when it comes to be seen.
    fn come_up(self: &Rc<Self>) {
        let Some(element) = self.element.get_untracked() else { return };
        let (corner, size) = ((self.frame.left, self.frame.top), (self.frame.width, self.frame.height));
        if self.canvas.borrow().as_ref().is_some_and(|canvas| canvas.fits(&element, size)) {
            return;
        }
        self.canvas.replace(Canvas::new(&element, corner, size));
        self.dots.borrow_mut().forget_painted();
        self.paint_soon();
    }
}

fn view(map: Rc<Minimap>, is_needed: Memo<bool>, show: Rc<dyn Fn(Point)>) -> impl IntoView {
    let (element, frame, part) = (map.element, map.frame, map.session.map_view.part);
    let window = NodeRef::<Div>::new();
    Effect::new(move |_| {
        let (Some(window), Some(part)) = (window.get(), part.get()) else { return };
        for (name, share) in ["left", "top", "width", "height"].into_iter().zip(part) {
            // Fails only for properties that do not exist.
            let _ = web_sys::HtmlElement::style(&window).set_property(name, &format!("{}%", zoom::decimal(share)));
        }
    });
    let pressed = Rc::new(Cell::new(false));
    let held = Rc::clone(&pressed);
    let go = Rc::new(move |event: &PointerEvent| {
        // It lives as long as what is shown of it.
        let Some(canvas) = map.element.get_untracked() else { return };
        let place = canvas.get_bounding_client_rect();
        let share = |at: i32, from: f64, length: f64| 100.0 * (f64::from(at) - from) / length.max(1.0);
        let at = (
            share(event.client_x(), place.left(), place.width()),
            share(event.client_y(), place.top(), place.height()),
        );
        show(at);
    });
    let drag = Rc::clone(&go);
    view! {
        // For eyes and pointers; keys move the map by moving the focus.
        <div class="minimap" data-testid="minimap" aria-hidden="true" hidden=move || !is_needed.get()
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

/// The whole room in small.
#[wasm_split(rest, wasm_split_path = ::leptos::wasm_split, fallible)]
pub(in crate::seat_map) fn minimap_part(
    session: Session,
    room: Arc<Room>,
    section: Option<usize>,
    frame: Frame,
    show: Rc<dyn Fn(Point)>,
    place: HtmlElement,
) -> Result<Mounted, SplitLoaderError> {
    Ok(mounted(place, move || minimap(session, &room, section, frame, show)))
}
