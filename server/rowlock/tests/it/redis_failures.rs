//! Failures of a single Redis, of a master with a replica and three sentinels, and of a cluster of three shards: shows on
//! each, a migrating slot, a failing shard.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::seats::SeatState;
use futures::future::Either;
use platform::redis_link::{Link, LinkError, LuaScript};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::idempotency::{book_seat, post};
use crate::prelude::*;
use crate::redis_process::{HoldAttempt, LiveMap, Redis, hold_with_retries, try_hold};

/// Time limit of a refusal by an open breaker: much less than the timeout of a call.
const BREAKER_TIMEOUT: Duration = Duration::from_millis(500);

async fn world_on(redis: &Redis, servers: usize) -> World {
    World::start(servers, &[("REDIS_URL", &redis.url())]).await
}

/// Sends holds until one is refused at once: the breaker is open.
async fn wait_until_breaker_opens(visitor: &Visitor, seat: u32) {
    wait_until("a breaker opens", || async {
        let tried = try_hold(visitor, &[seat], &new_id().to_string()).await;
        tried.is_unavailable() && tried.took < BREAKER_TIMEOUT
    })
    .await;
}

async fn has_its_hold(visitor: &Visitor) -> bool {
    visitor.get(&format!("/api/v1/shows/{}/hold", visitor.show)).await.0 == StatusCode::OK
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_redis_is_answered_with_503_at_once_and_served_after_it_continues() {
    let redis = Redis::start(&[]).await;
    let world = world_on(&redis, 1).await;
    let (ann, bob, eve) = (world.visitor(), world.visitor(), world.visitor());
    assert_eq!(ann.hold(&[1]).await.0, StatusCode::CREATED);

    redis.freeze().await;
    wait_until_breaker_opens(&bob, 2).await;
    redis.thaw().await;
    assert_eq!(hold_with_retries(&eve, &[3]).await.status, StatusCode::CREATED);
    assert!(has_its_hold(&ann).await, "earlier holds are kept");
    let late = hold_with_retries(&eve, &[1]).await;
    assert_ne!(late.status, StatusCode::CREATED, "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn restarting_redis_that_loads_its_data_loses_nothing() {
    let mut redis = Redis::start(&["enable-debug-command yes"]).await;
    let world = world_on(&redis, 1).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let mut watching = LiveMap::open(&bob).await;
    assert_eq!(ann.hold(&[1]).await.0, StatusCode::CREATED);
    watching.wait_for_seat(1, SeatState::Locked).await;
    redis.command::<()>(&["DEBUG", "POPULATE", "2000", "ballast"]).await;
    redis.command::<()>(&["SAVE"]).await;

    redis.kill().await;
    wait_until_breaker_opens(&bob, 2).await;
    // Half a millisecond per key: a second of "LOADING".
    redis.restart(&["key-load-delay 500", "loading-process-events-interval-bytes 1024"]);
    wait_until("Redis is loading", || async {
        let refused = redis.try_command::<String>(&["GET", "anything"]).await.err();
        refused.is_some_and(|error| error.code() == Some("LOADING"))
    })
    .await;
    assert!(try_hold(&bob, &[2], "while-loading").await.is_unavailable());
    assert_eq!(hold_with_retries(&bob, &[2]).await.status, StatusCode::CREATED);
    assert!(has_its_hold(&ann).await, "the hold was on disk");
    watching.wait_for_seat(2, SeatState::Locked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flushed_scripts_and_closed_connections_cause_no_errors() {
    let redis = Redis::start(&[]).await;
    let world = world_on(&redis, 2).await;
    let mut watching = LiveMap::open(&world.visitor_at(1)).await;
    let mut seat = 0;
    for trouble in
        [&["SCRIPT", "FLUSH"][..], &["CLIENT", "KILL", "TYPE", "normal"], &["CLIENT", "KILL", "TYPE", "pubsub"]]
    {
        for server in 0..2 {
            redis.command::<redis::Value>(trouble).await;
            // The first hold after it is granted without a retry.
            let (status, answer) = world.visitor_at(server).hold(&[seat]).await;
            assert_eq!(status, StatusCode::CREATED, "after {trouble:?}: {answer}");
            watching.wait_for_seat(seat, SeatState::Locked).await;
            seat += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_redis_refuses_holds_until_there_is_memory() {
    let redis = Redis::start(&[]).await;
    let world = world_on(&redis, 1).await;
    let ann = world.visitor();
    ann.wait_for_seat(1, '0').await;
    redis.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    assert!(try_hold(&ann, &[1], "while-full").await.is_unavailable());
    redis.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(hold_with_retries(&ann, &[1]).await.status, StatusCode::CREATED);
}

/// A proxy to Redis that loses the answers to commands that name `key`: they are executed, and the connection is
/// closed.
async fn proxy_losing_answers(key: &'static str, redis: &Redis) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("redis://{}/", listener.local_addr().expect("an address"));
    let port = redis.port;
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass_until_named(client, port, key));
        }
    });
    url
}

/// Forwards in both directions; closes the connection at the answer to a command that names `key`.
async fn pass_until_named(mut client: TcpStream, port: u16, key: &str) -> std::io::Result<()> {
    let mut redis = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut asked, mut answered) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let mut is_named = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let passing = &asked[..read?];
                if passing.is_empty() {
                    return Ok(());
                }
                is_named |= passing.windows(key.len()).any(|window| window == key.as_bytes());
                redis.write_all(passing).await?;
            }
            read = redis.read(&mut answered) => {
                let read = read?;
                if read == 0 || is_named {
                    return Ok(());
                }
                client.write_all(&answered[..read]).await?;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counting_call_is_not_repeated_when_its_answer_is_lost() {
    const COUNT: &str = "return redis.call('INCR', KEYS[1])";
    let redis = Redis::start(&[]).await;
    // Loaded before: otherwise the lost answer would be NOSCRIPT.
    redis.command::<String>(&["SCRIPT", "LOAD", COUNT]).await;
    let link = Link::connect(&proxy_losing_answers("{lost}", &redis).await).await.expect("a link");
    let count = LuaScript::new(COUNT);

    let once = link.eval_once(&count.call(&["{lost}:once"])).await;
    assert!(matches!(once, Err(LinkError::Unavailable { attempts: 1, .. })), "{once:?}");
    assert_eq!(redis.command::<u32>(&["GET", "{lost}:once"]).await, 1);

    // A repeatable call to the same key shows that the proxy loses answers.
    let often = link.eval(&count.call(&["{lost}:often"])).await;
    assert!(matches!(often, Err(LinkError::Unavailable { .. })), "{often:?}");
    assert!(redis.command::<u32>(&["GET", "{lost}:often"]).await > 1);
}

struct SentinelSetup {
    master: Redis,
    replica: Redis,
    sentinels: Vec<Redis>,
}

impl SentinelSetup {
    async fn start() -> Self {
        let master = Redis::start(&[]).await;
        let replica = Redis::start(&[&format!("replicaof 127.0.0.1 {}", master.port)]).await;
        wait_until("the replica follows", || async { link_is_up(&replica).await }).await;
        let monitor = format!("sentinel monitor box 127.0.0.1 {} 2", master.port);
        let settings = [&monitor, "sentinel down-after-milliseconds box 500", "sentinel failover-timeout box 3000"]
            .map(|line| line);
        let mut sentinels = vec![];
        for _ in 0..3 {
            sentinels.push(Redis::start(&settings).await);
        }
        for sentinel in &sentinels {
            wait_until("the sentinels know each other and the replica", || async {
                let text = |name| async move { of_master(sentinel, name).await };
                text("num-other-sentinels").await == "2" && text("num-slaves").await == "1"
            })
            .await;
        }
        Self { master, replica, sentinels }
    }

    fn url(&self) -> String {
        let ports: Vec<String> = self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port)).collect();
        format!("redis+sentinel://{}/box", ports.join(","))
    }
}

async fn link_is_up(replica: &Redis) -> bool {
    replica.command::<String>(&["INFO", "replication"]).await.contains("master_link_status:up")
}

async fn of_master(sentinel: &Redis, name: &str) -> String {
    let words: Vec<String> = sentinel.command(&["SENTINEL", "MASTER", "box"]).await;
    words.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_continue_at_the_replica_after_the_master_dies() {
    let mut redis = SentinelSetup::start().await;
    let world = World::start(2, &[("REDIS_URL", &redis.url())]).await;
    let (ann, bob) = (world.visitor_at(0), world.visitor_at(1));
    let mut watching = LiveMap::open(&bob).await;
    assert_eq!(ann.hold(&[1]).await.0, StatusCode::CREATED);
    watching.wait_for_seat(1, SeatState::Locked).await;
    let offset = || async { redis.master.command::<u64>(&["WAIT", "1", "1000"]).await };
    wait_until("the replica has the hold", || async { offset().await == 1 }).await;

    redis.master.kill().await;
    // Visitors retry meanwhile; `hold_with_retries` fails if an answer is too late.
    let crowd = (0..20).map(|number| {
        let visitor = world.visitor_at(number % 2);
        async move { hold_with_retries(&visitor, &[100 + number as u32]).await }
    });
    for tried in join_all(crowd).await {
        assert_eq!(tried.status, StatusCode::CREATED, "{tried:?}");
    }
    let role: Vec<redis::Value> = redis.replica.command(&["ROLE"]).await;
    assert_eq!(role[0], redis::Value::BulkString(b"master".to_vec()));
    let (status, hold) = ann.get(&format!("/api/v1/shows/{}/hold", ann.show)).await;
    assert_eq!((status, &hold["seats"][0]["seat"]), (StatusCode::OK, &1.into()), "the replica had the hold: {hold}");
    watching.wait_for_seat(119, SeatState::Locked).await;

    // The old master restarts empty as a master, until the sentinels reconfigure it. No server writes to it.
    redis.master.restart(&[]);
    redis.master.wait_until_ready().await;
    let late = hold_with_retries(&bob, &[7]).await;
    assert_eq!(late.status, StatusCode::CREATED, "{late:?}");
    assert_eq!(redis.master.command::<u64>(&["DBSIZE"]).await, 0);
    watching.wait_for_seat(7, SeatState::Locked).await;
}

const SHARDS: usize = 3;
const SLOTS: [(u16, u16); SHARDS] = [(0, 5_460), (5_461, 10_922), (10_923, 16_383)];
/// Timeout of moving a key, in milliseconds: its new node may wait for the disk.
const MIGRATE_TIMEOUT_MS: &str = "10000";

struct Cluster(Vec<Redis>);

impl Cluster {
    async fn start() -> Self {
        let settings = ["cluster-enabled yes", "cluster-node-timeout 2000", "cluster-require-full-coverage no"];
        let nodes = join_all((0..SHARDS).map(|_| Redis::start(&settings))).await;
        for (number, node) in nodes.iter().enumerate() {
            let (first, last) = SLOTS[number];
            node.command::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]).await;
            node.command::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]).await;
        }
        // Only then: a node that knows another one may not choose its epoch any more.
        for node in &nodes[1..] {
            let (port, bus) = (node.port.to_string(), node.bus_port.to_string());
            nodes[0].command::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).await;
        }
        for node in &nodes {
            wait_until("the Cluster is connected", || async {
                let info: String = node.command(&["CLUSTER", "INFO"]).await;
                ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3"]
                    .iter()
                    .all(|line| info.contains(line))
            })
            .await;
        }
        Self(nodes)
    }

    /// URL of two of the three nodes: the third is discovered.
    fn url(&self) -> String {
        format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", self.0[0].port, self.0[1].port)
    }

    async fn slot_of(&self, show: Uuid) -> u16 {
        self.0[0].command(&["CLUSTER", "KEYSLOT", &format!("{{show:{show}}}")]).await
    }

    async fn shows(&self, world: &World) -> [Uuid; SHARDS] {
        let mut shows = [None; SHARDS];
        while shows.contains(&None) {
            let show = insert_show(&world.pg, 300_000, 24 * 3600).await;
            let slot = self.slot_of(show).await;
            let shard = SLOTS.iter().position(|(_, last)| slot <= *last).expect("every slot has a shard");
            shows[shard] = Some(show);
        }
        shows.map(|show| show.expect("every shard has a show"))
    }

    async fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.move_keys(slot, from, to).await;
        self.announce_slot_owner(slot, from, to).await;
    }

    /// First half of the migration: the keys have moved, and the slot has not.
    async fn move_keys(&self, slot: u16, from: usize, to: usize) {
        let (slot, (from, to)) = (slot.to_string(), (&self.0[from], &self.0[to]));
        let id = async |node: &Redis| node.command::<String>(&["CLUSTER", "MYID"]).await;
        let (from_id, to_id) = (id(from).await, id(to).await);
        to.command::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]).await;
        from.command::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]).await;
        loop {
            // One at a time, so calls meet a show whose keys are on both nodes.
            let keys: Vec<String> = from.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "1"]).await;
            let Some(key) = keys.first() else { break };
            from.command::<()>(&["MIGRATE", "127.0.0.1", &to.port.to_string(), key, "0", MIGRATE_TIMEOUT_MS]).await;
        }
    }

    /// Second half: every node gets the new owner.
    async fn announce_slot_owner(&self, slot: u16, from: usize, to: usize) {
        let (slot, (from, to)) = (slot.to_string(), (&self.0[from], &self.0[to]));
        let to_id: String = to.command(&["CLUSTER", "MYID"]).await;
        // The new owner first, as redis-cli does: until then the old one still answers.
        for node in [to, from, &self.0[3 - self.index_of(from) - self.index_of(to)]] {
            node.command::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]).await;
        }
        wait_until("the Cluster agrees", || async {
            let epochs = join_all(self.0.iter().map(current_epoch)).await;
            epochs.iter().all(|epoch| *epoch == epochs[0])
        })
        .await;
    }

    fn index_of(&self, node: &Redis) -> usize {
        self.0.iter().position(|other| other.port == node.port).expect("the node is in the Cluster")
    }
}

