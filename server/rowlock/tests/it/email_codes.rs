//! Codes before checkout: asked for, mailed, entered; and who needs none.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::accounts::{mails_about, proven, signed_up};
use crate::organiser::{HERE, done, organiser};
use crate::world::{Visitor, World, text, until};

/// The address of whoever buys in these tests ([`Visitor::book`]).
const EMAIL: &str = "ann@example.org";

/// A world whose show asks for codes. Before anyone asked for it.
async fn asking(servers: usize) -> World {
    let world = World::start(servers, &[]).await;
    sqlx::query("UPDATE shows SET email_code = true").execute(&world.pg).await.expect("it is switched on");
    world
}

async fn ask(visitor: &Visitor, email: &str) -> (StatusCode, Value) {
    let path = format!("/api/v1/shows/{}/email-code", visitor.show);
    visitor.call(Method::POST, &path, json!({ "email": email })).await
}

async fn enter(visitor: &Visitor, email: &str, code: &str) -> (StatusCode, Value) {
    let path = format!("/api/v1/shows/{}/email-code/proof", visitor.show);
    visitor.call(Method::POST, &path, json!({ "email": email, "code": code })).await
}

/// The codes mailed to that address so far.
fn codes(world: &World, email: &str) -> Vec<String> {
    let mails = mails_about(world, "Your code for checkout").into_iter().filter(|mail| mail.contains(email));
    let code = |mail: String| {
        let line = mail.lines().map(str::trim).find(|line| line.len() == 6 && line.bytes().all(|b| b.is_ascii_digit()));
        line.expect("a line with the code").to_owned()
    };
    mails.map(code).collect()
}

/// Has a code mailed, and waits for it.
async fn mailed(world: &World, visitor: &Visitor, email: &str) -> String {
    let before = codes(world, email);
    let (status, told) = ask(visitor, email).await;
    assert_eq!((status, &told["email"]), (StatusCode::ACCEPTED, &json!(email)), "{told}");
    until("the code is mailed", || async { codes(world, email).len() > before.len() }).await;
    codes(world, email).into_iter().find(|code| !before.contains(code)).expect("another code")
}

/// A code that is another one.
fn wrong(code: &str, by: u32) -> String {
    format!("{:06}", (code.parse::<u32>().expect("a number") + by) % 1_000_000)
}

