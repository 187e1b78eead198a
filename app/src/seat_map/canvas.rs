//! A canvas that shows the seats of a room as dots: glue between [`Dots`](super::dots) and the browser.

use domain::api::SEAT_PITCH;
use domain::wire::Dot;
use wasm_bindgen::JsCast;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use super::dots::{CATEGORY_COLOURS, COLOURS, Paint};
use crate::browser;

/// Part of the distance between two seats that a dot covers.
const DOT: f64 = 0.78;
/// A sharper screen than this is not painted for: nobody sees it, and pixels cost.
const SHARPEST: f64 = 2.0;

/// A canvas, ready to paint on.
pub struct Canvas {
    context: CanvasRenderingContext2d,
    colours: Vec<String>,
    /// The corner of the plan that is shown, plan units.
    corner: (i32, i32),
    /// Pixels of the canvas in a plan unit.
    scale: f64,
}

impl Canvas {
    /// Takes a canvas as wide as it is laid out, for the part of the plan at `corner`, so many units wide and
    /// high. It is empty then. `None` while it is not laid out.
    pub fn new(element: &HtmlCanvasElement, corner: (i32, i32), size: (i32, i32)) -> Option<Self> {
        let sharpness = browser::pixel_ratio().min(SHARPEST);
        let pixels = (f64::from(element.client_width()) * sharpness).round();
        let scale = pixels / f64::from(size.0.max(1));
        if pixels < 1.0 {
            return None;
        }
        // Setting them empties the canvas.
        element.set_width(pixels as u32);
        element.set_height((f64::from(size.1) * scale).round() as u32);
        let context = element.get_context("2d").ok()??.dyn_into().ok()?;
        Some(Self { context, colours: colours(element), corner, scale })
    }

    /// Paints dots that are sorted by colour.
    pub fn paint(&self, dots: &[(Paint, Dot)]) {
        let side = (f64::from(SEAT_PITCH) * self.scale * DOT).round().max(1.0);
        let place = |at: i32, corner: i32| (f64::from(at - corner) * self.scale - side / 2.0).round();
        let mut chosen = None;
        for (paint, dot) in dots {
            if chosen != Some(*paint) {
                chosen = Some(*paint);
                self.context.set_fill_style_str(&self.colours[usize::from(*paint)]);
            }
            self.context.fill_rect(place(dot.x, self.corner.0), place(dot.y, self.corner.1), side, side);
        }
    }
}

/// The colours in force, in the order of the paints in [`super::dots`].
fn colours(element: &HtmlCanvasElement) -> Vec<String> {
    let mut names: Vec<String> =
        ["--dot-gone", "--seat-locked", "--seat-mine", "--dot-faint"].map(str::to_owned).into();
    names.extend((0..CATEGORY_COLOURS).map(|category| format!("--cat-{category}")));
    debug_assert_eq!(names.len(), COLOURS);
    names.iter().map(|name| browser::style_of(element, name)).collect()
}
