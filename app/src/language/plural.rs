//! Plural categories. Source: Unicode CLDR 48, `common/supplemental/plurals.xml`, cardinal rules, for whole numbers
//! only.

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
}

/// `one: i = 1 and v = 0`
pub(super) static ONE: PluralRule = PluralRule {
    #[cfg(test)]
    categories: &["one", "other"],
    of: |n| if n == 1 { "one" } else { "other" },
};

/// `one: n = 1`, `many: e = 0 and i != 0 and i % 1000000 = 0 and v = 0`
pub(super) static ONE_OR_MILLIONS: PluralRule = PluralRule {
    #[cfg(test)]
    categories: &["one", "many", "other"],
    of: |n| match n {
        1 => "one",
        n if n != 0 && n % 1_000_000 == 0 => "many",
        _ => "other",
    },
};

/// `one: i = 0 or n = 1`
pub(super) static NONE_OR_ONE: PluralRule = PluralRule {
    #[cfg(test)]
    categories: &["one", "other"],
    of: |n| if n <= 1 { "one" } else { "other" },
};

/// `few: n % 100 = 3..10`, `many: n % 100 = 11..99`
pub(super) static ARABIC: PluralRule = PluralRule {
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

#[cfg(test)]
mod tests {
    use crate::language::Language;

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
