//! The share of the first run that is done, and the time that is left.

use std::time::Duration;

/// A part of the first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstRunPart {
    /// Packages of the system, and the private stores.
    Packages,
    Server,
    Client,
    /// The files of the client, made from its modules.
    Site,
    /// Schema, demo data, start of simulator and server.
    Rest,
}

/// Seconds that each part took on two cores with empty caches.
const SECONDS: [(FirstRunPart, f64); 5] = [
    (FirstRunPart::Packages, 30.0),
    (FirstRunPart::Server, 270.0),
    (FirstRunPart::Client, 130.0),
    (FirstRunPart::Site, 8.0),
    (FirstRunPart::Rest, 10.0),
];
/// Seconds of work on two cores that must be done before the pace of this machine is known.
const MIN_MEASURED: f64 = 10.0;

/// A part with its seconds on two cores, and the fraction that is done.
struct PartProgress {
    part: FirstRunPart,
    seconds: f64,
    fraction: f64,
}

/// The parts that have something to do.
pub struct FirstRun {
    parts: Vec<PartProgress>,
}

impl FirstRun {
    pub fn new() -> Self {
        Self::of(&SECONDS)
    }

    /// A run of these parts, with the seconds that each takes on two cores.
    pub fn of(seconds: &[(FirstRunPart, f64)]) -> Self {
        let parts = seconds.iter().map(|&(part, seconds)| PartProgress { part, seconds, fraction: 0.0 });
        Self { parts: parts.collect() }
    }

    /// Sets the fraction of a part that is done. It never decreases.
    pub fn advance(&mut self, part: FirstRunPart, fraction: f64) {
        for known in self.parts.iter_mut().filter(|known| known.part == part) {
            known.fraction = known.fraction.max(fraction).min(1.0);
        }
    }

    /// Removes a part that had nothing to do.
    pub fn remove(&mut self, part: FirstRunPart) {
        self.parts.retain(|known| known.part != part);
    }

    /// The share that is done, 0 to 1.
    pub fn share(&self) -> f64 {
        let (done, all) = self.seconds();
        if all > 0.0 { done / all } else { 1.0 }
    }

    /// The time left at the pace of this machine so far.
    pub fn time_left(&self, elapsed: Duration) -> Duration {
        let (done, all) = self.seconds();
        let pace = if done < MIN_MEASURED { 1.0 } else { elapsed.as_secs_f64() / done };
        Duration::from_secs_f64((all - done).max(0.0) * pace)
    }

    /// Seconds of work on two cores: done, and all.
    fn seconds(&self) -> (f64, f64) {
        let done = self.parts.iter().map(|known| known.seconds * known.fraction).sum();
        (done, self.parts.iter().map(|known| known.seconds).sum())
    }
}

/// Formats a time left: `about 3 min left`, `about 40 s left`.
pub fn format_time_left(left: Duration) -> String {
    let seconds = left.as_secs();
    if seconds >= 90 {
        format!("about {} min left", (seconds + 30) / 60)
    } else {
        format!("about {} s left", (seconds / 10 + 1) * 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [(FirstRunPart, f64); 3] =
        [(FirstRunPart::Packages, 30.0), (FirstRunPart::Server, 240.0), (FirstRunPart::Client, 130.0)];

    #[test]
    fn time_left_follows_the_pace_of_the_machine() {
        let mut run = FirstRun::of(&PARTS);
        assert_eq!((run.share(), run.time_left(Duration::from_secs(5)).as_secs()), (0.0, 400));
        run.advance(FirstRunPart::Packages, 1.0);
        run.advance(FirstRunPart::Server, 0.5);
        // 150 of 400 seconds, in twice the time.
        assert_eq!((run.share(), run.time_left(Duration::from_secs(300)).as_secs()), (0.375, 500));
    }

    #[test]
    fn a_part_with_nothing_to_do_is_removed_from_the_whole() {
        let mut run = FirstRun::of(&PARTS);
        run.remove(FirstRunPart::Packages);
        run.remove(FirstRunPart::Client);
        run.advance(FirstRunPart::Server, 0.25);
        run.advance(FirstRunPart::Server, 0.1);
        assert_eq!((run.share(), run.time_left(Duration::from_secs(60)).as_secs()), (0.25, 180));
        run.remove(FirstRunPart::Server);
        assert_eq!((run.share(), run.time_left(Duration::from_secs(60))), (1.0, Duration::ZERO));
    }

    #[test]
    fn time_left_is_rounded() {
        let words = |seconds| format_time_left(Duration::from_secs(seconds));
        assert_eq!([0, 39, 89].map(words), ["about 10 s left", "about 40 s left", "about 90 s left"]);
        assert_eq!([90, 149, 150].map(words), ["about 2 min left", "about 2 min left", "about 3 min left"]);
    }
}
