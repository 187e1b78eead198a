//! E-mail codes before checkout: requested, mailed, entered, and exempt accounts.

use crate::accounts::{mails_about, register_proven};
use crate::organiser::{API, organiser, post_ok};
use crate::prelude::*;

/// Address of the buyers in these tests ([`Visitor::book`]).
const EMAIL: &str = "ann@example.org";

/// A world whose show requires codes. Set before the show is loaded.
async fn world_with_codes(servers: usize) -> World {
    let world = World::start(servers, &[]).await;
    world.execute("UPDATE shows SET email_code = true").await;
    world
}

async fn request_code(visitor: &Visitor, email: &str) -> (StatusCode, Value) {
    let path = format!("/api/v1/shows/{}/email-code", visitor.show);
    visitor.call(Method::POST, &path, json!({ "email": email })).await
}

/// Requests a code as a new visitor from this network address, behind a trusted proxy.
async fn request_code_from(world: &World, email: &str, from: &str) -> reqwest::Response {
    let path = format!("/api/v1/shows/{}/email-code", world.show);
    let request = world.visitor().request(Method::POST, &path).header("x-forwarded-for", from);
    let request = request.header("idempotency-key", new_id().to_string());
    request.json(&json!({ "email": email })).send().await.expect("the server answers")
}

async fn enter_code(visitor: &Visitor, email: &str, code: &str) -> (StatusCode, Value) {
    let path = format!("/api/v1/shows/{}/email-code/proof", visitor.show);
    visitor.call(Method::POST, &path, json!({ "email": email, "code": code })).await
}

fn codes(world: &World, email: &str) -> Vec<String> {
    let mails = mails_about(world, "Your code for checkout").into_iter().filter(|mail| mail.contains(email));
    let code = |mail: String| {
        let line = mail.lines().map(str::trim).find(|line| line.len() == 6 && line.bytes().all(|b| b.is_ascii_digit()));
        line.expect("a line with the code").to_owned()
    };
    mails.map(code).collect()
}

async fn request_and_read_code(world: &World, visitor: &Visitor, email: &str) -> String {
    let before = codes(world, email);
    let (status, answer) = request_code(visitor, email).await;
    assert_eq!((status, &answer["email"]), (StatusCode::ACCEPTED, &json!(email)), "{answer}");
    wait_until("the code is mailed", || async { codes(world, email).len() > before.len() }).await;
    codes(world, email).into_iter().find(|code| !before.contains(code)).expect("another code")
}

fn different_code(code: &str, by: u32) -> String {
    format!("{:06}", (code.parse::<u32>().expect("a number") + by) % 1_000_000)
}

