//! A Redis as it is run for an on-sale: a master, a replica that follows it, and three sentinels that say which is
//! which. Its master can be killed; then the replica takes over, without what it had not heard yet.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use redis::cmd;

use crate::world::{Process, free_port};

/// What the sentinels call the master.
const SERVICE: &str = "box";
/// Sentinels; two of them must agree.
const SENTINELS: usize = 3;
/// Until all of it stands, and until a replica has taken over.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One of its programs.
struct Node {
    port: u16,
    process: Process,
}

/// All of it; ends when it is dropped.
pub struct WatchedRedis {
    master: Node,
    replica: Node,
    sentinels: Vec<Node>,
    folder: PathBuf,
}

impl WatchedRedis {
    /// Starts all of it and waits until everybody knows everybody.
    pub fn start(logs: &Path) -> Result<Self> {
        let folder = logs.join(format!("redis-{}", std::process::id()));
        let durable = "appendonly yes\nappendfsync everysec\n";
        let master = node(&folder, logs, "redis-master", durable, false)?;
        let follows = format!("{durable}replicaof 127.0.0.1 {}\n", master.port);
        let replica = node(&folder, logs, "redis-replica", &follows, false)?;
        wait("the replica follows", || info(replica.port, "replication").contains("master_link_status:up"))?;
        let monitor = format!(
            "sentinel monitor {SERVICE} 127.0.0.1 {} 2\nsentinel down-after-milliseconds {SERVICE} 1000\n\
             sentinel failover-timeout {SERVICE} 5000\n",
            master.port
        );
        let mut sentinels = Vec::new();
        for number in 1..=SENTINELS {
            sentinels.push(node(&folder, logs, &format!("sentinel-{number}"), &monitor, true)?);
        }
        for sentinel in &sentinels {
            wait("the sentinels know each other", || {
                let said = info(sentinel.port, "sentinel");
                said.contains("slaves=1") && said.contains(&format!("sentinels={SENTINELS}"))
            })?;
        }
        Ok(Self { master, replica, sentinels, folder })
    }

    /// The address servers are given.
    pub fn url(&self) -> String {
        let ports: Vec<String> = self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port)).collect();
        format!("redis+sentinel://{}/{SERVICE}", ports.join(","))
    }

    /// The first master's own.
    pub fn master_url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.master.port)
    }

    /// The replica's own: the master's once it has taken over.
    pub fn replica_url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.replica.port)
    }

    /// Kills the master as a power cut does, and waits until the replica is one. How long that took.
    pub fn fail_over(&mut self) -> Result<Duration> {
        let began = Instant::now();
        self.master.process.kill()?;
        let port = self.replica.port;
        wait("the replica takes over", || info(port, "replication").contains("role:master"))?;
        Ok(began.elapsed())
    }

    /// Memory of the replica, bytes.
    pub fn memory(&self) -> Result<u64> {
        self.replica.process.memory()
    }
}

impl Drop for WatchedRedis {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn node(folder: &Path, logs: &Path, name: &str, settings: &str, is_sentinel: bool) -> Result<Node> {
    let own = folder.join(name);
    std::fs::create_dir_all(&own)?;
    let port = free_port()?.port();
    let file = own.join("redis.conf");
    // Redis takes a path as it stands: its own working folder is another.
    let own = own.canonicalize()?;
    let text = format!("bind 127.0.0.1\nport {port}\ndir {}\nsave \"\"\n{settings}", own.display());
    let text = if is_sentinel { text.replace("save \"\"\n", "") } else { text };
    std::fs::write(&file, text)?;
    let program = std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
    let mut command = Command::new(program);
    command.arg(&file);
    if is_sentinel {
        command.arg("--sentinel");
    }
    let process = Process::start(&mut command, name, logs)?;
    wait(name, || ask(port, &["PING"]).is_ok())?;
    Ok(Node { port, process })
}

fn ask(port: u16, words: &[&str]) -> Result<String> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/"))?;
    let mut connection = client.get_connection_with_timeout(LOOK_EVERY * 10)?;
    let mut command = cmd(words[0]);
    command.arg(&words[1..]);
    command.query(&mut connection).context("Redis does not answer")
}

fn info(port: u16, section: &str) -> String {
    ask(port, &["INFO", section]).unwrap_or_default()
}

fn wait(what: &str, holds: impl Fn() -> bool) -> Result<()> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > READY_WITHIN {
            bail!("{what}: not within {} s", READY_WITHIN.as_secs());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
