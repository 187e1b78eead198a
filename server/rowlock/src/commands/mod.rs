//! Commands for staff and operators without a page: a file per command.
//!
//! A command parses its arguments and calls a function of another crate.

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
