//! Reports over a real history match the rows to the cent, for every day.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use crate::box_office::{PIN, booking_path, desk_path, hold_seats, manager, sell_seats, seller_with_open_till};
use crate::prelude::*;

pub async fn staff(world: &World, email: &str, role: &str) -> Browser {
    let browser = register_and_log_in(world, email).await;
    grant(world, email, "aurora", role).await;
    browser
}

pub async fn report(of: &mut Browser, name: &str, from: &str, to: &str) -> Value {
    expect_answer(of.get(&format!("/api/v1/theatres/aurora/reports/{name}?from={from}&to={to}")).await, StatusCode::OK)
}

const ZONE: chrono_tz::Tz = chrono_tz::Europe::Lisbon;
/// Days of the history; clocks go back on 25 October.
const FROM: &str = "2026-10-20";
const TO: &str = "2026-11-05";

/// Money taken and refunded, in minor units.
type TakenAndRefunded = (i64, i64);

/// Distributes all rows over these days, as if the history had taken two weeks. The events of a booking stay in order.
async fn distribute_over_days(world: &World) {
    let statements = [
        "ALTER TABLE booking_events DISABLE TRIGGER booking_events_immutable",
        "ALTER TABLE refunds DISABLE TRIGGER refunds_settle_once",
        // Around midnight in both offsets: days must begin at local midnight.
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
        world.run(sqlx::query(statement)).await;
    }
}

async fn money_of_rows(world: &World) -> BTreeMap<NaiveDate, TakenAndRefunded> {
    let day = |at: DateTime<Utc>| at.with_timezone(&ZONE).date_naive();
    let mut days: BTreeMap<NaiveDate, TakenAndRefunded> = BTreeMap::new();
    let sql = "SELECT payment.booking_id, coalesce(payment.charged_minor, payment.amount_minor)
                                          - coalesce(came.charged_minor, came.amount_minor, 0)
               FROM payments payment LEFT JOIN payments came ON came.moved_to = payment.booking_id
               WHERE payment.state = 'succeeded'";
    let paid: Vec<(Uuid, i64)> = sqlx::query_as(sql).fetch_all(&world.pg).await.expect("payments");
    for (booking, minor) in paid {
        let sql = "SELECT at FROM booking_events WHERE booking_id = $1 AND event = 'payment_succeeded'";
        let at: DateTime<Utc> = world.value(sqlx::query_scalar(sql).bind(booking)).await;
        days.entry(day(at)).or_default().0 += minor;
    }
    let sql = "SELECT settled_at, amount_minor FROM refunds WHERE state = 'settled'";
    let refunds: Vec<(DateTime<Utc>, i64)> = sqlx::query_as(sql).fetch_all(&world.pg).await.expect("refunds");
    for (at, minor) in refunds {
        days.entry(day(at)).or_default().1 += minor;
    }
    days
}

fn money_of(report: &Value) -> BTreeMap<NaiveDate, TakenAndRefunded> {
    let mut days: BTreeMap<NaiveDate, TakenAndRefunded> = BTreeMap::new();
    for line in report["lines"].as_array().expect("lines") {
        assert_eq!(line["currency"], "EUR", "{line}");
        let day = days.entry(text(&line["date"]).parse().expect("a day")).or_default();
        let minor = |name: &str| line[name].as_i64().expect("minor units");
        *day = (day.0 + minor("taken_minor"), day.1 + minor("refunded_minor"));
    }
    days
}

