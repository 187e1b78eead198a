//! Runs cargo under a step: its progress becomes the step's, and its messages are printed.
//!
//! Cargo prints a bar even into a pipe if it is asked to: `    Building [=> ] 3/10: serde, syn` and a carriage return.
//! Lines such as `   Compiling serde v1.0.0` say the same and are left out. All others are printed; a diagnostic in one
//! piece, because two cargos may run at once.

use std::io::{BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Result, bail};

use crate::command;
use crate::progress::{self, ProgressStep};
use crate::status_line;
use crate::stop::Stop;

/// Width of the line with the bar, in columns; the bar takes 50 of them.
const WIDTH: &str = "80";
/// Columns in which cargo aligns the first word of a status line to the right.
const VERB_COLUMNS: usize = 12;
/// First words of the lines that are left out.
const ROUTINE: [&str; 8] =
    ["Checking", "Compiling", "Downloaded", "Downloading", "Executable", "Finished", "Fresh", "Updating"];
/// End of a line that is left out: the other cargo of a build holds this lock for a moment.
const SHORT_WAIT: &str = "waiting for file lock on package cache";

/// Runs a cargo command under a step; fails unless it succeeds.
pub fn run(command: &mut Command, step: &ProgressStep, stop: &Stop) -> Result<()> {
    let status = status(command, step, stop)?;
    if !status.success() {
        bail!("{} ended with {status}", command::command_line(command));
    }
    Ok(())
}

/// Runs a cargo command under a step and returns its status.
pub fn status(command: &mut Command, step: &ProgressStep, stop: &Stop) -> Result<ExitStatus> {
    status_with_lines(command, step, stop, |_| {})
}

/// Runs a cargo command under a step, prints its standard output line by line and passes each line to `on_line`.
pub fn status_with_lines(
    command: &mut Command,
    step: &ProgressStep,
    stop: &Stop,
    on_line: impl FnMut(&str),
) -> Result<ExitStatus> {
    if progress::is_verbose() {
        return command::status_with_lines(command, stop, on_line);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("CARGO_TERM_PROGRESS_WHEN", "always").env("CARGO_TERM_PROGRESS_WIDTH", WIDTH);
    if has_colours() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command::status_while_reading(
        command,
        stop,
        |output| command::print_lines(output, on_line),
        |errors| {
            for output in errors.into_iter().flat_map(outputs) {
                match output {
                    CargoOutput::Progress(done, all) => step.update(done, all),
                    CargoOutput::Text(text) => progress::print(|| eprint!("{text}")),
                }
            }
        },
    )
}

/// Returns `true` if the terminal wants colours and the environment does not decide it.
fn has_colours() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    status_line::is_available() && !is_set("NO_COLOR") && !is_set("CARGO_TERM_COLOR")
}

/// A piece of cargo's standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CargoOutput {
    /// Crates: built, and all.
    Progress(u32, u32),
    /// Whole lines to print.
    Text(String),
}

/// Reads cargo's standard error until its end.
fn outputs(errors: impl Read) -> impl Iterator<Item = CargoOutput> {
    let mut bytes = BufReader::new(errors).bytes().map_while(Result::ok);
    let mut parser = CargoParser::default();
    let mut is_at_end = false;
    std::iter::from_fn(move || {
        if let Some(output) = bytes.by_ref().find_map(|byte| parser.push(byte)) {
            return Some(output);
        }
        let rest = if is_at_end { None } else { parser.finish() };
        is_at_end = true;
        rest
    })
}

#[derive(Default)]
struct CargoParser {
    /// The bytes of the current line.
    line: Vec<u8>,
    /// The diagnostic that is being read.
    diagnostic: String,
}

impl CargoParser {
    fn push(&mut self, byte: u8) -> Option<CargoOutput> {
        match byte {
            b'\n' => return self.end_line(),
            b'\r' => {
                let bar = String::from_utf8_lossy(&self.line).rsplit('\r').next().and_then(read_bar);
                if let Some((done, all)) = bar {
                    self.line.clear();
                    return Some(CargoOutput::Progress(done, all));
                }
                self.line.push(byte);
            }
            _ => self.line.push(byte),
        }
        None
    }

    fn end_line(&mut self) -> Option<CargoOutput> {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        // Other bars, such as that of downloads, were in front of a carriage return.
        let line = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
        let plain = without_colours(line);
        let verb = verb(&plain);
        let continues = !self.diagnostic.is_empty() || plain.starts_with("error") || plain.starts_with("warning");
        if !verb.is_some_and(|verb| ROUTINE.contains(&verb)) && !plain.ends_with(SHORT_WAIT) {
            self.diagnostic.push_str(line);
            self.diagnostic.push('\n');
        }
        // A diagnostic ends with an empty line, or before a status line.
        if continues && verb.is_none() && !plain.trim().is_empty() { None } else { self.take_text() }
    }

    /// Returns what is left at the end of the output.
    fn finish(&mut self) -> Option<CargoOutput> {
        let last = if self.line.is_empty() { None } else { self.end_line() };
        last.or_else(|| self.take_text())
    }

    fn take_text(&mut self) -> Option<CargoOutput> {
        let text = std::mem::take(&mut self.diagnostic);
        if text.is_empty() { None } else { Some(CargoOutput::Text(text)) }
    }
}

/// Parses the bar: crates built, and all.
fn read_bar(text: &str) -> Option<(u32, u32)> {
    let plain = without_colours(text);
    let (_, counts) = plain.trim_start().strip_prefix("Building [")?.split_once("] ")?;
    let (done, all) = counts.split([':', ' ']).next()?.split_once('/')?;
    Some((done.parse().ok()?, all.parse().ok()?))
}