async fn current_epoch(node: &Redis) -> String {
    let info: String = node.command(&["CLUSTER", "INFO"]).await;
    info.lines().find(|line| line.starts_with("cluster_current_epoch:")).expect("an epoch").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_of_every_shard_are_held_seen_and_released_at_two_servers() {
    let cluster = Cluster::start().await;
    let world = World::start(2, &[("REDIS_URL", &cluster.url())]).await;
    for show in cluster.shows(&world).await {
        let (ann, bob) = (world.visitor_at(0).at_show(show), world.visitor_at(1).at_show(show));
        let mut watching = LiveMap::open(&bob).await;
        let hold = expect_answer(ann.hold(&[5, 6]).await, StatusCode::CREATED);
        watching.wait_for_seat(6, SeatState::Locked).await;
        assert_eq!(bob.hold(&[6]).await.0, StatusCode::LOCKED);
        let (status, _) = ann.change(&hold, &[], &[5, 6]).await;
        assert!(status.is_success(), "{status}");
        watching.wait_for_seat(6, SeatState::Available).await;
        assert_eq!(bob.hold(&[6]).await.0, StatusCode::CREATED);
        watching.wait_for_seat(6, SeatState::Locked).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_answers_reach_the_other_replica_on_every_shard() {
    let cluster = Cluster::start().await;
    let world = World::start(2, &[("REDIS_URL", &cluster.url())]).await;
    let people: Vec<Visitor> = (0..12).map(|_| world.visitor_at(0)).collect();
    let booked = (0_u32..).zip(&people).map(|(seat, visitor)| book_seat(visitor, seat, "book"));
    let booked = join_all(booked).await;
    world.execute("DELETE FROM idempotency_keys").await;
    for (visitor, (body, first)) in people.iter().zip(booked) {
        let there = visitor.moved_to(&world, 1);
        let answer = post(&there, "/api/v1/bookings", "book", &body, &[]).await;
        assert_eq!(answer.status_and_body(), first.status_and_body());
    }
}

/// Two concurrent holds of each seat, and their results.
async fn crowd(world: &World, show: Uuid, seats: std::ops::Range<u32>) -> Vec<(Visitor, u32, HoldAttempt)> {
    let attempts = seats.flat_map(|seat| [(seat, 0), (seat, 1)]).map(|(seat, server)| async move {
        let visitor = world.visitor_at(server).at_show(show);
        let attempt = hold_with_retries(&visitor, &[seat]).await;
        (visitor, seat, attempt)
    });
    join_all(attempts).await
}

/// Counts calls, to detect a repeated or lost one.
const COUNT: &str = "return redis.call('INCR', KEYS[1])";
const CALLS: i64 = 200;

/// Many concurrent calls over one shared connection; all must be answered.
async fn count_many_times(link: &Link, script: &LuaScript, key: &str) {
    let calls = (0..CALLS).map(|_| async { link.eval(&script.call(&[key])).await });
    for answer in join_all(calls).await {
        let answer = answer.expect("an answer");
        assert!(matches!(answer.value, redis::Value::Int(_)), "{answer:?}");
        assert_eq!(answer.attempts, 1, "a redirection is no retry, because nothing was executed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_follow_a_migrating_slot_on_either_node() {
    let cluster = Cluster::start().await;
    let link = Link::connect(&cluster.url()).await.expect("the Cluster answers");
    let (script, key) = (LuaScript::new(COUNT), "{show:1}:count");
    let slot: u16 = cluster.0[0].command(&["CLUSTER", "KEYSLOT", key]).await;
    let from = SLOTS.iter().position(|(_, last)| slot <= *last).expect("every slot has a shard");
    let to = (from + 1) % SHARDS;
    count_many_times(&link, &script, key).await;
    cluster.move_keys(slot, from, to).await;
    // ASK: other calls use the same connection between ASKING and the call.
    count_many_times(&link, &script, key).await;
    cluster.announce_slot_owner(slot, from, to).await;
    // MOVED: the client updates its slot table.
    count_many_times(&link, &script, key).await;
    let counted: i64 = cluster.0[to].command(&["GET", key]).await;
    assert_eq!(counted, 3 * CALLS);
}

#[tokio::test(flavor = "multi_thread")]
async fn slot_migration_during_holds_loses_none_and_grants_none_twice() {
    let cluster = Cluster::start().await;
    let world = World::start(2, &[("REDIS_URL", &cluster.url())]).await;
    let show = cluster.shows(&world).await[0];
    let slot = cluster.slot_of(show).await;
    let mut watching = LiveMap::open(&world.visitor_at(1).at_show(show)).await;

    let enough = AtomicBool::new(false);
    let moving = async {
        let mut moves = 0;
        while !enough.load(Ordering::Relaxed) || moves < 3 {
            cluster.move_slot(slot, moves % SHARDS, (moves + 1) % SHARDS).await;
            moves += 1;
        }
    };
    let holding = async {
        let mut attempts = vec![];
        for row in 0..14 {
            attempts.extend(crowd(&world, show, row * 20..row * 20 + 20).await);
        }
        enough.store(true, Ordering::Relaxed);
        attempts
    };
    let (attempts, ()) = tokio::join!(holding, moving);

    let mut owners: HashMap<u32, Visitor> = HashMap::new();
    for (visitor, seat, attempt) in attempts {
        match attempt.status {
            StatusCode::CREATED => assert!(owners.insert(seat, visitor).is_none(), "seat {seat} was granted twice"),
            status => assert_eq!(status, StatusCode::LOCKED, "{attempt:?}"),
        }
    }
    assert_eq!(owners.len(), 280, "every seat was granted once");
    for (seat, owner) in &owners {
        let (status, hold) = owner.get(&format!("/api/v1/shows/{show}/hold")).await;
        assert_eq!((status, &hold["seats"][0]["seat"]), (StatusCode::OK, &(*seat).into()), "{hold}");
    }
    let expected = format!("{}{}", "1".repeat(280), "0".repeat(20));
    let visitor = world.visitor_at(1).at_show(show);
    wait_until("the map shows all holds", || async { visitor.seat_states().await == expected }).await;
    // A live map from before the migration still gets frames, wherever the slot is now.
    let last = world.visitor_at(0).at_show(show);
    assert_eq!(hold_with_retries(&last, &[299]).await.status, StatusCode::CREATED);
    watching.wait_for_seat(299, SeatState::Locked).await;
}

/// While `lost`'s shard is down, its visitors get a 503 in time, and others are not affected.
async fn assert_only_its_shows_fail(world: &World, lost: Uuid, others: [Uuid; 2]) {
    let mut watching = LiveMap::open(&world.visitor_at(1).at_show(others[1])).await;
    for seat in 1..20 {
        let (away, first, second) = tokio::join!(
            try_seat(world, lost, seat),
            try_seat(world, others[0], seat),
            try_seat(world, others[1], seat)
        );
        assert!(away.is_unavailable(), "{away:?}");
        for attempt in [first, second] {
            assert_eq!(attempt.status, StatusCode::CREATED, "{attempt:?}");
        }
        watching.wait_for_seat(seat, SeatState::Locked).await;
    }
    // One failed shard of three does not make the server unready.
    expect_answer(world.visitor_at(1).get("/readyz").await, StatusCode::OK);
}

async fn try_seat(world: &World, show: Uuid, seat: u32) -> HoldAttempt {
    try_hold(&world.visitor().at_show(show), &[seat], "any").await
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_shard_affects_only_its_shows() {
    let mut cluster = Cluster::start().await;
    let world = World::start(2, &[("REDIS_URL", &cluster.url())]).await;
    let [lost, others @ ..] = cluster.shows(&world).await;
    for show in [lost, others[0], others[1]] {
        assert_eq!(world.visitor().at_show(show).hold(&[0]).await.0, StatusCode::CREATED);
    }
    cluster.0[0].kill().await;
    assert_only_its_shows_fail(&world, lost, others).await;
    // It restarts empty: its shows are rebuilt from Postgres.
    cluster.0[0].restart(&[]);
    let back = hold_with_retries(&world.visitor().at_show(lost), &[50]).await;
    assert_eq!(back.status, StatusCode::CREATED, "{back:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_shard_affects_only_its_shows() {
    let cluster = Cluster::start().await;
    let world = World::start(2, &[("REDIS_URL", &cluster.url())]).await;
    let [others @ .., lost] = cluster.shows(&world).await;
    let ann = world.visitor().at_show(lost);
    assert_eq!(ann.hold(&[0]).await.0, StatusCode::CREATED);
    cluster.0[2].freeze().await;
    // The first requests wait until the timeout; concurrent requests to another shard do not.
    let both = futures::future::join(try_seat(&world, others[0], 60), try_seat(&world, others[1], 60));
    match futures::future::select(Box::pin(try_seat(&world, lost, 60)), Box::pin(both)).await {
        Either::Left((away, _)) => panic!("the others waited longer than {away:?}"),
        Either::Right(((first, second), away)) => {
            assert_eq!((first.status, second.status), (StatusCode::CREATED, StatusCode::CREATED));
            assert!(away.await.is_unavailable());
        }
    }
    assert_only_its_shows_fail(&world, lost, others).await;
    cluster.0[2].thaw().await;
    let back = hold_with_retries(&world.visitor().at_show(lost), &[50]).await;
    assert_eq!(back.status, StatusCode::CREATED, "{back:?}");
    let late = hold_with_retries(&world.visitor_at(1).at_show(lost), &[0]).await;
    assert_eq!(late.status, StatusCode::LOCKED, "earlier holds are kept: {late:?}");
}
