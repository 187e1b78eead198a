//! The link to Redis: one server, the master that Sentinels name, or a Cluster.
//!
//! It runs scripts and delivers published messages. Every call has a deadline, is retried where that may help, follows a
//! slot or a master that moved, and fails at once while a breaker is open. It does not know what the scripts mean.

mod address;
mod cluster;
mod node;
mod retry;
mod script;
mod sentinel;
mod subscribe;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{Cmd, ConnectionAddr, Pipeline, Value};

pub use address::AddressError;
pub use retry::AttemptError;
pub use script::{LuaScript, ScriptCall};
pub use subscribe::{Subscriber, SubscriptionEvent};

use address::Address;
use cluster::Cluster;
use node::RedisNode;
use retry::{CALL_DEADLINE, MAX_ATTEMPTS, MAX_REDIRECTS, MIN_ATTEMPT_TIME, RetryDecision, decide_retry, pause};
use sentinel::Sentinel;

use crate::telemetry;

/// The connection(s) to Redis; cheap to clone.
#[derive(Clone, Debug)]
pub struct Link {
    shape: Topology,
}

#[derive(Clone, Debug)]
enum Topology {
    Single(Arc<RedisNode>),
    Sentinel(Arc<Sentinel>),
    Cluster(Arc<Cluster>),
}

/// An answer of Redis.
#[derive(Debug)]
pub struct RedisReply {
    /// The answer.
    pub value: Value,
    /// Attempts that may have taken effect, this one included. Above 1 the answer may be that of a repeated call: an earlier
    /// attempt took effect and its answer was lost.
    pub attempts: u32,
}

/// The reason why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// `REDIS_URL` cannot be used.
    #[error("REDIS_URL cannot be used")]
    Address(#[from] AddressError),
    /// No attempt within the deadline was answered, or Redis cannot serve the call now.
    #[error("Redis did not answer after {attempts} attempts: {cause}")]
    Unavailable {
        /// Number of attempts.
        attempts: u32,
        /// Failure of the last attempt.
        cause: AttemptError,
    },
    /// Not called: the breaker is open.
    #[error("the circuit breaker of Redis is open for {} ms", retry_after.as_millis())]
    CircuitOpen {
        /// Time until the next probe.
        retry_after: Duration,
    },
    /// Redis rejects the call: a script or a key is wrong. A defect of the server.
    #[error("Redis refuses: {0}")]
    Refused(redis::RedisError),
}

impl LinkError {
    /// Time after which a retry may succeed, if that is known.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::CircuitOpen { retry_after } => Some(*retry_after),
            Self::Address(_) | Self::Unavailable { .. } | Self::Refused(_) => None,
        }
    }
}

/// The process that a call is for.
#[derive(Clone, Copy, Debug)]
enum CallTarget {
    /// The server that has this slot, where there are slots.
    Slot(u16),
    /// Any server.
    Any,
}

/// The rule for retrying an attempt that may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryRule {
    /// Retry it: the call is idempotent, or its answer shows the repetition.
    Always,
    /// Do not retry it: each execution counts.
    UnlessMaybeDone,
}

/// The form in which a call is sent.
#[derive(Clone, Copy, Debug, Default)]
struct SendForm {
    /// The script in full, not its hash.
    in_full: bool,
    /// `ASKING` precedes it.
    asking: bool,
}

impl Link {
    /// Connects; the link reconnects after later losses.
    ///
    /// # Errors
    /// When the address is invalid or no server answers.
    pub async fn connect(url: &str) -> Result<Self, LinkError> {
        let link = Self::open(url)?;
        link.reach().await?;
        Ok(link)
    }

    /// A link to a Redis that may be down: it connects at the first call, and again after every loss.
    ///
    /// # Errors
    /// When the address is unusable.
    pub fn open(url: &str) -> Result<Self, LinkError> {
        let shape = match address::parse(url)? {
            Address::Single(info) => {
                RedisNode::new(&info).map(|node| Topology::Single(Arc::new(node))).map_err(AttemptError::from)
            }
            Address::Sentinel { sentinels, service, master } => {
                Sentinel::open(&sentinels, service, master).map(Topology::Sentinel)
            }
            Address::Cluster(seeds) => Cluster::open(&seeds).map(Topology::Cluster),
        };
        shape.map(|shape| Self { shape }).map_err(|cause| LinkError::Unavailable { attempts: 1, cause })
    }

