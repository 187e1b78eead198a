//! Writes the table of endpoints in `docs/api.md`.

use anyhow::Result;

use crate::paths::Paths;
use crate::stop::Stop;
use crate::{command, native};

/// Runs the test that compares the table, and has it write instead.
pub fn write(paths: &Paths, stop: &Stop) -> Result<()> {
    let mut cargo = native::cargo(paths, "test");
    cargo.args(["--package", "rowlock", "--lib", "endpoint_table"]).env("WRITE_API_TABLE", "1");
    command::run(&mut cargo, stop)
}
