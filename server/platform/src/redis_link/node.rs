//! One Redis process: one connection that all calls share, behind a breaker; reconnects when it is lost.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionInfo, Pipeline, RedisError, Value};
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

use super::retry::{ATTEMPT_DEADLINE, AttemptError, is_breaker_failure, is_lost};
use crate::breaker::{Breaker, BreakerLimits, Pass};
use crate::ids;

/// Limits of the breaker: two calls with all their attempts open it.
static BREAKER: BreakerLimits = BreakerLimits {
    failures_to_open: 5,
    window: Duration::from_secs(10),
    first_open_ms: 1_000,
    max_open_ms: 10_000,
    probe_timeout: Duration::from_secs(5),
};
/// Calls in the queue of the connection before callers wait: a burst of a busy server.
const WAITING_CALLS: usize = 512;

#[derive(Debug)]
pub(super) struct RedisNode {
    /// `host:port`, its name in the log and in the slot map.
    pub(super) name: String,
    /// Cancelled when this process is no longer used: another is master, or it left the Cluster.
    pub(super) retired: CancellationToken,
    client: Client,
    breaker: Mutex<Breaker>,
    open: RwLock<Option<NodeConnection>>,
    /// Number of the next connection.
    made: AtomicU64,
    /// Held while connecting, so that concurrent callers make one connection.
    connecting: tokio::sync::Mutex<()>,
}

/// A connection and its number: a caller that finds it broken must not close the one that replaced it.
#[derive(Clone, Debug)]
struct NodeConnection {
    number: u64,
    connection: MultiplexedConnection,
}

impl RedisNode {
    /// A process to which the first call connects.
    pub(super) fn new(info: &ConnectionInfo) -> Result<Self, RedisError> {
        let settings = TcpSettings::default().set_nodelay(true);
        let client = Client::open(info.clone().set_tcp_settings(settings))?;
        Ok(Self {
            name: info.addr().to_string(),
            retired: CancellationToken::new(),
            client,
            breaker: Mutex::new(Breaker::new(&BREAKER)),
            open: RwLock::new(None),
            made: AtomicU64::new(0),
            connecting: tokio::sync::Mutex::new(()),
        })
    }

    /// Sends a command and waits for its answer, at most until `until`.
    pub(super) async fn ask(&self, cmd: &Cmd, until: Instant) -> Result<Value, AttemptError> {
        self.run_guarded(until, async {
            let mut open = self.connection().await?;
            let answer = open.connection.send_packed_command(cmd).await.and_then(Value::extract_error);
            self.drop_if_lost(&open, answer)
        })
        .await
    }

    /// Sends a transaction and waits for the answers of its commands, at most until `until`.
    pub(super) async fn ask_transaction(
        &self,
        commands: &Pipeline,
        until: Instant,
    ) -> Result<Vec<Value>, AttemptError> {
        self.run_guarded(until, async {
            let mut open = self.connection().await?;
            let answers = commands.query_async::<Vec<Value>>(&mut open.connection).await;
            self.drop_if_lost(&open, answers)
        })
        .await
    }

    /// Sends a command to a node that is importing the slot. `ASKING` applies to the next command of the shared connection,
    /// so both are sent in one write.
    pub(super) async fn ask_importing(&self, cmd: &Cmd, until: Instant) -> Result<Value, AttemptError> {
        let mut both = redis::pipe();
        both.cmd("ASKING").add_command(cmd.clone());
        self.run_guarded(until, async {
            let mut open = self.connection().await?;
            let answers = open.connection.send_packed_commands(&both, 0, 2).await;
            let answer = answers.and_then(|mut answers| answers.pop().unwrap_or(Value::Nil).extract_error());
            self.drop_if_lost(&open, answer)
        })
        .await
    }

