//! Breaks a text into lines that fit a box, by the rules of Unicode Standard Annex 14 that titles and names need, and
//! chooses the size of the letters.

use unicode_normalization::char::is_combining_mark;

use super::text::{FontChoice, ShapedLine, level_of, line};

/// Smallest font size, points; a text that does not fit at it is cut.
pub(super) const SMALLEST: f32 = 7.0;
/// Step between the font sizes that are tried, points.
const STEP: f32 = 0.5;
/// Distance between two base lines, in parts of the font size.
pub(super) const LEADING: f32 = 1.15;
/// Tolerance for the rounding of widths and heights, points.
const TOLERANCE: f32 = 0.01;

pub(super) struct FittedText {
    pub lines: Vec<ShapedLine>,
    pub size: f32,
    /// True when nothing is cut and a font has every letter.
    pub is_complete: bool,
}

/// The space for a text, points.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextBox {
    pub width: f32,
    /// Distance from the base line of a single line up to the top of several lines.
    pub rise: f32,
    /// Height of all lines together; one line always fits.
    pub height: f32,
}

impl TextBox {
    pub(super) const fn line(width: f32) -> Self {
        Self { width, rise: 0.0, height: 0.0 }
    }

    fn lines(self, size: f32) -> usize {
        (((self.height + TOLERANCE) / (size * LEADING)) as usize).max(1)
    }
}

/// Sets a text as large as fits, up to `size`, in as few lines as possible. It is cut if it does not fit at the smallest
/// size.
pub(super) fn fit(text: &str, letters: FontChoice, size: f32, room: TextBox) -> FittedText {
    let level = level_of(text);
    let whole = line(text, letters, level);
    // The usual case first: one line that is as large as it may be, or a little smaller.
    let single = size.min(room.width / whole.width.max(f32::EPSILON));
    if single >= size.min(SMALLEST) && room.lines(single) == 1 {
        let is_complete = whole.is_complete();
        return FittedText { lines: vec![whole], size: single, is_complete };
    }
    let parts = parts(text, letters);
    let mut size = size;
    loop {
        let lines = wrapped(&parts, room.width / size);
        if lines.len() <= room.lines(size) {
            return drawn(&lines, letters, level, size, room);
        }
        if size <= SMALLEST {
            break;
        }
        size = (size - STEP).max(SMALLEST);
    }
    let mut lines = wrapped(&parts, room.width / size);
    let rest = lines.split_off(room.lines(size).min(lines.len()) - 1);
    lines.push(cut(&rest.concat(), letters, room.width / size));
    FittedText { is_complete: false, ..drawn(&lines, letters, level, size, room) }
}

fn drawn(
    lines: &[String],
    letters: FontChoice,
    level: Option<unicode_bidi::Level>,
    size: f32,
    room: TextBox,
) -> FittedText {
    let lines: Vec<ShapedLine> = lines.iter().map(|text| line(text, letters, level)).collect();
    // Parts that were measured alone may be a little wider together.
    let widest = lines.iter().fold(f32::EPSILON, |widest, line| widest.max(line.width));
    let is_complete = lines.iter().all(ShapedLine::is_complete);
    FittedText { lines, size: size.min(room.width / widest), is_complete }
}

/// A part of a text that is not broken, with its width at size 1.
struct TextPart {
    text: String,
    width: f32,
    /// Width without trailing spaces, which may extend beyond the end of a line.
    width_at_end: f32,
}

fn parts(text: &str, letters: FontChoice) -> Vec<TextPart> {
    let width = |text: &str| line(text, letters, None).width;
    let space = width("n n") - width("nn");
    divided(text, is_break)
        .into_iter()
        .map(|text| {
            let at_end = width(text.trim_end());
            let spaces = text.len() - text.trim_end().len();
            TextPart { text: text.to_owned(), width: at_end + space * spaces as f32, width_at_end: at_end }
        })
        .flat_map(|part| if part.width_at_end > MAX_PART_WIDTH { pieces(part, letters) } else { vec![part] })
        .collect()
}

/// Maximum width of a part at size 1; a wider one may be broken between any two letters.
const MAX_PART_WIDTH: f32 = 16.0;

