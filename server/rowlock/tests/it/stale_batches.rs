//! Rows of a batch that another replica, or an earlier request, wrote before it.

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::commits::{SLOW_GATHER, with_holds};
use crate::sale::deliver;
use crate::world::{PRICE, Visitor, World, text, wait_until};

/// Webhook of the simulator for a successful payment.
fn success_event(booking: &Value, event: &str) -> Value {
    json!({
        "id": event, "type": "payment.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": PRICE, "currency": "EUR",
                     "status": "succeeded", "refunded_minor": 0 },
    })
}

/// Sells seats and waits until all effects are done.
async fn sell_and_settle(world: &World, count: u32) -> Vec<(Visitor, Value)> {
    let sold = with_holds(world, count).await.into_iter().map(|(visitor, hold)| async move {
        let (status, paid) = visitor.buy(&hold, Some("tok_paid")).await;
        assert_eq!((status, &paid["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{paid}");
        (visitor, paid)
    });
    let sold = join_all(sold).await;
    let all = i64::from(count);
    world.wait_for_count("every webhook is stored", "SELECT count(*) FROM webhook_events", all).await;
    sold
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_event_is_reported_and_keeps_its_batch_together() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let sold = sell_and_settle(&world, 4).await;
    let before = world.count("SELECT count(*) FROM booking_events").await;
    for round in 0..2 {
        // One of the events is a duplicate; from the second round on all are.
        let answers = sold.iter().enumerate().map(|(number, (visitor, booking))| {
            let event = success_event(booking, &format!("evt_{}", if number == 0 { 0 } else { number + round * 10 }));
            async move { deliver(visitor, &event).await }
        });
        for (number, (status, outcome)) in join_all(answers).await.into_iter().enumerate() {
            let expected = if number == 0 && round > 0 { "duplicate" } else { "ignored" };
            assert_eq!((status, text(&outcome["outcome"])), (StatusCode::OK, expected), "{round}, {number}");
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM webhook_events").await, 4 + 4 + 3);
    assert_eq!(world.count("SELECT count(*) FROM booking_events").await, before, "no effect is repeated");
}

#[tokio::test(flavor = "multi_thread")]
async fn key_written_by_another_replica_is_found_and_its_batch_is_sold() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let buyers = with_holds(&world, 3).await;
    // State after another replica claimed the key, before any message arrived.
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
        buyer.call_with_key(Method::POST, "/api/v1/bookings", buyer.purchase_body(hold, Some("tok_paid")), "buy")
    });
    for (number, (status, answers)) in join_all(orders).await.into_iter().enumerate() {
        match number {
            0 => assert_eq!((status.as_u16(), &answers["code"]), (422, &json!("key_reused")), "{answers}"),
            _ => assert_eq!((status, &answers["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{answers}"),
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 2);
    let (status, paid) = first.buy(hold, Some("tok_paid")).await;
    assert_eq!((status, &paid["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{paid}");
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_changed_by_another_replica_is_read_before_its_transition() {
    let (world, ann) = World::with_visitor(&[]).await;
    let (_, hold) = ann.hold(&[3]).await;
    let (_, pending) = ann.buy(&hold, None).await;
    assert_eq!(pending["state"], "PAYMENT_PENDING", "{pending}");
    // Another replica has expired it since.
    let expired = "UPDATE bookings SET state = 'EXPIRED', version = version + 1;
                   INSERT INTO booking_events (booking_id, number, event, from_state, to_state, money, actor, reason, at)
                   SELECT id, version, 'timed_out', 'PAYMENT_PENDING', 'EXPIRED', money, 'reconciler', '', now() FROM bookings;
                   UPDATE seat_claims SET state = 'released'";
    sqlx::raw_sql(expired).execute(&world.pg).await.expect("the booking is changed");
    let outcome = deliver(&ann, &success_event(&pending, "evt_late")).await;
    assert_eq!(outcome, (StatusCode::OK, json!({ "outcome": "applied" })));
    let seen = ann.booking(&pending).await;
    assert_eq!(seen["state"], "EXPIRED", "the expired booking stays expired: {seen}");
    wait_until("the refund is requested", || async {
        matches!(ann.booking(&pending).await["money"].as_str(), Some("MOVED" | "REFUNDING" | "REFUNDED"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_closed_by_postgres_cost_no_sale() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let buyers = with_holds(&world, 4).await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let orders = buyers.iter().map(|(buyer, hold)| async {
        let order = buyer.purchase_body(hold, Some("tok_paid"));
        let answers = std::sync::Mutex::new(Value::Null);
        let ask = || async {
            let order = order.clone();
            let (status, answer) = buyer.call_with_key(Method::POST, "/api/v1/bookings", order, "buy").await;
            let is_over = !status.is_server_error() && answer["code"] != "still_running";
            *answers.lock().expect("no panic") = answer;
            is_over
        };
        wait_until("the order is answered", ask).await;
        answers.into_inner().expect("no panic")
    });
    let mut own = world.pg.acquire().await.expect("a connection");
    let ended = async {
        let mut ended = 0_i64;
        for _ in 0..5 {
            ended += sqlx::query_scalar::<_, i64>(end).fetch_one(&mut *own).await.expect("connections are closed");
        }
        assert!(ended > 0, "the server was connected");
    };
    let (answers, ()) = tokio::join!(join_all(orders), ended);
    for answer in answers {
        assert_eq!(answer["state"], "CONFIRMED", "{answer}");
    }
    let sales = "SELECT (SELECT count(*) FROM payments), (SELECT count(*) FROM tickets)";
    let sales: (i64, i64) = sqlx::query_as(sales).fetch_one(&mut *own).await.expect("sales are counted");
    assert_eq!(sales, (4, 4));
    drop(own);
}
