//! Says what is being done and how long it took, on standard error, so that standard output stays
//! free for results.

use std::time::{Duration, Instant};

/// A step shorter than this leaves no line of its own.
const WORTH_A_LINE: Duration = Duration::from_millis(500);

/// A piece of work under way; tells its time when finished or dropped.
pub struct Step {
    name: String,
    started: Instant,
    announced: bool,
    finished: bool,
}

impl Step {
    /// Announces work that may take more than a second or two.
    pub fn start(name: impl Into<String>) -> Self {
        let name = name.into();
        eprintln!("     …  {name}");
        Self { name, started: Instant::now(), announced: true, finished: false }
    }

    /// Begins work that is usually instant: silent unless it was not.
    pub fn quiet(name: impl Into<String>) -> Self {
        Self { name: name.into(), started: Instant::now(), announced: false, finished: false }
    }

    /// The work is done.
    pub fn done(self) {
        self.done_with("");
    }

    /// The work is done, with a remark worth reading.
    pub fn done_with(mut self, remark: &str) {
        self.finished = true;
        let took = self.started.elapsed();
        if self.announced || took >= WORTH_A_LINE || !remark.is_empty() {
            let remark = if remark.is_empty() { String::new() } else { format!(" ({remark})") };
            eprintln!("{:>6}  {}{remark}", seconds(took), self.name);
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if !self.finished {
            eprintln!("{:>6}  {}: not finished", seconds(self.started.elapsed()), self.name);
        }
    }
}

/// Something the reader should know, outside any step.
pub fn note(text: &str) {
    eprintln!("        {text}");
}

/// `7.3s`, or `2m05s` from one minute on.
pub fn seconds(took: Duration) -> String {
    if took >= Duration::from_secs(60) {
        format!("{}m{:02}s", took.as_secs() / 60, took.as_secs() % 60)
    } else {
        format!("{:.1}s", took.as_secs_f64())
    }
}
