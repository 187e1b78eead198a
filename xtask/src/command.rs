//! Runs other programs to their end, and stays able to stop them half-way.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::stop::Stop;

/// How often a running program is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(30);

/// Runs it with its output shown; fails unless it succeeds.
pub fn run(command: &mut Command, stop: &Stop) -> Result<()> {
    let status = status(command, stop)?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs it with its output shown; the caller judges the status.
pub fn status(command: &mut Command, stop: &Stop) -> Result<ExitStatus> {
    // A group of its own: Ctrl-C reaches us alone, and one signal from us ends the whole family.
    let child = command.stdin(Stdio::null()).process_group(0).spawn();
    let mut child = child.with_context(|| format!("cannot start {}", shown(command)))?;
    wait(&mut child, stop).with_context(|| shown(command))
}

/// Runs it with its standard output shown line by line and handed to `see` as well.
pub fn status_seeing(command: &mut Command, stop: &Stop, mut see: impl FnMut(&str)) -> Result<ExitStatus> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0).spawn();
    let mut child = child.with_context(|| format!("cannot start {}", shown(command)))?;
    let lines = child.stdout.take().context("its output is a pipe")?;
    let reader = BufReader::new(lines);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&mut child, stop));
        for line in reader.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            see(&line);
        }
        waiter.join().map_err(|_| anyhow::anyhow!("the waiting thread panicked"))?
    })
}

/// Its standard output as text; fails with its standard error unless it succeeds.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", shown(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs it silently; its output appears only when it fails.
pub fn run_silently(command: &mut Command, stop: &Stop) -> Result<()> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn();
    let mut child = child.with_context(|| format!("cannot start {}", shown(command)))?;
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (status, said) = std::thread::scope(|scope| {
        let out = scope.spawn(move || read_all(out.as_mut()));
        let err = scope.spawn(move || read_all(err.as_mut()));
        let status = wait(&mut child, stop);
        let said = format!("{}{}", out.join().unwrap_or_default(), err.join().unwrap_or_default());
        (status, said)
    });
    let status = status?;
    if !status.success() {
        bail!("{} ended with {status}:\n{}", shown(command), said.trim());
    }
    Ok(())
}

fn read_all(pipe: Option<&mut impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What could be read is what is shown; the exit status is the judge.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn wait(child: &mut Child, stop: &Stop) -> Result<ExitStatus> {
    stop.began(child.id(), Signal::TERM)?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if stop.asked() {
            signal_group(child.id(), Signal::TERM);
            break child.wait()?;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    stop.ended(child.id())?;
    stop.check()?;
    Ok(status)
}

/// Signals a process group, named by its leader. One that is gone already is no error.
pub fn signal_group(leader: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, signal);
    }
}

/// The first of these programs found in `PATH` or in the given folders.
pub fn find(names: &[&str], folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let everywhere: Vec<PathBuf> = std::env::split_paths(&path).chain(folders.iter().cloned()).collect();
    names.iter().find_map(|name| everywhere.iter().map(|folder| folder.join(name)).find(|file| is_program(file)))
}

/// Whether this file exists and may be executed.
pub fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// A command as a person would type it, for messages. Settings are left out: some are secret.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
