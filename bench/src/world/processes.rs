//! Programs under test: started with the settings a real one has, and stopped as operators stop them.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::World;
use crate::cpu::{self, Cpu};
use crate::http;

/// Until a started program answers.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// How long a program may take to stop; a server finishes what it has begun.
const STOP_WITHIN: Duration = Duration::from_secs(25);
/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Keys between the server and the simulator of a run; both are ours and listen on this machine only.
const API_KEY: &str = "the key of this run; 32 bytes or more";
const WEBHOOK_SECRET: &str = "the webhook secret of this run; 32 bytes";
const TOKEN_SECRET: &str = "the secret of tokens of this run; 32 bytes";

/// A program that runs until it is dropped.
pub struct Process {
    name: String,
    child: Child,
}

impl Process {
    /// Starts a program with its output in a file of `logs`.
    pub fn start(command: &mut Command, name: &str, logs: &Path) -> Result<Self> {
        std::fs::create_dir_all(logs)?;
        let log = File::create(logs.join(format!("{name}.log")))?;
        if std::env::var_os(WORKERS).is_none() {
            command.env(WORKERS, half_of_the_cores().to_string());
        }
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        let child = child.with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self { name: name.to_owned(), child })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as a crash does.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// What it has used of the CPU so far.
    pub fn cpu(&self) -> Result<Cpu> {
        Cpu::of(&[self.pid()])
    }

    /// Its memory, bytes.
    pub fn memory(&self) -> Result<u64> {
        cpu::memory(self.pid())
    }

    /// Waits until it answers GET `path` at `address` with 200.
    pub fn wait_for(&mut self, address: SocketAddr, path: &str) -> Result<()> {
        let began = Instant::now();
        while !http::get(address, path).is_ok_and(|(status, _)| status == 200) {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}; its log says why", self.name);
            }
            if began.elapsed() > READY_WITHIN {
                bail!("{} does not answer at {address}", self.name);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that was killed is gone; its number may be another's by now.
        if matches!(self.child.try_wait(), Ok(None))
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process(pid, Signal::TERM);
        }
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if began.elapsed() > STOP_WITHIN {
                eprintln!("{} does not stop and is killed", self.name);
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// A server under test.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process.
    pub process: Process,
}

/// Threads of the runtime in every server measured, ours and the baseline's. More threads than cores to
/// run them mostly wake each other.
const WORKERS: &str = "TOKIO_WORKER_THREADS";

/// Half of the machine: the other half is for Redis, Postgres and the load.
fn half_of_the_cores() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / 2).max(1)
}

/// A port nobody listens at just now.
pub fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

impl World {
    /// Starts a server that shares the stores with all others of this world. `simulator` is where payments
    /// go; benchmarks without payments need none.
    pub fn server(&self, name: &str, simulator: Option<SocketAddr>) -> Result<Server> {
        self.server_with(name, simulator, &[])
    }

    /// The same with settings of its own.
    pub fn server_with(&self, name: &str, simulator: Option<SocketAddr>, settings: &[(&str, &str)]) -> Result<Server> {
        self.server_at(free_port()?, name, simulator, settings)
    }

    /// The same at an address of one's choice: one that was stopped comes back where it was.
    pub fn server_at(
        &self,
        address: SocketAddr,
        name: &str,
        simulator: Option<SocketAddr>,
        settings: &[(&str, &str)],
    ) -> Result<Server> {
        let url = format!("http://{address}");
        let payments = simulator.map_or_else(|| url.clone(), |simulator| format!("http://{simulator}"));
        let mut command = Command::new(&self.places.server);
        command
            .arg("serve")
            .env("LISTEN", address.to_string())
            .env("PUBLIC_URL", &url)
            .env("DATABASE_URL", &self.database_url)
            .env("REDIS_URL", &self.places.redis_url)
            .env("REDIS_PREFIX", self.store.prefix())
            .env("SIMULATOR_URL", payments)
            .env("SIMULATOR_API_KEY", API_KEY)
            .env("SIMULATOR_WEBHOOK_SECRET", WEBHOOK_SECRET)
            .env("TOKEN_SECRET", TOKEN_SECRET)
            .env("MAILBOX_DIR", self.places.logs.join("mailbox"))
            // What is measured is how fast seats are given out, not how fast this machine solves puzzles.
            .env("PUZZLE_HOLDS_PER_S", "0")
            // All of them come from one address, some as one visitor.
            .env("HOLDS_PER_VISITOR_MIN", "0")
            .env("HOLDS_PER_ADDRESS_MIN", "0")
            .env("SOCKETS_PER_ADDRESS", "0")
            .env("QUEUE_TICKETS_PER_ADDRESS", "0")
            .envs(settings.iter().copied());
        let mut process = Process::start(&mut command, name, &self.places.logs)?;
        process.wait_for(address, "/readyz")?;
        Ok(Server { address, process })
    }

    /// Runs another command of the server's program.
    pub fn command(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.places.server);
        let output = command.args(arguments).env("DATABASE_URL", &self.database_url).output();
        let output = output.with_context(|| format!("cannot start {}", self.places.server.display()))?;
        if !output.status.success() {
            bail!("{}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    /// Starts the payment simulator.
    pub fn simulator(&self) -> Result<(SocketAddr, Process)> {
        let address = free_port()?;
        let mut command = Command::new(&self.places.simulator);
        command
            .env("LISTEN", address.to_string())
            .env("SIMULATOR_API_KEY", API_KEY)
            .env("SIMULATOR_WEBHOOK_SECRET", WEBHOOK_SECRET);
        let mut process = Process::start(&mut command, "payments", &self.places.logs)?;
        let began = Instant::now();
        // Any answer will do: it has no page of its own at `/`.
        while http::get(address, "/").is_err() {
            if process.child.try_wait()?.is_some() || began.elapsed() > READY_WITHIN {
                bail!("the payment simulator does not answer at {address}");
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok((address, process))
    }
}

/// Makes the schema with the server's own program.
pub fn migrate(world: &World) -> Result<()> {
    world.command(&["migrate"]).context("the schema cannot be made")
}
