//! A replica caches the bookings it created. Changes at another replica still count. One that loads a show for the first
//! time compares the map with the sold claims.

use domain::seats::SeatState;
use seats::seat_locks::Keys;

use crate::prelude::*;
use crate::replicas::Replica;

/// A visitor with a booking of seat 1, created at the first replica, and the same visitor at the second.
async fn check_out(world: &World) -> (Visitor, Visitor, Value, Value) {
    let here = world.visitor_at(0);
    let there = Visitor { base: world.visitor_at(1).base, ..here.clone() };
    let (hold, booking) = here.check_out(&[1]).await;
    (here, there, hold, booking)
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_uses_the_latest_checkout_of_another_replica() {
    let world = World::start(2, &[]).await;
    let (here, there, hold, booking) = check_out(&world).await;
    expect_answer(there.change(&hold, &[2], &[]).await, StatusCode::OK);
    let (status, agreed) = there.book(&hold).await;
    assert_eq!((status, &agreed["id"]), (StatusCode::CREATED, &booking["id"]), "{agreed}");
    assert_ne!(agreed["total"], booking["total"]);
    let paid = expect_state(here.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    assert_eq!((&paid["seats"], &paid["total"]), (&agreed["seats"], &agreed["total"]));
    assert_eq!(world.count("SELECT sum(amount_minor)::bigint FROM payments").await, agreed["total"]["minor"]);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_uses_names_changed_at_another_replica() {
    let world = World::start(2, &[]).await;
    let (here, there, hold, booking) = check_out(&world).await;
    let buyer = json!({ "name": "Ann Another", "email": "another@example.org" });
    let body = json!({ "show": world.show, "hold": hold["id"], "buyer": buyer });
    let (status, agreed) = there.call(Method::POST, "/api/v1/bookings", body).await;
    assert_eq!((status, &agreed["id"]), (StatusCode::CREATED, &booking["id"]), "{agreed}");
    let paid = expect_state(here.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    assert_eq!(paid["buyer"], buyer);
}

#[tokio::test(flavor = "multi_thread")]
async fn extension_is_replayed_at_another_replica_even_after_the_booking_ended() {
    let world = World::start(3, &[]).await;
    let (here, there, hold, booking) = check_out(&world).await;
    let path = format!("/api/v1/shows/{}/holds/{}/extend", world.show, text(&hold["id"]));
    let longer = here.raw(Method::POST, &path, Value::Null, "longer").await;
    assert_eq!(longer.0, StatusCode::OK, "{longer:?}");
    assert_eq!(there.raw(Method::POST, &path, Value::Null, "longer").await, longer);
    let kept = "SELECT count(*) FROM booking_events WHERE event = 'kept_longer'";
    assert_eq!(world.count(kept).await, 1, "once, though both replicas got the request");
    let expire = "UPDATE bookings SET state = 'EXPIRED', version = version + 1 WHERE id = $1::uuid";
    world.run(sqlx::query(expire).bind(text(&booking["id"]))).await;
    let elsewhere = Visitor { base: world.visitor_at(2).base, ..here.clone() };
    assert_eq!(elsewhere.raw(Method::POST, &path, Value::Null, "longer").await, longer);
}

#[tokio::test(flavor = "multi_thread")]
async fn second_checkout_does_not_shorten_a_booking_extended_meanwhile() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (hold, booking) = ann.check_out(&[1]).await;
    // As if the hold had been extended just after the second checkout read its expiry.
    let longer = "UPDATE bookings SET expires_at = expires_at + interval '1 minute', version = version + 1";
    world.execute(longer).await;
    let (status, again) = ann.book(&hold).await;
    assert_eq!((status, &again["id"]), (StatusCode::CREATED, &booking["id"]), "{again}");
    let ends = |booking: &Value| booking["expires_at_ms"].as_i64().expect("milliseconds");
    assert_eq!(ends(&again), ends(&booking) + 60_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_paid_or_cancelled_at_another_replica_is_not_paid_again() {
    let world = World::start(2, &[]).await;
    let (here, there, _, booking) = check_out(&world).await;
    let paid = expect_state(there.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    let (status, again) = here.pay(&booking, Some("tok_paid")).await;
    assert_eq!((status, &again["state"], &again["id"]), (StatusCode::OK, &paid["state"], &paid["id"]), "{again}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1);

    let (_, booking) = here.check_out(&[7]).await;
    expect_state(there.pay(&booking, Some("tok_declined")).await, StatusCode::OK, "CANCELLED");
    expect_problem(here.pay(&booking, Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn guest_cookie_cannot_pay_once_an_account_owns_the_visitor() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, booking) = ann.check_out(&[1]).await;
    let handed_over = "INSERT INTO accounts (id, email, name, password_hash, created_at, updated_at)
                       VALUES (gen_random_uuid(), 'ann@example.org', 'Ann', 'none', now(), now());
                       INSERT INTO account_visitors (owner, account_id, joined_at)
                       SELECT bookings.owner, accounts.id, now() FROM bookings, accounts";
    sqlx::raw_sql(handed_over).execute(&world.pg).await.expect("the visitor belongs to an account");
    expect_problem(ann.pay(&booking, Some("tok_paid")).await, StatusCode::NOT_FOUND, "not_found");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'SEATS_LOCKED'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sales_lost_by_redis_are_restored_by_the_next_replica() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, booking) = ann.check_out(&[7, 8, 9]).await;
    expect_state(ann.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    ann.wait_for_seat(7, '2').await;
    ann.wait_for_seat(9, '2').await;

    // As after a restart from an older snapshot: one sold seat is free again, and one is held by another.
    let [map, _, _, _, sold, ..] = &Keys::of(world.setting("REDIS_PREFIX"), world.show).0;
    let mut redis = world.redis().await;
    for (seat, state) in [(7, SeatState::Available), (8, SeatState::Locked)] {
        let forgot = redis::cmd("SETRANGE").arg(map).arg(seat).arg(&[state as u8]).query_async::<()>(&mut redis).await;
        forgot.expect("the map is changed");
        redis::cmd("HDEL").arg(sold).arg(seat).query_async::<()>(&mut redis).await.expect("the sale is forgotten");
    }
    let next = Replica::new(&world, &[]);
    next.start().await;
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let seats = format!("{}/api/v1/shows/{}/seats", next.url, world.show);
    wait_until("the map shows what is sold", || async {
        client.get(&seats).send().await.expect("the replica answers");
        let bytes: Vec<u8> = redis::cmd("GETRANGE")
            .arg(map)
            .arg(7)
            .arg(9)
            .query_async(&mut redis.clone())
            .await
            .expect("the map is read");
        bytes == [SeatState::Booked as u8; 3]
    })
    .await;
    next.kill().await;
    world.end().await;
}
