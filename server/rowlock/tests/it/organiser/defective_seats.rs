//! A defective seat is one act: out of sale, a refund, a notice, and no offer of it in between.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::pages::{THERE, page, send};
use super::{HERE, organiser};
use crate::box_office::acts;
use crate::cancel::books_balance;
use crate::world::{PRICE, Visitor, World, text, until};

/// Another show on the world's screen, in the same room.
async fn another_show(world: &World, called_off: bool) -> Uuid {
    let id = platform::ids::new_id();
    sqlx::query(
        "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices, hold_ms, called_off)
         SELECT $1, screen_id, film_id, layout_id, starts_at + interval '1 day', local_date + 1, language, format, currency,
                prices, hold_ms, $3
         FROM shows WHERE id = $2",
    )
    .bind(id)
    .bind(world.show)
    .bind(called_off)
    .execute(&world.pg)
    .await
    .expect("the show is written");
    id
}

fn act(seats: &[&str], all_shows: bool) -> Value {
    json!({ "seats": seats, "all_shows": all_shows, "reason": "The backrest is broken." })
}

fn seats_of(booking: &Value) -> Vec<u64> {
    booking["seats"].as_array().expect("seats").iter().filter_map(|line| line["seat"].as_u64()).collect()
}

/// Fails if the waiting list has made an offer.
async fn nothing_is_offered(world: &World) {
    let offered = "SELECT count(*) FROM waiting_list WHERE offer_number > 0";
    assert_eq!(world.count(offered).await, 0, "the defective seat was offered to the waiting list");
}

