//! A canvas that shows seats as dots: connects [`Dots`](super::dots), their [picture](super::raster) and the browser.
//!
//! It is painted on the page's own thread: the minimap, and a large room whose canvas cannot be handed to a worker
//! (`offscreen`).

use domain::wire::Dot;
use wasm_bindgen::{Clamped, JsCast};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement, ImageData};

use super::dots::{CATEGORY_COLOURS, COLOURS, Paint, PaintTarget};
use super::raster::{Colour, Measures, Raster, colour_of};
use crate::browser;

/// Highest pixel ratio. More is not visible and costs memory.
const MAX_PIXEL_RATIO: f64 = 2.0;
/// Most pixels of a canvas, four bytes each. A larger one is less sharp.
const MAX_PIXELS: f64 = 4_000_000.0;

#[derive(PartialEq)]
pub struct CanvasSettings {
    pub measures: Measures,
    /// The current colours, in the order of the paints in [`super::dots`].
    pub colours: Vec<Colour>,
}

impl CanvasSettings {
    /// The properties for an element as laid out now and a plan of this size; `None` while it is not laid out. Any
    /// context can resolve the style's colours.
    pub fn of(element: &HtmlCanvasElement, size: (i32, i32), context: &CanvasRenderingContext2d) -> Option<Self> {
        let measures = Measures::new(pixels_across(element, size)?, size);
        Some(Self { measures, colours: colours(element, context) })
    }
}

pub fn context_of(element: &HtmlCanvasElement) -> Option<CanvasRenderingContext2d> {
    element.get_context("2d").ok()??.dyn_into().ok()
}

pub struct Canvas {
    element: HtmlCanvasElement,
    context: CanvasRenderingContext2d,
    looks: CanvasSettings,
    raster: Raster,
}

impl Canvas {
    /// Creates an empty canvas at its current layout size, for the part of the plan at `corner` with this size, plan
    /// units. `None` while it is not laid out.
    pub fn new(element: &HtmlCanvasElement, corner: (i32, i32), size: (i32, i32)) -> Option<Self> {
        let context = context_of(element)?;
        let looks = CanvasSettings::of(element, size, &context)?;
        // Setting the size empties the canvas.
        element.set_width(u32::try_from(looks.measures.width).ok()?);
        element.set_height(u32::try_from(looks.measures.height).ok()?);
        let raster = Raster::new(looks.measures, corner);
        Some(Self { element: element.clone(), context, looks, raster })
    }

    /// Returns true if the canvas belongs to that element and matches its current size and the current colours. After a
    /// change of theme or orientation all must be painted again.
    pub fn fits(&self, element: &HtmlCanvasElement, size: (i32, i32)) -> bool {
        self.element == *element && CanvasSettings::of(element, size, &self.context).as_ref() == Some(&self.looks)
    }

    pub fn paint(&mut self, dots: &[(Paint, Dot)]) {
        for (paint, dot) in dots {
            if let Some(colour) = self.looks.colours.get(usize::from(*paint)) {
                self.raster.paint(*dot, *colour);
            }
        }
        let changed = self.raster.take_changed();
        if changed.is_empty() {
            return;
        }
        let Ok(width) = u32::try_from(self.looks.measures.width) else { return };
        // A view of our memory, not a copy. Fails only for lengths that do not match the width.
        let Ok(picture) = ImageData::new_with_u8_clamped_array(Clamped(self.raster.pixels()), width) else { return };
        for area in changed {
            let [left, top, width, height] = [area.left, area.top, area.width, area.height].map(|px| px as f64);
            // Fails only for pictures whose memory is gone.
            let _ = self.context.put_image_data_with_dirty_x_and_dirty_y_and_dirty_width_and_dirty_height(
                &picture, 0.0, 0.0, left, top, width, height,
            );
        }
    }
}

impl PaintTarget for Canvas {
    fn is_ready(&self) -> bool {
        true
    }

    fn is_current(&self, size: (i32, i32)) -> bool {
        self.element.is_connected() && self.fits(&self.element, size)
    }

    /// A new canvas costs as little.
    fn renew(&mut self, _size: (i32, i32)) -> bool {
        false
    }

    fn paint(&mut self, dots: &[(Paint, Dot)]) {
        self.paint(dots);
    }
}

/// Width of a canvas in pixels for a plan of this size; `None` while it is not laid out.
fn pixels_across(element: &HtmlCanvasElement, (across, down): (i32, i32)) -> Option<usize> {
    let width = f64::from(element.client_width());
    let height = width * f64::from(down) / f64::from(across.max(1));
    let most = (MAX_PIXELS / (width * height).max(1.0)).sqrt();
    let pixels = (width * browser::pixel_ratio().min(MAX_PIXEL_RATIO).min(most)).round();
    (pixels >= 1.0).then_some(pixels as usize)
}

/// The current colours, resolved by the context to plain values.
fn colours(element: &HtmlCanvasElement, context: &CanvasRenderingContext2d) -> Vec<Colour> {
    let mut names: Vec<String> =
        ["--dot-gone", "--seat-locked", "--seat-mine", "--dot-faint"].map(str::to_owned).into();
    names.extend((0..CATEGORY_COLOURS).map(|category| format!("--cat-{category}")));
    debug_assert_eq!(names.len(), COLOURS);
    let read = |name: &String| {
        context.set_fill_style_str(&browser::style_of(element, name));
        context.fill_style().as_string().and_then(|said| colour_of(&said)).unwrap_or_default()
    };
    names.iter().map(read).collect()
}
