//! Reports as pages and files: access, charts, and escaping of formulas.

use reqwest::StatusCode;
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use super::staff;
use crate::accounts::Browser;
use crate::world::{Visitor, World, expect_answer, expect_problem, insert_show, text};

/// A page for this browser, or the redirect's location.
#[tokio::test(flavor = "multi_thread")]
async fn page_charts_the_sales_and_lists_every_number_in_a_table() {
    let world = World::start(1, &[]).await;
    world.visitor().buy_seats(&[46, 47], "tok_paid").await;
    let max = staff(&world, "max@example.org", "manager").await;
    let olga = staff(&world, "olga@example.org", "organiser").await;
    let ahead = (platform::clock::to_utc(platform::clock::now()) + chrono::Duration::days(3)).date_naive();
    let path = format!("/staff/aurora/reports?to={ahead}");
    for who in [&max, &olga] {
        let html = expect_answer(who.page(&path).await, StatusCode::OK);
        for drawing in ["chart-days", "chart-takings", "chart-room"] {
            assert!(html.contains(&format!("data-testid=\"{drawing}\"")), "{drawing}: {html}");
        }
        assert_eq!(html.matches("role=\"img\"").count(), 3);
        assert_eq!((html.matches("<title id=").count(), html.matches("<desc id=").count()), (3, 3));
        for words in ["€25.00", "Tide", "Gold", "/api/v1/theatres/aurora/reports/csv/takings?from="] {
            assert!(html.contains(words), "{words}: {html}");
        }
        assert!(!html.contains("style=\""), "the content security policy forbids it");
    }
    let (status, html) = max.page("/staff/aurora/reports?from=2026-01-01&to=2026-12-31&lang=de").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(html.contains("höchstens 92 Tage"), "{html}");
}

/// The text of a card with totals.
fn total<'a>(html: &'a str, card: &str) -> &'a str {
    let (_, rest) = html.split_once(&format!("data-testid=\"{card}\"")).expect("a card");
    rest.split_once("<dd>").and_then(|(_, rest)| rest.split("</dd>").next()).expect("a sum")
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_screen_filters_every_report_and_no_selection_means_all() {
    let world = World::start(1, &[]).await;
    let other = insert_show(&world.pg, 300_000, 30 * 3_600).await;
    let second: String = sqlx::query_scalar(
        "UPDATE screens SET name = 'Screen 2' WHERE id = (SELECT screen_id FROM shows WHERE id = $1) RETURNING id",
    )
    .bind(other)
    .fetch_one(&world.pg)
    .await
    .expect("the show has a screen");
    world.visitor().buy_seats(&[46, 47], "tok_paid").await;
    Visitor { show: other, ..world.visitor() }.buy_seats(&[1], "tok_paid").await;
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
    sqlx::query("UPDATE films SET title = $1").bind(title).execute(&world.pg).await.expect("the film is renamed");
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
    let line = "\"'=HYPERLINK(\"\"http://evil.example\"\",\"\"Tide, \u{e9}tude\"\")\",\"EUR\",1,2,2500,0\r\n";
    assert!(films.ends_with(line), "{films}");
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
