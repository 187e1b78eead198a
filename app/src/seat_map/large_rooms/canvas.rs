//! A canvas that shows seats as dots: a picture in memory, and the parts of it that the canvas does not show yet.
//!
//! A dot is a few bytes in the picture, whereas on the canvas each would be a call and a drawing command. The canvas takes
//! the changes as a few rectangles. It is painted on the page's own thread: the minimap, and a large room whose canvas
//! cannot be handed to a worker (`offscreen`). The worker (`frontend/static/overview-worker.js`) paints the same to the
//! pixel.

use domain::api::SEAT_PITCH;
use domain::wire::Dot;
use wasm_bindgen::{Clamped, JsCast};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement, ImageData};

use super::dots::{COLOURS, Paint, PaintTarget};
use crate::browser;
use crate::seat_map::appearance::CATEGORY_COLOURS;

/// Red, green, blue and opacity, as canvases store them.
pub type Colour = [u8; 4];

/// Share of the distance between two seats that a dot covers.
const DOT: f64 = 0.78;
/// Changes are tracked in bands of this many rows of pixels. Smaller bands are more exact and cost more calls.
const BAND_PX: usize = 32;

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    pub left: usize,
    pub top: usize,
    pub width: usize,
    pub height: usize,
}

/// The size of a picture and of its dots, pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    pub width: usize,
    pub height: usize,
    /// Pixels per plan unit.
    pub scale: f64,
    /// Side of a dot.
    pub side: usize,
}

impl Measures {
    /// For a picture of this width in pixels that shows a plan of this size.
    pub fn new(width: usize, size: (i32, i32)) -> Self {
        let scale = width as f64 / f64::from(size.0.max(1));
        Self {
            width,
            height: (f64::from(size.1) * scale).round().max(1.0) as usize,
            scale,
            side: (f64::from(SEAT_PITCH) * scale * DOT).round().max(1.0) as usize,
        }
    }
}

/// A picture of a part of the plan.
pub struct Raster {
    measures: Measures,
    pixels: Vec<Colour>,
    /// The corner of the shown part, plan units.
    corner: (i32, i32),
    /// The changed columns of each band: from and up to.
    changed: Vec<Option<(usize, usize)>>,
}

impl Raster {
    /// An empty picture of the part of the plan at `corner`.
    pub fn new(measures: Measures, corner: (i32, i32)) -> Self {
        Self {
            measures,
            pixels: vec![Colour::default(); measures.width * measures.height],
            corner,
            changed: vec![None; measures.height.div_ceil(BAND_PX)],
        }
    }

    /// The picture, row by row from the top.
    pub fn pixels(&self) -> &[u8] {
        self.pixels.as_flattened()
    }

    /// Paints a dot over the previous one. Parts outside the picture are clipped.
    pub fn paint(&mut self, dot: Dot, colour: Colour) {
        let Measures { width, height, scale, side } = self.measures;
        let half = side as f64 / 2.0;
        // Rounds as the worker does: Rust's `round` and JavaScript's differ for a dot that starts half a pixel outside.
        let start = |at: i32, corner: i32| ((f64::from(at) - f64::from(corner)) * scale - half + 0.5).floor() as isize;
        let (left, top) = (start(dot.x, self.corner.0), start(dot.y, self.corner.1));
        let within = |at: isize, limit: usize| usize::try_from(at).unwrap_or(0).min(limit);
        let side = side as isize;
        let (left, right) = (within(left, width), within(left.saturating_add(side), width));
        let (top, bottom) = (within(top, height), within(top.saturating_add(side), height));
        for row in top..bottom {
            let start = row * width;
            self.pixels[start + left..start + right].fill(colour);
        }
        if left < right && top < bottom {
            for band in &mut self.changed[top / BAND_PX..=(bottom - 1) / BAND_PX] {
                let (from, to) = band.unwrap_or((left, right));
                *band = Some((from.min(left), to.max(right)));
            }
        }
    }

    /// Takes the areas changed since the last call. Neighbouring bands form one area.
    pub fn take_changed(&mut self) -> Vec<Area> {
        let mut areas = Vec::<Area>::new();
        for (number, band) in self.changed.iter_mut().enumerate() {
            let Some((left, right)) = band.take() else { continue };
            let top = number * BAND_PX;
            let height = BAND_PX.min(self.measures.height - top);
            match areas.last_mut().filter(|above| above.top + above.height == top) {
                Some(above) => {
                    let end = right.max(above.left + above.width);
                    above.left = above.left.min(left);
                    above.width = end - above.left;
                    above.height += height;
                }
                None => areas.push(Area { left, top, width: right - left, height }),
            }
        }
        areas
    }
}

