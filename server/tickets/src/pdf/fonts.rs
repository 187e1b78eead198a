//! The fonts of tickets, one for each script, in order of lookup.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use krilla::text::Font;
use rustybuzz::{Direction, Face, Script, ShapePlan};

/// A font of this program, read twice: for shaping and for the file.
pub(super) struct Typeface {
    face: Face<'static>,
    bytes: &'static [u8],
    font: LazyFont,
    plans: Mutex<HashMap<(Script, Direction), Arc<ShapePlan>>>,
}

/// The font as the file takes it; made at its first use, which reads all of it.
type LazyFont = std::sync::OnceLock<Font>;

macro_rules! typefaces {
    ($($name:literal),+ $(,)?) => {
        [$(Typeface::of(include_bytes!(concat!("../fonts/", $name)))),+]
    };
}

/// Latin, Greek, Cyrillic: what is large is bold.
static LATIN: LazyLock<[Typeface; 2]> = LazyLock::new(|| typefaces!["NotoSans-Regular.ttf", "NotoSans-Bold.ttf"]);
/// The other scripts have one weight.
static OTHERS: LazyLock<[Typeface; 23]> = LazyLock::new(|| {
    typefaces![
        "NotoSansArabic-Regular.ttf",
        "NotoSansArmenian-Regular.ttf",
        "NotoSansBengali-Regular.ttf",
        "NotoSansDevanagari-Regular.ttf",
        "NotoSansEthiopic-Regular.ttf",
        "NotoSansGeorgian-Regular.ttf",
        "NotoSansGujarati-Regular.ttf",
        "NotoSansGurmukhi-Regular.ttf",
        "NotoSansHebrew-Regular.ttf",
        "NotoSansKannada-Regular.ttf",
        "NotoSansKhmer-Regular.ttf",
        "NotoSansLao-Regular.ttf",
        "NotoSansMalayalam-Regular.ttf",
        "NotoSansMyanmar-Regular.ttf",
        "NotoSansOriya-Regular.ttf",
        "NotoSansSinhala-Regular.ttf",
        "NotoSansTamil-Regular.ttf",
        "NotoSansTelugu-Regular.ttf",
        "NotoSansThaana-Regular.ttf",
        "NotoSansThai-Regular.ttf",
        "NotoSansMath-Regular.ttf",
        "NotoSansSymbols-Regular.ttf",
        "NotoSansSymbols2-Regular.ttf",
    ]
});
/// Han in Chinese forms and Hangul; Han in Japanese forms and kana.
static EAST_ASIAN: LazyLock<[Typeface; 2]> =
    LazyLock::new(|| typefaces!["DroidSansFallback.ttf", "NotoSansJP-Regular.ttf"]);
static EMOJI: LazyLock<[Typeface; 1]> = LazyLock::new(|| typefaces!["NotoEmoji-Regular.ttf"]);

impl Typeface {
    fn of(bytes: &'static [u8]) -> Self {
        // A file of this program's own: a broken one fails the first test that draws.
        let face = Face::from_slice(bytes, 0).expect("a font of ours can be read");
        Self { face, bytes, font: LazyFont::new(), plans: Mutex::default() }
    }

    pub(super) fn has(&self, letter: char) -> bool {
        self.face.glyph_index(letter).is_some()
    }

    pub(super) const fn face(&self) -> &Face<'static> {
        &self.face
    }

    /// The plan to shape text of this script. Made once, because making one is slow for rustybuzz.
    pub(super) fn plan(&self, script: Script, direction: Direction) -> Arc<ShapePlan> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let known = Some(script).filter(|script| *script != rustybuzz::script::UNKNOWN);
            Arc::new(ShapePlan::new(&self.face, direction, known, None, &[]))
        };
        Arc::clone(plans.entry((script, direction)).or_insert_with(make))
    }

    pub(super) fn font(&self) -> Font {
        let read = || Font::new(self.bytes.into(), 0).expect("a font of ours can be embedded");
        self.font.get_or_init(read).clone()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Regular,
    Bold,
}

/// The regional form of Han characters: one code point is drawn differently in Japan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Han {
    Chinese,
    Japanese,
}

impl Han {
    /// Japanese where any of the texts has kana.
    pub(super) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let is_kana =
            |letter| matches!(letter, '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{FF66}'..='\u{FF9D}');
        if texts.into_iter().flat_map(str::chars).any(is_kana) { Self::Japanese } else { Self::Chinese }
    }
}

/// The fonts in order of lookup.
pub(super) fn typefaces(weight: Weight, han: Han) -> Vec<&'static Typeface> {
    let [regular, bold] = &*LATIN;
    let latin = match weight {
        Weight::Regular => regular,
        Weight::Bold => bold,
    };
    let [chinese, japanese] = &*EAST_ASIAN;
    let east_asian = match han {
        Han::Chinese => [chinese, japanese],
        Han::Japanese => [japanese, chinese],
    };
    std::iter::once(latin).chain(&*OTHERS).chain(east_asian).chain(&*EMOJI).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn han_has_japanese_forms_beside_kana_only() {
        assert_eq!(Han::of(["霸王别姬", "Kino"]), Han::Chinese);
        assert_eq!(Han::of(["Kino", "千と千尋"]), Han::Japanese);
    }

    #[test]
    fn every_font_can_be_embedded() {
        for typeface in
            typefaces(Weight::Regular, Han::Chinese).into_iter().chain(typefaces(Weight::Bold, Han::Japanese))
        {
            assert!(typeface.face().number_of_glyphs() > 1);
            typeface.font();
        }
    }

    #[test]
    fn a_plan_is_made_once_for_a_script_and_direction() {
        let latin = typefaces(Weight::Regular, Han::Chinese)[0];
        let plan = |direction| latin.plan(rustybuzz::script::LATIN, direction);
        assert!(Arc::ptr_eq(&plan(Direction::LeftToRight), &plan(Direction::LeftToRight)));
        assert!(!Arc::ptr_eq(&plan(Direction::LeftToRight), &plan(Direction::RightToLeft)));
    }

    #[test]
    fn no_font_draws_private_code_points() {
        let all = typefaces(Weight::Bold, Han::Japanese);
        assert!(('\u{E000}'..='\u{F8FF}').all(|letter| !all.iter().any(|typeface| typeface.has(letter))));
    }
}
