//! The map under one's fingers: a scroller, and in it the drawing, which grows and shrinks.
//!
//! Where one is, is the scroller's own position, so that fingers, wheel, keyboard focus and whoever asks for
//! a seat to be shown move it as they move any page, and a finger that reaches the end of the map scrolls
//! the page. Only what browsers do not do by themselves is here: dragging with a mouse, pinching, the wheel
//! with Ctrl, double taps. While fingers pinch, the drawing is only transformed; it is laid out anew when
//! they leave. What must move how far is in [`zoom`](super::zoom).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use domain::api::SEAT_PITCH;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, Event, MouseEvent, PointerEvent, SvgElement, TouchEvent, WheelEvent};

use super::zoom::{self, Box2, Pinch, Point};
use crate::seat_map::signals::told::Told;

/// A mouse that moves less than this while pressed has clicked, pixels.
const DRAG_PX: f64 = 5.0;
/// Pixels of a line, for wheels that count lines.
const LINE_PX: f64 = 16.0;
/// The map counts as larger than its view from here on, pixels.
const OVERHANG_PX: f64 = 4.0;

/// Kept for as long as its element may call it.
type Listener = Closure<dyn FnMut(Event)>;
/// What the map does about an event.
type Reaction = fn(&Plane, &Event);

/// What the page shows of where one is.
#[derive(Clone, Copy)]
pub struct Shown {
    /// How much larger than the whole room; 1 is the whole room.
    pub zoom: Told<f64>,
    /// Whether it cannot grow any more.
    pub largest: Told<bool>,
    /// The part of the map in view, in hundredths of it: left, top, width, height. `None` when it is all of it.
    pub part: Told<Option<[f64; 4]>>,
}

impl Shown {
    /// The whole room.
    pub fn new() -> Self {
        Self { zoom: Told::new(1.0), largest: Told::new(false), part: Told::new(None) }
    }

    /// The whole room again.
    pub fn reset(self) {
        self.zoom.set(1.0);
        self.largest.set(false);
        self.part.set(None);
    }
}

/// A map that can be moved about.
pub struct Plane {
    scroller: Element,
    drawing: SvgElement,
    /// Width of the drawing in plan units.
    units: f64,
    zoom: Cell<f64>,
    shown: Shown,
    /// Where the mouse was pressed, and where the map was scrolled to then.
    pressed: Cell<Option<(Point, Point)>>,
    dragging: Cell<bool>,
    pinch: RefCell<Option<(Pinch, f64, Box2)>>,
    listeners: RefCell<Vec<Listener>>,
}

impl Plane {
    /// Takes the drawing in its scroller; `units` is its width in plan units.
    pub fn new(scroller: Element, drawing: SvgElement, units: i32, shown: Shown) -> Rc<Self> {
        let plane = Rc::new(Self {
            scroller,
            drawing,
            units: f64::from(units),
            zoom: Cell::new(1.0),
            shown,
            pressed: Cell::new(None),
            dragging: Cell::new(false),
            pinch: RefCell::new(None),
            listeners: RefCell::new(Vec::new()),
        });
        let listeners: [(&str, Reaction); 12] = [
            ("scroll", |plane, _| plane.tell()),
            // While it glides it looks smaller or larger than it is.
            ("transitionend", |plane, _| plane.tell()),
            ("wheel", Self::turn_wheel),
            ("dblclick", Self::double_tap),
            ("pointerdown", Self::press),
            ("pointermove", Self::drag),
            ("pointerup", |plane, _| plane.let_go()),
            ("pointercancel", |plane, _| plane.let_go()),
            ("touchstart", Self::touch),
            ("touchmove", Self::pinch),
            ("touchend", |plane, _| plane.end_pinch()),
            ("touchcancel", |plane, _| plane.end_pinch()),
        ];
        for (name, react) in listeners {
            let weak = Rc::downgrade(&plane);
            let closure = Listener::new(move |event: Event| {
                if let Some(plane) = weak.upgrade() {
                    react(&plane, &event);
                }
            });
            // On an element these are not passive: what we handle ourselves we may keep from the browser.
            // Adding a listener fails for no target that exists.
            let _ = plane.scroller.add_event_listener_with_callback(name, closure.as_ref().unchecked_ref());
            plane.listeners.borrow_mut().push(closure);
        }
        plane
    }

    /// Begins with the whole room, or with seats that a finger can hit; the middle of the room in the middle.
    pub fn start(&self, by_finger: bool) {
        self.set(zoom::start(self.seat_px(), by_finger));
        self.scroller.set_scroll_left((self.scroller.scroll_width() - self.scroller.client_width()) / 2);
        self.tell();
    }