    /// Looks up the slots or the master, and pings.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn reach(&self) -> Result<(), LinkError> {
        let found = match &self.shape {
            Topology::Single(_) => Ok(()),
            Topology::Sentinel(sentinel) => sentinel.refresh_master().await,
            Topology::Cluster(cluster) => cluster.load_map().await,
        };
        found.map_err(|cause| LinkError::Unavailable { attempts: 1, cause })?;
        self.ping().await
    }

    /// Checks the address; contacts no server.
    ///
    /// # Errors
    /// The reason why the address is invalid.
    pub fn can_read(url: &str) -> Result<(), AddressError> {
        address::parse(url).map(|_| ())
    }

    /// Sends a read-only command to any server.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn ask_any(&self, cmd: &Cmd) -> Result<Value, LinkError> {
        self.send_to_any(cmd).await
    }

    /// Runs a script, by its hash if Redis knows it.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn eval(&self, call: &ScriptCall<'_>) -> Result<RedisReply, LinkError> {
        self.eval_as(call, RetryRule::Always).await
    }

    /// Runs a script that is not idempotent: if its answer is lost it is not run again, because it may have taken effect.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn eval_once(&self, call: &ScriptCall<'_>) -> Result<RedisReply, LinkError> {
        self.eval_as(call, RetryRule::UnlessMaybeDone).await
    }

    async fn eval_as(&self, call: &ScriptCall<'_>, rule: RetryRule) -> Result<RedisReply, LinkError> {
        let target = call.first_key().map_or(CallTarget::Any, |key| self.slot(key));
        let ask = |node: Arc<RedisNode>, form: SendForm, until| async move {
            let in_full = form.in_full.then(|| call.in_full());
            let cmd = in_full.as_ref().unwrap_or(call.by_hash());
            if form.asking { node.ask_importing(cmd, until).await } else { node.ask(cmd, until).await }
        };
        let (value, attempts) = self.call_with_retries(target, rule, ask).await?;
        Ok(RedisReply { value, attempts })
    }

    /// Runs a transaction of reads, all on keys of `key`'s slot; returns their answers in order. A slot that is being moved
    /// is [`LinkError::Refused`].
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn read_transaction(&self, key: &str, reads: &Pipeline) -> Result<Vec<Value>, LinkError> {
        let ask = |node: Arc<RedisNode>, _, until| async move { node.ask_transaction(reads, until).await };
        self.call_with_retries(self.slot(key.as_bytes()), RetryRule::Always, ask).await.map(|(values, _)| values)
    }

    /// Sends a ping. On a Cluster any process may answer: the loss of one shard affects its own shows, not the whole server.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn ping(&self) -> Result<(), LinkError> {
        self.send_to_any(&redis::cmd("PING")).await.map(|_| ())
    }

    /// The time of Redis, milliseconds since 1970. On a Cluster it is the time of any one process.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn time_ms(&self) -> Result<i64, LinkError> {
        let value = self.send_to_any(&redis::cmd("TIME")).await?;
        let (seconds, micros): (i64, i64) =
            redis::from_redis_value(value).map_err(|error| LinkError::Refused(error.into()))?;
        Ok(seconds * 1_000 + micros / 1_000)
    }

    /// A new subscriber to channels.
    #[must_use]
    pub fn subscriber(&self) -> Subscriber {
        Subscriber::new(self.clone())
    }

    /// The command that publishes a message; on a Cluster the sharded one, which stays within its shard.
    #[must_use]
    pub const fn publish_command(&self) -> &'static str {
        match self.shape {
            Topology::Cluster(_) => "SPUBLISH",
            Topology::Single(_) | Topology::Sentinel(_) => "PUBLISH",
        }
    }

    /// True if all keys of a call must share a slot.
    #[must_use]
    pub const fn has_slots(&self) -> bool {
        matches!(self.shape, Topology::Cluster(_))
    }

    async fn send_to_any(&self, cmd: &Cmd) -> Result<Value, LinkError> {
        let ask = |node: Arc<RedisNode>, _, until| async move { node.ask(cmd, until).await };
        self.call_with_retries(CallTarget::Any, RetryRule::Always, ask).await.map(|(value, _)| value)
    }

    /// Sends a call and retries it until it is answered, refused, or out of attempts or time. Returns the answer and the
    /// number of attempts that may have taken effect.
    async fn call_with_retries<T, F>(
        &self,
        target: CallTarget,
        rule: RetryRule,
        ask: impl Fn(Arc<RedisNode>, SendForm, Instant) -> F,
    ) -> Result<(T, u32), LinkError>
    where
        F: Future<Output = Result<T, AttemptError>>,
    {
        let until = Instant::now() + CALL_DEADLINE;
        let (mut attempts, mut effective, mut redirects) = (1, 1, 0);
        let mut form = SendForm::default();
        let (mut redirected, mut failed) = (None, None);
        loop {
            let node = redirected.take().or_else(|| self.node(target, failed.as_ref()));
            let fault = match &node {
                Some(node) => match ask(Arc::clone(node), form, until).await {
                    Ok(answer) => {
                        telemetry::redis_answered();
                        return Ok((answer, effective));
                    }
                    Err(fault) => fault,
                },
                None => AttemptError::NoServer("none is known yet"),
            };
            match decide_retry(&fault) {
                RetryDecision::UnknownScript if !form.in_full => {
                    form.in_full = true;
                    redirected = node;
                }
                RetryDecision::Redirected { slot, address, is_permanent } if redirects < MAX_REDIRECTS => {
                    redirects += 1;
                    redirected = self.follow(node.as_deref(), slot, &address, is_permanent);
                    form.asking = !is_permanent;
                }
                RetryDecision::Retryable { maybe_done }
                    if attempts < MAX_ATTEMPTS && !(maybe_done && rule == RetryRule::UnlessMaybeDone) =>
                {
                    self.request_refresh();
                    let pause = pause(attempts);
                    if Instant::now() + pause + MIN_ATTEMPT_TIME > until {
                        return Err(self.give_up(attempts, fault));
                    }
                    tokio::time::sleep(pause).await;
                    attempts += 1;
                    effective += u32::from(maybe_done);
                    form.asking = false;
                    failed = node;
                }
                _ => return Err(self.give_up(attempts, fault)),
            }
        }
    }

    /// The error of a call that is not retried any more; counts it.
    fn give_up(&self, attempts: u32, fault: AttemptError) -> LinkError {
        let error = match fault {
            AttemptError::CircuitOpen(retry_after) => LinkError::CircuitOpen { retry_after },
            AttemptError::Redis(error)
                if decide_retry(&AttemptError::Redis(error.clone())) == RetryDecision::Refused =>
            {
                LinkError::Refused(error)
            }
            cause => {
                self.request_refresh();
                LinkError::Unavailable { attempts, cause }
            }
        };
        telemetry::redis_failed(match &error {
            // A call with attempts before the breaker opened counts as unavailable.
            LinkError::CircuitOpen { .. } if attempts == 1 => telemetry::RedisError::CircuitOpen,
            LinkError::Refused(_) => telemetry::RedisError::Refused,
            LinkError::CircuitOpen { .. } | LinkError::Unavailable { .. } | LinkError::Address(_) => {
                telemetry::RedisError::Unavailable
            }
        });
        error
    }

    /// The target of a call with this key or channel: on a Cluster its slot.
    fn slot(&self, key: &[u8]) -> CallTarget {
        match self.shape {
            Topology::Cluster(_) => CallTarget::Slot(cluster::slot_of(key)),
            Topology::Single(_) | Topology::Sentinel(_) => CallTarget::Any,
        }
    }

    /// The process to call; without a slot, preferably another than the one that `failed`.
    fn node(&self, target: CallTarget, failed: Option<&Arc<RedisNode>>) -> Option<Arc<RedisNode>> {
        match (&self.shape, target) {
            (Topology::Single(node), _) => Some(Arc::clone(node)),
            (Topology::Sentinel(sentinel), _) => sentinel.master(),
            (Topology::Cluster(cluster), CallTarget::Slot(slot)) => cluster.node_of(slot),
            (Topology::Cluster(cluster), CallTarget::Any) => cluster.any(failed),
        }
    }

    /// The process that a redirection names.
    fn follow(
        &self,
        asked: Option<&RedisNode>,
        slot: u16,
        address: &str,
        is_permanent: bool,
    ) -> Option<Arc<RedisNode>> {
        let Topology::Cluster(cluster) = &self.shape else { return None };
        let to = cluster.node_at(address, asked?).ok()?;
        if is_permanent {
            cluster.record_move(slot, &to);
        }
        Some(to)
    }

    /// Refreshes the slot map or the master soon: after a failure another process may have taken over.
    fn request_refresh(&self) {
        match &self.shape {
            Topology::Single(_) => {}
            Topology::Sentinel(sentinel) => sentinel.request_refresh(),
            Topology::Cluster(cluster) => cluster.request_refresh(),
        }
    }
}

/// The address of `host` and `port`, over TLS if `like` is.
fn address_like(like: &ConnectionAddr, host: String, port: u16) -> ConnectionAddr {
    match like {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        ConnectionAddr::Tcp(..) | ConnectionAddr::Unix(_) | _ => ConnectionAddr::Tcp(host, port),
    }
}
