//! The durations of tests, for the slowest ones that `cargo xtask test` lists.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::LazyLock;
use std::time::Instant;

/// Names the file to append to. Without it, nothing is recorded.
const FILE: &str = "WORLDS_FILE";
/// Start of the recorded times.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Records when a world began and ended, in milliseconds, with the name of its test.
pub struct WorldDuration {
    test: String,
    began_ms: u128,
}

impl WorldDuration {
    /// Begins now. The test's name is that of the thread.
    pub fn start() -> Self {
        let test = std::thread::current().name().unwrap_or("unnamed").to_owned();
        Self { test, began_ms: START.elapsed().as_millis() }
    }
}

impl Drop for WorldDuration {
    fn drop(&mut self) {
        let Some(file) = std::env::var_os(FILE) else { return };
        let line = format!("{} {} {}\n", self.test, self.began_ms, START.elapsed().as_millis());
        // An unwritten line only shortens the list.
        let _ = OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