    /// How large a seat is in the whole room, pixels.
    pub fn seat_px(&self) -> f64 {
        f64::from(SEAT_PITCH) * self.place().width / self.zoom.get() / self.units
    }

    /// Looks closer by a factor, at this point of the window or at the middle of the view; by none at the
    /// whole room.
    pub fn zoom_by(&self, factor: f64, about: Option<Point>, smoothly: bool) {
        let looks = self.place();
        self.stop_gliding();
        let before = self.place();
        let about = about.unwrap_or_else(|| place_of(&self.scroller).middle());
        if !self.set(zoom::clamped(self.zoom.get() * factor, self.seat_px())) {
            return;
        }
        self.scroll_by(zoom::drift(before, self.place(), about));
        self.tell();
        if smoothly {
            self.glide_from(looks);
        }
    }

    /// Makes seats large enough for a finger, around this point.
    pub fn look_closer(&self, about: Point) {
        // While it glides seats look smaller or larger than they will be.
        self.stop_gliding();
        let wanted = zoom::start(self.seat_px(), true);
        self.zoom_by(wanted / self.zoom.get(), Some(about), true);
    }

    /// Moves this place of the map, in hundredths of it, to the middle of the view.
    pub fn show(&self, (across, down): Point) {
        let (map, view) = (self.place(), place_of(&self.scroller));
        let (x, y) = view.middle();
        self.scroll_by((map.left + across * map.width / 100.0 - x, map.top + down * map.height / 100.0 - y));
    }

    fn place(&self) -> Box2 {
        place_of(&self.drawing)
    }

    /// Sets how close one looks; whether that is anything new.
    fn set(&self, times: f64) -> bool {
        if (self.zoom.get() - times).abs() < 1e-3 {
            return false;
        }
        self.zoom.set(times);
        self.style("--zoom", &zoom::decimal(times));
        self.shown.zoom.set(times);
        self.shown.largest.set(zoom::clamped(times * 1.01, self.seat_px()) <= times);
        true
    }

    fn style(&self, name: &str, value: &str) {
        // Fails only for properties that do not exist.
        let _ = self.drawing.style().set_property(name, value);
    }

    fn scroll_by(&self, (x, y): Point) {
        let moved = |at: i32, by: f64| at + by.round() as i32;
        self.scroller.set_scroll_left(moved(self.scroller.scroll_left(), x));
        self.scroller.set_scroll_top(moved(self.scroller.scroll_top(), y));
    }

    /// Moves the drawing from where it was to where it is. How long that takes is the style's affair, and
    /// whether it moves at all the visitor's.
    fn glide_from(&self, looked: Box2) {
        self.style("transform", &zoom::transform(self.place(), looked));
        // Asking where it is makes the browser take note of it.
        self.place();
        let _ = self.drawing.set_attribute("data-gliding", "true");
        self.style("transform", "none");
    }

    /// Puts the drawing where it is laid out, at once.
    fn stop_gliding(&self) {
        let _ = self.drawing.remove_attribute("data-gliding");
        self.style("transform", "none");
    }

    /// Tells the page which part is in view.
    fn tell(&self) {
        let (map, view) = (self.place(), place_of(&self.scroller));
        let larger = map.width > view.width + OVERHANG_PX || map.height > view.height + OVERHANG_PX;
        let part = larger.then(|| {
            let share = |from: f64, length: f64, start: f64, end: f64| {
                let (near, far) = (((start - from) / length).clamp(0.0, 1.0), ((end - from) / length).clamp(0.0, 1.0));
                (100.0 * near, 100.0 * (far - near))
            };
            let (left, width) = share(map.left, map.width.max(1.0), view.left, view.left + view.width);
            let (top, height) = share(map.top, map.height.max(1.0), view.top, view.top + view.height);
            [left, top, width, height]
        });
        if self.shown.part.get_untracked() != part {
            self.shown.part.set(part);
        }
    }

    fn turn_wheel(&self, event: &Event) {
        let event: &WheelEvent = event.unchecked_ref();
        // Without the key it scrolls. Trackpads say Ctrl when two fingers pinch on them.
        if event.ctrl_key() || event.meta_key() {
            event.prevent_default();
            let pixels = if event.delta_mode() == WheelEvent::DOM_DELTA_PIXEL { 1.0 } else { LINE_PX };
            let factor = zoom::wheel_factor(event.delta_y() * pixels);
            self.zoom_by(factor, Some((f64::from(event.client_x()), f64::from(event.client_y()))), false);
        }
    }

