//! Shapes text into glyphs: the font of each character, the direction of each part, the width of the line.
//!
//! Nothing is left out. A character that no font has is drawn as what it is compatible with (`Ⅳ` as `IV`), and without that
//! as a box with its code point.

use std::ops::Range;

use domain::hidden_characters::{is_bidi_control, is_bidi_override, is_joiner, is_zero_width};
use krilla::text::{Font, GlyphId, KrillaGlyph};
use rustybuzz::{Direction, UnicodeBuffer};
use unicode_bidi::{BidiInfo, Level};
use unicode_normalization::UnicodeNormalization as _;

use super::fonts::{Han, Typeface, Weight, typefaces};

/// The look of a text's letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FontChoice {
    pub weight: Weight,
    pub han: Han,
}

/// A part of a line in one font. Lengths are in parts of the font size.
pub(super) struct GlyphRun {
    pub font: Font,
    pub text: String,
    pub glyphs: Vec<KrillaGlyph>,
    /// Size of the glyphs, in parts of the font size.
    pub scale: f32,
    pub width: f32,
    /// The character that no font has, if the run is a box with its code point.
    pub without_font: Option<char>,
}

/// A line, shaped, its runs from left to right.
pub(super) struct ShapedLine {
    pub runs: Vec<GlyphRun>,
    /// Width at size 1.
    pub width: f32,
}

impl ShapedLine {
    /// True when a font has every letter.
    pub(super) fn is_complete(&self) -> bool {
        self.runs.iter().all(|run| run.without_font.is_none())
    }
}

/// Shapes a line of text. `level`: the direction of the whole text it is a line of; by default its own.
pub(super) fn line(text: &str, letters: FontChoice, level: Option<Level>) -> ShapedLine {
    let typefaces = typefaces(letters.weight, letters.han);
    let text = drawable(text, &typefaces);
    let runs: Vec<GlyphRun> = pieces(text.trim(), &typefaces, level)
        .into_iter()
        .map(|piece| match piece.place {
            Some(place) => shape(typefaces[place], piece.text, piece.is_rtl),
            None => code_point_box(piece.text.chars().next().unwrap_or_default(), typefaces[0]),
        })
        .collect();
    ShapedLine { width: runs.iter().map(|run| run.width).sum(), runs }
}

/// The direction of a text: that of its first letter that has one.
pub(super) fn level_of(text: &str) -> Option<Level> {
    let text: String = text.chars().filter(|letter| !is_bidi_override(*letter)).collect();
    BidiInfo::new(&text, None).paragraphs.first().map(|paragraph| paragraph.level)
}

/// The text without invisible characters, and with compatible characters in place of those that no font has.
fn drawable(text: &str, typefaces: &[&Typeface]) -> String {
    let mut drawable = String::with_capacity(text.len());
    // Direction overrides are dropped.
    for letter in text.chars().filter(|letter| !is_bidi_override(*letter)) {
        if letter.is_control() {
            drawable.push(' ');
        } else if is_known(typefaces, letter) {
            drawable.push(letter);
        } else if !is_invisible(letter) {
            let compatible = std::iter::once(letter).nfkd();
            match compatible.clone().all(|part| is_known(typefaces, part)) {
                true => drawable.extend(compatible),
                false => drawable.push(letter),
            }
        }
    }
    drawable
}

/// True for characters that are invisible by definition (Unicode's Default_Ignorable_Code_Point): joiners, variation
/// selectors, tags, fillers.
const fn is_invisible(letter: char) -> bool {
    is_bidi_control(letter)
        || is_joiner(letter)
        || is_zero_width(letter)
        || matches!(letter, '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{FFA0}' | '\u{E0000}'..='\u{E0FFF}')
}

fn is_known(typefaces: &[&Typeface], letter: char) -> bool {
    typefaces.iter().any(|typeface| typeface.has(letter))
}

/// A part of a line that has one font and one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    /// Index of the font in the list of typefaces; `None` for a character that no font has.
    place: Option<usize>,
    text: String,
    is_rtl: bool,
}

