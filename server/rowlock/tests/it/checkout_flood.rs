//! Thousands of checkouts of one hold: no other buyer waits or is refused because of them.

use std::time::Duration;

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::idempotency::{Told, post};
use crate::totals::WAITING;
use crate::world::{Visitor, World, text, until};

const BOOKINGS: &str = "/api/v1/bookings";
/// Checkouts of one hold at one time.
const FLOOD: usize = 2_000;
/// Steps of sales that may wait at the server: fewer than the flood.
const QUEUE: usize = 1_000;
/// The sale of another buyer takes this long at most.
const SALE_WITHIN: Duration = Duration::from_secs(2);

/// Checks out a hold again, with another key.
fn check_out(visitor: &Visitor, body: &str, key: &str) -> JoinHandle<Told> {
    let (visitor, body, key) = (visitor.clone(), body.to_owned(), key.to_owned());
    tokio::spawn(async move { post(&visitor, BOOKINGS, &key, &body, &[]).await })
}

/// Holds a seat, checks it out and pays.
async fn buys(visitor: &Visitor, seat: u32, how: &str) -> Value {
    let (status, hold) = visitor.hold(&[seat]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let (status, paid) = match how {
        "in one request" => visitor.buy(&hold, Some("tok_paid")).await,
        "in two requests" => {
            let (status, booking) = visitor.book(&hold).await;
            assert_eq!(status, StatusCode::CREATED, "{how}: {booking}");
            visitor.pay(&booking, Some("tok_paid")).await
        }
        // A choice for late money is written in a separate transaction.
        _ => {
            let mut order = visitor.order(&hold, Some("tok_paid"));
            order["if_late"] = json!("refund");
            visitor.call(reqwest::Method::POST, BOOKINGS, order).await
        }
    };
    assert!(status.is_success(), "{how}: {status} {paid}");
    paid
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_checkouts_of_one_hold_neither_delays_nor_refuses_another_sale() {
    let queue = QUEUE.to_string();
    let world = World::start(1, &[("COMMIT_QUEUE", &queue)]).await;
    let ann = world.visitor();
    let (_, hold) = ann.hold(&[0]).await;
    let (status, booking) = ann.book(&hold).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    // No checkout of this hold ends before the test says so.
    let mut keeper = world.pg.begin().await.expect("a transaction");
    sqlx::query("SELECT FROM bookings WHERE id = $1::uuid FOR UPDATE")
        .bind(text(&booking["id"]))
        .execute(&mut *keeper)
        .await
        .expect("the booking is locked");
    let body = ann.wish(&hold).to_string();
    let shared = [check_out(&ann, &body, "shared"), check_out(&ann, &body, "shared")];
    until("the first checkout waits for the booking", || async { world.count(WAITING).await == 1 }).await;
    let flood: Vec<_> = (0..FLOOD).map(|number| check_out(&ann, &body, &number.to_string())).collect();
    let answered = || flood.iter().filter(|request| request.is_finished()).count();
    until("the flood has come", || async { answered() >= FLOOD - QUEUE }).await;

    let ways = [(5, "in one request"), (6, "in two requests"), (7, "by itself")];
    let sales = ways.map(|(seat, how)| {
        let ben = world.visitor();
        async move { tokio::time::timeout(SALE_WITHIN, buys(&ben, seat, how)).await.map(|paid| (how, paid)) }
    });
    for sale in join_all(sales).await {
        let (how, paid) = sale.unwrap_or_else(|_| panic!("a sale takes longer than {SALE_WITHIN:?}"));
        assert_eq!(paid["state"], "CONFIRMED", "{how}: {paid}");
    }
    assert!(!shared[0].is_finished() && answered() < FLOOD, "the flood is still under way");

    keeper.rollback().await.expect("the booking is unlocked");
    let mut revised = 0;
    for request in flood {
        let answer = request.await.expect("it was sent");
        match answer.status {
            StatusCode::CREATED => revised += 1,
            StatusCode::CONFLICT => {
                assert_eq!(answer.json()["code"], "still_running", "{answer:?}");
                assert!(answer.header("retry-after").parse::<u32>().is_ok(), "{answer:?}");
            }
            _ => panic!("{answer:?}"),
        }
    }
    assert!(revised <= 1, "one waited, the others were asked to send theirs again");
    let [one, other] = shared;
    let (one, other) = (one.await.expect("it was sent"), other.await.expect("it was sent"));
    assert_eq!(one.status, StatusCode::CREATED, "{one:?}");
    assert_eq!(one.body, other.body, "the same key shares the answer");
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 4);
    world.end().await;
}

/// Checks out holds that do not exist until a limit refuses. Returns the number of checkouts before, and the refusal.
async fn until_refused(next: impl Fn() -> Visitor, from: &str) -> (usize, Told) {
    let buyer = json!({ "name": "Ann Example", "email": "ann@example.org" });
    for accepted in 0..100 {
        let visitor = next();
        let body = json!({ "show": visitor.show, "hold": platform::ids::new_id(), "buyer": buyer }).to_string();
        let answer = post(&visitor, BOOKINGS, "once", &body, &[("x-forwarded-for", from)]).await;
        match answer.status {
            StatusCode::GONE => {}
            StatusCode::UNPROCESSABLE_ENTITY => panic!("a refusal keeps no key: {answer:?}"),
            _ => return (accepted, answer),
        }
    }
    panic!("no checkout was refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn checkouts_of_a_visitor_and_of_an_address_are_limited_and_others_are_not_affected() {
    for (setting, policy) in [
        ("HOLDS_PER_VISITOR_MIN", "\"checkout-visitor\";q=12;w=60"),
        ("HOLDS_PER_ADDRESS_MIN", "\"checkout-address\";q=12;w=60"),
    ] {
        let world = World::start(1, &[(setting, "12"), ("TRUSTED_PROXIES", "1")]).await;
        let ann = world.visitor();
        let next = || if setting == "HOLDS_PER_VISITOR_MIN" { ann.clone() } else { world.visitor() };
        let (accepted, refusal) = until_refused(next, "2001:db8:1:2::7").await;
        assert!((12..=24).contains(&accepted), "{setting}: {accepted} checkouts were accepted");
        assert_eq!(refusal.status, StatusCode::TOO_MANY_REQUESTS, "{refusal:?}");
        assert_eq!(refusal.json()["code"], "too_many_attempts", "{refusal:?}");
        assert_eq!(refusal.header("ratelimit-policy"), policy);
        assert!(refusal.header("retry-after").parse::<u32>().is_ok_and(|wait| (1..=60).contains(&wait)));
        // Ben comes without a proxy's word: from the address of the test.
        buys(&world.visitor(), 5, "in two requests").await;
        world.end().await;
    }
}
