//! Another password: by the old one, or by a link in a mail.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Browser, PASSWORD, link_mailed, mails_about, signed_up};
use crate::world::{World, text, until};

const ANOTHER: &str = "another good password";

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_password_ends_every_other_session_and_gives_this_one_a_new_cookie() {
    let world = World::start(1, &[]).await;
    let mut ann = signed_up(&world, "ann@example.org").await;
    let mut laptop = Browser::new(&world);
    laptop.log_in("ann@example.org", PASSWORD).await;
    let token = laptop.token("ann@example.org").await;
    laptop.post("/api/v1/users/password/forgotten", json!({ "email": "ann@example.org" })).await;
    let link = link_mailed(&world, "A new password", "ann@example.org").await;
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
    assert_eq!(ann.visitor().get(&own).await.1["id"], held["id"], "what she holds is hers still");
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
    assert_eq!(status, StatusCode::GONE, "a link from before opens nothing");
    until("she is told", || async { mails_about(&world, "Your password was changed").len() == 1 }).await;
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'password_changed'").await, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_a_mail_sets_a_password_once_and_ends_every_session() {
    let world = World::start(1, &[]).await;
    let mut ann = signed_up(&world, "ann@example.org").await;
    let mut lost = Browser::new(&world);
    let forgotten = "/api/v1/users/password/forgotten";
    let (known, unknown) = (
        lost.post(forgotten, json!({ "email": "Ann@example.org" })).await,
        lost.post(forgotten, json!({ "email": "nobody@example.org" })).await,
    );
    assert_eq!((known.0, unknown.0), (StatusCode::ACCEPTED, StatusCode::ACCEPTED));
    assert_eq!((&known.1["next"], &unknown.1["next"]), (&json!("READ_MAIL"), &json!("READ_MAIL")));
    let token = link_mailed(&world, "A new password", "ann@example.org").await;
    until("no mail waits", || async { world.count("SELECT count(*) FROM account_mails").await == 0 }).await;
    assert!(world.mails().iter().all(|mail| !mail.contains("nobody@example.org")), "nobody has no account");
    let kept = world.count("SELECT count(*) FROM account_links WHERE octet_length(token_hash) = 32").await;
    assert_eq!((token.len(), kept), (64, 2), "the other is of the registration");

    let reset = "/api/v1/users/password/reset";
    let (status, problem) = lost.post(reset, json!({ "token": token, "password": "short" })).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "password_unusable"));
    for odd in ["", "0", &"0a".repeat(32), "\u{0}"] {
        let (status, problem) = lost.post(reset, json!({ "token": odd, "password": ANOTHER })).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::GONE, "link_invalid"), "{odd:?}");
    }
    let body = json!({ "token": token, "password": ANOTHER });
    let key = [("idempotency-key", "one-intent")];
    let first = lost.send_with(Method::POST, reset, &body, &key).await;
    let again = lost.send_with(Method::POST, reset, &body, &key).await;
    assert_eq!((first.0, again.0), (StatusCode::NO_CONTENT, StatusCode::NO_CONTENT), "a lost answer is given again");
    let (status, problem) = lost.post(reset, body).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::GONE, "link_invalid"), "and the link is used");
    assert_eq!(ann.me().await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(lost.log_in("ann@example.org", PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    let (status, me) = lost.log_in("ann@example.org", ANOTHER).await;
    assert_eq!((status, &me["email_proven"]), (StatusCode::OK, &json!(true)), "reading the mail shows whose it is");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_good_for_an_hour_the_last_use_voids_the_others_and_two_at_once_are_one() {
    let world = World::start(1, &[]).await;
    signed_up(&world, "ann@example.org").await;
    let mut lost = Browser::new(&world);
    let forgotten = json!({ "email": "ann@example.org" });
    let mut tokens = Vec::new();
    for number in 1..=3 {
        lost.post("/api/v1/users/password/forgotten", forgotten.clone()).await;
        until("it is mailed", || async { mails_about(&world, "A new password").len() == number }).await;
        for mail in mails_about(&world, "A new password") {
            let token: String = mail.split_once("?token=").expect("a link").1.chars().take(64).collect();
            if !tokens.contains(&token) {
                tokens.push(token);
            }
        }
    }
    let stale = "UPDATE account_links SET expires_at = now() - interval '1 second'
                 WHERE token_hash = (SELECT token_hash FROM account_links WHERE purpose = 'reset' ORDER BY created_at LIMIT 1)";
    sqlx::query(stale).execute(&world.pg).await.expect("it is written");
    let set = |token: &str| {
        let (mut browser, body) = (Browser::new(&world), json!({ "token": token, "password": ANOTHER }));
        async move { browser.post("/api/v1/users/password/reset", body).await.0 }
    };
    assert_eq!(set(&tokens[0]).await, StatusCode::GONE, "an hour is over");
    let both = tokio::join!(set(&tokens[1]), set(&tokens[1]));
    let mut both = [both.0, both.1];
    both.sort();
    assert_eq!(both, [StatusCode::NO_CONTENT, StatusCode::GONE]);
    assert_eq!(set(&tokens[2]).await, StatusCode::GONE, "it was void by then");
    // Her mailbox is not flooded, whoever asks.
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let body = json!({ "email": "ann@example.org" });
        statuses.push(Browser::new(&world).post("/api/v1/users/password/forgotten", body).await.0);
    }
    assert_eq!(statuses.last(), Some(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_opens_the_door_to_whom_somebody_elses_guesses_had_shut_out() {
    let world = World::start(1, &[]).await;
    signed_up(&world, "ann@example.org").await;
    let mut eve = Browser::new(&world);
    while eve.log_in("ann@example.org", "a guess at it").await.0 != StatusCode::TOO_MANY_REQUESTS {}
    let mut ann = Browser::new(&world);
    ann.post("/api/v1/users/password/forgotten", json!({ "email": "ann@example.org" })).await;
    let token = link_mailed(&world, "A new password", "ann@example.org").await;
    let (status, _) = ann.post("/api/v1/users/password/reset", json!({ "token": token, "password": ANOTHER })).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(ann.log_in("ann@example.org", ANOTHER).await.0, StatusCode::OK);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_cannot_be_read_keeps_no_other_back() {
    let world = World::start(1, &[]).await;
    signed_up(&world, "ann@example.org").await;
    let odd = "ALTER TABLE account_mails DROP CONSTRAINT account_mails_kind_check";
    sqlx::query(odd).execute(&world.pg).await.expect("any kind can be written");
    let odd = "INSERT INTO account_mails (id, kind, email, run_after, tries, created_at)
               SELECT gen_random_uuid(), 'of another time', 'ann@example.org', '2020-01-01', n, now()
               FROM generate_series(20, 29) AS n";
    sqlx::query(odd).execute(&world.pg).await.expect("they are written");
    let mut ann = Browser::new(&world);
    ann.post("/api/v1/users/password/forgotten", json!({ "email": "ann@example.org" })).await;
    link_mailed(&world, "A new password", "ann@example.org").await;
    let given_up = "SELECT count(*) FROM account_mails WHERE tries >= 30";
    until("one that was tried too often is given up", || async {
        world.count("SELECT count(*) FROM account_mails").await < 10 && world.count(given_up).await == 0
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_proven_by_its_mail_and_a_session_of_the_account_together() {
    let world = World::start(1, &[]).await;
    let mut ann = signed_up(&world, "ann@example.org").await;
    let mut eve = signed_up(&world, "eve@example.org").await;
    let token = link_mailed(&world, "Please confirm your address", "ann@example.org").await;
    let proof = "/api/v1/users/me/email/proof";
    let body = json!({ "token": token });
    assert_eq!(Browser::new(&world).post(proof, body.clone()).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(eve.post(proof, body.clone()).await.0, StatusCode::GONE, "another account's session proves nothing");
    let reset = json!({ "token": token, "password": ANOTHER });
    assert_eq!(eve.post("/api/v1/users/password/reset", reset).await.0, StatusCode::GONE, "nor is it a link for that");
    let (status, me) = ann.post(proof, body.clone()).await;
    assert_eq!((status, &me["email_proven"]), (StatusCode::OK, &json!(true)));
    assert_eq!(ann.post(proof, body).await.0, StatusCode::GONE);
    // The mail is sent again to those who lost it, a few times.
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(eve.post("/api/v1/users/me/email/link", Value::Null).await.0);
    }
    assert_eq!((statuses[0], statuses[4]), (StatusCode::ACCEPTED, StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
    world.end().await;
}