/// The parts of a line from left to right.
fn pieces(text: &str, typefaces: &[&Typeface], level: Option<Level>) -> Vec<Piece> {
    let bidi = BidiInfo::new(text, level);
    let Some(paragraph) = bidi.paragraphs.first() else { return Vec::new() };
    let (levels, ranges) = bidi.visual_runs(paragraph, paragraph.range.clone());
    let mut all = Vec::new();
    for range in ranges {
        let is_rtl = levels[range.start].is_rtl();
        let mut parts = by_font(&text[range], typefaces);
        if is_rtl {
            parts.reverse();
        }
        all.extend(parts.into_iter().map(|(place, text)| Piece { place, text, is_rtl }));
    }
    all
}

/// Splits a text into parts of one font, in the order of the text. A character that the font of the part before has joins
/// it, so spaces, digits and marks split nothing.
fn by_font(text: &str, typefaces: &[&Typeface]) -> Vec<(Option<usize>, String)> {
    let mut parts: Vec<(Option<usize>, String)> = Vec::new();
    for letter in text.chars() {
        match parts.last_mut() {
            Some((Some(place), part)) if typefaces[*place].has(letter) => part.push(letter),
            _ => {
                let place = typefaces.iter().position(|typeface| typeface.has(letter));
                parts.push((place, letter.to_string()));
            }
        }
    }
    parts
}

fn shape(typeface: &Typeface, text: String, is_rtl: bool) -> GlyphRun {
    let mut buffer = UnicodeBuffer::new();
    buffer.push_str(&text);
    buffer.guess_segment_properties();
    let direction = if is_rtl { Direction::RightToLeft } else { Direction::LeftToRight };
    buffer.set_direction(direction);
    let plan = typeface.plan(buffer.script(), direction);
    let shaped = rustybuzz::shape_with_plan(typeface.face(), &plan, buffer);
    let units = typeface.face().units_per_em() as f32;
    let mut starts: Vec<usize> = shaped.glyph_infos().iter().map(|info| info.cluster as usize).collect();
    starts.sort_unstable();
    starts.dedup();
    // The text of a glyph, so that the file can be searched and read aloud.
    let letters = |start: usize| -> Range<usize> {
        let next = starts.iter().copied().find(|other| *other > start);
        start..next.unwrap_or(text.len())
    };
    let glyphs: Vec<KrillaGlyph> = shaped
        .glyph_infos()
        .iter()
        .zip(shaped.glyph_positions())
        .map(|(info, at)| {
            let of_em = |number: i32| number as f32 / units;
            KrillaGlyph::new(
                GlyphId::new(info.glyph_id),
                of_em(at.x_advance),
                of_em(at.x_offset),
                of_em(at.y_offset),
                of_em(at.y_advance),
                letters(info.cluster as usize),
                None,
            )
        })
        .collect();
    let width = shaped.glyph_positions().iter().map(|at| at.x_advance as f32 / units).sum();
    GlyphRun { font: typeface.font(), text, glyphs, scale: 1.0, width, without_font: None }
}

/// The box drawn for a character that no font has shows the code point in two rows of hexadecimal digits. All its lengths
/// are in parts of the font size. This is the size of the digits.
const DIGIT_SCALE: f32 = 0.38;
/// Distance between the frame of the box and the digits.
const BOX_PADDING: f32 = 0.07;
/// Distance between the frame of the box and the characters beside it.
pub(super) const BOX_MARGIN: f32 = 0.05;
/// Base lines of the two rows of digits.
const DIGIT_BASE_LINES: [f32; 2] = [0.41, 0.05];
/// Lower and upper edge of the box, from the base line.
pub(super) const BOX_EDGES: (f32, f32) = (-0.04, 0.77);