/// Sells, refunds, declines and abandons through the public API. Returns the number of sales.
async fn create_history(world: &World) -> i64 {
    let mut sold = 0;
    for number in 0..12_u32 {
        let visitor = world.visitor();
        let seats = [number * 3, number * 3 + 1, number * 3 + 2];
        // One in six is a cent short at the gateway, and is refunded in full.
        let token = if number % 6 == 5 { "tok_another_amount" } else { "tok_paid" };
        let booking = visitor.buy_seats(&seats, token).await;
        match number % 4 {
            _ if token == "tok_another_amount" => {
                visitor.wait_for_money(&booking, "REFUNDED").await;
                continue;
            }
            0 => {
                assert_eq!(visitor.cancel(&booking, Some(&seats[..1])).await.0, StatusCode::OK);
            }
            1 => {
                assert_eq!(visitor.cancel(&booking, None).await.0, StatusCode::OK);
                visitor.wait_for_money(&booking, "REFUNDED").await;
            }
            2 => {
                let reference = text(&booking["reference"]).to_owned();
                let (well, said) = world.command(&["cancel-booking", &reference, "--reason", "A broken seat."]).await;
                assert!(well, "{said}");
                visitor.wait_for_money(&booking, "REFUNDED").await;
            }
            _ => {}
        }
        sold += 1;
    }
    world.wait_for_empty_outbox().await;
    sold
}

