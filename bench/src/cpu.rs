//! CPU time and memory of processes, read from `/proc`. Linux only.

use std::fs;

use anyhow::{Context, Result};

/// Clock ticks of `/proc/PID/stat` a second; the same on every Linux there is.
const TICKS_PER_S: u64 = 100;
const NANOS_PER_S: u64 = 1_000_000_000;

/// CPU time of some processes at one instant.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    nanos: u64,
}

impl Cpu {
    /// CPU time of these processes so far, ended threads included. Resolution: 10 ms.
    pub fn of(pids: &[u32]) -> Result<Self> {
        let mut nanos = 0;
        for pid in pids {
            nanos += ticks(*pid)? * (NANOS_PER_S / TICKS_PER_S);
        }
        Ok(Self { nanos })
    }

    /// CPU time of the living threads of a process so far, in nanoseconds. For processes that neither
    /// start nor end threads, such as Redis.
    pub fn of_threads(pid: u32) -> Result<Self> {
        let mut nanos = 0;
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            // The file is missing when the thread ends during the scan.
            if let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) {
                nanos += text.split(' ').next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
            }
        }
        Ok(Self { nanos })
    }

    pub const fn micros_since(&self, earlier: &Self) -> f64 {
        self.nanos.saturating_sub(earlier.nanos) as f64 / 1e3
    }
}

/// User and system time of a process, in ticks. The process name may contain spaces and brackets, so the last `)` ends it.
fn ticks(pid: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid} is gone"))?;
    let numbers: Vec<&str> = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let number = |place: usize| numbers.get(place).and_then(|word| word.parse::<u64>().ok());
    let (user, system) =
        number(11).zip(number(12)).with_context(|| format!("/proc/{pid}/stat has an unknown format"))?;
    Ok(user + system)
}

pub fn children_of(parent: u32) -> Vec<u32> {
    let Ok(all) = fs::read_dir("/proc") else { return vec![] };
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

pub fn parent_of(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Memory of a process, bytes: proportional set size (Pss), or resident set size (Rss) where the
/// kernel does not report Pss.
pub fn memory(pid: u32) -> Result<u64> {
    let find = |file: &str, name: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.to_owned();
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let kib = find("smaps_rollup", "Pss").or_else(|| find("status", "VmRSS"));
    Ok(kib.with_context(|| format!("the memory of process {pid} cannot be read"))? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_this_process_are_readable_and_grow() {
        let me = std::process::id();
        let before = Cpu::of_threads(me).expect("threads");
        let mut sum = 0_u64;
        for number in 0..30_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
        assert!(Cpu::of_threads(me).expect("threads").micros_since(&before) > 1_000.0);
        assert!(Cpu::of(&[me]).is_ok());
        assert!(memory(me).expect("memory") > 500_000);
        let parent = parent_of(me).expect("a parent");
        assert!(children_of(parent).contains(&me));
        assert!(Cpu::of(&[u32::MAX]).is_err());
    }
}