/// The box of a character that no font has: its code point in hexadecimal digits, in two rows.
fn code_point_box(letter: char, typeface: &Typeface) -> GlyphRun {
    let code = u32::from(letter);
    let text = if code > 0xFFFF { format!("{code:06X}") } else { format!("{code:04X}") };
    let columns = text.len() / 2;
    let face = typeface.face();
    let units = f32::from(face.units_per_em() as u16);
    let advances = text.chars().map(|digit| {
        // Any Latin font has digits and capital letters.
        let glyph = face.glyph_index(digit).unwrap_or_default();
        (glyph, f32::from(face.glyph_hor_advance(glyph).unwrap_or_default()) / units)
    });
    let advances: Vec<_> = advances.collect();
    // Each digit gets the width of the widest.
    let room = advances.iter().fold(0.0_f32, |widest, (_, advance)| widest.max(*advance));
    let start = (BOX_MARGIN + BOX_PADDING) / DIGIT_SCALE;
    let glyphs = advances.iter().enumerate().map(|(number, (glyph, advance))| {
        let (row, back) = if number < columns { (0, 0.0) } else { (1, room * columns as f32) };
        let x = start - back + (room - advance) / 2.0;
        let y = DIGIT_BASE_LINES[row] / DIGIT_SCALE;
        KrillaGlyph::new(GlyphId::new(u32::from(glyph.0)), room, x, y, 0.0, number..number + 1, None)
    });
    let glyphs = glyphs.collect();
    let width = room * columns as f32 * DIGIT_SCALE + 2.0 * (BOX_MARGIN + BOX_PADDING);
    GlyphRun { font: typeface.font(), text, glyphs, scale: DIGIT_SCALE, width, without_font: Some(letter) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGULAR: FontChoice = FontChoice { weight: Weight::Regular, han: Han::Chinese };
    const BOLD: FontChoice = FontChoice { weight: Weight::Bold, han: Han::Chinese };

    fn drawn(text: &str) -> Vec<Piece> {
        pieces(text, &typefaces(Weight::Regular, Han::Chinese), None)
    }

    fn shaped(text: &str, letters: FontChoice) -> ShapedLine {
        line(text, letters, None)
    }

    fn texts(line: &ShapedLine) -> String {
        line.runs.iter().map(|run| run.text.as_str()).collect()
    }

    #[test]
    fn names_of_many_scripts_have_all_their_letters() {
        for name in [
            "Anna Ölçer",
            "Ngô Thị Hương",
            "Ωμέγα",
            "Жанна Ґалаґан",
            "ليلى الشامي",
            "प्रियंका क्षत्रिय",
            "דנה לוי",
            "山田太郎 🎬",
            "김민지",
            "สมชาย",
            "সত্যজিৎ",
            "மணிரத்னம்",
        ] {
            let line = shaped(name, BOLD);
            assert!(line.is_complete() && line.width > 1.0, "{name}");
            assert!(line.runs.iter().flat_map(|run| &run.glyphs).all(|glyph| glyph.glyph_id.to_u32() != 0), "{name}");
        }
    }

    #[test]
    fn characters_without_a_font_are_drawn_as_what_they_are_compatible_with_or_as_their_code_point() {
        let compatible = shaped("Ⅳ 𝐀", REGULAR);
        assert_eq!((texts(&compatible).as_str(), compatible.is_complete()), ("IV A", true));
        let boxed = shaped("A\u{E000}B\u{10FFFD}", REGULAR);
        assert_eq!((texts(&boxed).as_str(), boxed.is_complete()), ("AE000B10FFFD", false));
        let widths: Vec<f32> = boxed.runs.iter().map(|run| run.width).collect();
        assert!(widths.iter().all(|width| (0.5..1.2).contains(width)), "{widths:?}");
        // Invisible characters leave no box.
        let unseen = shaped("A\u{FE0F}\u{2060}\u{202E}B\u{E0100}", REGULAR);
        assert!(unseen.is_complete());
        assert!((unseen.width - shaped("AB", REGULAR).width).abs() < 0.1);
    }

    #[test]
    fn han_beside_kana_has_another_font() {
        let japanese = FontChoice { weight: Weight::Regular, han: Han::Japanese };
        let fonts = [REGULAR, japanese].map(|letters| shaped("直", letters).runs.remove(0).font);
        assert!(fonts[0] != fonts[1]);
        // Simplified characters that Japanese has not come from the Chinese font.
        assert!(shaped("汉の", japanese).is_complete());
    }

    #[test]
    fn an_arabic_name_is_one_run_from_right_to_left_and_its_letters_join() {
        let name = "ليلى";
        assert_eq!(drawn(name), [Piece { place: Some(1), text: name.to_owned(), is_rtl: true }]);
        let joined = shaped(name, REGULAR).width;
        let apart: f32 = name.chars().map(|letter| shaped(&letter.to_string(), REGULAR).width).sum();
        assert!(joined < apart, "joined letters are narrower: {joined} and {apart}");
    }

    #[test]
    fn a_mixed_line_is_in_the_order_one_sees() {
        let texts: Vec<String> = drawn("Anna ליאת דן").into_iter().map(|piece| piece.text).collect();
        assert_eq!(texts.first().map(|first| first.trim_end()), Some("Anna"), "{texts:?}");
        assert_eq!(texts.last().map(String::as_str), Some("ליאת דן"), "{texts:?}");
    }
}