    fn double_tap(&self, event: &Event) {
        let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
        // Two taps on a seat take it and let it go.
        if target.is_some_and(|target| target.closest("[data-seat]").is_ok_and(|seat| seat.is_none())) {
            let event: &MouseEvent = event.unchecked_ref();
            let about = (f64::from(event.client_x()), f64::from(event.client_y()));
            self.zoom_by(zoom::STEP * zoom::STEP, Some(about), true);
        }
    }

    fn press(&self, event: &Event) {
        let event: &PointerEvent = event.unchecked_ref();
        let at = (f64::from(event.client_x()), f64::from(event.client_y()));
        if event.pointer_type() == "mouse" && event.button() == 0 && !self.is_on_scrollbar(at) {
            let scrolled = (f64::from(self.scroller.scroll_left()), f64::from(self.scroller.scroll_top()));
            self.pressed.set(Some((at, scrolled)));
        }
    }

    /// The scroller's own bars lie beside what it shows, and move the map themselves.
    fn is_on_scrollbar(&self, (x, y): Point) -> bool {
        let place = place_of(&self.scroller);
        let across = x - place.left - f64::from(self.scroller.client_left());
        let down = y - place.top - f64::from(self.scroller.client_top());
        let (width, height) = (f64::from(self.scroller.client_width()), f64::from(self.scroller.client_height()));
        !(0.0..width).contains(&across) || !(0.0..height).contains(&down)
    }

    fn drag(&self, event: &Event) {
        let Some(((x, y), (left, top))) = self.pressed.get() else { return };
        let event: &PointerEvent = event.unchecked_ref();
        // Only the mouse was pressed; a finger or a pen beside it moves nothing.
        if event.pointer_type() != "mouse" {
            return;
        }
        // It was let go where nobody told us: outside the map, over a menu.
        if event.buttons() & 1 == 0 {
            return self.let_go();
        }
        let (dx, dy) = (f64::from(event.client_x()) - x, f64::from(event.client_y()) - y);
        if !self.dragging.get() {
            if dx.hypot(dy) < DRAG_PX {
                return;
            }
            // From here on the map has the mouse: letting go on a seat is no click on it.
            self.dragging.set(true);
            let _ = self.scroller.set_pointer_capture(event.pointer_id());
            let _ = self.scroller.set_attribute("data-dragging", "true");
        }
        self.scroller.set_scroll_left((left - dx).round() as i32);
        self.scroller.set_scroll_top((top - dy).round() as i32);
    }

    fn let_go(&self) {
        self.pressed.set(None);
        if self.dragging.replace(false) {
            let _ = self.scroller.remove_attribute("data-dragging");
        }
    }

    fn touch(&self, event: &Event) {
        if let Some((one, other)) = two_fingers(event) {
            event.prevent_default();
            self.stop_gliding();
            let place = self.place();
            *self.pinch.borrow_mut() = Some((Pinch::new(place, one, other), 1.0, place));
        }
    }

    fn pinch(&self, event: &Event) {
        let mut pinch = self.pinch.borrow_mut();
        let (Some((pinch, factor, looks)), Some((one, other))) = (pinch.as_mut(), two_fingers(event)) else { return };
        event.prevent_default();
        let times = self.zoom.get();
        // Not the size on screen: that is what the fingers are changing.
        let seat_px = f64::from(SEAT_PITCH) * pinch.start.width / times / self.units;
        (*factor, *looks) = pinch.looks(one, other, |factor| zoom::clamped(times * factor, seat_px) / times);
        self.style("transform", &zoom::transform(pinch.start, *looks));
    }

    fn end_pinch(&self) {
        let Some((_, factor, looks)) = self.pinch.borrow_mut().take() else { return };
        self.stop_gliding();
        self.set(self.zoom.get() * factor);
        let now = self.place();
        self.scroll_by((now.left - looks.left, now.top - looks.top));
        self.tell();
    }
}

fn place_of(element: &Element) -> Box2 {
    let place = element.get_bounding_client_rect();
    Box2 { left: place.left(), top: place.top(), width: place.width(), height: place.height() }
}

/// Where two fingers are in the window, when it is two.
pub fn two_fingers(event: &Event) -> Option<(Point, Point)> {
    let touches = event.unchecked_ref::<TouchEvent>().touches();
    let finger = |number| touches.get(number).map(|touch| (f64::from(touch.client_x()), f64::from(touch.client_y())));
    if touches.length() == 2 { finger(0).zip(finger(1)) } else { None }
}
