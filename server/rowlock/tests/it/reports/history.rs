//! A history of sales, refunds and lost people, spread over the days around a change of clocks, and counted twice: by
//! the reports, and here from the rows.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{report, staff};
use crate::box_office::{PIN, at_work, desk, holds, manager, of_booking, sells};
use crate::world::{PRICE, World, insert_show, text, until};

/// Where the theatre is.
const ZONE: chrono_tz::Tz = chrono_tz::Europe::Lisbon;
/// The days of the history; clocks go back on the 25th of October.
const FROM: &str = "2026-10-20";
const TO: &str = "2026-11-05";

/// Taken and given back, minor units.
type Money = (i64, i64);

/// Moves everything that happened to its own instant in these days, as if it had taken two weeks. What a booking's story
/// says stays in order.
async fn spread(world: &World) {
    let statements = [
        "ALTER TABLE booking_events DISABLE TRIGGER booking_events_immutable",
        "ALTER TABLE refunds DISABLE TRIGGER refunds_settle_once",
        // Half past midnight and a quarter to it, on both clocks: days begin where they begin there, not here.
        "CREATE TABLE spread AS
         SELECT id, timestamptz '2026-10-20 23:30:00Z' + (row_number() OVER (ORDER BY created_at, id)) * interval '15 hours 40 minutes'
                    AS at FROM bookings",
        "UPDATE booking_events SET at = spread.at + number * interval '3 minutes' FROM spread WHERE spread.id = booking_id",
        "UPDATE refunds SET requested_at = spread.at + interval '20 hours', settled_at = spread.at + (number + 21) * interval '1 hour'
         FROM spread WHERE spread.id = booking_id AND state = 'settled'",
        "UPDATE shows SET starts_at = timestamptz '2026-11-04 20:00:00Z', local_date = '2026-11-04'",
        "ALTER TABLE bookings DISABLE TRIGGER bookings_move",
        "UPDATE bookings SET created_at = spread.at FROM spread WHERE spread.id = bookings.id",
    ];
    for statement in statements {
        sqlx::query(statement).execute(&world.pg).await.expect(statement);
    }
}

/// What the rows say of money, by day on the clocks of the theatre.
async fn money_of_rows(world: &World) -> BTreeMap<NaiveDate, Money> {
    let day = |at: DateTime<Utc>| at.with_timezone(&ZONE).date_naive();
    let mut days: BTreeMap<NaiveDate, Money> = BTreeMap::new();
    let paid: Vec<(Uuid, i64)> = sqlx::query_as(
        "SELECT payment.booking_id, coalesce(payment.charged_minor, payment.amount_minor)
                                    - coalesce(came.charged_minor, came.amount_minor, 0)
         FROM payments payment LEFT JOIN payments came ON came.moved_to = payment.booking_id
         WHERE payment.state = 'succeeded'",
    )
    .fetch_all(&world.pg)
    .await
    .expect("payments");
    for (booking, minor) in paid {
        let at: DateTime<Utc> =
            sqlx::query_scalar("SELECT at FROM booking_events WHERE booking_id = $1 AND event = 'payment_succeeded'")
                .bind(booking)
                .fetch_one(&world.pg)
                .await
                .expect("it is in the story");
        days.entry(day(at)).or_default().0 += minor;
    }
    let refunds: Vec<(DateTime<Utc>, i64)> =
        sqlx::query_as("SELECT settled_at, amount_minor FROM refunds WHERE state = 'settled'")
            .fetch_all(&world.pg)
            .await
            .expect("refunds");
    for (at, minor) in refunds {
        days.entry(day(at)).or_default().1 += minor;
    }
    days
}

fn money_of(report: &Value) -> BTreeMap<NaiveDate, Money> {
    let mut days: BTreeMap<NaiveDate, Money> = BTreeMap::new();
    for line in report["lines"].as_array().expect("lines") {
        assert_eq!(line["currency"], "EUR", "{line}");
        let day = days.entry(text(&line["date"]).parse().expect("a day")).or_default();
        let minor = |name: &str| line[name].as_i64().expect("minor units");
        *day = (day.0 + minor("taken_minor"), day.1 + minor("refunded_minor"));
    }
    days
}

