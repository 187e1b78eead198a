//! Tables as files that spreadsheets open: comma-separated values (RFC 4180), safe to open.
//!
//! A text that a stranger chose (a film's title, a seat's name) may begin with a sign that a spreadsheet takes for a
//! formula, and runs. Such a text gets an apostrophe in front (OWASP, "CSV Injection"), so that it is a text again.
//! Numbers are ours, and stay numbers, also below zero. Every text stands in quotation marks, so that a semicolon in it
//! divides nothing where a spreadsheet expects semicolons.
//!
//! The file begins with a byte order mark. Without one, the spreadsheet most people have takes UTF-8 for the
//! machine's old code page and garbles every accent; programs read JSON instead, and those that read this know how to
//! skip three bytes.

/// UTF-8's byte order mark.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// What a spreadsheet may take for the beginning of a formula; the wide ones are typed in East Asia, and work too.
const FORMULA_SIGNS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// What stands in one place of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Words, whoever chose them.
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

/// The file: a line of names, then the rows, each line ended by CR LF.
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
    fn a_formula_in_a_name_stays_a_name() {
        for sign in ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"] {
            assert_eq!(of(&format!("{sign}1+1")), format!("\"'{sign}1+1\""));
        }
        assert_eq!(of("=HYPERLINK(\"http://evil\")"), "\"'=HYPERLINK(\"\"http://evil\"\")\"");
    }

    #[test]
    fn what_looks_harmless_is_left_as_it_is() {
        for text in ["Tide", "14 bis", "A-7", "Crème; brûlée", "मंच", "1=1", ""] {
            assert_eq!(of(text), format!("\"{text}\""));
        }
    }

    #[test]
    fn quotation_marks_commas_and_ends_of_lines_divide_nothing() {
        assert_eq!(of("a,\"b\"\r\nc"), "\"a,\"\"b\"\"\r\nc\"");
    }

    #[test]
    fn numbers_stay_numbers_below_zero_too() {
        let file = write(&["a", "b"], [vec![Cell::from(-1_250), Cell::from(i64::MIN)]]);
        assert_eq!(file, "\u{feff}\"a\",\"b\"\r\n-1250,-9223372036854775808\r\n");
    }

    #[test]
    #[should_panic(expected = "a cell for every name")]
    fn a_row_without_all_its_cells_is_a_bug() {
        let _ = write(&["a", "b"], [vec![Cell::from(1)]]);
    }
}
