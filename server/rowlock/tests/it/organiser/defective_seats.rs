//! Withdrawal of a defective seat: off sale, a refund, a mail, and no offer of the seat in between.

use super::pages::{PAGES, send};
use super::{API, organiser, post_ok, room, world_with_organiser};
use crate::box_office::acts;
use crate::prelude::*;

async fn another_show(world: &World, called_off: bool) -> Uuid {
    let id = new_id();
    let sql = "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices, hold_ms, called_off)
         SELECT $1, screen_id, film_id, layout_id, starts_at + interval '1 day', local_date + 1, language, format, currency,
                prices, hold_ms, $3
         FROM shows WHERE id = $2";
    world.run(sqlx::query(sql).bind(id).bind(world.show).bind(called_off)).await;
    id
}

fn withdrawal_body(seats: &[&str], all_shows: bool) -> Value {
    json!({ "seats": seats, "all_shows": all_shows, "reason": "The backrest is broken." })
}

fn seats_of(booking: &Value) -> Vec<u64> {
    booking["seats"].as_array().expect("seats").iter().filter_map(|line| line["seat"].as_u64()).collect()
}

async fn assert_no_offer(world: &World) {
    let offered = "SELECT count(*) FROM waiting_list WHERE offer_number > 0";
    assert_eq!(world.count(offered).await, 0, "the defective seat was offered to the waiting list");
}

