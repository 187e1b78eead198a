//! The stores of an idempotency key: a lost, stale or wrong store does not change the answer.

use std::collections::BTreeMap;

use reqwest::StatusCode;
use serde_json::json;

use crate::idempotency::{RawAnswer, book_seat, pay_path, post};
use crate::redis_process::Redis;
use crate::world::{Visitor, World, text, wait_until};

/// Token of the metrics route.
const METRICS_TOKEN: &str = "a token of this test; 32 bytes or more";
const TOKEN: &str = "{\"payment_token\":\"tok_paid\"}";

async fn world_on(redis: &Redis, servers: usize) -> World {
    World::start(servers, &[("REDIS_URL", &redis.url()), ("METRICS_TOKEN", METRICS_TOKEN)]).await
}

/// Requests with a key by outcome, from the metrics of the visitor's server.
async fn outcomes(visitor: &Visitor) -> BTreeMap<String, u64> {
    let request = visitor.client.get(format!("{}/metrics", visitor.base)).bearer_auth(METRICS_TOKEN);
    let lines = request.send().await.expect("the server answers").text().await.expect("text");
    let counted = lines.lines().filter_map(|line| {
        let (outcome, count) = line.strip_prefix("rowlock_idempotency_total{outcome=\"")?.split_once("\"} ")?;
        Some((outcome.to_owned(), count.parse().expect("a number")))
    });
    counted.collect()
}

fn at(world: &World, server: usize, visitor: &Visitor) -> Visitor {
    Visitor { base: world.servers[server].url.clone(), ..visitor.clone() }
}

/// Name of a key's entry in Redis.
fn entry(world: &World, visitor: &Visitor, key: &str) -> String {
    let secret = visitor.cookie.split_once('=').expect("a cookie").1;
    let owner = http::visitor::owner_of(secret.as_bytes().try_into().expect("a secret"));
    format!("{}{{keys:{}}}:{owner}:{key}", world.setting("REDIS_PREFIX"), &owner[..1])
}

