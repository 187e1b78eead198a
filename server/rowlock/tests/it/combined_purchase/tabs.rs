//! One booking and one charge for requests with one key, with several keys, and at several servers.

use std::collections::HashMap;

use super::{assert_sale_events, hold_seats};
use crate::commits::{NO_GATHER, SLOW_GATHER};
use crate::idempotency::{poll_until_done, post};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn twenty_requests_with_one_key_at_two_servers_are_one_sale_and_one_answer() {
    let world = World::start(2, &[]).await;
    for (seat, token) in [(1, "tok_paid"), (2, "tok_slow")] {
        let ann = world.visitor();
        let there = ann.moved_to(&world, 1);
        let order = ann.purchase_body(&hold_seats(&ann, &[seat]).await, Some(token)).to_string();
        let send = |number: usize| {
            post(if number.is_multiple_of(2) { &ann } else { &there }, "/api/v1/bookings", "buy", &order, &[])
        };
        let answers = join_all((0..20).map(send)).await;
        let given: Vec<_> = answers.iter().filter(|answer| answer.status == StatusCode::CREATED).collect();
        assert_eq!((given[0].status, text(&given[0].json()["state"])), (StatusCode::CREATED, "CONFIRMED"));
        for answer in &answers {
            match answer.status {
                StatusCode::CREATED => {
                    assert_eq!(answer.status_and_body(), given[0].status_and_body(), "byte for byte")
                }
                status => {
                    let code = answer.json()["code"].clone();
                    assert_eq!((status, code), (StatusCode::CONFLICT, json!("still_running")), "{token}: {answer:?}");
                }
            }
        }
        // Long after the sale, both servers still replay the key's answer.
        ann.wait_for_seat(seat as usize, '2').await;
        for number in 0..4 {
            assert_eq!(send(number).await.status_and_body(), given[0].status_and_body());
        }
        let another = order.replace("Ann Example", "Eve Example");
        let refused = post(&there, "/api/v1/bookings", "buy", &another, &[]).await;
        assert_eq!(refused.json()["code"], "key_reused", "{refused:?}");
    }
    for (query, count) in [
        ("SELECT count(*) FROM bookings", 2),
        ("SELECT count(*) FROM payments", 2),
        ("SELECT count(*) FROM booking_events WHERE event = 'payment_submitted'", 2),
        ("SELECT count(*) FROM tickets", 2),
        ("SELECT count(*) FROM idempotency_keys WHERE state = 'completed'", 2),
    ] {
        assert_eq!(world.count(query).await, count, "{query}");
    }
    world.wait_until_books_balance().await;
}

/// A tab that gets `Retry-After` waits this long before its next attempt.
const PAUSE: Duration = Duration::from_millis(50);

