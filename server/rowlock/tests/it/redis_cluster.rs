//! A Cluster of three shards: shows on each, a slot on the move, a shard that dies.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::seats::SeatState;
use futures::future::Either;
use platform::redis_link::{Link, LuaScript};
use reqwest::StatusCode;
use uuid::Uuid;

use crate::idempotency::{booked, post};
use crate::redis_process::{Redis, Tried, Watching, hold_at_last, try_hold};
use crate::world::{Visitor, World, insert_show, until};

const SHARDS: usize = 3;
const SLOTS: [(u16, u16); SHARDS] = [(0, 5_460), (5_461, 10_922), (10_923, 16_383)];
/// A key on the move may take this long, in milliseconds: its new home may be waiting for the disk.
const MIGRATE_WITHIN_MS: &str = "10000";

struct Cluster(Vec<Redis>);

impl Cluster {
    async fn start() -> Self {
        let settings = ["cluster-enabled yes", "cluster-node-timeout 2000", "cluster-require-full-coverage no"];
        let nodes = futures::future::join_all((0..SHARDS).map(|_| Redis::start(&settings))).await;
        for (number, node) in nodes.iter().enumerate() {
            let (first, last) = SLOTS[number];
            node.ask::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]).await;
            node.ask::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]).await;
        }
        // Only then: a node that knows another may not choose its epoch any more.
        for node in &nodes[1..] {
            let (port, bus) = (node.port.to_string(), node.bus_port.to_string());
            nodes[0].ask::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).await;
        }
        for node in &nodes {
            until("the Cluster has met", || async {
                let info: String = node.ask(&["CLUSTER", "INFO"]).await;
                ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3"]
                    .iter()
                    .all(|line| info.contains(line))
            })
            .await;
        }
        Self(nodes)
    }

    /// Two of the three: the third is found out.
    fn url(&self) -> String {
        format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", self.0[0].port, self.0[1].port)
    }

    async fn slot_of(&self, show: Uuid) -> u16 {
        self.0[0].ask(&["CLUSTER", "KEYSLOT", &format!("{{show:{show}}}")]).await
    }

    /// A show on every shard.
    async fn shows(&self, world: &World) -> [Uuid; SHARDS] {
        let mut shows = [None; SHARDS];
        while shows.contains(&None) {
            let show = insert_show(&world.pg, 300_000, 24 * 3600).await;
            let slot = self.slot_of(show).await;
            let shard = SLOTS.iter().position(|(_, last)| slot <= *last).expect("every slot has a shard");
            shows[shard] = Some(show);
        }
        shows.map(|show| show.expect("all are there"))
    }

    /// Moves a slot as resharding does.
    async fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.move_keys(slot, from, to).await;
        self.settle(slot, from, to).await;
    }

    /// Its first half: the keys are there already, the slot is still here.
    async fn move_keys(&self, slot: u16, from: usize, to: usize) {
        let (slot, (from, to)) = (slot.to_string(), (&self.0[from], &self.0[to]));
        let id = async |node: &Redis| node.ask::<String>(&["CLUSTER", "MYID"]).await;
        let (from_id, to_id) = (id(from).await, id(to).await);
        to.ask::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]).await;
        from.ask::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]).await;
        loop {
            // One at a time: calls meet a show whose keys are here and there.
            let keys: Vec<String> = from.ask(&["CLUSTER", "GETKEYSINSLOT", &slot, "1"]).await;
            let Some(key) = keys.first() else { break };
            from.ask::<()>(&["MIGRATE", "127.0.0.1", &to.port.to_string(), key, "0", MIGRATE_WITHIN_MS]).await;
        }
    }

    /// Its second half: everybody is told.
    async fn settle(&self, slot: u16, from: usize, to: usize) {
        let (slot, (from, to)) = (slot.to_string(), (&self.0[from], &self.0[to]));
        let to_id: String = to.ask(&["CLUSTER", "MYID"]).await;
        // The new home first, as redis-cli does: until then the old one still answers for it.
        for node in [to, from, &self.0[3 - self.place(from) - self.place(to)]] {
            node.ask::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]).await;
        }
        until("the Cluster agrees", || async {
            let epochs = futures::future::join_all(self.0.iter().map(current_epoch)).await;
            epochs.iter().all(|epoch| *epoch == epochs[0])
        })
        .await;
    }

    fn place(&self, node: &Redis) -> usize {
        self.0.iter().position(|other| other.port == node.port).expect("it is one of ours")
    }
}

async fn current_epoch(node: &Redis) -> String {
    let info: String = node.ask(&["CLUSTER", "INFO"]).await;
    info.lines().find(|line| line.starts_with("cluster_current_epoch:")).expect("an epoch").to_owned()
}

