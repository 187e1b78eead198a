//! Runs other programs to completion, unless a stop is requested.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::progress;
use crate::stop::Stop;

const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// Runs a command with visible output; fails unless it succeeds.
pub fn run(command: &mut Command, stop: &Stop) -> Result<()> {
    let status = status(command, stop)?;
    if !status.success() {
        bail!("{} ended with {status}", command_line(command));
    }
    Ok(())
}

/// Runs a command with visible output and returns its status.
pub fn status(command: &mut Command, stop: &Stop) -> Result<ExitStatus> {
    progress::leave_line();
    let mut child = spawn(command)?;
    wait(&mut child, stop).with_context(|| command_line(command))
}

/// Runs a command, prints its standard output line by line and passes each line to `on_line`.
pub fn status_with_lines(command: &mut Command, stop: &Stop, on_line: impl FnMut(&str)) -> Result<ExitStatus> {
    progress::leave_line();
    status_while_reading(command.stdout(Stdio::piped()), stop, |output| print_lines(output, on_line), drop)
}

/// Prints standard output line by line and passes each line to `on_line`.
pub fn print_lines(output: Option<ChildStdout>, mut on_line: impl FnMut(&str)) {
    let Some(output) = output else { return };
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        progress::print(|| println!("{line}"));
        on_line(&line);
    }
}

/// Runs a command while its pipes are read, standard error on a second thread. A reader without a pipe gets `None`.
pub fn status_while_reading(
    command: &mut Command,
    stop: &Stop,
    read_output: impl FnOnce(Option<ChildStdout>),
    read_errors: impl FnOnce(Option<ChildStderr>) + Send,
) -> Result<ExitStatus> {
    let mut child = spawn(command)?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let status = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&mut child, stop));
        scope.spawn(move || read_errors(errors));
        read_output(output);
        waiter.join().map_err(|_| anyhow::anyhow!("the waiting thread panicked"))?
    });
    status.with_context(|| command_line(command))
}

/// Runs a command and returns its standard output; fails with its standard error unless it succeeds.
pub fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", command_line(command)))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", command_line(command), output.status, text.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command silently; its output is part of the error when it fails.
pub fn run_silently(command: &mut Command, stop: &Stop) -> Result<()> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut output, mut errors) = (String::new(), String::new());
    let status = status_while_reading(command, stop, |pipe| output = read_all(pipe), |pipe| errors = read_all(pipe))?;
    if !status.success() {
        bail!("{} ended with {status}:\n{}", command_line(command), format!("{output}{errors}").trim());
    }
    Ok(())
}

/// Starts a command in a separate process group: Ctrl-C reaches only this process, and one signal ends all children.
fn spawn(command: &mut Command) -> Result<Child> {
    let child = command.stdin(Stdio::null()).process_group(0).spawn();
    child.with_context(|| format!("cannot start {}", command_line(command)))
}

fn read_all(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // A read error only shortens the message; the exit status decides.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn wait(child: &mut Child, stop: &Stop) -> Result<ExitStatus> {
    stop.register(child.id(), Signal::TERM)?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if stop.is_requested() {
            signal_group(child.id(), Signal::TERM);
            break child.wait()?;
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    stop.unregister(child.id())?;
    stop.check()?;
    Ok(status)
}

/// Signals a process group, named by its leader. A group that already ended is no error.
pub fn signal_group(leader: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, signal);
    }
}

/// Finds the first of these programs in `PATH` or in the given folders.
pub fn find(names: &[&str], folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders_to_search: Vec<PathBuf> = std::env::split_paths(&path).chain(folders.iter().cloned()).collect();
    names.iter().find_map(|name| folders_to_search.iter().map(|folder| folder.join(name)).find(|file| is_program(file)))
}

pub fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Formats a command line for messages, without environment variables: some are secret.
pub fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
