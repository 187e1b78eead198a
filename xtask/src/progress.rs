//! Prints steps and their duration on standard error; standard output is for results.

use std::time::{Duration, Instant};

/// Steps shorter than this print no line.
const MIN_PRINTED: Duration = Duration::from_millis(500);

/// A running step; prints its duration when finished or dropped.
pub struct ProgressStep {
    name: String,
    started: Instant,
    announced: bool,
    finished: bool,
}

impl ProgressStep {
    /// Starts a step that may take more than a second or two, and prints its name.
    pub fn start(name: impl Into<String>) -> Self {
        let name = name.into();
        eprintln!("     …  {name}");
        Self { name, started: Instant::now(), announced: true, finished: false }
    }

    /// Starts a step that is usually instant: it prints nothing unless it is slow.
    pub fn quiet(name: impl Into<String>) -> Self {
        Self { name: name.into(), started: Instant::now(), announced: false, finished: false }
    }

    pub fn done(self) {
        self.done_with("");
    }

    pub fn done_with(mut self, remark: &str) {
        self.finished = true;
        let took = self.started.elapsed();
        if self.announced || took >= MIN_PRINTED || !remark.is_empty() {
            let remark = if remark.is_empty() { String::new() } else { format!(" ({remark})") };
            eprintln!("{:>6}  {}{remark}", seconds(took), self.name);
        }
    }
}

impl Drop for ProgressStep {
    fn drop(&mut self) {
        if !self.finished {
            eprintln!("{:>6}  {}: not finished", seconds(self.started.elapsed()), self.name);
        }
    }
}

/// Prints a note outside any step.
pub fn note(text: &str) {
    eprintln!("        {text}");
}

/// Formats a duration as `7.3s`, or as `2m05s` from one minute on.
pub fn seconds(took: Duration) -> String {
    if took >= Duration::from_secs(60) {
        format!("{}m{:02}s", took.as_secs() / 60, took.as_secs() % 60)
    } else {
        format!("{:.1}s", took.as_secs_f64())
    }
}
