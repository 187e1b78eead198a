//! Redis forgets the room: places survive, and no number is given out twice.

use redis::AsyncCommands;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{Guest, guests, in_line, key_of, queue_of, switch_on};
use crate::world::{World, until};

/// What is noted about a second late is lost together with Redis' last moments.
const NOTES_ARE_LOST: &str = "CREATE FUNCTION forget_note() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.joined := OLD.joined; RETURN NEW; END $$;
    CREATE TRIGGER forget_note BEFORE UPDATE ON waiting_rooms FOR EACH ROW EXECUTE FUNCTION forget_note()";

/// Numbers Postgres is told of at a time.
const BLOCK: u64 = 256;

#[tokio::test(flavor = "multi_thread")]
async fn tickets_keep_their_places_and_nobody_gets_a_number_again() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 8_000, 1_000).await;
    let mut early = guests(&world, 6).await;
    world.forget_redis().await;
    let after = Guest::joins(&world, 1).await;
    // A join whose answer was lost with Redis is asked for once more: its first number is nobody's.
    let last = after.number;
    assert!(last >= BLOCK, "numbers go on behind the mark that stands in Postgres: {last}");
    for guest in &mut early {
        assert_eq!(guest.looks().await["number"], guest.number);
    }
    early.push(after);
    let mut places = Vec::new();
    for guest in &mut early {
        places.push(guest.is_drawn().await);
    }
    assert!(places.iter().all(|place| *place <= last), "{places:?}");
    world.forget_redis().await;
    let mut late = Guest::joins(&world, 0).await;
    assert!(late.number > last, "{}", late.number);
    assert_eq!(late.is_drawn().await, late.number, "behind everybody who was drawn");
    for (guest, place) in early.iter_mut().zip(&places) {
        assert_eq!(guest.is_drawn().await, *place, "the draw stands");
    }
    // Places that are nobody's keep nobody waiting: there are hundreds of them.
    for guest in early.iter_mut().chain([&mut late]) {
        guest.is_let_in().await;
    }
    assert_eq!(world.count("SELECT drawn FROM waiting_rooms").await, i64::try_from(last + 1).expect("small"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_called_still_comes_in_and_who_is_inside_stays_there() {
    let world = World::start(2, &[]).await;
    switch_on(&world, 3_000, 100).await;
    let mut line = in_line(guests(&world, 4).await).await;
    for guest in &mut line {
        guest.becomes("CALLED").await;
    }
    line[0].comes().await;
    until("it is noted how far they are", || async {
        world.count("SELECT count(*) FROM waiting_rooms WHERE called = 4 AND inside = 4").await == 1
    })
    .await;
    world.forget_redis().await;
    // The pass asks nobody.
    assert_eq!(line[0].looks().await["state"], "INSIDE");
    assert_eq!(line[0].holds(10).await.0, reqwest::StatusCode::CREATED);
    // Late now, and let in before the hundreds of places that are nobody's.
    line[3].is_let_in().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_still_known_to_be_inside_after_a_loss_is_counted_once() {
    let world = World::start(1, &[]).await;
    world.sell_only(&[10, 11]).await;
    switch_on(&world, 3_000, 1_000).await;
    let mut line = in_line(guests(&world, 6).await).await;
    for guest in &mut line[..4] {
        guest.goes_in().await;
    }
    until("it is noted that four are inside", || async {
        world.count("SELECT count(*) FROM waiting_rooms WHERE called = 4 AND inside = 4").await == 1
    })
    .await;
    // A replica takes over that has not heard of the last who joined.
    let room = key_of(&world, "room").await;
    let _: () = world.redis().await.hset(&room, "next", 5).await.expect("it is set");
    let mut redis = world.redis().await;
    until("the room is built again", || {
        let (mut redis, room) = (redis.clone(), room.clone());
        async move { redis.hget::<_, _, u64>(&room, "next").await.expect("a number") >= BLOCK }
    })
    .await;
    let ghosts: u64 = redis.hget(&room, "ghosts").await.expect("a number");
    assert_eq!(ghosts, 0, "the four are known by name");
    line[0].leaves().await;
    line[4].becomes("CALLED").await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_is_not_given_again_by_servers_that_were_started_after_redis_lost_it() {
    let mut world = World::start(1, &[]).await;
    switch_on(&world, 600_000, 100).await;
    sqlx::raw_sql(NOTES_ARE_LOST).execute(&world.pg).await.expect("notes are lost");
    let early = guests(&world, 5).await;
    assert!(early.iter().all(|guest| guest.number < 5));
    world.kill(0).await;
    let room = key_of(&world, "room").await;
    let _: () = world.redis().await.hset(&room, "next", 2).await.expect("it is set");
    let fresh = world.add_server(&[]).await;
    assert!(Guest::joins(&world, fresh).await.number >= BLOCK, "2, 3 and 4 are somebody's");
    world.servers.remove(0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_call_that_failed_nobody_gets_a_number_that_another_server_gave_out() {
    let mut world = World::start(1, &[]).await;
    let gate = Gate::in_front_of(world.setting("REDIS_URL")).await;
    let far = world.add_server(&[("REDIS_URL", &gate.url)]).await;
    switch_on(&world, 600_000, 100).await;
    sqlx::raw_sql(NOTES_ARE_LOST).execute(&world.pg).await.expect("notes are lost");
    assert_eq!(Guest::joins(&world, far).await.number, 0);
    gate.shut(true);
    let (visitor, path) = (world.visitor_at(far), queue_of(&world));
    let join = || visitor.call(Method::POST, &path, Value::Null);
    until("the far server cannot reach Redis", || async { join().await.0 == StatusCode::SERVICE_UNAVAILABLE }).await;
    for number in 1..6 {
        assert_eq!(Guest::joins(&world, 0).await.number, number);
    }
    world.kill(0).await;
    // The replica that takes over has heard of the first only.
    let room = key_of(&world, "room").await;
    let _: () = world.redis().await.hset(&room, "next", 1).await.expect("it is set");
    gate.shut(false);
    until("the far server gives out numbers again", || async { join().await.0 == StatusCode::CREATED }).await;
    assert!(Guest::joins(&world, far).await.number >= BLOCK, "1 to 5 are somebody's");
    let given = join().await.1["number"].as_u64();
    assert!(given.is_some_and(|number| number >= BLOCK), "{given:?}");
    world.servers.remove(0);
    world.end().await;
}

/// A way to Redis that can be shut: who is on it is cut off, who comes is turned away.
struct Gate {
    url: String,
    is_shut: tokio::sync::watch::Sender<bool>,
}

impl Gate {
    async fn in_front_of(redis_url: &str) -> Self {
        let mut url = reqwest::Url::parse(redis_url).expect("an address");
        let target = format!("{}:{}", url.host_str().expect("a host"), url.port().unwrap_or(6379));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        // User and password stay.
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

    fn shut(&self, shut: bool) {
        self.is_shut.send_replace(shut);
    }
}
