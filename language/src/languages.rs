//! The languages, with everything that depends on the language besides the messages.
//!
//! A new language is a variant and its facts here, a file of messages, and samples in the tests of numbers, plurals and
//! dates. Tests name what is missing, also in the proxy's configuration and the documents.

use strum::{EnumCount, VariantArray};

use super::number::NumberFormat;

/// A language of the site, in the order of the chooser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, EnumCount, VariantArray)]
pub enum Language {
    /// English, the default.
    #[default]
    English,
    /// German.
    German,
    /// Spanish.
    Spanish,
    /// Hindi.
    Hindi,
    /// Arabic, written from right to left.
    Arabic,
}

/// The facts about a language. Their source is the Unicode CLDR; that of plurals `common/supplemental/plurals.xml`,
/// cardinal rules, for whole numbers only.
pub(super) struct Facts {
    tag: &'static str,
    own_name: &'static str,
    is_right_to_left: bool,
    /// The form of a word that follows a number.
    pub(super) plural: &'static PluralRule,
    pub(super) numbers: NumberFormat,
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) messages: &'static str,
}

/// A rule for the form of a word that follows a number.
pub(super) struct PluralRule {
    /// All categories, which every counting message must offer.
    #[cfg(test)]
    pub(super) categories: &'static [&'static str],
    of: fn(u64) -> &'static str,
}

impl PluralRule {
    /// The category of a whole number, by CLDR's name.
    pub(super) fn category(&self, number: i64) -> &'static str {
        (self.of)(number.unsigned_abs())
    }

    /// `one: i = 1 and v = 0`
    const ONE: Self = Self {
        #[cfg(test)]
        categories: &["one", "other"],
        of: |n| if n == 1 { "one" } else { "other" },
    };

    /// `one: n = 1`, `many: e = 0 and i != 0 and i % 1000000 = 0 and v = 0`
    const ONE_OR_MILLIONS: Self = Self {
        #[cfg(test)]
        categories: &["one", "many", "other"],
        of: |n| match n {
            1 => "one",
            n if n != 0 && n % 1_000_000 == 0 => "many",
            _ => "other",
        },
    };

    /// `one: i = 0 or n = 1`
    const NONE_OR_ONE: Self = Self {
        #[cfg(test)]
        categories: &["one", "other"],
        of: |n| if n <= 1 { "one" } else { "other" },
    };

    /// `few: n % 100 = 3..10`, `many: n % 100 = 11..99`
    const ARABIC: Self = Self {
        #[cfg(test)]
        categories: &["zero", "one", "two", "few", "many", "other"],
        of: |n| match (n, n % 100) {
            (0, _) => "zero",
            (1, _) => "one",
            (2, _) => "two",
            (_, 3..=10) => "few",
            (_, 11..=99) => "many",
            _ => "other",
        },
    };
}

