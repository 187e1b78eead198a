//! The movable map: a scroller with the drawing and its letters in it.
//!
//! The position is the scroller's own, so that fingers, wheel, keyboard focus and scrolling to a seat move it as they
//! move any page, and a finger that reaches the map's end scrolls the page. This module adds only what browsers do not
//! do: mouse dragging, pinching, the wheel with Ctrl, and double taps. While pinching, the drawing is only transformed;
//! it is laid out again at the end. [`zoom`](super::zoom) has the arithmetic.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use domain::api::SEAT_PITCH;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, Event, HtmlElement, MouseEvent, PointerEvent, TouchEvent, WheelEvent};

use super::map_view::{MapView, ZoomRequest};
use super::view_size::{RESIZED, follow_size};
use super::zoom::{self, Pinch, WindowPoint, WindowRect};

/// Mouse movement below this while pressed is a click, pixels.
const DRAG_PX: f64 = 5.0;
/// Pixels per line, for wheels that count lines.
const LINE_PX: f64 = 16.0;
/// The map counts as larger than its view from this overhang on, pixels.
const OVERHANG_PX: f64 = 4.0;

/// Kept as long as its element may call it.
type Listener = Closure<dyn FnMut(Event)>;
type Reaction = fn(&Plane, &Event);

/// A map that can be panned and zoomed.
pub struct Plane {
    scroller: Element,
    drawing: HtmlElement,
    /// Width of the drawing in plan units.
    units: f64,
    zoom: Cell<f64>,
    shown: MapView,
    /// Mouse position and scroll position at the press.
    pressed: Cell<Option<(WindowPoint, WindowPoint)>>,
    dragging: Cell<bool>,
    pinch: RefCell<Option<(Pinch, f64, WindowRect)>>,
    listeners: RefCell<Vec<Listener>>,
}

impl Plane {
    /// Attaches to a drawing in its scroller. `units` is its width in plan units.
    pub fn new(scroller: Element, drawing: HtmlElement, units: i32, shown: MapView) -> Rc<Self> {
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
        let listeners: [(&str, Reaction); 14] = [
            ("scroll", |plane, _| plane.update_view()),
            // A style that loads later makes the page's other parts higher, for example.
            (RESIZED, |plane, _| plane.update_for_size()),
            // During the transition the drawing has another size.
            ("transitionend", |plane, _| plane.update_view()),
            // A key may focus a seat, and the browser scrolls to where it is during the transition.
            ("keydown", |plane, _| plane.stop_animation()),
            ("wheel", Self::turn_wheel),
            ("dblclick", Self::double_tap),
            ("pointerdown", Self::press),
            ("pointermove", Self::drag),
            ("pointerup", |plane, _| plane.release()),
            ("pointercancel", |plane, _| plane.release()),
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
            // Not passive on an element, so that handled events can be cancelled. A key is handled before the grid does.
            // Adding a listener does not fail for an existing target.
            let (react, is_first) = (closure.as_ref().unchecked_ref(), name == "keydown");
            let _ = plane.scroller.add_event_listener_with_callback_and_bool(name, react, is_first);
            plane.listeners.borrow_mut().push(closure);
        }
        follow_size(&plane.scroller);
        plane.update_for_size();
        plane
    }

    /// Size of a seat at magnification 1, pixels.
    fn seat_px(&self) -> f64 {
        f64::from(SEAT_PITCH) * self.place().width / self.zoom.get() / self.units
    }

    /// Changes the magnification as the page requests.
    pub fn change(&self, request: ZoomRequest) {
        match request {
            ZoomRequest::By(factor) => self.zoom_by(factor, None, true),
            ZoomRequest::Whole => self.zoom_by(0.0, None, true),
            ZoomRequest::ForFingers(about) => self.zoom_for_fingers(about),
        }
    }

    /// Multiplies the magnification, around this point of the window or the middle of the view. A factor of zero shows
    /// the whole room.
    fn zoom_by(&self, factor: f64, about: Option<WindowPoint>, smoothly: bool) {
        let looks = self.place();
        self.stop_animation();
        let before = self.place();
        let about = about.unwrap_or_else(|| place_of(&self.scroller).middle());
        if !self.set(zoom::clamped(self.zoom.get() * factor, self.seat_px())) {
            return;
        }
        self.scroll_by(zoom::drift(before, self.place(), about));
        self.update_view();
        if smoothly {
            self.animate_from(looks);
        }
    }

    /// Zooms until seats are large enough for a finger, around this point.
    fn zoom_for_fingers(&self, about: WindowPoint) {
        // During a transition seats have another size.
        self.stop_animation();
        self.zoom_by(zoom::for_fingers(self.seat_px()) / self.zoom.get(), Some(about), true);
    }

    /// Moves this point of the map, in percent, to the middle of the view.
    pub fn show(&self, (across, down): WindowPoint) {
        let (map, view) = (self.place(), place_of(&self.scroller));
        let (x, y) = view.middle();
        self.scroll_by((map.left + across * map.width / 100.0 - x, map.top + down * map.height / 100.0 - y));
    }

    fn place(&self) -> WindowRect {
        place_of(&self.drawing)
    }

    /// Sets the magnification. Returns whether it changed.
    fn set(&self, times: f64) -> bool {
        if (self.zoom.get() - times).abs() < 1e-3 {
            return false;
        }
        self.zoom.set(times);
        self.style("--zoom", &zoom::decimal(times));
        self.shown.zoom.set(times);
        self.update_limit();
        true
    }

    /// Updates whether the largest magnification is reached: one percent more is not possible.
    fn update_limit(&self) {
        let more = self.zoom.get() * 1.01;
        self.shown.largest.set(zoom::clamped(more, self.seat_px()) < more);
    }

