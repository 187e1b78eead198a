//! Subscriptions to channels: one task per channel, one connection per process.
//!
//! Each channel has a task, so that a channel whose shard is down delays no other. Messages that are published while a
//! subscription is lost are lost too; the task reports this once it has subscribed again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Msg, PushInfo, PushKind, Value};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::node::RedisNode;
use super::retry::{ATTEMPT_DEADLINE, AttemptError, CALL_DEADLINE};
use super::{Link, RetryRule, Topology};
use crate::ids;

/// Maximum number of queued announcements; when there are more, the connection is closed and readers reload everything.
const MAX_QUEUED_ANNOUNCEMENTS: usize = 16_384;
/// Maximum pause before each attempt to subscribe again after a lost connection, milliseconds; full jitter.
const MAX_PAUSE_MS: u64 = 2_000;
/// The same for one channel whose slot moved: shorter, because the other subscriptions stay.
const MOVED_PAUSE_MS: u64 = 50;
/// Interval of the pings on a connection, which may be idle for long.
const PING_EVERY: Duration = Duration::from_secs(2);

/// An event of a [`Subscriber`].
#[derive(Debug, PartialEq, Eq)]
pub enum SubscriptionEvent {
    /// An announcement.
    Message {
        /// Its channel.
        channel: String,
        /// The message.
        payload: Vec<u8>,
    },
    /// The subscription was lost and is restored: messages in between were missed.
    Missed {
        /// Its channel.
        channel: String,
    },
}

/// Subscribes to channels. Dropping it ends all its subscriptions.
#[derive(Debug)]
pub struct Subscriber {
    shared: Arc<SubscriptionState>,
    events: mpsc::Receiver<SubscriptionEvent>,
    followed: HashMap<String, CancellationToken>,
}

/// State shared by the tasks of the channels.
#[derive(Debug)]
struct SubscriptionState {
    link: Link,
    events: mpsc::Sender<SubscriptionEvent>,
    /// Connections by the name of the process; an entry is locked while its connection is made.
    open: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Option<SubscriptionConnection>>>>>,
    /// Wakes the task of a channel that Redis unsubscribed because its slot moved.
    moved: Arc<Mutex<HashMap<String, Arc<Notify>>>>,
    /// Cancelled when the subscriber is dropped.
    end: CancellationToken,
}

/// A connection for subscriptions.
#[derive(Clone, Debug)]
struct SubscriptionConnection {
    connection: MultiplexedConnection,
    /// Cancelled when nothing more will arrive on the connection.
    gone: CancellationToken,
}

impl Subscriber {
    pub(super) fn new(link: Link) -> Self {
        let (sender, events) = mpsc::channel(MAX_QUEUED_ANNOUNCEMENTS);
        let end = CancellationToken::new();
        let shared = SubscriptionState { link, events: sender, open: Mutex::default(), moved: Arc::default(), end };
        Self { shared: Arc::new(shared), events, followed: HashMap::new() }
    }

    /// Subscribes to a channel and sends `done` when that has succeeded; drops `done` and forgets the channel when it fails.
    /// The subscription lasts until [`Subscriber::unsubscribe`].
    pub fn subscribe(&mut self, channel: &str, done: oneshot::Sender<()>) {
        // A second request for the channel replaces the first, whose caller did not wait.
        self.unsubscribe(channel);
        let stop = self.shared.end.child_token();
        self.followed.insert(channel.to_owned(), stop.clone());
        self.followed.retain(|_, stop| !stop.is_cancelled());
        tokio::spawn(keep_subscribed(Arc::clone(&self.shared), channel.to_owned(), done, stop));
    }

    /// Ends the subscription to a channel.
    pub fn unsubscribe(&mut self, channel: &str) {
        if let Some(stop) = self.followed.remove(channel) {
            stop.cancel();
        }
    }

