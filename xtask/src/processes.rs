//! The long-running programs we start: their output, their end, and the order of it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::command::signal_group;
use crate::guard::POLITE;
use crate::progress::Step;
use crate::stop::Stop;

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Lines of a log shown when its program ends unasked.
const LAST_LINES: usize = 30;

/// Where a program's output goes.
pub enum Output {
    /// To our standard output, each line behind the program's name.
    Shown,
    /// Into this file, which begins anew.
    File(PathBuf),
}

struct Running {
    name: String,
    child: Child,
    polite: Signal,
    log: Option<PathBuf>,
}

/// Everything running for us. Dropping it ends all, last started first.
pub struct Processes<'a> {
    running: Vec<Running>,
    stop: &'a Stop,
}

impl<'a> Processes<'a> {
    /// None yet.
    pub fn new(stop: &'a Stop) -> Self {
        Self { running: Vec::new(), stop }
    }

    /// Starts a program in a process group of its own. `polite` is the signal that ends it in good order.
    pub fn start(&mut self, name: &str, command: &mut Command, polite: Signal, output: Output) -> Result<()> {
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
        self.stop.began(child.id(), polite)?;
        if let Some(out) = child.stdout.take() {
            show_lines(name, out);
        }
        if let Some(err) = child.stderr.take() {
            show_lines(name, err);
        }
        self.running.push(Running { name: name.to_owned(), child, polite, log });
        Ok(())
    }

    /// Fails once any of them has ended without being asked to.
    pub fn check(&mut self) -> Result<()> {
        for program in &mut self.running {
            if let Some(status) = program.child.try_wait()? {
                let said = program.log.as_deref().map(last_lines).unwrap_or_default();
                bail!("{} ended by itself with {status}\n{said}", program.name);
            }
        }
        Ok(())
    }

    /// Waits until `ready` says yes, while everything keeps running.
    pub fn wait_until(&mut self, what: &str, within: Duration, mut ready: impl FnMut() -> bool) -> Result<()> {
        let began = Instant::now();
        while !ready() {
            self.stop.check()?;
            self.check()?;
            if began.elapsed() > within {
                bail!("{what} is not ready after {} s", within.as_secs());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Ends one program, if it runs.
    pub fn end(&mut self, name: &str) -> Result<()> {
        if let Some(place) = self.running.iter().position(|program| program.name == name) {
            let program = self.running.remove(place);
            self.finish(program)?;
        }
        Ok(())
    }

    /// Ends all, last started first: servers before the stores they write to.
    pub fn end_all(&mut self) {
        while let Some(program) = self.running.pop() {
            let step = Step::quiet(format!("stop {}", program.name));
            // The guard's pipe can only fail when the guard is dead; ending the rest matters more.
            let _ = self.finish(program);
            step.done();
        }
    }

    fn finish(&mut self, mut program: Running) -> Result<ExitStatus> {
        let leader = program.child.id();
        signal_group(leader, program.polite);
        let began = Instant::now();
        let status = loop {
            if let Some(status) = program.child.try_wait()? {
                break status;
            }
            if began.elapsed() > POLITE {
                signal_group(leader, Signal::KILL);
                break program.child.wait()?;
            }
            std::thread::sleep(LOOK_EVERY);
        };
        // Whatever the leader left behind in its group.
        signal_group(leader, Signal::KILL);
        self.stop.ended(leader)?;
        Ok(status)
    }
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        self.end_all();
    }
}

fn show_lines(name: &str, pipe: impl Read + Send + 'static) {
    let name = name.to_owned();
    // Ends by itself when the program closes its end.
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            println!("{name:>9} | {}", String::from_utf8_lossy(&line));
        }
    });
}

/// The end of a log, for a message.
pub fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    lines[from..].join("\n")
}
