//! Redis processes of a test's own: several may be started, frozen and killed without anyone else
//! noticing.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use futures::StreamExt;
use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::ports;
use crate::world::{PATIENCE, Visitor, until};

/// A server that waits for Redis waits for so long; the rest is the request's other work.
pub const CALL_DEADLINE: Duration = Duration::from_secs(3);
/// …and this much is granted for that, on a machine that does much else.
pub const SLACK: Duration = Duration::from_secs(3);
/// Whether a Redis answers at all is known after this; one that is frozen does not.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

/// A running Redis, and where it keeps its files. Killed when it goes out of scope.
pub struct Redis {
    pub port: u16,
    /// Where the nodes of a Cluster talk to each other.
    pub bus_port: u16,
    folder: PathBuf,
    settings: Vec<String>,
    process: Child,
}

impl Redis {
    /// Starts one with these settings, given as in its configuration file.
    pub async fn start(settings: &[&str]) -> Self {
        let folder = new_folder();
        let (port, bus_port) = (ports::free().port(), ports::free().port());
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let process = spawn(&folder, port, bus_port, &settings, &[]);
        let redis = Self { port, bus_port, folder, settings, process };
        redis.answers().await;
        redis
    }

    /// Starts it again after it was killed, with further settings, on the files it left. Does not wait.
    pub fn restart(&mut self, more: &[&str]) {
        self.process = spawn(&self.folder, self.port, self.bus_port, &self.settings, more);
    }

    pub async fn answers(&self) {
        until("Redis answers", || async { self.try_ask::<redis::Value>(&["PING"]).await.is_ok() }).await;
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Asks it something; it must answer. With patience: a busy machine or disk is no answer of Redis.
    pub async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.ask_within(PATIENCE, words).await.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    pub async fn try_ask<T: FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        self.ask_within(ANSWER_WITHIN, words).await
    }

    async fn ask_within<T: FromRedisValue>(&self, limit: Duration, words: &[&str]) -> redis::RedisResult<T> {
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

    /// Kills it as a power cut does.
    pub async fn kill(&mut self) {
        self.process.kill().await.expect("Redis can be killed");
    }

    /// Stops it in its tracks: connections stay open, nothing is answered.
    pub async fn freeze(&self) {
        self.signal("-STOP").await;
    }

    /// Lets it go on.
    pub async fn thaw(&self) {
        self.signal("-CONT").await;
    }

    async fn signal(&self, signal: &str) {
        let id = self.process.id().expect("it runs").to_string();
        let sent = Command::new("kill").args([signal, &id]).status().await.expect("kill runs");
        assert!(sent.success());
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // A frozen one is killed as well; its files go before it notices.
        let _ = self.process.start_kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A folder of its own, in memory if there is such a place. A node of a Cluster waits for the disk at every change of
/// its map, for seconds when others write much, and its neighbours take it for dead. What a killed Redis wrote stays
/// here as well; Redis promises no more to a kill.
fn new_folder() -> PathBuf {
    let name = format!("rowlock-redis-{}", platform::ids::new_id().simple());
    let places = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
    let mut folders = places.into_iter().map(|place| place.join(&name));
    folders.find(|folder| std::fs::create_dir(folder).is_ok()).expect("a folder")
}

/// Settings go by the file: Sentinel wants one of its own to write to.
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

/// What became of a wish for seats, and how soon.
#[derive(Debug)]
pub struct Tried {
    pub status: StatusCode,
    pub body: Value,
    /// Seconds, where the answer has them.
    pub retry_after: Option<u64>,
    pub took: Duration,
}

impl Tried {
    /// Sent away properly: with a time to come back, and before patience is over.
    pub fn is_sent_away(&self) -> bool {
        assert!(self.took < CALL_DEADLINE + SLACK, "nobody waits for ever: {self:?}");
        if self.status != StatusCode::SERVICE_UNAVAILABLE {
            return false;
        }
        assert_eq!(self.body["code"], "lock_store_unavailable", "{self:?}");
        assert!(self.retry_after.is_some_and(|seconds| (1..=10).contains(&seconds)), "{self:?}");
        true
    }
}

/// Asks for seats with a key, and takes the time.
pub async fn try_hold(visitor: &Visitor, seats: &[u32], key: &str) -> Tried {
    let began = Instant::now();
    let answer = visitor
        .client
        .post(format!("{}/api/v1/shows/{}/holds", visitor.base, visitor.show))
        .header("cookie", &visitor.cookie)
        .header("idempotency-key", key)
        .json(&json!({ "seats": seats }))
        .send()
        .await
        .expect("the server answers");
    let status = answer.status();
    let retry_after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    let body = answer.json().await.expect("JSON");
    Tried { status, body, retry_after, took: began.elapsed() }
}

/// Asks for seats again and again, always with the same key, until there is an answer.
pub async fn hold_at_last(visitor: &Visitor, seats: &[u32]) -> Tried {
    let key = platform::ids::new_id().to_string();
    let mut again = tokio::time::interval(Duration::from_millis(50));
    let asked = async {
        loop {
            again.tick().await;
            let tried = try_hold(visitor, seats, &key).await;
            if !tried.is_sent_away() {
                return tried;
            }
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("seats can be held again some time")
}

/// A live map somebody watches.
pub struct Watching(WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>);

impl Watching {
    pub async fn begin(visitor: &Visitor) -> Self {
        let mut watching = Self(visitor.watch().await);
        // The snapshot: from here on it is live.
        watching.next().await;
        watching
    }

    /// Waits until news of a seat come in that state.
    pub async fn sees(&mut self, seat: u32, state: domain::seats::SeatState) {
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
        let bytes = tokio::time::timeout(PATIENCE, binary).await.expect("news in time");
        domain::wire::Frame::decode(&bytes, 300).expect("a frame")
    }
}