/// Waits for two more rounds of the show's waiting list, in which it makes no offer.
async fn wait_for_two_rounds(world: &World) {
    for _ in 0..2 {
        let before: chrono::DateTime<chrono::Utc> =
            world.value(sqlx::query_scalar("SELECT looked_at FROM waiting_lists")).await;
        wait_until("the list has a round", || async {
            assert_no_offer(world).await;
            let now: chrono::DateTime<chrono::Utc> =
                world.value(sqlx::query_scalar("SELECT looked_at FROM waiting_lists")).await;
            now > before
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_defective_seat_is_not_offered_to_the_waiting_list() {
    let world = World::start(2, &[]).await;
    world.sell_only(&[20, 21, 22]).await;
    let mut olga = organiser(&world).await;
    let (bob, cat, ann) = (world.visitor(), world.visitor(), world.visitor_at(1));
    let (sold, other) = (bob.buy_seats(&[20, 21], "tok_paid").await, cat.buy_seats(&[22], "tok_paid").await);
    expect_answer(ann.join_waiting_list(1).await, StatusCode::CREATED);

    let path = format!("{API}/programme/{}/defective-seats", world.show);
    let key = [("idempotency-key", "the-broken-seat")];
    let (status, _, answer) = olga.send_with(Method::POST, &path, &withdrawal_body(&["B1"], false), &key).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    assert_eq!([&answer["shows"], &answer["bookings"]], [1, 1], "{answer}");
    // A retry, as after a lost answer.
    let (status, _, again) = olga.send_with(Method::POST, &path, &withdrawal_body(&["B1"], false), &key).await;
    assert_eq!((status, &again), (StatusCode::ACCEPTED, &answer));

    world.wait_for_count("the seat is refunded", "SELECT count(*) FROM refunds WHERE state = 'settled'", 1).await;
    bob.wait_for_seat(20, '3').await;
    let seen = bob.booking(&sold).await;
    assert_eq!((&seen["state"], seats_of(&seen)), (&json!("CONFIRMED"), vec![21]), "{seen}");
    assert_eq!(seen["refunds"][0]["amount"]["minor"], PRICE, "a full refund: {seen}");
    wait_until("the notice has the reason", || async {
        world.mails().iter().any(|mail| mail.contains("backrest is broken"))
    })
    .await;
    world.wait_until_books_balance().await;
    wait_for_two_rounds(&world).await;
    assert_eq!(ann.waiting_list_entry().await.1["state"], "WAITING");
    assert_no_offer(&world).await;
    assert_eq!(world.visitor().hold(&[20]).await.0, StatusCode::CONFLICT, "the seat is off sale");

    // Another seat that is cancelled is offered to her.
    assert_eq!(cat.cancel(&other, None).await.0, StatusCode::OK);
    let offered = ann.wait_for_entry_state("OFFERED").await;
    let seats = offered["offer"]["seats"].as_array().expect("seats");
    assert_eq!(seats.iter().filter_map(|line| line["seat"].as_u64()).collect::<Vec<_>>(), [22]);
    assert_eq!(acts(&world).await, ["defective_seats"]);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn defective_seats_of_all_planned_shows_are_refunded_and_their_payments_stopped() {
    let (world, mut olga) = world_with_organiser(2).await;
    let (tomorrow, gone) = (another_show(&world, false).await, another_show(&world, true).await);
    let elsewhere = crate::world::insert_show(&world.pg, 300_000, 24 * 3_600).await;
    // Sold alone, sold with another, held with another, being paid for on the gateway's page, and in other shows.
    let (alone, beside, chooses, pays, away) = (
        world.visitor(),
        world.visitor(),
        world.visitor_at(1),
        world.visitor().at_show(tomorrow),
        world.visitor().at_show(elsewhere),
    );
    let alone_booking = alone.buy_seats(&[5], "tok_paid").await;
    let beside_booking = beside.buy_seats(&[7, 8], "tok_paid").await;
    expect_answer(chooses.hold(&[6, 26]).await, StatusCode::CREATED);
    let (_, pending) = pays.check_out(&[5]).await;
    let pending = expect_state(pays.pay(&pending, None).await, StatusCode::OK, "PAYMENT_PENDING");
    let away_booking = away.buy_seats(&[5], "tok_paid").await;

    let path = format!("{API}/programme/{}/defective-seats", world.show);
    let (status, answer) = olga.post(&path, withdrawal_body(&["A6", "A7", "A8"], true)).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    assert_eq!([&answer["shows"], &answer["bookings"]], [2, 3], "{answer}");
    // Held seats are released at once, and the hold keeps the other one.
    let kept = chooses.current_hold().await;
    assert_eq!(kept["seats"].as_array().map(Vec::len), Some(1), "{kept}");
    alone.wait_for_money(&alone_booking, "REFUNDED").await;
    let seen = pays.wait_for_money(&pending, "FAILED").await;
    assert_eq!(seen["state"], "CANCELLED", "{seen}");
    world.wait_for_count("the part is refunded", "SELECT count(*) FROM refunds WHERE state = 'settled'", 2).await;
    assert_eq!(seats_of(&beside.booking(&beside_booking).await), [8]);
    for visitor in [&alone, &pays] {
        for seat in [5, 6, 7] {
            visitor.wait_for_seat(seat, '3').await;
        }
    }
    assert_eq!(away.booking(&away_booking).await["state"], "CONFIRMED", "another screen");
    away.wait_for_seat(6, '0').await;
    let kept = "SELECT count(*) FROM house_seats WHERE reason = 'The backrest is broken.'";
    assert_eq!(world.count(kept).await, 6, "staff see the reason, and can put them back on sale");
    let of_gone: i64 =
        world.value(sqlx::query_scalar("SELECT count(*) FROM house_seats WHERE show_id = $1").bind(gone)).await;
    assert_eq!(of_gone, 0, "a cancelled show is skipped");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_that_had_started_is_cancelled_when_its_claim_appears() {
    let (world, mut olga) = world_with_organiser(1).await;
    // Only the worker finds it: the withdrawal was written before the sale.
    let insert = "INSERT INTO seat_withdrawals (show_id, seat_no, layout_id, reason, requested_at, look_at)
                  SELECT id, 9, layout_id, 'The backrest is broken.', now(), now() FROM shows WHERE id = $1";
    let ann = world.visitor();
    let sold = ann.buy_seats(&[9], "tok_paid").await;
    world.run(sqlx::query("UPDATE shows SET blocked = '{9}' WHERE id = $1").bind(world.show)).await;
    world.run(sqlx::query(insert).bind(world.show)).await;
    ann.wait_for_money(&sold, "REFUNDED").await;
    ann.wait_for_seat(9, '3').await;
    // A later withdrawal ends it. A seat that is back on sale is not watched.
    let path = format!("{API}/programme/{}/defective-seats", world.show);
    expect_answer(olga.post(&path, withdrawal_body(&["A11"], false)).await, StatusCode::ACCEPTED);
    ann.wait_for_seat(10, '3').await;
    let back = "UPDATE shows SET blocked = '{9}' WHERE id = $1";
    world.run(sqlx::query(back).bind(world.show)).await;
    let open = "SELECT count(*) FROM seat_withdrawals WHERE seat_no = 10 AND finished_at IS NULL";
    world.wait_for_count("the withdrawal is closed", open, 0).await;
    let old = "UPDATE seat_withdrawals SET requested_at = requested_at - interval '1 minute'";
    world.execute(old).await;
    world
        .wait_for_count("all refunds are settled", "SELECT count(*) FROM seat_withdrawals WHERE finished_at IS NULL", 0)
        .await;
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn form_withdraws_seats_and_a_refusal_keeps_the_input() {
    let (world, mut olga) = world_with_organiser(1).await;
    let there = format!("{PAGES}/shows/{}", world.show);
    expect_page(olga.page(&there).await, StatusCode::OK, &["data-testid=\"defective-seats\""]);
    let form = |key, seats, reason| [("key", key), ("seats", seats), ("reason", reason), ("sure", "true")];
    let to = format!("{there}/defective-seats");
    for (key, seats, reason) in [("k-1", "A1, Z9", "Broken."), ("k-2", " , ", "Broken."), ("k-3", "A1", " ")] {
        let refused = send(&olga, &to, &form(key, seats, reason)).await;
        expect_page(refused, StatusCode::BAD_REQUEST, &[seats.trim()]);
    }
    let unsure = [("key", "k-unsure"), ("seats", "A1, B2"), ("reason", "Broken.")];
    let parts = ["organiser-trouble", "Tick the box", "value=\"A1, B2\"", "value=\"Broken.\""];
    expect_page(send(&olga, &to, &unsure).await, StatusCode::BAD_REQUEST, &parts);
    assert_eq!(world.count("SELECT count(*) FROM house_seats").await, 0);
    let withdrawn = send(&olga, &to, &form("k-4", "A1, B2", "Broken.")).await;
    let result = "done=true&shows=1&bookings=0&elsewhere=";
    assert_eq!(withdrawn, (StatusCode::SEE_OTHER, format!("{there}?{result}")));
    assert_eq!(world.count("SELECT cardinality(blocked)::bigint FROM shows").await, 2);

    let path = format!("{API}/programme/{}/defective-seats", world.show);
    for (seats, code) in [(&["Z9"][..], "unknown_seat"), (&[][..], "malformed"), (&["A1", "A1"][..], "seat_twice")] {
        expect_problem(olga.post(&path, withdrawal_body(seats, true)).await, StatusCode::BAD_REQUEST, code);
    }
    let answer = olga.post(&path.replace("aurora", "rialto"), withdrawal_body(&["A1"], false)).await;
    expect_answer(answer, StatusCode::NOT_FOUND);
    let begun = "UPDATE shows SET starts_at = now() - interval '1 minute'";
    world.execute(begun).await;
    expect_problem(olga.post(&path, withdrawal_body(&["A1"], false)).await, StatusCode::CONFLICT, "wrong_state");
}

#[tokio::test(flavor = "multi_thread")]
async fn page_shows_the_number_of_shows_and_bookings_and_the_shows_whose_room_lacks_a_seat() {
    let (world, mut olga) = world_with_organiser(1).await;
    another_show(&world, false).await;
    // Planned in an earlier room of the screen: rows A and B of ten seats.
    let layout = post_ok(&mut olga, "/layouts", json!({ "name": "Room", "plan": room("A-B") })).await;
    let small = new_id();
    let sql = "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices)
         SELECT $1, screen_id, film_id, $3, starts_at + interval '2 days', local_date + 2, language, format, currency, prices
         FROM shows WHERE id = $2";
    let layout: Uuid = text(&layout["id"]).parse().expect("an id");
    world.run(sqlx::query(sql).bind(small).bind(world.show).bind(layout)).await;
    let ann = world.visitor();
    ann.buy_seats(&[46], "tok_paid").await;

    let there = format!("{PAGES}/shows/{}", world.show);
    let withdraw = async |key: &'static str, seats: &'static str| {
        let fields = [("key", key), ("seats", seats), ("all_shows", "true"), ("reason", "Broken."), ("sure", "true")];
        expect_answer(send(&olga, &format!("{there}/defective-seats"), &fields).await, StatusCode::SEE_OTHER)
    };
    // The small room has A1 but no C7.
    let result = withdraw("k-some", "A1, C7").await;
    assert_eq!(result, format!("{there}?done=true&shows=3&bookings=1&elsewhere={small}"));
    let link = format!("href=\"{PAGES}/shows/{small}\"");
    let parts = ["Shows: 3", "to be refunded: 1", "data-testid=\"withdrawn-elsewhere\"", link.as_str()];
    expect_page(olga.page(&result).await, StatusCode::OK, &parts);
    // It has no seat of row C at all.
    let result = withdraw("k-none", "C8").await;
    assert_eq!(result, format!("{there}?done=true&shows=2&bookings=0&elsewhere={small}"));
    let reloaded = olga.page(&result.replace("done=true&", "")).await;
    let html = expect_page(reloaded, StatusCode::OK, &["data-testid=\"defective-seats\""]);
    assert!(!html.contains("withdrawn-seats"), "{html}");
}
