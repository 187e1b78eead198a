//! Organiser pages: plain forms without JavaScript.

use super::{API, post_ok, screen_of, set_prices, visitor_of, week, world_with_organiser};
use crate::accounts::form;
use crate::prelude::*;
use crate::reports::staff;

pub(super) const PAGES: &str = "/staff/aurora";

/// Submits a form. Returns the status, and the redirect or the page.
pub(super) async fn send(browser: &Browser, path: &str, fields: &[(&str, &str)]) -> (StatusCode, String) {
    RawAnswer::of(form(browser.visitor().request(Method::POST, path), fields)).await.into_page()
}

pub(super) const PLAN: &str = r#"{"sketch": 1, "name": "Small", "categories": [{"name": "gold", "label": "Gold"}],
    "zones": [{"category": "gold", "rows": [{"rows": "A-B", "seats": "1-10"}]}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn screen_prices_film_and_week_are_created_by_forms() {
    let (world, olga) = world_with_organiser(1).await;
    expect_page(olga.page(&format!("{PAGES}/screens")).await, StatusCode::OK, &["plan-file.js"]);
    let fields = [("key", "k-import"), ("name", ""), ("file", ""), ("pasted", PLAN)];
    let room = expect_answer(send(&olga, &format!("{PAGES}/screens/import"), &fields).await, StatusCode::SEE_OTHER);
    let (_, html) = olga.page(&room).await;
    assert!(html.contains("preview-seats cat-0") && html.matches("preview-number").count() == 20, "{html}");
    let layout = room.rsplit('/').next().expect("an id");
    let fields = [("key", "k-screen"), ("layout", layout), ("name", "Kleiner Saal"), ("reason", "New.")];
    let made = send(&olga, &format!("{PAGES}/screens"), &fields).await;
    assert_eq!(made, (StatusCode::SEE_OTHER, format!("{PAGES}/screens?done=true")));
    let (_, html) = olga.page(&format!("{PAGES}/shows/plan")).await;
    assert!(html.contains(&format!("{PAGES}/prices")), "the page asks for prices first: {html}");
    let percents = [("weekend", "120"), ("matinee", "80"), ("prime", "100")];
    let mut fields = vec![
        ("key", "k-price"),
        ("version", "0"),
        ("price:gold", "12,50"),
        ("surcharge:3D", "2"),
        ("reason", "First."),
    ];
    fields.extend(percents);
    expect_answer(send(&olga, &format!("{PAGES}/prices"), &fields).await, StatusCode::SEE_OTHER);
    let fields = [("key", "k-film"), ("title", "Neu"), ("running_minutes", "90"), ("reason", "Premiere.")];
    assert_eq!(send(&olga, &format!("{PAGES}/films"), &fields).await.0, StatusCode::SEE_OTHER);
    let screen: String = world.value(sqlx::query_scalar("SELECT id FROM screens WHERE name = 'Kleiner Saal'")).await;
    let plan = |key: &'static str| {
        vec![
            ("key", key),
            ("screen", screen.as_str()),
            ("film", "tide"),
            ("language", "Deutsch"),
            ("format", "2D"),
            ("from", "2030-01-07"),
            ("weeks", "1"),
            ("monday", "16:00, 20:15"),
            ("cleaning", "20"),
            ("sales", "open"),
            ("sales_from", ""),
            ("hold_seconds", "300"),
            ("per_person", "6"),
            ("reason", "Week one."),
        ]
    };
    let planned = send(&olga, &format!("{PAGES}/shows/plan"), &plan("k-plan")).await;
    assert_eq!(planned, (StatusCode::SEE_OTHER, format!("{PAGES}/shows?from=2030-01-07&done=true")));
    let (_, html) = olga.page(&format!("{PAGES}/shows?from=2030-01-07")).await;
    assert_eq!(html.matches("data-testid=\"organised-show\"").count(), 2, "{html}");
    // A repeat is refused in its form, which keeps the input.
    let repeated = send(&olga, &format!("{PAGES}/shows/plan"), &plan("k-again")).await;
    expect_page(repeated, StatusCode::CONFLICT, &["organiser-trouble", "16:00, 20:15"]);
    let show: Uuid = world
        .value(sqlx::query_scalar("SELECT id FROM shows WHERE screen_id = $1 ORDER BY starts_at LIMIT 1").bind(&screen))
        .await;
    let (_, html) = olga.page(&format!("{PAGES}/shows/{show}")).await;
    assert!(html.contains("value=\"10.00\""), "a matinee's price: {html}");
    let fields = [
        ("key", "k-terms"),
        ("version", "1"),
        ("sales", "paused"),
        ("hold_seconds", "120"),
        ("per_person", "4"),
        ("price:gold", "10.00"),
        ("reason", "Wait."),
    ];
    expect_answer(send(&olga, &format!("{PAGES}/shows/{show}/terms"), &fields).await, StatusCode::SEE_OTHER);
    expect_page(olga.page(&format!("/shows/{show}")).await, StatusCode::OK, &["paused"]);
    let fields = [("key", "k-cancel"), ("reason", "No audience."), ("sure", "true")];
    expect_answer(send(&olga, &format!("{PAGES}/shows/{show}/cancel"), &fields).await, StatusCode::SEE_OTHER);
    let page = olga.page(&format!("{PAGES}/shows/{show}")).await;
    expect_page(page, StatusCode::OK, &["data-testid=\"undoing\"", "No audience."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_theatre_form_keeps_its_input_until_it_succeeds() {
    let world = World::start(1, &[]).await;
    let max = staff(&world, "max@example.org", "manager").await;
    expect_page(max.page("/staff").await, StatusCode::OK, &["data-testid=\"new-theatre\""]);
    let fields = |key, city, time_zone, currency| {
        let name = [("key", key), ("name", "Kino"), ("address", "Am Ufer 3"), ("currency", currency), ("city", city)];
        let rest = [("city_name", "Ulm"), ("country", "DE"), ("time_zone", time_zone)];
        [&name[..], &rest[..]].concat()
    };
    let there = "/staff/theatres";
    // The input for a new city is kept too if another city was chosen.
    for (key, city, time_zone, currency) in [("k-1", "", "Europe/Ulm", "EUR"), ("k-2", "lisbon", "Europe/Berlin", "EU")]
    {
        let refused = send(&max, there, &fields(key, city, time_zone, currency)).await;
        let html = expect_page(refused, StatusCode::BAD_REQUEST, &["data-testid=\"theatre-trouble\""]);
        for kept in ["Kino", "Am Ufer 3", currency, "Ulm", "DE", time_zone] {
            assert!(html.contains(&format!("value=\"{kept}\"")), "{kept}: {html}");
        }
        assert_eq!(html.contains("value=\"lisbon\" selected"), city == "lisbon", "{html}");
    }
    assert_eq!(world.count("SELECT count(*) FROM theatres").await, 1);
    let made = send(&max, there, &fields("k-3", "", "Europe/Berlin", "EUR")).await;
    let on = expect_answer(made, StatusCode::SEE_OTHER);
    let parts = ["data-testid=\"theatre-done\"", "value=\"Kino\"", "Ulm · Europe/Berlin"];
    expect_page(max.page(&on).await, StatusCode::OK, &parts);
    let (_, html) = max.page("/staff").await;
    assert_eq!(html.matches("data-testid=\"workplace\"").count(), 2, "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn importer_asks_where_the_stage_is_and_turns_the_room() {
    let (_world, mut olga) = world_with_organiser(1).await;
    let seat =
        |number: &str, x: i32| json!({ "seat_number": number, "position": { "x": x, "y": 0 }, "category": "gold" });
    let plan = json!({ "name": "Small", "categories": [{ "name": "gold" }],
        "zones": [{ "rows": [{ "row_number": "A", "seats": [seat("1", 0), seat("2", 20)] }] }] });
    let plan = plan.to_string();
    let fields = [("key", "k-import"), ("name", ""), ("file", ""), ("pasted", plan.as_str())];
    let room = expect_answer(send(&olga, &format!("{PAGES}/screens/import"), &fields).await, StatusCode::SEE_OTHER);
    let (_, html) = olga.page(&room).await;
    assert!(html.contains("data-testid=\"set-focus\"") && !html.contains("preview-focus"), "{html}");
    assert!(!html.contains("data-testid=\"new-screen\""), "the question comes first");
    let choose = async |room: &str, key: &str, kind: &str, side: &str| {
        send(&olga, &format!("{room}/focus"), &[("key", key), ("kind", kind), ("side", side)]).await
    };
    let below = expect_answer(choose(&room, "k-1", "stage", "bottom").await, StatusCode::SEE_OTHER);
    expect_page(olga.page(&below).await, StatusCode::OK, &["preview-focus", "data-testid=\"new-screen\""]);
    // The drawing is upside down by now: what is on its left is on the right of the file.
    let aside = expect_answer(choose(&below, "k-2", "screen", "left").await, StatusCode::SEE_OTHER);
    let refused = choose(&aside, "k-3", "screen", "above").await;
    expect_page(refused, StatusCode::BAD_REQUEST, &["data-testid=\"set-focus\""]);
    let mut focus_of = async |room: &str| {
        let layout = room.rsplit('/').next().expect("an id").to_owned();
        olga.get(&format!("{API}/layouts/{layout}")).await.1["focus"].clone()
    };
    assert_eq!(focus_of(&room).await, Value::Null, "a stored room does not change");
    assert_eq!(focus_of(&below).await, json!({ "kind": "stage", "side": "bottom" }));
    assert_eq!(focus_of(&aside).await, json!({ "kind": "screen", "side": "right" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_layout_file_is_reported_on_a_page() {
    let (_world, mut olga) = world_with_organiser(1).await;
    set_prices(&mut olga, &["gold"]).await;
    let plan = json!({ "name": "R", "categories": [{ "name": "gold" }], "zones": [{ "name": "<b>Z</b>", "rows": [{ "row_number": "A",
        "seats": [{ "seat_number": "1", "position": { "x": 0, "y": 0 }, "category": "gold" },
                  { "seat_number": "1", "position": { "x": 20, "y": 0 }, "category": "gold" }] }] }] });
    let plan = plan.to_string();
    let fields = [("key", "k"), ("pasted", plan.as_str())];
    let refused = send(&olga, &format!("{PAGES}/screens/import"), &fields).await;
    expect_page(refused, StatusCode::BAD_REQUEST, &["data-finding=\"duplicate_seat\"", "A1"]);
    let refused = send(&olga, &format!("{PAGES}/screens/import"), &[("key", "k2"), ("pasted", "not JSON")]).await;
    expect_page(refused, StatusCode::BAD_REQUEST, &["data-finding=\"not_a_plan\""]);
    let long = "x".repeat(300_000);
    let refused = send(&olga, &format!("{PAGES}/screens/import"), &[("key", "k4"), ("pasted", long.as_str())]).await;
    let html = expect_page(refused, StatusCode::BAD_REQUEST, &["data-finding=\"not_a_plan\""]);
    assert!(!html.contains("xxxx"), "a long text is not shown again");
    let wrong = [
        ("key", "k3"),
        ("version", "1"),
        ("price:gold", "-1"),
        ("weekend", "100"),
        ("matinee", "100"),
        ("prime", "100"),
        ("reason", "R."),
    ];
    let refused = send(&olga, &format!("{PAGES}/prices"), &wrong).await;
    expect_page(refused, StatusCode::BAD_REQUEST, &["organiser-trouble"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calendar_keeps_its_columns_when_the_clocks_change_and_adds_drafts() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = screen_of(&mut olga, &serde_json::from_str(PLAN).expect("a plan")).await;
    let screen = text(&screen["id"]);
    set_prices(&mut olga, &["gold"]).await;
    let page = format!("{PAGES}/shows");
    // In Lisbon, the hour from 1:00 is there twice on this Sunday: the first show is drawn until 2:10.
    let add = async |key: &'static str, time: &'static str| {
        let fields = [
            ("key", key),
            ("from", "2030-10-21"),
            ("screen", screen),
            ("film", "tide"),
            ("language", "English"),
            ("format", "2D"),
            ("day", "2030-10-27"),
            ("time", time),
            ("cleaning", "20"),
        ];
        send(&olga, &page, &fields).await
    };
    for (key, time) in [("k-early", "00:10"), ("k-late", "02:00")] {
        let done = format!("{page}?from=2030-10-21&done=true");
        assert_eq!(add(key, time).await, (StatusCode::SEE_OTHER, done));
    }
    assert_eq!(world.count("SELECT count(*) FROM shows WHERE sales = 'planned' AND cleaning_minutes = 20").await, 2);
    let html = expect_page(add("k-overlap", "00:30").await, StatusCode::CONFLICT, &["organiser-trouble"]);
    assert!(input(&html, "time").contains("value=\"00:30\""), "{html}");

    let asked = format!("{page}?from=2030-10-21&screen={screen}&day=2030-10-22&time=18:00");
    let chosen = format!("value=\"{screen}\" selected");
    let html = expect_page(olga.page(&asked).await, StatusCode::OK, &["StaffCalendar", &chosen]);
    assert!(input(&html, "day").contains("value=\"2030-10-22\"") && input(&html, "time").contains("value=\"18:00\""));
    assert_eq!(html.matches("data-state=\"planned\"").count(), 2, "{html}");
    let rows = html.split("<tr data-screen=").skip(1).filter_map(|rest| rest.split("</tr>").next());
    let columns = |row: &str| {
        let numbers = row.split("colspan=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse::<u32>().ok());
        numbers.sum::<u32>()
    };
    let widths: Vec<u32> = rows.map(columns).collect();
    // Two screens, seven days, and a second row for the overlap; 24 hours of five-minute columns.
    assert_eq!(widths, [288; 15], "{html}");
    assert_eq!(html.matches("rowspan=\"2\"").count(), 1, "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn chosen_draft_moves_by_a_form_and_a_refused_one_stays_with_the_reason() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = screen_of(&mut olga, &serde_json::from_str(PLAN).expect("a plan")).await;
    let screen = text(&screen["id"]);
    set_prices(&mut olga, &["gold"]).await;
    let mut plan = week(&json!(screen), "2030-01-07", "monday", &["14:00", "20:00"]);
    plan["terms"] = json!({ "sales": "planned", "hold_seconds": 300, "flash_sale": false, "per_person": 10 });
    let planned = post_ok(&mut olga, "/programme", plan).await;
    let draft = format!("{}/1", text(&planned["shows"][0]["id"]));
    let page = format!("{PAGES}/shows");
    let html = expect_page(olga.page(&format!("{page}?from=2030-01-07")).await, StatusCode::OK, &["data-draft=\""]);
    assert!(html.contains(&format!("<option value=\"{draft}\"")), "{html}");
    let move_draft = async |key: &'static str, draft: &str, time: &'static str| {
        let place = [("move_screen", screen), ("move_day", "2030-01-07"), ("move_time", time)];
        let fields = [&[("key", key), ("from", "2030-01-07"), ("draft", draft)][..], &place[..]].concat();
        send(&olga, &format!("{page}/move"), &fields).await
    };
    let refused = move_draft("k-overlap", &draft, "18:30").await;
    let chosen = format!("<option value=\"{draft}\" selected");
    let html = expect_page(refused, StatusCode::CONFLICT, &["organiser-trouble", &chosen]);
    assert!(input(&html, "move_time").contains("value=\"18:30\""), "{html}");
    assert_eq!(move_draft("k-none", "", "17:00").await.0, StatusCode::BAD_REQUEST);
    let moved = move_draft("k-move", &draft, "17:00").await;
    assert_eq!(moved, (StatusCode::SEE_OTHER, format!("{page}?from=2030-01-07&done=true")));
    assert_eq!(world.count("SELECT count(*) FROM shows WHERE starts_at = '2030-01-07T17:00Z'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_draft_that_kept_prices_of_an_earlier_tariff_is_reported_once_on_the_calendar() {
    let (_world, mut olga) = world_with_organiser(1).await;
    let screen = screen_of(&mut olga, &serde_json::from_str(PLAN).expect("a plan")).await;
    set_prices(&mut olga, &["gold"]).await;
    let mut plan = week(&screen["id"], "2030-01-07", "monday", &["14:00"]);
    plan["terms"] = json!({ "sales": "planned", "hold_seconds": 300, "flash_sale": false, "per_person": 10 });
    let planned = post_ok(&mut olga, "/programme", plan).await;
    let show = text(&planned["shows"][0]["id"]);
    let (_, mut tariff) = olga.get(&format!("{API}/tariff")).await;
    tariff["base"]["gold"] = json!(2_000);
    post_ok(&mut olga, "/tariff", json!({ "tariff": tariff, "reason": "Dearer." })).await;

    let page = format!("{PAGES}/shows");
    let draft = format!("{show}/1");
    let place = [("move_screen", ""), ("move_day", "2030-01-08"), ("move_time", "18:00")];
    let fields = [&[("key", "k-move"), ("from", "2030-01-07"), ("draft", draft.as_str())][..], &place[..]].concat();
    let moved = expect_answer(send(&olga, &format!("{page}/move"), &fields).await, StatusCode::SEE_OTHER);
    assert_eq!(moved, format!("{page}?from=2030-01-07&done=true&kept={show}"));
    // The matinee of the first tariff.
    let parts = ["data-testid=\"kept-prices\"", "Prices kept: Gold €10.00."];
    expect_page(olga.page(&moved).await, StatusCode::OK, &parts);
    let html = expect_answer(olga.page(&moved.replace("&done=true", "")).await, StatusCode::OK);
    assert!(!html.contains("kept-prices"), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calendar_with_too_many_shows_says_that_it_is_cut() {
    let (world, mut olga) = world_with_organiser(1).await;
    // A show every ten minutes; seven days have 1,008.
    let insert = "INSERT INTO shows (id, screen_id, film_id, layout_id, starts_at, local_date, language, format, currency, prices)
         SELECT gen_random_uuid(), screen_id, film_id, layout_id, '2030-01-07T00:00Z'::timestamptz + number * interval '10 minutes',
                '2030-01-07'::date + number / 144, language, format, currency, prices
         FROM shows, generate_series($1::int, $2::int) number WHERE shows.id = $3";
    let page = format!("{PAGES}/shows?from=2030-01-07");
    for (numbers, is_cut) in [((0, 999), false), ((1_000, 1_000), true)] {
        world.run(sqlx::query(insert).bind(numbers.0).bind(numbers.1).bind(world.show)).await;
        let html = expect_page(olga.page(&page).await, StatusCode::OK, &["organised-show"]);
        assert_eq!(html.contains("Only the first 1,000 shows of this week are listed."), is_cut);
    }
    let (_, listed) = olga.get(&format!("{API}/programme?from=2030-01-07")).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(1_000));
}

pub(super) fn input<'a>(html: &'a str, name: &str) -> &'a str {
    let mut tags = html.split("<input").filter_map(|rest| rest.split('>').next());
    tags.find(|tag| tag.contains(&format!("name=\"{name}\""))).expect("an input of that name")
}

fn error<'a>(html: &'a str, tag: &str) -> Option<&'a str> {
    let (_, id) = tag.split_once("aria-describedby=\"")?;
    let id = id.split('"').next()?;
    let (_, rest) = html.split_once(&format!(" id=\"{id}\""))?;
    rest.split_once('>')?.1.split("</p>").next()
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_prices_stay_in_the_form_with_their_errors() {
    let (_world, mut olga) = world_with_organiser(1).await;
    set_prices(&mut olga, &["gold"]).await;
    let (_, html) = olga.page(&format!("{PAGES}/prices")).await;
    assert!(html.contains(">Gold<") && !html.contains(">gold<"), "the label that customers see: {html}");
    let typed = [
        ("version", "1"),
        ("price:gold", "99999999.00"),
        ("surcharge:3D", "two"),
        ("surcharge:LIVE", "3.50"),
        ("weekend", "120"),
        ("matinee", "80"),
        ("prime", "105"),
    ];
    let fields = [&[("key", "k-1")][..], &typed[..]].concat();
    let html = expect_answer(send(&olga, &format!("{PAGES}/prices"), &fields).await, StatusCode::BAD_REQUEST);
    for (name, value) in typed {
        assert!(input(&html, name).contains(&format!("value=\"{value}\"")), "{name}: {html}");
    }
    let refused: Vec<&str> = typed
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| input(&html, name).contains("aria-invalid=\"true\""))
        .collect();
    assert_eq!(refused, ["price:gold", "surcharge:3D"]);
    let said: Vec<&str> = refused.iter().map(|name| error(&html, input(&html, name)).unwrap_or_default()).collect();
    assert!(said[0].contains("€10,000,000.00") && said[1].contains("12.50"), "{said:?}");
    assert!(!html.contains("1000000000") && !html.contains("smallest coin"), "{html}");
    // A concurrent change: no input is lost, and the other change is not overwritten.
    set_prices(&mut olga, &["gold", "silver"]).await;
    let fields = [("key", "k-2"), ("version", "1"), ("price:gold", "15"), ("reason", "Dearer seats.")];
    let percents = [("weekend", "100"), ("matinee", "100"), ("prime", "100")];
    let fields = [&fields[..], &percents[..]].concat();
    let html = expect_answer(send(&olga, &format!("{PAGES}/prices"), &fields).await, StatusCode::CONFLICT);
    assert!(input(&html, "price:gold").contains("value=\"15\"") && html.contains("in the meantime"), "{html}");
    assert!(input(&html, "version").contains("value=\"1\""), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_film_layout_and_terms_forms_keep_their_input() {
    let (world, olga) = world_with_organiser(1).await;
    let refused = async |path: &str, fields: &[(&str, &str)], kept: &[&str]| {
        let html = expect_page(send(&olga, path, fields).await, StatusCode::BAD_REQUEST, &["organiser-trouble"]);
        for text in kept {
            let is_kept = html.contains(&format!("value=\"{text}\"")) || html.contains(&format!("{text}</textarea>"));
            assert!(is_kept, "{text}: {html}");
        }
        html
    };
    let film = [("key", "k-1"), ("title", "Ebb"), ("running_minutes", "long"), ("synopsis", "Low.")];
    refused(&format!("{PAGES}/films"), &film[..], &["Ebb", "long", "Low."][..]).await;
    let room = [("key", "k-2"), ("name", "Yard"), ("pasted", "not JSON"), ("mend", "true")];
    let html = refused(&format!("{PAGES}/screens/import"), &room[..], &["Yard", "not JSON"][..]).await;
    assert!(input(&html, "mend").contains("checked"), "{html}");
    let terms = [
        ("key", "k-3"),
        ("version", "1"),
        ("sales", "paused"),
        ("hold_seconds", "240"),
        ("per_person", "4"),
        ("price:gold", "cheap"),
    ];
    let kept = ["240", "4", "cheap"];
    let html = refused(&format!("{PAGES}/shows/{}/terms", world.show), &terms[..], &kept[..]).await;
    assert!(error(&html, input(&html, "price:gold")).is_some_and(|why| why.contains("12.50")), "{html}");
    assert!(html.contains("value=\"paused\" selected") && html.contains(">Gold<"), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_unchanged_prices_changes_nothing() {
    let (_world, mut olga) = world_with_organiser(1).await;
    let tariff = json!({ "base": { "gold": 1_250 }, "weekend_percent": 120, "matinee_percent": 80,
        "prime_percent": 100, "surcharge": { "2D": 100, "LIVE": 300 }, "version": 0 });
    post_ok(&mut olga, "/tariff", json!({ "tariff": tariff, "reason": "First." })).await;
    let (_, before) = olga.get(&format!("{API}/tariff")).await;
    let (_, html) = olga.page(&format!("{PAGES}/prices")).await;
    let value = |name: &str| {
        let input = html.split("<input").find(|input| input.contains(&format!("name=\"{name}\"")));
        let (_, rest) = input.and_then(|input| input.split_once("value=\"")).unwrap_or(("", ""));
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    let names = [
        "version",
        "price:gold",
        "surcharge:2D",
        "surcharge:3D",
        "surcharge:IMAX",
        "surcharge:LIVE",
        "weekend",
        "matinee",
        "prime",
    ];
    let values = names.map(|name| (name, value(name)));
    let mut fields: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    fields.extend([("key", "k-same"), ("reason", "Looked at, and saved.")]);
    assert_eq!(send(&olga, &format!("{PAGES}/prices"), &fields).await.0, StatusCode::SEE_OTHER, "{fields:?}");
    let (_, after) = olga.get(&format!("{API}/tariff")).await;
    assert_eq!((&after["base"], &after["surcharge"]), (&before["base"], &before["surcharge"]));
    assert_eq!(after["version"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn organiser_pages_are_hidden_from_strangers() {
    let world = World::start(1, &[]).await;
    let ann = register_and_log_in(&world, "ann@example.org").await;
    let guest = Browser::new(&world);
    for path in ["shows", "shows/plan", "screens", "prices", "films"] {
        assert_eq!(ann.page(&format!("{PAGES}/{path}")).await.0, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(guest.page(&format!("{PAGES}/{path}")).await.0, StatusCode::SEE_OTHER, "{path}");
    }
    let answer = send(&ann, &format!("{PAGES}/screens/import"), &[("key", "k"), ("pasted", PLAN)]).await;
    expect_answer(answer, StatusCode::NOT_FOUND);
    assert_eq!(world.count("SELECT count(*) FROM theatre_layouts").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn layout_editor_opens_with_sold_seats_and_a_too_large_layout_is_read_only() {
    let (world, mut olga) = world_with_organiser(1).await;
    expect_page(olga.page(&format!("{PAGES}/layouts/new")).await, StatusCode::OK, &["StaffLayoutEditor"]);
    let buyer = world.visitor();
    let booking = buyer.buy_seats(&[7], "tok_paid").await;
    buyer.wait_for_booking(&booking, "CONFIRMED").await;
    let layout: Uuid = world.value(sqlx::query_scalar("SELECT layout_id FROM shows")).await;
    let page = olga.page(&format!("{PAGES}/layouts/{layout}/edit")).await;
    // Island props are JSON in an attribute.
    expect_page(page, StatusCode::OK, &["StaffLayoutEditor", "[7]"]);
    let large = json!({ "sketch": 1, "name": "Large", "categories": [{ "name": "gold" }],
        "zones": [{ "category": "gold", "rows": [{ "rows": "1-101", "seats": "1-50" }] }] });
    let layout = super::post_ok(&mut olga, "/layouts", json!({ "plan": large })).await;
    let path = format!("{PAGES}/layouts/{}/edit", text(&layout["id"]));
    let html = expect_page(olga.page(&path).await, StatusCode::OK, &["layout-too-large"]);
    assert!(!html.contains("StaffLayoutEditor"), "{html}");
    expect_page(olga.page(&format!("{path}?section=0")).await, StatusCode::OK, &["layout-too-large"]);
    let ann = register_and_log_in(&world, "ann@example.org").await;
    for path in [path, format!("{PAGES}/layouts/new")] {
        assert_eq!(ann.page(&path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_layout_is_edited_by_section_with_the_sold_seats_of_that_section() {
    let (world, mut olga) = world_with_organiser(1).await;
    let zone = |rows: &str| json!({ "name": "Block", "category": "gold", "rows": [{ "rows": rows, "seats": "1-50" }] });
    let plan = json!({ "sketch": 1, "name": "Large", "categories": [{ "name": "gold" }],
        "zones": [zone("1-51"), zone("52-102")] });
    let screen = screen_of(&mut olga, &plan).await;
    set_prices(&mut olga, &["gold"]).await;
    let planned = post_ok(&mut olga, "/programme", week(&screen["id"], "2030-01-07", "monday", &["20:00"])).await;
    let ann = visitor_of(&world, &planned["shows"][0]);
    for seat in [7, 2_560] {
        let booking = ann.buy_seats(&[seat], "tok_paid").await;
        ann.wait_for_booking(&booking, "CONFIRMED").await;
    }
    let path = format!("{PAGES}/layouts/{}/edit", text(&screen["layout"]));
    let (status, html) = olga.page(&path).await;
    assert!(status == StatusCode::OK && !html.contains("StaffLayoutEditor"), "{html}");
    assert!((0..2).all(|section| html.contains(&format!("{path}?section={section}"))), "{html}");
    for (section, sold) in [(0, "[7]"), (1, "[2560]")] {
        let page = olga.page(&format!("{path}?section={section}")).await;
        expect_page(page, StatusCode::OK, &["StaffLayoutEditor", sold]);
    }
    assert_eq!(olga.page(&format!("{path}?section=2")).await.0, StatusCode::NOT_FOUND);
}
