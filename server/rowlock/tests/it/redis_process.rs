//! Redis processes of one test, which can be started, frozen and killed without an effect on other tests.

use std::path::PathBuf;
use std::process::Stdio;

use futures::StreamExt;
use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;

use crate::prelude::*;
use crate::replicas::free_address;
use crate::signals::{Signal, send_signal};

/// Deadline of a server's call to Redis.
pub const CALL_DEADLINE: Duration = Duration::from_secs(3);
/// Time granted for the rest of the request, on a busy machine.
pub const SLACK: Duration = Duration::from_secs(3);
/// Timeout of a ping. A frozen Redis does not answer.
const PING_TIMEOUT: Duration = Duration::from_millis(500);

/// A running Redis and its data folder. Killed when it is dropped.
pub struct Redis {
    pub port: u16,
    pub bus_port: u16,
    folder: PathBuf,
    settings: Vec<String>,
    process: Child,
}

impl Redis {
    pub async fn start(settings: &[&str]) -> Self {
        let folder = new_folder();
        let (port, bus_port) = (free_address().port(), free_address().port());
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let process = spawn(&folder, port, bus_port, &settings, &[]);
        let redis = Self { port, bus_port, folder, settings, process };
        redis.wait_until_ready().await;
        redis
    }

    /// Restarts a killed one on its files, with further settings. Does not wait.
    pub fn restart(&mut self, more: &[&str]) {
        self.process = spawn(&self.folder, self.port, self.bus_port, &self.settings, more);
    }

    pub async fn wait_until_ready(&self) {
        wait_until("Redis answers", || async { self.try_command::<redis::Value>(&["PING"]).await.is_ok() }).await;
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Runs a command, which must succeed. The timeout is long, because the machine or disk may be busy.
    pub async fn command<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.command_within(TEST_TIMEOUT, words).await.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    pub async fn try_command<T: FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        self.command_within(PING_TIMEOUT, words).await
    }

    async fn command_within<T: FromRedisValue>(&self, limit: Duration, words: &[&str]) -> redis::RedisResult<T> {
        let mut connection = self.connection(limit).await?;
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut connection).await
    }

    async fn connection(&self, limit: Duration) -> redis::RedisResult<MultiplexedConnection> {
        let config =
            redis::AsyncConnectionConfig::new().set_connection_timeout(Some(limit)).set_response_timeout(Some(limit));
        redis::Client::open(self.url())?.get_multiplexed_async_connection_with_config(&config).await
    }

    pub async fn kill(&mut self) {
        self.process.kill().await.expect("Redis can be killed");
    }

    /// Suspends it: connections stay open, and nothing is answered.
    pub async fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub async fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        send_signal(self.process.id().expect("it runs"), signal).expect("the signal is sent");
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Also kills a frozen one; its files are removed first.
        let _ = self.process.start_kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Creates a data folder, in memory if there is a RAM disk. A Cluster node waits for the disk at every change of its
/// cluster state. On a busy disk that takes seconds, and the other nodes mark it as failed. Files of a killed Redis survive
/// here too; Redis promises no more after a kill.
fn new_folder() -> PathBuf {
    let name = format!("rowlock-redis-{}", new_id().simple());
    let places = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
    let mut folders = places.into_iter().map(|place| place.join(&name));
    folders.find(|folder| std::fs::create_dir(folder).is_ok()).expect("a folder")
}

/// Writes the settings to a file, because Sentinel needs a configuration file that it can write to.
fn spawn(folder: &std::path::Path, port: u16, bus_port: u16, settings: &[String], more: &[&str]) -> Child {
    let mut text = format!("bind 127.0.0.1\nport {port}\ndir {}\n", folder.display());
    let is_sentinel = settings.iter().any(|line| line.starts_with("sentinel "));
    if !is_sentinel {
        text += "save \"\"\nappendonly no\n";
    }
    if settings.iter().any(|line| line.starts_with("cluster-enabled")) {
        text += &format!("cluster-port {bus_port}\n");
    }
    for line in settings.iter().map(String::as_str).chain(more.iter().copied()) {
        text += line;
        text.push('\n');
    }
    let file = folder.join("redis.conf");
    std::fs::write(&file, text).expect("the settings are written");
    let program = std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
    let mut command = Command::new(program);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    if is_sentinel {
        command.arg("--sentinel");
    }
    command.spawn().expect("redis-server starts; `cargo xtask test` installs it")
}

/// Answer to an attempt to hold seats, and its duration.
#[derive(Debug)]
pub struct HoldAttempt {
    pub status: StatusCode,
    pub body: Value,
    /// `Retry-After` in seconds, where the answer has it.
    pub retry_after: Option<u64>,
    pub took: Duration,
}

impl HoldAttempt {
    /// Returns whether the answer is a 503. Asserts its `Retry-After`, and that it arrived before the deadline.
    pub fn is_unavailable(&self) -> bool {
        assert!(self.took < CALL_DEADLINE + SLACK, "answered after the deadline: {self:?}");
        if self.status != StatusCode::SERVICE_UNAVAILABLE {
            return false;
        }
        assert_eq!(self.body["code"], "lock_store_unavailable", "{self:?}");
        assert!(self.retry_after.is_some_and(|seconds| (1..=10).contains(&seconds)), "{self:?}");
        true
    }
}

pub async fn try_hold(visitor: &Visitor, seats: &[u32], key: &str) -> HoldAttempt {
    let began = Instant::now();
    let path = format!("/api/v1/shows/{}/holds", visitor.show);
    let request = visitor.request(Method::POST, &path).header("idempotency-key", key).json(&json!({ "seats": seats }));
    let answer = RawAnswer::of(request).await;
    let retry_after = answer.optional_header("retry-after").parse::<u64>().ok();
    HoldAttempt { status: answer.status, body: answer.json(), retry_after, took: began.elapsed() }
}

/// Retries a hold with one idempotency key until the answer is not a 503.
pub async fn hold_with_retries(visitor: &Visitor, seats: &[u32]) -> HoldAttempt {
    let key = new_id().to_string();
    let mut again = tokio::time::interval(Duration::from_millis(50));
    let asked = async {
        loop {
            again.tick().await;
            let tried = try_hold(visitor, seats, &key).await;
            if !tried.is_unavailable() {
                return tried;
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, asked).await.expect("the hold is answered before the timeout")
}

pub struct LiveMap(LiveSocket);

impl LiveMap {
    pub async fn open(visitor: &Visitor) -> Self {
        let mut live_map = Self(visitor.open_live_map().await);
        // The first frame is the snapshot; deltas follow.
        live_map.next().await;
        live_map
    }

    pub async fn wait_for_seat(&mut self, seat: u32, state: domain::seats::SeatState) {
        use domain::wire::Frame;
        loop {
            let seen = match self.next().await {
                Frame::Delta { changes, .. } => {
                    changes.iter().any(|change| change.seat == seat && change.state == state)
                }
                Frame::Snapshot { map, .. } => map.get(seat as usize) == Some(&state),
                _ => false,
            };
            if seen {
                return;
            }
        }
    }

    async fn next(&mut self) -> domain::wire::Frame {
        let binary = async {
            loop {
                let message = self.0.next().await.expect("the live map stays open").expect("a good message");
                if let Message::Binary(bytes) = message {
                    return bytes;
                }
            }
        };
        let bytes = tokio::time::timeout(TEST_TIMEOUT, binary).await.expect("a frame in time");
        domain::wire::Frame::decode(&bytes, 300).expect("a frame")
    }
}
