//! One key, several keys, and several servers: one booking and one charge.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{has_the_story_of_a_sale, held};
use crate::cancel::books_balance;
use crate::commits::GATHERING;
use crate::idempotency::{at_last, post};
use crate::world::{Answer, Visitor, World, text, until};

/// The same person at the second server.
fn at_other(world: &World, visitor: &Visitor) -> Visitor {
    Visitor { base: world.servers[1].url.clone(), ..visitor.clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_times_with_one_key_at_two_servers_is_one_sale_and_one_answer() {
    let world = World::start(2, &[]).await;
    for (seat, token) in [(1, "tok_paid"), (2, "tok_slow")] {
        let ann = world.visitor();
        let there = at_other(&world, &ann);
        let order = ann.order(&held(&ann, &[seat]).await, Some(token)).to_string();
        let send = |number: usize| {
            post(if number.is_multiple_of(2) { &ann } else { &there }, "/api/v1/bookings", "buy", &order, &[])
        };
        let answers = join_all((0..20).map(send)).await;
        let given: Vec<_> = answers.iter().filter(|answer| answer.status == StatusCode::CREATED).collect();
        assert_eq!((given[0].status, text(&given[0].json()["state"])), (StatusCode::CREATED, "CONFIRMED"));
        for answer in &answers {
            match answer.status {
                StatusCode::CREATED => assert_eq!(answer.what(), given[0].what(), "byte for byte"),
                status => {
                    let code = answer.json()["code"].clone();
                    assert_eq!((status, code), (StatusCode::CONFLICT, json!("still_running")), "{token}: {answer:?}");
                }
            }
        }
        // Long after the hold has become a sale, the key still has its answer, at both servers.
        ann.sees(seat as usize, '2').await;
        for number in 0..4 {
            assert_eq!(send(number).await.what(), given[0].what());
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
    books_balance(&world).await;
    world.end().await;
}

/// A tab that is asked to wait sends its request again after this.
const PAUSE: Duration = Duration::from_millis(50);

/// A tab buys what is held, and sends its request again while others of the same hold are served, as a page does.
async fn buys(visitor: &Visitor, hold: &Value, tab: usize) -> Answer {
    let (order, key) = (visitor.order(hold, Some("tok_paid")), format!("tab-{tab}"));
    loop {
        let answer = visitor.call_with_key(Method::POST, "/api/v1/bookings", order.clone(), &key).await;
        if answer.1["code"] != "still_running" {
            return answer;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Tabs of the same people, each with a key of its own, all of them at once: all are told of one booking.
async fn tabs_are_one_sale(settings: &[(&str, &str)]) {
    let world = World::start(2, settings).await;
    for (round, tabs) in [(0, 2), (1, 2), (2, 6), (3, 2)] {
        let ann = world.visitor();
        let there = at_other(&world, &ann);
        // As many as a person may have: the seats of the booking itself are not counted twice.
        let seats: Vec<u32> = (round * 10..round * 10 + 10).collect();
        let hold = held(&ann, &seats).await;
        // The last time all of them come to one server.
        let at = |tab: usize| if tab.is_multiple_of(2) || round == 3 { &ann } else { &there };
        let answers = join_all((0..tabs).map(|tab| buys(at(tab), &hold, tab))).await;
        let mut told: HashMap<StatusCode, usize> = HashMap::new();
        for (status, answer) in &answers {
            *told.entry(*status).or_default() += 1;
            assert!(matches!(*status, StatusCode::CREATED | StatusCode::OK), "{status} {answer}");
            assert_eq!(answer["id"], answers[0].1["id"], "{answers:?}");
        }
        assert_eq!(told.get(&StatusCode::CREATED), Some(&1), "one has made it: {answers:?}");
        let booking = ann.sees_booking(&answers[0].1, "CONFIRMED").await;
        // Before the map knows that it is sold, and afterwards.
        for _ in 0..2 {
            for visitor in [&ann, &there] {
                let (status, again) = visitor.buy(&hold, Some("tok_paid")).await;
                let seen = (status, &again["id"], text(&again["state"]));
                assert_eq!(seen, (StatusCode::OK, &booking["id"], "CONFIRMED"), "{again}");
                // The price it had, or another one: it is paid.
                let mut order = visitor.order(&hold, None);
                order["pay"]["total_minor"] = 1.into();
                let (status, again) = visitor.call(Method::POST, "/api/v1/bookings", order).await;
                assert_eq!((status, &again["id"]), (StatusCode::OK, &booking["id"]), "{again}");
            }
            ann.sees(seats[9] as usize, '2').await;
            until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
        }
        has_the_story_of_a_sale(&ann, &booking).await;
    }
    for query in ["SELECT count(*) FROM bookings", "SELECT count(*) FROM payments WHERE asks = 1"] {
        assert_eq!(world.count(query).await, 4, "{query}");
    }
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 40);
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_with_keys_of_their_own_are_one_sale() {
    tabs_are_one_sale(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_that_meet_in_one_batch_are_one_sale() {
    tabs_are_one_sale(&[GATHERING]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_that_are_committed_one_by_one_are_one_sale() {
    tabs_are_one_sale(&[("COMMITS", "interactive")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_checks_out_and_pays_in_two_steps_meets_one_that_does_both() {
    let world = World::start(2, &[]).await;
    for seat in 0..6 {
        let ann = world.visitor();
        let there = at_other(&world, &ann);
        let hold = held(&ann, &[seat]).await;
        let in_two_steps = async {
            let (status, booking) = there.book(&hold).await;
            // Over for them, if the other tab was that much faster.
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
        ann.sees_booking(&one.1, "CONFIRMED").await;
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 6);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'payment_submitted'").await, 6);
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_server_made_of_the_hold_is_what_is_sold() {
    let world = World::start(2, &[]).await;
    let ann = world.visitor();
    let there = at_other(&world, &ann);
    // This server granted seat 20, and the other one changes it for its neighbour, at the same price.
    let granted = held(&ann, &[20]).await;
    let (status, changed) = there.change(&granted, &[21], &[20]).await;
    assert_eq!((status, &changed["total"]), (StatusCode::OK, &granted["total"]), "{changed}");
    let (status, paid) = ann.buy(&changed, Some("tok_paid")).await;
    assert_eq!((status, text(&paid["state"])), (StatusCode::CREATED, "CONFIRMED"), "{paid}");
    assert_eq!(paid["seats"], changed["seats"], "not what it remembers");
    ann.sees(21, '2').await;
    ann.sees(20, '0').await;
    // The same with more seats, so the price is another; and kept longer.
    let bob = world.visitor();
    let there = at_other(&world, &bob);
    let granted = held(&bob, &[30]).await;
    let (_, changed) = there.change(&granted, &[31], &[]).await;
    let path = format!("/api/v1/shows/{}/holds/{}/extend", world.show, text(&granted["id"]));
    let (status, longer) = there.call(Method::POST, &path, Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{longer}");
    let (status, refused) = bob.buy(&granted, Some("tok_paid")).await;
    assert_eq!((status, text(&refused["code"])), (StatusCode::CONFLICT, "price_changed"), "{refused}");
    assert_eq!(bob.held().await["expires_at_ms"], longer["expires_at_ms"]);
    let (status, pending) = bob.buy(&changed, None).await;
    assert_eq!((status, &pending["seats"]), (StatusCode::CREATED, &changed["seats"]), "{pending}");
    assert!(pending["expires_at_ms"].as_i64() >= longer["expires_at_ms"].as_i64(), "{pending} {longer}");
    // Let go there, it is over here as well.
    let cem = world.visitor();
    let there = at_other(&world, &cem);
    let granted = held(&cem, &[40]).await;
    assert_eq!(there.let_go(&granted).await, StatusCode::NO_CONTENT);
    let (status, refused) = cem.buy(&granted, Some("tok_paid")).await;
    assert_eq!((status, text(&refused["code"])), (StatusCode::GONE, "hold_expired"), "{refused}");
    let (status, gone) = world.visitor().buy(&granted, Some("tok_paid")).await;
    assert_eq!((status, text(&gone["code"])), (StatusCode::GONE, "hold_expired"), "another's: {gone}");
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_would_rather_not_wait_is_told_where_to_ask() {
    let world = World::start(2, &[]).await;
    let ann = world.visitor();
    let there = at_other(&world, &ann);
    let order = ann.order(&held(&ann, &[1]).await, Some("tok_slow")).to_string();
    let accepted = post(&ann, "/api/v1/bookings", "buy", &order, &[("prefer", "respond-async")]).await;
    assert_eq!((accepted.status, accepted.json()), (StatusCode::ACCEPTED, json!({ "key": "buy", "state": "RUNNING" })));
    let location = accepted.header("location");
    assert_eq!(location, "/api/v1/requests/buy");
    let (waited, asked, asked_there) = tokio::join!(
        post(&ann, "/api/v1/bookings", "buy", &order, &[]),
        at_last(&ann, location),
        at_last(&there, location)
    );
    assert_eq!((waited.status, text(&waited.json()["state"])), (StatusCode::CREATED, "CONFIRMED"), "{waited:?}");
    assert_eq!((asked.what(), asked_there.what()), (waited.what(), waited.what()));
    // Whoever leaves is not waited for: the work goes on.
    let bob = world.visitor();
    let order = bob.order(&held(&bob, &[2]).await, Some("tok_slow"));
    let hasty = bob.client.post(format!("{}/api/v1/bookings", bob.base)).header("cookie", &bob.cookie);
    let hasty = hasty.header("idempotency-key", "buy").json(&order).timeout(Duration::from_millis(100));
    assert!(hasty.send().await.is_err_and(|error| error.is_timeout()), "he left");
    until("it is under way", || async { world.count("SELECT count(*) FROM payments").await == 2 }).await;
    let asked = at_last(&bob, "/api/v1/requests/buy").await;
    assert_eq!((asked.status, text(&asked.json()["state"])), (StatusCode::CREATED, "CONFIRMED"), "{asked:?}");
    // How it failed is told as well.
    let cem = world.visitor();
    let mut order = cem.order(&held(&cem, &[3]).await, Some("tok_slow"));
    order["pay"]["total_minor"] = 1.into();
    let refused = post(&cem, "/api/v1/bookings", "buy", &order.to_string(), &[("prefer", "respond-async")]).await;
    let refused = match refused.status {
        StatusCode::ACCEPTED => at_last(&cem, refused.header("location")).await,
        // It was quicker than the telling.
        _ => refused,
    };
    assert_eq!((refused.status, text(&refused.json()["code"])), (StatusCode::CONFLICT, "price_changed"));
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 2);
    world.end().await;
}
