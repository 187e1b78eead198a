//! The whole room in small, while one looks closer: where one is, and a way to be elsewhere.

use std::rc::Rc;

use domain::seats::SeatIndex;
use domain::wire::Dot;
use leptos::ev::PointerEvent;
use leptos::html::{self, Div};
use leptos::prelude::*;

use super::canvas::Canvas;
use super::dots::Dots;
use super::drawing::{Frame, Rows};
use super::plane::{Plane, Shown};
use super::session::Session;
use super::zoom;

/// A map of these rows in small. A bundle of handles: copy it.
#[derive(Clone, Copy)]
pub struct Minimap {
    session: Session,
    frame: Frame,
    /// The first seat; dots are counted from there.
    first: SeatIndex,
    dots: StoredValue<Dots>,
    canvas: StoredValue<Option<Canvas>, LocalStorage>,
    element: NodeRef<html::Canvas>,
    asked: StoredValue<bool>,
}

impl Minimap {
    /// Of these rows.
    pub fn new(session: Session, rows: &Rows<'_>, frame: Frame) -> Self {
        let seats = rows.iter().flat_map(|(_, row)| row.x.iter().zip(&row.y).zip(&row.category));
        let dots = seats.map(|((x, y), category)| Dot { x: *x, y: *y, category: *category }).collect();
        Self {
            session,
            frame,
            first: rows.first().map_or(0, |(_, row)| row.first),
            dots: StoredValue::new(Dots::new(dots)),
            canvas: StoredValue::new_local(None),
            element: NodeRef::new(),
            asked: StoredValue::new(false),
        }
    }

    /// A seat looks different now.
    pub fn note(self, seat: SeatIndex) {
        self.dots.update_value(|dots| dots.note(seat.wrapping_sub(self.first)));
        self.paint_soon();
    }

    /// Paints in the next frame, once for all that happens until then; not while there is nothing to see.
    fn paint_soon(self) {
        if self.canvas.with_value(Option::is_some) && !self.asked.get_value() {
            self.asked.set_value(true);
            request_animation_frame(move || self.paint());
        }
    }

    fn paint(self) {
        // The map may be gone by now.
        if self.asked.try_set_value(false).is_some() {
            return;
        }
        let look = |seat: SeatIndex| self.session.look_now(seat + self.first);
        let due = self.dots.try_update_value(|dots| dots.take_paints(look)).unwrap_or_default();
        self.canvas.update_value(|canvas| canvas.iter_mut().for_each(|canvas| canvas.paint(&due)));
    }

    /// Takes the canvas when it comes to be seen.
    fn come_up(self) {
        if self.asked.try_get_value().is_none() {
            return;
        }
        let Some(element) = self.element.get_untracked() else { return };
        let (corner, size) = ((self.frame.left, self.frame.top), (self.frame.width, self.frame.height));
        if self.canvas.with_value(|canvas| canvas.as_ref().is_some_and(|canvas| canvas.fits(&element, size))) {
            return;
        }
        self.canvas.set_value(Canvas::new(&element, corner, size));
        self.dots.update_value(Dots::forget_painted);
        self.paint_soon();
    }

    /// The map in small; hidden while all of the room is in view.
    pub fn view(self, shown: Shown, plane: StoredValue<Option<Rc<Plane>>, LocalStorage>) -> impl IntoView {
        let is_needed = Memo::new(move |_| shown.part.get().is_some());
        Effect::new(move |_| {
            self.session.appearance.track();
            if is_needed.get() {
                // Hidden elements have no size; it is shown by the next frame.
                request_animation_frame(move || self.come_up());
            }
        });
        let window = NodeRef::<Div>::new();
        Effect::new(move |_| {
            let (Some(window), Some(part)) = (window.get(), shown.part.get()) else { return };
            for (name, share) in ["left", "top", "width", "height"].into_iter().zip(part) {
                // Fails only for properties that do not exist.
                let _ = web_sys::HtmlElement::style(&window).set_property(name, &format!("{}%", zoom::decimal(share)));
            }
        });
        let pressed = StoredValue::new(false);
        let go = move |event: &PointerEvent| {
            let Some(canvas) = self.element.get_untracked() else { return };
            let place = canvas.get_bounding_client_rect();
            let share = |at: i32, from: f64, length: f64| 100.0 * (f64::from(at) - from) / length.max(1.0);
            let at = (
                share(event.client_x(), place.left(), place.width()),
                share(event.client_y(), place.top(), place.height()),
            );
            plane.with_value(|plane| plane.iter().for_each(|plane| plane.show(at)));
        };
        view! {
            // For eyes and pointers; keys move the map by moving the focus.
            <div class="minimap" data-testid="minimap" aria-hidden="true" hidden=move || !is_needed.get()
                style=("--plan-aspect", format!("{} / {}", self.frame.width, self.frame.height))
                on:pointerdown=move |event| {
                    event.prevent_default();
                    pressed.set_value(true);
                    go(&event);
                }
                on:pointermove=move |event| {
                    if event.buttons() == 0 {
                        pressed.set_value(false);
                    } else if pressed.get_value() {
                        go(&event);
                    }
                }>
                <canvas class="minimap-seats" node_ref=self.element></canvas>
                <div class="minimap-window" node_ref=window></div>
            </div>
        }
    }
}
