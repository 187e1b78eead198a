//! Writes comma-separated values (RFC 4180) that are safe to open in a spreadsheet.
//!
//! A text from outside (a film's title, a seat's name) may begin with a character that a spreadsheet takes for the
//! start of a formula and then executes. Such a text gets an apostrophe in front, so that it remains text (OWASP, "CSV
//! Injection"). Numbers come from the server and stay numbers, including negative ones. Every text is quoted, so that a
//! semicolon does not split it where a spreadsheet expects semicolons. The crate `csv` quotes all cells or decides by
//! their content, so a room named `7` would become a number.
//!
//! The file begins with a byte order mark. Without it, the most common spreadsheet decodes UTF-8 as the machine's
//! legacy code page and garbles accents. Programs should read JSON instead; those that read this file must skip three
//! bytes.

/// UTF-8's byte order mark.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Characters that a spreadsheet may take for the start of a formula. The full-width ones are typed in East Asia and
/// also work.
const FORMULA_SIGNS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Text from any source.
    Text(String),
    /// A whole number.
    Number(i64),
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

/// Returns the file: a header line, then the rows, each ended by CR LF.
///
/// Panics if a row does not have one cell per name.
#[must_use]
pub fn write(names: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let mut file = BYTE_ORDER_MARK.to_owned();
    line(&mut file, names.iter().map(|name| Cell::from(*name)));
    for row in rows {
        assert_eq!(row.len(), names.len(), "a row has a cell for every name");
        line(&mut file, row.into_iter());
    }
    file
}

fn line(file: &mut String, cells: impl Iterator<Item = Cell>) {
    for (place, cell) in cells.enumerate() {
        if place > 0 {
            file.push(',');
        }
        match cell {
            Cell::Number(number) => file.push_str(&number.to_string()),
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

    fn of(text: &str) -> String {
        let file = write(&["name"], [vec![Cell::from(text)]]);
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
        let file = write(&["a", "b"], [vec![Cell::from(-1_250), Cell::from(i64::MIN)]]);
        assert_eq!(file, "\u{feff}\"a\",\"b\"\r\n-1250,-9223372036854775808\r\n");
    }

    #[test]
    #[should_panic(expected = "a cell for every name")]
    fn row_with_missing_cells_panics() {
        let _ = write(&["a", "b"], [vec![Cell::from(1)]]);
    }
}