impl Language {
    pub(super) const fn facts(self) -> Facts {
        let numbers = NumberFormat::ENGLISH;
        match self {
            Self::English => Facts {
                tag: "en",
                own_name: "English",
                is_right_to_left: false,
                plural: &PluralRule::ONE,
                numbers,
                #[cfg(not(target_arch = "wasm32"))]
                messages: include_str!("../../messages/en.json"),
            },
            Self::German => Facts {
                tag: "de",
                own_name: "Deutsch",
                is_right_to_left: false,
                plural: &PluralRule::ONE,
                numbers: NumberFormat { decimal: ',', group: '.', is_currency_first: false, ..numbers },
                #[cfg(not(target_arch = "wasm32"))]
                messages: include_str!("../../messages/de.json"),
            },
            Self::Spanish => Facts {
                tag: "es",
                own_name: "Español",
                is_right_to_left: false,
                plural: &PluralRule::ONE_OR_MILLIONS,
                numbers: NumberFormat {
                    decimal: ',',
                    group: '.',
                    least_before_group: 2,
                    is_currency_first: false,
                    ..numbers
                },
                #[cfg(not(target_arch = "wasm32"))]
                messages: include_str!("../../messages/es.json"),
            },
            Self::Hindi => Facts {
                tag: "hi",
                own_name: "हिन्दी",
                is_right_to_left: false,
                plural: &PluralRule::NONE_OR_ONE,
                // `#,##,##0.###`: thousands, then lakhs and crores.
                numbers: NumberFormat { group_size: 2, ..numbers },
                #[cfg(not(target_arch = "wasm32"))]
                messages: include_str!("../../messages/hi.json"),
            },
            Self::Arabic => Facts {
                tag: "ar",
                own_name: "العربية",
                is_right_to_left: true,
                plural: &PluralRule::ARABIC,
                numbers: NumberFormat {
                    is_currency_first: false,
                    has_direction_marks: true,
                    own_symbols: &[
                        ("AED", "د.إ.\u{200f}"),
                        ("BHD", "د.ب.\u{200f}"),
                        ("EGP", "ج.م.\u{200f}"),
                        ("JOD", "د.أ.\u{200f}"),
                        ("KWD", "د.ك.\u{200f}"),
                        ("MAD", "د.م.\u{200f}"),
                        ("OMR", "ر.ع.\u{200f}"),
                        ("QAR", "ر.ق.\u{200f}"),
                        ("SAR", "ر.س.\u{200f}"),
                        ("TND", "د.ت.\u{200f}"),
                    ],
                    ..numbers
                },
                #[cfg(not(target_arch = "wasm32"))]
                messages: include_str!("../../messages/ar.json"),
            },
        }
    }

    /// All languages.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().expect("as many variants as COUNT");

    /// The language of a tag (BCP 47): `de`, `de-AT`, `DE`. `None` for other languages.
    pub fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| language.tag().eq_ignore_ascii_case(primary))
    }

    /// Its tag (BCP 47).
    pub const fn tag(self) -> &'static str {
        self.facts().tag
    }

    /// Its name in itself, the same in every language.
    pub const fn own_name(self) -> &'static str {
        self.facts().own_name
    }

    /// Its direction: the `dir` of a document.
    pub const fn direction(self) -> &'static str {
        if self.is_right_to_left() { "rtl" } else { "ltr" }
    }

    /// Returns true if its decimal mark is a comma. Spreadsheets in such a language expect semicolons between cells.
    pub const fn has_decimal_comma(self) -> bool {
        self.facts().numbers.decimal == ','
    }

    /// Returns true if it is written from right to left.
    pub const fn is_right_to_left(self) -> bool {
        self.facts().is_right_to_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fall_into_the_categories_of_cldr() {
        // The samples of plurals.xml.
        let cases: [(Language, &[(i64, &str)]); Language::ALL.len()] = [
            (Language::English, &[(0, "other"), (1, "one"), (2, "other"), (101, "other")]),
            (Language::German, &[(0, "other"), (1, "one"), (2, "other"), (101, "other")]),
            (Language::Spanish, &[(0, "other"), (1, "one"), (2, "other"), (1_000_000, "many"), (1_000_001, "other")]),
            (Language::Hindi, &[(0, "one"), (1, "one"), (2, "other"), (10, "other")]),
            (
                Language::Arabic,
                &[
                    (0, "zero"),
                    (1, "one"),
                    (2, "two"),
                    (3, "few"),
                    (10, "few"),
                    (103, "few"),
                    (11, "many"),
                    (99, "many"),
                    (111, "many"),
                    (100, "other"),
                    (102, "other"),
                    (1_000_000, "other"),
                ],
            ),
        ];
        for (language, samples) in cases {
            for (number, expected) in samples {
                let rule = language.facts().plural;
                assert_eq!(rule.category(*number), *expected, "{language:?} {number}");
                assert!(rule.categories.contains(expected));
            }
        }
    }
}
