//! A highly available Redis: a master, a replica and three sentinels. After the master is killed the replica takes
//! over and lacks the writes that were not replicated.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use redis::cmd;

use crate::world::{Process, free_port, wait_until};

/// The name of the master at the sentinels.
const SERVICE: &str = "box";
/// The quorum is two.
const SENTINELS: usize = 3;
/// Timeout of the start, and of a failover.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// One Redis or sentinel process.
struct RedisNode {
    port: u16,
    process: Process,
}

/// The processes; they end when the value is dropped.
pub struct SentinelRedis {
    master: RedisNode,
    replica: RedisNode,
    sentinels: Vec<RedisNode>,
    folder: PathBuf,
}

impl SentinelRedis {
    /// Starts the processes and waits until the sentinels know the replica and each other.
    pub fn start(logs: &Path) -> Result<Self> {
        let folder = logs.join(format!("redis-{}", std::process::id()));
        let durable = "appendonly yes\nappendfsync everysec\n";
        let master = start_node(&folder, logs, "redis-master", durable, false)?;
        let follows = format!("{durable}replicaof 127.0.0.1 {}\n", master.port);
        let replica = start_node(&folder, logs, "redis-replica", &follows, false)?;
        wait("the replica follows", || info(replica.port, "replication").contains("master_link_status:up"))?;
        let monitor = format!(
            "sentinel monitor {SERVICE} 127.0.0.1 {} 2\nsentinel down-after-milliseconds {SERVICE} 1000\n\
             sentinel failover-timeout {SERVICE} 5000\n",
            master.port
        );
        let mut sentinels = Vec::new();
        for number in 1..=SENTINELS {
            sentinels.push(start_node(&folder, logs, &format!("sentinel-{number}"), &monitor, true)?);
        }
        for sentinel in &sentinels {
            wait("the sentinels know each other", || {
                let status = info(sentinel.port, "sentinel");
                status.contains("slaves=1") && status.contains(&format!("sentinels={SENTINELS}"))
            })?;
        }
        Ok(Self { master, replica, sentinels, folder })
    }

    /// Returns the sentinel URL for servers.
    pub fn url(&self) -> String {
        let ports: Vec<String> = self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port)).collect();
        format!("redis+sentinel://{}/{SERVICE}", ports.join(","))
    }

    pub fn master_url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.master.port)
    }

    /// Returns the URL of the replica, which is the master after a failover.
    pub fn replica_url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.replica.port)
    }

    /// Kills the master with SIGKILL and waits until the replica is master. Returns the duration.
    pub fn fail_over(&mut self) -> Result<Duration> {
        let began = Instant::now();
        self.master.process.kill()?;
        let port = self.replica.port;
        wait("the replica takes over", || info(port, "replication").contains("role:master"))?;
        Ok(began.elapsed())
    }

    pub fn memory(&self) -> Result<u64> {
        self.replica.process.memory()
    }
}

impl Drop for SentinelRedis {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn start_node(folder: &Path, logs: &Path, name: &str, settings: &str, is_sentinel: bool) -> Result<RedisNode> {
    let own = folder.join(name);
    std::fs::create_dir_all(&own)?;
    let port = free_port()?.port();
    let file = own.join("redis.conf");
    // Redis resolves relative paths against its own working directory.
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
    wait(name, || query(port, &["PING"]).is_ok())?;
    Ok(RedisNode { port, process })
}

fn query(port: u16, words: &[&str]) -> Result<String> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/"))?;
    let mut connection = client.get_connection_with_timeout(POLL_INTERVAL * 10)?;
    let mut command = cmd(words[0]);
    command.arg(&words[1..]);
    command.query(&mut connection).context("Redis does not answer")
}

fn info(port: u16, section: &str) -> String {
    query(port, &["INFO", section]).unwrap_or_default()
}

fn wait(what: &str, is_met: impl Fn() -> bool) -> Result<()> {
    ensure!(
        wait_until(READY_TIMEOUT, POLL_INTERVAL, || Ok(is_met()))?,
        "{what}: not within {} s",
        READY_TIMEOUT.as_secs()
    );
    Ok(())
}
