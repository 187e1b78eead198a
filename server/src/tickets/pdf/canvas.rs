//! A page to draw on: rectangles, lines of text that fit, QR codes. Points from the top left corner.

use krilla::color::rgb;
use krilla::geom::{Path, PathBuilder, Point, Rect};
use krilla::num::NormalizedF32;
use krilla::paint::Fill;
use krilla::surface::Surface;

use super::text::{Line, Weight, line};
use crate::tickets::qr::Drawing;

/// Text is made smaller down to this to fit, points; then it is cut.
const SMALLEST: f32 = 7.0;

/// A colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colour(pub u8, pub u8, pub u8);

/// Black, as on paper.
pub(super) const INK: Colour = Colour(0x1d, 0x18, 0x14);
/// For labels.
pub(super) const QUIET: Colour = Colour(0x6a, 0x60, 0x57);
/// For frames.
pub(super) const FRAME: Colour = Colour(0xcf, 0xc6, 0xba);
/// On a dark ground.
pub(super) const WHITE: Colour = Colour(0xff, 0xff, 0xff);

/// A colour by hue in degrees, saturation and lightness from 0 to 1 (CSS Color 4, section 7.1).
pub(super) fn hsl(hue: u16, saturation: f32, lightness: f32) -> Colour {
    let part = |offset: f32| {
        let k = (offset + f32::from(hue % 360) / 30.0) % 12.0;
        let reach = saturation * lightness.min(1.0 - lightness);
        let value = lightness - reach * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    };
    Colour(part(0.0), part(8.0), part(4.0))
}

/// Where a line stands, and how.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub size: f32,
    pub weight: Weight,
    pub colour: Colour,
}

/// A page.
pub(super) struct Canvas<'a>(Surface<'a>);

impl<'a> Canvas<'a> {
    pub(super) fn new(surface: Surface<'a>) -> Self {
        Self(surface)
    }

    pub(super) fn finish(self) {
        self.0.finish();
    }

    /// A filled rectangle.
    pub(super) fn rectangle(&mut self, (x, y): (f32, f32), (width, height): (f32, f32), colour: Colour) {
        let mut path = PathBuilder::new();
        if let Some(rect) = Rect::from_xywh(x, y, width, height) {
            path.push_rect(rect);
        }
        self.fill(path.finish(), colour);
    }

    /// The border of a rectangle, drawn inside it.
    pub(super) fn frame(&mut self, (x, y): (f32, f32), (width, height): (f32, f32), thick: f32, colour: Colour) {
        self.rectangle((x, y), (width, thick), colour);
        self.rectangle((x, y + height - thick), (width, thick), colour);
        self.rectangle((x, y), (thick, height), colour);
        self.rectangle((x + width - thick, y), (thick, height), colour);
    }

    /// A line of text on its base line, at most `room` wide. Whether all of its letters are drawn.
    pub(super) fn text(&mut self, at: (f32, f32), text: &str, style: Style, room: f32) -> bool {
        let (shaped, size, is_complete) = fitted(text, style, room);
        let mut x = at.0;
        for run in &shaped.runs {
            self.0.set_fill(Some(fill_of(style.colour)));
            self.0.draw_glyphs(Point::from_xy(x, at.1), &run.glyphs, run.font.clone(), &run.text, size, false);
            x += run.width * size;
        }
        is_complete
    }

    /// A QR code, `side` wide and high.
    pub(super) fn qr(&mut self, (x, y): (f32, f32), side: f32, code: &Drawing) {
        self.rectangle((x, y), (side, side), WHITE);
        let module = side / code.side as f32;
        let mut path = PathBuilder::new();
        for (column, row, length) in &code.bars {
            let (left, top) = (x + *column as f32 * module, y + *row as f32 * module);
            if let Some(bar) = Rect::from_xywh(left, top, *length as f32 * module, module) {
                path.push_rect(bar);
            }
        }
        self.fill(path.finish(), Colour(0, 0, 0));
    }

    fn fill(&mut self, path: Option<Path>, colour: Colour) {
        if let Some(path) = path {
            self.0.set_fill(Some(fill_of(colour)));
            self.0.draw_path(&path);
        }
    }
}

fn fill_of(Colour(red, green, blue): Colour) -> Fill {
    Fill { paint: rgb::Color::new(red, green, blue).into(), opacity: NormalizedF32::ONE, rule: Default::default() }
}

/// The line and its size so that it fits: smaller, and cut where even that is too wide.
fn fitted(text: &str, style: Style, room: f32) -> (Line, f32, bool) {
    let whole = line(text, style.weight);
    let is_complete = whole.is_complete;
    let size = style.size.min(room / whole.width.max(f32::EPSILON)).max(SMALLEST.min(style.size));
    if whole.width * size <= room + 0.01 {
        return (whole, size, is_complete);
    }
    let letters: Vec<char> = text.chars().collect();
    // Half as many letters each time would be quicker; names and titles have a hundred or two.
    for kept in (0..letters.len()).rev() {
        let shorter: String = letters[..kept].iter().collect();
        let cut = line(&format!("{}…", shorter.trim_end()), style.weight);
        if cut.width * size <= room {
            return (cut, size, false);
        }
    }
    (line("", style.weight), size, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hues_are_those_of_the_posters() {
        assert_eq!(hsl(0, 1.0, 0.5), Colour(255, 0, 0));
        assert_eq!(hsl(120, 1.0, 0.25), Colour(0, 128, 0));
        assert_eq!(hsl(240, 0.5, 0.5), Colour(64, 64, 191));
    }

    #[test]
    fn what_is_too_long_gets_smaller_and_then_is_cut() {
        let style = Style { size: 20.0, weight: Weight::Bold, colour: INK };
        let (short, size, is_complete) = fitted("Ana", style, 200.0);
        assert!((size - 20.0).abs() < f32::EPSILON && short.width * size < 200.0 && is_complete);
        let (_, size, _) = fitted("A title of some length that does not fit", style, 200.0);
        assert!((SMALLEST..20.0).contains(&size), "{size}");
        let (cut, size, is_complete) = fitted(&"W".repeat(200), style, 200.0);
        assert!(cut.width * size <= 200.0 && cut.width > 0.0 && !is_complete);
        assert!(cut.runs.last().is_some_and(|run| run.text.ends_with('…')));
    }
}