#[tokio::test(flavor = "multi_thread")]
async fn takings_match_payments_and_refunds_to_the_cent_on_every_day() {
    let world = World::start(1, &[]).await;
    let sold = create_history(&world).await;
    distribute_over_days(&world).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let rows = money_of_rows(&world).await;
    assert!(rows.len() > 4, "the history spans days: {rows:?}");

    let whole = report(&mut max, "takings", FROM, TO).await;
    assert_eq!(money_of(&whole), rows);
    let (taken, back) = rows.values().fold((0, 0), |sum, day| (sum.0 + day.0, sum.1 + day.1));
    let total = &whole["totals"][0];
    assert_eq!(["taken_minor", "refunded_minor", "net_minor"].map(|sum| &total[sum]), [taken, back, taken - back]);
    // The rest is the price of the valid tickets, and the fees.
    let tickets = "SELECT coalesce(sum(total_minor), 0)::bigint FROM bookings WHERE state = 'CONFIRMED'";
    let fees = total["fees_minor"].as_i64().expect("fees");
    assert!(fees > 0, "cancellations leave fees");
    assert_eq!(taken - back, world.count(tickets).await + fees);

    // Split at any day, the parts add up: each day is in exactly one part.
    let days: Vec<NaiveDate> = FROM.parse::<NaiveDate>().expect("a day").iter_days().take(17).collect();
    for cut in 1..days.len() {
        let first = report(&mut max, "takings", FROM, &days[cut - 1].to_string()).await;
        let second = report(&mut max, "takings", &days[cut].to_string(), TO).await;
        let mut both = money_of(&first);
        both.extend(money_of(&second));
        assert_eq!(both, rows, "cut before {}", days[cut]);
    }
    assert_eq!(sales_totals(&report(&mut max, "sales", FROM, TO).await).0, sold);
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_keeps_the_day_of_the_sale_and_matches_the_till() {
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let old = sell_seats(&mut ann, &world, &[4], "cash").await;
    for statement in [
        "ALTER TABLE booking_events DISABLE TRIGGER booking_events_immutable",
        "UPDATE booking_events SET at = at - interval '1 day'",
    ] {
        world.run(sqlx::query(statement)).await;
    }
    let hold = hold_seats(&mut ann, &world, &[6, 7]).await;
    let more = json!({ "show": world.show, "hold": hold["id"], "total_minor": 2 * PRICE, "reason": "A friend came." });
    expect_answer(ann.post(&booking_path(&old, "/exchange"), more).await, StatusCode::CREATED);
    let (_, takings) = max.get("/api/v1/theatres/aurora/reports/takings").await;
    let days: Vec<TakenAndRefunded> = money_of(&takings).into_values().collect();
    assert_eq!(days, [(PRICE, 0), (PRICE, 0)], "{takings}");
    let till = "SELECT sum(amount_minor)::bigint FROM till_rows WHERE kind IN ('sale', 'exchange')";
    assert_eq!(world.count(till).await, 2 * PRICE);
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_before_and_with_an_exchange_are_counted_once_and_match_the_till() {
    let world = World::start(1, &[]).await;
    let (mut max, account) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let old = sell_seats(&mut ann, &world, &[3, 4, 5], "cash").await;
    let part = json!({ "seats": [3], "reason": "It is broken.", "manager": account, "pin": PIN });
    assert_eq!(ann.post(&booking_path(&old, "/refund"), part).await.0, StatusCode::OK);
    let agree = async |max: &mut crate::accounts::Browser, expected: TakenAndRefunded| {
        let (_, takings) = max.get("/api/v1/theatres/aurora/reports/takings").await;
        assert_eq!(money_of(&takings).into_values().collect::<Vec<_>>(), [expected], "{takings}");
        let (_, till) = max.clone().get(&desk_path("tills")).await;
        assert_eq!(till[0]["cash"]["minor"], expected.0 - expected.1, "{till}");
    };
    agree(&mut max, (3 * PRICE, PRICE)).await;
    // For as many seats as are left, then for one fewer.
    let mut booking = old;
    for (seats, expected) in [(&[6, 7][..], (3 * PRICE, PRICE)), (&[8], (3 * PRICE, 2 * PRICE))] {
        let hold = hold_seats(&mut ann, &world, seats).await;
        let total = &hold["total"]["minor"];
        let request_body = json!({ "show": world.show, "hold": hold["id"], "total_minor": total, "reason": "A better view.",
                           "manager": account, "pin": PIN });
        let new =
            expect_answer(ann.post(&booking_path(&booking, "/exchange"), request_body).await, StatusCode::CREATED);
        agree(&mut max, expected).await;
        booking = new;
    }
}

fn sales_totals(report: &Value) -> (i64, i64, i64, i64) {
    let total = &report["totals"][0];
    let number = |name: &str| total[name].as_i64().unwrap_or(0);
    (number("bookings"), number("tickets"), number("gross_minor"), number("given_back"))
}

#[tokio::test(flavor = "multi_thread")]
async fn sales_by_day_channel_category_film_and_show_each_add_up() {
    let world = World::start(1, &[]).await;
    let sold = create_history(&world).await;
    distribute_over_days(&world).await;
    let mut olga = staff(&world, "olga@example.org", "organiser").await;
    let report = report(&mut olga, "sales", FROM, TO).await;
    let (bookings, tickets, gross, given_back) = sales_totals(&report);
    assert_eq!((bookings, tickets, gross), (sold, 3 * sold, 3 * sold * PRICE));
    let returned = "SELECT (SELECT count(*) FROM returned_seats)
                         + (SELECT count(*) FROM tickets JOIN bookings ON id = booking_id WHERE state = 'CANCELLED')";
    assert_eq!(given_back, world.count(returned).await);
    for part in ["by_day", "by_channel", "by_category", "by_film", "by_show"] {
        let lines = report[part].as_array().expect("lines");
        let sum = |name: &str| lines.iter().filter_map(|line| line[name].as_i64()).sum::<i64>();
        let sums = ["bookings", "tickets", "gross_minor", "given_back"].map(sum);
        assert_eq!(sums, [bookings, tickets, gross, given_back], "{part}");
    }
    assert_eq!(report["by_channel"][0]["name"], "online");
    assert_eq!((&report["by_category"][0]["name"], &report["by_film"][0]["name"]), (&"Gold".into(), &"Tide".into()));
    assert_eq!(report["by_show"][0]["starts_local"], "2026-11-04T20:00:00");
}

#[tokio::test(flavor = "multi_thread")]
async fn theatre_gets_no_data_of_another_theatre() {
    let world = World::start(1, &[]).await;
    crate::accounts::another_theatre(&world).await;
    world.visitor().buy_seats(&[1], "tok_paid").await;
    let mut max = register_and_log_in(&world, "max@example.org").await;
    crate::accounts::grant(&world, "max@example.org", "rialto", "manager").await;
    let (status, sales) = max.get("/api/v1/theatres/rialto/reports/sales").await;
    assert_eq!((status, &sales["totals"]), (StatusCode::OK, &Value::Array(vec![])));
    let (_, room) = max.get("/api/v1/theatres/rialto/reports/occupancy").await;
    assert_eq!((&room["screens"], &room["shows"]), (&Value::Array(vec![]), &0.into()));
    let screen: String = world.value(sqlx::query_scalar("SELECT id FROM screens")).await;
    let answer = max.get(&format!("/api/v1/theatres/rialto/reports/occupancy?screen={screen}")).await;
    assert_eq!(answer.0, StatusCode::NOT_FOUND);
    assert_eq!(max.get("/api/v1/theatres/aurora/reports/sales").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn funnel_counts_visitors_from_hold_to_ticket_and_where_they_left() {
    let world = World::start(1, &[]).await;
    // Two pay, one is declined, one releases after checkout, one has a hold, one never checks out.
    world.visitor().buy_seats(&[1, 2], "tok_paid").await;
    world.visitor().buy_seats(&[3], "tok_paid").await;
    for (seat, pays) in [(4, Some("tok_declined")), (5, None), (6, None)] {
        let visitor = world.visitor();
        let (_, booking) = visitor.check_out(&[seat]).await;
        if pays.is_some() {
            visitor.pay(&booking, pays).await;
        } else if seat == 5 {
            assert_eq!(visitor.cancel(&booking, None).await.0, StatusCode::OK);
        }
    }
    let idle = world.visitor();
    assert_eq!(idle.hold(&[7]).await.0, StatusCode::CREATED);
    assert_eq!(idle.hold(&[8]).await.0, StatusCode::CONFLICT, "a refused hold does not count");
    world.wait_for_count("holds are recorded", "SELECT coalesce(sum(granted), 0)::bigint FROM hold_counts", 6).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let funnel = expect_answer(max.get("/api/v1/theatres/aurora/reports/funnel").await, StatusCode::OK);
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
    // A hold counts on the day it was taken.
    let (_, before) = max.get("/api/v1/theatres/aurora/reports/funnel?from=2020-01-01&to=2020-02-01").await;
    assert_eq!((&before["holds"], &before["checked_out"]), (&0.into(), &0.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn heat_of_a_seat_is_its_number_of_sales_in_shows_of_its_layout() {
    let world = World::start(1, &[]).await;
    // Another show with the same layout, and one with another layout.
    let other = insert_show(&world.pg, 300_000, 30 * 3_600).await;
    let second = insert_show(&world.pg, 300_000, 40 * 3_600).await;
    for statement in [
        "UPDATE shows SET (screen_id, layout_id) = (SELECT screen_id, layout_id FROM shows WHERE id = $1) WHERE id = $2",
        // The layout was replaced before that one.
        "UPDATE shows SET screen_id = (SELECT screen_id FROM shows WHERE id = $1) WHERE id = $2",
    ] {
        let moved = if statement.contains("layout_id)") { second } else { other };
        world.run(sqlx::query(statement).bind(world.show).bind(moved)).await;
    }
    world.visitor().buy_seats(&[46, 47], "tok_paid").await;
    let again = world.visitor().at_show(second);
    let given_back = again.buy_seats(&[46, 48], "tok_paid").await;
    assert_eq!(again.cancel(&given_back, Some(&[48])).await.0, StatusCode::OK);
    world.visitor().at_show(other).buy_seats(&[46], "tok_paid").await;
    let query = "SELECT count(*) FROM seat_claims WHERE seat_no = 48 AND state = 'sold'";
    world.wait_for_count("the seat is free again", query, 0).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let screen: String =
        world.value(sqlx::query_scalar("SELECT screen_id FROM shows WHERE id = $1").bind(world.show)).await;
    let ahead = (platform::clock::to_utc(platform::clock::now()) + chrono::Duration::days(3)).date_naive();
    let path = format!("/api/v1/theatres/aurora/reports/occupancy?to={ahead}&screen={screen}");
    let room = expect_answer(max.get(&path).await, StatusCode::OK);
    assert_eq!((&room["shows"], &room["shows_in_other_rooms"]), (&2.into(), &1.into()), "{room}");
    let sold = |seat: usize| room["sold"][seat].as_i64();
    assert_eq!((sold(46), sold(47), sold(48), sold(0)), (Some(2), Some(1), Some(0), Some(0)));
    assert_eq!(room["sold"].as_array().map(Vec::len), Some(300));
}

#[tokio::test(flavor = "multi_thread")]
async fn page_charts_the_sales_and_lists_every_number_in_a_table() {
    let world = World::start(1, &[]).await;
    world.visitor().buy_seats(&[46, 47], "tok_paid").await;
    let max = staff(&world, "max@example.org", "manager").await;
    let olga = staff(&world, "olga@example.org", "organiser").await;
    let ahead = (platform::clock::to_utc(platform::clock::now()) + chrono::Duration::days(3)).date_naive();
    let path = format!("/staff/aurora/reports?to={ahead}");
    for who in [&max, &olga] {
        let words = ["€25.00", "Tide", "Gold", "/api/v1/theatres/aurora/reports/csv/takings?from="];
        let html = expect_page(who.page(&path).await, StatusCode::OK, &words);
        for drawing in ["chart-days", "chart-takings", "chart-room"] {
            assert!(html.contains(&format!("data-testid=\"{drawing}\"")), "{drawing}: {html}");
        }
        assert_eq!(html.matches("role=\"img\"").count(), 3);
        assert_eq!((html.matches("<title id=").count(), html.matches("<desc id=").count()), (3, 3));
        assert!(!html.contains("style=\""), "the content security policy forbids it");
        assert!(!html.contains("separator="), "{html}");
    }
    expect_page(max.page(&format!("{path}&lang=de")).await, StatusCode::OK, &["separator=semicolon"]);
    let answer = max.page("/staff/aurora/reports?from=2026-01-01&to=2026-12-31&lang=de").await;
    expect_page(answer, StatusCode::BAD_REQUEST, &["höchstens 92 Tage"]);
}

fn total<'a>(html: &'a str, card: &str) -> &'a str {
    let (_, rest) = html.split_once(&format!("data-testid=\"{card}\"")).expect("a card");
    rest.split_once("<dd>").and_then(|(_, rest)| rest.split("</dd>").next()).expect("a sum")
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_screen_filters_every_report_and_no_selection_means_all() {
    let world = World::start(1, &[]).await;
    let other = insert_show(&world.pg, 300_000, 30 * 3_600).await;
    let rename =
        "UPDATE screens SET name = 'Screen 2' WHERE id = (SELECT screen_id FROM shows WHERE id = $1) RETURNING id";
    let second: String = world.value(sqlx::query_scalar(rename).bind(other)).await;
    world.visitor().buy_seats(&[46, 47], "tok_paid").await;
    world.visitor().at_show(other).buy_seats(&[1], "tok_paid").await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let ahead = (platform::clock::to_utc(platform::clock::now()) + chrono::Duration::days(3)).date_naive();
    let first = world.screen.as_str();
    for (screen, tickets, gross) in [("", "3", "€37.50"), (first, "2", "€25.00"), (second.as_str(), "1", "€12.50")]
    {
        let html =
            expect_answer(max.page(&format!("/staff/aurora/reports?to={ahead}&screen={screen}")).await, StatusCode::OK);
        let totals = ["total-tickets", "total-gross", "total-net"].map(|card| total(&html, card));
        assert_eq!(totals, [tickets, gross, gross], "{screen}: {html}");
        assert!(html.contains(&format!("value=\"{screen}\" selected")), "{screen}: {html}");
        // Seats are shown for a single layout only.
        assert_eq!(html.contains("data-testid=\"chart-room\""), !screen.is_empty(), "{html}");
        assert_eq!(html.contains("data-testid=\"choose-screen\""), screen.is_empty(), "{html}");
        assert_eq!(html.matches(&format!("screen={first}\"")).count(), if screen == first { 8 } else { 0 }, "{html}");
        let bookings = if screen.is_empty() { 2 } else { 1 };
        let path = |name: &str| format!("/api/v1/theatres/aurora/reports/{name}?to={ahead}&screen={screen}");
        let (_, funnel) = max.get(&path("funnel")).await;
        assert_eq!(funnel["paid"], bookings, "{funnel}");
        let (_, sales) = max.get(&path("sales")).await;
        assert_eq!(sales["by_show"].as_array().map(Vec::len), Some(bookings), "{sales}");
    }
    for report in ["sales", "funnel", "takings", "occupancy", "csv/days"] {
        let (status, _) = max.get(&format!("/api/v1/theatres/aurora/reports/{report}?screen=none")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn report_pages_are_for_managers_and_organisers_only() {
    let world = World::start(1, &[]).await;
    let bo = staff(&world, "bo@example.org", "box_office").await;
    let olga = staff(&world, "olga@example.org", "organiser").await;
    let max = staff(&world, "max@example.org", "manager").await;
    let guest = Browser::new(&world);
    for (who, path, expected) in [
        (&guest, "/staff/aurora/reports", StatusCode::SEE_OTHER),
        (&guest, "/staff/aurora/systems", StatusCode::SEE_OTHER),
        (&bo, "/staff/aurora/reports", StatusCode::NOT_FOUND),
        (&bo, "/staff/aurora/systems", StatusCode::NOT_FOUND),
        (&olga, "/staff/aurora/reports", StatusCode::OK),
        (&olga, "/staff/aurora/systems", StatusCode::NOT_FOUND),
        (&max, "/staff/aurora/reports", StatusCode::OK),
        (&max, "/staff/aurora/systems", StatusCode::OK),
        (&max, "/staff/rialto/reports", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(who.page(path).await.0, expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_export_is_a_table_without_formulas() {
    let world = World::start(1, &[]).await;
    let title = "=HYPERLINK(\"http://evil.example\",\"Tide, \u{e9}tude\")";
    world.run(sqlx::query("UPDATE films SET title = $1").bind(title)).await;
    world.visitor().buy_seats(&[46, 47], "tok_paid").await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let visitor = max.visitor();
    let file = async |table: &str| {
        let url = format!("{}/api/v1/theatres/aurora/reports/csv/{table}", visitor.base);
        let answer = visitor.client.get(url).header("cookie", &visitor.cookie).send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK, "{table}");
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/csv; charset=utf-8; header=present");
        let named = answer.headers()[CONTENT_DISPOSITION].to_str().expect("text").to_owned();
        assert!(named.starts_with(&format!("attachment; filename=\"aurora-{table}-")), "{named}");
        let bytes = answer.bytes().await.expect("a body");
        assert!(bytes.starts_with(&[0xef, 0xbb, 0xbf]), "the file begins with a byte order mark");
        String::from_utf8(bytes.to_vec()).expect("UTF-8")
    };
    let films = file("films").await;
    let line = "\"'=HYPERLINK(\"\"http://evil.example\"\",\"\"Tide, \u{e9}tude\"\")\",\"EUR\",1,2,2500,0,2500,0,0,";
    assert!(films.contains(line) && films.ends_with(",25.00,25.00,0.00,0.00\r\n"), "{films}");
    let path = "/api/v1/theatres/aurora/reports/csv/films?separator";
    let films = expect_answer(max.page(&format!("{path}=semicolon")).await, StatusCode::OK);
    let amounts = ";\"EUR\";1;2;2500;0;2500;0;0;25,00;25,00;0,00;0,00\r\n";
    assert!(films.contains("\"film\";\"currency\";") && films.ends_with(amounts), "{films}");
    expect_problem(max.get(&format!("{path}=tab")).await, StatusCode::BAD_REQUEST, "malformed");
    for table in ["days", "channels", "categories", "shows", "funnel", "takings"] {
        let text = file(table).await;
        assert!(text.lines().count() > 1 && text.ends_with("\r\n"), "{table}: {text}");
        let cells = |line: &str| line.matches(',').count();
        let names = text.lines().next().expect("names");
        if table != "shows" {
            assert!(text.lines().all(|line| cells(line) == cells(names)), "{table}: {text}");
        }
    }
    expect_problem(max.get("/api/v1/theatres/aurora/reports/csv/passwords").await, StatusCode::NOT_FOUND, "not_found");
    for days in ["from=2026-02-30", "from=2026-03-02&to=2026-03-01", "from=2026-01-01&to=2026-12-31"] {
        let (status, problem) = max.get(&format!("/api/v1/theatres/aurora/reports/sales?{days}")).await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, "malformed"), "{days}");
    }
}