async fn assert_code_required(visitor: &Visitor, hold: &Value) {
    expect_problem(visitor.book(hold).await, StatusCode::FORBIDDEN, "email_code_wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn guest_proves_the_address_and_a_wrong_code_keeps_the_hold() {
    let world = world_with_codes(2).await;
    let (ann, eve) = (world.visitor(), world.visitor());
    let (_, hold) = ann.hold(&[1]).await;
    let (_, hers) = eve.hold(&[2]).await;
    assert_code_required(&ann, &hold).await;
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 0);
    assert_eq!(enter_code(&ann, EMAIL, "000000").await.1["code"], "email_code_over", "no code was requested");
    let code = request_and_read_code(&world, &ann, EMAIL).await;
    let kept = format!("SELECT count(*) FROM email_codes WHERE email_codes::text LIKE '%{code}%'");
    let kept: i64 = world.value(sqlx::query_scalar(sqlx::AssertSqlSafe(kept))).await;
    assert_eq!(kept, 0, "no table stores the code");
    for (typed, status, named) in [
        (different_code(&code, 1), StatusCode::UNPROCESSABLE_ENTITY, "email_code_wrong"),
        ("12345".to_owned(), StatusCode::UNPROCESSABLE_ENTITY, "email_code_wrong"),
    ] {
        let (answer, refusal) = enter_code(&ann, EMAIL, &typed).await;
        assert_eq!((answer, text(&refusal["code"])), (status, named), "{typed}");
    }
    assert_code_required(&ann, &hold).await;
    let (_, still) = ann.get(&format!("/api/v1/shows/{}/hold", world.show)).await;
    assert_eq!((&still["id"], &still["expires_at_ms"]), (&hold["id"], &hold["expires_at_ms"]), "the hold is unchanged");
    // Another visitor cannot use the code, and another replica accepts it.
    assert_eq!(enter_code(&eve, EMAIL, &code).await.1["code"], "email_code_over");
    let at_other = ann.moved_to(&world, 1);
    let spaced = format!(" {} {}", &code[..3], &code[3..]);
    expect_answer(enter_code(&at_other, "Ann@example.org ", &spaced).await, StatusCode::OK);
    let booking = expect_answer(ann.book(&hold).await, StatusCode::CREATED);
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    // The proof belongs to this visitor and this address.
    assert_code_required(&eve, &hers).await;
    ann.wait_for_seat(1, '2').await;
    let (_, more) = ann.hold(&[3]).await;
    let buyer = json!({ "name": "Ann Example", "email": "another@example.org" });
    let request_body = json!({ "show": world.show, "hold": more["id"], "buyer": buyer });
    let answer = ann.call(Method::POST, "/api/v1/bookings", request_body).await;
    expect_problem(answer, StatusCode::FORBIDDEN, "email_code_wanted");
    assert_eq!(ann.book(&more).await.0, StatusCode::CREATED);
    let later = "UPDATE email_codes SET proven_at = proven_at - interval '61 minutes'";
    world.execute(later).await;
    let (_, hold) = ann.change(&more, &[4], &[]).await;
    assert_code_required(&ann, &hold).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_attempts_are_the_limit_even_when_concurrent() {
    let world = world_with_codes(2).await;
    let ann = world.visitor();
    let code = request_and_read_code(&world, &ann, EMAIL).await;
    let at_other = ann.moved_to(&world, 1);
    let guesses: Vec<String> = (1..=20).map(|by| different_code(&code, by)).collect();
    let answers = join_all(guesses.iter().enumerate().map(|(number, guess)| {
        let visitor = if number % 2 == 0 { &ann } else { &at_other };
        enter_code(visitor, EMAIL, guess)
    }))
    .await;
    let wrong = answers.iter().filter(|(_, refusal)| refusal["code"] == "email_code_wrong").count();
    let over = answers.iter().filter(|(status, _)| *status == StatusCode::GONE).count();
    assert_eq!((wrong, over), (4, 16), "the fifth attempt is the last: {answers:?}");
    assert_eq!(enter_code(&ann, EMAIL, &code).await.1["code"], "email_code_over", "the correct code is too late");
    let another = request_and_read_code(&world, &ann, EMAIL).await;
    assert_eq!(enter_code(&ann, EMAIL, &another).await.0, StatusCode::OK);
    assert_eq!(enter_code(&ann, EMAIL, &another).await.1["code"], "email_code_over", "the code is used up");
}

#[tokio::test(flavor = "multi_thread")]
async fn correct_code_entered_twice_concurrently_counts_once() {
    let world = world_with_codes(2).await;
    let ann = world.visitor();
    let code = request_and_read_code(&world, &ann, EMAIL).await;
    let at_other = ann.moved_to(&world, 1);
    // Both attempts are counted, and neither can be recorded as correct: that writes a key.
    let mut gate = world.pg.begin().await.expect("a transaction");
    let sql = "LOCK TABLE idempotency_keys IN EXCLUSIVE MODE";
    sqlx::query(sql).execute(&mut *gate).await.expect("keys cannot be written");
    let both_go_on = async {
        world.wait_for_count("both attempts are counted", "SELECT count(*) FROM email_codes WHERE tries = 2", 1).await;
        gate.rollback().await.expect("the lock is released");
    };
    let (one, other, ()) =
        tokio::join!(enter_code(&ann, EMAIL, &code), enter_code(&at_other, EMAIL, &code), both_go_on);
    let mut answer = [one.0, other.0];
    answer.sort();
    assert_eq!(answer, [StatusCode::OK, StatusCode::GONE], "{one:?} {other:?}");
    assert_eq!(world.count("SELECT count(*) FROM email_codes WHERE proven_at IS NOT NULL").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn last_attempt_counts_when_it_is_correct() {
    let world = world_with_codes(1).await;
    let ann = world.visitor();
    let code = request_and_read_code(&world, &ann, EMAIL).await;
    for by in 1..=4 {
        assert_eq!(enter_code(&ann, EMAIL, &different_code(&code, by)).await.1["code"], "email_code_wrong");
    }
    assert_eq!(enter_code(&ann, EMAIL, &code).await.0, StatusCode::OK);
    assert_eq!(enter_code(&ann, EMAIL, &code).await.1["code"], "email_code_over", "the code is used up");
}

#[tokio::test(flavor = "multi_thread")]
async fn code_expires_and_only_the_latest_one_is_valid() {
    let world = world_with_codes(1).await;
    let ann = world.visitor();
    let (first, last) =
        (request_and_read_code(&world, &ann, EMAIL).await, request_and_read_code(&world, &ann, EMAIL).await);
    assert_eq!(enter_code(&ann, EMAIL, &first).await.1["code"], "email_code_wrong");
    let over = "UPDATE email_codes SET expires_at = now() - interval '1 second'";
    world.execute(over).await;
    expect_problem(enter_code(&ann, EMAIL, &last).await, StatusCode::GONE, "email_code_over");
}

#[tokio::test(flavor = "multi_thread")]
async fn code_mails_are_limited_per_visitor_and_per_address() {
    let world = world_with_codes(1).await;
    let ann = world.visitor();
    for _ in 0..4 {
        assert_eq!(request_code(&ann, EMAIL).await.0, StatusCode::ACCEPTED);
    }
    let (status, refusal) = request_code(&ann, "elsewhere@example.org").await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::TOO_MANY_REQUESTS, "too_many_attempts"), "per visitor");
    for _ in 0..2 {
        assert_eq!(request_code(&world.visitor(), EMAIL).await.0, StatusCode::ACCEPTED);
    }
    let cora = world.visitor();
    let request = cora.client.post(format!("{}/api/v1/shows/{}/email-code", cora.base, world.show));
    let request = request.header("idempotency-key", "once-more").json(&json!({ "email": "ANN@example.org" }));
    let answer = RawAnswer::of(request).await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS, "the limit per address");
    assert!(answer.headers.contains_key("retry-after") && answer.header("ratelimit").starts_with("\"code-pair\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_network_keep_no_recipient_elsewhere_from_codes() {
    let world = World::start(1, &[("TRUSTED_PROXIES", "1")]).await;
    world.execute("UPDATE shows SET email_code = true").await;
    for household in 0..6 {
        let answer = request_code_from(&world, EMAIL, &format!("2001:db8:1:{household}::1")).await;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
    }
    for _ in 0..30 {
        let refusal = request_code_from(&world, EMAIL, "2001:db8:1:7::1").await;
        assert_eq!(refusal.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refusal.headers()["ratelimit-policy"], "\"code-pair\";q=6;w=3600");
    }
    // The limit per recipient is that of four networks.
    for network in 2..5 {
        for _ in 0..6 {
            let answer = request_code_from(&world, EMAIL, &format!("2001:db8:{network}::1")).await;
            assert_eq!(answer.status(), StatusCode::ACCEPTED, "network {network}");
        }
    }
    let refusal = request_code_from(&world, EMAIL, "2001:db8:5::1").await;
    assert_eq!(refusal.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refusal.headers()["ratelimit-policy"], "\"code-person\";q=24;w=3600");
}

#[tokio::test(flavor = "multi_thread")]
async fn account_with_a_proven_address_needs_no_code_and_an_unproven_one_does() {
    let world = world_with_codes(1).await;
    for (mut browser, seat, expected) in [
        (register_proven(&world, "pia@example.org").await, 1, StatusCode::CREATED),
        (register_and_log_in(&world, "una@example.org").await, 2, StatusCode::FORBIDDEN),
    ] {
        let (_, hold) = browser.post(&format!("/api/v1/shows/{}/holds", world.show), json!({ "seats": [seat] })).await;
        let buyer = json!({ "name": "Pia Example", "email": "pia@example.org" });
        let request_body = json!({ "show": world.show, "hold": hold["id"], "buyer": buyer });
        let (status, answer) = browser.post("/api/v1/bookings", request_body).await;
        assert_eq!(status, expected, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn email_codes_are_off_until_an_organiser_switches_them_on() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    expect_problem(request_code(&ann, EMAIL).await, StatusCode::CONFLICT, "wrong_state");
    let (_, hold) = ann.hold(&[1]).await;
    assert_eq!(ann.book(&hold).await.0, StatusCode::CREATED);
    let mut olga = organiser(&world).await;
    let (_, show) = olga.get(&format!("{API}/programme/{}", world.show)).await;
    let mut terms = show["terms"].clone();
    assert_eq!(terms["email_code"], Value::Null);
    terms["email_code"] = json!(true);
    let request = json!({ "terms": terms, "version": show["version"], "reason": "Bots." });
    let changed = post_ok(&mut olga, &format!("/programme/{}/terms", world.show), request).await;
    assert_eq!(changed["terms"]["email_code"], true);
    let ben = world.visitor();
    let (_, hold) = ben.hold(&[3]).await;
    assert_code_required(&ben, &hold).await;
    assert!(codes(&world, EMAIL).is_empty(), "no code is required");
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_has_the_language_of_the_page() {
    let world = world_with_codes(1).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/email-code", world.show);
    let answer = ann.call(Method::POST, &path, json!({ "email": EMAIL, "language": "de" })).await;
    assert_eq!(answer.0, StatusCode::ACCEPTED);
    let is_german = || world.mails().iter().any(|mail| mail.contains("Ihr Code") || mail.contains("=?utf-8?"));
    wait_until("a German mail is sent", || async { is_german() }).await;
    for bad in [json!({ "email": "no-address" }), json!({ "email": "a@example.org\r\nBcc: b@example.org" })] {
        assert_eq!(ann.call(Method::POST, &path, bad).await.1["code"], "person_invalid");
    }
}