/// Sells, gives back, declines and abandons, all through the doors everybody uses. How many were sold.
async fn happen(world: &World) -> i64 {
    let mut sold = 0;
    for number in 0..12_u32 {
        let visitor = world.visitor();
        let seats = [number * 3, number * 3 + 1, number * 3 + 2];
        // One in six is a cent short at the gateway: all of it goes back.
        let token = if number % 6 == 5 { "tok_another_amount" } else { "tok_paid" };
        let booking = visitor.bought(&seats, token).await;
        match number % 4 {
            _ if token == "tok_another_amount" => {
                visitor.sees_money(&booking, "REFUNDED").await;
                continue;
            }
            0 => {
                assert_eq!(visitor.cancel(&booking, Some(&seats[..1])).await.0, StatusCode::OK);
            }
            1 => {
                assert_eq!(visitor.cancel(&booking, None).await.0, StatusCode::OK);
                visitor.sees_money(&booking, "REFUNDED").await;
            }
            2 => {
                let reference = text(&booking["reference"]).to_owned();
                let (well, said) = world.command(&["cancel-booking", &reference, "--reason", "A broken seat."]).await;
                assert!(well, "{said}");
                visitor.sees_money(&booking, "REFUNDED").await;
            }
            _ => {}
        }
        sold += 1;
    }
    until("nothing is left to do", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    sold
}

#[tokio::test(flavor = "multi_thread")]
async fn takings_agree_with_payments_and_refunds_to_the_cent_on_every_day() {
    let world = World::start(1, &[]).await;
    let sold = happen(&world).await;
    spread(&world).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let rows = money_of_rows(&world).await;
    assert!(rows.len() > 4, "the history takes days: {rows:?}");

    let whole = report(&mut max, "takings", FROM, TO).await;
    assert_eq!(money_of(&whole), rows);
    let (taken, back) = rows.values().fold((0, 0), |sum, day| (sum.0 + day.0, sum.1 + day.1));
    let total = &whole["totals"][0];
    assert_eq!(
        (total["taken_minor"].as_i64(), total["refunded_minor"].as_i64(), total["net_minor"].as_i64()),
        (Some(taken), Some(back), Some(taken - back))
    );
    // What is left is what the tickets cost that are still good, and the fees.
    let tickets = "SELECT coalesce(sum(total_minor), 0)::bigint FROM bookings WHERE state = 'CONFIRMED'";
    let fees = total["fees_minor"].as_i64().expect("fees");
    assert!(fees > 0, "buyers who cancel leave one");
    assert_eq!(taken - back, world.count(tickets).await + fees);

    // Cut anywhere, the parts add up: no day is in two of them, and none in neither.
    let days: Vec<NaiveDate> = FROM.parse::<NaiveDate>().expect("a day").iter_days().take(17).collect();
    for cut in 1..days.len() {
        let first = report(&mut max, "takings", FROM, &days[cut - 1].to_string()).await;
        let second = report(&mut max, "takings", &days[cut].to_string(), TO).await;
        let mut both = money_of(&first);
        both.extend(money_of(&second));
        assert_eq!(both, rows, "cut before {}", days[cut]);
    }
    assert_eq!(sales_in_all(&report(&mut max, "sales", FROM, TO).await).0, sold);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_leaves_the_day_of_the_sale_as_it_was_and_agrees_with_the_till() {
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let old = sells(&mut ann, &world, &[4], "cash").await;
    for statement in [
        "ALTER TABLE booking_events DISABLE TRIGGER booking_events_immutable",
        "UPDATE booking_events SET at = at - interval '1 day'",
    ] {
        sqlx::query(statement).execute(&world.pg).await.expect(statement);
    }
    let hold = holds(&mut ann, &world, &[6, 7]).await;
    let more = json!({ "show": world.show, "hold": hold["id"], "total_minor": 2 * PRICE, "reason": "A friend came." });
    let (status, new) = ann.post(&of_booking(&old, "/exchange"), more).await;
    assert_eq!(status, StatusCode::CREATED, "{new}");
    let (_, takings) = max.get("/api/v1/theatres/aurora/reports/takings").await;
    let days: Vec<Money> = money_of(&takings).into_values().collect();
    assert_eq!(days, [(PRICE, 0), (PRICE, 0)], "{takings}");
    let till = "SELECT sum(amount_minor)::bigint FROM till_rows WHERE kind IN ('sale', 'exchange')";
    assert_eq!(world.count(till).await, 2 * PRICE);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_went_back_before_and_with_an_exchange_is_told_once_and_agrees_with_the_till() {
    let world = World::start(1, &[]).await;
    let (mut max, account) = manager(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let old = sells(&mut ann, &world, &[3, 4, 5], "cash").await;
    let part = json!({ "seats": [3], "reason": "It is broken.", "manager": account, "pin": PIN });
    assert_eq!(ann.post(&of_booking(&old, "/refund"), part).await.0, StatusCode::OK);
    let agree = async |max: &mut crate::accounts::Browser, expected: Money| {
        let (_, takings) = max.get("/api/v1/theatres/aurora/reports/takings").await;
        assert_eq!(money_of(&takings).into_values().collect::<Vec<_>>(), [expected], "{takings}");
        let (_, till) = max.clone().get(&desk("tills")).await;
        assert_eq!(till[0]["cash"]["minor"], expected.0 - expected.1, "{till}");
    };
    agree(&mut max, (3 * PRICE, PRICE)).await;
    // For as many seats as are left, then for one less.
    let mut booking = old;
    for (seats, expected) in [(&[6, 7][..], (3 * PRICE, PRICE)), (&[8], (3 * PRICE, 2 * PRICE))] {
        let hold = holds(&mut ann, &world, seats).await;
        let total = &hold["total"]["minor"];
        let wish = json!({ "show": world.show, "hold": hold["id"], "total_minor": total, "reason": "A better view.",
                           "manager": account, "pin": PIN });
        let (status, new) = ann.post(&of_booking(&booking, "/exchange"), wish).await;
        assert_eq!(status, StatusCode::CREATED, "{new}");
        agree(&mut max, expected).await;
        booking = new;
    }
    world.end().await;
}

/// Bookings, tickets, gross and given back, in all.
fn sales_in_all(report: &Value) -> (i64, i64, i64, i64) {
    let total = &report["totals"][0];
    let number = |name: &str| total[name].as_i64().unwrap_or(0);
    (number("bookings"), number("tickets"), number("gross_minor"), number("given_back"))
}

#[tokio::test(flavor = "multi_thread")]
async fn sales_are_told_by_day_channel_category_film_and_show_and_each_adds_up() {
    let world = World::start(1, &[]).await;
    let sold = happen(&world).await;
    spread(&world).await;
    let mut olga = staff(&world, "olga@example.org", "organiser").await;
    let report = report(&mut olga, "sales", FROM, TO).await;
    let (bookings, tickets, gross, given_back) = sales_in_all(&report);
    assert_eq!((bookings, tickets, gross), (sold, 3 * sold, 3 * sold * PRICE));
    let returned = "SELECT (SELECT count(*) FROM returned_seats)
                         + (SELECT count(*) FROM tickets JOIN bookings ON id = booking_id WHERE state = 'CANCELLED')";
    assert_eq!(given_back, world.count(returned).await);
    for part in ["by_day", "by_channel", "by_category", "by_film", "by_show"] {
        let lines = report[part].as_array().expect("lines");
        let sum = |name: &str| lines.iter().filter_map(|line| line[name].as_i64()).sum::<i64>();
        assert_eq!(
            (sum("bookings"), sum("tickets"), sum("gross_minor"), sum("given_back")),
            (bookings, tickets, gross, given_back),
            "{part}"
        );
    }
    assert_eq!(report["by_channel"][0]["name"], "online");
    assert_eq!((&report["by_category"][0]["name"], &report["by_film"][0]["name"]), (&"Gold".into(), &"Tide".into()));
    assert_eq!(report["by_show"][0]["starts_local"], "2026-11-04T20:00:00");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_theatre_is_told_nothing_of_another_one() {
    let world = World::start(1, &[]).await;
    crate::accounts::another_theatre(&world).await;
    world.visitor().bought(&[1], "tok_paid").await;
    let mut max = crate::accounts::signed_up(&world, "max@example.org").await;
    crate::accounts::grant(&world, "max@example.org", "rialto", "manager").await;
    let (status, sales) = max.get("/api/v1/theatres/rialto/reports/sales").await;
    assert_eq!((status, &sales["totals"]), (StatusCode::OK, &Value::Array(vec![])));
    let (_, room) = max.get("/api/v1/theatres/rialto/reports/occupancy").await;
    assert_eq!((&room["screens"], &room["shows"]), (&Value::Array(vec![]), &0.into()));
    let screen: String = sqlx::query_scalar("SELECT id FROM screens").fetch_one(&world.pg).await.expect("a screen");
    let (status, _) = max.get(&format!("/api/v1/theatres/rialto/reports/occupancy?screen={screen}")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(max.get("/api/v1/theatres/aurora/reports/sales").await.0, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_counted_from_the_hold_to_the_ticket_and_where_they_were_lost() {
    let world = World::start(1, &[]).await;
    // Two pay, one is declined, one lets go after checking out, one is still deciding, one never checks out.
    world.visitor().bought(&[1, 2], "tok_paid").await;
    world.visitor().bought(&[3], "tok_paid").await;
    for (seat, pays) in [(4, Some("tok_declined")), (5, None), (6, None)] {
        let visitor = world.visitor();
        let (_, hold) = visitor.hold(&[seat]).await;
        let (status, booking) = visitor.book(&hold).await;
        assert_eq!(status, StatusCode::CREATED, "{booking}");
        if pays.is_some() {
            visitor.pay(&booking, pays).await;
        } else if seat == 5 {
            assert_eq!(visitor.cancel(&booking, None).await.0, StatusCode::OK);
        }
    }
    let idle = world.visitor();
    assert_eq!(idle.hold(&[7]).await.0, StatusCode::CREATED);
    assert_eq!(idle.hold(&[8]).await.0, StatusCode::CONFLICT, "what is refused is no hold");
    until("holds are written down", || async {
        world.count("SELECT coalesce(sum(granted), 0)::bigint FROM hold_counts").await == 6
    })
    .await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (status, funnel) = max.get("/api/v1/theatres/aurora/reports/funnel").await;
    assert_eq!(status, StatusCode::OK, "{funnel}");
    for (step, number) in [
        ("holds", 6),
        ("checked_out", 5),
        ("submitted", 3),
        ("paid", 2),
        ("ticketed", 2),
        ("ran_out", 0),
        ("declined", 1),
        ("let_go", 1),
        ("open", 1),
    ] {
        assert_eq!(funnel[step], number, "{step}: {funnel}");
    }
    // A hold counts on the day it was taken, and nothing before counts.
    let (_, before) = max.get("/api/v1/theatres/aurora/reports/funnel?from=2020-01-01&to=2020-02-01").await;
    assert_eq!((&before["holds"], &before["checked_out"]), (&0.into(), &0.into()));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seat_is_as_hot_as_often_as_it_was_sold_in_the_shows_of_its_room() {
    let world = World::start(1, &[]).await;
    // One more show in the same room, and one in another.
    let other = insert_show(&world.pg, 300_000, 30 * 3_600).await;
    let second = insert_show(&world.pg, 300_000, 40 * 3_600).await;
    for statement in [
        "UPDATE shows SET (screen_id, layout_id) = (SELECT screen_id, layout_id FROM shows WHERE id = $1) WHERE id = $2",
        // The room was built anew before that one.
        "UPDATE shows SET screen_id = (SELECT screen_id FROM shows WHERE id = $1) WHERE id = $2",
    ] {
        let moved = if statement.contains("layout_id)") { second } else { other };
        sqlx::query(statement).bind(world.show).bind(moved).execute(&world.pg).await.expect("it is moved");
    }
    world.visitor().bought(&[46, 47], "tok_paid").await;
    let again = crate::world::Visitor { show: second, ..world.visitor() };
    let given_back = again.bought(&[46, 48], "tok_paid").await;
    assert_eq!(again.cancel(&given_back, Some(&[48])).await.0, StatusCode::OK);
    crate::world::Visitor { show: other, ..world.visitor() }.bought(&[46], "tok_paid").await;
    until("it is free again", || async {
        world.count("SELECT count(*) FROM seat_claims WHERE seat_no = 48 AND state = 'sold'").await == 0
    })
    .await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let screen: String = sqlx::query_scalar("SELECT screen_id FROM shows WHERE id = $1")
        .bind(world.show)
        .fetch_one(&world.pg)
        .await
        .expect("a screen");
    let ahead = (platform::clock::to_utc(platform::clock::now()) + chrono::Duration::days(3)).date_naive();
    let path = format!("/api/v1/theatres/aurora/reports/occupancy?to={ahead}&screen={screen}");
    let (status, room) = max.get(&path).await;
    assert_eq!(status, StatusCode::OK, "{room}");
    assert_eq!((&room["shows"], &room["shows_in_other_rooms"]), (&2.into(), &1.into()), "{room}");
    let sold = |seat: usize| room["sold"][seat].as_i64();
    assert_eq!((sold(46), sold(47), sold(48), sold(0)), (Some(2), Some(1), Some(0), Some(0)));
    assert_eq!(room["sold"].as_array().map(Vec::len), Some(300));
    world.end().await;
}
