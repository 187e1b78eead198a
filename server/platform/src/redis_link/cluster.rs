//! A Redis Cluster: the map from slots to processes, read from the Cluster and corrected by redirections.
//!
//! Not the redis crate's client, for three reasons. A slot that is being moved answers `ASK`; `ASKING` must be sent
//! right before the call on a connection that others share, and the crate sends the two apart. The crate blocks the calls
//! of every shard while it asks one, perhaps a frozen one, for the map. And the breaker is per process, so the processes
//! must be known.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::select_ok;
use redis::{ConnectionInfo, RedisError, Value};
use tokio::sync::Notify;

use super::node::RedisNode;
use super::retry::{ATTEMPT_DEADLINE, AttemptError};
use crate::ids;

/// Interval of the refreshes of the map while a process does not answer.
const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// Maximum pause between two refreshes, milliseconds; full jitter. It limits refreshes after many redirections.
const REFRESH_PAUSE_MS: u64 = 200;

/// The processes of a Cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Asked for the map when no known process answers.
    seeds: Vec<Arc<RedisNode>>,
    /// Connection settings of all processes, without an address.
    template: ConnectionInfo,
    map: RwLock<SlotMap>,
    wake: Notify,
}

#[derive(Debug)]
struct SlotMap {
    by_name: HashMap<String, Arc<RedisNode>>,
    by_slot: Vec<Option<Arc<RedisNode>>>,
}

impl Cluster {
    /// Starts the task that refreshes the map. The map is empty until [`Cluster::load_map`] or a requested refresh has run.
    pub(super) fn open(seeds: &[ConnectionInfo]) -> Result<Arc<Self>, AttemptError> {
        let template = seeds.first().ok_or(AttemptError::NoServer("no server is named"))?.clone();
        let seeds = seeds.iter().map(|seed| RedisNode::new(seed).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        let map = RwLock::new(SlotMap { by_name: HashMap::new(), by_slot: vec![None; SLOTS] });
        let this = Arc::new(Self { seeds, template, map, wake: Notify::new() });
        tokio::spawn(refresh_forever(Arc::downgrade(&this)));
        Ok(this)
    }

    /// The process of a slot, or any other, which redirects the call.
    pub(super) fn node_of(&self, slot: u16) -> Option<Arc<RedisNode>> {
        let map = self.read();
        map.by_slot.get(usize::from(slot)).cloned().flatten().or_else(|| map.any(None))
    }

    /// Any process with a closed breaker, preferably not `except`.
    pub(super) fn any(&self, except: Option<&Arc<RedisNode>>) -> Option<Arc<RedisNode>> {
        self.read().any(except)
    }

    /// The process at an address that `asked` returned.
    pub(super) fn node_at(&self, address: &str, asked: &RedisNode) -> Result<Arc<RedisNode>, AttemptError> {
        let (host, port) = read_address(address).ok_or(AttemptError::NoServer("redirected to nowhere"))?;
        let host = host.unwrap_or_else(|| host_of(&asked.name));
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        Ok(map.node(&self.template, host, port)?)
    }

    /// Records the new process of a slot, and refreshes the map soon: other slots may have moved too.
    pub(super) fn record_move(&self, slot: u16, to: &Arc<RedisNode>) {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = map.by_slot.get_mut(usize::from(slot)) {
            *node = Some(Arc::clone(to));
        }
        drop(map);
        self.request_refresh();
    }

    /// Wakes the task that refreshes the map.
    pub(super) fn request_refresh(&self) {
        self.wake.notify_one();
    }

    /// Asks all healthy servers at once and takes the first answer: one that hangs delays nothing.
    /// The seeds are asked when no other server is left.
    pub(super) async fn load_map(&self) -> Result<(), AttemptError> {
        let mut known: Vec<Arc<RedisNode>> = self.read().by_name.values().cloned().collect();
        known.retain(|node| !node.has_open_breaker());
        let (asked, runs) = match first_answer(&known).await {
            Ok(answer) => answer,
            Err(_) => first_answer(&self.seeds).await?,
        };
        self.apply_map(&asked, runs)?;
        Ok(())
    }

    /// Replaces the map; `asked` is the host of ranges without one.
    fn apply_map(&self, asked: &str, runs: Vec<SlotRange>) -> Result<(), RedisError> {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let mut by_slot = vec![None; SLOTS];
        for run in runs {
            let host = run.host.unwrap_or_else(|| asked.to_owned());
            let node = map.node(&self.template, host, run.port)?;
            by_slot[usize::from(run.first)..=usize::from(run.last)].fill(Some(node));
        }
        map.by_slot = by_slot;
        map.retire_idle();
        Ok(())
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, SlotMap> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotMap {
    fn node(&mut self, template: &ConnectionInfo, host: String, port: u16) -> Result<Arc<RedisNode>, RedisError> {
        let address = super::address_like(template.addr(), host, port);
        let name = address.to_string();
        if let Some(node) = self.by_name.get(&name) {
            return Ok(Arc::clone(node));
        }
        let node = Arc::new(RedisNode::new(&template.clone().set_addr(address))?);
        self.by_name.insert(name, Arc::clone(&node));
        Ok(node)
    }

    fn any(&self, except: Option<&Arc<RedisNode>>) -> Option<Arc<RedisNode>> {
        let is_preferred =
            |node: &&Arc<RedisNode>| !node.has_open_breaker() && except.is_none_or(|except| !Arc::ptr_eq(except, node));
        self.by_name.values().find(is_preferred).or_else(|| self.by_name.values().next()).cloned()
    }

    /// Removes processes without slots: they were replaced, or left the Cluster. A process that is just getting its first
    /// slot is added again by the next redirection.
    fn retire_idle(&mut self) {
        let busy: std::collections::HashSet<String> =
            self.by_slot.iter().flatten().map(|node| node.name.clone()).collect();
        self.by_name.retain(|name, node| {
            let stays = busy.contains(name);
            if !stays {
                node.retired.cancel();
            }
            stays
        });
    }
}

/// The slot map of the first server that answers, and that server's host.
async fn first_answer(nodes: &[Arc<RedisNode>]) -> Result<(String, Vec<SlotRange>), AttemptError> {
    if nodes.is_empty() {
        return Err(AttemptError::NoServer("no server of the Cluster is known"));
    }
    let mut question = redis::cmd("CLUSTER");
    question.arg("SLOTS");
    let until = Instant::now() + ATTEMPT_DEADLINE;
    let question = &question;
    let ask = |node: &Arc<RedisNode>| {
        let node = Arc::clone(node);
        async move {
            let answer = node.ask(question, until).await?;
            let runs = read(&answer).filter(|runs| !runs.is_empty());
            runs.map(|runs| (host_of(&node.name), runs)).ok_or(AttemptError::NoServer("the Cluster has no slots"))
        }
        .boxed()
    };
    Ok(select_ok(nodes.iter().map(ask)).await?.0)
}

/// Refreshes the map on request, and periodically while a breaker is open, until the Cluster is dropped.
async fn refresh_forever(cluster: Weak<Cluster>) {
    loop {
        let Some(this) = cluster.upgrade() else { return };
        let woken = tokio::time::timeout(REFRESH_EVERY, this.wake.notified()).await.is_ok();
        if (woken || this.read().by_name.values().any(|node| node.has_open_breaker()))
            && let Err(cause) = this.load_map().await
        {
            tracing::debug!(%cause, "read the slot map of the Redis Cluster failed");
        }
        drop(this);
        tokio::time::sleep(Duration::from_millis(ids::jitter(REFRESH_PAUSE_MS))).await;
    }
}

fn host_of(name: &str) -> String {
    name.rsplit_once(':').map_or(name, |(host, _)| host).to_owned()
}

/// Number of slots.
pub(super) const SLOTS: usize = 16_384;

/// A run of slots and its master.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SlotRange {
    pub(super) first: u16,
    pub(super) last: u16,
    /// `None`: the host of the server that answered.
    pub(super) host: Option<String>,
    pub(super) port: u16,
}

/// The slot of a key or channel: of its hash tag (the text between the first braces), if it has one.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let tag = || {
        let open = key.iter().position(|byte| *byte == b'{')? + 1;
        let length = key[open..].iter().position(|byte| *byte == b'}')?;
        (length > 0).then(|| &key[open..open + length])
    };
    crc16(tag().unwrap_or(key)) % SLOTS as u16
}