    /// The next event. Cancel-safe: a dropped call misses nothing.
    pub async fn next_event(&mut self) -> SubscriptionEvent {
        match self.events.recv().await {
            Some(event) => event,
            // Does not happen: `shared` holds a sender.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.shared.end.cancel();
    }
}

/// Keeps a channel subscribed until `stop`.
async fn keep_subscribed(
    shared: Arc<SubscriptionState>,
    channel: String,
    done: oneshot::Sender<()>,
    stop: CancellationToken,
) {
    let mut first = Some(done);
    let moved = Arc::new(Notify::new());
    shared.moved().insert(channel.clone(), Arc::clone(&moved));
    loop {
        let mut pause = MAX_PAUSE_MS;
        let line = tokio::select! {
            () = stop.cancelled() => break,
            line = shared.subscribe(&channel) => line,
        };
        match (line, first.take()) {
            (Ok(line), waiting) => {
                match waiting {
                    // A caller that stopped waiting is fine: the next reader subscribes again.
                    Some(done) => _ = done.send(()),
                    None => _ = shared.events.send(SubscriptionEvent::Missed { channel: channel.clone() }).await,
                }
                tokio::select! {
                    () = stop.cancelled() => {
                        shared.unsubscribe(line, &channel).await;
                        break;
                    }
                    () = line.gone.cancelled() => {}
                    () = moved.notified() => pause = MOVED_PAUSE_MS,
                }
                tracing::debug!(channel, "subscription lost; subscribing again");
            }
            (Err(cause), Some(_)) => {
                tracing::debug!(%cause, channel, "subscribe failed");
                stop.cancel();
                break;
            }
            (Err(_), None) => {}
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(Duration::from_millis(ids::jitter(pause))) => {}
        }
    }
    let mut all = shared.moved();
    // A later subscription to the channel may have replaced the entry.
    if all.get(&channel).is_some_and(|current| Arc::ptr_eq(current, &moved)) {
        all.remove(&channel);
    }
}

impl SubscriptionState {
    /// Subscribes once, at the process of the channel's slot; returns the connection that receives the messages.
    async fn subscribe(&self, channel: &str) -> Result<SubscriptionConnection, super::LinkError> {
        let target = self.link.slot(channel.as_bytes());
        let ask = |node: Arc<RedisNode>, _, until| async move { self.subscribe_at(&node, channel, until).await };
        self.link.call_with_retries(target, RetryRule::Always, ask).await.map(|(line, _)| line)
    }

    async fn subscribe_at(
        &self,
        node: &Arc<RedisNode>,
        channel: &str,
        until: Instant,
    ) -> Result<SubscriptionConnection, AttemptError> {
        let mut line = self.line(node, until).await?;
        let (cmd, kind) = match self.link.shape {
            Topology::Cluster(_) => (redis::cmd("SSUBSCRIBE"), PushKind::SSubscribe),
            Topology::Single(_) | Topology::Sentinel(_) => (redis::cmd("SUBSCRIBE"), PushKind::Subscribe),
        };
        let answer = line.ask(cmd.clone().arg(channel), until).await?;
        // The push of a subscription that Redis ends itself looks like an answer and shifts the answers after it: only an
        // answer that names this channel counts.
        if is_about(&answer, &kind, channel) { Ok(line) } else { Err(AttemptError::TimedOut) }
    }

    async fn unsubscribe(&self, mut line: SubscriptionConnection, channel: &str) {
        let cmd = match self.link.shape {
            Topology::Cluster(_) => redis::cmd("SUNSUBSCRIBE"),
            Topology::Single(_) | Topology::Sentinel(_) => redis::cmd("UNSUBSCRIBE"),
        };
        // If it fails, the line is gone, and the subscription with it.
        let _ = line.ask(cmd.clone().arg(channel), Instant::now() + ATTEMPT_DEADLINE).await;
    }

    /// The connection to a process, made if there is none.
    async fn line(&self, node: &Arc<RedisNode>, until: Instant) -> Result<SubscriptionConnection, AttemptError> {
        let place = Arc::clone(self.places().entry(node.name.clone()).or_default());
        let mut place =
            tokio::time::timeout_at(until.into(), place.lock()).await.map_err(|_| AttemptError::TimedOut)?;
        if let Some(line) = place.as_ref().filter(|line| !line.gone.is_cancelled()) {
            return Ok(line.clone());
        }
        let gone = node.retired.child_token();
        let connection = node.listen(until, self.listener(gone.clone())).await?;
        let line = SubscriptionConnection { connection, gone };
        tokio::spawn(ping_forever(line.clone(), node.name.clone(), self.end.clone()));
        Ok(place.insert(line).clone())
    }