fn pieces(part: TextPart, letters: FontChoice) -> Vec<TextPart> {
    let width = |text: &str| line(text, letters, None).width;
    let of = |text: &str| TextPart { text: text.to_owned(), width: width(text), width_at_end: width(text) };
    divided(&part.text, |before, after| !is_joined(before, after)).into_iter().map(of).collect()
}

/// Splits a text between the neighbours for which `is_end` is true.
fn divided(text: &str, is_end: impl Fn(char, char) -> bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut before) = (0, None);
    for (at, letter) in text.char_indices() {
        if before.is_some_and(|before| is_end(before, letter)) {
            parts.push(&text[start..at]);
            start = at;
        }
        before = Some(letter);
    }
    parts.push(&text[start..]);
    parts
}

/// True when a line may end between the two.
fn is_break(before: char, after: char) -> bool {
    if before == ' ' || before == '\u{3000}' {
        return after != ' ' && after != '\u{3000}';
    }
    if is_joined(before, after) || after.is_whitespace() {
        return false;
    }
    let is_hyphen = matches!(before, '-' | '\u{2010}' | '\u{2013}' | '\u{2014}') && after.is_alphabetic();
    is_hyphen || is_ideographic(before) || is_ideographic(after)
}

/// True when no line may end between the two, however narrow it is: a letter and its marks, a bracket and its text.
fn is_joined(before: char, after: char) -> bool {
    let joins = |letter| matches!(letter, '\u{200D}' | '\u{2060}' | '\u{A0}');
    let follows = is_combining_mark(after)
        || matches!(after, '\u{FE00}'..='\u{FE0F}' | '\u{1F3FB}'..='\u{1F3FF}' | '\u{E0020}'..='\u{E007F}')
        // Thai and Lao vowels and marks behind their consonant…
        || matches!(after, '\u{E2F}'..='\u{E3A}' | '\u{E45}'..='\u{E4E}' | '\u{EAF}'..='\u{EBC}' | '\u{EC6}'..='\u{ECD}')
        // …and what ends or goes on with something.
        || matches!(after, ',' | '.' | ':' | ';' | '!' | '?' | ')' | ']' | '}' | '%' | '’' | '”' | '»' | '…')
        || matches!(after, '、' | '。' | '〉' | '》' | '」' | '』' | '】' | '〕' | '〗' | '〙' | '〛' | '〜' | '・' | 'ー' | '々' | 'ゝ' | 'ゞ')
        || matches!(after, 'ぁ' | 'ぃ' | 'ぅ' | 'ぇ' | 'ぉ' | 'っ' | 'ゃ' | 'ゅ' | 'ょ' | 'ァ' | 'ィ' | 'ゥ' | 'ェ' | 'ォ' | 'ッ' | 'ャ' | 'ュ' | 'ョ')
        || matches!(after, '！' | '）' | '，' | '．' | '：' | '；' | '？' | '］' | '｝');
    let leads = matches!(before, '(' | '[' | '{' | '¿' | '¡' | '‘' | '“' | '«' | '〈' | '《' | '「' | '『' | '【' | '〔' | '（' | '［' | '｛')
        // Thai and Lao vowels in front of theirs.
        || matches!(before, '\u{E40}'..='\u{E44}' | '\u{EC0}'..='\u{EC4}');
    // Consonants that a virama or a coeng makes one.
    let is_stacked = matches!(
        before,
        '\u{94D}'
            | '\u{9CD}'
            | '\u{A4D}'
            | '\u{ACD}'
            | '\u{B4D}'
            | '\u{BCD}'
            | '\u{C4D}'
            | '\u{CCD}'
            | '\u{D4D}'
            | '\u{DCA}'
            | '\u{1039}'
            | '\u{17D2}'
    );
    follows || leads || is_stacked || joins(before) || joins(after)
}

/// Han, kana and Hangul: lines end between any two of them.
fn is_ideographic(letter: char) -> bool {
    matches!(letter, '\u{1100}'..='\u{11FF}' | '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF00}'..='\u{FFEF}' | '\u{20000}'..='\u{3FFFF}')
}

