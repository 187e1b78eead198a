//! Programs under test, started with production settings and stopped with SIGTERM.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::{Show, World, wait_until};
use crate::cpu::{self, Cpu};
use crate::http;

/// Timeout for a started program to answer.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for a program to stop; a server drains first.
const STOP_TIMEOUT: Duration = Duration::from_secs(25);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Keys shared by server and simulator of a run; both listen on this machine only.
const API_KEY: &str = "the key of this run; 32 bytes or more";
const WEBHOOK_SECRET: &str = "the webhook secret of this run; 32 bytes";
const TOKEN_SECRET: &str = "the secret of tokens of this run; 32 bytes";

/// A running program, stopped on drop.
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

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub fn cpu(&self) -> Result<Cpu> {
        Cpu::of(&[self.pid()])
    }

    pub fn memory(&self) -> Result<u64> {
        cpu::memory(self.pid())
    }

    /// Waits until the program answers GET `path` at `address` with this status, or with any one.
    pub fn wait_for(&mut self, address: SocketAddr, path: &str, expected: Option<u16>) -> Result<()> {
        let is_ready = wait_until(READY_TIMEOUT, POLL_INTERVAL, || {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}; its log says why", self.name);
            }
            Ok(http::get(address, path).is_ok_and(|(status, _)| expected.is_none_or(|expected| status == expected)))
        })?;
        ensure!(is_ready, "{} does not answer at {address}", self.name);
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that already ended must not be signalled: its id may be reused.
        if matches!(self.child.try_wait(), Ok(None))
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process(pid, Signal::TERM);
        }
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if began.elapsed() > STOP_TIMEOUT {
                eprintln!("{} does not stop and is killed", self.name);
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

pub struct BenchServer {
    pub address: SocketAddr,
    pub process: Process,
}

impl BenchServer {
    /// Reads the state of every seat.
    pub fn seat_states(&self, show: &Show) -> Result<Vec<u8>> {
        let (_, body) = http::get(self.address, &show.seats_path())?;
        let states = http::text_after(&body, "states").unwrap_or_default();
        Ok(states.bytes().map(|digit| digit.wrapping_sub(b'0')).collect())
    }
}

/// Environment variable of the number of runtime threads, for the server and the baselines. More threads
/// than available cores mostly wake each other.
const WORKERS: &str = "TOKIO_WORKER_THREADS";

/// Returns half of the cores; the other half is for Redis, Postgres and the load.
fn half_of_the_cores() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / 2).max(1)
}

pub fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

impl World {
    /// Starts a server that shares the stores with the other servers of this run. `simulator` is the payment
    /// gateway; benchmarks without payments need none.
    pub fn server(&self, name: &str, simulator: Option<SocketAddr>) -> Result<BenchServer> {
        self.server_at(free_port()?, name, simulator, &[])
    }

    /// Starts a server at a given address, to restart a stopped one.
    pub fn server_at(
        &self,
        address: SocketAddr,
        name: &str,
        simulator: Option<SocketAddr>,
        settings: &[(&str, &str)],
    ) -> Result<BenchServer> {
        let url = format!("http://{address}");
        let payments = simulator.map_or_else(|| url.clone(), |simulator| format!("http://{simulator}"));
        let mut command = Command::new(&self.paths.server);
        command
            .arg("serve")
            .env("LISTEN", address.to_string())
            .env("PUBLIC_URL", &url)
            .env("DATABASE_URL", &self.database_url)
            .env("REDIS_URL", &self.paths.redis_url)
            .env("REDIS_PREFIX", self.store.prefix())
            .env("SIMULATOR_URL", payments)
            .env("SIMULATOR_API_KEY", API_KEY)
            .env("SIMULATOR_WEBHOOK_SECRET", WEBHOOK_SECRET)
            .env("TOKEN_SECRET", TOKEN_SECRET)
            .env("MAILBOX_DIR", self.paths.logs.join("mailbox"))
            // No proof-of-work puzzles: the benchmark measures holds.
            .env("PUZZLE_HOLDS_PER_S", "0")
            // No limits: all requests come from one address, some from one visitor.
            .env("HOLDS_PER_VISITOR_MIN", "0")
            .env("HOLDS_PER_ADDRESS_MIN", "0")
            .env("SOCKETS_PER_ADDRESS", "0")
            .env("QUEUE_TICKETS_PER_ADDRESS", "0")
            .envs(settings.iter().copied());
        let mut process = Process::start(&mut command, name, &self.paths.logs)?;
        process.wait_for(address, "/readyz", Some(200))?;
        Ok(BenchServer { address, process })
    }

    pub fn command(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.paths.server);
        let output = command.args(arguments).env("DATABASE_URL", &self.database_url).output();
        let output = output.with_context(|| format!("cannot start {}", self.paths.server.display()))?;
        if !output.status.success() {
            bail!("{}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    pub fn simulator(&self) -> Result<(SocketAddr, Process)> {
        let address = free_port()?;
        let mut command = Command::new(&self.paths.simulator);
        command
            .env("LISTEN", address.to_string())
            .env("SIMULATOR_API_KEY", API_KEY)
            .env("SIMULATOR_WEBHOOK_SECRET", WEBHOOK_SECRET);
        let mut process = Process::start(&mut command, "payments", &self.paths.logs)?;
        // It has no page at `/`.
        process.wait_for(address, "/", None)?;
        Ok((address, process))
    }
}