    /// Opens a separate connection for subscriptions; pushes go to `pushes`.
    pub(super) async fn listen(
        &self,
        until: Instant,
        pushes: impl redis::aio::AsyncPushSender,
    ) -> Result<MultiplexedConnection, AttemptError> {
        let info = self.client.get_connection_info().clone();
        let settings = info.redis_settings().clone().set_protocol(redis::ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings))?;
        let config = without_deadlines().set_push_sender(pushes);
        self.run_guarded(until, client.get_multiplexed_async_connection_with_config(&config)).await
    }

    /// True while the breaker rejects calls.
    pub(super) fn has_open_breaker(&self) -> bool {
        self.breaker().is_open()
    }

    /// Runs `work` if the breaker admits it, within the deadline, and reports the result to the breaker.
    async fn run_guarded<T>(
        &self,
        until: Instant,
        work: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, AttemptError> {
        let now = Instant::now();
        let pass = self.breaker().admit(now).map_err(AttemptError::CircuitOpen)?;
        let running = RunningCall { node: self, pass: Some(pass) };
        let used = self.slot().as_ref().map(|open| open.number);
        let outcome = timeout_at(until.min(now + ATTEMPT_DEADLINE).into(), work).await;
        running.finish();
        match outcome {
            Ok(Ok(answer)) => {
                self.breaker().succeeded();
                Ok(answer)
            }
            Ok(Err(error)) => {
                if is_breaker_failure(&error) {
                    self.failed(pass, &error);
                } else {
                    self.breaker().succeeded();
                }
                Err(AttemptError::Redis(error))
            }
            Err(_) => {
                // The peer may have vanished without closing the connection: later calls must not use it.
                if let Some(number) = used {
                    self.drop_connection(number);
                }
                self.failed(pass, &AttemptError::TimedOut);
                Err(AttemptError::TimedOut)
            }
        }
    }

    fn failed(&self, pass: Pass, cause: &dyn std::fmt::Display) {
        if self.breaker().failed(Instant::now(), pass, ids::jitter) {
            tracing::warn!(node = %self.name, %cause, "call Redis failed repeatedly; breaker opened");
        }
    }

    async fn connection(&self) -> Result<NodeConnection, RedisError> {
        match self.opened() {
            Some(open) => Ok(open),
            // Boxed: connecting is rare, and its state would enlarge the future of every call.
            None => Box::pin(self.connect()).await,
        }
    }

    async fn connect(&self) -> Result<NodeConnection, RedisError> {
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(open) = self.opened() {
            return Ok(open);
        }
        let connection = self.client.get_multiplexed_async_connection_with_config(&without_deadlines()).await?;
        let mut slot = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Ok(slot.insert(NodeConnection { number, connection }).clone())
    }

    fn opened(&self) -> Option<NodeConnection> {
        self.slot().clone()
    }

    // Held for one read only, never across an await.
    fn slot(&self) -> RwLockReadGuard<'_, Option<NodeConnection>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn drop_if_lost<T>(&self, open: &NodeConnection, answer: Result<T, RedisError>) -> Result<T, RedisError> {
        if answer.as_ref().is_err_and(is_lost) {
            self.drop_connection(open.number);
        }
        answer
    }

    /// Drops the connection with that number. Other calls on it fail by themselves.
    fn drop_connection(&self, number: u64) {
        let mut slot = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if slot.as_ref().is_some_and(|open| open.number == number) {
            *slot = None;
        }
    }

    // Held for a few assignments only, never across an await.
    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection configuration without deadlines: an attempt has one deadline for connecting and calling together.
fn without_deadlines() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None::<Duration>)
        .set_response_timeout(None::<Duration>)
        .set_pipeline_buffer_size(WAITING_CALLS)
}

/// A running call. If its caller drops it, a probe ends without a result.
struct RunningCall<'a> {
    node: &'a RedisNode,
    pass: Option<Pass>,
}

impl RunningCall<'_> {
    fn finish(mut self) {
        self.pass = None;
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass {
            self.node.breaker().abandoned(Instant::now(), pass);
        }
    }
}