/// Parses a colour in the two formats of a canvas: `#rrggbb`, and `rgba(r, g, b, a)` for transparent ones.
pub fn colour_of(css: &str) -> Option<Colour> {
    if let Some(digits) = css.strip_prefix('#') {
        let all = u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 6)?;
        let [_, red, green, blue] = all.to_be_bytes();
        return Some([red, green, blue, u8::MAX]);
    }
    let mut parts = css.strip_prefix("rgba(")?.strip_suffix(')')?.split(',').map(str::trim);
    let mut part = || parts.next()?.parse().ok();
    let (red, green, blue) = (part()?, part()?, part()?);
    // Below one, in decimals. A general number parser would add ten kilobytes of tables.
    let decimals = parts.next()?.strip_prefix("0.").unwrap_or("0");
    let share: u32 = decimals.get(..decimals.len().min(3))?.parse().ok()?;
    let of = 10_u32.pow(u32::try_from(decimals.len().min(3)).ok()?);
    Some([red, green, blue, u8::try_from((share * u32::from(u8::MAX) + of / 2) / of).ok()?])
}

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
        context.fill_style().as_string().and_then(|css| colour_of(&css)).unwrap_or_default()
    };
    names.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RED: Colour = [255, 0, 0, 255];
    const BLUE: Colour = [0, 0, 255, 255];

    fn dot(x: i32, y: i32) -> Dot {
        Dot { x, y, category: 0 }
    }

    /// The columns and rows of this colour.
    fn places(raster: &Raster, colour: Colour) -> Vec<(usize, usize)> {
        let (pixels, across) = (raster.pixels.iter().enumerate(), raster.measures.width);
        pixels.filter(|(_, pixel)| **pixel == colour).map(|(at, _)| (at % across, at / across)).collect()
    }

    #[test]
    fn a_dot_is_a_square_around_its_seat_and_replaces_the_old_dot() {
        // A tenth of a pixel per unit: a seat's pitch is two pixels, its dot two.
        let mut raster = Raster::new(Measures::new(10, (100, 100)), (0, 0));
        raster.paint(dot(50, 30), RED);
        assert_eq!(places(&raster, RED), [(4, 2), (5, 2), (4, 3), (5, 3)]);
        raster.paint(dot(50, 30), BLUE);
        assert_eq!((places(&raster, RED).len(), places(&raster, BLUE).len()), (0, 4));
    }

    #[test]
    fn a_dot_half_a_pixel_outside_is_aligned_to_the_edge() {
        let mut raster = Raster::new(Measures { width: 4, height: 4, scale: 0.5, side: 2 }, (0, 0));
        raster.paint(dot(1, 1), RED);
        assert_eq!(places(&raster, RED), [(0, 0), (1, 0), (0, 1), (1, 1)]);
    }

    #[test]
    fn dots_outside_the_shown_part_are_clipped() {
        let mut raster = Raster::new(Measures::new(10, (100, 100)), (1_000, 500));
        raster.paint(dot(1_000, 500), RED);
        assert_eq!(places(&raster, RED), [(0, 0)], "a quarter of it");
        raster.take_changed();
        [dot(0, 0), dot(1_050, 0), dot(9_999, 9_999), dot(i32::MIN / 2, 500)]
            .into_iter()
            .for_each(|far| raster.paint(far, BLUE));
        assert_eq!((places(&raster, BLUE), raster.take_changed()), (vec![], vec![]));
    }

    #[test]
    fn changes_are_taken_once_as_few_areas() {
        let mut raster = Raster::new(Measures::new(100, (100, 200)), (0, 0));
        assert_eq!(raster.measures, Measures { width: 100, height: 200, scale: 1.0, side: 16 });
        raster.paint(dot(50, 16), RED);
        let first = Area { left: 42, top: 0, width: 16, height: 32 };
        assert_eq!(raster.take_changed(), [first]);
        assert_eq!(raster.take_changed(), []);
        // Bands one and two, and the last one, which is shorter.
        raster.paint(dot(20, 64), RED);
        raster.paint(dot(90, 195), RED);
        let middle = Area { left: 12, top: 32, width: 16, height: 64 };
        assert_eq!(raster.take_changed(), [middle, Area { left: 82, top: 160, width: 16, height: 40 }]);
    }

    #[test]
    fn colours_are_parsed_in_the_formats_of_a_canvas() {
        assert_eq!(colour_of("#8ab8e8"), Some([0x8a, 0xb8, 0xe8, 255]));
        assert_eq!(colour_of("rgba(1, 20, 255, 0.5)"), Some([1, 20, 255, 128]));
        assert_eq!(colour_of("rgba(0, 0, 0, 0.0784)"), Some([0, 0, 0, 20]));
        assert_eq!(colour_of("rgba(0, 0, 0, 0)"), Some([0, 0, 0, 0]));
        for other in ["", "#12", "#12345678", "red", "rgba(1, 2, 3)", "rgba(1, 2, 300, 1)", "color(srgb 1 0 0)"] {
            assert_eq!(colour_of(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn pixels_outside_the_taken_areas_are_unchanged(
            before in proptest::collection::vec((-50..250_i32, -50..350_i32), 0..20),
            after in proptest::collection::vec((-50..250_i32, -50..350_i32), 0..20),
        ) {
            let mut raster = Raster::new(Measures::new(57, (200, 300)), (0, 0));
            before.iter().for_each(|(x, y)| raster.paint(dot(*x, *y), RED));
            raster.take_changed();
            let old = raster.pixels.clone();
            after.iter().for_each(|(x, y)| raster.paint(dot(*x, *y), BLUE));
            let areas = raster.take_changed();
            for (at, (one, other)) in old.iter().zip(&raster.pixels).enumerate() {
                let (column, row) = (at % raster.measures.width, at / raster.measures.width);
                let is_reported = areas.iter().any(|area| {
                    (area.left..area.left + area.width).contains(&column)
                        && (area.top..area.top + area.height).contains(&row)
                });
                prop_assert!(one == other || is_reported, "{column}, {row}");
            }
        }
    }
}