    /// The handler of pushes on a connection.
    fn listener(&self, gone: CancellationToken) -> impl Fn(PushInfo) -> Result<(), ()> + Send + Sync + 'static {
        let (events, moved) = (self.events.clone(), Arc::clone(&self.moved));
        move |push| {
            match push.kind {
                PushKind::Message | PushKind::SMessage => {
                    let event = Msg::from_push_info(push).map(|message| SubscriptionEvent::Message {
                        channel: message.get_channel_name().to_owned(),
                        payload: message.get_payload_bytes().to_vec(),
                    });
                    // The reader is too slow: subscribe again, which makes it reload everything.
                    if event.is_some_and(|event| events.try_send(event).is_err()) {
                        gone.cancel();
                    }
                }
                // Also the answer to our own UNSUBSCRIBE. If the channel was subscribed again meanwhile and the answer came
                // late, this wakes its task to subscribe once more.
                PushKind::SUnsubscribe | PushKind::Unsubscribe => {
                    let channel = push.data.first().and_then(|name| redis::from_redis_value_ref::<String>(name).ok());
                    let moved = moved.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(moved) = channel.and_then(|channel| moved.get(&channel).cloned()) {
                        moved.notify_one();
                    }
                }
                PushKind::Disconnection => gone.cancel(),
                _ => {}
            }
            Ok(())
        }
    }

    // Both are held for a map operation only, never across an await.
    fn places(&self) -> MutexGuard<'_, HashMap<String, Arc<tokio::sync::Mutex<Option<SubscriptionConnection>>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SubscriptionConnection {
    async fn ask(&mut self, cmd: &Cmd, until: Instant) -> Result<Value, AttemptError> {
        let until = until.min(Instant::now() + ATTEMPT_DEADLINE);
        let answer = tokio::time::timeout_at(until.into(), self.connection.send_packed_command(cmd)).await;
        let answer =
            answer.map_err(|_| AttemptError::TimedOut).and_then(|answer| Ok(answer.and_then(Value::extract_error)?));
        if matches!(&answer, Err(AttemptError::TimedOut))
            || matches!(&answer, Err(AttemptError::Redis(error)) if error.is_io_error())
        {
            self.gone.cancel();
        }
        answer
    }
}

/// Pings a connection until it or the subscriber ends: detects a peer that vanished without closing it.
async fn ping_forever(mut line: SubscriptionConnection, node: String, end: CancellationToken) {
    let gone = line.gone.clone();
    let ask = async {
        let mut every = tokio::time::interval(PING_EVERY);
        loop {
            every.tick().await;
            // `ask` closes the line if the ping fails; the answer itself does not matter.
            let _ = line.ask(&redis::cmd("PING"), Instant::now() + CALL_DEADLINE).await;
        }
    };
    tokio::select! {
        () = end.cancelled() => {}
        () = gone.cancelled() => tracing::warn!(node, "connection for subscriptions lost"),
        () = ask => {}
    }
}

fn is_about(answer: &Value, kind: &PushKind, channel: &str) -> bool {
    let Value::Push { kind: said, data } = answer else { return false };
    let named = data.first().map(redis::from_redis_value_ref::<String>);
    said == kind && matches!(named, Some(Ok(name)) if name == channel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_confirmation_that_names_the_channel_counts() {
        let push = |kind, name: &str| Value::Push { kind, data: vec![Value::BulkString(name.into()), Value::Int(1)] };
        let confirmed = |answer| is_about(&answer, &PushKind::SSubscribe, "{a}:changes");
        assert!(confirmed(push(PushKind::SSubscribe, "{a}:changes")));
        assert!(!confirmed(push(PushKind::SSubscribe, "{b}:changes")));
        assert!(!confirmed(push(PushKind::SUnsubscribe, "{a}:changes")));
        assert!(!confirmed(Value::SimpleString("PONG".into())));
    }
}
