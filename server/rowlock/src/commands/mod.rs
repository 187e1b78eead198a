//! Commands for staff and operators without a page, by subject.
//!
//! A command parses its arguments and calls a function of another crate.

pub mod admin;
pub mod cancelling;
pub mod parked;
pub mod theatre;
pub mod waiting_room;

use http::Problem;
use sqlx::PgPool;

#[derive(clap::Args)]
pub struct Database {
    /// Postgres, `postgres://…`.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: String,
}

impl Database {
    /// A pool of this many connections.
    pub async fn connect(&self, connections: u32) -> anyhow::Result<PgPool> {
        platform::database::connect(&self.database_url, connections).await
    }
}

/// Converts a problem to an error with its detail, for the terminal.
fn in_words(problem: Problem) -> anyhow::Error {
    anyhow::anyhow!("{}", problem.detail())
}