/// CRC-16/XMODEM, which Redis Cluster's specification requires.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    const POLYNOMIAL: u16 = 0x1021;
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ POLYNOMIAL };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// Reads an answer to `CLUSTER SLOTS`; `None` if it is none.
pub(super) fn read(answer: &Value) -> Option<Vec<SlotRange>> {
    let Value::Array(runs) = answer else { return None };
    runs.iter().map(run).collect()
}

fn run(entry: &Value) -> Option<SlotRange> {
    let Value::Array(parts) = entry else { return None };
    let [first, last, Value::Array(master), ..] = parts.as_slice() else { return None };
    let [host, port, ..] = master.as_slice() else { return None };
    let host: Option<String> = redis::from_redis_value_ref(host).ok()?;
    let run = SlotRange {
        first: redis::from_redis_value_ref(first).ok()?,
        last: redis::from_redis_value_ref(last).ok()?,
        host: host.filter(|host| !host.is_empty() && host != "?"),
        port: redis::from_redis_value_ref(port).ok()?,
    };
    (run.first <= run.last && usize::from(run.last) < SLOTS).then_some(run)
}

/// `host:port` of a redirection; an empty host means the server that sent it.
pub(super) fn read_address(text: &str) -> Option<(Option<String>, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(((!host.is_empty() && host != "?").then(|| host.to_owned()), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Cluster {
        let template = "redis://:pw@seed:1".parse::<ConnectionInfo>().expect("an address");
        let map = RwLock::new(SlotMap { by_name: HashMap::new(), by_slot: vec![None; SLOTS] });
        Cluster { seeds: vec![], template, map, wake: Notify::new() }
    }

    fn run(first: u16, last: u16, host: Option<&str>) -> SlotRange {
        SlotRange { first, last, host: host.map(str::to_owned), port: 7_000 }
    }

    fn name_of(cluster: &Cluster, slot: u16) -> String {
        cluster.node_of(slot).expect("a process").name.clone()
    }

    #[test]
    fn every_slot_of_a_range_has_its_master_and_a_missing_host_is_the_asked_servers() {
        let cluster = empty();
        cluster.apply_map("asked", vec![run(0, 99, Some("a")), run(100, 16_383, None)]).expect("it is a map");
        assert_eq!(
            [0, 99, 100, 16_383].map(|slot| name_of(&cluster, slot)),
            ["a:7000", "a:7000", "asked:7000", "asked:7000"]
        );
    }

    #[test]
    fn only_a_moved_slot_is_sent_to_its_new_process() {
        let cluster = empty();
        cluster.apply_map("a", vec![run(0, 16_383, None)]).expect("it is a map");
        let asked = cluster.node_of(5).expect("a node");
        let home = cluster.node_at("b:7001", &asked).expect("a node");
        cluster.record_move(5, &home);
        assert_eq!([4, 5, 6].map(|slot| name_of(&cluster, slot)), ["a:7000", "b:7001", "a:7000"]);
        assert_eq!(cluster.node_at(":7002", &asked).expect("a node").name, "a:7002", "an empty host is the sender");
    }

    #[test]
    fn a_call_without_a_slot_avoids_the_process_that_failed() {
        let cluster = empty();
        cluster.apply_map("x", vec![run(0, 99, Some("a")), run(100, 200, Some("b"))]).expect("it is a map");
        let first = cluster.any(None).expect("a node");
        let second = cluster.any(Some(&first)).expect("a node");
        assert!(!Arc::ptr_eq(&first, &second));
        cluster.apply_map("x", vec![run(0, 200, Some("a"))]).expect("it is a map");
        let only = cluster.any(None).expect("a node");
        assert!(Arc::ptr_eq(&only, &cluster.any(Some(&only)).expect("the only one there is")));
    }

    #[test]
    fn a_process_without_slots_is_retired_and_the_others_keep_their_breakers() {
        let cluster = empty();
        cluster.apply_map("x", vec![run(0, 99, Some("a")), run(100, 200, Some("b"))]).expect("it is a map");
        let (stays, goes) = (cluster.node_of(0).expect("a"), cluster.node_of(100).expect("b"));
        cluster.apply_map("x", vec![run(0, 200, Some("a"))]).expect("it is a map");
        assert!(goes.retired.is_cancelled());
        assert!(!stays.retired.is_cancelled());
        assert!(Arc::ptr_eq(&stays, &cluster.node_of(150).expect("a")));
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"bar"), 5_061);
    }

    #[test]
    fn only_the_first_hash_tag_counts() {
        assert_eq!(slot_of(b"t1:{show:7}:map"), slot_of(b"show:7"));
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
        assert_eq!(slot_of(b"foo{bar}{zap}"), slot_of(b"bar"));
        for whole in [&b"foo{}{bar}"[..], b"foo{bar", b"foo}bar{"] {
            assert_eq!(slot_of(whole), crc16(whole) % SLOTS as u16);
        }
    }

    #[test]
    fn the_answer_of_a_node_is_read() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let master = |host: Value| Value::Array(vec![host, Value::Int(7_000), text("id"), Value::Array(vec![])]);
        let entry = |host| Value::Array(vec![Value::Int(0), Value::Int(5_460), master(host), master(text("replica"))]);
        let run = |host: Option<&str>| SlotRange { first: 0, last: 5_460, host: host.map(str::to_owned), port: 7_000 };
        let answer = Value::Array(vec![entry(text("10.0.0.1")), entry(Value::Nil), entry(text(""))]);
        assert_eq!(read(&answer), Some(vec![run(Some("10.0.0.1")), run(None), run(None)]));
    }

    #[test]
    fn a_malformed_answer_is_ignored() {
        let outside = vec![Value::Int(0), Value::Int(16_384), Value::Array(vec![Value::Nil, Value::Int(1)])];
        for answer in [Value::Nil, Value::Array(vec![Value::Nil]), Value::Array(vec![Value::Array(outside)])] {
            assert_eq!(read(&answer), None, "{answer:?}");
        }
    }

    #[test]
    fn redirections_name_an_address_or_only_a_port() {
        assert_eq!(read_address("10.0.0.2:6381"), Some((Some("10.0.0.2".into()), 6_381)));
        assert_eq!(read_address("::1:6381"), Some((Some("::1".into()), 6_381)));
        assert_eq!(read_address(":6381"), Some((None, 6_381)));
        assert_eq!(read_address("nowhere"), None);
    }
}
