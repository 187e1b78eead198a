//! A page to draw on: rectangles, lines of text that fit, QR codes. Points from the top left corner.

use krilla::color::rgb;
use krilla::geom::{Path, PathBuilder, Point, Rect, Transform};
use krilla::num::NormalizedF32;
use krilla::paint::Fill;
use krilla::surface::Surface;

use super::fonts::{Han, Weight};
use super::text::{BOX_EDGES, BOX_MARGIN, FontChoice, ShapedLine};
use super::wrap::{self, LEADING, TextBox};
use crate::qr::Drawing;
use platform::telemetry;

/// Distance from the top of a line to its base line, in parts of the font size.
const ASCENT: f32 = 0.85;
/// Line width of the box drawn for a character that no font has, in parts of the font size.
const BOX_LINE_WIDTH: f32 = 0.03;

/// A colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colour(pub u8, pub u8, pub u8);

/// Black, as on paper.
pub(super) const INK: Colour = Colour(0x1d, 0x18, 0x14);
/// The colour of labels.
pub(super) const QUIET: Colour = Colour(0x6a, 0x60, 0x57);
/// The colour of frames.
pub(super) const FRAME: Colour = Colour(0xcf, 0xc6, 0xba);
/// The colour of text on a dark ground.
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

/// Position and style of a line.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub size: f32,
    pub weight: Weight,
    pub colour: Colour,
}

pub(super) struct Canvas<'a> {
    surface: Surface<'a>,
    han: Han,
}

impl<'a> Canvas<'a> {
    pub(super) const fn new(surface: Surface<'a>, han: Han) -> Self {
        Self { surface, han }
    }

    pub(super) fn finish(self) {
        self.surface.finish();
    }

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

    /// Draws a text on its base line, in several lines where it does not fit in one. Returns true when a font draws each of
    /// its letters.
    pub(super) fn text(&mut self, at: (f32, f32), text: &str, style: Style, room: TextBox) -> bool {
        let fitted = wrap::fit(text, FontChoice { weight: style.weight, han: self.han }, style.size, room);
        let first = match fitted.lines.len() {
            1 => at.1,
            _ => at.1 - room.rise + fitted.size * ASCENT,
        };
        for (number, line) in (0_u16..).zip(&fitted.lines) {
            let base = first + f32::from(number) * fitted.size * LEADING;
            self.line((at.0, base), line, fitted.size, style.colour);
        }
        fitted.is_complete
    }

    /// Draws a line of text whose right end is at `at`.
    pub(super) fn text_up_to(&mut self, at: (f32, f32), text: &str, style: Style, width: f32) {
        let letters = FontChoice { weight: style.weight, han: self.han };
        let fitted = wrap::fit(text, letters, style.size, TextBox::line(width));
        for line in &fitted.lines {
            self.line((at.0 - line.width * fitted.size, at.1), line, fitted.size, style.colour);
        }
    }

    fn line(&mut self, (mut x, base): (f32, f32), line: &ShapedLine, size: f32, colour: Colour) {
        for run in &line.runs {
            self.surface.set_fill(Some(fill_of(colour)));
            let glyphs = &run.glyphs;
            let at = Point::from_xy(x, base);
            self.surface.draw_glyphs(at, glyphs, run.font.clone(), &run.text, run.scale * size, false);
            if let Some(letter) = run.without_font {
                let (lower, upper) = BOX_EDGES;
                let corner = (x + BOX_MARGIN * size, base - upper * size);
                let sides = ((run.width - 2.0 * BOX_MARGIN) * size, (upper - lower) * size);
                self.frame(corner, sides, BOX_LINE_WIDTH * size, colour);
                telemetry::character_without_font(letter);
            }
            x += run.width * size;
        }
    }

    /// A QR code, `side` wide and high.
    pub(super) fn qr(&mut self, (x, y): (f32, f32), side: f32, code: &Drawing) {
        self.rectangle((x, y), (side, side), WHITE);
        let module = side / code.side as f32;
        let mut path = PathBuilder::new();
        for (column, row, length) in &code.bars {
            if let Some(bar) = Rect::from_xywh(*column as f32, *row as f32, *length as f32, 1.0) {
                path.push_rect(bar);
            }
        }
        // In modules instead of points: whole numbers are shorter to write and to compress.
        self.surface.push_transform(&Transform::from_row(module, 0.0, 0.0, module, x, y));
        self.fill(path.finish(), Colour(0, 0, 0));
        self.surface.pop();
    }

    fn fill(&mut self, path: Option<Path>, colour: Colour) {
        if let Some(path) = path {
            self.surface.set_fill(Some(fill_of(colour)));
            self.surface.draw_path(&path);
        }
    }
}

fn fill_of(Colour(red, green, blue): Colour) -> Fill {
    Fill { paint: rgb::Color::new(red, green, blue).into(), opacity: NormalizedF32::ONE, rule: Default::default() }
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
}
