//! API keys of other systems: shown once, read-only for one theatre, and void when revoked.

use super::deliveries::HOOKS;
use crate::accounts::form;
use crate::prelude::*;
use crate::reports::staff;

const KEYS: &str = "/api/v1/theatres/aurora/api-keys";

/// Status and JSON of a request with this key.
async fn request_with_key(world: &World, key: &str, method: Method, path: &str) -> (StatusCode, Value) {
    let visitor = world.visitor();
    let request = visitor.client.request(method, format!("{}{path}", visitor.base)).bearer_auth(key);
    let answer = RawAnswer::of(request.header("idempotency-key", new_id().to_string())).await;
    (answer.status, serde_json::from_str(&answer.body).unwrap_or(Value::Null))
}

fn key_body(people: bool) -> Value {
    json!({ "name": "Bookkeeping", "reads_people": people, "reason": "The accountant asked." })
}

#[tokio::test(flavor = "multi_thread")]
async fn key_is_shown_once_reads_its_theatre_and_is_void_when_revoked() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let booking = world.visitor().buy_seats(&[46, 47], "tok_paid").await;
    let visitor = max.visitor();
    let made = visitor.raw(Method::POST, KEYS, key_body(false), "one-intent").await;
    assert_eq!(made.0, StatusCode::CREATED, "{}", made.1);
    assert_eq!(visitor.raw(Method::POST, KEYS, key_body(false), "one-intent").await, made, "the same answer");
    let about: Value = serde_json::from_str(&made.1).expect("JSON");
    let key = text(&about["key"]).to_owned();
    assert!(key.starts_with("rlk_") && key.len() == 68, "{key}");
    // Only the answer contains the key: no list and no row.
    assert!(!max.get(KEYS).await.1.to_string().contains(&key));
    let sql = "SELECT (SELECT count(*) FROM idempotency_keys WHERE position($1 in encode(body, 'escape')) > 0)
              + (SELECT count(*) FROM api_keys key WHERE position($1 in key::text) > 0)
              + (SELECT count(*) FROM audit_list line WHERE position($1 in line::text) > 0)";
    let kept: i64 = world.value(sqlx::query_scalar(sql).bind(&key)).await;
    assert_eq!(kept, 0);

    let read = format!("/api/v1/theatres/aurora/bookings/{}", text(&booking["id"]));
    for report in ["sales", "funnel", "takings", "occupancy", "csv/days"] {
        let path = format!("/api/v1/theatres/aurora/reports/{report}");
        assert_eq!(request_with_key(&world, &key, Method::GET, &path).await.0, StatusCode::OK, "{report}");
        let path = format!("/api/v1/theatres/rialto/reports/{report}");
        assert_eq!(request_with_key(&world, &key, Method::GET, &path).await.0, StatusCode::NOT_FOUND, "{report}");
    }
    let (status, seen) = request_with_key(&world, &key, Method::GET, &read).await;
    assert_eq!((status, &seen["reference"], seen.get("buyer")), (StatusCode::OK, &booking["reference"], None));
    assert_eq!(seen["lines"].as_array().map(Vec::len), Some(2), "{seen}");
    let used = "SELECT count(*) FROM api_keys WHERE last_used_at IS NOT NULL";
    assert_eq!(world.count(used).await, 1);
    // Routes for people only, refused for every key.
    for (method, path) in [
        (Method::GET, KEYS.to_owned()),
        (Method::POST, KEYS.to_owned()),
        (Method::GET, "/api/v1/theatres/aurora/webhooks".to_owned()),
        (Method::GET, "/api/v1/theatres/aurora/staff".to_owned()),
        (Method::GET, "/api/v1/users/me".to_owned()),
        (Method::GET, format!("/api/v1/bookings/{}", text(&booking["id"]))),
    ] {
        let (status, problem) = request_with_key(&world, &key, method.clone(), &path).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::UNAUTHORIZED, "token_invalid"), "{method} {path}");
    }

    let (_, other) = max.post(KEYS, key_body(true)).await;
    let (_, seen) = request_with_key(&world, text(&other["key"]), Method::GET, &read).await;
    assert_eq!(seen["buyer"], json!({ "name": "Ann Example", "email": "ann@example.org" }));

    let revoke = format!("{KEYS}/{}/revoke", text(&about["id"]));
    assert_eq!(max.post(&revoke, json!({ "reason": "Not used." })).await.0, StatusCode::NO_CONTENT);
    expect_problem(request_with_key(&world, &key, Method::GET, &read).await, StatusCode::UNAUTHORIZED, "token_invalid");
    assert_eq!(max.post(&revoke, json!({ "reason": "Again." })).await.0, StatusCode::NO_CONTENT);
    let acts = "SELECT count(*) FROM audit_list WHERE act IN ('api_key_made', 'api_key_revoked')";
    assert_eq!(world.count(acts).await, 3, "a repeated change adds no audit row");
    let strange = format!("{KEYS}/{}/revoke", new_id());
    assert_eq!(max.post(&strange, json!({ "reason": "None." })).await.0, StatusCode::NOT_FOUND);
    for name in ["", "a\nb", &"x".repeat(61)] {
        let (status, _) = max.post(KEYS, json!({ "name": name, "reason": "Try." })).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{name:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_the_server_secret_was_replaced_shows_no_wrong_secret() {
    let mut world = World::start(1, &[("WEBHOOKS_MAY_BE_PRIVATE", "true")]).await;
    let max = staff(&world, "max@example.org", "manager").await.visitor();
    let replaced = world.add_server(&[("TOKEN_SECRET", "the next secret of this test; thirty-two bytes")]).await;
    let max_there = max.moved_to(&world, replaced);
    let hook =
        json!({ "url": "http://127.0.0.1:9/hooks", "events": ["booking.confirmed"], "reason": "The newsletter." });
    let made = expect_answer(max.call_with_key(Method::POST, HOOKS, hook.clone(), "hook").await, StatusCode::CREATED);
    let secret = format!("{HOOKS}/{}/secret", text(&made["id"]));
    for (key, path, body) in [
        ("hook", HOOKS, hook),
        ("secret", secret.as_str(), json!({ "reason": "It was in a mail." })),
        ("key", KEYS, key_body(false)),
    ] {
        let answer = max.call_with_key(Method::POST, path, body.clone(), key).await;
        assert!(answer.0.is_success(), "{answer:?}");
        assert_eq!(max.call_with_key(Method::POST, path, body.clone(), key).await, answer, "the same answer");
        let there = max_there.call_with_key(Method::POST, path, body, key).await;
        expect_problem(there, StatusCode::CONFLICT, "wrong_state");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn program_over_the_rate_limit_gets_429() {
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (_, made) = max.post(KEYS, key_body(false)).await;
    let path = format!("/api/v1/theatres/aurora/bookings/{}", new_id());
    let asked = (0..200).map(|_| request_with_key(&world, text(&made["key"]), Method::GET, &path));
    let statuses: Vec<StatusCode> = join_all(asked).await.into_iter().map(|one| one.0).collect();
    let count_of = |status: StatusCode| statuses.iter().filter(|one| **one == status).count();
    assert!(count_of(StatusCode::TOO_MANY_REQUESTS) > 0 && count_of(StatusCode::NOT_FOUND) >= 120, "{statuses:?}");
    assert_eq!(count_of(StatusCode::TOO_MANY_REQUESTS) + count_of(StatusCode::NOT_FOUND), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_of_the_page_work_like_the_api() {
    let world = World::start(1, &[("WEBHOOKS_MAY_BE_PRIVATE", "true")]).await;
    let max = staff(&world, "max@example.org", "manager").await;
    let visitor = max.visitor();
    let send = async |path: &str, fields: &[(&str, &str)]| {
        let request = visitor.request(Method::POST, &format!("/staff/aurora/systems{path}"));
        let answer = RawAnswer::of(form(request, fields)).await;
        (answer.status, answer.body)
    };
    let key = [("key", "form-1"), ("name", "Newsletter"), ("reason", "Monthly numbers.")];
    expect_page(send("/keys", &key).await, StatusCode::OK, &["rlk_", "Newsletter"]);
    let nameless = send("/keys", &[("key", "form-2"), ("name", ""), ("reason", "None.")]).await;
    expect_page(nameless, StatusCode::BAD_REQUEST, &["systems-trouble"]);
    let hook = [
        ("key", "form-3"),
        ("url", "http://127.0.0.1:9/hooks"),
        ("reason", "The sign in the foyer."),
        ("events", "booking.confirmed"),
        ("events", "show.cancelled"),
    ];
    expect_page(send("/webhooks", &hook).await, StatusCode::OK, &["whsec_", "127.0.0.1:9/hooks"]);
    let id: Uuid = world.value(sqlx::query_scalar("SELECT id FROM webhook_endpoints")).await;
    let off = [("key", "form-4"), ("state", "off"), ("reason", "Not now.")];
    expect_answer(send(&format!("/webhooks/{id}/state"), &off).await, StatusCode::SEE_OTHER);
    let renewed = send(&format!("/webhooks/{id}/secret"), &[("key", "form-5"), ("reason", "Lost.")]).await;
    expect_page(renewed, StatusCode::OK, &["whsec_", "data-state=\"off\""]);
    let id: Uuid = world.value(sqlx::query_scalar("SELECT id FROM api_keys")).await;
    // A refused form stays open.
    let too_long = "x".repeat(301);
    let refused = send(&format!("/keys/{id}/revoke"), &[("key", "form-7"), ("reason", &too_long)]).await;
    let page = expect_page(refused, StatusCode::BAD_REQUEST, &["data-testid=\"systems-trouble\""]);
    let opened = page.split("<details").filter_map(|rest| rest.split('>').next()).filter(|tag| tag.contains(" open"));
    assert_eq!(opened.count(), 1, "{page}");
    let (status, _) = send(&format!("/keys/{id}/revoke"), &[("key", "form-6"), ("reason", "Over.")]).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(world.count("SELECT count(*) FROM api_keys WHERE revoked_at IS NOT NULL").await, 1);
    let request = visitor.request(Method::POST, "/staff/aurora/systems/keys").header("origin", "https://evil.example");
    assert_eq!(RawAnswer::of(form(request, &key)).await.status, StatusCode::FORBIDDEN);
}
