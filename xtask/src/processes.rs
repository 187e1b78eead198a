//! Long-running programs: start, output, and shutdown in order.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::command::signal_group;
use crate::progress::{self, ProgressStep};
use crate::stop::{GRACE_PERIOD, Stop};

const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// Log lines shown when a program ends unexpectedly.
const LAST_LINES: usize = 30;

pub enum Output {
    /// Standard output, each line prefixed with the program's name.
    Shown,
    /// This file, which is truncated.
    File(PathBuf),
}

struct Running {
    name: String,
    child: Child,
    stop_signal: Signal,
    log: Option<PathBuf>,
}

/// The running programs. Dropping the value ends all, last started first.
pub struct Processes<'a> {
    running: Vec<Running>,
    stop: &'a Stop,
}

impl<'a> Processes<'a> {
    pub fn new(stop: &'a Stop) -> Self {
        Self { running: Vec::new(), stop }
    }

    /// Starts a program in a separate process group. `stop_signal` ends it gracefully.
    pub fn start(&mut self, name: &str, command: &mut Command, stop_signal: Signal, output: Output) -> Result<()> {
        command.stdin(Stdio::null()).process_group(0);
        let log = match output {
            Output::Shown => {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                None
            }
            Output::File(path) => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
                command.stdout(file.try_clone()?).stderr(file);
                Some(path)
            }
        };
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        self.stop.register(child.id(), stop_signal)?;
        if let Some(out) = child.stdout.take() {
            show_lines(name, out);
        }
        if let Some(err) = child.stderr.take() {
            show_lines(name, err);
        }
        self.running.push(Running { name: name.to_owned(), child, stop_signal, log });
        Ok(())
    }

    /// Fails when any program has ended unexpectedly.
    pub fn check(&mut self) -> Result<()> {
        for program in &mut self.running {
            if let Some(status) = program.child.try_wait()? {
                let log = program.log.as_deref().map(last_lines).unwrap_or_default();
                bail!("{} ended unexpectedly with {status}\n{log}", program.name);
            }
        }
        Ok(())
    }

    /// Waits until `ready` returns `true`; fails on a timeout or when a program ends.
    pub fn wait_until(&mut self, what: &str, timeout: Duration, mut ready: impl FnMut() -> bool) -> Result<()> {
        let began = Instant::now();
        while !ready() {
            self.stop.check()?;
            self.check()?;
            if began.elapsed() > timeout {
                bail!("{what} is not ready after {} s", timeout.as_secs());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    pub fn end(&mut self, name: &str) -> Result<()> {
        if let Some(index) = self.running.iter().position(|program| program.name == name) {
            let program = self.running.remove(index);
            self.finish(program)?;
        }
        Ok(())
    }

    /// Ends all programs, last started first: servers before their stores.
    pub fn end_all(&mut self) {
        while let Some(program) = self.running.pop() {
            let step = ProgressStep::quiet(format!("stop {}", program.name));
            // The guard's pipe fails only when the guard is dead; the other programs must still be ended.
            let _ = self.finish(program);
            step.done();
        }
    }

    fn finish(&mut self, mut program: Running) -> Result<()> {
        let leader = program.child.id();
        signal_group(leader, program.stop_signal);
        let began = Instant::now();
        while program.child.try_wait()?.is_none() {
            if began.elapsed() > GRACE_PERIOD {
                signal_group(leader, Signal::KILL);
                program.child.wait()?;
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        // End the remaining processes of the group.
        signal_group(leader, Signal::KILL);
        self.stop.unregister(leader)
    }
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        self.end_all();
    }
}

fn show_lines(name: &str, pipe: impl Read + Send + 'static) {
    let name = name.to_owned();
    // The thread ends when the program closes the pipe.
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            progress::print(|| println!("{name:>9} | {}", String::from_utf8_lossy(&line)));
        }
    });
}

/// Returns the last lines of a log, for a message.
fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    lines[from..].join("\n")
}