/// Returns the first word of a status line: `Compiling`.
fn verb(plain: &str) -> Option<&str> {
    let (verb, rest) = plain.split_at_checked(VERB_COLUMNS)?;
    let verb = verb.trim_start();
    let is_word = verb.starts_with(|sign: char| sign.is_ascii_uppercase()) && !verb.contains(' ');
    (is_word && rest.starts_with(' ')).then_some(verb)
}

/// Removes the escape sequences for colours and for erasing: `ESC [`, parameters, a letter.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|sign: char| !sign.is_ascii_alphabetic());
        plain.push_str(rest.get(1..).unwrap_or_default());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of cargo 1.95 into a pipe.
    const FAILED: &str = "    Updating crates.io index\n \
        Downloading crates ...\n  \
        Downloaded serde v1.0.228\n   \
        Compiling serde v1.0.228\n    \
        Building [=>                       ] 3/48: serde, build-script-build(syn)            \r   \
        Compiling domain v0.1.0 (/rowlock/domain)\n    \
        Building [============>            ] 25/48: domain                                   \r\
        warning: unused variable: `seat`\n \
        --> domain/src/seats.rs:7:9\n  \
        |\n\
        7 |     let seat = 1;\n  \
        |         ^^^^ help: prefix it with an underscore: `_seat`\n\
        \n\
        error[E0425]: cannot find value `row` in this scope\n \
        --> domain/src/seats.rs:9:5\n\
        \n    \
        Building [============>            ] 26/48                                           \r\
        error: could not compile `domain` (lib) due to 1 previous error; 1 warning emitted\n\
        warning: build failed, waiting for other jobs to finish...\n";

    fn all(text: &str) -> Vec<CargoOutput> {
        outputs(text.as_bytes()).collect()
    }

    fn text(outputs: &[CargoOutput]) -> String {
        let texts = outputs.iter().filter_map(|output| match output {
            CargoOutput::Text(text) => Some(text.as_str()),
            CargoOutput::Progress(..) => None,
        });
        texts.collect()
    }

    #[test]
    fn progress_is_read_and_diagnostics_are_whole_and_in_order() {
        let outputs = all(FAILED);
        assert_eq!(outputs[..2], [CargoOutput::Progress(3, 48), CargoOutput::Progress(25, 48)]);
        let CargoOutput::Text(warning) = &outputs[2] else { panic!("{outputs:?}") };
        assert!(warning.starts_with("warning: unused") && warning.ends_with("`_seat`\n\n"), "{warning}");
        let CargoOutput::Text(error) = &outputs[3] else { panic!("{outputs:?}") };
        assert_eq!(error, "error[E0425]: cannot find value `row` in this scope\n --> domain/src/seats.rs:9:5\n\n");
        assert_eq!(outputs[4], CargoOutput::Progress(26, 48));
        assert_eq!(outputs.len(), 6);
        let text = text(&outputs);
        assert!(text.ends_with("1 warning emitted\nwarning: build failed, waiting for other jobs to finish...\n"));
        for routine in ["Updating", "Download", "Compiling", "Building"] {
            assert!(!text.contains(routine), "{text}");
        }
    }

    #[test]
    fn output_split_at_any_byte_reads_the_same() {
        let whole = all(FAILED);
        for at in 0..FAILED.len() {
            let (first, second) = FAILED.as_bytes().split_at(at);
            assert_eq!(outputs(first.chain(second)).collect::<Vec<_>>(), whole, "split at {at}");
        }
    }

    #[test]
    fn coloured_output_reads_as_plain_output_and_keeps_its_colours() {
        let coloured = "\x1b[1m\x1b[92m   Compiling\x1b[0m serde v1.0.228\n\
            \x1b[1m\x1b[96m    Building\x1b[0m [===>        ] 231/512: app, rowlock(bin)   \r\
            \x1b[K\x1b[1m\x1b[33mwarning\x1b[0m\x1b[1m: unused import\x1b[0m\n\n\
            \x1b[1m\x1b[92m    Finished\x1b[0m `dev` profile [optimized] target(s) in 12.30s\n";
        let warning = "\x1b[K\x1b[1m\x1b[33mwarning\x1b[0m\x1b[1m: unused import\x1b[0m\n\n".to_owned();
        assert_eq!(all(coloured), [CargoOutput::Progress(231, 512), CargoOutput::Text(warning)]);
    }

    #[test]
    fn lines_of_tests_are_printed_at_once_and_unfinished_lines_at_the_end() {
        let tests = "warning: `app` (lib) generated 1 warning\n    Finished `test` profile\n     \
            Running unittests src/lib.rs (target/debug/deps/app-0123)\n500 schedules\nCompiling is over\n\
            the last words";
        let lines = [
            "warning: `app` (lib) generated 1 warning\n",
            "     Running unittests src/lib.rs (target/debug/deps/app-0123)\n",
            "500 schedules\n",
            "Compiling is over\n",
            "the last words\n",
        ];
        assert_eq!(all(tests), lines.map(|line| CargoOutput::Text(line.to_owned())));
    }

    #[test]
    fn other_bars_and_short_waits_are_left_out_and_long_waits_are_shown() {
        let waits = "       Fetch [=====>      ]  41.20%, 1.20MiB/s       \r    \
            Blocking waiting for file lock on package cache\n    \
            Blocking waiting for file lock on build directory\nwindows\r\n";
        assert_eq!(text(&all(waits)), "    Blocking waiting for file lock on build directory\nwindows\n");
        assert_eq!(all("    Building [====] 4/4\r"), [CargoOutput::Progress(4, 4)]);
        let after_another = "       Fetch [====]\r    Building [=>  ] 1/4: syn\r";
        assert_eq!(all(after_another), [CargoOutput::Progress(1, 4)]);
        assert!(all("").is_empty());
    }
}
