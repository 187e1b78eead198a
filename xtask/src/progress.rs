//! Prints steps and their duration on standard error; standard output is for results.
//!
//! On a terminal, one line shows the running steps, and in the first run their share of the whole and the time left. It
//! disappears with the last step. Steps that took a while leave a line with their duration.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::first_run::{self, FirstRun, FirstRunPart};
use crate::status_line::{self, StatusLine};

/// Steps and parts shorter than this had nothing to do: they leave no line.
const NOTHING_TO_DO: Duration = Duration::from_secs(2);

static VERBOSE: AtomicBool = AtomicBool::new(false);
static DISPLAY: Mutex<ProgressDisplay> =
    Mutex::new(ProgressDisplay { steps: Vec::new(), last_id: 0, first_run: None, line: StatusLine::new() });

thread_local! {
    /// The part of the first run that this thread works at.
    static PART: Cell<Option<FirstRunPart>> = const { Cell::new(None) };
}

/// Shows the output of programs in place of one line per step.
pub fn be_verbose() {
    VERBOSE.store(true, Ordering::Relaxed);
}

pub fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// A running step; prints its duration when finished or dropped.
pub struct ProgressStep {
    /// Its id on the display; `None` for a quiet step.
    id: Option<u64>,
    name: String,
    started: Instant,
    finished: bool,
}

impl ProgressStep {
    /// Starts a step that may take more than a second or two, and shows its name.
    pub fn start(name: impl Into<String>) -> Self {
        Self::start_nth(name, 0, 1)
    }

    /// Starts a step that is one of `count` steps with counts in its part of the first run. The first has index 0.
    pub fn start_nth(name: impl Into<String>, index: usize, count: usize) -> Self {
        let name = name.into();
        let id = Some(display().start(&name, (index, count)));
        Self { id, name, started: Instant::now(), finished: false }
    }

    /// Starts a step that is usually instant: it prints nothing unless it is slow.
    pub fn quiet(name: impl Into<String>) -> Self {
        Self { id: None, name: name.into(), started: Instant::now(), finished: false }
    }

    /// Shows how many of its crates are built.
    pub fn update(&self, done: u32, all: u32) {
        if let Some(id) = self.id {
            display().update(id, done, all);
        }
    }

    pub fn done(self) {
        self.done_with("");
    }

    pub fn done_with(mut self, remark: &str) {
        self.finished = true;
        let took = self.started.elapsed();
        // Without the line on a terminal, the start was printed.
        let was_printed = self.id.is_some() && !status_line::is_available();
        let is_worth_a_line = was_printed || took >= NOTHING_TO_DO || !remark.is_empty();
        let remark = if remark.is_empty() { String::new() } else { format!(" ({remark})") };
        display().end(self.id, is_worth_a_line.then(|| format!("{:>6}  {}{remark}", seconds(took), self.name)));
    }
}

impl Drop for ProgressStep {
    fn drop(&mut self) {
        if !self.finished {
            let line = format!("{:>6}  {}: not finished", seconds(self.started.elapsed()), self.name);
            display().end(self.id, Some(line));
        }
    }
}

/// Starts to show the share of the first run and the time left.
pub fn begin_first_run() {
    display().first_run = Some((FirstRun::new(), Instant::now()));
}

pub fn end_first_run() {
    display().first_run = None;
}

/// Runs a part of the first run. Steps that it starts on this thread advance it.
pub fn part<T>(part: FirstRunPart, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    PART.set(Some(part));
    let result = work();
    PART.set(None);
    if let Some((run, _)) = &mut display().first_run {
        if began.elapsed() < NOTHING_TO_DO {
            run.remove(part);
        } else {
            run.advance(part, 1.0);
        }
    }
    result
}

/// Prints a note outside any step.
pub fn note(text: &str) {
    print(|| eprintln!("        {text}"));
}

/// Prints above the line of the running steps. The closure must not use this module.
pub fn print(print: impl FnOnce()) {
    display().line.print_above(print);
}

/// Makes room for a program that prints to the terminal itself.
pub fn leave_line() {
    display().line.leave();
}

/// Formats a duration as `7.3s`, or as `2m05s` from one minute on.
pub fn seconds(took: Duration) -> String {
    if took >= Duration::from_secs(60) {
        format!("{}m{:02}s", took.as_secs() / 60, took.as_secs() % 60)
    } else {
        format!("{:.1}s", took.as_secs_f64())
    }
}

