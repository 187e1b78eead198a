//! From words to glyphs: which font has which letter, which way each part runs, and how wide it all is.

use std::ops::Range;
use std::sync::LazyLock;

use domain::hidden_characters::is_bidi_override;
use krilla::text::{Font, GlyphId, KrillaGlyph};
use rustybuzz::{Direction, Face, UnicodeBuffer};
use unicode_bidi::BidiInfo;

/// A font of ours, read twice: for shaping and for the file.
struct Typeface {
    face: Face<'static>,
    font: Font,
}

macro_rules! typeface {
    ($name:literal) => {
        Typeface::of(include_bytes!(concat!("../fonts/", $name)))
    };
}

/// Bold Latin for what is large…
static BOLD: LazyLock<Vec<Typeface>> =
    LazyLock::new(|| std::iter::once(typeface!("NotoSans-Bold.ttf")).chain(other_scripts()).collect());
/// …and regular for the rest. The other scripts have one weight.
static REGULAR: LazyLock<Vec<Typeface>> =
    LazyLock::new(|| std::iter::once(typeface!("NotoSans-Regular.ttf")).chain(other_scripts()).collect());

fn other_scripts() -> [Typeface; 3] {
    [
        typeface!("NotoSansDevanagari-Regular.ttf"),
        typeface!("NotoSansArabic-Regular.ttf"),
        typeface!("NotoSansHebrew-Regular.ttf"),
    ]
}

impl Typeface {
    fn of(bytes: &'static [u8]) -> Self {
        // A file of this program's own: a broken one fails the first test that draws.
        let face = Face::from_slice(bytes, 0).expect("a font of ours can be read");
        let font = Font::new(bytes.to_vec().into(), 0).expect("a font of ours can be embedded");
        Self { face, font }
    }

    fn has(&self, letter: char) -> bool {
        self.face.glyph_index(letter).is_some()
    }
}

/// How heavy letters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Regular,
    Bold,
}

impl Weight {
    fn typefaces(self) -> &'static [Typeface] {
        match self {
            Self::Regular => &REGULAR,
            Self::Bold => &BOLD,
        }
    }
}

/// A part of a line in one font.
pub(super) struct Run {
    pub font: Font,
    pub text: String,
    pub glyphs: Vec<KrillaGlyph>,
    /// Width at size 1.
    pub width: f32,
}

/// A line, shaped, its runs from left to right.
pub(super) struct Line {
    pub runs: Vec<Run>,
    /// Width at size 1.
    pub width: f32,
    /// Whether every letter is there.
    pub is_complete: bool,
}

/// Shapes a line of text.
pub(super) fn line(text: &str, weight: Weight) -> Line {
    let typefaces = weight.typefaces();
    // Marks that turn the text behind them around are no letters: without them the text is complete.
    let text = text.chars().filter(|letter| !is_bidi_override(*letter));
    let clean: String = text.map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let known: String = clean.chars().filter(|letter| is_known(typefaces, *letter)).collect();
    let is_complete = known.chars().count() == clean.chars().count();
    let runs: Vec<Run> = pieces(known.trim(), typefaces)
        .into_iter()
        .map(|(place, text, is_rtl)| shape(&typefaces[place], text, is_rtl))
        .collect();
    Line { width: runs.iter().map(|run| run.width).sum(), runs, is_complete }
}

fn is_known(typefaces: &[Typeface], letter: char) -> bool {
    typefaces.iter().any(|typeface| typeface.has(letter))
}

/// The parts of a line that have one font and one direction, from left to right: place of the font, text, and
/// whether it runs from right to left.
fn pieces(text: &str, typefaces: &[Typeface]) -> Vec<(usize, String, bool)> {
    let bidi = BidiInfo::new(text, None);
    let Some(paragraph) = bidi.paragraphs.first() else { return Vec::new() };
    let (levels, ranges) = bidi.visual_runs(paragraph, paragraph.range.clone());
    let mut all = Vec::new();
    for range in ranges {
        let is_rtl = levels[range.start].is_rtl();
        let mut parts = by_font(&text[range], typefaces);
        if is_rtl {
            parts.reverse();
        }
        all.extend(parts.into_iter().map(|(place, part)| (place, part, is_rtl)));
    }
    all
}

/// Parts of one font, in the order of the text. A letter stays in the font before it if that has it: spaces,
/// digits and marks part nothing.
fn by_font(text: &str, typefaces: &[Typeface]) -> Vec<(usize, String)> {
    let mut parts: Vec<(usize, String)> = Vec::new();
    for letter in text.chars() {
        match parts.last_mut() {
            Some((place, part)) if typefaces[*place].has(letter) => part.push(letter),
            _ => {
                let place = typefaces.iter().position(|typeface| typeface.has(letter)).unwrap_or(0);
                parts.push((place, letter.to_string()));
            }
        }
    }
    parts
}

fn shape(typeface: &Typeface, text: String, is_rtl: bool) -> Run {
    let mut buffer = UnicodeBuffer::new();
    buffer.push_str(&text);
    buffer.guess_segment_properties();
    buffer.set_direction(if is_rtl { Direction::RightToLeft } else { Direction::LeftToRight });
    let shaped = rustybuzz::shape(&typeface.face, &[], buffer);
    let units = typeface.face.units_per_em() as f32;
    let mut starts: Vec<usize> = shaped.glyph_infos().iter().map(|info| info.cluster as usize).collect();
    starts.sort_unstable();
    starts.dedup();
    // The letters a glyph stands for, so that the file can be searched and read aloud.
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
    Run { font: typeface.font.clone(), text, glyphs, width }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> Vec<(usize, String, bool)> {
        pieces(text, Weight::Regular.typefaces())
    }

    #[test]
    fn names_of_many_scripts_have_all_their_letters() {
        for name in ["Anna Ölçer", "Ngô Thị Hương", "Ωμέγα", "Жанна Ґалаґан", "ليلى الشامي", "प्रियंका क्षत्रिय", "דנה לוי"]
        {
            let line = line(name, Weight::Bold);
            assert!(line.is_complete && line.width > 1.0, "{name}");
        }
    }

    #[test]
    fn what_no_font_has_is_left_out_and_said_so() {
        let shaped = line("山田 Taro 🎬", Weight::Regular);
        assert!(!shaped.is_complete);
        assert_eq!(shaped.runs.iter().map(|run| run.text.as_str()).collect::<Vec<_>>(), ["Taro"]);
        assert!(line("山田太郎", Weight::Regular).runs.is_empty());
    }

    #[test]
    fn an_arabic_name_is_one_run_from_right_to_left_and_its_letters_join() {
        let name = "ليلى";
        assert_eq!(drawn(name), [(2, name.to_owned(), true)]);
        let joined = line(name, Weight::Regular).width;
        let apart: f32 = name.chars().map(|letter| line(&letter.to_string(), Weight::Regular).width).sum();
        assert!(joined < apart, "joined letters are narrower: {joined} and {apart}");
    }

    #[test]
    fn a_mixed_line_is_in_the_order_one_sees() {
        let texts: Vec<String> = drawn("Anna ליאת דן").into_iter().map(|(_, text, _)| text).collect();
        assert_eq!(texts.first().map(|first| first.trim_end()), Some("Anna"), "{texts:?}");
        assert_eq!(texts.last().map(String::as_str), Some("ליאת דן"), "{texts:?}");
    }
}
