//! Offers of the waiting list, opened on another device by their mail.

use std::time::Duration;

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::by_mail::link_mailed;
use crate::cancel::books_balance;
use crate::world::{Visitor, World, text, until};

/// Presses of an offer's address that count in a row; one more is allowed every six seconds.
const IN_A_ROW: usize = 10;
/// An entry's lock is waited for 2 s; this much later a machine that does much else has answered.
const LONG_PAST_THE_LOCK: Duration = Duration::from_secs(8);

/// A world with two seats for sale, a visitor who has an offer of them, that visitor's place in line, and the offer's path.
async fn offered(settings: &[(&str, &str)]) -> (World, Visitor, Value, String) {
    let world = World::start(2, settings).await;
    world.sell_only(&[46, 47]).await;
    let lucky = world.visitor();
    let (status, hold) = lucky.hold(&[46, 47]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let ann = world.visitor();
    assert_eq!(ann.wait_for(2).await.0, StatusCode::CREATED);
    assert_eq!(lucky.let_go(&hold).await, StatusCode::NO_CONTENT);
    let place = ann.sees_waiting("OFFERED").await;
    let path = link_mailed(&world, "Held for you", "/waiting-list/").await;
    (world, ann, place, path)
}

/// Status, where it leads, the cookie it sets, and the page.
async fn ask(visitor: &Visitor, method: Method, path: &str) -> (StatusCode, String, String, String) {
    let request = visitor.client.request(method, format!("{}{path}", visitor.base)).header("origin", &visitor.base);
    let request = if visitor.cookie.is_empty() { request } else { request.header("cookie", &visitor.cookie) };
    let answer = request.send().await.expect("the server answers");
    let header = |name: &str| {
        answer.headers().get(name).map(|value| value.to_str().expect("text").to_owned()).unwrap_or_default()
    };
    let (to, cookie) = (header("location"), header("set-cookie"));
    (answer.status(), to, cookie, answer.text().await.expect("HTML"))
}

/// Takes the offer on a device; it must go well.
async fn takes(visitor: &Visitor, path: &str) {
    let (status, to, _, page) = ask(visitor, Method::POST, path).await;
    assert_eq!((status, to), (StatusCode::SEE_OTHER, format!("/shows/{}", visitor.show)), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_opens_on_a_new_device_which_buys_it_and_the_first_one_cannot() {
    let (world, ann, place, path) = offered(&[]).await;
    let bob = world.visitor();
    // A device without any cookie, at another server; looking moves nothing.
    let mut phone = Visitor { cookie: String::new(), ..world.visitor_at(1) };
    let (status, _, _, page) = ask(&phone, Method::GET, &path).await;
    assert_eq!((status, page.contains("data-testid=\"take-offer-here\"")), (StatusCode::OK, true), "{page}");
    assert_eq!(ann.held().await["id"], place["offer"]["hold"]);
    let (status, to, cookie, page) = ask(&phone, Method::POST, &path).await;
    assert_eq!((status, to), (StatusCode::SEE_OTHER, format!("/shows/{}", world.show)), "{page}");
    phone.cookie = cookie.split(';').next().expect("a cookie").to_owned();
    // One owner at a time.
    let hold = phone.held().await;
    assert_ne!(hold["id"], place["offer"]["hold"]);
    assert_eq!(hold["expires_at_ms"], place["offer"]["expires_at_ms"]);
    assert!(!ann.holds_something().await);
    // Held, or kept for the line while this replica still knows of one.
    let (status, refused) = bob.hold(&[46]).await;
    assert!(matches!(status, StatusCode::LOCKED | StatusCode::CONFLICT), "{status} {refused}");
    let old = json!({ "id": place["offer"]["hold"], "total": hold["total"] });
    let (status, refused) = ann.buy(&old, Some("tok_paid")).await;
    assert_eq!((status, text(&refused["code"])), (StatusCode::GONE, "hold_expired"), "{refused}");
    let (status, sold) = phone.buy(&hold, Some("tok_paid")).await;
    assert_eq!((status, &sold["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{sold}");
    until("the place is taken", || async {
        world.count("SELECT count(*) FROM waiting_list WHERE state = 'taken'").await == 1
    })
    .await;
    let (status, _, _, page) = ask(&bob, Method::GET, &path).await;
    assert_eq!((status, page.contains("take-offer-here")), (StatusCode::OK, false), "{page}");
    assert_eq!(ask(&bob, Method::POST, &path).await.0, StatusCode::GONE);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 2);
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_that_take_an_offer_at_once_leave_it_with_one_of_them() {
    let (world, ann, place, path) = offered(&[]).await;
    let devices: Vec<Visitor> = (0..6).map(|number| world.visitor_at(number % 2)).collect();
    let answers = join_all(devices.iter().map(|device| ask(device, Method::POST, &path))).await;
    for (status, ..) in &answers {
        assert_eq!(*status, StatusCode::SEE_OTHER);
    }
    let mut owners = 0;
    for device in devices.iter().chain([&ann]) {
        owners += u32::from(device.holds_something().await);
    }
    assert_eq!(owners, 1, "one of the devices has it");
    assert_eq!(world.count("SELECT count(*) FROM waiting_list WHERE state = 'offered'").await, 1);
    // Back to the first device; the hold ends when it would have.
    takes(&ann, &path).await;
    let hold = ann.held().await;
    assert_eq!(hold["expires_at_ms"], place["offer"]["expires_at_ms"]);
    assert_eq!(ask(&ann, Method::GET, &path).await.0, StatusCode::SEE_OTHER, "it is hers");
    assert_eq!(ann.buy(&hold, Some("tok_paid")).await.1["state"], "CONFIRMED");
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_is_being_paid_for_stays_until_the_card_is_declined() {
    let (world, ann, _, path) = offered(&[]).await;
    let phone = world.visitor();
    let (_, pending) = ann.buy(&ann.held().await, None).await;
    assert_eq!(pending["state"], "PAYMENT_PENDING", "{pending}");
    let (status, _, _, page) = ask(&phone, Method::POST, &path).await;
    assert_eq!((status, page.contains("account-trouble")), (StatusCode::CONFLICT, true), "{page}");
    assert!(!phone.holds_something().await);
    // The payment is declined: the offer's hold is kept, and may be taken elsewhere.
    let form = ann.client.post(text(&pending["pay_url"])).header("content-type", "application/x-www-form-urlencoded");
    form.body("card=declined&action=pay").send().await.expect("a page");
    ann.sees_booking(&pending, "CANCELLED").await;
    until("it can be taken", || async { ask(&phone, Method::POST, &path).await.0 == StatusCode::SEE_OTHER }).await;
    assert!(phone.holds_something().await && !ann.holds_something().await);
    assert_eq!(phone.buy(&phone.held().await, Some("tok_paid")).await.1["state"], "CONFIRMED");
    until("the place is taken", || async {
        world.count("SELECT count(*) FROM waiting_list WHERE state = 'taken'").await == 1
    })
    .await;
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_cookie_takes_no_offer_and_a_forged_key_opens_none() {
    let (world, ann, place, path) = offered(&[]).await;
    // A guest who has signed in since: what is left of the cookie from before opens no place in a line.
    let handed_over = "INSERT INTO accounts (id, email, name, password_hash, created_at, updated_at)
                       VALUES (gen_random_uuid(), 'ann@example.org', 'Ann', 'none', now(), now());
                       INSERT INTO account_visitors (owner, account_id, joined_at)
                       SELECT waiting_list.owner, accounts.id, now() FROM waiting_list, accounts";
    sqlx::raw_sql(handed_over).execute(&world.pg).await.expect("the visitor is an account's");
    assert_eq!(ask(&ann, Method::GET, &path).await.0, StatusCode::NOT_FOUND);
    assert_eq!(ask(&ann, Method::POST, &path).await.0, StatusCode::NOT_FOUND);
    let phone = world.visitor();
    let last = if path.ends_with('0') { '1' } else { '0' };
    let forged = format!("{}{last}", &path[..path.len() - 1]);
    for wrong in [forged.as_str(), "/waiting-list/x", &path[..path.len() - 2]] {
        assert_eq!(ask(&phone, Method::POST, wrong).await.0, StatusCode::NOT_FOUND, "{wrong}");
    }
    takes(&phone, &path).await;
    assert_eq!(phone.held().await["expires_at_ms"], place["offer"]["expires_at_ms"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_an_offer_is_refused_from_any_device_when_it_is_pressed_again_and_again() {
    let (world, _, _, path) = offered(&[]).await;
    let devices = [world.visitor_at(0), world.visitor_at(1)];
    let mut last = None;
    let mut taken = 0;
    let page = loop {
        let device = &devices[taken % 2];
        let (status, _, _, page) = ask(device, Method::POST, &path).await;
        if status == StatusCode::TOO_MANY_REQUESTS {
            break page;
        }
        assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
        last = Some(device);
        taken += 1;
        assert!(taken <= 2 * IN_A_ROW, "{taken} presses were heard");
    };
    assert!(taken >= IN_A_ROW && page.contains("account-trouble"), "{taken} presses were heard: {page}");
    let stranger = world.visitor();
    assert_eq!(ask(&stranger, Method::POST, &path).await.0, StatusCode::TOO_MANY_REQUESTS);
    // Who has it buys it all the same.
    let owner = last.expect("a device has it");
    assert_eq!(owner.buy(&owner.held().await, Some("tok_paid")).await.1["state"], "CONFIRMED");
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_waits_two_seconds_for_an_entry_that_is_locked_and_may_come_again() {
    let (world, ann, _, path) = offered(&[]).await;
    let phone = world.visitor();
    let mut other = world.pg.begin().await.expect("a transaction");
    sqlx::query("SELECT 1 FROM waiting_list FOR UPDATE").execute(&mut *other).await.expect("the entry is locked");
    let answer = timeout(LONG_PAST_THE_LOCK, ask(&phone, Method::POST, &path)).await;
    let (status, _, _, page) = answer.expect("the lock is not waited for longer");
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{page}");
    assert!(ann.holds_something().await);
    other.rollback().await.expect("the entry is free");
    takes(&phone, &path).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_who_joins_the_line_while_taking_an_offer_is_told_so_and_the_offer_stays() {
    let (world, ann, place, path) = offered(&[]).await;
    let phone = world.visitor();
    let secret = phone.cookie.strip_prefix("rowlock_visitor=").expect("a cookie of ours");
    let owner = http::visitor::owner_of(secret.as_bytes().try_into().expect("a secret"));
    // The phone joins in another tab, as `join` does it, and is not done yet.
    let mut joining = world.pg.begin().await.expect("a transaction");
    let lock = sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))").bind(&owner);
    lock.execute(&mut *joining).await.expect("the joins of the phone are locked");
    let entry =
        "INSERT INTO waiting_list (id, show_id, owner, email, quantity, not_before, mail_after, joined_at, updated_at)
                 VALUES (gen_random_uuid(), $1, $2, 'ann@example.org', 2, now(), now(), now(), now())";
    let entry = sqlx::query(entry).bind(world.show).bind(&owner).execute(&mut *joining).await;
    entry.expect("the phone is in line");
    let joins = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until("taking the offer waits for the join", || async { world.count(waiting).await > 0 }).await;
        joining.commit().await.expect("the phone has joined");
    };
    let ((status, _, _, page), ()) = tokio::join!(ask(&phone, Method::POST, &path), joins);
    assert_eq!(
        (status, page.contains("You wait for this show in this browser")),
        (StatusCode::CONFLICT, true),
        "{page}"
    );
    assert_eq!(ann.held().await["id"], place["offer"]["hold"], "the offer is where it was");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_whose_decline_has_not_reached_the_seats_yet_is_taken_a_moment_later() {
    let (world, ann, place, path) = offered(&[]).await;
    let hold = text(&place["offer"]["hold"]).parse().expect("an id");
    // As the transaction of a decline leaves it, until its effect has renewed the hold: the entry names the next one.
    let next = selling::waiting_list::renewed_offer_id(hold, platform::ids::new_id());
    let names = async |hold: uuid::Uuid| {
        let update = sqlx::query("UPDATE waiting_list SET offer_hold = $1").bind(hold);
        update.execute(&world.pg).await.expect("the entry names another hold");
    };
    names(next).await;
    let phone = world.visitor();
    let (status, _, _, page) = ask(&phone, Method::POST, &path).await;
    assert_eq!((status, page.contains("try again in a moment")), (StatusCode::CONFLICT, true), "{page}");
    assert!(ann.holds_something().await && !phone.holds_something().await);
    names(hold).await;
    takes(&phone, &path).await;
    world.end().await;
}
