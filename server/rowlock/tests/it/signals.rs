//! Signals to other processes, sent without the program `kill`: a minimal Debian lacks it.

use rustix::process::{Pid, kill_process};

pub use rustix::process::Signal;

pub fn send_signal(process: u32, signal: Signal) -> rustix::io::Result<()> {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    kill_process(id.expect("a process id"), signal)
}
