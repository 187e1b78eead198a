//! A peer server that a benchmark compares with. Its folder has a `stack.sh`, which starts it with its stores on loopback:
//! `stack.sh start | stop`, set up by the variables `BASE`, `PORT`, `REDIS_PORT` and `PG_PORT`.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::paths::Paths;
use crate::progress::ProgressStep;
use crate::services::{self, DataFolder};
use crate::setup;
use crate::stop::Stop;

/// Folders of the peer's data. Those of an earlier run are deleted; its packages are kept.
const DATA: [&str; 2] = ["pg", "redis"];
/// Files that name running processes.
const RUNNING: [&str; 2] = ["server.pid", "stack.json"];

/// A running peer server with its stores. Dropping the value stops them.
pub struct PeerStack<'a> {
    script: PathBuf,
    /// The folder of everything that it writes.
    base: PathBuf,
    port: u16,
    redis_port: u16,
    pub postgres_port: u16,
    stop: &'a Stop,
}

impl<'a> PeerStack<'a> {
    /// Starts the server of a folder with empty stores.
    pub fn start(paths: &Paths, data: &DataFolder, folder: &Path, stop: &'a Stop) -> Result<Self> {
        let folder = folder.canonicalize().with_context(|| format!("no peer in {}", folder.display()))?;
        let script = folder.join("stack.sh");
        ensure!(command::is_program(&script), "{} is no program", script.display());
        setup::require_npm(stop)?;
        let name = folder.file_name().context("a peer's folder has a name")?;
        let stack = Self {
            script,
            // Its Postgres runs as another user for root, as ours does.
            base: paths.postgres.join("peers").join(name),
            port: data.claim_port("peer", None)?,
            redis_port: data.claim_port("peer-redis", None)?,
            postgres_port: data.claim_port("peer-postgres", None)?,
            stop,
        };
        std::fs::create_dir_all(&stack.base)?;
        let step = ProgressStep::start(format!("start the peer {}", name.display()));
        if RUNNING.iter().any(|file| stack.base.join(file).exists()) {
            // A killed run has left it running.
            stack.run("stop")?;
        }
        for part in DATA {
            services::remove(&stack.base.join(part))?;
        }
        stack.run("start")?;
        step.done();
        Ok(stack)
    }

    /// Returns the file that describes the running server.
    pub fn description(&self) -> PathBuf {
        self.base.join("stack.json")
    }

    fn run(&self, verb: &str) -> Result<()> {
        command::run(&mut self.command(verb), self.stop)
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.script);
        // Standard output is for results.
        command.arg(verb).stdin(Stdio::null()).stdout(Stdio::null()).env("BASE", &self.base);
        for (variable, port) in [("PORT", self.port), ("REDIS_PORT", self.redis_port), ("PG_PORT", self.postgres_port)]
        {
            command.env(variable, port.to_string());
        }
        command
    }
}

impl Drop for PeerStack<'_> {
    fn drop(&mut self) {
        // Also after a stop request, which ends other commands; in a process group that Ctrl-C does not reach.
        let stopped = self.command("stop").process_group(0).status();
        if !stopped.is_ok_and(|status| status.success()) {
            eprintln!("the peer could not be stopped: BASE={} {} stop", self.base.display(), self.script.display());
            return;
        }
        for file in RUNNING {
            // The next run must not signal these ids, which other processes may have then.
            let _ = std::fs::remove_file(self.base.join(file));
        }
    }
}