/// Buys a hold from one tab. Retries while other requests of the same hold are served, as a page does.
async fn buy_from_tab(visitor: &Visitor, hold: &Value, tab: usize) -> JsonAnswer {
    let (order, key) = (visitor.purchase_body(hold, Some("tok_paid")), format!("tab-{tab}"));
    loop {
        let answer = visitor.call_with_key(Method::POST, "/api/v1/bookings", order.clone(), &key).await;
        if answer.1["code"] != "still_running" {
            return answer;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Sends concurrent purchases from tabs of one visitor, each with its own key. All are answered with one booking.
async fn assert_tabs_are_one_sale(settings: &[(&str, &str)]) {
    let world = World::start(2, settings).await;
    for (round, tabs) in [(0, 2), (1, 2), (2, 6), (3, 2)] {
        let ann = world.visitor();
        let there = ann.moved_to(&world, 1);
        // The maximum per person: the seats of the booking itself are not counted twice.
        let seats: Vec<u32> = (round * 10..round * 10 + 10).collect();
        let hold = hold_seats(&ann, &seats).await;
        // In the last round all tabs use one server.
        let at = |tab: usize| if tab.is_multiple_of(2) || round == 3 { &ann } else { &there };
        let answers = join_all((0..tabs).map(|tab| buy_from_tab(at(tab), &hold, tab))).await;
        let mut statuses: HashMap<StatusCode, usize> = HashMap::new();
        for (status, answer) in &answers {
            *statuses.entry(*status).or_default() += 1;
            assert!(matches!(*status, StatusCode::CREATED | StatusCode::OK), "{status} {answer}");
            assert_eq!(answer["id"], answers[0].1["id"], "{answers:?}");
        }
        assert_eq!(statuses.get(&StatusCode::CREATED), Some(&1), "exactly one created it: {answers:?}");
        let booking = ann.wait_for_booking(&answers[0].1, "CONFIRMED").await;
        // Before the map shows the sale, and afterwards.
        for _ in 0..2 {
            for visitor in [&ann, &there] {
                let (status, again) = visitor.buy(&hold, Some("tok_paid")).await;
                let seen = (status, &again["id"], text(&again["state"]));
                assert_eq!(seen, (StatusCode::OK, &booking["id"], "CONFIRMED"), "{again}");
                // With the same price or another one: the booking is paid.
                let mut order = visitor.purchase_body(&hold, None);
                order["pay"]["total_minor"] = 1.into();
                let (status, again) = visitor.call(Method::POST, "/api/v1/bookings", order).await;
                assert_eq!((status, &again["id"]), (StatusCode::OK, &booking["id"]), "{again}");
            }
            ann.wait_for_seat(seats[9] as usize, '2').await;
            world.wait_for_empty_outbox().await;
        }
        assert_sale_events(&ann, &booking).await;
    }
    for query in ["SELECT count(*) FROM bookings", "SELECT count(*) FROM payments WHERE asks = 1"] {
        assert_eq!(world.count(query).await, 4, "{query}");
    }
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 40);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_with_different_keys_are_one_sale() {
    assert_tabs_are_one_sale(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_in_one_batch_are_one_sale() {
    assert_tabs_are_one_sale(&[SLOW_GATHER]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_in_batches_of_one_are_one_sale() {
    assert_tabs_are_one_sale(&[NO_GATHER]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_step_and_combined_purchase_of_one_hold_are_one_sale() {
    let world = World::start(2, &[]).await;
    for seat in 0..6 {
        let ann = world.visitor();
        let there = ann.moved_to(&world, 1);
        let hold = hold_seats(&ann, &[seat]).await;
        let in_two_steps = async {
            let (status, booking) = there.book(&hold).await;
            // The other tab was faster, so the hold is gone.
            if status == StatusCode::GONE {
                return (StatusCode::OK, Value::Null);
            }
            assert_eq!(status, StatusCode::CREATED, "{booking}");
            there.pay(&booking, Some("tok_paid")).await
        };
        let (one, other) = tokio::join!(ann.buy(&hold, Some("tok_paid")), in_two_steps);
        assert!(matches!(one.0, StatusCode::CREATED | StatusCode::OK), "{} {}", one.0, one.1);
        assert_eq!(other.0, StatusCode::OK, "{}", other.1);
        assert!(other.1.is_null() || other.1["id"] == one.1["id"], "{} {}", one.1, other.1);
        ann.wait_for_booking(&one.1, "CONFIRMED").await;
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 6);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'payment_submitted'").await, 6);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_changed_at_another_server_is_sold_as_changed() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let there = ann.moved_to(&world, 1);
    // This server granted seat 20. The other one changes it to the neighbour, at the same price.
    let granted = hold_seats(&ann, &[20]).await;
    let (status, changed) = there.change(&granted, &[21], &[20]).await;
    assert_eq!((status, &changed["total"]), (StatusCode::OK, &granted["total"]), "{changed}");
    let paid = expect_state(ann.buy(&changed, Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
    assert_eq!(paid["seats"], changed["seats"], "the stale cached hold is not sold");
    ann.wait_for_seat(21, '2').await;
    ann.wait_for_seat(20, '0').await;
    // The same with more seats and thus another price, and an extended hold.
    let bob = world.visitor();
    let there = bob.moved_to(&world, 1);
    let granted = hold_seats(&bob, &[30]).await;
    let (_, changed) = there.change(&granted, &[31], &[]).await;
    let path = format!("/api/v1/shows/{}/holds/{}/extend", world.show, text(&granted["id"]));
    let longer = expect_answer(there.call(Method::POST, &path, Value::Null).await, StatusCode::OK);
    expect_problem(bob.buy(&granted, Some("tok_paid")).await, StatusCode::CONFLICT, "price_changed");
    assert_eq!(bob.current_hold().await["expires_at_ms"], longer["expires_at_ms"]);
    let (status, pending) = bob.buy(&changed, None).await;
    assert_eq!((status, &pending["seats"]), (StatusCode::CREATED, &changed["seats"]), "{pending}");
    assert!(pending["expires_at_ms"].as_i64() >= longer["expires_at_ms"].as_i64(), "{pending} {longer}");
    // A hold that is released there is gone here as well.
    let cem = world.visitor();
    let there = cem.moved_to(&world, 1);
    let granted = hold_seats(&cem, &[40]).await;
    assert_eq!(there.release_hold(&granted).await, StatusCode::NO_CONTENT);
    expect_problem(cem.buy(&granted, Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    let (status, gone) = world.visitor().buy(&granted, Some("tok_paid")).await;
    assert_eq!((status, text(&gone["code"])), (StatusCode::GONE, "hold_expired"), "not this visitor's hold: {gone}");
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn respond_async_request_is_answered_with_a_location() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let there = ann.moved_to(&world, 1);
    let order = ann.purchase_body(&hold_seats(&ann, &[1]).await, Some("tok_slow")).to_string();
    let accepted = post(&ann, "/api/v1/bookings", "buy", &order, &[("prefer", "respond-async")]).await;
    assert_eq!((accepted.status, accepted.json()), (StatusCode::ACCEPTED, json!({ "key": "buy", "state": "RUNNING" })));
    let location = accepted.header("location");
    assert_eq!(location, "/api/v1/requests/buy");
    let (waited, asked, asked_there) = tokio::join!(
        post(&ann, "/api/v1/bookings", "buy", &order, &[]),
        poll_until_done(&ann, location),
        poll_until_done(&there, location)
    );
    assert_eq!((waited.status, text(&waited.json()["state"])), (StatusCode::CREATED, "CONFIRMED"), "{waited:?}");
    assert_eq!(asked.status_and_body(), waited.status_and_body());
    assert_eq!(asked_there.status_and_body(), waited.status_and_body());
    // A client that disconnects does not stop the work.
    let bob = world.visitor();
    let order = bob.purchase_body(&hold_seats(&bob, &[2]).await, Some("tok_slow"));
    let hasty = bob.client.post(format!("{}/api/v1/bookings", bob.base)).header("cookie", &bob.cookie);
    let hasty = hasty.header("idempotency-key", "buy").json(&order).timeout(Duration::from_millis(100));
    assert!(hasty.send().await.is_err_and(|error| error.is_timeout()), "the client disconnects");
    world.wait_for_count("the request is running", "SELECT count(*) FROM payments", 2).await;
    let asked = poll_until_done(&bob, "/api/v1/requests/buy").await;
    assert_eq!((asked.status, text(&asked.json()["state"])), (StatusCode::CREATED, "CONFIRMED"), "{asked:?}");
    // A failure is reported the same way.
    let cem = world.visitor();
    let mut order = cem.purchase_body(&hold_seats(&cem, &[3]).await, Some("tok_slow"));
    order["pay"]["total_minor"] = 1.into();
    let refused = post(&cem, "/api/v1/bookings", "buy", &order.to_string(), &[("prefer", "respond-async")]).await;
    let refused = match refused.status {
        StatusCode::ACCEPTED => poll_until_done(&cem, refused.header("location")).await,
        // The sale finished before the asynchronous answer.
        _ => refused,
    };
    assert_eq!((refused.status, text(&refused.json()["code"])), (StatusCode::CONFLICT, "price_changed"));
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 2);
}
