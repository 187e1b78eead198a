//! CPU time that the host of a virtual machine gave to others, read from `/proc/stat`. Linux only.

use anyhow::{Context, Result};

/// Fields of the first line after its name: user, nice, system, idle, iowait, irq, softirq, steal. Those of guests, which
/// follow, are part of user and nice.
const FIELDS: usize = 8;
const STEAL: usize = 7;

/// CPU time of the whole machine at one instant, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineTime {
    all: u64,
    stolen: u64,
}

impl MachineTime {
    pub fn read() -> Result<Self> {
        let text = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
        Self::parse(&text).context("/proc/stat has an unknown format")
    }

    fn parse(text: &str) -> Option<Self> {
        let words = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks: Vec<u64> = words.take(FIELDS).map(|word| word.parse().ok()).collect::<Option<_>>()?;
        Some(Self { all: ticks.iter().sum(), stolen: *ticks.get(STEAL)? })
    }

    /// Returns the stolen share of the time since an earlier reading.
    pub const fn stolen_since(&self, earlier: &Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all);
        if all == 0 { 0.0 } else { self.stolen.saturating_sub(earlier.stolen) as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stolen_share_of_two_readings_is_that_of_the_time_between() {
        let read = |text: &str| MachineTime::parse(text).expect("readable");
        let before = read("cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 1 2 3 4 5 6 7 8 9 0");
        let after = read("cpu  150 0 70 900 10 0 0 70 9 0");
        assert_eq!(before, MachineTime { all: 1_000, stolen: 40 });
        assert!((after.stolen_since(&before) - 0.15).abs() < 1e-9);
        assert!(before.stolen_since(&before).abs() < f64::EPSILON);
        assert_eq!(MachineTime::parse("cpu  1 2 3"), None);
        assert!(MachineTime::read().is_ok());
    }
}