async fn refused(visitor: &Visitor, hold: &Value) {
    let (status, refusal) = visitor.book(hold).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::FORBIDDEN, "email_code_wanted"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_proves_their_address_and_a_wrong_code_loses_nothing() {
    let world = asking(2).await;
    let (ann, eve) = (world.visitor(), world.visitor());
    let (_, hold) = ann.hold(&[1]).await;
    let (_, hers) = eve.hold(&[2]).await;
    refused(&ann, &hold).await;
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 0);
    assert_eq!(enter(&ann, EMAIL, "000000").await.1["code"], "email_code_over", "nobody asked for one");
    let code = mailed(&world, &ann, EMAIL).await;
    let kept = format!("SELECT count(*) FROM email_codes WHERE email_codes::text LIKE '%{code}%'");
    let kept: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(kept)).fetch_one(&world.pg).await.expect("a count");
    assert_eq!(kept, 0, "no table has it");
    for (typed, status, named) in [
        (wrong(&code, 1), StatusCode::UNPROCESSABLE_ENTITY, "email_code_wrong"),
        ("12345".to_owned(), StatusCode::UNPROCESSABLE_ENTITY, "email_code_wrong"),
    ] {
        let (told, refusal) = enter(&ann, EMAIL, &typed).await;
        assert_eq!((told, text(&refusal["code"])), (status, named), "{typed}");
    }
    refused(&ann, &hold).await;
    let (_, still) = ann.get(&format!("/api/v1/shows/{}/hold", world.show)).await;
    assert_eq!((&still["id"], &still["expires_at_ms"]), (&hold["id"], &hold["expires_at_ms"]), "nothing is lost");
    // Somebody else's code is of no use to her, and at another replica it is the same code.
    assert_eq!(enter(&eve, EMAIL, &code).await.1["code"], "email_code_over");
    let at_other = Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    let spaced = format!(" {} {}", &code[..3], &code[3..]);
    let (status, told) = enter(&at_other, "Ann@example.org ", &spaced).await;
    assert_eq!(status, StatusCode::OK, "{told}");
    let (status, booking) = ann.book(&hold).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    // By this visitor, with this address.
    refused(&eve, &hers).await;
    ann.sees(1, '2').await;
    let (_, more) = ann.hold(&[3]).await;
    let buyer = json!({ "name": "Ann Example", "email": "another@example.org" });
    let wish = json!({ "show": world.show, "hold": more["id"], "buyer": buyer });
    let (status, refusal) = ann.call(Method::POST, "/api/v1/bookings", wish).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::FORBIDDEN, "email_code_wanted"));
    // For an hour.
    assert_eq!(ann.book(&more).await.0, StatusCode::CREATED);
    let later = "UPDATE email_codes SET proven_at = proven_at - interval '61 minutes'";
    sqlx::query(later).execute(&world.pg).await.expect("time passes");
    let (_, hold) = ann.change(&more, &[4], &[]).await;
    refused(&ann, &hold).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_tries_are_all_also_when_they_come_at_once() {
    let world = asking(2).await;
    let ann = world.visitor();
    let code = mailed(&world, &ann, EMAIL).await;
    let at_other = Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    let guesses: Vec<String> = (1..=20).map(|by| wrong(&code, by)).collect();
    let told = futures::future::join_all(guesses.iter().enumerate().map(|(number, guess)| {
        let visitor = if number % 2 == 0 { &ann } else { &at_other };
        enter(visitor, EMAIL, guess)
    }))
    .await;
    let wrong = told.iter().filter(|(_, refusal)| refusal["code"] == "email_code_wrong").count();
    let over = told.iter().filter(|(status, _)| *status == StatusCode::GONE).count();
    assert_eq!((wrong, over), (4, 16), "the fifth is the last: {told:?}");
    assert_eq!(enter(&ann, EMAIL, &code).await.1["code"], "email_code_over", "the right one comes too late");
    let another = mailed(&world, &ann, EMAIL).await;
    assert_eq!(enter(&ann, EMAIL, &another).await.0, StatusCode::OK);
    assert_eq!(enter(&ann, EMAIL, &another).await.1["code"], "email_code_over", "it is used up");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_code_that_comes_twice_at_once_counts_once() {
    let world = asking(2).await;
    let ann = world.visitor();
    let code = mailed(&world, &ann, EMAIL).await;
    let at_other = Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    // Both tries are counted, and neither can be written down yet as right: that wants a key.
    let mut gate = world.pg.begin().await.expect("a transaction");
    sqlx::query("LOCK TABLE idempotency_keys IN EXCLUSIVE MODE")
        .execute(&mut *gate)
        .await
        .expect("nobody writes a key");
    let both_go_on = async {
        until("both have tried", || async {
            world.count("SELECT count(*) FROM email_codes WHERE tries = 2").await == 1
        })
        .await;
        gate.rollback().await.expect("keys are written again");
    };
    let (one, other, ()) = tokio::join!(enter(&ann, EMAIL, &code), enter(&at_other, EMAIL, &code), both_go_on);
    let mut told = [one.0, other.0];
    told.sort();
    assert_eq!(told, [StatusCode::OK, StatusCode::GONE], "{one:?} {other:?}");
    assert_eq!(world.count("SELECT count(*) FROM email_codes WHERE proven_at IS NOT NULL").await, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_try_counts_when_it_is_right() {
    let world = asking(1).await;
    let ann = world.visitor();
    let code = mailed(&world, &ann, EMAIL).await;
    for by in 1..=4 {
        assert_eq!(enter(&ann, EMAIL, &wrong(&code, by)).await.1["code"], "email_code_wrong");
    }
    assert_eq!(enter(&ann, EMAIL, &code).await.0, StatusCode::OK);
    assert_eq!(enter(&ann, EMAIL, &code).await.1["code"], "email_code_over", "it is used up");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_has_its_time_and_only_the_last_one_counts() {
    let world = asking(1).await;
    let ann = world.visitor();
    let (first, last) = (mailed(&world, &ann, EMAIL).await, mailed(&world, &ann, EMAIL).await);
    assert_eq!(enter(&ann, EMAIL, &first).await.1["code"], "email_code_wrong");
    let over = "UPDATE email_codes SET expires_at = now() - interval '1 second'";
    sqlx::query(over).execute(&world.pg).await.expect("time passes");
    let (status, refusal) = enter(&ann, EMAIL, &last).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::GONE, "email_code_over"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_has_mails_sent_by_the_dozen() {
    let world = asking(1).await;
    let ann = world.visitor();
    for _ in 0..4 {
        assert_eq!(ask(&ann, EMAIL).await.0, StatusCode::ACCEPTED);
    }
    let (status, refusal) = ask(&ann, "elsewhere@example.org").await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::TOO_MANY_REQUESTS, "too_many_attempts"), "one visitor");
    for _ in 0..2 {
        assert_eq!(ask(&world.visitor(), EMAIL).await.0, StatusCode::ACCEPTED);
    }
    let cora = world.visitor();
    let answer = cora
        .client
        .post(format!("{}/api/v1/shows/{}/email-code", cora.base, world.show))
        .header("idempotency-key", "once-more")
        .json(&json!({ "email": "ANN@example.org" }))
        .send()
        .await
        .expect("the server answers");
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS, "one person, whoever asks");
    assert!(answer.headers().contains_key("retry-after"));
    assert!(answer.headers()["ratelimit"].to_str().is_ok_and(|limit| limit.starts_with("\"code-person\"")));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_with_a_proven_address_needs_none_and_one_without_does() {
    let world = asking(1).await;
    for (mut browser, seat, expected) in [
        (proven(&world, "pia@example.org").await, 1, StatusCode::CREATED),
        (signed_up(&world, "una@example.org").await, 2, StatusCode::FORBIDDEN),
    ] {
        let (_, hold) = browser.post(&format!("/api/v1/shows/{}/holds", world.show), json!({ "seats": [seat] })).await;
        let buyer = json!({ "name": "Somebody", "email": "pia@example.org" });
        let wish = json!({ "show": world.show, "hold": hold["id"], "buyer": buyer });
        let (status, told) = browser.post("/api/v1/bookings", wish).await;
        assert_eq!(status, expected, "{told}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_off_until_an_organiser_switches_it_on() {
    let world = World::start(1, &[]).await;
    let ann = world.visitor();
    let (status, refusal) = ask(&ann, EMAIL).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::CONFLICT, "wrong_state"));
    let (_, hold) = ann.hold(&[1]).await;
    assert_eq!(ann.book(&hold).await.0, StatusCode::CREATED);
    let mut olga = organiser(&world).await;
    let (_, show) = olga.get(&format!("{HERE}/programme/{}", world.show)).await;
    let mut terms = show["terms"].clone();
    assert_eq!(terms["email_code"], Value::Null);
    terms["email_code"] = json!(true);
    let request = json!({ "terms": terms, "version": show["version"], "reason": "Bots." });
    let changed = done(&mut olga, &format!("/programme/{}/terms", world.show), request).await;
    assert_eq!(changed["terms"]["email_code"], true);
    let ben = world.visitor();
    let (_, hold) = ben.hold(&[3]).await;
    refused(&ben, &hold).await;
    assert!(codes(&world, EMAIL).is_empty(), "nobody asked for a code");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mail_speaks_the_language_of_the_page() {
    let world = asking(1).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/email-code", world.show);
    let (status, _) = ann.call(Method::POST, &path, json!({ "email": EMAIL, "language": "de" })).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let is_german = || world.mails().iter().any(|mail| mail.contains("Ihr Code") || mail.contains("=?utf-8?"));
    until("a German mail is there", || async { is_german() }).await;
    for bad in [json!({ "email": "nobody" }), json!({ "email": "a@example.org\r\nBcc: b@example.org" })] {
        assert_eq!(ann.call(Method::POST, &path, bad).await.1["code"], "person_invalid");
    }
    world.end().await;
}
