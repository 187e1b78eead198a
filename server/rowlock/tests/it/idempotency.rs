//! Idempotency keys: the same request gets the same bytes; another request or visitor never does; a lost, stale or wrong
//! store does not change the answer. A copy of a guest's cookie from before they signed in gets no replay of the guest's
//! answers.

use std::collections::BTreeMap;

use http::idempotency::{Answer, IdempotencyKey, Intent, add_answers, add_claims, all_answered, lost_claims};
use platform::cte_batch::CteBatch;

use crate::accounts::guest_with_copied_cookie;
use crate::prelude::*;
use crate::redis_process::Redis;
use crate::replicas::Replica;

pub async fn post(visitor: &Visitor, path: &str, key: &str, body: &str, headers: &[(&str, &str)]) -> RawAnswer {
    let request = visitor.request(Method::POST, path).header("idempotency-key", key);
    let request = request.header("content-type", "application/json").body(body.to_owned());
    RawAnswer::of(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
}

pub fn booking_body(visitor: &Visitor, hold: &Value) -> String {
    visitor.checkout_body(hold).to_string()
}

pub async fn book_seat(visitor: &Visitor, seat: u32, key: &str) -> (String, RawAnswer) {
    let hold = expect_answer(visitor.hold(&[seat]).await, StatusCode::CREATED);
    let body = booking_body(visitor, &hold);
    let answer = post(visitor, "/api/v1/bookings", key, &body, &[]).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    (body, answer)
}

pub fn pay_path(booking: &RawAnswer) -> String {
    format!("/api/v1/bookings/{}/confirm", text(&booking.json()["id"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn reformatted_body_is_the_same_request() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let (body, first) = book_seat(&ann, 1, "k").await;
    let wished: Value = serde_json::from_str(&body).expect("JSON");
    let (show, hold) = (&wished["show"], &wished["hold"]);
    let other_words = format!(
        "\n{{ \"hold\" : {hold},\t\"holder\": null, \"buyer\": {{\"email\":\"ann@example.org\", \"name\":\"\\u0041nn Example\"}},
         \"show\":{show} }} "
    );
    let elsewhere = ann.moved_to(&world, 1);
    // Each twice: the second time the exact bytes are cached as well.
    for visitor in [&ann, &ann, &elsewhere, &elsewhere] {
        for wording in [&body, &other_words] {
            let answer = post(visitor, "/api/v1/bookings", "k", wording, &[]).await;
            assert_eq!(answer.status_and_body(), first.status_and_body());
        }
    }
    for visitor in [&ann, &elsewhere] {
        let other = body.replace("Ann Example", "Eve Example");
        for _ in 0..2 {
            let refused = post(visitor, "/api/v1/bookings", "k", &other, &[]).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
            assert_eq!(refused.json()["code"], "key_reused");
        }
        let path = pay_path(&first);
        let refused = post(visitor, &path, "k", "{}", &[]).await;
        assert_eq!((refused.status, text(&refused.json()["code"])), (StatusCode::UNPROCESSABLE_ENTITY, "key_reused"));
    }
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    let bob = world.visitor();
    let first = post(&bob, &holds, "h", "{\"seats\":[7,8]}", &[]).await;
    assert_eq!(first.status, StatusCode::CREATED);
    for _ in 0..2 {
        let answer = post(&bob, &holds, "h", "{ \"seats\" : [ 7,\n8 ] }", &[]).await;
        assert_eq!(answer.status_and_body(), first.status_and_body());
        assert_eq!(post(&bob, &holds, "h", "{\"seats\":[9]}", &[]).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_belongs_to_its_owner_and_reveals_nothing_to_others() {
    let (_world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let (body, first) = book_seat(&ann, 1, "everyones").await;
    for _ in 0..2 {
        let refused = post(&bob, "/api/v1/bookings", "everyones", &body, &[]).await;
        assert_eq!((refused.status, text(&refused.json()["code"])), (StatusCode::GONE, "hold_expired"));
        assert!(!refused.body.contains(text(&first.json()["id"])), "{refused:?}");
    }
    assert_eq!(bob.get("/api/v1/requests/everyones").await.0, StatusCode::NOT_FOUND);
    let (_, his) = book_seat(&bob, 2, "everyones").await;
    assert_ne!(his.json()["id"], first.json()["id"]);
    let replay = post(&ann, "/api/v1/bookings", "everyones", &body, &[]).await;
    assert_eq!(replay.status_and_body(), first.status_and_body());
    // With two cookies, a client must not be able to choose the owner.
    let both = Visitor { cookie: format!("{}; {}", ann.cookie, bob.cookie), ..bob.clone() };
    let other = Visitor { cookie: format!("{}; {}", bob.cookie, ann.cookie), ..bob.clone() };
    let answers = [
        post(&both, "/api/v1/bookings", "everyones", &body, &[]).await,
        post(&other, "/api/v1/bookings", "everyones", &body, &[]).await,
    ];
    assert!(
        answers.iter().filter(|answer| answer.status_and_body() == first.status_and_body()).count() <= 1,
        "{answers:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_has_the_status_headers_and_bytes_of_the_first_answer() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    let seats = "{\"seats\":[0,1,2,3,4,5,6,7,8,9]}";
    let hold = post(&ann, &holds, "hold", seats, &[]).await;
    let body = booking_body(&ann, &hold.json());
    let booking = post(&ann, "/api/v1/bookings", "book", &body, &[]).await;
    let pay = pay_path(&booking);
    let token = "{\"payment_token\":\"tok_paid\"}";
    let paid = post(&ann, &pay, "pay", token, &[]).await;
    assert_eq!(paid.json()["state"], "CONFIRMED");
    assert!(booking.body.len() > 1_024, "long enough for compression");
    let steady = |read_answer: &RawAnswer| {
        let mut headers = read_answer.headers.clone();
        for changing in ["date", "server-time", "x-request-id"] {
            assert!(headers.remove(changing).is_some(), "{changing} is missing: {read_answer:?}");
        }
        headers
    };
    for (path, key, body, first) in
        [(&*holds, "hold", seats, &hold), ("/api/v1/bookings", "book", &body, &booking), (&pay, "pay", token, &paid)]
    {
        for headers in [&[][..], &[("x-request-id", "mine")], &[("accept-encoding", "gzip")]] {
            let again = post(&ann, path, key, body, headers).await;
            if headers.first().is_some_and(|(name, _)| *name == "accept-encoding") {
                assert_eq!((again.status, again.header("content-encoding")), (first.status, "gzip"), "{path}");
                continue;
            }
            assert_eq!(again.status_and_body(), first.status_and_body());
            assert_eq!(steady(&again), steady(first), "{path}");
            assert!(headers.is_empty() || again.header("x-request-id") == "mine");
        }
        // A cross-site request gets nothing, whether the key is known or not.
        let foreign = post(&ann, path, key, body, &[("origin", "https://evil.example")]).await;
        assert_eq!((foreign.status, text(&foreign.json()["code"])), (StatusCode::FORBIDDEN, "foreign_origin"));
        // The content type is part of the request.
        let request = ann.request(Method::POST, path).header("idempotency-key", key).body(body.to_owned());
        assert_eq!(RawAnswer::of(request).await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_different_keys_in_one_request_are_refused() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    let refused = post(&ann, &holds, "one", "{\"seats\":[1]}", &[("x-idempotency-key", "other")]).await;
    assert_eq!((refused.status, text(&refused.json()["code"])), (StatusCode::BAD_REQUEST, "key_malformed"));
    let first = post(&ann, &holds, "one", "{\"seats\":[1]}", &[("x-idempotency-key", "one")]).await;
    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(post(&ann, &holds, "one", "{\"seats\":[1]}", &[]).await.status_and_body(), first.status_and_body());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_with_one_key_at_two_replicas_have_one_effect_and_one_answer() {
    let (world, here) = World::with_visitor(2, &[]).await;
    let there = here.moved_to(&world, 1);
    let (_, hold) = here.hold(&[1]).await;
    let body = booking_body(&here, &hold);
    let at_once = async |path: &str, key: &str, body: &str| {
        let sent = (0..24).map(|number| {
            let visitor = if number % 2 == 0 { &here } else { &there };
            post(visitor, path, key, body, &[])
        });
        let answers = join_all(sent).await;
        let first = answers[0].clone();
        assert!(first.status.is_success(), "{first:?}");
        assert!(answers.iter().all(|answer| answer.status_and_body() == first.status_and_body()), "{answers:?}");
        first
    };
    let booking = at_once("/api/v1/bookings", "book", &body).await;
    let paid = at_once(&pay_path(&booking), "pay", "{\"payment_token\":\"tok_slow\"}").await;
    assert_eq!(paid.json()["state"], "CONFIRMED");
    for (query, count) in [
        ("SELECT count(*) FROM bookings", 1),
        ("SELECT count(*) FROM payments", 1),
        ("SELECT count(*) FROM tickets", 1),
        ("SELECT count(*) FROM idempotency_keys WHERE state = 'completed'", 2),
    ] {
        assert_eq!(world.count(query).await, count, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusal_is_not_stored_and_the_key_can_be_retried() {
    let (world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let (_, hold) = bob.hold(&[5]).await;
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    for _ in 0..2 {
        assert_eq!(post(&ann, &holds, "k", "{\"seats\":[5]}", &[]).await.status, StatusCode::LOCKED);
    }
    let path = format!("{holds}/{}", text(&hold["id"]));
    assert_eq!(bob.call(Method::DELETE, &path, Value::Null).await.0, StatusCode::NO_CONTENT);
    let granted = post(&ann, &holds, "k", "{\"seats\":[5]}", &[]).await;
    assert_eq!(granted.status, StatusCode::CREATED);
    // A booking that the database refuses: after the conflicting row is deleted, the same key succeeds.
    let body = booking_body(&ann, &granted.json());
    for statement in [
        "ALTER TABLE bookings ADD CONSTRAINT none CHECK (false) NOT VALID",
        "ALTER TABLE bookings DROP CONSTRAINT none",
    ] {
        world.execute(statement).await;
        let answer = post(&ann, "/api/v1/bookings", "book", &body, &[]).await;
        let expected = if statement.contains("ADD") { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::CREATED };
        assert_eq!(answer.status, expected, "{answer:?}");
    }
}

pub async fn poll_until_done(visitor: &Visitor, location: &str) -> RawAnswer {
    let ask = || RawAnswer::of(visitor.request(Method::GET, location));
    wait_until("the request is done", || async { ask().await.status != StatusCode::ACCEPTED }).await;
    ask().await
}

#[tokio::test(flavor = "multi_thread")]
async fn respond_async_request_is_answered_with_a_location() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let there = ann.moved_to(&world, 1);
    let (body, booking) = book_seat(&ann, 1, "book").await;
    let (path, token) = (pay_path(&booking), "{\"payment_token\":\"tok_slow\"}");
    let prefer = [("prefer", "respond-async, wait=5")];
    let accepted = post(&ann, &path, "pay/1?", token, &prefer).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{accepted:?}");
    assert_eq!(accepted.json(), json!({ "key": "pay/1?", "state": "RUNNING" }));
    assert_eq!(accepted.header("preference-applied"), "respond-async");
    assert_eq!(accepted.header("retry-after"), "1");
    let location = accepted.header("location").to_owned();
    assert_eq!(location, "/api/v1/requests/pay%2F1%3F");
    // Waiting clients and polling clients share one execution.
    let (waited, asked, asked_there) = tokio::join!(
        post(&ann, &path, "pay/1?", token, &[]),
        poll_until_done(&ann, &location),
        poll_until_done(&there, &location)
    );
    assert_eq!((waited.status, &waited.json()["state"]), (StatusCode::OK, &json!("CONFIRMED")));
    assert_eq!(asked.status_and_body(), waited.status_and_body());
    assert_eq!(asked_there.status_and_body(), waited.status_and_body());
    let finished = post(&there, &path, "pay/1?", token, &prefer).await;
    assert_eq!(finished.status_and_body(), waited.status_and_body());
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1);

    assert_eq!(world.visitor().get(&location).await.0, StatusCode::NOT_FOUND, "another's");
    assert_eq!(ann.get("/api/v1/requests/unheard-of").await.0, StatusCode::NOT_FOUND);
    // A failure is reported the same way, and the key is free.
    let unknown_hold = body.replace(
        &text(&serde_json::from_str::<Value>(&body).expect("JSON")["hold"]).to_owned(),
        &world.show.to_string(),
    );
    let accepted = post(&ann, "/api/v1/bookings", "fails", &unknown_hold, &prefer).await;
    let failed = match accepted.status {
        StatusCode::ACCEPTED => poll_until_done(&ann, accepted.header("location")).await,
        // The request finished before the asynchronous answer.
        _ => accepted,
    };
    assert_eq!((failed.status, text(&failed.json()["code"])), (StatusCode::GONE, "hold_expired"));
    let (_, hold) = ann.hold(&[2]).await;
    let valid = post(&ann, "/api/v1/bookings", "fails", &booking_body(&ann, &hold), &[]).await;
    assert_eq!(valid.status, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn respond_async_cancellation_is_answered_with_a_location() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let there = ann.moved_to(&world, 1);
    let paid = ann.buy_seats(&[1], "tok_paid").await;
    // The booking is locked, so it cannot be cancelled yet.
    let mut others = world.pg.begin().await.expect("a transaction");
    let locked = sqlx::query("SELECT 1 FROM bookings FOR UPDATE").execute(&mut *others).await;
    locked.expect("the booking is locked");
    let path = format!("/api/v1/bookings/{}/cancel", text(&paid["id"]));
    let accepted = post(&ann, &path, "undo", "{}", &[("prefer", "respond-async")]).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{accepted:?}");
    assert_eq!(accepted.header("preference-applied"), "respond-async");
    others.rollback().await.expect("the lock is released");
    let asked = poll_until_done(&there, accepted.header("location")).await;
    assert_eq!((asked.status, &asked.json()["state"]), (StatusCode::OK, &json!("CANCELLED")), "{asked:?}");
    assert_eq!(post(&there, &path, "undo", "{}", &[]).await.status_and_body(), asked.status_and_body());
}

#[tokio::test(flavor = "multi_thread")]
async fn work_continues_after_its_caller_disconnects() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, booking) = book_seat(&ann, 1, "book").await;
    let (path, token) = (pay_path(&booking), "{\"payment_token\":\"tok_slow\"}");
    let hasty = ann.request(Method::POST, &path).header("idempotency-key", "pay").timeout(Duration::from_millis(100));
    let hasty = hasty.json(&serde_json::from_str::<Value>(token).expect("JSON"));
    assert!(hasty.send().await.is_err_and(|error| error.is_timeout()), "the client disconnects");
    world.wait_for_count("the request is running", "SELECT count(*) FROM payments", 1).await;
    let asked = poll_until_done(&ann, "/api/v1/requests/pay").await;
    assert_eq!((asked.status, &asked.json()["state"]), (StatusCode::OK, &json!("CONFIRMED")));
    assert_eq!(post(&ann, &path, "pay", token, &[]).await.status_and_body(), asked.status_and_body());
}

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
    assert_eq!((expected["held"], expected["worked"]), (1, 2), "all first requests count in the hit ratio");
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
    let there = ann.moved_to(&world, 1);
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
    redis.restart(&[]);
    redis.wait_until_ready().await;
    wait_until("the answers are in Redis again", || async {
        let key = new_id().to_string();
        assert_eq!(post(&there, &pay, &key, TOKEN, &[]).await.status, StatusCode::OK);
        kind(&world, &entry(&world, &ann, &key)).await == Some(b'C')
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_survive_a_restart_byte_for_byte() {
    let (mut world, ann) = World::with_visitor(1, &[]).await;
    let (body, booking) = book_seat(&ann, 1, "book").await;
    let pay = pay_path(&booking);
    let paid = post(&ann, &pay, "pay", TOKEN, &[]).await;
    world.kill(0).await;
    for forgotten in [false, true] {
        if forgotten {
            world.delete_redis_keys().await;
        }
        let fresh = world.add_server(&[]).await;
        let ann = ann.moved_to(&world, fresh);
        for _ in 0..2 {
            let answer = post(&ann, "/api/v1/bookings", "book", &body, &[]).await;
            assert_eq!(answer.status_and_body(), booking.status_and_body());
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
    let (world, ann) = World::with_visitor(2, &[]).await;
    let (body, booking) = book_seat(&ann, 1, "book").await;
    let name = entry(&world, &ann, "book");
    wait_until("the answer is in Redis", || async { kind(&world, &name).await == Some(b'C') }).await;
    world.execute("DELETE FROM idempotency_keys").await;
    let there = ann.moved_to(&world, 1);
    assert_eq!(post(&there, "/api/v1/bookings", "book", &body, &[]).await.status_and_body(), booking.status_and_body());
}

#[tokio::test(flavor = "multi_thread")]
async fn running_key_is_waited_for_briefly_and_taken_over_from_a_dead_replica() {
    let (mut world, ann) = World::with_visitor(2, &[]).await;
    let there = ann.moved_to(&world, 1);
    let (_, booking) = book_seat(&ann, 1, "book").await;
    let (pay, token) = (pay_path(&booking), "{\"payment_token\":\"tok_no_answer_paid\"}");
    let request = ann.request(Method::POST, &pay).header("idempotency-key", "pay");
    let request = request.header("content-type", "application/json").body(token);
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
async fn draining_replica_keeps_its_heartbeat_while_a_request_runs() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    // Webhooks arrive at the other replica.
    let draining = Replica::new(&world, &[("PUBLIC_URL", &world.servers[0].url)]);
    draining.start().await;
    let there = Visitor { base: draining.url.clone(), ..ann.clone() };
    let (_, booking) = book_seat(&there, 1, "book").await;
    let (pay, token) = (pay_path(&booking), "{\"payment_token\":\"tok_no_answer_paid\"}");
    let drain = async {
        let name = entry(&world, &ann, "pay");
        wait_until("the request is running", || async { kind(&world, &name).await == Some(b'P') }).await;
        let mut redis = world.redis().await;
        let claim: Vec<u8> = redis::cmd("GET").arg(&name).query_async(&mut redis).await.expect("the claim is read");
        let replica = hex::encode(&claim[claim.len() - 16..]);
        let heartbeat = format!("{}replica:{replica}", world.setting("REDIS_PREFIX"));
        let heartbeat_returns = async {
            let address = draining.url.trim_start_matches("http://");
            let is_closed = || async { tokio::net::TcpStream::connect(address).await.is_err() };
            wait_until("it accepts no connections", is_closed).await;
            let deleted: i64 = redis::cmd("DEL").arg(&heartbeat).query_async(&mut redis).await.expect("it is deleted");
            assert_eq!(deleted, 1, "it is still there");
            wait_until("the heartbeat returns", || async { kind(&world, &heartbeat).await.is_some() }).await;
        };
        tokio::join!(draining.stop(), heartbeat_returns);
    };
    let (answer, ()) = tokio::join!(post(&there, &pay, "pay", token, &[]), drain);
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn key_claimed_by_a_dying_replica_is_taken_over() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, booking) = book_seat(&ann, 1, "book").await;
    let pay = pay_path(&booking);
    let paid = post(&ann, &pay, "pay", TOKEN, &[]).await;
    assert_eq!(paid.json()["state"], "CONFIRMED");
    // The same request under another key, just claimed by a dead replica.
    let claimed = "INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at)
        SELECT owner, 'left', request_hash, 'pending', now() + interval '5 minutes' FROM idempotency_keys WHERE key = 'pay'
        RETURNING request_hash";
    let hash: Vec<u8> = world.value(sqlx::query_scalar(claimed)).await;
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
    let (world, ann) = World::with_visitor(1, &[]).await;
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

/// Rows of keys updated by this transaction, and how many of the updates were heap-only (no index entry).
async fn update_counts(tx: &mut sqlx::PgConnection) -> (i64, i64) {
    let counts = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'idempotency_keys'";
    sqlx::query_as(counts).fetch_one(tx).await.expect("Postgres counts")
}

#[tokio::test(flavor = "multi_thread")]
async fn storing_an_answer_is_a_heap_only_update() {
    let world = World::start(0, &[]).await;
    let now = platform::clock::now();
    let intents = ["one", "another", "at-once"].map(|key| {
        let key = IdempotencyKey::of_form(key).expect("a key");
        Intent::new("ann", key, "POST /", &json!({}))
    });
    let answer = Answer::json(StatusCode::OK, &"a booking".repeat(120)).expect("an answer");
    let mut tx = world.pg.begin().await.expect("a transaction");
    assert!(intents[0].begin(&mut tx, now).await.expect("one key is claimed alone").is_none());
    let claims = [(&intents[1], None), (&intents[2], Some(&answer))];
    let mut cte = CteBatch::default();
    add_claims(&mut cte, &claims, false, now).expect("the others are claimed in a batch");
    let outcomes = cte.run(&mut tx).await.expect("the batch is written");
    assert!(lost_claims(&outcomes, &claims).expect("the claims are read").is_empty());
    tx.commit().await.expect("all keys are claimed");
    let lives = "SELECT (extract(epoch FROM expires_at) * 1000)::bigint FROM idempotency_keys ORDER BY key";
    let (pending, completed) = (now.plus_ms(300_000).0, now.plus_ms(86_400_000).0);
    let until: Vec<i64> = world.values(sqlx::query_scalar(lives)).await;
    assert_eq!(until, [pending, completed, pending], "five minutes, and 24 hours with an answer");

    let mut tx = world.pg.begin().await.expect("a transaction");
    let before = update_counts(&mut tx).await;
    intents[0].complete(&mut tx, &answer, now).await.expect("one answer is stored alone");
    let mut cte = CteBatch::default();
    let others = [(&intents[1], &answer)];
    add_answers(&mut cte, &others, now).expect("the other is stored in a batch");
    let outcomes = cte.run(&mut tx).await.expect("the batch is written");
    all_answered(&outcomes, &others).expect("the answer is stored");
    let after = update_counts(&mut tx).await;
    assert_eq!((after.0 - before.0, after.1 - before.1), (2, 2), "updates, and heap-only updates");
    tx.commit().await.expect("both answers are committed");
    let until: Vec<i64> = world.values(sqlx::query_scalar(lives)).await;
    assert_eq!(until, [completed; 3], "24 hours");
    for intent in &intents {
        let replayed = intent.replay(&world.pg, now).await.expect("the key is known").expect("the answer is stored");
        assert_eq!(replayed.body(), answer.body());
    }
}

/// An expired key; a key that the previous version claimed again without knowing `purge_at`; and one of that version
/// that expired at once.
const KEYS_OF_THREE_TIMES: &str = "
    INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at, purge_at) VALUES
        ('ann', 'over', '', 'pending', now() - interval '2 days', now() - interval '1 day'),
        ('ann', 'anew', '', 'pending', now() + interval '5 minutes', now() - interval '1 day');
    INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at) VALUES
        ('ann', 'of before', '', 'pending', now() - interval '1 second')";

#[tokio::test(flavor = "multi_thread")]
async fn expired_key_is_deleted_after_its_purge_time() {
    let mut world = World::start(0, &[]).await;
    sqlx::raw_sql(KEYS_OF_THREE_TIMES).execute(&world.pg).await.expect("the keys are written");
    world.add_server(&[]).await;
    let over = "SELECT count(*) FROM idempotency_keys WHERE key = 'over'";
    world.wait_for_count("expired keys are deleted", over, 0).await;
    assert_eq!(world.count("SELECT count(*) FROM idempotency_keys").await, 2, "what is of use, and what may wait");
}

const BOOKINGS: &str = "/api/v1/bookings";

async fn replay(browser: &Browser, world: &World, server: usize, body: &str) -> RawAnswer {
    post(&browser.moved_to(world, server).visitor(), BOOKINGS, "hers", body, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_guest_cookie_gets_no_replay_from_any_server() {
    let mut world = World::start(2, &[]).await;
    let (mut phone, copy) = guest_with_copied_cookie(&world).await;
    let hold = expect_answer(phone.visitor().hold(&[1]).await, StatusCode::CREATED);
    let order = phone.visitor().purchase_body(&hold, Some("tok_paid"));
    let bytes = order.to_string();
    let in_other_words = serde_json::to_string_pretty(&order).expect("JSON");
    let bought = replay(&phone, &world, 0, &bytes).await;
    assert_eq!((bought.status, text(&bought.json()["state"])), (StatusCode::CREATED, "CONFIRMED"));
    // Before she signs in, both browsers are the same visitor, and both servers cache the answer.
    for server in [0, 1, 1] {
        assert_eq!(replay(&copy, &world, server, &bytes).await.status_and_body(), bought.status_and_body());
    }

    assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    let (copied, here) = (&copy, &world);
    let is_refused = async |server: usize, body: &str| {
        let answer = replay(copied, here, server, body).await;
        assert!(
            answer.status == StatusCode::NOT_FOUND || answer.status_and_body() == bought.status_and_body(),
            "{answer:?}"
        );
        answer.status == StatusCode::NOT_FOUND
    };
    assert!(is_refused(0, &bytes).await, "at once at the server of the login");
    wait_until("the other server sees the login", || is_refused(1, &bytes)).await;
    // No request in between restores the replay.
    for server in [0, 1, 0, 1] {
        assert!(is_refused(server, &in_other_words).await && is_refused(server, &bytes).await, "{server}");
    }
    // A server without a cached copy reads the answer from the stores, and refuses it as well.
    let fresh = world.add_server(&[]).await;
    for _ in 0..2 {
        assert_eq!(replay(&copy, &world, fresh, &bytes).await.status, StatusCode::NOT_FOUND);
    }
    for server in [0, 1, fresh] {
        let answer = replay(&phone, &world, server, &bytes).await;
        assert_eq!(answer.status_and_body(), bought.status_and_body(), "{server}");
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_guest_cookie_gets_no_replay_of_a_payment_or_cancellation() {
    let world = World::start(1, &[]).await;
    let (mut phone, copy) = guest_with_copied_cookie(&world).await;
    let (_, booking) = phone.visitor().check_out(&[1, 2]).await;
    let of = |step: &str| format!("{BOOKINGS}/{}/{step}", text(&booking["id"]));
    let steps: [(String, Value); 2] =
        [(of("confirm"), json!({ "payment_token": "tok_paid" })), (of("cancel"), json!({ "seats": [2] }))];
    for (path, body) in &steps {
        let (status, answer) = phone.visitor().call_with_key(Method::POST, path, body.clone(), "hers").await;
        let key = if status == StatusCode::UNPROCESSABLE_ENTITY { "hers-too" } else { "hers" };
        let (status, answer) = match key {
            "hers" => (status, answer),
            _ => phone.visitor().call_with_key(Method::POST, path, body.clone(), key).await,
        };
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        let replayed = copy.visitor().call_with_key(Method::POST, path, body.clone(), key).await;
        assert_eq!(replayed, (status, answer), "{path}");
    }
    assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    for (path, body) in &steps {
        for key in ["hers", "hers-too"] {
            let (status, answer) = copy.visitor().call_with_key(Method::POST, path, body.clone(), key).await;
            let is_reused = status == StatusCode::UNPROCESSABLE_ENTITY;
            assert!(status == StatusCode::NOT_FOUND || is_reused, "{path}, {key}: {status} {answer}");
        }
    }
}
