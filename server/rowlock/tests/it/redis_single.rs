//! Failures of a single Redis.

use std::time::Duration;

use domain::seats::SeatState;
use platform::redis_link::{Link, LinkError, LuaScript};
use reqwest::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::redis_process::{LiveMap, Redis, hold_with_retries, try_hold};
use crate::world::{Visitor, World, wait_until};

/// Time limit of a refusal by an open breaker: much less than the timeout of a call.
const BREAKER_TIMEOUT: Duration = Duration::from_millis(500);

async fn world_on(redis: &Redis, servers: usize) -> World {
    World::start(servers, &[("REDIS_URL", &redis.url())]).await
}

/// Sends holds until one is refused at once: the breaker is open.
async fn wait_until_breaker_opens(visitor: &Visitor, seat: u32) {
    wait_until("a breaker opens", || async {
        let tried = try_hold(visitor, &[seat], &platform::ids::new_id().to_string()).await;
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
    assert!(matches!(once, Err(LinkError::Unavailable { tries: 1, .. })), "{once:?}");
    assert_eq!(redis.command::<u32>(&["GET", "{lost}:once"]).await, 1);

    // A repeatable call to the same key shows that the proxy loses answers.
    let often = link.eval(&count.call(&["{lost}:often"])).await;
    assert!(matches!(often, Err(LinkError::Unavailable { .. })), "{often:?}");
    assert!(redis.command::<u32>(&["GET", "{lost}:often"]).await > 1);
}
