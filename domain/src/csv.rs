//! Writes comma-separated values (RFC 4180) that are safe to open in a spreadsheet.
//!
//! A text from outside (a film's title, a seat's name) may begin with a character that a spreadsheet takes for the
//! start of a formula and then executes. Such a text gets an apostrophe in front, so that it remains text (OWASP, "CSV
//! Injection"). Numbers come from the server and stay numbers, including negative ones. Every text is quoted, so that a
//! separator does not split it. The crate `csv` quotes all cells or decides by their content, so a room named `7` would
//! become a number.
//!
//! Spreadsheets of languages with a decimal comma expect semicolons between cells. They read a line with commas as one
//! cell, and `12.50` as a text or a date. [`Separator::Semicolon`] writes files for them.
//!
//! The file begins with a byte order mark. Without it, the most common spreadsheet decodes UTF-8 as the machine's
//! legacy code page and garbles accents. Programs should read JSON instead; those that read this file must skip three
//! bytes.

use serde::{Deserialize, Serialize};

use crate::money::Money;

/// UTF-8's byte order mark.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Characters that a spreadsheet may take for the start of a formula. The full-width ones are typed in East Asia and
/// also work.
const FORMULA_SIGNS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// The sign between two cells. The decimal mark of amounts follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Separator {
    /// `,` between cells, and a decimal point.
    #[default]
    Comma,
    /// `;` between cells, and a decimal comma.
    Semicolon,
}

impl Separator {
    /// The sign between two cells, and the decimal mark.
    const fn signs(self) -> (char, &'static str) {
        match self {
            Self::Comma => (',', "."),
            Self::Semicolon => (';', ","),
        }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Text from any source.
    Text(String),
    /// A whole number.
    Number(i64),
    /// An amount with its decimals, without its currency.
    Amount(Money),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<Money> for Cell {
    fn from(amount: Money) -> Self {
        Self::Amount(amount)
    }
}

/// Returns the file: a header line, then the rows, each ended by CR LF.
///
/// Panics if a row does not have one cell per name.
#[must_use]
pub fn write(separator: Separator, names: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let mut file = BYTE_ORDER_MARK.to_owned();
    line(&mut file, separator, names.iter().map(|name| Cell::from(*name)));
    for row in rows {
        assert_eq!(row.len(), names.len(), "a row has a cell for every name");
        line(&mut file, separator, row.into_iter());
    }
    file
}

fn line(file: &mut String, separator: Separator, cells: impl Iterator<Item = Cell>) {
    let (between, decimal_mark) = separator.signs();
    for (place, cell) in cells.enumerate() {
        if place > 0 {
            file.push(between);
        }
        match cell {
            Cell::Number(number) => file.push_str(&number.to_string()),
            Cell::Amount(amount) => file.push_str(&amount.decimal().replace('.', decimal_mark)),
            Cell::Text(text) => {
                file.push('"');
                if text.starts_with(FORMULA_SIGNS) {
                    file.push('\'');
                }
                file.push_str(&text.replace('"', "\"\""));
                file.push('"');
            }
        }
    }
    file.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Currency;

    fn of(text: &str) -> String {
        let file = write(Separator::Comma, &["name"], [vec![Cell::from(text)]]);
        let line = file.strip_prefix("\u{feff}\"name\"\r\n").expect("a mark and the names");
        line.strip_suffix("\r\n").expect("lines end with CR LF").to_owned()
    }

    #[test]
    fn formula_in_a_name_is_escaped() {
        for sign in ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"] {
            assert_eq!(of(&format!("{sign}1+1")), format!("\"'{sign}1+1\""));
        }
        assert_eq!(of("=HYPERLINK(\"http://evil\")"), "\"'=HYPERLINK(\"\"http://evil\"\")\"");
    }

    #[test]
    fn harmless_text_is_unchanged() {
        for text in ["Tide", "14 bis", "A-7", "Crème; brûlée", "मंच", "1=1", ""] {
            assert_eq!(of(text), format!("\"{text}\""));
        }
    }

    #[test]
    fn quotes_commas_and_line_breaks_do_not_split_a_cell() {
        assert_eq!(of("a,\"b\"\r\nc"), "\"a,\"\"b\"\"\r\nc\"");
    }

    #[test]
    fn numbers_stay_numbers_when_negative() {
        let file = write(Separator::Comma, &["a", "b"], [vec![Cell::from(-1_250), Cell::from(i64::MIN)]]);
        assert_eq!(file, "\u{feff}\"a\",\"b\"\r\n-1250,-9223372036854775808\r\n");
    }

    #[test]
    fn decimal_mark_of_an_amount_follows_from_the_separator() {
        let amount = |minor, code| Cell::from(Money::new(minor, Currency::parse(code).expect("a code")));
        let row = || vec![Cell::from("a;b,c"), Cell::from(1_250), amount(-1_250, "EUR"), amount(900, "JPY")];
        let file = |separator| write(separator, &["a", "b", "c", "d"], [row()]);
        assert!(file(Separator::Comma).ends_with("\"c\",\"d\"\r\n\"a;b,c\",1250,-12.50,900\r\n"));
        assert!(file(Separator::Semicolon).ends_with("\"c\";\"d\"\r\n\"a;b,c\";1250;-12,50;900\r\n"));
    }

    #[test]
    #[should_panic(expected = "a cell for every name")]
    fn row_with_missing_cells_panics() {
        let _ = write(Separator::Comma, &["a", "b"], [vec![Cell::from(1)]]);
    }
}
