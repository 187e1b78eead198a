//! Cancellation by the buyer: before the deadline, in part, once. By staff: in full, and of whole shows.

use platform::database::BindAll;
use selling::bookings::{CallOffProgress, call_off, call_off_in, undo_batch};
use sqlx::PgConnection;
use sqlx::postgres::PgQueryResult;

use crate::booking_totals::WAITING;
use crate::mailed_links::assert_mails_link_without_cookie;
use crate::prelude::*;
use crate::sql_guards::{insert_booking, insert_payment};

async fn booking_events(visitor: &Visitor, booking: &Value) -> Vec<String> {
    let (_, events) = visitor.get(&format!("/api/v1/bookings/{}/events", text(&booking["id"]))).await;
    events.as_array().expect("a list").iter().map(|event| text(&event["event"]).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn cancellation_before_the_deadline_refunds_the_price_less_the_fee_and_frees_seats() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let booking = ann.buy_seats(&[46, 47], "tok_paid").await;
    let read = ann.booking(&booking).await;
    assert!(read["cancel_until_ms"].is_i64(), "{read}");
    let address = format!("/bookings/{}", text(&booking["id"]));
    let words = ["Paid", "Tickets issued", "You get €22.50 back. The fee is €2.50, 10 %.", "cancel-open"];
    expect_page(ann.page(&address).await, StatusCode::OK, &words);
    let path = format!("/api/v1{address}/cancel");
    let first = ann.raw(Method::POST, &path, Value::Null, "one").await;
    assert_eq!(first.0, StatusCode::OK, "{}", first.1);
    assert_eq!(ann.raw(Method::POST, &path, Value::Null, "one").await, first, "the same key gets the same answer");
    expect_problem(ann.cancel(&booking, None).await, StatusCode::CONFLICT, "wrong_state");

    let seen = ann.wait_for_money(&booking, "REFUNDED").await;
    assert_eq!(seen["state"], "CANCELLED");
    assert_eq!(seen["cancel_until_ms"], Value::Null);
    let back = 2 * PRICE - 2 * PRICE / 10;
    assert_eq!(seen["refunds"][0]["amount"]["minor"], back, "{seen}");
    assert_eq!((&seen["refunds"][0]["settled"], &seen["refunds"][0]["fee"]["minor"]), (&json!(true), &json!(250)));
    let steps: Vec<_> = seen["steps"].as_array().expect("steps").iter().map(|step| text(&step["step"])).collect();
    assert_eq!(steps, ["paying", "paid", "issued", "cancelled", "refunding", "refunded"]);
    let (_, page) = ann.raw(Method::GET, &address, Value::Null, "page").await;
    assert!(page.contains("€22.50 refunded, €2.50 kept as a fee.") && page.contains("€22.50 paid back"), "{page}");
    assert!(!page.contains("cancel-open"), "nothing is left to cancel");
    ann.wait_for_seat(46, '0').await;
    world.wait_until_books_balance().await;
    wait_until("both mails are sent", || async { world.mails().len() == 2 }).await;
    let notice = world.mails().into_iter().find(|mail| mail.contains("Subject: You cancelled")).expect("a notice");
    assert!(notice.contains("ann@example.org"), "{notice}");
    let bob = world.visitor();
    assert_eq!(bob.buy_seats(&[46], "tok_paid").await["state"], "CONFIRMED");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_does_not_wait_for_the_seat_map() {
    let (world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let (whole, parted) = (ann.buy_seats(&[46, 47], "tok_paid").await, bob.buy_seats(&[10, 11], "tok_paid").await);
    world.wait_for_empty_outbox().await;
    // As while Redis is down: effects for the seat map are postponed.
    for statement in [
        "CREATE FUNCTION put_off() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN NEW.run_after := NEW.run_after + interval '1 hour'; RETURN NEW; END $$",
        "CREATE TRIGGER put_off BEFORE INSERT ON outbox FOR EACH ROW
         WHEN (NEW.effect IN ('release_seats', 'release_part')) EXECUTE FUNCTION put_off()",
    ] {
        world.execute(statement).await;
    }
    assert_eq!(ann.cancel(&whole, None).await.0, StatusCode::OK);
    assert_eq!(bob.cancel(&parted, Some(&[11])).await.0, StatusCode::OK);
    ann.wait_for_money(&whole, "REFUNDED").await;
    world.wait_for_count("the part is paid back", "SELECT count(*) FROM refunds WHERE state = 'settled'", 2).await;
    assert_eq!(world.count("SELECT count(*) FROM outbox WHERE effect LIKE 'release%'").await, 2, "the map waits");
    assert_eq!((&ann.seat_states().await[46..48], &ann.seat_states().await[10..12]), ("22", "22"), "unchanged");
    for statement in
        ["DROP TRIGGER put_off ON outbox", "UPDATE outbox SET run_after = now() WHERE effect LIKE 'release%'"]
    {
        world.execute(statement).await;
    }
    ann.wait_for_seat(46, '0').await;
    ann.wait_for_seat(11, '0').await;
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_seat_is_free_while_the_mail_server_is_away() {
    // No server listens there.
    let (world, ann) = World::with_visitor(1, &[("SMTP_URL", "smtp://127.0.0.1:9")]).await;
    let booking = ann.buy_seats(&[46, 47], "tok_paid").await;
    expect_answer(ann.cancel(&booking, Some(&[47])).await, StatusCode::OK);
    ann.wait_for_seat(47, '0').await;
    assert_eq!(world.count("SELECT count(*) FROM outbox WHERE effect = 'send_ticket'").await, 1, "the mail waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn single_seats_are_cancelled_and_the_others_stay_sold() {
    let (world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let booking = ann.buy_seats(&[10, 11, 30], "tok_paid").await;
    let (status, smaller) = ann.cancel(&booking, Some(&[11])).await;
    assert_eq!((status, &smaller["state"], &smaller["money"]), (StatusCode::OK, &json!("CONFIRMED"), &json!("PAID")));
    assert_eq!(smaller["total"]["minor"], 2 * PRICE);
    assert_eq!(smaller["seats"].as_array().expect("seats").len(), 2);
    ann.wait_for_seat(11, '0').await;
    assert_eq!(&ann.seat_states().await[10..12], "20", "the neighbouring seat stays sold");
    world.wait_until_books_balance().await;
    assert_eq!(bob.buy_seats(&[11], "tok_paid").await["state"], "CONFIRMED");

    let (status, refusal) = ann.cancel(&booking, Some(&[11])).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::BAD_REQUEST, "unknown_seat"), "cancelled already");
    assert_eq!(ann.cancel(&booking, Some(&[10])).await.0, StatusCode::OK);
    let (_, over) = ann.cancel(&booking, Some(&[30])).await;
    assert_eq!(over["state"], "CANCELLED");
    let seen = ann.wait_for_money(&booking, "REFUNDED").await;
    world.wait_for_count("every part is settled", "SELECT count(*) FROM refunds WHERE state = 'settled'", 3).await;
    let numbers: Vec<_> = seen["refunds"].as_array().expect("refunds").iter().map(|refund| &refund["number"]).collect();
    assert_eq!(numbers, [&json!(1), &json!(2), &json!(0)]);
    assert_eq!(seen["refunds"][0]["seats"], json!(["A12"]));
    let names = booking_events(&ann, &booking).await;
    assert_eq!(names.iter().filter(|name| *name == "part_cancelled_by_buyer").count(), 2);
    assert_eq!(names.iter().filter(|name| *name == "part_refund_settled").count(), 2);
    ann.wait_for_seat(30, '0').await;
    world.wait_until_books_balance().await;
    // Every effect runs again, as after a crash before it was marked done.
    let mails = world.mails().len();
    let again = "INSERT INTO outbox (booking_id, effect, amount_minor, refund_number, run_after, created_at)
                 SELECT booking_id, effect, amount_minor, number, now(), now() FROM refunds,
                        unnest(CASE number WHEN 0 THEN ARRAY['release_seats', 'refund', 'send_notice']
                               ELSE ARRAY['release_part', 'refund_part', 'send_notice'] END) AS effect";
    world.execute(again).await;
    world.wait_until_books_balance().await;
    assert_eq!(&ann.seat_states().await[10..12], "02", "Bob keeps his seat");
    assert_eq!(world.mails().len(), mails, "a repeated notice is sent once");
    let names = booking_events(&ann, &booking).await;
    assert_eq!(names.iter().filter(|name| *name == "part_refund_settled").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn within_two_hours_of_the_start_only_staff_cancel() {
    let world = World::start(1, &[]).await;
    let show = insert_show(&world.pg, 300_000, 2 * 3600 - 60).await;
    let ann = world.visitor().at_show(show);
    let booking = ann.buy_seats(&[1, 2], "tok_paid").await;
    assert_eq!(ann.booking(&booking).await["cancel_until_ms"], Value::Null, "the page offers no cancellation");
    for seats in [None, Some(&[1][..])] {
        expect_problem(ann.cancel(&booking, seats).await, StatusCode::CONFLICT, "too_late_to_cancel");
    }
    assert_eq!(ann.booking(&booking).await["state"], "CONFIRMED");
    let reference = text(&booking["reference"]).to_lowercase();
    let seat = ["cancel-booking", &reference, "--seat", "a2", "--reason", "Seat A2 is broken."];
    let (well, said) = world.command(&seat).await;
    assert!(well && said.contains("€12.50"), "{said}");
    ann.wait_for_seat(1, '0').await;
    let (well, said) = world.command(&["cancel-booking", &reference, "--reason", "The projector is broken."]).await;
    assert!(well && said.contains("€12.50"), "{said}");
    let seen = ann.wait_for_money(&booking, "REFUNDED").await;
    let sum: i64 =
        seen["refunds"].as_array().expect("refunds").iter().filter_map(|r| r["amount"]["minor"].as_i64()).sum();
    assert_eq!(sum, 2 * PRICE, "in full: {seen}");
    world.wait_until_books_balance().await;
    wait_until("the reason is mailed", || async {
        world.mails().iter().any(|mail| mail.contains("The projector is broken."))
    })
    .await;
    for (arguments, words) in [
        (["cancel-booking", reference.as_str(), "--reason", "Again."], "over already"),
        (["cancel-booking", "2222-2222", "--reason", "Unknown."], "no such booking"),
        (["cancel-booking", reference.as_str(), "--reason", " "], "Say why"),
    ] {
        let (well, said) = world.command(&arguments).await;
        assert!(!well && said.contains(words), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_cancellations_change_nothing() {
    let (_world, [ann, eve]) = World::with_visitors(1, &[]).await;
    let booking = ann.buy_seats(&[5, 6], "tok_paid").await;
    let path = format!("/api/v1/bookings/{}/cancel", text(&booking["id"]));
    for (body, code) in [
        (json!({ "seats": [] }), "malformed"),
        (json!({ "seats": [5, 5] }), "seat_twice"),
        (json!({ "seats": [7] }), "unknown_seat"),
        (json!({ "seats": [-1] }), "malformed"),
        (json!({ "seat": [5] }), "malformed"),
        (json!([]), "malformed"),
    ] {
        let (status, refusal) = ann.call(Method::POST, &path, body.clone()).await;
        assert_eq!((status, text(&refusal["code"])), (StatusCode::BAD_REQUEST, code), "{body}");
    }
    assert_eq!(eve.cancel(&booking, None).await.0, StatusCode::NOT_FOUND);
    let keyless = ann.client.post(format!("{}{path}", ann.base)).header("cookie", &ann.cookie).send().await;
    assert_eq!(keyless.expect("an answer").status(), StatusCode::BAD_REQUEST);
    expect_answer(ann.call_with_key(Method::POST, &path, json!({ "seats": [5] }), "a-key").await, StatusCode::OK);
    let other = ann.call_with_key(Method::POST, &path, json!({ "seats": [6] }), "a-key").await;
    assert_eq!(other.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(ann.booking(&booking).await["seats"].as_array().expect("seats").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_concurrent_cancellations_at_two_servers_cancel_once() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let at_other = ann.moved_to(&world, 1);
    let booking = ann.buy_seats(&[60, 61, 62], "tok_paid").await;
    // Some cancel all seats and some a part. The books balance in any order.
    let answers = join_all((0..20).map(|number| {
        let visitor = if number % 2 == 0 { &ann } else { &at_other };
        visitor.cancel(&booking, if number % 4 == 0 { Some(&[61]) } else { None })
    }))
    .await;
    let well = answers.iter().filter(|(status, _)| *status == StatusCode::OK).count();
    assert!(well == 1 || well == 2, "all seats, or a part and then the rest: {well}");
    for (status, answer) in &answers {
        assert!([StatusCode::OK, StatusCode::CONFLICT, StatusCode::BAD_REQUEST].contains(status), "{status} {answer}");
    }
    ann.wait_for_money(&booking, "REFUNDED").await;
    world.wait_until_books_balance().await;
    assert_eq!(world.count("SELECT sum(amount_minor + fee_minor)::bigint FROM refunds").await, 3 * PRICE);
}

#[tokio::test(flavor = "multi_thread")]
async fn unpaid_booking_is_cancelled_without_a_fee() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, booking) = ann.check_out(&[70]).await;
    assert_eq!(ann.cancel(&booking, None).await.1["state"], "CANCELLED");
    ann.wait_for_seat(70, '0').await;
    let (_, booking) = ann.check_out(&[71]).await;
    let pending = expect_state(ann.pay(&booking, None).await, StatusCode::OK, "PAYMENT_PENDING");
    assert_eq!(ann.cancel(&booking, Some(&[71])).await.1["state"], "CANCELLED");
    let seen = ann.wait_for_money(&booking, "FAILED").await;
    assert_eq!(seen["state"], "CANCELLED");
    ann.wait_for_seat(71, '0').await;
    // The gateway's page takes no payment any more.
    ann.post_form(text(&pending["pay_url"]), "card=paid").await;
    assert_eq!(world.count("SELECT count(*) FROM payments WHERE state = 'succeeded'").await, 0);
    world.wait_until_books_balance().await;
}

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
    assert!(well && said.contains("cancelled; "), "{said}");
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
    let (well, said) = world.command(&["cancel-show", &show, "--reason", "Again."]).await;
    assert!(well && said.contains("0 bookings undone"), "{said}");
    let (well, said) = world.command(&["cancel-show", &new_id().to_string(), "--reason", "None."]).await;
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
        let (_, page) = visitor.page(&format!("/shows/{show}")).await;
        assert!(page.contains("This show is cancelled"), "{page}");
        assert!(page.contains("you are refunded in full"), "the page explains the refund: {page}");
        assert!(!page.contains("seat-map"), "no map: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_server_takes_no_payment_and_any_server_finishes_the_cancellation() {
    let (world, [ann, ben]) = World::with_visitors(1, &[]).await;
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
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, booking) = ann.check_out(&[1]).await;
    let (_, pending) = ann.pay(&booking, None).await;
    // The gateway charges and cannot be voided; its webhook is late.
    ann.post_form(text(&pending["pay_url"]), "card=late_webhook").await;
    call_off(&world.pg, world.show, "Storm.", platform::clock::now()).await.expect("called off");
    let seen = ann.wait_for_money(&booking, "REFUNDED").await;
    assert_eq!((&seen["state"], &seen["moved_to"]), (&json!("CANCELLED"), &Value::Null));
    world.wait_until_books_balance().await;
}

/// Inserts a booking without seats and money that starts its payment in the same transaction.
pub async fn insert_pending_payment(world: &World, tx: &mut PgConnection) -> sqlx::Result<PgQueryResult> {
    let sql =
        "INSERT INTO bookings (id, reference, show_id, owner, hold_id, fence, state, money, total_minor, currency,
                               buyer_name, buyer_email, holder_name, holder_email, expires_at, created_at, updated_at)
         VALUES ($1, $1::text, $2, 'no-owner', $1, 1, 'PAYMENT_PENDING', 'PENDING', 0, 'EUR', '', '', '', '',
                 now() + interval '1 day', now(), now())";
    sqlx::query(sql).bind_all((new_id(), world.show)).execute(tx).await
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
    let (world, [ann, eva]) = World::with_visitors(1, &[]).await;
    let (_, booking) = ann.check_out(&[1]).await;
    let pending = expect_state(ann.pay(&booking, None).await, StatusCode::OK, "PAYMENT_PENDING");
    // As if this booking had been missed: the show is cancelled and finished, and the booking remains.
    for statement in [
        "UPDATE shows SET called_off = true",
        "INSERT INTO show_cancellations (show_id, reason, requested_at, holds_released_at, finished_at)
         SELECT id, 'Storm.', now(), now(), now() FROM shows",
    ] {
        world.execute(statement).await;
    }
    wait_until("the server sees the cancellation", || async { eva.hold(&[8]).await.1["code"] == "sales_closed" }).await;
    ann.post_form(text(&pending["pay_url"]), "card=paid").await;
    let seen = ann.wait_for_money(&booking, "REFUNDED").await;
    assert_eq!(seen["state"], "CANCELLED", "{seen}");
    assert_eq!(seen["refunds"][0]["amount"]["minor"], PRICE, "the full price is refunded: {seen}");
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn buyer_who_cancels_just_after_the_show_is_called_off_pays_no_fee() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let booking = ann.buy_seats(&[46, 47], "tok_paid").await;
    // Another replica has committed it, and this one still has the show in its cache.
    world.execute("UPDATE shows SET called_off = true").await;
    for seats in [None, Some(&[46][..])] {
        expect_problem(ann.cancel(&booking, seats).await, StatusCode::CONFLICT, "sales_closed");
    }
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE fee_minor > 0").await, 0);
}
