//! The master that Sentinels name: asked at the start, after each failure, and every second.
//!
//! The Sentinels are more reliable than the master itself: a master that was partitioned and returns believes for a while
//! that it still is master. So the configuration with the highest epoch counts, and an older one is never used again.

use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use redis::{ConnectionAddr, ConnectionInfo, Value};
use tokio::sync::Notify;

use super::node::RedisNode;
use super::retry::{ATTEMPT_DEADLINE, AttemptError};
use crate::ids;

/// Interval of the regular queries to the Sentinels.
const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// Maximum pause between two queries, milliseconds; full jitter. It limits queries after many failures.
const REFRESH_PAUSE_MS: u64 = 200;

/// The master of a service.
#[derive(Debug)]
pub(super) struct Sentinel {
    sentinels: Vec<RedisNode>,
    service: String,
    /// Connection settings of a master, without its address.
    template: ConnectionInfo,
    followed: RwLock<FollowedMaster>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct FollowedMaster {
    epoch: u64,
    /// `None` until the Sentinels have answered once.
    master: Option<Arc<RedisNode>>,
}

/// A Sentinel's answer about the master.
#[derive(Debug, PartialEq, Eq)]
struct MasterReport {
    epoch: u64,
    host: String,
    port: u16,
}

impl Sentinel {
    /// Starts the task that follows the master.
    pub(super) fn open(
        sentinels: &[ConnectionInfo],
        service: String,
        template: ConnectionInfo,
    ) -> Result<Arc<Self>, AttemptError> {
        let sentinels = sentinels.iter().map(RedisNode::new).collect::<Result<Vec<_>, _>>()?;
        let this = Arc::new(Self { sentinels, service, template, followed: RwLock::default(), wake: Notify::new() });
        tokio::spawn(follow(Arc::downgrade(&this)));
        Ok(this)
    }

    /// The current master; `None` before the first answer of the Sentinels.
    pub(super) fn master(&self) -> Option<Arc<RedisNode>> {
        self.followed.read().unwrap_or_else(PoisonError::into_inner).master.clone()
    }

    /// Wakes the task that asks the Sentinels, after a failure of the master.
    pub(super) fn request_refresh(&self) {
        self.wake.notify_one();
    }

    /// Asks the Sentinels, and switches to the master they name.
    pub(super) async fn refresh_master(&self) -> Result<(), AttemptError> {
        let report = newest_report(&self.sentinels, &self.service)
            .await
            .ok_or(AttemptError::NoServer("no sentinel names a master"))?;
        let mut followed = self.followed.write().unwrap_or_else(PoisonError::into_inner);
        let name = address(&self.template, &report).to_string();
        let is_known = followed.master.as_ref().is_some_and(|master| master.name == name);
        if report.epoch < followed.epoch || is_known {
            followed.epoch = followed.epoch.max(report.epoch);
            return Ok(());
        }
        let master = Arc::new(node(&self.template, &report)?);
        if let Some(before) = followed.master.replace(Arc::clone(&master)) {
            tracing::warn!(from = before.name, to = master.name, "follow another Redis master");
            before.retired.cancel();
        }
        followed.epoch = report.epoch;
        Ok(())
    }
}

/// Follows the master until the link is dropped.
async fn follow(sentinel: Weak<Sentinel>) {
    loop {
        let Some(this) = sentinel.upgrade() else { return };
        let _ = tokio::time::timeout(REFRESH_EVERY, this.wake.notified()).await;
        if let Err(cause) = this.refresh_master().await {
            tracing::debug!(%cause, service = this.service, "find the Redis master failed");
        }
        drop(this);
        tokio::time::sleep(Duration::from_millis(ids::jitter(REFRESH_PAUSE_MS))).await;
    }
}

/// Asks all Sentinels at once and takes the newest answer of a majority: one that was suspended may be stale. Fewer answers
/// count when no more arrive.
async fn newest_report(sentinels: &[RedisNode], service: &str) -> Option<MasterReport> {
    let mut question = redis::cmd("SENTINEL");
    question.arg("MASTER").arg(service);
    let until = Instant::now() + ATTEMPT_DEADLINE;
    let mut answers: FuturesUnordered<_> = sentinels.iter().map(|sentinel| sentinel.ask(&question, until)).collect();
    let majority = sentinels.len() / 2 + 1;
    let mut reports = Vec::new();
    while let Some(answer) = answers.next().await {
        reports.extend(answer.ok().as_ref().and_then(read));
        if reports.len() == majority {
            break;
        }
    }
    reports.into_iter().max_by_key(|report| report.epoch)
}

/// Reads an answer to `SENTINEL MASTER`: names and values in turn.
fn read(answer: &Value) -> Option<MasterReport> {
    let words: Vec<String> = redis::from_redis_value_ref(answer).ok()?;
    let value = |name: &str| words.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1].as_str());
    Some(MasterReport {
        epoch: value("config-epoch")?.parse().ok()?,
        host: value("ip")?.to_owned(),
        port: value("port")?.parse().ok()?,
    })
}

fn address(template: &ConnectionInfo, report: &MasterReport) -> ConnectionAddr {
    super::address_like(template.addr(), report.host.clone(), report.port)
}

fn node(template: &ConnectionInfo, report: &MasterReport) -> Result<RedisNode, redis::RedisError> {
    RedisNode::new(&template.clone().set_addr(address(template, report)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(words: &[&str]) -> Value {
        Value::Array(words.iter().map(|word| Value::BulkString(word.as_bytes().to_vec())).collect())
    }

    #[test]
    fn a_sentinels_answer_yields_address_and_epoch() {
        let words = ["name", "box", "ip", "10.0.0.7", "port", "6380", "flags", "master", "config-epoch", "3"];
        let report = MasterReport { epoch: 3, host: "10.0.0.7".into(), port: 6_380 };
        assert_eq!(read(&answer(&words)), Some(report));
    }

    #[test]
    fn an_incomplete_answer_is_ignored() {
        for words in [&["ip", "10.0.0.7", "port", "6380"][..], &["ip", "a", "port", "x", "config-epoch", "3"], &[]] {
            assert_eq!(read(&answer(words)), None, "{words:?}");
        }
        assert_eq!(read(&Value::Nil), None);
    }
}
