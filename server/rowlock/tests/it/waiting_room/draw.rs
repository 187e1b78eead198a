//! The draw of visitors who joined before opening, which can be verified; and a Redis that loses the room: places survive,
//! and no number is given out twice.

use domain::waiting_room::Draw;
use domain::wire::Frame;
use futures::StreamExt;
use redis::AsyncCommands;
use sha2::{Digest, Sha256};
use tokio_tungstenite::tungstenite::Message;

use super::{Guest, draw_of, guests, key_of, queue_of, sorted_by_place, switch_on};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn visitors_before_opening_are_drawn_with_the_committed_key() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 6_000, 100).await;
    let mut early = guests(&world, 24).await;
    let mut numbers: Vec<u64> = early.iter().map(|guest| guest.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..24).collect::<Vec<_>>(), "each has a unique number, and no number is skipped");
    let before = early[0].state().await;
    assert_eq!((before["state"].as_str(), before["place"].is_null()), (Some("WAITING"), true), "{before}");
    let (key, people, commitment) = draw_of(&before);
    assert_eq!((key, people), (None, None), "the key is secret before opening");

    let mut places = Vec::new();
    for guest in &mut early {
        places.push(guest.wait_for_place().await);
    }
    let (key, people, after) = draw_of(&early[0].state().await);
    let key = hex::decode(key.expect("the key is published")).expect("hex");
    assert_eq!((people, &after), (Some(24), &commitment));
    assert_eq!(hex::encode(Sha256::digest(&key)), commitment);
    let draw = Draw::new(key.as_slice().try_into().expect("32 bytes"), 24);
    for (guest, place) in early.iter().zip(&places) {
        assert_eq!(*place, draw.place_of(guest.number), "ticket {}", guest.number);
    }
    // Later visitors come after all of them, in order of arrival.
    let mut late = Guest::join(&world, 1).await;
    assert_eq!((late.number, late.wait_for_place().await), (24, 24));

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/verify-draw.py");
    let address = format!("{}/shows/{}", world.servers[0].url, world.show);
    let words = [script, &address, "--commitment", &commitment, "5"];
    match tokio::process::Command::new("python3").args(words).output().await {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && !said.contains("WRONG"), "{said} {complaint}");
            assert!(said.contains(&format!("ticket 5: place {}", draw.place_of(5))), "{said}");
        }
        // Without Python the documented examples replace this check (`domain::waiting_room::draw`).
        Err(cause) => assert_eq!(cause.kind(), std::io::ErrorKind::NotFound, "{cause}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_join_gives_one_ticket_and_without_a_room_joining_is_not_found() {
    let world = World::start(1, &[]).await;
    assert_eq!(world.visitor().get(&queue_of(&world)).await.0, StatusCode::NOT_FOUND);
    switch_on(&world, 60_000, 10).await;
    let visitor = world.visitor();
    let path = queue_of(&world);
    let ask = || visitor.call_with_key(Method::POST, &path, Value::Null, "one-intent");
    let (one, other) = tokio::join!(ask(), ask());
    assert_eq!((one.0, &one.1["number"]), (StatusCode::CREATED, &other.1["number"]), "{one:?} {other:?}");
    let mut guest = Guest::join(&world, 0).await;
    assert_eq!(guest.visit().await["number"], guest.number);
    let outside = world.visitor().get(&path).await.1;
    assert_eq!((outside["state"].as_str(), outside["queue"]["is_open"].as_bool()), (Some("OUTSIDE"), Some(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_concurrent_joins_at_two_servers_get_consecutive_numbers() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 60_000, 10).await;
    let path = queue_of(&world);
    let join = |number: usize| {
        let (visitor, path) = (world.visitor_at(number % 2), &path);
        async move { visitor.call(Method::POST, path, Value::Null).await }
    };
    let joined = join_all((0..400).map(join)).await;
    let mut numbers = Vec::new();
    for (status, view) in joined {
        assert_eq!(status, StatusCode::CREATED, "{view}");
        numbers.extend(view["number"].as_u64());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..400).collect::<Vec<_>>());
    let keys = world.redis_keys("*:queue:*").await;
    assert_eq!(keys.len(), 1, "one counter for all: {keys:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn state_of_the_room_is_published_on_the_shows_socket() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 5_000, 100).await;
    let people = guests(&world, 5).await;
    let mut socket = people[0].visitor().open_live_map().await;
    let mut seen = Vec::new();
    let heard = async {
        while let Some(message) = socket.next().await {
            let Message::Binary(bytes) = message.expect("a good message") else { continue };
            let Frame::Queue(queue) = Frame::decode(&bytes, 300).expect("a frame") else { continue };
            seen.push(queue);
            if queue.called == 5 {
                return;
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, heard).await.expect("all five are called");
    assert!(seen.first().is_some_and(|first| !first.is_open && first.called == 0), "{seen:?}");
    assert!(seen.last().is_some_and(|last| last.is_open && last.joined == 5 && last.lately == 5), "{seen:?}");
    assert!(seen.is_sorted_by_key(|queue| queue.called), "the count never decreases: {seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_missed_a_later_opening_time_opens_nothing() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 6_000, 100).await;
    let mut early = guests(&world, 2).await;
    // State after a server with a stale read started the draw.
    let room = key_of(&world, "room").await;
    let mut redis = world.redis().await;
    let _: () = redis.hset(&room, "drawn", 2).await.expect("the field is set");
    wait_until("the draw is reverted", || {
        let (mut redis, room) = (redis.clone(), room.clone());
        async move { !redis.hexists::<_, _, bool>(&room, "drawn").await.expect("an answer") }
    })
    .await;
    assert_eq!(world.count("SELECT count(*) FROM waiting_rooms WHERE drawn IS NULL").await, 1);
    early.extend(guests(&world, 3).await);
    for guest in &mut early {
        assert!(guest.wait_for_place().await < 5, "all five are drawn");
    }
    assert_eq!(world.count("SELECT drawn FROM waiting_rooms").await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_keeps_one_number_until_they_leave() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 60_000, 10).await;
    let mut guest = Guest::join(&world, 0).await;
    let cookie = guest.browser.cookie("rowlock_visitor").expect("a visitor").to_owned();
    let mut forgetful = Browser::new(&world);
    forgetful.put_cookie("rowlock_visitor", &cookie);
    // With a new key each time, and without the ticket.
    let visitor = forgetful.visitor();
    for _ in 0..3 {
        let (_, view) = visitor.call(Method::POST, &queue_of(&world), Value::Null).await;
        assert_eq!(view["number"], guest.number);
    }
    guest.leave().await;
    let (_, view) = visitor.call(Method::POST, &queue_of(&world), Value::Null).await;
    assert_eq!(view["number"], guest.number + 1);
    assert_eq!(world.count("SELECT reserved FROM waiting_rooms").await, 256, "two numbers, and no more");
}

/// Notes are written about a second late, and are lost together with Redis' last moments.
const DISCARD_NOTES: &str = "CREATE FUNCTION forget_note() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.joined := OLD.joined; RETURN NEW; END $$;
    CREATE TRIGGER forget_note BEFORE UPDATE ON waiting_rooms FOR EACH ROW EXECUTE FUNCTION forget_note()";

/// Numbers that Postgres reserves at a time.
const BLOCK: u64 = 256;

#[tokio::test(flavor = "multi_thread")]
async fn tickets_keep_their_places_and_numbers_are_not_reused_after_a_loss() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 8_000, 1_000).await;
    let mut early = guests(&world, 6).await;
    world.delete_redis_keys().await;
    let after = Guest::join(&world, 1).await;
    // A join whose answer was lost with Redis is repeated: its first number stays unused.
    let last = after.number;
    assert!(last >= BLOCK, "numbers continue after the high-water mark in Postgres: {last}");
    for guest in &mut early {
        assert_eq!(guest.state().await["number"], guest.number);
    }
    early.push(after);
    let mut places = Vec::new();
    for guest in &mut early {
        places.push(guest.wait_for_place().await);
    }
    assert!(places.iter().all(|place| *place <= last), "{places:?}");
    world.delete_redis_keys().await;
    let mut late = Guest::join(&world, 0).await;
    assert!(late.number > last, "{}", late.number);
    assert_eq!(late.wait_for_place().await, late.number, "after every drawn place");
    for (guest, place) in early.iter_mut().zip(&places) {
        assert_eq!(guest.wait_for_place().await, *place, "the draw is unchanged");
    }
    // Unused numbers delay no visitor, though there are hundreds of them.
    for guest in early.iter_mut().chain([&mut late]) {
        guest.visit_until_inside().await;
    }
    assert_eq!(world.count("SELECT drawn FROM waiting_rooms").await, i64::try_from(last + 1).expect("small"));
}

#[tokio::test(flavor = "multi_thread")]
async fn called_visitors_can_enter_and_inside_visitors_stay_after_a_loss() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 3_000, 100).await;
    let mut line = sorted_by_place(guests(&world, 4).await).await;
    for guest in &mut line {
        guest.wait_for_state("CALLED").await;
    }
    line[0].visit().await;
    let query = "SELECT count(*) FROM waiting_rooms WHERE called = 4 AND inside = 4";
    world.wait_for_count("their states are recorded", query, 1).await;
    world.delete_redis_keys().await;
    // A pass is verified without Redis.
    assert_eq!(line[0].state().await["state"], "INSIDE");
    assert_eq!(line[0].hold(10).await.0, StatusCode::CREATED);
    // Called late, and admitted before the hundreds of unused numbers.
    line[3].visit_until_inside().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_known_to_be_inside_after_a_loss_is_counted_once() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[10, 11]).await;
    switch_on(&world, 3_000, 1_000).await;
    let mut line = sorted_by_place(guests(&world, 6).await).await;
    for guest in &mut line[..4] {
        guest.enter().await;
    }
    let query = "SELECT count(*) FROM waiting_rooms WHERE called = 4 AND inside = 4";
    world.wait_for_count("four are recorded as inside", query, 1).await;
    // A replica without the last join takes over.
    let room = key_of(&world, "room").await;
    let _: () = world.redis().await.hset(&room, "next", 5).await.expect("the field is set");
    let mut redis = world.redis().await;
    wait_until("the room is rebuilt", || {
        let (mut redis, room) = (redis.clone(), room.clone());
        async move { redis.hget::<_, _, u64>(&room, "next").await.expect("a number") >= BLOCK }
    })
    .await;
    let ghosts: u64 = redis.hget(&room, "ghosts").await.expect("a number");
    assert_eq!(ghosts, 0, "the four are known by ticket");
    line[0].leave().await;
    line[4].wait_for_state("CALLED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_started_after_a_loss_reuse_no_number() {
    let mut world = World::start(1, &[]).await;
    switch_on(&world, 600_000, 100).await;
    sqlx::raw_sql(DISCARD_NOTES).execute(&world.pg).await.expect("notes are discarded");
    let early = guests(&world, 5).await;
    assert!(early.iter().all(|guest| guest.number < 5));
    world.kill(0).await;
    let room = key_of(&world, "room").await;
    let _: () = world.redis().await.hset(&room, "next", 2).await.expect("the field is set");
    let fresh = world.add_server(&[]).await;
    assert!(Guest::join(&world, fresh).await.number >= BLOCK, "2, 3 and 4 are taken");
    world.servers.remove(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_reuses_no_number_of_another_after_a_failed_call() {
    let mut world = World::start(1, &[]).await;
    let gate = RedisGate::in_front_of(world.setting("REDIS_URL")).await;
    let far = world.add_server(&[("REDIS_URL", &gate.url)]).await;
    switch_on(&world, 600_000, 100).await;
    sqlx::raw_sql(DISCARD_NOTES).execute(&world.pg).await.expect("notes are discarded");
    assert_eq!(Guest::join(&world, far).await.number, 0);
    gate.set_closed(true);
    let (visitor, path) = (world.visitor_at(far), queue_of(&world));
    let join = || visitor.call(Method::POST, &path, Value::Null);
    wait_until("the far server cannot reach Redis", || async { join().await.0 == StatusCode::SERVICE_UNAVAILABLE })
        .await;
    for number in 1..6 {
        assert_eq!(Guest::join(&world, 0).await.number, number);
    }
    world.kill(0).await;
    // The replica that takes over has only seen the first join.
    let room = key_of(&world, "room").await;
    let _: () = world.redis().await.hset(&room, "next", 1).await.expect("the field is set");
    gate.set_closed(false);
    wait_until("the far server gives out numbers again", || async { join().await.0 == StatusCode::CREATED }).await;
    assert!(Guest::join(&world, far).await.number >= BLOCK, "1 to 5 are taken");
    let given = join().await.1["number"].as_u64();
    assert!(given.is_some_and(|number| number >= BLOCK), "{given:?}");
    world.servers.remove(0);
    // The far server needs the gate until it has stopped.
    world.end().await;
}

/// A proxy to Redis that can be closed: open connections are cut, and new ones refused.
struct RedisGate {
    url: String,
    is_shut: tokio::sync::watch::Sender<bool>,
}

impl RedisGate {
    async fn in_front_of(redis_url: &str) -> Self {
        let mut url = reqwest::Url::parse(redis_url).expect("an address");
        let target = format!("{}:{}", url.host_str().expect("a host"), url.port().unwrap_or(6379));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        // User and password are kept.
        url.set_host(Some("127.0.0.1")).expect("a host");
        url.set_port(Some(port)).expect("a port");
        let (is_shut, shut) = tokio::sync::watch::channel(false);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (target, mut shut) = (target.clone(), shut.clone());
                tokio::spawn(async move {
                    let Ok(mut redis) = tokio::net::TcpStream::connect(&target).await else { return };
                    tokio::select! {
                        _ = shut.wait_for(|shut| *shut) => {}
                        _ = tokio::io::copy_bidirectional(&mut client, &mut redis) => {}
                    }
                });
            }
        });
        Self { url: url.into(), is_shut }
    }

    fn set_closed(&self, shut: bool) {
        self.is_shut.send_replace(shut);
    }
}
