//! The commit pipeline: many sales in one transaction, isolated failures, and rows that another replica, or an earlier
//! request, wrote before the batch.

use tokio::task::JoinHandle;

use crate::booking_totals::WAITING;
use crate::prelude::*;
use crate::sale::deliver;

/// Gather time of a batch: requests sent together are committed together.
pub const SLOW_GATHER: (&str, &str) = ("COMMIT_GATHER_MS", "300");
/// No gather time: a request that arrives alone is a batch of one.
pub const NO_GATHER: (&str, &str) = ("COMMIT_GATHER_MS", "0");

pub async fn with_holds(world: &World, count: u32) -> Vec<(Visitor, Value)> {
    join_all((0..count).map(|seat| async move {
        let visitor = world.visitor();
        let hold = expect_answer(visitor.hold(&[seat]).await, StatusCode::CREATED);
        (visitor, hold)
    }))
    .await
}

async fn with_bookings(world: &World, count: u32) -> Vec<(Visitor, Value)> {
    join_all(with_holds(world, count).await.into_iter().map(|(visitor, hold)| async move {
        let booking = expect_answer(visitor.book(&hold).await, StatusCode::CREATED);
        (visitor, booking)
    }))
    .await
}

fn pay_concurrently(buyers: &[(Visitor, Value)]) -> Vec<JoinHandle<JsonAnswer>> {
    let pay = |(visitor, booking): (Visitor, Value)| async move { visitor.pay(&booking, Some("tok_paid")).await };
    buyers.iter().cloned().map(|buyer| tokio::spawn(pay(buyer))).collect()
}

async fn assert_all_sold(payments: Vec<JoinHandle<JsonAnswer>>) {
    for payment in payments {
        expect_state(payment.await.expect("the task ends"), StatusCode::OK, "CONFIRMED");
    }
}

pub const SUBMISSIONS: &str = "SELECT count(DISTINCT xmin::text) FROM booking_events WHERE event = 'payment_submitted'";
const TRANSACTIONS: &str = "SELECT count(DISTINCT xmin::text) FROM bookings";

/// Counts the tickets that the relay takes to mail them.
const COUNT_TICKETS_OF_THE_RELAY: &str = "
    CREATE SEQUENCE taken;
    CREATE FUNCTION count_taken() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM nextval('taken'); RETURN NEW; END $$;
    CREATE TRIGGER count_taken BEFORE UPDATE OF attempts ON outbox
    FOR EACH ROW WHEN (NEW.effect = 'send_ticket') EXECUTE FUNCTION count_taken()";
const TICKETS_OF_THE_RELAY: &str = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM taken";
/// Records the effects that each statement deletes from the outbox.
const RECORD_DONE_EFFECTS: &str = "
    CREATE TABLE done (effects text[] NOT NULL);
    CREATE FUNCTION note_done() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO done SELECT array_agg(DISTINCT effect ORDER BY effect) FROM taken_off HAVING count(*) > 0; RETURN NULL; END $$;
    CREATE TRIGGER note_done AFTER DELETE ON outbox REFERENCING OLD TABLE AS taken_off
    FOR EACH STATEMENT EXECUTE FUNCTION note_done()";

