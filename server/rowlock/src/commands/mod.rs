//! What staff and operators do at the command line until they have pages for it: a file per command.
//!
//! The program's own: arguments are read here, and what is to be done is done by the capabilities.

pub mod admin;
pub mod cancelling;
pub mod parked;
mod password;
pub mod release_holds;
pub mod theatre;
pub mod waiting_room;

use http::Problem;

#[derive(clap::Args)]
pub struct Database {
    /// Postgres, `postgres://…`.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: String,
}

/// A refusal, for the one at the keyboard.
fn in_words(problem: Problem) -> anyhow::Error {
    anyhow::anyhow!("{}", problem.detail())
}
