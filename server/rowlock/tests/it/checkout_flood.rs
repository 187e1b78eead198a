//! Thousands of checkouts of one hold do not delay or refuse other buyers.

use std::time::Duration;

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::booking_totals::WAITING;
use crate::idempotency::{RawAnswer, post};
use crate::world::{Visitor, World, expect_answer, text, wait_until};

const BOOKINGS: &str = "/api/v1/bookings";
/// Concurrent checkouts of one hold.
const FLOOD: usize = 2_000;
/// Sale steps that may queue at the server: fewer than the flood.
const QUEUE: usize = 1_000;
/// Time limit for another buyer's sale.
const SALE_WITHIN: Duration = Duration::from_secs(2);

/// Checks out a hold again, with another key.
fn check_out(visitor: &Visitor, body: &str, key: &str) -> JoinHandle<RawAnswer> {
    let (visitor, body, key) = (visitor.clone(), body.to_owned(), key.to_owned());
    tokio::spawn(async move { post(&visitor, BOOKINGS, &key, &body, &[]).await })
}

/// Holds a seat, checks it out and pays.
async fn complete_sale(visitor: &Visitor, seat: u32, how: &str) -> Value {
    let hold = expect_answer(visitor.hold(&[seat]).await, StatusCode::CREATED);
    let (status, paid) = match how {
        "in one request" => visitor.buy(&hold, Some("tok_paid")).await,
        "in two requests" => {
            let (status, booking) = visitor.book(&hold).await;
            assert_eq!(status, StatusCode::CREATED, "{how}: {booking}");
            visitor.pay(&booking, Some("tok_paid")).await
        }
        // A choice for late payments needs a separate transaction.
        _ => {
            let mut order = visitor.purchase_body(&hold, Some("tok_paid"));
            order["if_late"] = json!("refund");
            visitor.call(reqwest::Method::POST, BOOKINGS, order).await
        }
    };
    assert!(status.is_success(), "{how}: {status} {paid}");
    paid
}

#[tokio::test(flavor = "multi_thread")]
async fn flood_of_checkouts_of_one_hold_neither_delays_nor_refuses_other_sales() {
    let queue = QUEUE.to_string();
    let (world, ann) = World::with_visitor(&[("COMMIT_QUEUE", &queue)]).await;
    let (_, hold) = ann.hold(&[0]).await;
    let (status, booking) = ann.book(&hold).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    // No checkout of this hold ends before the test releases the lock.
    let mut keeper = world.pg.begin().await.expect("a transaction");
    sqlx::query("SELECT FROM bookings WHERE id = $1::uuid FOR UPDATE")
        .bind(text(&booking["id"]))
        .execute(&mut *keeper)
        .await
        .expect("the booking is locked");
    let body = ann.checkout_body(&hold).to_string();
    let shared = [check_out(&ann, &body, "shared"), check_out(&ann, &body, "shared")];
    world.wait_for_count("the first checkout waits for the row lock", WAITING, 1).await;
    let flood: Vec<_> = (0..FLOOD).map(|number| check_out(&ann, &body, &number.to_string())).collect();
    let answered = || flood.iter().filter(|request| request.is_finished()).count();
    wait_until("the flood has arrived", || async { answered() >= FLOOD - QUEUE }).await;

    let ways = [(5, "in one request"), (6, "in two requests"), (7, "by itself")];
    let sales = ways.map(|(seat, how)| {
        let ben = world.visitor();
        async move { tokio::time::timeout(SALE_WITHIN, complete_sale(&ben, seat, how)).await.map(|paid| (how, paid)) }
    });
    for sale in join_all(sales).await {
        let (how, paid) = sale.unwrap_or_else(|_| panic!("a sale takes longer than {SALE_WITHIN:?}"));
        assert_eq!(paid["state"], "CONFIRMED", "{how}: {paid}");
    }
    assert!(!shared[0].is_finished() && answered() < FLOOD, "the flood is still running");

    keeper.rollback().await.expect("the booking is unlocked");
    let mut revised = 0;
    for request in flood {
        let answer = request.await.expect("the task ends");
        match answer.status {
            StatusCode::CREATED => revised += 1,
            StatusCode::CONFLICT => {
                assert_eq!(answer.json()["code"], "still_running", "{answer:?}");
                assert!(answer.header("retry-after").parse::<u32>().is_ok(), "{answer:?}");
            }
            _ => panic!("{answer:?}"),
        }
    }
    assert!(revised <= 1, "one waited, and the others got a retryable answer");
    let [one, other] = shared;
    let (one, other) = (one.await.expect("the task ends"), other.await.expect("the task ends"));
    assert_eq!(one.status, StatusCode::CREATED, "{one:?}");
    assert_eq!(one.body, other.body, "the same key shares the answer");
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 4);
}

/// Checks out holds that do not exist until a limit refuses. Returns the number of checkouts before, and the refusal.
async fn until_refused(next: impl Fn() -> Visitor, from: &str) -> (usize, RawAnswer) {
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
async fn checkouts_are_limited_per_visitor_and_per_address_without_affecting_others() {
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
        // Ben's request has no proxy header: it comes from the test's address.
        complete_sale(&world.visitor(), 5, "in two requests").await;
        world.end().await;
    }
}