/// The parts in as few lines of at most `width` as possible. A wider part has its own line.
fn wrapped(parts: &[TextPart], width: f32) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut taken = 0.0;
    for part in parts {
        let is_first = lines.last().is_none_or(String::is_empty);
        if !is_first && taken + part.width_at_end > width + TOLERANCE {
            lines.push(String::new());
            taken = 0.0;
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(&part.text);
        }
        taken += part.width;
    }
    lines
}

/// Cuts a text to `width`, with an ellipsis at its end.
fn cut(text: &str, letters: FontChoice, width: f32) -> String {
    let ends: Vec<usize> = std::iter::once(0)
        .chain(divided(text, |before, after| !is_joined(before, after)).iter().scan(0, |end, part| {
            *end += part.len();
            Some(*end)
        }))
        .collect();
    let with_ellipsis = |kept: usize| format!("{}…", text[..ends[kept]].trim_end());
    // The first that is too wide; those before it fit.
    let (mut fits, mut too_wide) = (0, ends.len());
    while fits + 1 < too_wide {
        let middle = usize::midpoint(fits, too_wide);
        if line(&with_ellipsis(middle), letters, None).width <= width + TOLERANCE {
            fits = middle
        } else {
            too_wide = middle
        }
    }
    with_ellipsis(fits)
}

#[cfg(test)]
mod tests {
    use super::super::fonts::{Han, Weight};
    use super::*;

    const BOLD: FontChoice = FontChoice { weight: Weight::Bold, han: Han::Chinese };
    const BAND: TextBox = TextBox { width: 479.0, rise: 23.0, height: 33.0 };

    fn texts(fitted: &FittedText) -> Vec<String> {
        fitted.lines.iter().map(|line| line.runs.iter().map(|run| run.text.as_str()).collect()).collect()
    }

    #[test]
    fn a_long_text_shrinks_then_wraps_and_then_is_cut() {
        let short = fit("Ana", BOLD, 20.0, BAND);
        assert!((short.size - 20.0).abs() < f32::EPSILON && short.lines.len() == 1 && short.is_complete);
        let smaller = fit("A title of some length, a little smaller than others", BOLD, 20.0, BAND);
        assert!(smaller.lines.len() == 1 && (12.0..20.0).contains(&smaller.size), "{}", smaller.size);
        for letter in ["W", "王", "ที่", "क्ष"] {
            let long = fit(&letter.repeat(200), BOLD, 20.0, BAND);
            assert!(long.lines.len() > 1 && long.size >= SMALLEST && long.is_complete, "{letter} {}", long.size);
            assert!(long.lines.iter().all(|line| line.width * long.size <= BAND.width + 0.1));
            assert!(long.lines.len() as f32 * long.size * LEADING <= BAND.height + 0.1);
            let cut = fit(&letter.repeat(900), BOLD, 20.0, BAND);
            assert!(!cut.is_complete && texts(&cut).last().is_some_and(|last| last.ends_with('…')), "{letter}");
            assert!(cut.lines.iter().all(|line| line.width * cut.size <= BAND.width + 0.1));
        }
        assert_eq!(texts(&fit("", BOLD, 20.0, BAND)), [""]);
    }

    #[test]
    fn lines_end_where_the_script_allows() {
        let parts = |text| divided(text, is_break);
        assert_eq!(parts("The Paper-Tiger's  Waltz, 2"), ["The ", "Paper-", "Tiger's  ", "Waltz, ", "2"]);
        assert_eq!(parts("霸王《别姬》，二"), ["霸", "王", "《别", "姬》，", "二"]);
        assert_eq!(parts("スーパー (2)"), ["スー", "パー ", "(2)"]);
        assert_eq!(parts("二楼 1-17"), ["二", "楼 ", "1-17"]);
        let letters = |text| divided(text, |before, after| !is_joined(before, after));
        assert_eq!(letters("เที่ยว"), ["เที่", "ย", "ว"]);
        assert_eq!(letters("e\u{301}क्ष👩\u{200D}👧"), ["e\u{301}", "क्ष", "👩\u{200D}👧"]);
    }
}
