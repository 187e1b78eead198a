//! The password of an account that is made at the command line.

use std::io::IsTerminal;

use domain::api::accounts::Password;

/// Reads it from the environment, or prompts for it. Never from an argument, which all users of the machine can read.
pub fn password() -> anyhow::Result<Password> {
    if let Ok(password) = std::env::var("ROWLOCK_PASSWORD") {
        return Ok(Password::new(password));
    }
    anyhow::ensure!(std::io::stdin().is_terminal(), "set ROWLOCK_PASSWORD, or run this at a terminal to be asked");
    let (first, again) = (asked("Password: ")?, asked("Once more: ")?);
    anyhow::ensure!(first == again, "these are two different passwords; nothing was done");
    Ok(Password::new(first))
}

/// A line from the terminal that does not show it.
fn asked(what: &str) -> anyhow::Result<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    eprint!("{what}");
    let terminal = std::io::stdin();
    let usual = tcgetattr(&terminal)?;
    let mut silent = usual.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    let mut line = String::new();
    let read = terminal.read_line(&mut line);
    tcsetattr(&terminal, OptionalActions::Now, &usual)?;
    eprintln!();
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
