//! A show that will not take place.

use reqwest::StatusCode;
use selling::bookings::{Batch, call_off, call_off_in, undo_batch};
use serde_json::{Value, json};
use sqlx::PgConnection;
use sqlx::postgres::PgQueryResult;

use crate::by_mail::addresses_open_without_a_cookie;
use crate::cancel::books_balance;
use crate::sql_guards::{booking_in, pay_for};
use crate::totals::WAITING;
use crate::world::{PATIENCE, PRICE, World, refused_with, text, until};

#[tokio::test(flavor = "multi_thread")]
async fn everyone_gets_all_of_it_back_whatever_they_were_doing() {
    let world = World::start(2, &[]).await;
    let show = world.show.to_string();
    let (ann, ben, cem, dan, eva) =
        (world.visitor(), world.visitor_at(1), world.visitor(), world.visitor_at(1), world.visitor());
    let sold = ann.bought(&[1, 2], "tok_paid").await;
    let part = ben.bought(&[3, 4], "tok_paid").await;
    ben.cancel(&part, Some(&[3])).await;
    // In the middle of a payment, before one, and only choosing.
    let (_, hold) = cem.hold(&[5]).await;
    let (_, paying) = cem.book(&hold).await;
    assert_eq!(cem.pay(&paying, None).await.1["state"], "PAYMENT_PENDING");
    let (_, hold) = dan.hold(&[6]).await;
    let (_, locked) = dan.book(&hold).await;
    eva.hold(&[7]).await;

    let (well, said) = world.command(&["cancel-show", &show, "--reason", "The projector is broken."]).await;
    assert!(well && said.contains("called off"), "{said}");
    assert_eq!(ann.sees_money(&sold, "REFUNDED").await["state"], "CANCELLED");
    assert_eq!(ann.booking(&sold).await["refunds"][0]["amount"]["minor"], 2 * PRICE);
    let seen = ben.sees_money(&part, "REFUNDED").await;
    assert_eq!(seen["refunds"][1]["amount"]["minor"], PRICE, "the rest in full: {seen}");
    assert_eq!(cem.sees_money(&paying, "FAILED").await["state"], "CANCELLED");
    dan.sees_booking(&locked, "CANCELLED").await;
    // Nobody holds or sells a seat of it any more, at any server.
    for visitor in [&eva, &dan] {
        until("no more holds", || async { visitor.hold(&[8]).await.1["code"] == "sales_closed" }).await;
    }
    until("it is done with", || async {
        world.count("SELECT count(*) FROM show_cancellations WHERE finished_at IS NOT NULL").await == 1
    })
    .await;
    let released = "SELECT count(*) FROM show_cancellations WHERE holds_released_at IS NOT NULL";
    assert_eq!(world.count(released).await, 1, "the lock store has let every hold go");
    books_balance(&world).await;
    until("they are told", || async {
        world.mails().iter().filter(|mail| mail.contains("The projector is broken.")).count() >= 3
    })
    .await;
    addresses_open_without_a_cookie(&world);
    let (_, listed) = ann.get("/api/v1/shows?movie=tide").await;
    assert!(!listed.to_string().contains(&show), "it is not offered: {listed}");
    // Again: nothing more happens.
    let (well, said) = world.command(&["cancel-show", &show, "--reason", "Again."]).await;
    assert!(well && said.contains("0 bookings undone"), "{said}");
    let (well, said) = world.command(&["cancel-show", &platform::ids::new_id().to_string(), "--reason", "None."]).await;
    assert!(!well && said.contains("no such show"), "{said}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_show_that_was_called_off_is_offered_nowhere() {
    let world = World::start(2, &[]).await;
    let show = world.show;
    let (ann, ben) = (world.visitor(), world.visitor_at(1));
    let address = format!("/api/v1/shows/{show}");
    let (_, detail) = ann.get(&address).await;
    assert_eq!((text(&detail["status"]), text(&detail["availability"])), ("on_sale", "available"), "{detail}");
    assert_eq!(ann.get(&format!("{address}/best?count=2")).await.0, StatusCode::OK);
    ann.bought(&[1, 2], "tok_paid").await;

    let (well, said) = world.command(&["cancel-show", &show.to_string(), "--reason", "The projector is broken."]).await;
    assert!(well, "{said}");
    for visitor in [&ann, &ben] {
        until("every server says so", || async { visitor.get(&address).await.1["status"] == "called_off" }).await;
        let (_, detail) = visitor.get(&address).await;
        assert_eq!((&detail["seats_left"], text(&detail["availability"])), (&json!(0), "sold_out"), "{detail}");
        let (status, refusal) = visitor.get(&format!("{address}/best?count=2")).await;
        assert_eq!((status, text(&refusal["code"])), (StatusCode::CONFLICT, "sales_closed"), "{refusal}");
        assert_eq!(visitor.states().await, "3".repeat(300), "no seat is for sale");
        let (status, refusal) = visitor.wait_for(1).await;
        assert_eq!((status, text(&refusal["code"])), (StatusCode::CONFLICT, "sales_closed"), "{refusal}");
        let page = visitor.client.get(format!("{}/shows/{show}", visitor.base)).header("cookie", &visitor.cookie);
        let page = page.send().await.expect("a page").text().await.expect("a text");
        assert!(page.contains("This show will not take place"), "{page}");
        assert!(page.contains("on its way back"), "what to do: {page}");
        assert!(!page.contains("seat-map"), "no map: {page}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_know_yet_takes_no_payment_and_any_server_finishes() {
    let world = World::start(1, &[]).await;
    let (ann, ben) = (world.visitor(), world.visitor());
    let sold = ann.bought(&[1], "tok_paid").await;
    let (_, hold) = ben.hold(&[2]).await;
    let (_, booking) = ben.book(&hold).await;
    // Whoever called it off died at once: the mark is there, and nothing is undone.
    call_off(&world.pg, world.show, "Storm.", platform::clock::now()).await.expect("called off");
    let (status, refusal) = ben.pay(&booking, Some("tok_paid")).await;
    assert!(status == StatusCode::CONFLICT || status == StatusCode::GONE, "{status} {refusal}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nobody else was charged");
    ann.sees_money(&sold, "REFUNDED").await;
    ben.sees_booking(&booking, "CANCELLED").await;
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bookings_are_undone_in_batches_once_by_however_many_and_after_any_stop() {
    let world = World::start(0, &[]).await;
    for _ in 0..130 {
        let booking = booking_in(&world.pg, world.show, "CONFIRMED").await;
        pay_for(&world.pg, booking, 0).await;
    }
    let now = platform::clock::now;
    assert!(call_off(&world.pg, world.show, "Storm.", now()).await.expect("called off"));
    assert!(!call_off(&world.pg, world.show, "Storm.", now()).await.expect("still called off"));
    assert_eq!(undo_batch(&world.pg, world.show, now()).await.expect("a batch"), Batch::Undone(64));
    // Here the first one stops for good, and three others go on.
    let rest = async || {
        let mut undone = 0;
        loop {
            match undo_batch(&world.pg, world.show, now()).await.expect("a batch") {
                Batch::Undone(count) => undone += count,
                Batch::Busy => tokio::task::yield_now().await,
                Batch::NoneLeft => return undone,
            }
        }
    };
    let (one, two, three) = tokio::join!(rest(), rest(), rest());
    assert_eq!(one + two + three, 66);
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'CANCELLED'").await, 130);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'cancelled_by_staff'").await, 130);
    assert_eq!(world.count("SELECT cancelled::bigint FROM show_cancellations").await, 130);
    assert_eq!(world.count("SELECT count(*) FROM outbox WHERE effect = 'refund'").await, 130);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_comes_after_a_show_was_called_off_goes_back() {
    let world = World::start(1, &[]).await;
    let ann = world.visitor();
    let (_, hold) = ann.hold(&[1]).await;
    let (_, booking) = ann.book(&hold).await;
    let (_, pending) = ann.pay(&booking, None).await;
    // The gateway has the money and cannot be told to stop; it tells us late.
    let form = |card: &str| {
        let page = ann.client.post(text(&pending["pay_url"]));
        page.header("content-type", "application/x-www-form-urlencoded").body(format!("card={card}")).send()
    };
    form("late_webhook").await.expect("the gateway answers");
    call_off(&world.pg, world.show, "Storm.", platform::clock::now()).await.expect("called off");
    let seen = ann.sees_money(&booking, "REFUNDED").await;
    assert_eq!((&seen["state"], &seen["moved_to"]), (&json!("CANCELLED"), &Value::Null));
    books_balance(&world).await;
    world.end().await;
}

/// Begins to pay for a booking as it makes it, for no seat and no money, past the code.
pub async fn begin_to_pay(world: &World, tx: &mut PgConnection) -> Result<PgQueryResult, sqlx::Error> {
    sqlx::query(
        "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                               buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
         VALUES ($1, $1::text, $2, 'nobody', $1, 1, 'PAYMENT_PENDING', 'PENDING', 0, 'EUR', '', '', '', '',
                 now() + interval '1 day', now(), now())",
    )
    .bind(platform::ids::new_id())
    .bind(world.show)
    .execute(tx)
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_begins_as_its_show_is_called_off_is_refused_or_undone_and_never_escapes() {
    let world = World::start(0, &[]).await;
    let now = platform::clock::now;
    // Begun before: calling the show off waits for it, and then finds it.
    let mut buyer = world.pg.begin().await.expect("a transaction");
    begin_to_pay(&world, &mut buyer).await.expect("the show is on");
    let (pg, show) = (world.pg.clone(), world.show);
    let called_off = tokio::spawn(async move { call_off(&pg, show, "Storm.", now()).await });
    until("the mark waits for it", || async { world.count(WAITING).await == 1 }).await;
    buyer.commit().await.expect("the payment has begun");
    assert!(called_off.await.expect("it was called off").expect("called off"));
    assert_eq!(undo_batch(&world.pg, show, now()).await.expect("a batch"), Batch::Undone(1));
    assert_eq!(undo_batch(&world.pg, show, now()).await.expect("a batch"), Batch::NoneLeft);

    // Begun after: it waits for the transaction that calls the show off, and is refused.
    sqlx::query("UPDATE shows SET called_off = false").execute(&world.pg).await.expect("it is on again");
    let mut organiser = world.pg.begin().await.expect("a transaction");
    call_off_in(&mut organiser, show, "Storm.", now()).await.expect("called off");
    let begun = async {
        let mut buyer = world.pg.acquire().await.expect("a connection");
        begin_to_pay(&world, &mut buyer).await
    };
    let marked = async {
        until("it waits for the mark", || async { world.count(WAITING).await == 1 }).await;
        organiser.commit().await.expect("it is called off");
    };
    let (begun, ()) = tokio::join!(begun, marked);
    refused_with("it is called off", begun, "RL001", "was called off");
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE is_open").await, 0, "nothing has escaped");
    world.end().await;
}

/// As while a show is sold without a pause: a booking of it is always being written.
#[tokio::test(flavor = "multi_thread")]
async fn a_show_is_called_off_also_while_bookings_are_written_without_a_pause_and_none_escapes() {
    let world = World::start(0, &[]).await;
    let now = platform::clock::now;
    let mut buyer = world.pg.begin().await.expect("a transaction");
    begin_to_pay(&world, &mut buyer).await.expect("the show is on");
    // It is not waited for without end, and sales end.
    let called_off = call_off(&world.pg, world.show, "Storm.", now());
    let called_off = tokio::time::timeout(PATIENCE, called_off).await.expect("soon");
    assert!(called_off.expect("called off"));
    let begun = begin_to_pay(&world, &mut world.pg.acquire().await.expect("a connection")).await;
    refused_with("it is called off", begun, "RL001", "was called off");
    // No batch reports that none is left while one is being written.
    assert_eq!(undo_batch(&world.pg, world.show, now()).await.expect("a batch"), Batch::Busy);
    buyer.commit().await.expect("the payment has begun");
    assert_eq!(undo_batch(&world.pg, world.show, now()).await.expect("a batch"), Batch::Undone(1));
    assert_eq!(undo_batch(&world.pg, world.show, now()).await.expect("a batch"), Batch::NoneLeft);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_is_settled_after_its_show_was_called_off_and_undone_goes_back() {
    for mode in ["batched", "interactive"] {
        let world = World::start(1, &[("COMMITS", mode)]).await;
        let (ann, eva) = (world.visitor(), world.visitor());
        let (_, hold) = ann.hold(&[1]).await;
        let (_, booking) = ann.book(&hold).await;
        let (_, pending) = ann.pay(&booking, None).await;
        assert_eq!(pending["state"], "PAYMENT_PENDING", "{mode}: {pending}");
        // As if it had been overlooked: the show is called off and done with, and this booking stands.
        for statement in [
            "UPDATE shows SET called_off = true",
            "INSERT INTO show_cancellations (show_id, reason, requested_at, holds_released_at, finished_at)
             SELECT id, 'Storm.', now(), now(), now() FROM shows",
        ] {
            sqlx::query(statement).execute(&world.pg).await.expect("it is called off");
        }
        until("the server knows", || async { eva.hold(&[8]).await.1["code"] == "sales_closed" }).await;
        let page = ann.client.post(text(&pending["pay_url"]));
        let form = page.header("content-type", "application/x-www-form-urlencoded").body("card=paid");
        form.send().await.expect("the gateway answers");
        let seen = ann.sees_money(&booking, "REFUNDED").await;
        assert_eq!(seen["state"], "CANCELLED", "{mode}: {seen}");
        assert_eq!(seen["refunds"][0]["amount"]["minor"], PRICE, "{mode}: all of it: {seen}");
        assert_eq!(world.count("SELECT count(*) FROM tickets").await, 0, "{mode}");
        world.end().await;
    }
}