async fn run(world: &World, statement: &'static str) {
    sqlx::raw_sql(statement).execute(&world.pg).await.expect("the statement is run");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_payments_share_transactions_and_are_the_same_sales() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let buyers = with_bookings(&world, 12).await;
    assert!(world.count(TRANSACTIONS).await < 12, "several bookings share a transaction");
    run(&world, COUNT_TICKETS_OF_THE_RELAY).await;
    run(&world, RECORD_DONE_EFFECTS).await;
    let paid = join_all(buyers.iter().map(|(visitor, booking)| visitor.pay(booking, Some("tok_paid")))).await;
    for ((visitor, booking), (status, paid)) in buyers.iter().zip(paid) {
        assert_eq!((status, &paid["state"], &paid["money"]), (StatusCode::OK, &json!("CONFIRMED"), &json!("PAID")));
        assert_eq!((&paid["id"], &paid["seats"]), (&booking["id"], &booking["seats"]));
        assert_eq!(paid["total"], booking["total"]);
        let (_, events) = visitor.get(&format!("/api/v1/bookings/{}/events", text(&booking["id"]))).await;
        let events = events.as_array().expect("a list").iter();
        let steps: Vec<_> =
            events.map(|event| (text(&event["event"]).to_owned(), text(&event["actor"]).to_owned())).collect();
        let expected = [
            ("created", "buyer"),
            ("hold_taken", "system"),
            ("payment_submitted", "buyer"),
            ("payment_succeeded", "gateway"),
            ("seats_sold", "system"),
        ];
        assert_eq!(steps, expected.map(|(event, actor)| (event.to_owned(), actor.to_owned())));
    }
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 12);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 12);
    world.wait_for_empty_outbox().await;
    wait_until("each has a mail", || async { world.mails().len() == 12 }).await;
    assert!(world.count(TICKETS_OF_THE_RELAY).await < 12, "the relay takes only late tickets");
    let at_once = "SELECT count(*) FROM done WHERE effects = '{mark_booked,send_ticket}'";
    assert!(world.count(at_once).await > 0, "the mailing statement also marks the map effect done");
    let states = world.visitor().seat_states().await;
    assert_eq!(states.matches('2').count(), 12, "{states}");
    // The webhooks arrive too, and change nothing.
    world.wait_for_count("every webhook is stored", "SELECT count(*) FROM webhook_events", 12).await;
    assert_eq!(world.count("SELECT count(*) FROM booking_events").await, 12 * 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_steps_for_one_booking_in_one_batch_are_one_payment() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let buyers = with_bookings(&world, 1).await;
    let (ann, booking) = &buyers[0];
    let (one, other) = tokio::join!(ann.pay(booking, Some("tok_paid")), ann.pay(booking, Some("tok_paid")));
    assert_eq!((one.0, other.0), (StatusCode::OK, StatusCode::OK), "{} {}", one.1, other.1);
    ann.wait_for_booking(booking, "CONFIRMED").await;
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'payment_submitted'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn same_key_and_same_hold_twice_in_one_batch_are_one_booking() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let holders = with_holds(&world, 1).await;
    let (ann, hold) = &holders[0];
    let body = ann.checkout_body(hold);
    let send = |key: &'static str| ann.raw(Method::POST, "/api/v1/bookings", body.clone(), key);
    let (first, second, other) = tokio::join!(send("once"), send("once"), send("another-tab"));
    assert_eq!((first.0, other.0), (StatusCode::CREATED, StatusCode::CREATED), "{} {}", first.1, other.1);
    assert_eq!(first, second, "byte for byte");
    let id = |answer: &str| serde_json::from_str::<Value>(answer).expect("JSON")["id"].clone();
    assert_eq!(id(&first.1), id(&other.1));
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 1);
    // Long after the sale, the key's answer is still replayed.
    let booking = serde_json::from_str(&first.1).expect("JSON");
    ann.pay(&booking, Some("tok_paid")).await;
    ann.wait_for_seat(0, '2').await;
    assert_eq!(send("once").await, first);
    let reused = ann.raw(
        Method::POST,
        "/api/v1/bookings",
        json!({ "show": world.show, "hold": hold["id"],
        "buyer": { "name": "Another", "email": "ann@example.org" } }),
        "once",
    );
    assert_eq!(reused.await.0, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_step_does_not_fail_its_batch() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let holders = with_holds(&world, 8).await;
    // A row that cannot be written, whatever the cause.
    run(
        &world,
        "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF NEW.buyer_name = 'Spoiler' THEN RAISE EXCEPTION 'no' USING ERRCODE = 'check_violation'; END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER spoil BEFORE INSERT ON bookings FOR EACH ROW EXECUTE FUNCTION spoil();",
    )
    .await;
    let booked = join_all(holders.iter().enumerate().map(|(place, (visitor, hold))| {
        let name = if place == 3 { "Spoiler" } else { "Ann Example" };
        let body =
            json!({ "show": world.show, "hold": hold["id"], "buyer": { "name": name, "email": "a@example.org" } });
        visitor.call(Method::POST, "/api/v1/bookings", body)
    }))
    .await;
    for (place, (status, answer)) in booked.iter().enumerate() {
        let expected = if place == 3 { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::CREATED };
        assert_eq!(*status, expected, "{answer}");
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'SEATS_LOCKED'").await, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_row_switches_the_batch_to_checked_inserts_and_keeps_it_together() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let holders = with_holds(&world, 12).await;
    // One key has expired and is not deleted yet.
    let secret = holders[4].0.cookie.split_once('=').expect("a cookie").1;
    let sql = "INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at)
         VALUES (left(encode(sha256($1::text::bytea), 'hex'), 32), 'once', '', 'pending', now() - interval '1 day')";
    world.run(sqlx::query(sql).bind(secret)).await;
    let path = "/api/v1/bookings";
    let booked =
        holders.iter().map(|(ann, hold)| ann.call_with_key(Method::POST, path, ann.checkout_body(hold), "once"));
    for (status, booking) in join_all(booked).await {
        assert_eq!(status, StatusCode::CREATED, "{booking}");
    }
    assert!(world.count(TRANSACTIONS).await < 12, "several bookings share a transaction");
    let stored = "SELECT count(*) FROM idempotency_keys WHERE key = 'once' AND state = 'completed'";
    assert_eq!(world.count(stored).await, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_claim_fails_only_its_own_buyer() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let (eve, buyers) = (world.visitor(), with_bookings(&world, 6).await);
    let (_, hers) = eve.check_out(&[200]).await;
    // Seat 2 is sold in Postgres, and Redis has lost it.
    let sql = "INSERT INTO seat_claims (show_id, seat_no, booking_id, fence, state, expires_at)
         VALUES ($1, 2, $2::uuid, 9000000000000000, 'sold', now())";
    world.run(sqlx::query(sql).bind(world.show).bind(text(&hers["id"]))).await;
    let paid = join_all(buyers.iter().map(|(visitor, booking)| visitor.pay(booking, Some("tok_paid")))).await;
    for (place, (status, answer)) in paid.iter().enumerate() {
        if place == 2 {
            assert_eq!((*status, text(&answer["code"])), (StatusCode::CONFLICT, "seats_taken"), "{answer}");
            assert_eq!(answer["seats"][0]["seat"], 2);
        } else {
            assert_eq!((*status, &answer["state"]), (StatusCode::OK, &json!("CONFIRMED")), "{answer}");
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 5, "a buyer whose seat is taken is not charged");
    // The claim that the test inserts belongs to a booking that is not sold.
    world.end_with_known_findings(&["seat 2 is sold by"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claim_lost_before_the_charge_succeeds_refunds_only_that_payment() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let buyers = with_bookings(&world, 4).await;
    // Seat 1 is lost between the submission and the charge.
    run(
        &world,
        "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             UPDATE seat_claims SET state = 'released' WHERE booking_id = NEW.booking_id AND seat_no = 1;
             RETURN NEW;
         END $$;
         CREATE TRIGGER lose AFTER INSERT ON payments FOR EACH ROW EXECUTE FUNCTION lose();",
    )
    .await;
    let paid = join_all(buyers.iter().map(|(visitor, booking)| visitor.pay(booking, Some("tok_paid")))).await;
    for (place, (status, answer)) in paid.iter().enumerate() {
        let state = if place == 1 { "CANCELLED" } else { "CONFIRMED" };
        assert_eq!((*status, text(&answer["state"])), (StatusCode::OK, state), "{answer}");
    }
    let money = || async { text(&buyers[1].0.booking(&buyers[1].1).await["money"]).to_owned() };
    wait_until("the money is refunded", || async { money().await == "REFUNDED" }).await;
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_queue_is_refused_and_the_same_key_can_be_retried() {
    let world = World::start(1, &[("COMMIT_QUEUE", "2")]).await;
    let holders = with_holds(&world, 8).await;
    // Bookings cannot be written; owners can be read.
    let mut blocker = world.pg.begin().await.expect("a transaction");
    sqlx::query("LOCK TABLE bookings IN EXCLUSIVE MODE").execute(&mut *blocker).await.expect("the table is locked");
    let sent = holders.iter().map(|(visitor, hold)| {
        let (body, visitor) = (visitor.checkout_body(hold), visitor.clone());
        tokio::spawn(async move {
            let request = visitor.request(Method::POST, "/api/v1/bookings").header("idempotency-key", "k");
            RawAnswer::of(request.json(&body)).await
        })
    });
    let sent: Vec<_> = sent.collect();
    wait_until("six of eight are answered", || async {
        sent.iter().filter(|request| request.is_finished()).count() == 6
    })
    .await;
    blocker.rollback().await.expect("the lock is released");
    let mut refused = 0;
    for request in sent {
        let answer = request.await.expect("the task ends");
        if answer.status == StatusCode::SERVICE_UNAVAILABLE {
            refused += 1;
            assert_eq!(text(&answer.json()["code"]), "overloaded");
            assert!(answer.header("retry-after").parse::<u32>().is_ok(), "{answer:?}");
        } else {
            assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        }
    }
    assert_eq!(refused, 6);
    for (visitor, hold) in &holders {
        let body = visitor.checkout_body(hold);
        expect_answer(visitor.call_with_key(Method::POST, "/api/v1/bookings", body, "k").await, StatusCode::CREATED);
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 8);
}

/// Fails the first four payments that are written: two deadlocks, then two serialisation failures. No rollback resets
/// the sequence.
const FAIL_FOUR_PAYMENTS: &str = "
    CREATE SEQUENCE tries;
    CREATE FUNCTION give_way() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE try bigint := nextval('tries'); BEGIN
        IF try <= 2 THEN RAISE EXCEPTION 'a deadlock' USING ERRCODE = '40P01'; END IF;
        IF try <= 4 THEN RAISE EXCEPTION 'a conflict' USING ERRCODE = '40001'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER give_way BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION give_way()";

#[tokio::test(flavor = "multi_thread")]
async fn deadlocks_and_serialisation_failures_of_a_batch_are_retried() {
    let world = World::start(1, &[]).await;
    let buyers = with_bookings(&world, 1).await;
    run(&world, FAIL_FOUR_PAYMENTS).await;
    let (ann, booking) = &buyers[0];
    expect_state(ann.pay(booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    assert_eq!(world.count("SELECT last_value FROM tries").await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlocks_and_serialisation_failures_outside_a_batch_are_retried() {
    let world = World::start(1, &[]).await;
    world.open_floor(5).await;
    let ann = world.visitor();
    // Places of an area need a separate transaction.
    let (_, hold) = ann.hold_places(2).await;
    run(&world, FAIL_FOUR_PAYMENTS).await;
    expect_state(ann.buy(&hold, Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
    assert_eq!(world.count("SELECT last_value FROM tries").await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_booking_delays_the_others_only_briefly() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let buyers = with_bookings(&world, 9).await;
    let keeper = world.lock_booking(text(&buyers[0].1["id"])).await;
    let payments = pay_concurrently(&buyers);
    let others = || async { payments[1..].iter().all(JoinHandle::is_finished) };
    let soon = tokio::time::timeout(Duration::from_secs(8), wait_until("the others have paid", others)).await;
    assert!(soon.is_ok() && !payments[0].is_finished());
    assert!(world.count(SUBMISSIONS).await < 8, "the others were batched");
    keeper.rollback().await.expect("the lock is released");
    assert_all_sold(payments).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_changed_during_its_batch_is_replanned_with_the_batch() {
    let world = World::start(1, &[SLOW_GATHER]).await;
    let buyers = with_bookings(&world, 3).await;
    let mut mover = world.pg.begin().await.expect("a transaction");
    for statement in [
        "UPDATE bookings SET version = version + 1 WHERE id = $1::uuid",
        "INSERT INTO booking_events (booking_id, number, event, from_state, to_state, money, actor, reason, at)
         SELECT id, version, 'kept_longer', state, state, money, 'buyer', 'Another window.', now()
         FROM bookings WHERE id = $1::uuid",
    ] {
        sqlx::query(statement).bind(text(&buyers[0].1["id"])).execute(&mut *mover).await.expect("the booking changes");
    }
    let payments = pay_concurrently(&buyers);
    world.wait_for_count("the batch waits to write", WAITING, 1).await;
    mover.commit().await.expect("the change is committed");
    assert_all_sold(payments).await;
    assert_eq!(world.count(SUBMISSIONS).await, 2, "the other two share a transaction");
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_of_one_are_the_same_sales() {
    let world = World::start(1, &[NO_GATHER]).await;
    let mut buyers = Vec::new();
    for (visitor, hold) in with_holds(&world, 5).await {
        let booking = expect_answer(visitor.book(&hold).await, StatusCode::CREATED);
        buyers.push((visitor, booking));
    }
    assert_eq!(world.count(TRANSACTIONS).await, 5);
    for ((visitor, booking), token) in
        buyers.iter().zip(["tok_paid", "tok_declined", "tok_pending_paid", "tok_paid", "tok_paid"])
    {
        expect_answer(visitor.pay(booking, Some(token)).await, StatusCode::OK);
        let state = if token == "tok_declined" { "CANCELLED" } else { "CONFIRMED" };
        visitor.wait_for_booking(booking, state).await;
    }
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 4);
    world.wait_for_empty_outbox().await;
}

fn success_event(booking: &Value, event: &str) -> Value {
    json!({
        "id": event, "type": "payment.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": PRICE, "currency": "EUR",
                     "status": "succeeded", "refunded_minor": 0 },
    })
}

async fn sell_and_settle(world: &World, count: u32) -> Vec<(Visitor, Value)> {
    let sold = with_holds(world, count).await.into_iter().map(|(visitor, hold)| async move {
        let paid = expect_state(visitor.buy(&hold, Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
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
    let sql = "INSERT INTO idempotency_keys (owner, key, request_hash, state, expires_at)
         VALUES (left(encode(sha256($1::text::bytea), 'hex'), 32), 'buy', 'another', 'pending', now() + interval '1 minute')";
    world.run(sqlx::query(sql).bind(secret)).await;
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
    expect_state(first.buy(hold, Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_changed_by_another_replica_is_read_before_its_transition() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, hold) = ann.hold(&[3]).await;
    let pending = expect_state(ann.buy(&hold, None).await, StatusCode::CREATED, "PAYMENT_PENDING");
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
