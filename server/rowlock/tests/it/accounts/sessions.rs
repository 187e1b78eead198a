//! Session cookies and tokens: ownership, expiry and forgery.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Browser, PASSWORD, register_and_log_in};
use crate::world::{TOKEN_SECRET, World, expect_answer, expect_problem, text, wait_until};

/// Sends a request of a program with this token.
async fn with_token(world: &World, method: Method, path: &str, body: Value, token: &str) -> (StatusCode, Value) {
    let key = platform::ids::new_id().to_string();
    let headers = [("authorization", &*format!("Bearer {token}")), ("idempotency-key", &key)];
    let (status, _, body) = Browser::new(world).send_with(method, path, &body, &headers).await;
    (status, body)
}

async fn current_user(world: &World, token: &str) -> (StatusCode, Value) {
    with_token(world, Method::GET, "/api/v1/users/me", Value::Null, token).await
}

#[tokio::test(flavor = "multi_thread")]
async fn session_cookie_is_random_stored_hashed_and_renewed_at_sign_in() {
    let world = World::start(1, &[]).await;
    let mut ann = Browser::new(&world);
    ann.register("ann@example.org", PASSWORD).await;
    let login = json!({ "email": "ann@example.org", "password": PASSWORD });
    let (status, headers, _) = ann.send_with(Method::POST, "/api/v1/users/login", &login, &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["cache-control"], "private, no-store");
    let cookies: Vec<&str> =
        headers.get_all("set-cookie").iter().map(|cookie| cookie.to_str().expect("text")).collect();
    let session = cookies.iter().find(|cookie| cookie.starts_with("rowlock_session=")).expect("a session");
    assert!(session.contains("; HttpOnly") && session.contains("; SameSite=Lax") && session.contains("; Path=/"));
    assert!(!session.contains("Secure"), "this server is reached without TLS");
    let first = ann.cookie("rowlock_session").expect("kept").to_owned();
    let stored = world.count("SELECT count(*) FROM sessions WHERE octet_length(secret_hash) = 32").await;
    assert_eq!((first.len(), stored), (64, 1));
    // Session fixation: a planted session id is not used at sign-in.
    let planted = "0a".repeat(32);
    let mut fixed = Browser::new(&world);
    fixed.put_cookie("rowlock_session", &planted);
    fixed.log_in("ann@example.org", PASSWORD).await;
    assert_ne!(fixed.cookie("rowlock_session"), Some(planted.as_str()));
    // A second sign-in ends the first session.
    let mut old = ann.clone();
    ann.log_in("ann@example.org", PASSWORD).await;
    assert_ne!(ann.cookie("rowlock_session"), Some(first.as_str()));
    assert_eq!((ann.me().await.0, old.me().await.0), (StatusCode::OK, StatusCode::UNAUTHORIZED));
    let mut foreign = Browser::new(&world);
    for value in ["", "0", &"0".repeat(64), &"g".repeat(64), &"a".repeat(4_000)] {
        foreign.put_cookie("rowlock_session", value);
        assert_eq!(foreign.me().await.0, StatusCode::UNAUTHORIZED, "{value:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_tls_the_cookies_are_secure() {
    let mut world = World::start(0, &[]).await;
    world.add_server(&[("PUBLIC_URL", "https://rowlock.example"), ("ALLOW_SIMULATOR", "true")]).await;
    let mut ann = Browser::new(&world);
    ann.register("ann@example.org", PASSWORD).await;
    let login = json!({ "email": "ann@example.org", "password": PASSWORD });
    let (_, headers, _) = ann.send_with(Method::POST, "/api/v1/users/login", &login, &[]).await;
    let cookies: Vec<&str> =
        headers.get_all("set-cookie").iter().map(|cookie| cookie.to_str().expect("text")).collect();
    assert!(cookies.len() >= 3 && cookies.iter().all(|cookie| cookie.ends_with("; Secure")), "{cookies:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_when_unused_expired_or_the_account_is_closed() {
    let world = World::start(1, &[]).await;
    let mut ann = register_and_log_in(&world, "ann@example.org").await;
    let token = ann.token("ann@example.org").await;
    let run = async |statement: &'static str| {
        world.execute(statement).await;
    };
    run("UPDATE sessions SET last_seen_at = now() - interval '13 days' WHERE kind = 'browser'").await;
    assert_eq!(ann.me().await.0, StatusCode::OK);
    assert_eq!(world.count("SELECT count(*) FROM sessions WHERE last_seen_at < now() - interval '1 day'").await, 0);
    run("UPDATE sessions SET last_seen_at = now() - interval '15 days' WHERE kind = 'browser'").await;
    assert_eq!(ann.me().await.0, StatusCode::UNAUTHORIZED, "unused for more than two weeks");
    let mut again = Browser::new(&world);
    again.log_in("ann@example.org", PASSWORD).await;
    run("UPDATE sessions SET expires_at = now() - interval '1 second' WHERE kind = 'browser'").await;
    assert_eq!(again.me().await.0, StatusCode::UNAUTHORIZED, "the session has expired");
    assert_eq!(current_user(&world, &token).await.0, StatusCode::OK);
    let (good, said) =
        world.command(&["admin", "close", "--email", "ANN@example.org", "--reason", "On request."]).await;
    assert!(good, "{said}");
    expect_problem(current_user(&world, &token).await, StatusCode::UNAUTHORIZED, "token_invalid");
    assert_eq!(again.log_in("ann@example.org", PASSWORD).await.1["code"], "login_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_everywhere_ends_all_sessions_and_tokens_at_all_replicas() {
    let mut world = World::start(1, &[]).await;
    let other = world.add_server(&[]).await;
    let mut phone = register_and_log_in(&world, "ann@example.org").await;
    let mut laptop = Browser::new(&world);
    laptop.log_in("ann@example.org", PASSWORD).await;
    let token = laptop.token("ann@example.org").await;
    // The other replica caches the session for a few seconds for requests on seats.
    let elsewhere = laptop.moved_to(&world, other).visitor();
    expect_answer(elsewhere.hold(&[7]).await, StatusCode::CREATED);
    let (status, _) = phone.post("/api/v1/users/logout-everywhere", Value::Null).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    for browser in [&mut phone, &mut laptop.moved_to(&world, other), &mut laptop] {
        assert_eq!(browser.me().await.0, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(current_user(&world, &token).await.0, StatusCode::UNAUTHORIZED);
    let path = format!("/api/v1/shows/{}/hold", world.show);
    wait_until("the old session no longer sees the hold", || async {
        elsewhere.get(&path).await.0 == StatusCode::NO_CONTENT
    })
    .await;
    let audited = "SELECT count(*) FROM audit_list WHERE act = 'signed_out_everywhere' AND actor IS NOT NULL";
    assert_eq!(world.count(audited).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn token_buys_without_a_cookie_and_the_account_lists_the_booking() {
    let world = World::start(1, &[]).await;
    let mut ann = register_and_log_in(&world, "ann@example.org").await;
    let (first, second) = (ann.token("ann@example.org").await, ann.token("ann@example.org").await);
    assert_ne!(first, second);
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    let hold = expect_answer(
        with_token(&world, Method::POST, &holds, json!({ "seats": [4] }), &first).await,
        StatusCode::CREATED,
    );
    // A renewed token is the same visitor.
    let buyer = json!({ "name": "Ann", "email": "ann@example.org" });
    let request_body = json!({ "show": world.show, "hold": hold["id"], "buyer": buyer });
    let booking = expect_answer(
        with_token(&world, Method::POST, "/api/v1/bookings", request_body, &second).await,
        StatusCode::CREATED,
    );
    let confirm = format!("/api/v1/bookings/{}/confirm", text(&booking["id"]));
    let pay = json!({ "payment_token": "tok_paid" });
    assert_eq!(with_token(&world, Method::POST, &confirm, pay, &second).await.0, StatusCode::OK);
    let bookings = ann.bookings().await;
    assert_eq!((bookings.len(), &bookings[0]["id"]), (1, &booking["id"]));
    let ben = register_and_log_in(&world, "ben@example.org").await.token("ben@example.org").await;
    let path = format!("/api/v1/bookings/{}", text(&booking["id"]));
    assert_eq!(with_token(&world, Method::GET, &path, Value::Null, &ben).await.0, StatusCode::NOT_FOUND);
    // Sign-out ends the token that sends it, and no other.
    for _ in 0..2 {
        let (status, _) = with_token(&world, Method::POST, "/api/v1/users/logout", Value::Null, &first).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "a repeated sign-out gets the same answer");
    }
    assert_eq!(
        (current_user(&world, &first).await.0, current_user(&world, &second).await.0),
        (StatusCode::UNAUTHORIZED, StatusCode::OK)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_expired_and_foreign_tokens_are_rejected() {
    use hmac::{Hmac, KeyInit, Mac};
    let world = World::start(1, &[]).await;
    let mut ann = register_and_log_in(&world, "ann@example.org").await;
    let token = ann.token("ann@example.org").await;
    let parts: Vec<&str> = token.split('.').collect();
    let read =
        |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON") };
    assert_eq!(read(parts[0])["alg"], "HS256");
    let claims = read(parts[1]);
    assert_eq!((text(&claims["iss"]), text(&claims["aud"])), ("rowlock", "rowlock-api"));
    let life = claims["exp"].as_i64().expect("seconds") - claims["iat"].as_i64().expect("seconds");
    assert!((60..=900).contains(&life), "minutes, not {life} s");
    let signed = |header: &Value, claims: &Value, secret: &str| {
        let message = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).expect("a key");
        mac.update(message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
    };
    let usual = json!({ "alg": "HS256", "typ": "JWT" });
    let changed = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        signed(&usual, &claims, TOKEN_SECRET)
    };
    assert_eq!(
        current_user(&world, &signed(&usual, &claims, TOKEN_SECRET)).await.0,
        StatusCode::OK,
        "a correctly signed token is accepted"
    );
    let none = [&json!({ "alg": "none" }), &claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
    let forged = [
        format!("{none}."),
        format!("{none}.{}", parts[2]),
        signed(&json!({ "alg": "HS512" }), &claims, TOKEN_SECRET),
        signed(&usual, &claims, "another secret, which is as long as one has to be"),
        format!("{}.{}.{}", parts[0], parts[1], "AAAA"),
        changed("exp", json!(platform::clock::now().0 / 1_000 - 1)),
        changed("aud", json!("others")),
        changed("iss", json!("others")),
        changed("sid", json!(platform::ids::new_id())),
        // Ann's session with the id of another account.
        changed("sub", json!(platform::ids::new_id())),
        "x".repeat(5_000),
        String::new(),
    ];
    for token in forged {
        let (status, problem) = current_user(&world, &token).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::UNAUTHORIZED, "token_invalid"), "{token}");
        let holds = format!("/api/v1/shows/{}/holds", world.show);
        let (status, _) = with_token(&world, Method::POST, &holds, json!({ "seats": [1] }), &token).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "requests on seats reject it too");
    }
    // A token that names a browser's session is rejected.
    let browser = sqlx::query_scalar::<_, uuid::Uuid>("SELECT id FROM sessions WHERE kind = 'browser'");
    let browser = browser.fetch_one(&world.pg).await.expect("her session");
    assert_eq!(current_user(&world, &changed("sid", json!(browser))).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_with_a_short_token_secret_does_not_start() {
    let world = World::start(0, &[("TOKEN_SECRET", "short"), ("LISTEN", "127.0.0.1:0")]).await;
    let (good, said) = world.command(&["serve"]).await;
    assert!(!good && said.contains("TOKEN_SECRET") && !said.contains("short\""), "{said}");
}
