//! What a batch takes to be as this replica wrote it last is found to be otherwise when it is written, and then read.

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::commits::{GATHERING, with_holds};
use crate::sale::deliver;
use crate::world::{PRICE, Visitor, World, text, until};

/// What the simulator says of a payment that succeeded.
fn news(booking: &Value, event: &str) -> Value {
    json!({
        "id": event, "type": "payment.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": PRICE, "currency": "EUR",
                     "status": "succeeded", "refunded_minor": 0 },
    })
}

/// Sold, and everything done that follows from it.
async fn sold(world: &World, count: u32) -> Vec<(Visitor, Value)> {
    let sold = with_holds(world, count).await.into_iter().map(|(visitor, hold)| async move {
        let (status, paid) = visitor.buy(&hold, Some("tok_paid")).await;
        assert_eq!((status, &paid["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{paid}");
        (visitor, paid)
    });
    let sold = join_all(sold).await;
    let all = i64::from(count);
    until("every webhook is heard", || async { world.count("SELECT count(*) FROM webhook_events").await == all }).await;
    sold
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_gateway_that_is_not_new_is_told_so_and_its_batch_stays_together() {
    let world = World::start(1, &[GATHERING]).await;
    let sold = sold(&world, 4).await;
    let before = world.count("SELECT count(*) FROM booking_events").await;
    for round in 0..2 {
        // One of them was heard before, from the second round on all of them were.
        let told = sold.iter().enumerate().map(|(number, (visitor, booking))| {
            let event = news(booking, &format!("evt_{}", if number == 0 { 0 } else { number + round * 10 }));
            async move { deliver(visitor, &event).await }
        });
        for (number, (status, outcome)) in join_all(told).await.into_iter().enumerate() {
            let expected = if number == 0 && round > 0 { "duplicate" } else { "ignored" };
            assert_eq!((status, text(&outcome["outcome"])), (StatusCode::OK, expected), "{round}, {number}");
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM webhook_events").await, 4 + 4 + 3);
    assert_eq!(world.count("SELECT count(*) FROM booking_events").await, before, "nothing happened twice");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_another_has_written_is_found_and_the_others_of_its_batch_are_sold() {
    let world = World::start(1, &[GATHERING]).await;
    let buyers = with_holds(&world, 3).await;
    // As another replica would have it, a moment ago and before anybody was told.
    let (first, hold) = &buyers[0];
    let secret = first.cookie.split_once('=').expect("a cookie").1;
    sqlx::query(
        "INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at)
         VALUES (left(encode(sha256($1::text::bytea), 'hex'), 32), 'buy', 'another', 'pending', now() + interval '1 minute')",
    )
    .bind(secret)
    .execute(&world.pg)
    .await
    .expect("the key is written");
    let orders = buyers.iter().map(|(buyer, hold)| {
        buyer.call_with_key(Method::POST, "/api/v1/bookings", buyer.order(hold, Some("tok_paid")), "buy")
    });
    for (number, (status, told)) in join_all(orders).await.into_iter().enumerate() {
        match number {
            0 => assert_eq!((status.as_u16(), &told["code"]), (422, &json!("key_reused")), "{told}"),
            _ => assert_eq!((status, &told["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{told}"),
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 2);
    let (status, paid) = first.buy(hold, Some("tok_paid")).await;
    assert_eq!((status, &paid["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{paid}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_booking_that_was_moved_by_another_is_read_again_before_it_moves() {
    let world = World::start(1, &[]).await;
    let ann = world.visitor();
    let (_, hold) = ann.hold(&[3]).await;
    let (_, pending) = ann.buy(&hold, None).await;
    assert_eq!(pending["state"], "PAYMENT_PENDING", "{pending}");
    // Another replica has given up on it since.
    let expired = "UPDATE bookings SET state = 'EXPIRED', version = version + 1;
                   INSERT INTO booking_events (booking_id, number, event, from_state, to_state, money, actor, reason, at)
                   SELECT id, version, 'timed_out', 'PAYMENT_PENDING', 'EXPIRED', money, 'reconciler', '', now() FROM bookings;
                   UPDATE seat_claims SET state = 'released'";
    sqlx::raw_sql(expired).execute(&world.pg).await.expect("it has moved on");
    let outcome = deliver(&ann, &news(&pending, "evt_late")).await;
    assert_eq!(outcome, (StatusCode::OK, json!({ "outcome": "applied" })));
    let seen = ann.booking(&pending).await;
    assert_eq!(seen["state"], "EXPIRED", "late money revives nothing: {seen}");
    until("the money is on its way", || async {
        matches!(ann.booking(&pending).await["money"].as_str(), Some("MOVED" | "REFUNDING" | "REFUNDED"))
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_postgres_ends_cost_nobody_a_sale() {
    let world = World::start(1, &[GATHERING]).await;
    let buyers = with_holds(&world, 4).await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let orders = buyers.iter().map(|(buyer, hold)| async {
        let order = buyer.order(hold, Some("tok_paid"));
        let told = std::sync::Mutex::new(Value::Null);
        let ask = || async {
            let order = order.clone();
            let (status, answer) = buyer.call_with_key(Method::POST, "/api/v1/bookings", order, "buy").await;
            let is_over = !status.is_server_error() && answer["code"] != "still_running";
            *told.lock().expect("nobody panicked") = answer;
            is_over
        };
        until("the order is answered", ask).await;
        told.into_inner().expect("nobody panicked")
    });
    let mut own = world.pg.acquire().await.expect("a connection");
    let ended = async {
        let mut ended = 0_i64;
        for _ in 0..5 {
            ended += sqlx::query_scalar::<_, i64>(end).fetch_one(&mut *own).await.expect("it is let");
        }
        assert!(ended > 0, "the server was connected");
    };
    let (told, ()) = tokio::join!(join_all(orders), ended);
    for answer in told {
        assert_eq!(answer["state"], "CONFIRMED", "{answer}");
    }
    let sales = "SELECT (SELECT count(*) FROM payments), (SELECT count(*) FROM tickets)";
    let sales: (i64, i64) = sqlx::query_as(sales).fetch_one(&mut *own).await.expect("they are counted");
    assert_eq!(sales, (4, 4));
    drop(own);
    world.end().await;
}
