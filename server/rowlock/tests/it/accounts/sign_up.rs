//! Registration and login: success, refusals, and answers that reveal no account.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Browser, PASSWORD, form, mails_about, register_and_log_in};
use crate::hanging_mail_server::HangingMailServer;
use crate::world::{World, expect_problem, text, wait_until};

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
    assert_eq!(
        ann.post("/api/v1/users/logout", Value::Null).await.0,
        StatusCode::NO_CONTENT,
        "a second logout changes nothing"
    );
    let kept = sqlx::query_scalar::<_, String>("SELECT password_hash FROM accounts").fetch_one(&world.pg).await;
    assert!(kept.expect("a hash").starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
}

#[tokio::test(flavor = "multi_thread")]
async fn registering_a_known_address_gets_the_same_answer_and_mails_its_owner() {
    let world = World::start(1, &[]).await;
    let mut ann = register_and_log_in(&world, "ann@example.org").await;
    let mut eve = Browser::new(&world);
    let known = eve.register("ANN@example.org", "another password").await;
    let new = eve.register("new@example.org", "another password").await;
    assert_eq!((known.0, new.0), (StatusCode::CREATED, StatusCode::CREATED));
    let shape = |answer: &Value| answer.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(shape(&known.1), shape(&new.1));
    assert_eq!(known.1["next"], new.1["next"]);
    wait_until("its owner gets a mail", || async { mails_about(&world, "You have an account already").len() == 1 })
        .await;
    assert!(mails_about(&world, "You have an account already")[0].contains("ann@example.org"));
    assert_eq!(world.count("SELECT count(*) FROM accounts").await, 2);
    // Nothing of her account has changed.
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
    let pattern = format!("{}throttle:*", world.setting("REDIS_PREFIX"));
    let keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut redis).await.expect("keys");
    assert!(
        !keys.is_empty() && keys.iter().all(|key| !key.contains("ann")),
        "bucket keys contain no address: {keys:?}"
    );
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
    let world = World::start(1, &[]).await;
    let mut ann = register_and_log_in(&world, "ann@example.org").await;
    let login = json!({ "email": "ann@example.org", "password": PASSWORD });
    for path in ["/api/v1/users/login", "/api/v1/users/logout", "/api/v1/users/logout-everywhere"] {
        for header in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
            let (status, _, problem) = ann.send_with(Method::POST, path, &login, &[header]).await;
            assert_eq!((status, text(&problem["code"])), (StatusCode::FORBIDDEN, "foreign_origin"), "{path}");
        }
    }
    let forms = ["/login", "/register", "/reset", "/account/password", "/account/logout", "/account/logout-everywhere"];
    for path in forms {
        let visitor = ann.visitor();
        let request = visitor.client.post(format!("{}{path}", visitor.base)).header("cookie", &visitor.cookie);
        let request = form(request.header("origin", "https://evil.example"), &[("email", "a@b.cd")]);
        assert_eq!(request.send().await.expect("an answer").status(), StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(ann.me().await.0, StatusCode::OK);
}
