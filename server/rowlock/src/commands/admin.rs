//! `rowlock admin`: accounts of staff.

use std::io::IsTerminal;

use clap::Subcommand;
use domain::api::accounts::Password;
use identity::accounts;
use platform::clock;

use super::{Database, in_words};

#[derive(Subcommand)]
pub enum AdminCommand {
    /// Make an account a manager: of every theatre, or of those named. A new account's password is read from
    /// ROWLOCK_PASSWORD, or prompted for; an existing account keeps its password.
    Create {
        /// Address they sign in with.
        #[arg(long)]
        email: String,
        /// Their name.
        #[arg(long)]
        name: String,
        /// Slug of a theatre, for example `aurora-lisbon`; may be given several times.
        #[arg(long = "theatre")]
        theatres: Vec<String>,
    },
    /// Close an account: it cannot sign in any more, and its sessions end now.
    Close {
        /// Its address.
        #[arg(long)]
        email: String,
        /// Why, in one line.
        #[arg(long)]
        reason: String,
    },
}

pub async fn run(what: AdminCommand, database: &Database) -> anyhow::Result<()> {
    let pg = database.connect(2).await?;
    match what {
        AdminCommand::Create { email, name, theatres } => {
            let known = catalogue::Catalogue::new(pg.clone()).listings().theatres(None).await?;
            let theatres = if theatres.is_empty() { known.iter().map(|at| at.id.clone()).collect() } else { theatres };
            anyhow::ensure!(
                !theatres.is_empty(),
                "there is no theatre to be a manager of yet; `rowlock theatre create` makes one"
            );
            if let Some(unknown) = theatres.iter().find(|slug| !known.iter().any(|at| at.id == **slug)) {
                anyhow::bail!("there is no theatre {unknown}; known are those of /api/v1/cities/…/theatres");
            }
            let person = domain::api::Person { name, email };
            let password = password()?;
            let made = accounts::create_manager(&pg, &person, &password, &theatres, clock::now()).await;
            let made = made.map_err(in_words)?;
            match (made.was_there, made.has_password) {
                (true, false) => eprintln!("there is such an account already; its password stays"),
                (true, true) => eprintln!(
                    "there was such an account already, but its address was never confirmed: it has the new password \
                     now, and its sessions have ended"
                ),
                (false, _) => {}
            }
            println!("account {} is a manager of {}", made.account, theatres.join(", "));
            Ok(())
        }
        AdminCommand::Close { email, reason } => {
            let account = accounts::close(&pg, &email, &reason, clock::now()).await.map_err(in_words)?;
            println!("account {account} is closed; servers know within seconds");
            Ok(())
        }
    }
}

/// Reads a password from the environment, or prompts for it. Never from an argument, which all users of the machine can read.
fn password() -> anyhow::Result<Password> {
    if let Ok(password) = std::env::var("ROWLOCK_PASSWORD") {
        return Ok(Password::new(password));
    }
    anyhow::ensure!(std::io::stdin().is_terminal(), "set ROWLOCK_PASSWORD, or run this at a terminal to be asked");
    let (first, again) = (prompt_hidden("Password: ")?, prompt_hidden("Once more: ")?);
    anyhow::ensure!(first == again, "these are two different passwords; nothing was done");
    Ok(Password::new(first))
}

/// Prompts for a line on the terminal, which does not show the input.
fn prompt_hidden(prompt: &str) -> anyhow::Result<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    eprint!("{prompt}");
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
