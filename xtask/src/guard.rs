//! Ends what we started even when we are killed outright.
//!
//! The guard is this same program in a process of its own, listening on a pipe. Process groups are
//! announced to it when they start and when they have ended; when the pipe closes, for whatever
//! reason, it ends those that are left, newest first. An unsafe parent-death signal would do less: it
//! is lost across `setpriv`, and Linux alone has it.

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, test_kill_process_group};

use crate::command::signal_group;

/// A group has this long after the polite signal; Postgres writes its checkpoint in it.
pub const POLITE: Duration = Duration::from_secs(20);

/// The parent's end of the pipe.
pub struct Guard {
    process: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts the guard.
    pub fn start() -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.arg("guard").stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let mut process = command.spawn().context("cannot start the guard")?;
        let pipe = process.stdin.take();
        Ok(Self { process, pipe })
    }

    /// A group began; `polite` is the signal that ends it in good order.
    pub fn began(&mut self, leader: u32, polite: Signal) -> Result<()> {
        self.tell(&format!("+ {leader} {}\n", polite.as_raw()))
    }

    /// A group has ended.
    pub fn ended(&mut self, leader: u32) -> Result<()> {
        self.tell(&format!("- {leader}\n"))
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        let pipe = self.pipe.as_mut().context("the guard is listening")?;
        pipe.write_all(line.as_bytes()).and_then(|()| pipe.flush()).context("the guard is gone")
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.process.wait();
    }
}

/// The guard's own life: listen until the pipe closes, then end what is left.
pub fn listen() {
    let mut groups: Vec<(u32, Signal)> = Vec::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let mut words = line.split(' ');
        let sign = words.next();
        let Some(leader) = words.next().and_then(|word| word.parse().ok()) else { continue };
        groups.retain(|(known, _)| *known != leader);
        if sign == Some("+") {
            let polite = words.next().and_then(|word| word.parse().ok()).and_then(Signal::from_named_raw);
            groups.push((leader, polite.unwrap_or(Signal::TERM)));
        }
    }
    for (leader, polite) in groups.into_iter().rev() {
        end_group(leader, polite);
    }
}

/// Ends a group: politely, then by force.
pub fn end_group(leader: u32, polite: Signal) {
    signal_group(leader, polite);
    let began = Instant::now();
    while is_alive(leader) && began.elapsed() < POLITE {
        std::thread::sleep(Duration::from_millis(20));
    }
    if is_alive(leader) {
        signal_group(leader, Signal::KILL);
    }
}

fn is_alive(leader: u32) -> bool {
    i32::try_from(leader).ok().and_then(Pid::from_raw).is_some_and(|pid| test_kill_process_group(pid).is_ok())
}