/// Waits for two more rounds of the show's waiting list, in which it makes no offer.
async fn looked_at_twice(world: &World) {
    for _ in 0..2 {
        let before: chrono::DateTime<chrono::Utc> =
            sqlx::query_scalar("SELECT looked_at FROM waiting_lists").fetch_one(&world.pg).await.expect("a list");
        until("the list is looked at", || async {
            nothing_is_offered(world).await;
            let now: chrono::DateTime<chrono::Utc> =
                sqlx::query_scalar("SELECT looked_at FROM waiting_lists").fetch_one(&world.pg).await.expect("a list");
            now > before
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_defective_seat_that_comes_back_is_not_offered_to_the_waiting_list() {
    let world = World::start(2, &[]).await;
    world.sell_only(&[20, 21, 22]).await;
    let mut olga = organiser(&world).await;
    let (bob, cat, ann) = (world.visitor(), world.visitor(), world.visitor_at(1));
    let (sold, other) = (bob.bought(&[20, 21], "tok_paid").await, cat.bought(&[22], "tok_paid").await);
    let (status, place) = ann.wait_for(1).await;
    assert_eq!(status, StatusCode::CREATED, "{place}");

    let path = format!("{HERE}/programme/{}/defective-seats", world.show);
    let key = [("idempotency-key", "the-broken-seat")];
    let (status, _, answer) = olga.send_with(Method::POST, &path, &act(&["B1"], false), &key).await;
    assert_eq!(
        (status, &answer["shows"], &answer["bookings"]),
        (StatusCode::ACCEPTED, &json!(1), &json!(1)),
        "{answer}"
    );
    // The same again, as after an answer that was lost.
    let (status, _, again) = olga.send_with(Method::POST, &path, &act(&["B1"], false), &key).await;
    assert_eq!((status, &again), (StatusCode::ACCEPTED, &answer));

    until("the money for it went back", || async {
        world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await == 1
    })
    .await;
    bob.sees(20, '3').await;
    let seen = bob.booking(&sold).await;
    assert_eq!((&seen["state"], seats_of(&seen)), (&json!("CONFIRMED"), vec![21]), "{seen}");
    assert_eq!(seen["refunds"][0]["amount"]["minor"], PRICE, "in full: {seen}");
    until("the notice has the reason", || async {
        world.mails().iter().any(|mail| mail.contains("backrest is broken"))
    })
    .await;
    books_balance(&world).await;
    looked_at_twice(&world).await;
    assert_eq!(ann.waiting().await.1["state"], "WAITING");
    nothing_is_offered(&world).await;
    assert_eq!(world.visitor().hold(&[20]).await.0, StatusCode::CONFLICT, "nor is it on sale");

    // Another seat that comes back is hers.
    assert_eq!(cat.cancel(&other, None).await.0, StatusCode::OK);
    let offered = ann.sees_waiting("OFFERED").await;
    let seats = offered["offer"]["seats"].as_array().expect("seats");
    assert_eq!(seats.iter().filter_map(|line| line["seat"].as_u64()).collect::<Vec<_>>(), [22]);
    assert_eq!(acts(&world).await, ["defective_seats"]);
    books_balance(&world).await;
    world.end().await;
}

/// The same visitor at another show.
fn at(visitor: &Visitor, show: Uuid) -> Visitor {
    Visitor { show, ..visitor.clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn defective_seats_of_all_planned_shows_are_refunded_released_and_their_payments_stopped() {
    let world = World::start(2, &[]).await;
    let mut olga = organiser(&world).await;
    let (tomorrow, gone) = (another_show(&world, false).await, another_show(&world, true).await);
    let elsewhere = crate::world::insert_show(&world.pg, 300_000, 24 * 3_600).await;
    // Sold alone and with another; held with another; being paid for on the gateway's page; of other shows.
    let (alone, beside, chooses, pays, away) = (
        world.visitor(),
        world.visitor(),
        world.visitor_at(1),
        at(&world.visitor(), tomorrow),
        at(&world.visitor(), elsewhere),
    );
    let alone_booking = alone.bought(&[5], "tok_paid").await;
    let beside_booking = beside.bought(&[7, 8], "tok_paid").await;
    let (status, held) = chooses.hold(&[6, 26]).await;
    assert_eq!(status, StatusCode::CREATED, "{held}");
    let (status, hold) = pays.hold(&[5]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let (_, pending) = pays.book(&hold).await;
    let (_, pending) = pays.pay(&pending, None).await;
    assert_eq!(pending["state"], "PAYMENT_PENDING", "{pending}");
    let away_booking = away.bought(&[5], "tok_paid").await;

    let path = format!("{HERE}/programme/{}/defective-seats", world.show);
    let (status, answer) = olga.post(&path, act(&["A6", "A7", "A8"], true)).await;
    assert_eq!(
        (status, &answer["shows"], &answer["bookings"]),
        (StatusCode::ACCEPTED, &json!(2), &json!(3)),
        "{answer}"
    );
    // Held seats are let go at once, and the hold keeps the other.
    let kept = chooses.held().await;
    assert_eq!(kept["seats"].as_array().map(Vec::len), Some(1), "{kept}");
    alone.sees_money(&alone_booking, "REFUNDED").await;
    // Nothing was charged, nor will be.
    let seen = pays.sees_money(&pending, "FAILED").await;
    assert_eq!(seen["state"], "CANCELLED", "{seen}");
    until("the part went back", || async {
        world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await == 2
    })
    .await;
    assert_eq!(seats_of(&beside.booking(&beside_booking).await), [8]);
    for visitor in [&alone, &pays] {
        for seat in [5, 6, 7] {
            visitor.sees(seat, '3').await;
        }
    }
    assert_eq!(away.booking(&away_booking).await["state"], "CONFIRMED", "another screen");
    away.sees(6, '0').await;
    let kept = "SELECT count(*) FROM house_seats WHERE reason = 'The backrest is broken.'";
    assert_eq!(world.count(kept).await, 6, "staff see why, and put them back once they are mended");
    let of_gone: i64 = sqlx::query_scalar("SELECT count(*) FROM house_seats WHERE show_id = $1")
        .bind(gone)
        .fetch_one(&world.pg)
        .await
        .expect("a number");
    assert_eq!(of_gone, 0, "a show that was called off is none");
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_had_begun_is_undone_when_its_claim_appears() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    // Found by the worker alone: the row is there before the sale.
    let insert = "INSERT INTO seat_withdrawals (show_id, seat_no, layout_id, reason, requested_at, look_at)
                  SELECT id, 9, layout_id, 'The backrest is broken.', now(), now() FROM shows WHERE id = $1";
    let ann = world.visitor();
    let sold = ann.bought(&[9], "tok_paid").await;
    sqlx::query("UPDATE shows SET blocked = '{9}' WHERE id = $1")
        .bind(world.show)
        .execute(&world.pg)
        .await
        .expect("kept");
    sqlx::query(insert).bind(world.show).execute(&world.pg).await.expect("it is looked after");
    ann.sees_money(&sold, "REFUNDED").await;
    ann.sees(9, '3').await;
    // A later look ends it; one that was put back on sale is not looked after.
    let (status, _) =
        olga.post(&format!("{HERE}/programme/{}/defective-seats", world.show), act(&["A11"], false)).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    ann.sees(10, '3').await;
    let back = "UPDATE shows SET blocked = '{9}' WHERE id = $1";
    sqlx::query(back).bind(world.show).execute(&world.pg).await.expect("it is put back");
    let open = "SELECT count(*) FROM seat_withdrawals WHERE seat_no = 10 AND finished_at IS NULL";
    until("it is looked after no more", || async { world.count(open).await == 0 }).await;
    let old = "UPDATE seat_withdrawals SET requested_at = requested_at - interval '1 minute'";
    sqlx::query(old).execute(&world.pg).await.expect("a minute passes");
    until("all are settled", || async {
        world.count("SELECT count(*) FROM seat_withdrawals WHERE finished_at IS NULL").await == 0
    })
    .await;
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_withdraws_seats_and_a_refusal_keeps_the_input() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let there = format!("{THERE}/shows/{}", world.show);
    let (status, html) = page(&olga, &there).await;
    assert!(status == StatusCode::OK && html.contains("data-testid=\"defective-seats\""), "{html}");
    let form = |key, seats, reason| [("key", key), ("seats", seats), ("reason", reason)];
    let to = format!("{there}/defective-seats");
    for (key, seats, reason) in [("k-1", "A1, Z9", "Broken."), ("k-2", " , ", "Broken."), ("k-3", "A1", " ")] {
        let (status, _, html) = send(&olga, &to, &form(key, seats, reason)).await;
        assert!(status == StatusCode::BAD_REQUEST && html.contains(seats.trim()), "{seats}: {html}");
    }
    assert_eq!(world.count("SELECT count(*) FROM house_seats").await, 0);
    let (status, on, html) = send(&olga, &to, &form("k-4", "A1, B2", "Broken.")).await;
    assert_eq!((status, on), (StatusCode::SEE_OTHER, format!("{there}?done=true")), "{html}");
    assert_eq!(world.count("SELECT cardinality(blocked)::bigint FROM shows").await, 2);

    let path = format!("{HERE}/programme/{}/defective-seats", world.show);
    for (seats, code) in [(&["Z9"][..], "unknown_seat"), (&[][..], "malformed"), (&["A1", "A1"][..], "seat_twice")] {
        let (status, problem) = olga.post(&path, act(seats, true)).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, code), "{problem}");
    }
    let (status, problem) = olga.post(&path.replace("aurora", "rialto"), act(&["A1"], false)).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{problem}");
    let begun = "UPDATE shows SET starts_at = now() - interval '1 minute'";
    sqlx::query(begun).execute(&world.pg).await.expect("it has begun");
    let (status, problem) = olga.post(&path, act(&["A1"], false)).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"), "{problem}");
    world.end().await;
}