/// First byte of an entry: its kind.
async fn kind(world: &World, entry: &str) -> Option<u8> {
    let mut redis = world.redis().await;
    let bytes: Vec<u8> = redis::cmd("GET").arg(entry).query_async(&mut redis).await.ok()?;
    bytes.first().copied()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_replayed_without_redis_and_postgres() {
    let mut redis = Redis::start(&[]).await;
    let world = world_on(&redis, 1).await;
    let ann = world.visitor();
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    let hold = post(&ann, &holds, "hold", "{\"seats\":[1]}", &[]).await;
    let body = crate::idempotency::booking_body(&ann, &hold.json());
    let booking = post(&ann, "/api/v1/bookings", "book", &body, &[]).await;
    let pay = pay_path(&booking);
    let paid = post(&ann, &pay, "pay", TOKEN, &[]).await;
    assert_eq!(paid.json()["state"], "CONFIRMED");

    redis.kill().await;
    world.set_postgres_blocked(true).await;
    let requests: [(&str, &str, &str, &RawAnswer); 3] = [
        (&holds, "hold", "{\"seats\":[1]}", &hold),
        ("/api/v1/bookings", "book", &body, &booking),
        (&pay, "pay", TOKEN, &paid),
    ];
    let mut expected = outcomes(&ann).await;
    for (path, key, body, first) in requests {
        // Verbatim and reformatted. Each counts as answered from the process's memory, without a store.
        for (wording, outcome) in [(body.to_owned(), "fast_road"), (format!(" {body}\n"), "process")] {
            assert_eq!(post(&ann, path, key, &wording, &[]).await.status_and_body(), first.status_and_body());
            *expected.entry(outcome.to_owned()).or_default() += 1;
            assert_eq!(outcomes(&ann).await, expected, "{path} with {wording:?}");
        }
    }
    let refused = post(&ann, &pay, "another", TOKEN, &[]).await;
    assert!(refused.status.is_server_error(), "both stores are down: {refused:?}");
    world.set_postgres_blocked(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_keys_work_from_postgres_without_errors() {
    let mut redis = Redis::start(&[]).await;
    let world = world_on(&redis, 2).await;
    let ann = world.visitor();
    let there = at(&world, 1, &ann);
    let (body, booking) = book_seat(&ann, 1, "book").await;
    let pay = pay_path(&booking);
    let paid = post(&ann, &pay, "pay", TOKEN, &[]).await;
    redis.kill().await;
    assert_eq!(post(&there, "/api/v1/bookings", "book", &body, &[]).await.status_and_body(), booking.status_and_body());
    assert_eq!(post(&there, &pay, "pay", TOKEN, &[]).await.status_and_body(), paid.status_and_body());
    // A new key, for a booking that needs no hold any more.
    let anew = post(&there, &pay, "pay-again", TOKEN, &[]).await;
    assert_eq!((anew.status, &anew.json()["state"]), (StatusCode::OK, &json!("CONFIRMED")));
    assert_eq!(post(&ann, &pay, "pay-again", TOKEN, &[]).await.status_and_body(), anew.status_and_body());
    let other = post(&ann, &pay, "pay-again", "{}", &[]).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
    // Redis is back, and empty: answers are stored again when requested.
    redis.restart(&[]);
    redis.wait_until_ready().await;
    wait_until("the answers are in Redis again", || async {
        let key = platform::ids::new_id().to_string();
        assert_eq!(post(&there, &pay, &key, TOKEN, &[]).await.status, StatusCode::OK);
        kind(&world, &entry(&world, &ann, &key)).await == Some(b'C')
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_survive_a_restart_byte_for_byte() {
    let (mut world, ann) = World::with_visitor(&[]).await;
    let (body, booking) = book_seat(&ann, 1, "book").await;
    let pay = pay_path(&booking);
    let paid = post(&ann, &pay, "pay", TOKEN, &[]).await;
    world.kill(0).await;
    for forgotten in [false, true] {
        if forgotten {
            world.delete_redis_keys().await;
        }
        let fresh = world.add_server(&[]).await;
        let ann = at(&world, fresh, &ann);
        for _ in 0..2 {
            assert_eq!(
                post(&ann, "/api/v1/bookings", "book", &body, &[]).await.status_and_body(),
                booking.status_and_body()
            );
            assert_eq!(post(&ann, &pay, "pay", TOKEN, &[]).await.status_and_body(), paid.status_and_body());
        }
        let other = post(&ann, &pay, "pay", "{}", &[]).await;
        assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    // The killed server cannot be stopped.
    world.servers.remove(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_replays_the_answer_from_redis() {
    let world = World::start(2, &[]).await;
    let ann = world.visitor();
    let (body, booking) = book_seat(&ann, 1, "book").await;
    let name = entry(&world, &ann, "book");
    wait_until("the answer is in Redis", || async { kind(&world, &name).await == Some(b'C') }).await;
    world.execute("DELETE FROM idempotency_keys").await;
    let there = at(&world, 1, &ann);
    assert_eq!(post(&there, "/api/v1/bookings", "book", &body, &[]).await.status_and_body(), booking.status_and_body());
}

#[tokio::test(flavor = "multi_thread")]
async fn running_key_is_waited_for_briefly_and_taken_over_from_a_dead_replica() {
    let mut world = World::start(2, &[]).await;
    let ann = world.visitor();
    let there = at(&world, 1, &ann);
    let (_, booking) = book_seat(&ann, 1, "book").await;
    let (pay, token) = (pay_path(&booking), "{\"payment_token\":\"tok_no_answer_paid\"}");
    let (asking, path) = (ann.clone(), pay.clone());
    let request = asking.client.post(format!("{}{path}", asking.base)).header("cookie", &asking.cookie);
    let request = request.header("idempotency-key", "pay").header("content-type", "application/json").body(token);
    let lost = tokio::spawn(request.send());
    let pending = "SELECT count(*) FROM idempotency_keys WHERE key = 'pay' AND state = 'pending'";
    world.wait_for_count("the request is running", pending, 1).await;

    let put_off = post(&there, &pay, "pay", token, &[]).await;
    assert_eq!((put_off.status, text(&put_off.json()["code"])), (StatusCode::CONFLICT, "still_running"));
    assert!(put_off.headers.contains_key("retry-after"), "{put_off:?}");
    let other = post(&there, &pay, "pay", TOKEN, &[]).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY, "another request with the running key: {other:?}");

    world.kill(0).await;
    assert!(lost.await.expect("the task ends").is_err(), "its caller got no answer");
    wait_until("the key is taken over", || async {
        let answer = post(&there, &pay, "pay", token, &[]).await;
        assert!(matches!(answer.status, StatusCode::OK | StatusCode::CONFLICT), "{answer:?}");
        answer.status == StatusCode::OK
    })
    .await;
    let answer = post(&there, &pay, "pay", token, &[]).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM idempotency_keys WHERE state = 'pending'").await, 0);
    world.servers.remove(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_claimed_by_a_dying_replica_is_taken_over() {
    let (world, ann) = World::with_visitor(&[]).await;
    let (_, booking) = book_seat(&ann, 1, "book").await;
    let pay = pay_path(&booking);
    let paid = post(&ann, &pay, "pay", TOKEN, &[]).await;
    assert_eq!(paid.json()["state"], "CONFIRMED");
    // The same request under another key, just claimed by a dead replica.
    let claimed = "INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at)
        SELECT owner, 'left', request_hash, 'pending', now() + interval '5 minutes' FROM idempotency_keys WHERE key = 'pay'
        RETURNING request_hash";
    let hash: Vec<u8> = sqlx::query_scalar(claimed).fetch_one(&world.pg).await.expect("the key is claimed");
    let claim = [b"P", &hash[..], &[2_u8; 16], &[3_u8; 16]].concat();
    let mut redis = world.redis().await;
    let name = entry(&world, &ann, "left");
    redis::cmd("SET").arg(&name).arg(claim).query_async::<()>(&mut redis).await.expect("the claim is written");
    wait_until("the key is taken over", || async {
        let answer = post(&ann, &pay, "left", TOKEN, &[]).await;
        assert!(matches!(answer.status, StatusCode::OK | StatusCode::CONFLICT), "{answer:?}");
        answer.status == StatusCode::OK
    })
    .await;
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_or_stale_redis_entries_are_repaired_from_postgres() {
    let (world, ann) = World::with_visitor(&[]).await;
    book_seat(&ann, 1, "book").await;
    let name = entry(&world, &ann, "book");
    wait_until("the answer is in Redis", || async { kind(&world, &name).await == Some(b'C') }).await;
    let mut redis = world.redis().await;
    redis::cmd("DEL").arg(&name).query_async::<()>(&mut redis).await.expect("the entry is deleted");
    // An old claim of a dead replica.
    let dead = entry(&world, &ann, "dead-replica");
    let list = format!("{}:pending", name.split_once('}').map(|(tag, _)| format!("{tag}}}")).expect("a tag"));
    let claim = [b"P", &[1_u8; 32][..], &[2_u8; 16], &[3_u8; 16]].concat();
    redis::cmd("SET").arg(&dead).arg(claim).query_async::<()>(&mut redis).await.expect("the claim is written");
    redis::cmd("ZADD").arg(&list).arg(1).arg(&dead).query_async::<()>(&mut redis).await.expect("the claim is listed");
    wait_until("the answer is in Redis again", || async { kind(&world, &name).await == Some(b'C') }).await;
    wait_until("the dead claim is deleted", || async { kind(&world, &dead).await.is_none() }).await;
    let listed: i64 = redis::cmd("ZCARD").arg(&list).query_async(&mut redis).await.expect("the list is read");
    assert_eq!(listed, 0);
}
