//! Box-office pages, without JavaScript.

use super::{
    PIN, booking_path, desk_path, hired, hold_seats, manager, sell_seats, seller, seller_with_open_till, set_name,
    world_with_open_till, world_with_two_theatres,
};
use crate::accounts::form;
use crate::prelude::*;

/// Submits a form with a fresh key. Returns the status, and the redirect or the page.
pub async fn send(browser: &Browser, path: &str, fields: &[(&str, &str)]) -> (StatusCode, String) {
    let key = new_id().to_string();
    let fields = [fields, &[("key", key.as_str())][..]].concat();
    RawAnswer::of(form(browser.visitor().request(Method::POST, path), &fields)).await.into_page()
}

#[tokio::test(flavor = "multi_thread")]
async fn shift_works_without_javascript() {
    let world = World::start(1, &[]).await;
    let mut ann = seller(&world, "ann@example.org").await;
    let home = "/staff/aurora/box-office";
    let html = expect_page(ann.page(home).await, StatusCode::OK, &["data-testid=\"open-till\""]);
    assert!(!html.contains("data-testid=\"close-day\""), "only a manager closes the day");
    let answer = send(&ann, &format!("{home}/till/open"), &[("amount", "a lot")]).await;
    let (kept, error) = ("value=\"a lot\"", "aria-describedby=\"float-error\"");
    let parts = ["data-testid=\"trouble\"", kept, error, "id=\"float-error\"", "12.50"];
    expect_page(answer, StatusCode::BAD_REQUEST, &parts);
    let opened = send(&ann, &format!("{home}/till/open"), &[("amount", "100.00")]).await;
    assert_eq!(opened, (StatusCode::SEE_OTHER, home.to_owned()));
    let sold = sell_seats(&mut ann, &world, &[0, 1], "cash").await;
    let booking = format!("{home}/bookings/{}", text(&sold["id"]));
    let found = ann.page(&format!("{home}/bookings?reference={}", text(&sold["reference"]))).await;
    expect_answer(found, StatusCode::SEE_OTHER);
    expect_page(ann.page(&booking).await, StatusCode::OK, &["data-testid=\"undo\""]);
    let (status, html) = send(&ann, &format!("{booking}/tickets"), &[]).await;
    assert_eq!((status, html.matches("paper-ticket\"").count() >= 2), (StatusCode::OK, true), "{html}");
    let undone = send(&ann, &format!("{booking}/undo"), &[("reason", "The wrong show.")]).await;
    let done = format!("{booking}?done=true");
    assert_eq!(undone, (StatusCode::SEE_OTHER, done.clone()));
    expect_page(ann.page(&done).await, StatusCode::OK, &["data-testid=\"money-back\"", "from your till"]);
    let answer = send(&ann, &format!("{home}/till/cash-up"), &[("amount", "99.00"), ("reason", "")]).await;
    let (kept, error) = ("value=\"99.00\"", "€100.00 should be in the till");
    let parts = ["data-testid=\"trouble\"", kept, "id=\"counted-error\"", error, "<details open"];
    expect_page(answer, StatusCode::CONFLICT, &parts);
    let answer = send(&ann, &format!("{home}/till/drop"), &[("amount", "500"), ("reason", "Full.")]).await;
    expect_page(answer, StatusCode::CONFLICT, &["id=\"drop-error\"", "value=\"500\""]);
    let up = send(&ann, &format!("{home}/till/cash-up"), &[("amount", "100,00"), ("reason", "")]).await;
    assert_eq!(up.0, StatusCode::SEE_OTHER);
    let max = hired(&world, "max@example.org", "manager").await;
    expect_page(max.page(home).await, StatusCode::OK, &["data-testid=\"close-day\""]);
    expect_answer(send(&max, &format!("{home}/day-close"), &[("reason", "Quiet.")]).await, StatusCode::SEE_OTHER);
    assert_eq!(ann.get(&desk_path("till")).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn manager_counts_a_sellers_till_and_the_seller_sees_by_whom_and_why() {
    let (world, mut ann) = world_with_open_till().await;
    let max = hired(&world, "max@example.org", "manager").await;
    set_name(&world, "max@example.org", "Max Example").await;
    let home = "/staff/aurora/box-office";
    let (_, till) = ann.get(&desk_path("till")).await;
    let form = format!("{home}/tills/{}/cash-up", text(&till["id"]));
    let (_, html) = max.page(home).await;
    assert!(html.contains(&format!("action=\"{form}\"")) && !html.contains("data-testid=\"close-day\""), "{html}");
    let fields = |amount: &'static str, reason: &'static str| [("amount", amount), ("reason", reason)];
    assert_eq!(send(&ann, &form, &fields("100", "Mine.")).await.0, StatusCode::NOT_FOUND, "a manager's form");
    let html =
        expect_page(send(&max, &form, &fields("99.00", " ")).await, StatusCode::BAD_REQUEST, &["value=\"99.00\""]);
    assert!(html.contains(&format!("id=\"reason-{}-error\"", text(&till["id"]))), "{html}");
    assert_eq!(send(&max, &form, &fields("99.00", "Ann is ill.")).await, (StatusCode::SEE_OTHER, home.to_owned()));
    let answer = send(&max, &form, &fields("99.00", "Twice.")).await;
    expect_page(answer, StatusCode::CONFLICT, &["This till was counted already.", "data-testid=\"close-day\""]);
    let parts = ["data-testid=\"counted-for-me\"", "data-testid=\"open-till\"", "Max Example", "Ann is ill."];
    expect_page(ann.page(home).await, StatusCode::OK, &parts);
    let (_, html) = max.page(home).await;
    assert!(!html.contains("data-testid=\"counted-for-me\"") && html.contains("data-testid=\"counted-by\""), "{html}");
    expect_answer(send(&ann, &format!("{home}/till/open"), &[("amount", "100.00")]).await, StatusCode::SEE_OTHER);
    assert!(!ann.page(home).await.1.contains("data-testid=\"counted-for-me\""), "the notice is about the last shift");
}

#[tokio::test(flavor = "multi_thread")]
async fn counter_shows_any_day_and_its_forms_keep_the_day() {
    let world = World::start(1, &[]).await;
    let ann = seller(&world, "ann@example.org").await;
    let later = insert_show(&world.pg, 300_000, 72 * 3_600).await;
    let day: String =
        world.value(sqlx::query_scalar("SELECT local_date::text FROM shows WHERE id = $1").bind(later)).await;
    let home = "/staff/aurora/box-office";
    let on_that_day = format!("{home}?date={day}");
    let leads_to = format!("href=\"{home}/shows/{later}\"");
    let (status, html) = ann.page(home).await;
    assert!(status == StatusCode::OK && !html.contains(&leads_to), "{html}");
    assert!(html.contains(&format!("href=\"{on_that_day}\"")), "the strip links to the day: {html}");
    assert!(!html.contains("type=\"hidden\" name=\"date\""), "a form of today names no date: {html}");
    let html = expect_page(ann.page(&on_that_day).await, StatusCode::OK, &[&leads_to]);
    assert!(html.contains(&format!("name=\"date\" value=\"{day}\"")), "{html}");
    let open = format!("{home}/till/open");
    expect_page(send(&ann, &open, &[("amount", "a lot"), ("date", &day)]).await, StatusCode::BAD_REQUEST, &[&leads_to]);
    assert_eq!(send(&ann, &open, &[("amount", "100"), ("date", &day)]).await, (StatusCode::SEE_OTHER, on_that_day));
    let drop = [("amount", "1"), ("reason", "Full."), ("date", "//x")];
    let elsewhere = send(&ann, &format!("{home}/till/drop"), &drop).await;
    assert_eq!(elsewhere, (StatusCode::SEE_OTHER, home.to_owned()));
    assert_eq!(ann.page(&format!("{home}?date=tomorrow")).await.0, StatusCode::BAD_REQUEST);
    let answer = ann.page(&format!("{home}/bookings?reference=NONE-NONE&date={day}")).await;
    expect_page(answer, StatusCode::NOT_FOUND, &[&leads_to]);
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_is_found_by_name_without_javascript() {
    let (world, mut ann) = world_with_open_till().await;
    let hold = hold_seats(&mut ann, &world, &[0]).await;
    let mut request_body = super::sale(&hold, "cash");
    request_body["name"] = json!("Zoe <Quill>");
    let sold = expect_answer(ann.post(&super::sales_path(&world), request_body).await, StatusCode::CREATED);
    let home = "/staff/aurora/box-office";
    assert!(ann.page(home).await.1.contains("data-testid=\"find\""));
    let (status, html) = ann.page(&format!("{home}/bookings?q=quill")).await;
    let booking = format!("{home}/bookings/{}", text(&sold["id"]));
    assert!(status == StatusCode::OK && html.contains(&format!("href=\"{booking}\"")), "{html}");
    let aloud = text(&sold["reference"]).replace('-', "+").to_lowercase();
    assert_eq!(ann.page(&format!("{home}/bookings?q={aloud}")).await.0, StatusCode::SEE_OTHER);
    assert!(html.contains("Zoe &lt;Quill&gt;") && !html.contains("<Quill>"), "{html}");
    let answer = ann.page(&format!("{home}/bookings?q=unmatched")).await;
    expect_page(answer, StatusCode::OK, &["data-testid=\"found-none\""]);
    expect_page(ann.page(&format!("{home}/bookings?q=x")).await, StatusCode::BAD_REQUEST, &["data-testid=\"trouble\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_a_closed_show_has_its_map_and_the_remaining_actions() {
    let (world, mut ann) = world_with_open_till().await;
    let home = "/staff/aurora/box-office";
    let closed = ["data-testid=\"not-on-sale\"", "data-testid=\"find\"", "sell-another"];
    let map = "data-testid=\"counter\"";
    // The film ends after a hundred minutes. Until then latecomers look for their seats.
    for (starts_in_s, has_map) in [(4 * 60, true), (-60 * 60, true), (-2 * 60 * 60, false)] {
        let show = insert_show(&world.pg, 300_000, starts_in_s).await;
        let (status, html) = ann.page(&format!("{home}/shows/{show}")).await;
        assert_eq!((status, closed.map(|part| html.contains(part))), (StatusCode::OK, [true; 3]), "{html}");
        assert_eq!(html.contains(map), has_map, "{starts_in_s}: {html}");
        let answer = ann.post(&format!("/api/v1/shows/{show}/holds"), json!({ "seats": [0] })).await;
        expect_problem(answer, StatusCode::CONFLICT, "sales_closed");
        let (status, holder) = ann.get(&desk_path(&format!("shows/{show}/seats/0"))).await;
        assert_eq!((status, holder), (StatusCode::OK, json!({ "by": "nobody" })), "a seat's holder is shown");
        assert_eq!(ann.get(&format!("/api/v1/shows/{show}/seats")).await.0, StatusCode::OK);
    }
    let (_, html) = ann.page(&format!("{home}/shows/{}", world.show)).await;
    assert_eq!(closed.map(|part| html.contains(part)), [false; 3], "a closed show is sold from its map: {html}");
    assert!(html.contains(map), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_a_show_links_to_its_day() {
    let (world, ann) = world_with_open_till().await;
    let later = insert_show(&world.pg, 300_000, 3 * 24 * 60 * 60).await;
    let day = "SELECT to_char(starts_at AT TIME ZONE 'Europe/Lisbon', 'YYYY-MM-DD') FROM shows WHERE id = $1";
    let day = world.value(sqlx::query_scalar::<_, String>(day).bind(later)).await;
    let home = "/staff/aurora/box-office";
    let (_, html) = ann.page(&format!("{home}/shows/{later}")).await;
    let back = html.split("<a ").find(|link| link.contains("data-testid=\"back\"")).expect("a link back");
    assert!(back.contains(&format!("href=\"{home}?date={day}\"")), "{back}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_pin_is_reported_at_its_field_and_no_secret_is_echoed() {
    let world = World::start(1, &[]).await;
    let max = hired(&world, "max@example.org", "manager").await;
    let home = "/staff/aurora/box-office";
    let path = format!("{home}/pin");
    for (pin, password, at) in [("111111", PASSWORD, "pin-error"), (PIN, "another-secret", "pin-password-error")] {
        let (status, html) = send(&max, &path, &[("pin", pin), ("password", password)]).await;
        assert!(status.is_client_error() && html.contains(&format!("id=\"{at}\"")), "{status} {html}");
        assert_eq!(html.matches("data-testid=\"field-error\"").count(), 1, "{html}");
        let is_open = html.split("<details").filter_map(|rest| rest.split('>').next()).any(|tag| tag.contains(" open"));
        assert!(html.contains(&format!("aria-describedby=\"{at}\"")) && is_open, "{html}");
        assert!(!html.contains(pin) && !html.contains(password), "{html}");
    }
    let set = send(&max, &path, &[("pin", PIN), ("password", PASSWORD)]).await;
    assert_eq!(set, (StatusCode::SEE_OTHER, home.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_sold_bookings_are_exchanged_and_only_for_shows_on_sale() {
    let (world, mut ann) = world_with_open_till().await;
    let sold = sell_seats(&mut ann, &world, &[0], "cash").await;
    let [later, begun] =
        [insert_show(&world.pg, 300_000, 30 * 3_600).await, insert_show(&world.pg, 300_000, -60).await];
    let day: String = world.value(sqlx::query_scalar("SELECT local_date::text FROM shows LIMIT 1")).await;
    let id = text(&sold["id"]);
    let base = "/staff/aurora/box-office";
    let choosing = format!("{base}/bookings/{id}/exchange");
    let (status, html) = ann.page(&format!("{choosing}?date={day}")).await;
    let leads_to = |show: Uuid| html.contains(&format!("href=\"{base}/shows/{show}?exchange={id}\""));
    assert_eq!(status, StatusCode::OK, "{html}");
    assert_eq!([world.show, later, begun].map(leads_to), [true, true, false], "{html}");
    for no_day in ["tomorrow", "-9999-01-1"] {
        assert_eq!(ann.page(&format!("{choosing}?date={no_day}")).await.0, StatusCode::BAD_REQUEST, "{no_day}");
    }
    let at_counter = format!("{base}/shows/{later}?exchange={id}");
    expect_page(ann.page(&at_counter).await, StatusCode::OK, &[text(&sold["reference"])]);
    expect_answer(ann.post(&booking_path(&sold, "/undo"), json!({ "reason": "The wrong day." })).await, StatusCode::OK);
    for gone in [choosing, at_counter] {
        assert_eq!(ann.page(&gone).await.0, StatusCode::SEE_OTHER, "{gone}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_an_exchanged_booking_links_to_the_new_one_and_names_the_refund() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let old = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    let hold = hold_seats(&mut ann, &world, &[8]).await;
    let request_body = json!({ "show": world.show, "hold": hold["id"], "total_minor": PRICE, "from_total_minor": 2 * PRICE,
                       "reason": "One stays at home.", "manager": max, "pin": PIN });
    let new = expect_answer(ann.post(&booking_path(&old, "/exchange"), request_body).await, StatusCode::CREATED);
    let (_, before) = ann.get(&booking_path(&old, "")).await;
    assert_eq!(before["moved_to"], new["id"]);
    let at = |booking: &Value| format!("/staff/aurora/box-office/bookings/{}", text(&booking["id"]));
    let (status, html) = ann.page(&at(&old)).await;
    assert!(status == StatusCode::OK && html.contains(&format!("href=\"{}\"", at(&new))), "{html}");
    assert_eq!(html.matches("data-testid=\"went-back\"").count(), 1, "{html}");
    let (_, html) = ann.page(&at(&new)).await;
    let seen = ["data-testid=\"went-back\"", "data-testid=\"moved-to\""].map(|part| html.contains(part));
    assert_eq!(seen, [true, false], "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn box_office_pages_are_hidden_from_strangers_and_need_a_login() {
    let (world, rita) = world_with_two_theatres().await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let sold = sell_seats(&mut ann, &world, &[0], "cash").await;
    let id = text(&sold["id"]);
    let pages = [
        "/staff/aurora/box-office".to_owned(),
        format!("/staff/aurora/box-office/shows/{}", world.show),
        format!("/staff/aurora/box-office/bookings/{id}"),
        format!("/staff/aurora/box-office/bookings/{id}/exchange"),
    ];
    for path in &pages {
        assert_eq!(ann.page(path).await.0, StatusCode::OK, "{path}");
        assert_eq!(rita.page(path).await.0, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(Browser::new(&world).page(path).await.0, StatusCode::SEE_OTHER, "{path}");
        let of_rialto = rita.page(&path.replace("aurora", "rialto")).await.0;
        assert_eq!(of_rialto == StatusCode::OK, path.ends_with("box-office"));
    }
    let stolen = send(&rita, &format!("/staff/aurora/box-office/bookings/{id}/undo"), &[("reason", "Mine.")]).await;
    assert_eq!(stolen.0, StatusCode::NOT_FOUND);
    let (status, _) = send(&ann, "/staff/aurora/box-office/day-close", &[("reason", "Mine.")]).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "manager forms are hidden from other roles");
}
