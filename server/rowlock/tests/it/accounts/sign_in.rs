//! Registration, login and logout; session cookies and tokens: ownership, expiry, forgery, and answers that reveal no
//! account. A flood of logins does not stop holds.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{form, mails_about, wait_for_mailed_token, world_with_ann};
use crate::hanging_mail_server::HangingMailServer;
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn registered_user_logs_in_and_stays_logged_in_until_logout() {
    let world = World::start(1, &[]).await;
    let mut ann = Browser::new(&world);
    assert_eq!(ann.me().await.0, StatusCode::UNAUTHORIZED);
    let (status, answer) = ann.register("Ann@Example.org", PASSWORD).await;
    assert_eq!((status, text(&answer["next"])), (StatusCode::CREATED, "LOG_IN"));
    assert_eq!(ann.me().await.0, StatusCode::UNAUTHORIZED, "registration does not sign in");
    let (status, answer) = ann.log_in(" ann@example.ORG ", PASSWORD).await;
    assert_eq!((status, text(&answer["name"])), (StatusCode::OK, "Ann Example"));
    assert!(answer.get("token").is_none(), "no token was requested");
    let (status, me) = ann.me().await;
    assert_eq!((status, text(&me["email"])), (StatusCode::OK, "Ann@Example.org"), "as typed");
    assert_eq!((&me["email_proven"], &me["grants"]), (&json!(false), &json!([])));
    let (status, _) = ann.post("/api/v1/users/logout", Value::Null).await;
    assert_eq!((status, ann.cookie("rowlock_session")), (StatusCode::NO_CONTENT, None));
    assert_eq!(ann.me().await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(ann.post("/api/v1/users/logout", Value::Null).await.0, StatusCode::NO_CONTENT, "it changes nothing");
    let kept = sqlx::query_scalar::<_, String>("SELECT password_hash FROM accounts").fetch_one(&world.pg).await;
    assert!(kept.expect("a hash").starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
}

#[tokio::test(flavor = "multi_thread")]
async fn registering_a_known_address_gets_the_same_answer_and_mails_its_owner() {
    let (world, mut ann) = world_with_ann().await;
    let mut eve = Browser::new(&world);
    let known = eve.register("ANN@example.org", "another password").await;
    let new = eve.register("new@example.org", "another password").await;
    assert_eq!((known.0, new.0), (StatusCode::CREATED, StatusCode::CREATED));
    let shape = |answer: &Value| answer.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(shape(&known.1), shape(&new.1));
    assert_eq!(known.1["next"], new.1["next"]);
    wait_until("its owner gets a mail", || async { mails_about(&world, "You already have an account").len() == 1 })
        .await;
    assert!(mails_about(&world, "You already have an account")[0].contains("ann@example.org"));
    wait_for_mailed_token(&world, "Please confirm your address", "new@example.org").await;
    let named =
        world.mails().iter().filter(|mail| mail.contains("new@example.org") && mail.contains("Ann Example")).count();
    assert_eq!(named, 0, "the name of an unproven address may be a stranger's text");
    assert_eq!(world.count("SELECT count(*) FROM accounts").await, 2);
    assert_eq!(eve.log_in("ann@example.org", "another password").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(ann.me().await.0, StatusCode::OK);
    assert_eq!(Browser::new(&world).log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_mails_wait_on_a_hanging_mail_server_and_others_stay_queued() {
    let mail_server = HangingMailServer::open().await;
    let world = World::start(1, &[("SMTP_URL", mail_server.url.as_str())]).await;
    register_and_log_in(&world, "ann@example.org").await;
    let more = "INSERT INTO account_mails (id, kind, email, run_after, created_at)
                SELECT gen_random_uuid(), 'registered_again', 'ann@example.org', now(), now()
                FROM generate_series(1, 9)";
    world.execute(more).await;
    wait_until("eight mails hang at the same time", || async { mail_server.waiting_clients() == 8 }).await;
    assert_eq!(world.count("SELECT count(*) FROM account_mails WHERE tries = 1").await, 8);
    assert_eq!(world.count("SELECT count(*) FROM account_mails").await, 10, "no mail is sent or retried");
    mail_server.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_registrations_are_refused_and_write_nothing() {
    let world = World::start(1, &[]).await;
    let mut ann = Browser::new(&world);
    let (long_name, long_mail) = ("x".repeat(121), format!("{}@example.org", "x".repeat(250)));
    let cases = [
        (json!({ "name": "", "email": "a@example.org", "password": PASSWORD }), "person_invalid"),
        (json!({ "name": long_name, "email": "a@example.org", "password": PASSWORD }), "person_invalid"),
        (json!({ "name": "A\u{0}", "email": "a@example.org", "password": PASSWORD }), "person_invalid"),
        (json!({ "name": "A", "email": "no-address", "password": PASSWORD }), "person_invalid"),
        (
            json!({ "name": "A", "email": "a@example.org\r\nBcc: b@example.org", "password": PASSWORD }),
            "person_invalid",
        ),
        (json!({ "name": "A", "email": "a\u{0}@example.org", "password": PASSWORD }), "person_invalid"),
        (json!({ "name": "A", "email": long_mail, "password": PASSWORD }), "person_invalid"),
        (json!({ "name": "A", "email": "a@example.org", "password": "nine char" }), "password_unusable"),
        (json!({ "name": "A", "email": "a@example.org", "password": "x".repeat(257) }), "password_unusable"),
        (json!({ "name": "A", "email": "a@example.org" }), "malformed"),
        (json!({ "name": "A", "email": "a@example.org", "password": 1 }), "malformed"),
        (json!({ "name": "A", "email": "a@example.org", "password": PASSWORD, "role": "manager" }), "malformed"),
    ];
    for (body, code) in cases {
        let (status, problem) = ann.post("/api/v1/users/register", body.clone()).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, code), "{body}");
        assert!(!problem.to_string().contains(PASSWORD), "an answer never repeats a password: {problem}");
    }
    for body in [json!({ "email": "a\u{0}@b.cd", "password": "x" }), json!({ "email": "", "password": "" })] {
        expect_problem(ann.post("/api/v1/users/login", body).await, StatusCode::UNAUTHORIZED, "login_failed");
    }
    // Without a key, and under one that another request used.
    let body = json!({ "name": "Ann", "email": "ann@example.org", "password": PASSWORD });
    let (status, _, problem) = ann.send_with(Method::POST, "/api/v1/users/register", &body, &[]).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "key_missing"));
    let key = [("idempotency-key", "one-intent")];
    let first = ann.send_with(Method::POST, "/api/v1/users/register", &body, &key).await;
    let again = ann.send_with(Method::POST, "/api/v1/users/register", &body, &key).await;
    assert_eq!((first.0, &first.2), (StatusCode::CREATED, &again.2));
    let other = json!({ "name": "Ann", "email": "ann@example.org", "password": "another password" });
    let (status, _, problem) = ann.send_with(Method::POST, "/api/v1/users/register", &other, &key).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::UNPROCESSABLE_ENTITY, "key_reused"));
    assert_eq!(world.count("SELECT count(*) FROM accounts").await, 1);
    // The stored hash of the request is keyed, so a password cannot be guessed from it.
    let kept = sqlx::query_scalar::<_, Vec<u8>>("SELECT request_hash FROM idempotency_keys").fetch_one(&world.pg).await;
    use sha2::{Digest, Sha256};
    let plain = Sha256::digest([b"POST /users/register\0".as_slice(), body.to_string().as_bytes()].concat());
    assert_ne!(kept.expect("a row"), plain.to_vec());
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_password_and_unknown_address_get_the_same_answer() {
    let world = World::start(1, &[]).await;
    register_and_log_in(&world, "ann@example.org").await;
    let mut eve = Browser::new(&world);
    let (wrong, unknown) =
        (eve.log_in("ann@example.org", "not her password").await, eve.log_in("unknown@example.org", PASSWORD).await);
    assert_eq!((wrong.0, text(&wrong.1["code"])), (StatusCode::UNAUTHORIZED, "login_failed"));
    assert_eq!(wrong, unknown);
    assert_eq!(eve.cookie("rowlock_session"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn login_attempts_are_limited_across_replicas_and_per_account() {
    let mut world = World::start(1, &[]).await;
    let other = world.add_server(&[]).await;
    register_and_log_in(&world, "ann@example.org").await;
    let (mut here, mut there) = (Browser::new(&world), Browser::at(&world, other));
    let mut refused = None;
    for _ in 0..8 {
        for eve in [&mut here, &mut there] {
            let body = json!({ "email": "Ann@example.org", "password": "a guess at it" });
            let (status, headers, problem) = eve.send_with(Method::POST, "/api/v1/users/login", &body, &[]).await;
            if status == StatusCode::TOO_MANY_REQUESTS {
                refused = Some((headers, problem));
            } else {
                assert_eq!((status, refused.is_some()), (StatusCode::UNAUTHORIZED, false));
            }
        }
    }
    let (headers, problem) = refused.expect("16 attempts exceed the limit of 10");
    assert_eq!(problem["code"], "too_many_attempts");
    assert_eq!(headers["ratelimit-policy"], "\"login-pair\";q=10;w=300");
    assert!(headers["ratelimit"].to_str().expect("text").starts_with("\"login-pair\";r=0;t="));
    assert!(headers["retry-after"].to_str().expect("text").parse::<u64>().expect("seconds") > 0);
    // Her correct password waits too; others sign in.
    assert_eq!(here.log_in("ann@example.org", PASSWORD).await.0, StatusCode::TOO_MANY_REQUESTS);
    register_and_log_in(&world, "ben@example.org").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replica_limits_logins_locally_without_redis() {
    let world = World::start(1, &[]).await;
    register_and_log_in(&world, "ann@example.org").await;
    let mut eve = Browser::new(&world);
    // Her bucket in Redis holds an invalid value, which counts as no answer.
    for _ in 0..10 {
        assert_eq!(eve.log_in("ann@example.org", "a guess at it").await.0, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(eve.log_in("ann@example.org", "a guess at it").await.0, StatusCode::TOO_MANY_REQUESTS);
    let mut redis = world.redis().await;
    let keys = world.redis_keys("throttle:*").await;
    assert!(!keys.is_empty() && keys.iter().all(|key| !key.contains("ann")), "no address in {keys:?}");
    for key in &keys {
        redis::cmd("DEL").arg(key).query_async::<()>(&mut redis).await.expect("deleted");
        redis::cmd("LPUSH").arg(key).arg("no number").query_async::<()>(&mut redis).await.expect("written");
    }
    let mut statuses = Vec::new();
    for _ in 0..12 {
        statuses.push(eve.log_in("ann@example.org", "a guess at it").await.0);
    }
    assert_eq!(statuses.iter().filter(|status| **status == StatusCode::UNAUTHORIZED).count(), 10, "{statuses:?}");
    assert_eq!(statuses.last(), Some(&StatusCode::TOO_MANY_REQUESTS));
}

#[tokio::test(flavor = "multi_thread")]
async fn cross_site_requests_do_not_sign_in_or_out() {
    let (_world, mut ann) = world_with_ann().await;
    let login = json!({ "email": "ann@example.org", "password": PASSWORD });
    for path in ["/api/v1/users/login", "/api/v1/users/logout", "/api/v1/users/logout-everywhere"] {
        for header in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
            let (status, _, problem) = ann.send_with(Method::POST, path, &login, &[header]).await;
            assert_eq!((status, text(&problem["code"])), (StatusCode::FORBIDDEN, "foreign_origin"), "{path}");
        }
    }
    let forms = ["/login", "/register", "/reset", "/account/password", "/account/logout", "/account/logout-everywhere"];
    for path in forms {
        let request = ann.visitor().request(Method::POST, path).header("origin", "https://evil.example");
        let answer = RawAnswer::of(form(request, &[("email", "a@b.cd")])).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(ann.me().await.0, StatusCode::OK);
}

async fn with_token(world: &World, method: Method, path: &str, body: Value, token: &str) -> (StatusCode, Value) {
    let key = new_id().to_string();
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
    let (world, mut ann) = world_with_ann().await;
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
    let bought = laptop.visitor().buy_seats(&[5], "tok_paid").await;
    world.wait_for_empty_outbox().await;
    // The other replica caches the session for a few seconds for requests on seats.
    let elsewhere = laptop.moved_to(&world, other).visitor();
    expect_answer(elsewhere.hold(&[7]).await, StatusCode::CREATED);
    assert_eq!(phone.post("/api/v1/users/logout-everywhere", Value::Null).await.0, StatusCode::NO_CONTENT);
    // 404 when the cached session has expired meanwhile.
    let (status, refusal) = elsewhere.cancel(&bought, None).await;
    assert!([StatusCode::UNAUTHORIZED, StatusCode::NOT_FOUND].contains(&status), "{refusal}");
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
    let (world, mut ann) = world_with_ann().await;
    let (first, second) = (ann.token("ann@example.org").await, ann.token("ann@example.org").await);
    assert_ne!(first, second);
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    let held = with_token(&world, Method::POST, &holds, json!({ "seats": [4] }), &first).await;
    let hold = expect_answer(held, StatusCode::CREATED);
    // A renewed token is the same visitor.
    let buyer = json!({ "name": "Ann", "email": "ann@example.org" });
    let request_body = json!({ "show": world.show, "hold": hold["id"], "buyer": buyer });
    let booked = with_token(&world, Method::POST, "/api/v1/bookings", request_body, &second).await;
    let booking = expect_answer(booked, StatusCode::CREATED);
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
    assert_eq!(current_user(&world, &first).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(current_user(&world, &second).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_expired_and_foreign_tokens_are_rejected() {
    use hmac::{Hmac, KeyInit, Mac};
    let (world, mut ann) = world_with_ann().await;
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
    assert_eq!(current_user(&world, &signed(&usual, &claims, TOKEN_SECRET)).await.0, StatusCode::OK, "it is accepted");
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
        changed("sid", json!(new_id())),
        // Ann's session with the id of another account.
        changed("sub", json!(new_id())),
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
    let browser = sqlx::query_scalar::<_, Uuid>("SELECT id FROM sessions WHERE kind = 'browser'");
    let browser = browser.fetch_one(&world.pg).await.expect("her session");
    assert_eq!(current_user(&world, &changed("sid", json!(browser))).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_with_a_short_token_secret_does_not_start() {
    let world = World::start(0, &[("TOKEN_SECRET", "short"), ("LISTEN", "127.0.0.1:0")]).await;
    let (good, said) = world.command(&["serve"]).await;
    assert!(!good && said.contains("TOKEN_SECRET") && !said.contains("short\""), "{said}");
}

/// Concurrent logins: far more than may queue for a core.
const CONCURRENT_LOGINS: usize = 120;
/// Seats held and released meanwhile.
const HOLDS: u32 = 40;

#[tokio::test(flavor = "multi_thread")]
async fn holds_are_granted_while_logins_are_shed() {
    // Behind a proxy every request has its own address, so the limit per address does not apply.
    let world = World::start(1, &[("TRUSTED_PROXIES", "1")]).await;
    let mut ann = register_and_log_in(&world, "ann@example.org").await;
    let (over, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let flood: Vec<_> = (0..CONCURRENT_LOGINS)
        .map(|number| {
            let (mut eve, over, refused) = (Browser::new(&world), Arc::clone(&over), Arc::clone(&refused));
            tokio::spawn(async move {
                let mut tried = 0_u32;
                while !over.load(Ordering::Relaxed) {
                    let body = json!({ "email": format!("{number}-{tried}@example.org"), "password": PASSWORD });
                    let address = format!("10.{}.{}.{}", number, tried / 250, tried % 250);
                    let header = [("x-forwarded-for", &*address)];
                    let (status, headers, problem) =
                        eve.send_with(Method::POST, "/api/v1/users/login", &body, &header).await;
                    match status {
                        StatusCode::UNAUTHORIZED => {}
                        StatusCode::SERVICE_UNAVAILABLE => {
                            assert_eq!(problem["code"], "overloaded");
                            assert!(headers.contains_key("retry-after"));
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                        other => panic!("a login in a flood is answered {other}: {problem}"),
                    }
                    tried += 1;
                }
            })
        })
        .collect();
    // Guests and signed-in users keep choosing seats.
    let guest = world.visitor();
    let signed_in = ann.visitor();
    for seat in 0..HOLDS {
        for (visitor, seat) in [(&guest, seat), (&signed_in, 100 + seat)] {
            let (status, hold) = visitor.hold(&[seat]).await;
            assert_eq!(status, StatusCode::CREATED, "seat {seat}: {hold}");
            assert_eq!(visitor.release_hold(&hold).await, StatusCode::NO_CONTENT);
        }
    }
    assert_eq!(text(&ann.me().await.1["email"]), "ann@example.org");
    wait_until("the login queue is full and answers 503", || async { refused.load(Ordering::Relaxed) > 0 }).await;
    over.store(true, Ordering::Relaxed);
    for one in flood {
        one.await.expect("every login in the flood got an expected answer");
    }
    assert_eq!(Browser::new(&world).log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_logins_lock_out_neither_other_networks_nor_known_browsers() {
    let world = World::start(1, &[("TRUSTED_PROXIES", "1")]).await;
    let mut ann = register_and_log_in(&world, "ann@example.org").await;
    world.execute("UPDATE accounts SET email_proven_at = now()").await;
    assert_eq!(ann.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    assert_eq!(ann.post("/api/v1/users/logout", Value::Null).await.0, StatusCode::NO_CONTENT);
    let try_from = async |address: &str, password: &str| {
        let body = json!({ "email": "ann@example.org", "password": password });
        let header = [("x-forwarded-for", address)];
        Browser::new(&world).send_with(Method::POST, "/api/v1/users/login", &body, &header).await
    };
    let mut guesses = 0;
    while try_from(&format!("2001:db8:1:{guesses:x}::1"), "a guess at it").await.0 != StatusCode::TOO_MANY_REQUESTS {
        guesses += 1;
        assert!(guesses < 30, "the limit per network is reached");
    }
    assert_eq!(try_from("2001:db8:1:ff::1", PASSWORD).await.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(try_from("198.51.100.1", PASSWORD).await.0, StatusCode::OK);
    // Failed logins from many networks reach the limit per account.
    let mut policy = None;
    for number in 0..40_u32 {
        for _ in 0..9 {
            let (status, headers, _) = try_from(&format!("10.0.{number}.1"), "a guess at it").await;
            if status == StatusCode::TOO_MANY_REQUESTS {
                policy = Some(headers["ratelimit-policy"].clone());
            }
        }
        if policy.is_some() {
            break;
        }
    }
    assert_eq!(policy.expect("360 are more than a hundred"), "\"login-person\";q=100;w=3000");
    // The browser in which she signed in before has its own limit.
    assert_eq!(ann.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn login_limit_per_address_holds_whatever_account_is_tried() {
    let world = World::start(1, &[]).await;
    let tries = (0..100_u32).map(|number| {
        let mut eve = Browser::new(&world);
        async move {
            // Without trusted proxies the header is ignored.
            let header = format!("10.0.0.{number}");
            let body = json!({ "email": format!("{number}@example.org"), "password": "a guess at it" });
            eve.send_with(Method::POST, "/api/v1/users/login", &body, &[("x-forwarded-for", &header)]).await
        }
    });
    let policy = join_all(tries).await;
    let refused: Vec<_> = policy.iter().filter(|(status, ..)| *status == StatusCode::TOO_MANY_REQUESTS).collect();
    assert!(!refused.is_empty(), "100 logins exceed the limit of 60");
    assert!(refused.iter().all(|(_, headers, _)| headers["ratelimit-policy"] == "\"login-address\";q=60;w=60"));
    assert_eq!(world.visitor().hold(&[1]).await.0, StatusCode::CREATED);
}
