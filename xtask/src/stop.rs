//! Stop requests by Ctrl-C, SIGTERM or a closed terminal: a flag that every wait loop checks, and the guard
//! that ends the started programs if this process dies.

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, test_kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::command::signal_group;

/// Exit status after a second Ctrl-C: the process exits at once, and the guard ends the programs.
const FORCED_EXIT_STATUS: i32 = 130;

pub struct Stop {
    is_requested: Arc<AtomicBool>,
    guard: Mutex<Guard>,
}

impl Stop {
    /// Installs the signal handlers and starts the guard.
    pub fn listen() -> Result<Self> {
        let is_requested = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Order matters: for the first signal the flag is unset here, and it is set below.
            flag::register_conditional_shutdown(signal, FORCED_EXIT_STATUS, Arc::clone(&is_requested))?;
            flag::register(signal, Arc::clone(&is_requested))?;
        }
        Ok(Self { is_requested, guard: Mutex::new(Guard::start()?) })
    }

    pub fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Relaxed)
    }

    /// Fails after a stop request; for use between two steps.
    pub fn check(&self) -> Result<()> {
        if self.is_requested() {
            bail!("stopped on request");
        }
        Ok(())
    }

    /// Registers a started process group; `stop_signal` ends it gracefully.
    pub fn register(&self, leader: u32, stop_signal: Signal) -> Result<()> {
        self.send_to_guard(&format!("+ {leader} {}\n", stop_signal.as_raw()))
    }

    pub fn unregister(&self, leader: u32) -> Result<()> {
        self.send_to_guard(&format!("- {leader}\n"))
    }

    fn send_to_guard(&self, line: &str) -> Result<()> {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        let pipe = guard.pipe.as_mut().context("the guard has no pipe")?;
        pipe.write_all(line.as_bytes()).and_then(|()| pipe.flush()).context("the guard has ended")
    }
}

/// Time for a group to end after its stop signal, before SIGKILL; Postgres writes its checkpoint in it.
pub const GRACE_PERIOD: Duration = Duration::from_secs(20);

/// Ends all started programs even when this process is killed with SIGKILL.
///
/// The guard is a second process of this program that reads a pipe. The parent registers process groups when they start
/// and unregisters them when they end. When the pipe closes, for any reason, the guard ends the registered groups, newest
/// first. A parent-death signal would be weaker: it needs unsafe code, is lost across `setpriv`, and exists on Linux only.
struct Guard {
    process: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    fn start() -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.arg("guard").stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let mut process = command.spawn().context("cannot start the guard")?;
        let pipe = process.stdin.take();
        Ok(Self { process, pipe })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.process.wait();
    }
}

/// Runs the guard process: reads the pipe until it closes, then ends the registered groups.
pub fn guard() {
    let mut groups: Vec<(u32, Signal)> = Vec::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let mut words = line.split(' ');
        let sign = words.next();
        let Some(leader) = words.next().and_then(|word| word.parse().ok()) else { continue };
        groups.retain(|(known, _)| *known != leader);
        if sign == Some("+") {
            let stop_signal = words.next().and_then(|word| word.parse().ok()).and_then(Signal::from_named_raw);
            groups.push((leader, stop_signal.unwrap_or(Signal::TERM)));
        }
    }
    for (leader, stop_signal) in groups.into_iter().rev() {
        end_group(leader, stop_signal);
    }
}

/// Ends a group with its stop signal, then with SIGKILL.
fn end_group(leader: u32, stop_signal: Signal) {
    signal_group(leader, stop_signal);
    let began = Instant::now();
    while is_alive(leader) && began.elapsed() < GRACE_PERIOD {
        std::thread::sleep(Duration::from_millis(20));
    }
    if is_alive(leader) {
        signal_group(leader, Signal::KILL);
    }
}

fn is_alive(leader: u32) -> bool {
    i32::try_from(leader).ok().and_then(Pid::from_raw).is_some_and(|pid| test_kill_process_group(pid).is_ok())
}
