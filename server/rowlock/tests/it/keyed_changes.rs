//! Keyed changes of holds: no-op changes store nothing in Redis, and every change counts towards the rate limit.

use futures::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use seats::seat_locks::Keys;
use serde_json::{Value, json};

use crate::idempotency::post;
use crate::world::{Visitor, World, expect_answer, text};

/// Changes without effect, in total.
const CHANGES: usize = 3_000;
/// …and concurrently.
const CONCURRENT: usize = 50;

fn path_of(visitor: &Visitor, hold: &Value) -> String {
    format!("/api/v1/shows/{}/holds/{}", visitor.show, text(&hold["id"]))
}

/// Fields of the show's hashes of stored answers, and the bytes of all its keys.
async fn stored_answers(world: &World) -> (u64, u64) {
    let mut redis = world.redis().await;
    let keys = Keys::of(world.setting("REDIS_PREFIX"), world.show).0;
    let (mut fields, mut bytes) = (0, 0);
    for key in &keys {
        let used: Option<u64> = redis::cmd("MEMORY")
            .arg("USAGE")
            .arg(key)
            .arg("SAMPLES")
            .arg(0)
            .query_async(&mut redis)
            .await
            .expect("bytes");
        bytes += used.unwrap_or_default();
    }
    for key in keys.iter().filter(|key| key.ends_with(":today") || key.ends_with(":before")) {
        fields += redis::cmd("HLEN").arg(key).query_async::<u64>(&mut redis).await.expect("a length");
    }
    (fields, bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn noop_changes_store_nothing_in_redis_and_real_ones_are_replayed() {
    let world = World::start(2, &[]).await;
    let ann = world.visitor();
    let (status, hold) = ann.hold(&[1, 2]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let path = path_of(&ann, &hold);
    let before = stored_answers(&world).await;
    let same_seats = json!({ "add": [1, 2], "remove": [7] });
    let answers = stream::iter(0..CHANGES)
        .map(|number| {
            let (ann, path, body) = (&ann, &path, same_seats.clone());
            async move { ann.call_with_key(Method::PATCH, path, body, &format!("nothing-{number}")).await }
        })
        .buffer_unordered(CONCURRENT);
    let answers: Vec<_> = answers.collect().await;
    for (status, answer) in answers {
        assert_eq!((status, &answer["seats"]), (StatusCode::OK, &hold["seats"]), "{answer}");
    }
    assert_eq!(stored_answers(&world).await, before, "fields and bytes");

    // A real change is stored, and another server replays it.
    let elsewhere = Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    let real = json!({ "add": [3], "remove": [1] });
    let changed = ann.call_with_key(Method::PATCH, &path, real.clone(), "real").await;
    assert_eq!(changed.0, StatusCode::OK, "{}", changed.1);
    let later = expect_answer(ann.change(&hold, &[1], &[3]).await, StatusCode::OK);
    assert_eq!(elsewhere.call_with_key(Method::PATCH, &path, real, "real").await, changed);
    assert_eq!(ann.current_hold().await["seats"], later["seats"], "the replay changes nothing");
    assert!(stored_answers(&world).await.0 > before.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_keyed_change_of_a_hold_counts_towards_the_rate_limit() {
    let world = World::start(1, &[("HOLDS_PER_VISITOR_MIN", "12")]).await;
    let (ann, ben) = (world.visitor(), world.visitor());
    let (_, hold) = ann.hold(&[1]).await;
    let path = path_of(&ann, &hold);
    let mut accepted = 0;
    let refusal = loop {
        let (status, answer) = ann.call(Method::PATCH, &path, json!({ "remove": [7] })).await;
        if status != StatusCode::OK {
            break (status, answer);
        }
        accepted += 1;
        assert!(accepted <= 96, "at most three buckets");
    };
    assert_eq!(refusal.0, StatusCode::TOO_MANY_REQUESTS, "{}", refusal.1);
    assert!(accepted >= 48, "{accepted} changes were accepted");
    let extended = post(&ann, &format!("{path}/extend"), "longer", "", &[]).await;
    assert_eq!(extended.status, StatusCode::TOO_MANY_REQUESTS, "{extended:?}");
    assert_eq!(extended.json()["code"], "too_many_attempts");
    assert_eq!(extended.header("ratelimit-policy"), "\"change-visitor\";q=48;w=60");
    // Releases are not limited, and another visitor is not affected.
    assert_eq!(ann.release_hold(&hold).await, StatusCode::NO_CONTENT);
    let (_, hold) = ben.hold(&[1]).await;
    expect_answer(ben.change(&hold, &[2], &[1]).await, StatusCode::OK);
}