fn at_show(visitor: Visitor, show: Uuid) -> Visitor {
    Visitor { show, ..visitor }
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_of_every_shard_are_held_seen_and_released_through_two_servers() {
    let cluster = Cluster::start().await;
    let world = World::start(2, &[("REDIS_URL", &cluster.url())]).await;
    for show in cluster.shows(&world).await {
        let (ann, bob) = (at_show(world.visitor_at(0), show), at_show(world.visitor_at(1), show));
        let mut watching = Watching::begin(&bob).await;
        let (status, hold) = ann.hold(&[5, 6]).await;
        assert_eq!(status, StatusCode::CREATED, "{hold}");
        watching.sees(6, SeatState::Locked).await;
        assert_eq!(bob.hold(&[6]).await.0, StatusCode::LOCKED);
        let (status, _) = ann.change(&hold, &[], &[5, 6]).await;
        assert!(status.is_success(), "{status}");
        watching.sees(6, SeatState::Available).await;
        assert_eq!(bob.hold(&[6]).await.0, StatusCode::CREATED);
        watching.sees(6, SeatState::Locked).await;
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_keys_reach_the_other_replica_whichever_shard_has_them() {
    let cluster = Cluster::start().await;
    let world = World::start(2, &[("REDIS_URL", &cluster.url())]).await;
    let people: Vec<Visitor> = (0..12).map(|_| world.visitor_at(0)).collect();
    let booked = (0_u32..).zip(&people).map(|(seat, visitor)| booked(visitor, seat, "book"));
    let booked = futures::future::join_all(booked).await;
    sqlx::query("DELETE FROM idempotency_keys").execute(&world.pg).await.expect("Postgres forgets");
    for (visitor, (body, first)) in people.iter().zip(booked) {
        let there = Visitor { base: world.servers[1].url.clone(), ..visitor.clone() };
        assert_eq!(post(&there, "/api/v1/bookings", "book", &body, &[]).await.what(), first.what());
    }
    world.end().await;
}

/// Wishes for a seat each, several for the same; what became of them.
async fn crowd(world: &World, show: Uuid, seats: std::ops::Range<u32>) -> Vec<(Visitor, u32, Tried)> {
    let wishes = seats.flat_map(|seat| [(seat, 0), (seat, 1)]).map(|(seat, server)| async move {
        let visitor = at_show(world.visitor_at(server), show);
        let tried = hold_at_last(&visitor, &[seat]).await;
        (visitor, seat, tried)
    });
    futures::future::join_all(wishes).await
}

/// Counts, so that a call that was done twice or not at all shows.
const COUNT: &str = "return redis.call('INCR', KEYS[1])";
const CALLS: i64 = 200;

/// Many calls at once over the one connection they share; all must be answered.
async fn count_many_times(link: &Link, script: &LuaScript, key: &str) {
    let calls = (0..CALLS).map(|_| async { link.eval(&script.call(&[key])).await });
    for answer in futures::future::join_all(calls).await {
        let answer = answer.expect("an answer");
        assert!(matches!(answer.value, redis::Value::Int(_)), "{answer:?}");
        assert_eq!(answer.tries, 1, "a redirection is no try: nothing was done yet");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_find_a_slot_on_the_move_whichever_side_its_keys_are_on() {
    let cluster = Cluster::start().await;
    let link = Link::connect(&cluster.url()).await.expect("the Cluster answers");
    let (script, key) = (LuaScript::new(COUNT), "{show:1}:count");
    let slot: u16 = cluster.0[0].ask(&["CLUSTER", "KEYSLOT", key]).await;
    let from = SLOTS.iter().position(|(_, last)| slot <= *last).expect("every slot has a shard");
    let to = (from + 1) % SHARDS;
    count_many_times(&link, &script, key).await;
    cluster.move_keys(slot, from, to).await;
    // ASK: others use the same connection between the asking and the call.
    count_many_times(&link, &script, key).await;
    cluster.settle(slot, from, to).await;
    // MOVED, and learnt.
    count_many_times(&link, &script, key).await;
    let counted: i64 = cluster.0[to].ask(&["GET", key]).await;
    assert_eq!(counted, 3 * CALLS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_moves_while_people_hold_seats_and_none_is_lost_or_granted_twice() {
    let cluster = Cluster::start().await;
    let world = World::start(2, &[("REDIS_URL", &cluster.url())]).await;
    let show = cluster.shows(&world).await[0];
    let slot = cluster.slot_of(show).await;
    let mut watching = Watching::begin(&at_show(world.visitor_at(1), show)).await;

    let enough = AtomicBool::new(false);
    let moving = async {
        let mut moves = 0;
        while !enough.load(Ordering::Relaxed) || moves < 3 {
            cluster.move_slot(slot, moves % SHARDS, (moves + 1) % SHARDS).await;
            moves += 1;
        }
    };
    let holding = async {
        let mut tried = vec![];
        for row in 0..14 {
            tried.extend(crowd(&world, show, row * 20..row * 20 + 20).await);
        }
        enough.store(true, Ordering::Relaxed);
        tried
    };
    let (tried, ()) = tokio::join!(holding, moving);

    let mut owners: HashMap<u32, Visitor> = HashMap::new();
    for (visitor, seat, tried) in tried {
        match tried.status {
            StatusCode::CREATED => assert!(owners.insert(seat, visitor).is_none(), "seat {seat} was granted twice"),
            status => assert_eq!(status, StatusCode::LOCKED, "{tried:?}"),
        }
    }
    assert_eq!(owners.len(), 280, "every seat was granted once");
    for (seat, owner) in &owners {
        let (status, hold) = owner.get(&format!("/api/v1/shows/{show}/hold")).await;
        assert_eq!((status, &hold["seats"][0]["seat"]), (StatusCode::OK, &(*seat).into()), "{hold}");
    }
    let expected = format!("{}{}", "1".repeat(280), "0".repeat(20));
    let anyone = at_show(world.visitor_at(1), show);
    until("the map says so", || async { anyone.states().await == expected }).await;
    // Whoever watched from the beginning is still told, from wherever the slot is now.
    let last = at_show(world.visitor_at(0), show);
    assert_eq!(hold_at_last(&last, &[299]).await.status, StatusCode::CREATED);
    watching.sees(299, SeatState::Locked).await;
    world.end().await;
}

/// While `lost`'s shard is unavailable: its visitors are sent away in time, all others notice nothing.
async fn only_its_shows_wait(world: &World, lost: Uuid, others: [Uuid; 2]) {
    let mut watching = Watching::begin(&at_show(world.visitor_at(1), others[1])).await;
    for seat in 1..20 {
        let (away, first, second) =
            tokio::join!(tried(world, lost, seat), tried(world, others[0], seat), tried(world, others[1], seat));
        assert!(away.is_sent_away(), "{away:?}");
        for tried in [first, second] {
            assert_eq!(tried.status, StatusCode::CREATED, "{tried:?}");
        }
        watching.sees(seat, SeatState::Locked).await;
    }
    let ready = world.visitor().client.get(format!("{}/readyz", world.servers[1].url)).send().await;
    // One shard of three is no reason to take the server away.
    assert_eq!(ready.expect("an answer").status(), StatusCode::OK);
}

async fn tried(world: &World, show: Uuid, seat: u32) -> Tried {
    try_hold(&at_show(world.visitor(), show), &[seat], "any").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_dies_and_only_its_shows_wait() {
    let mut cluster = Cluster::start().await;
    let world = World::start(2, &[("REDIS_URL", &cluster.url())]).await;
    let [lost, others @ ..] = cluster.shows(&world).await;
    for show in [lost, others[0], others[1]] {
        assert_eq!(at_show(world.visitor(), show).hold(&[0]).await.0, StatusCode::CREATED);
    }
    cluster.0[0].kill().await;
    only_its_shows_wait(&world, lost, others).await;
    // It comes back empty: its shows are rebuilt from what Postgres knows.
    cluster.0[0].restart(&[]);
    let back = hold_at_last(&at_show(world.visitor(), lost), &[50]).await;
    assert_eq!(back.status, StatusCode::CREATED, "{back:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_freezes_and_only_its_shows_wait() {
    let cluster = Cluster::start().await;
    let world = World::start(2, &[("REDIS_URL", &cluster.url())]).await;
    let [others @ .., lost] = cluster.shows(&world).await;
    let ann = at_show(world.visitor(), lost);
    assert_eq!(ann.hold(&[0]).await.0, StatusCode::CREATED);
    cluster.0[2].freeze().await;
    // The first who come find out by waiting; whoever comes for another shard at that moment does not.
    let both = futures::future::join(tried(&world, others[0], 60), tried(&world, others[1], 60));
    match futures::future::select(Box::pin(tried(&world, lost, 60)), Box::pin(both)).await {
        Either::Left((away, _)) => panic!("the others waited longer than {away:?}"),
        Either::Right(((first, second), away)) => {
            assert_eq!((first.status, second.status), (StatusCode::CREATED, StatusCode::CREATED));
            assert!(away.await.is_sent_away());
        }
    }
    only_its_shows_wait(&world, lost, others).await;
    cluster.0[2].thaw().await;
    let back = hold_at_last(&at_show(world.visitor(), lost), &[50]).await;
    assert_eq!(back.status, StatusCode::CREATED, "{back:?}");
    let late = hold_at_last(&at_show(world.visitor_at(1), lost), &[0]).await;
    assert_eq!(late.status, StatusCode::LOCKED, "what was granted before stays: {late:?}");
    world.end().await;
}
