//! The last line of the terminal, which shows the running steps. All other output is printed above it.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::progress;

/// Without a terminal, at most one line is printed in this time.
const MIN_INTERVAL: Duration = Duration::from_secs(15);
/// Width of a terminal that does not report it, in columns.
const DEFAULT_COLUMNS: usize = 80;
/// Moves to the start of the line and erases it.
const ERASE: &str = "\r\x1b[K";

/// The line.
pub struct StatusLine {
    /// The text on the terminal; empty if there is none.
    shown: String,
    /// Time of the last line printed without a terminal.
    printed: Option<Instant>,
}

impl StatusLine {
    pub const fn new() -> Self {
        Self { shown: String::new(), printed: None }
    }

    /// Shows the text of a new step. Without a terminal, prints it.
    pub fn announce(&mut self, text: String) {
        self.printed = None;
        self.update(text);
    }

    /// Shows this text; none if it is empty. Without a terminal, prints it at most once per [`MIN_INTERVAL`].
    pub fn update(&mut self, text: String) {
        if is_available() {
            if self.shown != text {
                self.shown = text;
                self.paint();
            }
        } else if !text.is_empty() && self.printed.is_none_or(|at| at.elapsed() >= MIN_INTERVAL) {
            eprintln!("{text}");
            self.printed = Some(Instant::now());
        }
    }

    /// Prints above the line.
    pub fn print_above(&mut self, print: impl FnOnce()) {
        if self.shown.is_empty() {
            print();
        } else {
            eprint!("{ERASE}");
            print();
            self.paint();
        }
    }

    /// Leaves the line as it is, and begins a new one for the output of a program.
    pub fn leave(&mut self) {
        if !self.shown.is_empty() {
            self.shown.clear();
            eprintln!();
        }
    }

    fn paint(&self) {
        let columns = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let columns = if columns == 0 { DEFAULT_COLUMNS } else { columns };
        // A line that wraps could not be erased.
        let text: String = self.shown.chars().take(columns - 1).collect();
        eprint!("{ERASE}{text}");
    }
}

/// Returns `true` if standard error is a terminal that can erase a line, and `--verbose` is not set.
pub fn is_available() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name == "dumb");
    !progress::is_verbose() && !is_dumb && std::io::stderr().is_terminal()
}