struct RunningStep {
    id: u64,
    name: String,
    part: Option<FirstRunPart>,
    /// Index and number of the steps in its part.
    place: (usize, usize),
    /// Crates: built, and all.
    crates: Option<(u32, u32)>,
}

impl RunningStep {
    fn fraction(&self) -> Option<f64> {
        self.crates.filter(|(_, all)| *all > 0).map(|(done, all)| f64::from(done) / f64::from(all))
    }

    fn text(&self) -> String {
        match self.crates {
            Some((done, all)) => format!("{}: {done} of {all} crates", self.name),
            None => self.name.clone(),
        }
    }
}

/// All running steps.
struct ProgressDisplay {
    steps: Vec<RunningStep>,
    last_id: u64,
    first_run: Option<(FirstRun, Instant)>,
    line: StatusLine,
}

fn display() -> MutexGuard<'static, ProgressDisplay> {
    DISPLAY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProgressDisplay {
    fn start(&mut self, name: &str, place: (usize, usize)) -> u64 {
        self.last_id += 1;
        let (id, name) = (self.last_id, name.to_owned());
        self.steps.push(RunningStep { id, name, part: PART.get(), place, crates: None });
        let text = self.text();
        self.line.announce(text);
        id
    }

    fn update(&mut self, id: u64, done: u32, all: u32) {
        let Some(step) = self.steps.iter_mut().find(|step| step.id == id) else { return };
        step.crates = Some((done, all));
        if let (Some((run, _)), Some(part), Some(fraction)) = (&mut self.first_run, step.part, step.fraction()) {
            let (index, count) = step.place;
            run.advance(part, (index as f64 + fraction) / count as f64);
        }
        let text = self.text();
        self.line.update(text);
    }

    fn end(&mut self, id: Option<u64>, line: Option<String>) {
        self.steps.retain(|step| Some(step.id) != id);
        let text = self.text();
        self.line.update(text);
        if let Some(line) = line {
            self.line.print_above(|| eprintln!("{line}"));
        }
    }

    /// The running steps, for example ` 34 %  build the server: 231 of 512 crates, about 3 min left`.
    fn text(&self) -> String {
        if self.steps.is_empty() {
            return String::new();
        }
        let run = self.first_run.as_ref().filter(|(_, began)| began.elapsed() >= NOTHING_TO_DO);
        let share = match run {
            Some((run, _)) => Some(run.share()),
            None => self.steps.iter().find_map(RunningStep::fraction),
        };
        let share = share.map_or("…".to_owned(), |share| format!("{:.0} %", (share * 100.0).floor()));
        let left = run.map(|(run, began)| format!(", {}", first_run::format_time_left(run.time_left(began.elapsed()))));
        let steps: Vec<String> = self.steps.iter().map(RunningStep::text).collect();
        format!("{share:>6}  {}{}", steps.join(" · "), left.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, crates: Option<(u32, u32)>) -> RunningStep {
        RunningStep { id: 1, name: name.to_owned(), part: Some(FirstRunPart::Server), place: (0, 1), crates }
    }

    fn display(steps: Vec<RunningStep>, first_run: Option<(FirstRun, Instant)>) -> ProgressDisplay {
        ProgressDisplay { steps, last_id: 1, first_run, line: StatusLine::new() }
    }

    #[test]
    fn a_step_shows_its_own_share_and_all_running_steps_are_named() {
        assert_eq!(display(Vec::new(), None).text(), "");
        assert_eq!(display(vec![step("install Node", None)], None).text(), "     …  install Node");
        let steps = vec![step("build the server", Some((231, 512))), step("compile the client", Some((1, 9)))];
        let expected = "  45 %  build the server: 231 of 512 crates · compile the client: 1 of 9 crates";
        assert_eq!(display(steps, None).text(), expected);
        assert_eq!(display(vec![step("build", Some((0, 0)))], None).text(), "     …  build: 0 of 0 crates");
    }

    #[test]
    fn a_step_of_the_first_run_shows_the_share_of_the_whole_and_the_time_left() {
        let began = Instant::now().checked_sub(Duration::from_secs(150)).expect("the machine runs for minutes");
        let mut run = FirstRun::of(&[(FirstRunPart::Server, 300.0), (FirstRunPart::Client, 100.0)]);
        run.advance(FirstRunPart::Server, 0.5);
        let display = display(vec![step("build the server", Some((256, 512)))], Some((run, began)));
        assert_eq!(display.text(), "  37 %  build the server: 256 of 512 crates, about 4 min left");
    }
}
