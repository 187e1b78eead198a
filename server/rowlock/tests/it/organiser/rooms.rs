//! Theatres, created by managers of all theatres and changed by managers of the one. Imported layouts: shown, sold, refused
//! with every reason, and never changed under a sold seat.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::pages::{PAGES, PLAN, send};
use super::{API, organiser, post, post_ok, screen_of, set_prices, visitor_of, week, world_with_organiser};
use crate::accounts::form;
use crate::prelude::*;
use crate::reports::staff;

/// A folder of further seating plans to import and sell, where available.
const MORE_PLANS: &str = "ROWLOCK_SEATING_PLANS";

/// Two stands with the same labels, a bis number, other scripts, right to left, odd and even rows.
fn foreign_plan() -> Value {
    let seat = |number: &str, x: i32, y: i32| json!({ "seat_guid": "g", "seat_number": number, "position": { "x": x, "y": y }, "category": "Партер" });
    let row = |label: &str, numbers: &[&str], y: i32| {
        let seats: Vec<Value> = numbers.iter().zip(0..).map(|(number, at)| seat(number, at * 30, y)).collect();
        json!({ "row_number": label, "seats": seats })
    };
    json!({
        "name": "Зал", "size": { "width": 400, "height": 300 }, "editor": { "zoom": 1.25 },
        "categories": [{ "name": "Партер", "color": "#7f4a91" }],
        "zones": [
            { "name": "Север", "rows": [row("А", &["13", "14", "14 bis", "15"], 0), row("12", &["7", "5", "3", "1"], 40)] },
            { "name": "Süd", "position": { "x": 0, "y": 200 }, "rows": [row("А", &["13", "14"], 0)], "areas": [{ "shape": "circle" }] },
        ],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn imported_plan_becomes_a_screen_sells_and_is_exported_unchanged() {
    let (world, mut olga) = world_with_organiser(1).await;
    let layout = post_ok(&mut olga, "/layouts", json!({ "plan": foreign_plan() })).await;
    assert_eq!((&layout["seats"], &layout["sections"], &layout["published"]), (&json!(10), &json!(2), &json!(false)));
    let kinds: Vec<&str> = layout["remarks"].as_array().expect("a list").iter().map(|one| text(&one["kind"])).collect();
    assert_eq!(kinds, ["right_to_left", "odd_or_even", "areas_not_sold"]);
    let (status, file) = olga.get(&format!("{API}/layouts/{}/file?form=seating_plan", text(&layout["id"]))).await;
    assert_eq!((status, &file), (StatusCode::OK, &foreign_plan()));
    let screen = screen_of(&mut olga, &foreign_plan()).await;
    set_prices(&mut olga, &["Партер"]).await;
    let planned = post_ok(&mut olga, "/programme", week(&screen["id"], "2030-01-07", "monday", &["20:00"])).await;
    let ann = visitor_of(&world, &planned["shows"][0]);
    let sold = ann.buy_seats(&[2, 4], "tok_paid").await;
    let labels: Vec<&str> = sold["seats"].as_array().expect("a list").iter().map(|seat| text(&seat["label"])).collect();
    assert_eq!(labels, ["Север А14 bis", "Север 12-7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn focus_is_open_until_the_file_or_the_request_states_it() {
    let (_world, mut olga) = world_with_organiser(1).await;
    let open = post_ok(&mut olga, "/layouts", json!({ "plan": foreign_plan() })).await;
    assert_eq!(open.get("focus"), None, "two rows and a nameless circle state nothing");
    let below = json!({ "kind": "screen", "side": "bottom" });
    let stated = post_ok(&mut olga, "/layouts", json!({ "plan": foreign_plan(), "focus": below })).await;
    assert_eq!((&stated["focus"], &stated["seats"]), (&below, &open["seats"]));
    let (_, file) = olga.get(&format!("{API}/layouts/{}/file?form=seating_plan", text(&stated["id"]))).await;
    assert_eq!((&file["focus"]["side"], &file["zones"]), (&json!("bottom"), &foreign_plan()["zones"]));
    let again = post_ok(&mut olga, "/layouts", json!({ "plan": file })).await;
    assert_eq!(again["focus"], below, "the file states it");
    let (status, _) = post(&mut olga, "/layouts", json!({ "plan": foreign_plan(), "focus": { "kind": "pit" } })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_layout_is_refused_with_every_reason_and_not_stored() {
    let (world, mut olga) = world_with_organiser(1).await;
    let before = world.count("SELECT count(*) FROM layouts").await;
    let mut twice = foreign_plan();
    twice["zones"][0]["rows"][0]["seats"][1]["seat_number"] = json!("13");
    twice["zones"][1]["rows"][0]["seats"][0]["seat_number"] = json!("");
    twice["zones"][1]["rows"][0]["seats"][1]["category"] = json!("Лоджия");
    let answer = post(&mut olga, "/layouts", json!({ "plan": twice.clone() })).await;
    let problem = expect_problem(answer, StatusCode::BAD_REQUEST, "layout_refused");
    let kinds: Vec<&str> =
        problem["findings"].as_array().expect("a list").iter().map(|one| text(&one["kind"])).collect();
    assert_eq!(kinds, ["unknown_category", "unnumbered", "duplicate_seat"]);
    let crowd: Vec<Value> =
        (0..200_000).map(|n| json!({ "seat_number": n, "position": { "x": n, "y": 0 }, "category": "a" })).collect();
    let crowd = json!({ "categories": ["a"], "zones": [{ "rows": [{ "seats": crowd }] }] });
    for (plan, kind) in [
        (crowd, "too_many_seats"),
        (json!({ "categories": [], "zones": [] }), "no_seats"),
        (json!({ "sketch": 1, "name": "R", "categories": [{ "name": "a" }], "zones": [] }), "no_seats"),
        (json!("a plan"), "not_a_plan"),
        (json!(null), "not_a_plan"),
    ] {
        let (status, problem) = post(&mut olga, "/layouts", json!({ "plan": plan })).await;
        assert_eq!((status, text(&problem["findings"][0]["kind"])), (StatusCode::BAD_REQUEST, kind), "{problem}");
    }
    assert_eq!(world.count("SELECT count(*) FROM layouts").await, before, "no layout is stored");
    let mended = post_ok(&mut olga, "/layouts", json!({ "plan": twice, "mend": true })).await;
    assert_eq!(mended["seats"], 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_layout_of_a_screen_leaves_planned_shows_and_sold_seats_unchanged() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = screen_of(&mut olga, &foreign_plan()).await;
    set_prices(&mut olga, &["Партер", "gold"]).await;
    let first = post_ok(&mut olga, "/programme", week(&screen["id"], "2030-01-07", "monday", &["20:00"])).await;
    let ann = visitor_of(&world, &first["shows"][0]);
    let sold = ann.buy_seats(&[9], "tok_paid").await;
    let small = json!({ "sketch": 1, "name": "Small", "categories": [{ "name": "gold" }],
        "zones": [{ "category": "gold", "rows": [{ "rows": "A", "seats": "1-3" }] }] });
    let layout = post_ok(&mut olga, "/layouts", json!({ "plan": small })).await;
    let path = format!("/screens/{}/layout", text(&screen["id"]));
    let changed = post_ok(&mut olga, &path, json!({ "layout": layout["id"], "reason": "Rebuilt." })).await;
    assert_eq!((&changed["version"], &changed["seats"]), (&json!(2), &json!(3)));
    let again = post_ok(&mut olga, &path, json!({ "layout": layout["id"], "reason": "Rebuilt." })).await;
    assert_eq!(again["version"], 2);
    let second = post_ok(&mut olga, "/programme", week(&screen["id"], "2030-01-07", "tuesday", &["20:00"])).await;
    assert_eq!(visitor_of(&world, &second["shows"][0]).seat_states().await.len(), 3);
    assert_eq!(ann.seat_states().await.len(), 10, "the show keeps its layout");
    assert_eq!(ann.booking(&sold).await["seats"][0]["label"], "Süd А14");
    let moved = "UPDATE shows SET layout_id = (SELECT layout_id FROM screens WHERE id = shows.screen_id)
                 WHERE id IN (SELECT show_id FROM seat_claims)";
    let moved = sqlx::query(moved).execute(&world.pg).await;
    assert_refused("the show has sold seats", moved, CHECK_VIOLATION, "it keeps its room");
    let forgotten = sqlx::query("DELETE FROM screen_layouts").execute(&world.pg).await;
    assert_refused("the layout history is immutable", forgotten, CHECK_VIOLATION, "screen_layouts rows are immutable");
}

#[tokio::test(flavor = "multi_thread")]
async fn layouts_and_screens_of_other_theatres_are_not_found() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    let mut olga = organiser(&world).await;
    let layout = post_ok(&mut olga, "/layouts", json!({ "plan": foreign_plan() })).await;
    let screen = screen_of(&mut olga, &foreign_plan()).await;
    let mut rita = register_and_log_in(&world, "rita@example.org").await;
    crate::accounts::grant(&world, "rita@example.org", "rialto", "organiser").await;
    rita.log_in("rita@example.org", crate::accounts::PASSWORD).await;
    let there = "/api/v1/theatres/rialto";
    assert_eq!(rita.get(&format!("{there}/layouts/{}", text(&layout["id"]))).await.0, StatusCode::NOT_FOUND);
    let theft = json!({ "name": "Mine", "layout": layout["id"], "reason": "Nice room." });
    assert_eq!(rita.post(&format!("{there}/screens"), theft).await.0, StatusCode::NOT_FOUND);
    let theft = json!({ "layout": layout["id"], "reason": "Nice room." });
    let path = format!("{there}/screens/{}/layout", text(&screen["id"]));
    assert_eq!(rita.post(&path, theft).await.0, StatusCode::NOT_FOUND);
    assert_eq!(rita.get(&format!("{API}/screens")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_import_is_one_layout_and_old_unused_ones_are_deleted() {
    let (world, mut olga) = world_with_organiser(1).await;
    let used = screen_of(&mut olga, &foreign_plan()).await;
    let key = new_id().to_string();
    let body = json!({ "plan": foreign_plan() });
    let path = format!("{API}/layouts");
    let send = async |olga: &mut crate::accounts::Browser| {
        olga.send_with(Method::POST, &path, &body, &[("idempotency-key", &key)]).await.2
    };
    let (one, two) = (send(&mut olga).await, send(&mut olga).await);
    assert_eq!(one, two);
    for _ in 0..51 {
        post_ok(&mut olga, "/layouts", body.clone()).await;
    }
    assert_eq!(world.count("SELECT count(*) FROM theatre_layouts WHERE published_at IS NULL").await, 50);
    assert_eq!(olga.get(&format!("{API}/layouts/{}", text(&one["id"]))).await.0, StatusCode::NOT_FOUND);
    let (status, _) = olga.get(&format!("{API}/layouts/{}", text(&used["layout"]))).await;
    assert_eq!(status, StatusCode::OK, "a screen's layout is kept");
}

/// Sends the beginning of an upload whose rest does not follow.
async fn begin_upload(olga: &Browser, path: &str, kind: &str) -> TcpStream {
    let visitor = olga.visitor();
    let host = visitor.base.trim_start_matches("http://");
    let (cookie, key) = (&visitor.cookie, new_id());
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\nidempotency-key: {key}\r\n\
         content-type: {kind}\r\ncontent-length: 1000000\r\n\r\n{{"
    );
    let mut stream = TcpStream::connect(host).await.expect("the server listens");
    stream.write_all(head.as_bytes()).await.expect("the beginning is sent");
    stream
}

async fn import_plan(olga: &Browser) -> (StatusCode, Value) {
    post(&mut olga.clone(), "/layouts", json!({ "plan": foreign_plan() })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_beyond_the_limit_are_refused_and_slow_ones_lose_their_slots() {
    let (_world, olga) = world_with_organiser(1).await;
    let (of_api, of_pages) = (format!("{API}/layouts"), format!("{PAGES}/screens/import"));
    let mut slow = Vec::new();
    // Four uploads may be in memory.
    for _ in 0..2 {
        slow.push(begin_upload(&olga, &of_api, "application/json").await);
        slow.push(begin_upload(&olga, &of_pages, "application/x-www-form-urlencoded").await);
    }
    wait_until("a fifth upload is refused", || async { import_plan(&olga).await.1["code"] == "overloaded" }).await;
    let refused = send(&olga, &of_pages, &[("key", "k"), ("pasted", PLAN)]).await;
    expect_page(refused, StatusCode::SERVICE_UNAVAILABLE, &["organiser-trouble", "Another file is being read."]);
    for mut stream in slow {
        let mut answer = [0; 12];
        let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_exact(&mut answer)).await;
        read.expect("a slow upload is answered").expect("a status");
        assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 400");
    }
    expect_answer(import_plan(&olga).await, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_the_local_folder_can_be_imported_shown_and_sold() {
    let Some(folder) = std::env::var_os(MORE_PLANS) else { return };
    let (world, mut olga) = world_with_organiser(1).await;
    for (number, entry) in std::fs::read_dir(folder).expect("the folder exists").enumerate() {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let plan: Value = serde_json::from_slice(&std::fs::read(&path).expect("a readable file")).expect("JSON");
        let screen = screen_of(&mut olga, &plan).await;
        let (_, layout) = olga.get(&format!("{API}/layouts/{}", text(&screen["layout"]))).await;
        let categories: Vec<&str> =
            layout["categories"].as_array().expect("a list").iter().map(|one| text(&one["name"])).collect();
        set_prices(&mut olga, &categories).await;
        let day = format!("2030-02-{:02}", 4 + number);
        let mut plan = week(&screen["id"], &day, "monday", &["20:00"]);
        plan["pattern"] = (["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])
            .map(|weekday| json!({ "weekday": weekday, "times": ["20:00"] }))
            .to_vec()
            .into();
        let planned = post_ok(&mut olga, "/programme", plan).await;
        let ann = visitor_of(&world, &planned["shows"][0]);
        let seats = u32::try_from(layout["seats"].as_u64().expect("a count")).expect("few enough");
        assert_eq!(ann.seat_states().await.len(), seats as usize, "{}", path.display());
        let (status, room) = ann.get(&format!("/api/v1/shows/{}/plan", ann.show)).await;
        assert_eq!((status, &room["seat_count"]), (StatusCode::OK, &layout["seats"]));
        let sold = ann.buy_seats(&[0, seats / 2, seats - 1], "tok_paid").await;
        assert_eq!(sold["seats"].as_array().expect("a list").len(), 3, "{}", path.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_area_with_a_capacity_is_for_sale_and_one_without_is_decoration() {
    let (_world, mut olga) = world_with_organiser(1).await;
    let plan = |name: &str, capacity: Value| {
        let area = |name: &str| {
            json!({ "shape": "rectangle", "position": { "x": 0, "y": 60 }, "rectangle": { "width": 200, "height": 80 },
                "name": name, "category": "floor", "capacity": capacity })
        };
        let bar = json!({ "shape": "rectangle", "position": { "x": 0, "y": 200 }, "rectangle": { "width": 40, "height": 20 } });
        json!({ "name": "Club", "categories": [{ "name": "floor" }], "zones": [{ "name": "", "areas": [area("Floor"), area(name), bar],
            "rows": [{ "row_number": "A", "seats": [{ "seat_number": "1", "position": { "x": 0, "y": 0 }, "category": "floor" }] }] }] })
    };
    for (wrong, kind) in [(plan("Floor", json!(300)), "duplicate_area"), (plan("Bar", json!(0)), "area_capacity")] {
        let answer = post(&mut olga, "/layouts", json!({ "plan": wrong })).await;
        let problem = expect_problem(answer, StatusCode::BAD_REQUEST, "layout_refused");
        assert_eq!(text(&problem["findings"][0]["kind"]), kind);
    }
    let drawn = plan("Balcony", json!(300));
    let layout = post_ok(&mut olga, "/layouts", json!({ "plan": drawn })).await;
    assert_eq!((&layout["places"], &layout["seats"]), (&json!(600), &json!(1)));
    assert_eq!(text(&layout["remarks"][0]["kind"]), "areas_not_sold");
    let (_, file) = olga.get(&format!("{API}/layouts/{}/file?form=seating_plan", text(&layout["id"]))).await;
    assert_eq!(file["zones"][0]["areas"], drawn["zones"][0]["areas"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn room_for_standing_only_is_imported_and_sold() {
    let (world, mut olga) = world_with_organiser(1).await;
    let hall = json!({ "name": "Hall", "categories": [{ "name": "floor" }], "zones": [{ "rows": [], "areas": [
        { "shape": "rectangle", "position": { "x": 0, "y": 0 }, "rectangle": { "width": 200, "height": 80 },
          "name": "Floor", "category": "floor", "capacity": 3 }] }] });
    let screen = screen_of(&mut olga, &hall).await;
    assert_eq!(screen["seats"], 0);
    set_prices(&mut olga, &["floor"]).await;
    let planned = post_ok(&mut olga, "/programme", week(&screen["id"], "2030-01-07", "monday", &["20:00"])).await;
    let ann = visitor_of(&world, &planned["shows"][0]);
    let (_, plan) = ann.get(&format!("/api/v1/shows/{}/plan", ann.show)).await;
    assert_eq!((&plan["seat_count"], &plan["areas"][0]["capacity"]), (&json!(0), &json!(3)));
    let path = format!("/api/v1/shows/{}/holds", ann.show);
    let (status, problem) = ann.call(Method::POST, &path, json!({ "seats": [0] })).await;
    assert_eq!(text(&problem["code"]), "unknown_seat", "{status}");
    let hold = expect_answer(ann.hold_places(2).await, StatusCode::CREATED);
    let booking = expect_answer(ann.book(&hold).await, StatusCode::CREATED);
    expect_state(ann.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    wait_until("one place is left", || async { ann.places_left().await == 1 }).await;
}

fn theatre(city: Value) -> Value {
    let mut request_body =
        json!({ "name": "Foz", "address": "Rua do Farol 3", "currency": "EUR", "reason": "It opens in May." });
    for (key, value) in city.as_object().expect("an object") {
        request_body[key] = value.clone();
    }
    request_body
}

#[tokio::test(flavor = "multi_thread")]
async fn manager_of_all_theatres_creates_one_and_manages_it() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    let porto = json!({ "new_city": { "name": "Porto", "country": "PT", "time_zone": "Europe/Lisbon" } });
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (status, problem) = max.post("/api/v1/theatres", theatre(porto.clone())).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::FORBIDDEN, "not_allowed"), "he manages one of two");
    register_and_log_in(&world, "mia@example.org").await;
    for place in ["aurora", "rialto"] {
        grant(&world, "mia@example.org", place, "manager").await;
    }
    let mut mia = Browser::new(&world);
    mia.log_in("mia@example.org", crate::accounts::PASSWORD).await;
    for (wrong, status) in [
        (json!({ "city": "atlantis" }), StatusCode::NOT_FOUND),
        (json!({}), StatusCode::BAD_REQUEST),
        (json!({ "city": "lisbon", "currency": "euro" }), StatusCode::BAD_REQUEST),
        (json!({ "new_city": { "name": "Porto", "country": "PT", "time_zone": "Porto" } }), StatusCode::BAD_REQUEST),
        (json!({ "city": "lisbon", "reason": "" }), StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(mia.post("/api/v1/theatres", theatre(wrong.clone())).await.0, status, "{wrong}");
    }
    assert_eq!(world.count("SELECT count(*) FROM theatres").await, 2, "nothing was written");
    let (status, made) = mia.post("/api/v1/theatres", theatre(porto)).await;
    assert_eq!((status, &made["time_zone"]), (StatusCode::CREATED, &json!("Europe/Lisbon")), "{made}");
    let id = text(&made["id"]);
    assert_eq!(mia.get(&format!("/api/v1/theatres/{id}/screens")).await.0, StatusCode::OK, "she manages it");
    let (_, listed) = mia.get(&format!("/api/v1/cities/{}/theatres", text(&made["city"]))).await;
    assert_eq!(listed[0]["name"], "Foz", "the theatre is listed");
    let (status, second) = mia.post("/api/v1/theatres", theatre(json!({ "city": made["city"] }))).await;
    assert_eq!(status, StatusCode::CREATED, "she still manages all theatres: {second}");
    assert_ne!(second["id"], made["id"]);
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'theatre_created'").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn theatre_can_be_renamed_and_keeps_its_currency_once_a_show_is_planned() {
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (_, before) = max.get(API).await;
    let (_, page) = max.visitor().raw(Method::GET, "/staff/aurora/theatre", Value::Null, "k").await;
    let links = page.split("<a ").filter_map(|rest| rest.split('>').next());
    let current: Vec<&str> =
        links.filter(|link| link.contains("/staff/") && link.contains("aria-current=\"page\"")).collect();
    assert!(matches!(&current[..], [link] if link.contains("href=\"/staff/aurora/theatre\"")), "{current:?}");
    let change = |name: &str, currency: &str, version: &Value| json!({ "name": name, "address": "Rua 9", "currency": currency, "version": version, "reason": "Sold." });
    let (status, problem) = max.post(API, change("Aurora", "USD", &before["version"])).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"), "a show is planned in euros");
    let (status, after) = max.post(API, change("Aurora Nova", "EUR", &before["version"])).await;
    assert_eq!((status, &after["name"], &after["address"]), (StatusCode::OK, &json!("Aurora Nova"), &json!("Rua 9")));
    let (status, _) = max.post(API, change("Once more", "EUR", &before["version"])).await;
    assert_eq!(status, StatusCode::CONFLICT, "the change is based on an older version");
    let (_, page) = world.visitor().raw(Method::GET, "/theatres/aurora", Value::Null, "k").await;
    assert!(page.contains("Aurora Nova"));
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'theatre_changed'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusal_is_shown_in_the_page_language_with_a_remedy() {
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (_, before) = max.get(API).await;
    let visitor = max.visitor();
    let send = async |key: &str, name: &str, version: u64| {
        let version = version.to_string();
        let fields = [
            ("key", key),
            ("version", version.as_str()),
            ("name", name),
            ("address", "Rua 9"),
            ("currency", "EUR"),
            ("reason", "Sold."),
        ];
        let request = visitor.client.post(format!("{}/staff/aurora/theatre", visitor.base));
        let request = request.header("cookie", format!("{}; lang=de", visitor.cookie));
        let answer = form(request, &fields).send().await.expect("the server answers");
        (answer.status(), answer.text().await.expect("a page"))
    };
    let version = before["version"].as_u64().expect("a number");
    let page = expect_answer(send("k-1", "Nova", version + 7).await, StatusCode::CONFLICT);
    // The text for buyers, about a booking, does not appear.
    assert!(page.contains("Das ist gerade nicht möglich.") && !page.contains("Buchung hat sich"), "{page}");
    let detail = "Someone else has changed this theatre in the meantime. Look at it again, then change it.";
    assert!(page.contains(&format!("<bdi lang=\"en\">{detail}</bdi>")), "{page}");
    let page = expect_answer(send("k-2", &"x".repeat(200), version).await, StatusCode::BAD_REQUEST);
    assert!(page.contains("Diese Angaben") && !page.contains("Bei uns ist etwas"), "{page}");
    assert!(page.contains("<bdi lang=\"en\">") && page.contains("is longer than"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn first_theatre_is_created_on_the_command_line() {
    let world = World::start(1, &[("ROWLOCK_PASSWORD", crate::accounts::PASSWORD)]).await;
    // As after `rowlock migrate`: no theatre. Rows that refer to one do not matter here.
    let nothing = "BEGIN; SET LOCAL session_replication_role = replica;
                   DELETE FROM shows; DELETE FROM screens; DELETE FROM theatres; DELETE FROM cities; COMMIT";
    sqlx::raw_sql(nothing).execute(&world.pg).await.expect("the tables are empty");
    let manager = ["admin", "create", "--email", "max@example.org", "--name", "Max"];
    let (good, said) = world.command(&manager).await;
    assert!(!good && said.contains("rowlock theatre create"), "{said}");

    let create = async |more: &[&str]| {
        let what = ["theatre", "create", "--name", "Foz", "--address", "Rua do Farol 3", "--currency", "EUR"];
        world.command(&[&what, more].concat()).await
    };
    let reason = ["--reason", "It opens in May."];
    for (wrong, why) in [
        (&["--city", "porto"][..], "no such city"),
        (&["--new-city", "Porto", "--country", "PT", "--time-zone", "Porto"], "no time zone"),
        (&["--new-city", "Porto"], "--time-zone"),
        (&[], "--city"),
    ] {
        let (good, said) = create(&[wrong, &reason].concat()).await;
        assert!(!good && said.to_lowercase().contains(why), "{wrong:?}: {said}");
    }
    assert_eq!(world.count("SELECT count(*) FROM cities").await, 0, "nothing was written");
    let porto = ["--new-city", "Porto", "--country", "PT", "--time-zone", "Europe/Lisbon"];
    let (good, said) = create(&[&porto, &reason[..]].concat()).await;
    assert!(good && said.starts_with("theatre foz-"), "{said}");
    let (good, said) = world.command(&manager).await;
    assert!(good && said.contains("is a manager of foz-"), "{said}");
    let lines = "SELECT count(*) FROM audit_list WHERE act = 'theatre_created' AND actor IS NULL";
    assert_eq!(world.count(lines).await, 1);

    // From here on pages and the API do the rest.
    let mut max = Browser::new(&world);
    max.log_in("max@example.org", crate::accounts::PASSWORD).await;
    let city: String = world.value(sqlx::query_scalar("SELECT id FROM cities")).await;
    expect_answer(max.post("/api/v1/theatres", theatre(json!({ "city": city }))).await, StatusCode::CREATED);
}
