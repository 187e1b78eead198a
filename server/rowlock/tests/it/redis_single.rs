//! One Redis that misbehaves in every way one can.

use std::time::Duration;

use domain::seats::SeatState;
use platform::redis_link::{Link, LinkError, LuaScript};
use reqwest::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::redis_process::{Redis, Watching, hold_at_last, try_hold};
use crate::world::{Visitor, World, until};

/// Being sent away by an open breaker costs no waiting: far less than one try of a call that hangs.
const AT_ONCE: Duration = Duration::from_millis(500);

async fn world_on(redis: &Redis, servers: usize) -> World {
    World::start(servers, &[("REDIS_URL", &redis.url())]).await
}

/// Asks until an answer comes at once: the breaker is open.
async fn is_sent_away_at_once(visitor: &Visitor, seat: u32) {
    until("a breaker opens", || async {
        let tried = try_hold(visitor, &[seat], &platform::ids::new_id().to_string()).await;
        tried.is_sent_away() && tried.took < AT_ONCE
    })
    .await;
}

async fn has_its_hold(visitor: &Visitor) -> bool {
    visitor.get(&format!("/api/v1/shows/{}/hold", visitor.show)).await.0 == StatusCode::OK
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_redis_sends_people_away_at_once_and_serves_them_when_it_thaws() {
    let redis = Redis::start(&[]).await;
    let world = world_on(&redis, 1).await;
    let (ann, bob, eve) = (world.visitor(), world.visitor(), world.visitor());
    assert_eq!(ann.hold(&[1]).await.0, StatusCode::CREATED);

    redis.freeze().await;
    is_sent_away_at_once(&bob, 2).await;
    redis.thaw().await;
    assert_eq!(hold_at_last(&eve, &[3]).await.status, StatusCode::CREATED);
    assert!(has_its_hold(&ann).await, "what was granted before stays");
    let late = hold_at_last(&eve, &[1]).await;
    assert_ne!(late.status, StatusCode::CREATED, "{late:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_restarts_and_loads_its_data_is_waited_for_and_nothing_is_lost() {
    let mut redis = Redis::start(&["enable-debug-command yes"]).await;
    let world = world_on(&redis, 1).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let mut watching = Watching::begin(&bob).await;
    assert_eq!(ann.hold(&[1]).await.0, StatusCode::CREATED);
    watching.sees(1, SeatState::Locked).await;
    redis.ask::<()>(&["DEBUG", "POPULATE", "2000", "ballast"]).await;
    redis.ask::<()>(&["SAVE"]).await;

    redis.kill().await;
    is_sent_away_at_once(&bob, 2).await;
    // Half a millisecond a key: a second of "LOADING".
    redis.restart(&["key-load-delay 500", "loading-process-events-interval-bytes 1024"]);
    until("Redis is loading", || async {
        let refused = redis.try_ask::<String>(&["GET", "anything"]).await.err();
        refused.is_some_and(|error| error.code() == Some("LOADING"))
    })
    .await;
    assert!(try_hold(&bob, &[2], "while-loading").await.is_sent_away());
    assert_eq!(hold_at_last(&bob, &[2]).await.status, StatusCode::CREATED);
    assert!(has_its_hold(&ann).await, "it was on disk");
    watching.sees(2, SeatState::Locked).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgotten_scripts_and_cut_connections_are_nobodys_trouble() {
    let redis = Redis::start(&[]).await;
    let world = world_on(&redis, 2).await;
    let mut watching = Watching::begin(&world.visitor_at(1)).await;
    let mut seat = 0;
    for trouble in
        [&["SCRIPT", "FLUSH"][..], &["CLIENT", "KILL", "TYPE", "normal"], &["CLIENT", "KILL", "TYPE", "pubsub"]]
    {
        for server in 0..2 {
            redis.ask::<redis::Value>(trouble).await;
            // The first wish after it is granted: nobody has to try again.
            let (status, answer) = world.visitor_at(server).hold(&[seat]).await;
            assert_eq!(status, StatusCode::CREATED, "after {trouble:?}: {answer}");
            watching.sees(seat, SeatState::Locked).await;
            seat += 1;
        }
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_redis_sends_people_away_until_there_is_room() {
    let redis = Redis::start(&[]).await;
    let world = world_on(&redis, 1).await;
    let ann = world.visitor();
    ann.sees(1, '0').await;
    redis.ask::<()>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    assert!(try_hold(&ann, &[1], "while-full").await.is_sent_away());
    redis.ask::<()>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(hold_at_last(&ann, &[1]).await.status, StatusCode::CREATED);
    world.end().await;
}

/// A way to Redis that loses the answer to whatever names `key`: it is done, and the connection is cut.
async fn losing_answers_about(key: &'static str, redis: &Redis) -> String {
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

/// Passes both ways; who asks about `key` is cut off as soon as there is an answer. Either side may go at any time.
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
async fn what_counts_is_not_asked_again_when_its_answer_is_lost() {
    const COUNT: &str = "return redis.call('INCR', KEYS[1])";
    let redis = Redis::start(&[]).await;
    // Known beforehand: else the answer that is lost would be that nobody knows it.
    redis.ask::<String>(&["SCRIPT", "LOAD", COUNT]).await;
    let link = Link::connect(&losing_answers_about("{lost}", &redis).await).await.expect("a link");
    let count = LuaScript::new(COUNT);

    let once = link.eval_once(&count.call(&["{lost}:once"])).await;
    assert!(matches!(once, Err(LinkError::Unavailable { tries: 1, .. })), "{once:?}");
    assert_eq!(redis.ask::<u32>(&["GET", "{lost}:once"]).await, 1);

    // The same by the call that may be repeated: the proxy does lose answers.
    let often = link.eval(&count.call(&["{lost}:often"])).await;
    assert!(matches!(often, Err(LinkError::Unavailable { .. })), "{often:?}");
    assert!(redis.ask::<u32>(&["GET", "{lost}:often"]).await > 1);
}
