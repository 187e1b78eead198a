//! Password change with the old password, and password reset by a mailed link.

use super::{mails_about, wait_for_mailed_token, world_with_ann};
use crate::prelude::*;

const ANOTHER: &str = "another good password";

#[tokio::test(flavor = "multi_thread")]
async fn password_change_ends_other_sessions_and_renews_the_cookie() {
    let (world, mut ann) = world_with_ann().await;
    let mut laptop = Browser::new(&world);
    laptop.log_in("ann@example.org", PASSWORD).await;
    let token = laptop.token("ann@example.org").await;
    laptop.post("/api/v1/users/password/forgotten", json!({ "email": "ann@example.org" })).await;
    let link = wait_for_mailed_token(&world, "A new password", "ann@example.org").await;
    let before = ann.clone();
    let (_, held) = ann.visitor().hold(&[3]).await;
    let path = "/api/v1/users/me/password";
    for (current, new, expected) in [
        ("not her password", ANOTHER, (StatusCode::UNAUTHORIZED, "login_failed")),
        (PASSWORD, "short", (StatusCode::BAD_REQUEST, "password_unusable")),
        (PASSWORD, &*"x".repeat(257), (StatusCode::BAD_REQUEST, "password_unusable")),
    ] {
        let (status, problem) = ann.post(path, json!({ "current": current, "new": new })).await;
        assert_eq!((status, text(&problem["code"])), expected);
    }
    assert_eq!(Browser::new(&world).post(path, json!({})).await.0, StatusCode::UNAUTHORIZED);
    let (status, answer) = ann.post(path, json!({ "current": PASSWORD, "new": ANOTHER })).await;
    assert_eq!((status, text(&answer["email"])), (StatusCode::OK, "ann@example.org"));
    assert_eq!(ann.me().await.0, StatusCode::OK);
    let own = format!("/api/v1/shows/{}/hold", world.show);
    assert_eq!(ann.visitor().get(&own).await.1["id"], held["id"], "her hold is kept");
    for mut over in [before, laptop] {
        assert_eq!(over.me().await.0, StatusCode::UNAUTHORIZED);
    }
    let headers = [("authorization", &*format!("Bearer {token}"))];
    let (status, ..) = Browser::new(&world).send_with(Method::GET, "/api/v1/users/me", &Value::Null, &headers).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let mut anew = Browser::new(&world);
    assert_eq!(anew.log_in("ann@example.org", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(anew.log_in("ann@example.org", ANOTHER).await.0, StatusCode::OK);
    let (status, _) = anew.post("/api/v1/users/password/reset", json!({ "token": link, "password": PASSWORD })).await;
    assert_eq!(status, StatusCode::GONE, "an older reset link is void");
    wait_until("the change is mailed", || async { mails_about(&world, "Your password was changed").len() == 1 }).await;
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'password_changed'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn reset_link_works_once_and_ends_every_session() {
    let (world, mut ann) = world_with_ann().await;
    let mut lost = Browser::new(&world);
    let forgotten = "/api/v1/users/password/forgotten";
    let (known, unknown) = (
        lost.post(forgotten, json!({ "email": "Ann@example.org" })).await,
        lost.post(forgotten, json!({ "email": "unknown@example.org" })).await,
    );
    assert_eq!((known.0, unknown.0), (StatusCode::ACCEPTED, StatusCode::ACCEPTED));
    assert_eq!((&known.1["next"], &unknown.1["next"]), (&json!("READ_MAIL"), &json!("READ_MAIL")));
    let token = wait_for_mailed_token(&world, "A new password", "ann@example.org").await;
    world.wait_for_count("no mail waits", "SELECT count(*) FROM account_mails", 0).await;
    assert!(world.mails().iter().all(|mail| !mail.contains("unknown@example.org")), "none to an unknown address");
    let kept = world.count("SELECT count(*) FROM account_links WHERE octet_length(token_hash) = 32").await;
    assert_eq!((token.len(), kept), (64, 2), "the other link is the registration's");

    let reset = "/api/v1/users/password/reset";
    let answer = lost.post(reset, json!({ "token": token, "password": "short" })).await;
    expect_problem(answer, StatusCode::BAD_REQUEST, "password_unusable");
    for odd in ["", "0", &"0a".repeat(32), "\u{0}"] {
        let (status, problem) = lost.post(reset, json!({ "token": odd, "password": ANOTHER })).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::GONE, "link_invalid"), "{odd:?}");
    }
    let body = json!({ "token": token, "password": ANOTHER });
    let key = [("idempotency-key", "one-intent")];
    let first = lost.send_with(Method::POST, reset, &body, &key).await;
    let again = lost.send_with(Method::POST, reset, &body, &key).await;
    assert_eq!((first.0, again.0), (StatusCode::NO_CONTENT, StatusCode::NO_CONTENT), "the key is replayed");
    let (status, problem) = lost.post(reset, body).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::GONE, "link_invalid"), "the link is used up");
    assert_eq!(ann.me().await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(lost.log_in("ann@example.org", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    let (status, me) = lost.log_in("ann@example.org", ANOTHER).await;
    assert_eq!((status, &me["email_proven"]), (StatusCode::OK, &json!(true)), "a reset proves the address");
}

#[tokio::test(flavor = "multi_thread")]
async fn reset_links_expire_after_an_hour_and_one_use_voids_all() {
    let world = World::start(1, &[]).await;
    register_and_log_in(&world, "ann@example.org").await;
    let mut lost = Browser::new(&world);
    let forgotten = json!({ "email": "ann@example.org" });
    let mut tokens = Vec::new();
    for number in 1..=3 {
        lost.post("/api/v1/users/password/forgotten", forgotten.clone()).await;
        wait_until("the link is mailed", || async { mails_about(&world, "A new password").len() == number }).await;
        for mail in mails_about(&world, "A new password") {
            let token: String = mail.split_once("?token=").expect("a link").1.chars().take(64).collect();
            if !tokens.contains(&token) {
                tokens.push(token);
            }
        }
    }
    let stale = "UPDATE account_links SET expires_at = now() - interval '1 second'
                 WHERE token_hash = (SELECT token_hash FROM account_links WHERE purpose = 'reset' ORDER BY created_at LIMIT 1)";
    world.execute(stale).await;
    let set = |token: &str| {
        let (mut browser, body) = (Browser::new(&world), json!({ "token": token, "password": ANOTHER }));
        async move { browser.post("/api/v1/users/password/reset", body).await.0 }
    };
    assert_eq!(set(&tokens[0]).await, StatusCode::GONE, "the link has expired");
    let both = tokio::join!(set(&tokens[1]), set(&tokens[1]));
    let mut both = [both.0, both.1];
    both.sort();
    assert_eq!(both, [StatusCode::NO_CONTENT, StatusCode::GONE]);
    assert_eq!(set(&tokens[2]).await, StatusCode::GONE, "the use voided the other link");
    // Reset mails to one address are limited across browsers.
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let body = json!({ "email": "ann@example.org" });
        statuses.push(Browser::new(&world).post("/api/v1/users/password/forgotten", body).await.0);
    }
    assert_eq!(statuses.last(), Some(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
}

/// Sends a request from this network address, behind a trusted proxy. Returns the status and the policy of a limit.
async fn post_from(world: &World, address: &str, (path, body): &(&str, Value)) -> (StatusCode, String) {
    let key = new_id().to_string();
    let headers = [("idempotency-key", key.as_str()), ("x-forwarded-for", address)];
    let (status, headers, _) = Browser::new(world).send_with(Method::POST, path, body, &headers).await;
    let policy = headers.get("ratelimit-policy").map(|policy| policy.to_str().expect("text").to_owned());
    (status, policy.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_network_keep_no_person_elsewhere_from_account_mails() {
    let world = World::start(1, &[("TRUSTED_PROXIES", "1")]).await;
    let account = json!({ "name": "Ann Example", "email": "ann@example.org", "password": PASSWORD });
    let register = ("/api/v1/users/register", account);
    let forgotten = ("/api/v1/users/password/forgotten", json!({ "email": "ann@example.org" }));
    for (household, request) in [&register, &register, &forgotten, &forgotten].into_iter().enumerate() {
        let (status, _) = post_from(&world, &format!("2001:db8:1:{household}::1"), request).await;
        assert!(status.is_success(), "{status}");
    }
    let limited = |policy: &str| (StatusCode::TOO_MANY_REQUESTS, policy.to_owned());
    for _ in 0..15 {
        let refusal = post_from(&world, "2001:db8:1:7::1", &forgotten).await;
        assert_eq!(refusal, limited("\"mail-pair\";q=4;w=1200"));
    }
    // The limit per person is that of four networks.
    for network in 2..5 {
        for _ in 0..4 {
            let (status, _) = post_from(&world, &format!("2001:db8:{network}::1"), &forgotten).await;
            assert_eq!(status, StatusCode::ACCEPTED, "network {network}");
        }
    }
    let refusal = post_from(&world, "2001:db8:5::1", &forgotten).await;
    assert_eq!(refusal, limited("\"mail-person\";q=16;w=1200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_tried_from_one_network_are_limited_as_those_of_sixteen_addresses() {
    let world = World::start(1, &[("TRUSTED_PROXIES", "1")]).await;
    let reset = ("/api/v1/users/password/reset", json!({ "token": "a guess at it", "password": "short" }));
    let mut policies = Vec::new();
    for household in 0..20 {
        let address = format!("2001:db8:1:{household:x}::1");
        let answers = join_all((0..20).map(|_| post_from(&world, &address, &reset))).await;
        let limited = answers.into_iter().filter(|(status, _)| *status == StatusCode::TOO_MANY_REQUESTS);
        policies.extend(limited.map(|(_, policy)| policy));
    }
    assert!(!policies.is_empty(), "400 requests exceed the limit of 320");
    assert!(policies.iter().all(|policy| policy == "\"mail-network\";q=320;w=600"), "{policies:?}");
    let (status, _) = post_from(&world, "2001:db8:2::1", &reset).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "another network");
}

#[tokio::test(flavor = "multi_thread")]
async fn password_reset_lifts_the_login_lockout() {
    let world = World::start(1, &[]).await;
    register_and_log_in(&world, "ann@example.org").await;
    let mut eve = Browser::new(&world);
    while eve.log_in("ann@example.org", "a guess at it").await.0 != StatusCode::TOO_MANY_REQUESTS {}
    let mut ann = Browser::new(&world);
    ann.post("/api/v1/users/password/forgotten", json!({ "email": "ann@example.org" })).await;
    let token = wait_for_mailed_token(&world, "A new password", "ann@example.org").await;
    let answer = ann.post("/api/v1/users/password/reset", json!({ "token": token, "password": ANOTHER })).await;
    assert_eq!(answer.0, StatusCode::NO_CONTENT);
    assert_eq!(ann.log_in("ann@example.org", ANOTHER).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_account_mail_does_not_block_other_mails() {
    let world = World::start(1, &[]).await;
    register_and_log_in(&world, "ann@example.org").await;
    let odd = "ALTER TABLE account_mails DROP CONSTRAINT account_mails_kind_check";
    world.execute(odd).await;
    let odd = "INSERT INTO account_mails (id, kind, email, run_after, tries, created_at)
               SELECT gen_random_uuid(), 'of another time', 'ann@example.org', '2020-01-01', n, now()
               FROM generate_series(20, 29) AS n";
    world.execute(odd).await;
    let mut ann = Browser::new(&world);
    ann.post("/api/v1/users/password/forgotten", json!({ "email": "ann@example.org" })).await;
    wait_for_mailed_token(&world, "A new password", "ann@example.org").await;
    let given_up = "SELECT count(*) FROM account_mails WHERE tries >= 30";
    wait_until("a mail is dropped after too many attempts", || async {
        world.count("SELECT count(*) FROM account_mails").await < 10 && world.count(given_up).await == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn address_proof_needs_the_mailed_link_and_a_session_of_the_account() {
    let (world, mut ann) = world_with_ann().await;
    let mut eve = register_and_log_in(&world, "eve@example.org").await;
    let token = wait_for_mailed_token(&world, "Please confirm your address", "ann@example.org").await;
    let proof = "/api/v1/users/me/email/proof";
    let body = json!({ "token": token });
    assert_eq!(Browser::new(&world).post(proof, body.clone()).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(eve.post(proof, body.clone()).await.0, StatusCode::GONE, "the link needs a session of the same account");
    let reset = json!({ "token": token, "password": ANOTHER });
    assert_eq!(eve.post("/api/v1/users/password/reset", reset).await.0, StatusCode::GONE, "it resets no password");
    let (status, me) = ann.post(proof, body.clone()).await;
    assert_eq!((status, &me["email_proven"]), (StatusCode::OK, &json!(true)));
    assert_eq!(ann.post(proof, body).await.0, StatusCode::GONE);
    // The mail can be requested again, a few times.
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(eve.post("/api/v1/users/me/email/link", Value::Null).await.0);
    }
    assert_eq!((statuses[0], statuses[4]), (StatusCode::ACCEPTED, StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
}
