//! Plural categories. Source: Unicode CLDR 48, `common/supplemental/plurals.xml`, cardinal rules, for whole numbers
//! only.

use super::Language;

/// The category of a whole number, by CLDR's name.
pub(super) fn category(language: Language, number: i64) -> &'static str {
    let n = number.unsigned_abs();
    match language {
        // `one: i = 1 and v = 0`
        Language::English | Language::German => {
            if n == 1 {
                "one"
            } else {
                "other"
            }
        }
        // `one: n = 1`, `many: e = 0 and i != 0 and i % 1000000 = 0 and v = 0`
        Language::Spanish => match n {
            1 => "one",
            n if n != 0 && n % 1_000_000 == 0 => "many",
            _ => "other",
        },
        // `one: i = 0 or n = 1`
        Language::Hindi => {
            if n <= 1 {
                "one"
            } else {
                "other"
            }
        }
        // `few: n % 100 = 3..10`, `many: n % 100 = 11..99`
        Language::Arabic => match (n, n % 100) {
            (0, _) => "zero",
            (1, _) => "one",
            (2, _) => "two",
            (_, 3..=10) => "few",
            (_, 11..=99) => "many",
            _ => "other",
        },
    }
}

/// All categories of a language, which every counting message must offer.
#[cfg(test)]
pub(super) const fn categories(language: Language) -> &'static [&'static str] {
    match language {
        Language::English | Language::German | Language::Hindi => &["one", "other"],
        Language::Spanish => &["one", "many", "other"],
        Language::Arabic => &["zero", "one", "two", "few", "many", "other"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fall_into_the_categories_of_cldr() {
        // The samples of plurals.xml.
        let cases: [(Language, &[(i64, &str)]); 5] = [
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
                assert_eq!(category(language, *number), *expected, "{language:?} {number}");
                assert!(categories(language).contains(expected));
            }
        }
    }
}