    fn style(&self, name: &str, value: &str) {
        // Fails only for properties that do not exist.
        let _ = self.drawing.style().set_property(name, value);
    }

    fn scroll_by(&self, (x, y): WindowPoint) {
        let moved = |at: i32, by: f64| at + by.round() as i32;
        self.scroller.set_scroll_left(moved(self.scroller.scroll_left(), x));
        self.scroller.set_scroll_top(moved(self.scroller.scroll_top(), y));
    }

    /// Animates the drawing from its old place. The style sets the duration, and the visitor's settings whether it
    /// moves at all.
    fn animate_from(&self, before: WindowRect) {
        self.style("transform", &zoom::transform(self.place(), before));
        // Forces a layout, so that the transition has a start.
        self.place();
        let _ = self.drawing.set_attribute("data-gliding", "true");
        self.style("transform", "none");
    }

    /// Ends the transition at once.
    fn stop_animation(&self) {
        let _ = self.drawing.remove_attribute("data-gliding");
        self.style("transform", "none");
    }

    fn update_for_size(&self) {
        self.update_limit();
        self.update_view();
    }

    /// Updates the visible part.
    fn update_view(&self) {
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
            self.shown.record_move();
        }
    }

    fn turn_wheel(&self, event: &Event) {
        let event: &WheelEvent = event.unchecked_ref();
        // Without the key the wheel scrolls. Trackpads report a pinch as Ctrl and wheel.
        if event.ctrl_key() || event.meta_key() {
            event.prevent_default();
            let pixels = if event.delta_mode() == WheelEvent::DOM_DELTA_PIXEL { 1.0 } else { LINE_PX };
            let factor = zoom::wheel_factor(event.delta_y() * pixels);
            self.zoom_by(factor, Some((f64::from(event.client_x()), f64::from(event.client_y()))), false);
        }
    }

    fn double_tap(&self, event: &Event) {
        let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
        // Two taps on a seat take and release it.
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

    /// Scrollbars lie beside the content and move the map themselves.
    fn is_on_scrollbar(&self, (x, y): WindowPoint) -> bool {
        let place = place_of(&self.scroller);
        let across = x - place.left - f64::from(self.scroller.client_left());
        let down = y - place.top - f64::from(self.scroller.client_top());
        let (width, height) = (f64::from(self.scroller.client_width()), f64::from(self.scroller.client_height()));
        !(0.0..width).contains(&across) || !(0.0..height).contains(&down)
    }

    fn drag(&self, event: &Event) {
        let Some(((x, y), (left, top))) = self.pressed.get() else { return };
        let event: &PointerEvent = event.unchecked_ref();
        // Only the mouse drags; a finger or pen at the same time does not.
        if event.pointer_type() != "mouse" {
            return;
        }
        // Released outside the map or over a menu, where no event arrives.
        if event.buttons() & 1 == 0 {
            return self.release();
        }
        let (dx, dy) = (f64::from(event.client_x()) - x, f64::from(event.client_y()) - y);
        if !self.dragging.get() {
            if dx.hypot(dy) < DRAG_PX {
                return;
            }
            // From here on the map captures the mouse: a release over a seat is no click.
            self.dragging.set(true);
            let _ = self.scroller.set_pointer_capture(event.pointer_id());
            let _ = self.scroller.set_attribute("data-dragging", "true");
        }
        self.scroller.set_scroll_left((left - dx).round() as i32);
        self.scroller.set_scroll_top((top - dy).round() as i32);
    }

    fn release(&self) {
        self.pressed.set(None);
        if self.dragging.replace(false) {
            let _ = self.scroller.remove_attribute("data-dragging");
        }
    }

    fn touch(&self, event: &Event) {
        if let Some((one, other)) = two_fingers(event) {
            event.prevent_default();
            self.stop_animation();
            let place = self.place();
            *self.pinch.borrow_mut() = Some((Pinch::new(place, one, other), 1.0, place));
        }
    }

    fn pinch(&self, event: &Event) {
        let mut pinch = self.pinch.borrow_mut();
        let (Some((pinch, factor, looks)), Some((one, other))) = (pinch.as_mut(), two_fingers(event)) else { return };
        event.prevent_default();
        let times = self.zoom.get();
        // Not the size on screen, which the pinch is changing.
        let seat_px = f64::from(SEAT_PITCH) * pinch.start.width / times / self.units;
        (*factor, *looks) = pinch.looks(one, other, |factor| zoom::clamped(times * factor, seat_px) / times);
        self.style("transform", &zoom::transform(pinch.start, *looks));
        self.shown.record_move();
    }

    fn end_pinch(&self) {
        let Some((_, factor, looks)) = self.pinch.borrow_mut().take() else { return };
        self.stop_animation();
        self.set(self.zoom.get() * factor);
        let now = self.place();
        self.scroll_by((now.left - looks.left, now.top - looks.top));
        self.update_view();
    }
}

fn place_of(element: &Element) -> WindowRect {
    let place = element.get_bounding_client_rect();
    WindowRect { left: place.left(), top: place.top(), width: place.width(), height: place.height() }
}

/// The positions of two fingers in the window, if there are exactly two.
pub fn two_fingers(event: &Event) -> Option<(WindowPoint, WindowPoint)> {
    let touches = event.unchecked_ref::<TouchEvent>().touches();
    let finger = |number| touches.get(number).map(|touch| (f64::from(touch.client_x()), f64::from(touch.client_y())));
    if touches.length() == 2 { finger(0).zip(finger(1)) } else { None }
}
