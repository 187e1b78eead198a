//! Cancelled shows.

use reqwest::StatusCode;
use selling::bookings::{CallOffProgress, call_off, call_off_in, undo_batch};
use serde_json::{Value, json};
use sqlx::PgConnection;
use sqlx::postgres::PgQueryResult;

use crate::booking_totals::WAITING;
use crate::mailed_links::assert_mails_link_without_cookie;
use crate::sql_guards::{insert_booking, insert_payment};
use crate::world::{PRICE, TEST_TIMEOUT, World, assert_refused, expect_problem, text, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_show_refunds_everyone_in_full_in_any_state() {
    let world = World::start(2, &[]).await;
    let show = world.show.to_string();
    let (ann, ben, cem, dan, eva) =
        (world.visitor(), world.visitor_at(1), world.visitor(), world.visitor_at(1), world.visitor());
    let sold = ann.buy_seats(&[1, 2], "tok_paid").await;
    let part = ben.buy_seats(&[3, 4], "tok_paid").await;
    ben.cancel(&part, Some(&[3])).await;
    // One buyer is paying, one has checked out, and one has a hold.
    let (_, paying) = cem.check_out(&[5]).await;
    assert_eq!(cem.pay(&paying, None).await.1["state"], "PAYMENT_PENDING");
    let (_, locked) = dan.check_out(&[6]).await;
    eva.hold(&[7]).await;

    let (well, said) = world.command(&["cancel-show", &show, "--reason", "The projector is broken."]).await;
    assert!(well && said.contains("called off"), "{said}");
    assert_eq!(ann.wait_for_money(&sold, "REFUNDED").await["state"], "CANCELLED");
    assert_eq!(ann.booking(&sold).await["refunds"][0]["amount"]["minor"], 2 * PRICE);
    let seen = ben.wait_for_money(&part, "REFUNDED").await;
    assert_eq!(seen["refunds"][1]["amount"]["minor"], PRICE, "the rest is refunded in full: {seen}");
    assert_eq!(cem.wait_for_money(&paying, "FAILED").await["state"], "CANCELLED");
    dan.wait_for_booking(&locked, "CANCELLED").await;
    // No server grants or sells a seat of the show any more.
    for visitor in [&eva, &dan] {
        wait_until("holds are refused", || async { visitor.hold(&[8]).await.1["code"] == "sales_closed" }).await;
    }
    let query = "SELECT count(*) FROM show_cancellations WHERE finished_at IS NOT NULL";
    world.wait_for_count("every booking is cancelled", query, 1).await;
    let released = "SELECT count(*) FROM show_cancellations WHERE holds_released_at IS NOT NULL";
    assert_eq!(world.count(released).await, 1, "every hold is released in Redis");
    world.wait_until_books_balance().await;
    wait_until("the mails are sent", || async {
        world.mails().iter().filter(|mail| mail.contains("The projector is broken.")).count() >= 3
    })
    .await;
    assert_mails_link_without_cookie(&world);
    let (_, listed) = ann.get("/api/v1/shows?movie=tide").await;
    assert!(!listed.to_string().contains(&show), "the show is not listed: {listed}");
    // A second cancellation changes nothing.
    let (well, said) = world.command(&["cancel-show", &show, "--reason", "Again."]).await;
    assert!(well && said.contains("0 bookings undone"), "{said}");
    let (well, said) = world.command(&["cancel-show", &platform::ids::new_id().to_string(), "--reason", "None."]).await;
    assert!(!well && said.contains("no such show"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_show_is_listed_nowhere() {
    let world = World::start(2, &[]).await;
    let show = world.show;
    let (ann, ben) = (world.visitor(), world.visitor_at(1));
    let address = format!("/api/v1/shows/{show}");
    let (_, detail) = ann.get(&address).await;
    assert_eq!((text(&detail["status"]), text(&detail["availability"])), ("on_sale", "available"), "{detail}");
    assert_eq!(ann.get(&format!("{address}/best?count=2")).await.0, StatusCode::OK);
    ann.buy_seats(&[1, 2], "tok_paid").await;

    let (well, said) = world.command(&["cancel-show", &show.to_string(), "--reason", "The projector is broken."]).await;
    assert!(well, "{said}");
    for visitor in [&ann, &ben] {
        wait_until("the server reports the cancellation", || async {
            visitor.get(&address).await.1["status"] == "called_off"
        })
        .await;
        let (_, detail) = visitor.get(&address).await;
        assert_eq!((&detail["seats_left"], text(&detail["availability"])), (&json!(0), "sold_out"), "{detail}");
        expect_problem(visitor.get(&format!("{address}/best?count=2")).await, StatusCode::CONFLICT, "sales_closed");
        assert_eq!(visitor.seat_states().await, "3".repeat(300), "no seat is for sale");
        expect_problem(visitor.join_waiting_list(1).await, StatusCode::CONFLICT, "sales_closed");
        let page = visitor.client.get(format!("{}/shows/{show}", visitor.base)).header("cookie", &visitor.cookie);
        let page = page.send().await.expect("a page").text().await.expect("a text");
        assert!(page.contains("This show will not take place"), "{page}");
        assert!(page.contains("on its way back"), "the page explains the refund: {page}");
        assert!(!page.contains("seat-map"), "no map: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_server_takes_no_payment_and_any_server_finishes_the_cancellation() {
    let world = World::start(1, &[]).await;
    let (ann, ben) = (world.visitor(), world.visitor());
    let sold = ann.buy_seats(&[1], "tok_paid").await;
    let (_, booking) = ben.check_out(&[2]).await;
    // The cancelling process died at once: the show is marked, and no booking is cancelled.
    call_off(&world.pg, world.show, "Storm.", platform::clock::now()).await.expect("called off");
    let (status, refusal) = ben.pay(&booking, Some("tok_paid")).await;
    assert!(status == StatusCode::CONFLICT || status == StatusCode::GONE, "{status} {refusal}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "no other booking is charged");
    ann.wait_for_money(&sold, "REFUNDED").await;
    ben.wait_for_booking(&booking, "CANCELLED").await;
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bookings_are_cancelled_in_batches_once_by_concurrent_workers_after_a_crash() {
    let world = World::start(0, &[]).await;
    for _ in 0..130 {
        let booking = insert_booking(&world.pg, world.show, "CONFIRMED").await;
        insert_payment(&world.pg, booking, 0).await;
    }
    let now = platform::clock::now;
    assert!(call_off(&world.pg, world.show, "Storm.", now()).await.expect("called off"));
    assert!(!call_off(&world.pg, world.show, "Storm.", now()).await.expect("still called off"));
    assert_eq!(undo_batch(&world.pg, world.show, now()).await.expect("a batch"), CallOffProgress::Cancelled(64));
    // The first worker stops here, and three others continue.
    let rest = async || {
        let mut undone = 0;
        loop {
            match undo_batch(&world.pg, world.show, now()).await.expect("a batch") {
                CallOffProgress::Cancelled(count) => undone += count,
                CallOffProgress::Busy => tokio::task::yield_now().await,
                CallOffProgress::NoneLeft => return undone,
            }
        }
    };
    let (one, two, three) = tokio::join!(rest(), rest(), rest());
    assert_eq!(one + two + three, 66);
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'CANCELLED'").await, 130);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'cancelled_by_staff'").await, 130);
    assert_eq!(world.count("SELECT cancelled::bigint FROM show_cancellations").await, 130);
    assert_eq!(world.count("SELECT count(*) FROM outbox WHERE effect = 'refund'").await, 130);
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_after_the_cancellation_of_the_show_is_refunded() {
    let (world, ann) = World::with_visitor(&[]).await;
    let (_, booking) = ann.check_out(&[1]).await;
    let (_, pending) = ann.pay(&booking, None).await;
    // The gateway charges and cannot be voided; its webhook is late.
    let form = |card: &str| {
        let page = ann.client.post(text(&pending["pay_url"]));
        page.header("content-type", "application/x-www-form-urlencoded").body(format!("card={card}")).send()
    };
    form("late_webhook").await.expect("the gateway answers");
    call_off(&world.pg, world.show, "Storm.", platform::clock::now()).await.expect("called off");
    let seen = ann.wait_for_money(&booking, "REFUNDED").await;
    assert_eq!((&seen["state"], &seen["moved_to"]), (&json!("CANCELLED"), &Value::Null));
    world.wait_until_books_balance().await;
}

/// Inserts a booking without seats and money that starts its payment in the same transaction.
pub async fn insert_pending_payment(world: &World, tx: &mut PgConnection) -> Result<PgQueryResult, sqlx::Error> {
    sqlx::query(
        "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                               buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
         VALUES ($1, $1::text, $2, 'no-owner', $1, 1, 'PAYMENT_PENDING', 'PENDING', 0, 'EUR', '', '', '', '',
                 now() + interval '1 day', now(), now())",
    )
    .bind(platform::ids::new_id())
    .bind(world.show)
    .execute(tx)
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_concurrent_with_the_cancellation_is_refused_or_cancelled() {
    let world = World::start(0, &[]).await;
    let now = platform::clock::now;
    // Started before: the cancellation waits for the payment's transaction and then finds the booking.
    let mut buyer = world.pg.begin().await.expect("a transaction");
    insert_pending_payment(&world, &mut buyer).await.expect("the show is not cancelled");
    let (pg, show) = (world.pg.clone(), world.show);
    let called_off = tokio::spawn(async move { call_off(&pg, show, "Storm.", now()).await });
    world.wait_for_count("the cancellation waits for the lock", WAITING, 1).await;
    buyer.commit().await.expect("the payment has begun");
    assert!(called_off.await.expect("the task ends").expect("called off"));
    assert_eq!(undo_batch(&world.pg, show, now()).await.expect("a batch"), CallOffProgress::Cancelled(1));
    assert_eq!(undo_batch(&world.pg, show, now()).await.expect("a batch"), CallOffProgress::NoneLeft);

    // Started after: the payment waits for the cancelling transaction and is refused.
    world.execute("UPDATE shows SET called_off = false").await;
    let mut organiser = world.pg.begin().await.expect("a transaction");
    call_off_in(&mut organiser, show, "Storm.", now()).await.expect("called off");
    let begun = async {
        let mut buyer = world.pg.acquire().await.expect("a connection");
        insert_pending_payment(&world, &mut buyer).await
    };
    let marked = async {
        world.wait_for_count("the payment waits for the lock", WAITING, 1).await;
        organiser.commit().await.expect("the show is cancelled");
    };
    let (begun, ()) = tokio::join!(begun, marked);
    assert_refused("the show is cancelled", begun, "RL001", "was called off");
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE is_open").await, 0, "no booking has escaped");
}

/// As during a continuous sale: a transaction with a booking of the show is always open.
#[tokio::test(flavor = "multi_thread")]
async fn show_is_cancelled_during_continuous_sales_and_no_booking_escapes() {
    let world = World::start(0, &[]).await;
    let now = platform::clock::now;
    let mut buyer = world.pg.begin().await.expect("a transaction");
    insert_pending_payment(&world, &mut buyer).await.expect("the show is not cancelled");
    // The cancellation does not wait forever, and sales end.
    let called_off = call_off(&world.pg, world.show, "Storm.", now());
    let called_off = tokio::time::timeout(TEST_TIMEOUT, called_off).await.expect("the cancellation ends in time");
    assert!(called_off.expect("called off"));
    let begun = insert_pending_payment(&world, &mut world.pg.acquire().await.expect("a connection")).await;
    assert_refused("the show is cancelled", begun, "RL001", "was called off");
    // No batch reports that nothing is left while a booking is being written.
    assert_eq!(undo_batch(&world.pg, world.show, now()).await.expect("a batch"), CallOffProgress::Busy);
    buyer.commit().await.expect("the payment has begun");
    assert_eq!(undo_batch(&world.pg, world.show, now()).await.expect("a batch"), CallOffProgress::Cancelled(1));
    assert_eq!(undo_batch(&world.pg, world.show, now()).await.expect("a batch"), CallOffProgress::NoneLeft);
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_settled_after_the_cancelled_show_was_finished_is_refunded() {
    let world = World::start(1, &[]).await;
    let (ann, eva) = (world.visitor(), world.visitor());
    let (_, booking) = ann.check_out(&[1]).await;
    let (_, pending) = ann.pay(&booking, None).await;
    assert_eq!(pending["state"], "PAYMENT_PENDING", "{pending}");
    // As if this booking had been missed: the show is cancelled and finished, and the booking remains.
    for statement in [
        "UPDATE shows SET called_off = true",
        "INSERT INTO show_cancellations (show_id, reason, requested_at, holds_released_at, finished_at)
         SELECT id, 'Storm.', now(), now(), now() FROM shows",
    ] {
        world.execute(statement).await;
    }
    wait_until("the server sees the cancellation", || async { eva.hold(&[8]).await.1["code"] == "sales_closed" }).await;
    let page = ann.client.post(text(&pending["pay_url"]));
    let form = page.header("content-type", "application/x-www-form-urlencoded").body("card=paid");
    form.send().await.expect("the gateway answers");
    let seen = ann.wait_for_money(&booking, "REFUNDED").await;
    assert_eq!(seen["state"], "CANCELLED", "{seen}");
    assert_eq!(seen["refunds"][0]["amount"]["minor"], PRICE, "the full price is refunded: {seen}");
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 0);
}
