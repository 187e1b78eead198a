//! CPU time and memory of processes, read from `/proc`. Linux only.

use std::collections::HashMap;
use std::fs;

use anyhow::{Context, Result};

/// Clock ticks of `/proc/PID/stat` a second; the same on every Linux there is.
const TICKS_PER_S: u64 = 100;
const NANOS_PER_S: u64 = 1_000_000_000;
/// Fields of `/proc/PID/stat` after the process name: user and system time of the process itself.
const OWN_TIME: [usize; 2] = [11, 12];
/// The same, and those of its children that ended and were waited for.
const TIME_WITH_ENDED_CHILDREN: [usize; 4] = [11, 12, 13, 14];

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
            nanos += ticks(*pid, &OWN_TIME)? * (NANOS_PER_S / TICKS_PER_S);
        }
        Ok(Self { nanos })
    }

    /// CPU time of a process and all its descendants so far, ended ones included. Resolution: 10 ms a process.
    pub fn of_tree(root: u32) -> Result<Self> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for pid in all_processes() {
            if let Some(parent) = parent_of(pid) {
                children.entry(parent).or_default().push(pid);
            }
        }
        let mut sum = ticks(root, &TIME_WITH_ENDED_CHILDREN)?;
        let mut open = children.remove(&root).unwrap_or_default();
        while let Some(pid) = open.pop() {
            // A descendant that ended meanwhile is in its parent's time at the next reading.
            sum += ticks(pid, &TIME_WITH_ENDED_CHILDREN).unwrap_or(0);
            open.extend(children.remove(&pid).unwrap_or_default());
        }
        Ok(Self { nanos: sum * (NANOS_PER_S / TICKS_PER_S) })
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

/// Sum of some time fields of a process, in ticks. The process name may contain spaces and brackets, so the last `)` ends
/// it.
fn ticks(pid: u32, fields: &[usize]) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid} is gone"))?;
    let numbers: Vec<&str> = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let number = |place: &usize| numbers.get(*place).and_then(|word| word.parse::<u64>().ok());
    let times: Option<Vec<u64>> = fields.iter().map(number).collect();
    Ok(times.with_context(|| format!("/proc/{pid}/stat has an unknown format"))?.into_iter().sum())
}

fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

pub fn children_of(parent: u32) -> Vec<u32> {
    all_processes().filter(|pid| parent_of(*pid) == Some(parent)).collect()
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

    #[test]
    fn a_tree_has_the_time_of_a_child_while_it_runs_and_after_it_ended() {
        const SPENT_MICROS: f64 = 50_000.0;
        // A subshell computes and ends; its parent then waits for the end of its input.
        let script = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); read line";
        let mut shell = std::process::Command::new("sh");
        let mut shell = shell.args(["-c", script]).stdin(std::process::Stdio::piped()).spawn().expect("a shell");
        let spent = |cpu: Result<Cpu>| cpu.expect("the shell runs").micros_since(&Cpu::default());
        let root = shell.id();
        while spent(Cpu::of_tree(root)) < SPENT_MICROS || !children_of(root).is_empty() {
            std::thread::yield_now();
        }
        let (tree, parent) = (spent(Cpu::of_tree(root)), spent(Cpu::of(&[root])));
        drop(shell.stdin.take());
        shell.wait().expect("the shell ends");
        assert!(tree >= SPENT_MICROS && parent < SPENT_MICROS, "{tree} in all, {parent} of the parent");
        assert!(Cpu::of_tree(u32::MAX).is_err());
    }
}
