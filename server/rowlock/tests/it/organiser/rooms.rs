//! Imported layouts: shown, sold, refused with every reason, and never changed under a sold seat.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{API, organiser, post, post_ok, screen_of, set_prices, visitor_of, week};
use crate::accounts::{another_theatre, register_and_log_in};
use crate::world::{CHECK_VIOLATION, World, assert_refused, expect_problem, text};

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
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
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
async fn invalid_layout_is_refused_with_every_reason_and_not_stored() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let before = world.count("SELECT count(*) FROM layouts").await;
    let mut twice = foreign_plan();
    twice["zones"][0]["rows"][0]["seats"][1]["seat_number"] = json!("13");
    twice["zones"][1]["rows"][0]["seats"][0]["seat_number"] = json!("");
    twice["zones"][1]["rows"][0]["seats"][1]["category"] = json!("Лоджия");
    let problem = expect_problem(
        post(&mut olga, "/layouts", json!({ "plan": twice.clone() })).await,
        StatusCode::BAD_REQUEST,
        "layout_refused",
    );
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
    // With the `mend` option it is repaired.
    let mended = post_ok(&mut olga, "/layouts", json!({ "plan": twice, "mend": true })).await;
    assert_eq!(mended["seats"], 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_layout_of_a_screen_leaves_planned_shows_and_sold_seats_unchanged() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
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
    // The same layout again creates no version.
    let again = post_ok(&mut olga, &path, json!({ "layout": layout["id"], "reason": "Rebuilt." })).await;
    assert_eq!(again["version"], 2);
    let second = post_ok(&mut olga, "/programme", week(&screen["id"], "2030-01-07", "tuesday", &["20:00"])).await;
    assert_eq!(visitor_of(&world, &second["shows"][0]).seat_states().await.len(), 3);
    assert_eq!(ann.seat_states().await.len(), 10, "the show keeps its layout");
    assert_eq!(ann.booking(&sold).await["seats"][0]["label"], "Süd А14");
    // Postgres refuses it too.
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
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let used = screen_of(&mut olga, &foreign_plan()).await;
    let key = platform::ids::new_id().to_string();
    let body = json!({ "plan": foreign_plan() });
    let path = format!("{API}/layouts");
    let send = async |olga: &mut crate::accounts::Browser| {
        olga.send_with(reqwest::Method::POST, &path, &body, &[("idempotency-key", &key)]).await.2
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

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_the_local_folder_can_be_imported_shown_and_sold() {
    let Some(folder) = std::env::var_os(MORE_PLANS) else { return };
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
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
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
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
        let problem = expect_problem(
            post(&mut olga, "/layouts", json!({ "plan": wrong })).await,
            StatusCode::BAD_REQUEST,
            "layout_refused",
        );
        assert_eq!(text(&problem["findings"][0]["kind"]), kind);
    }
    let drawn = plan("Balcony", json!(300));
    let layout = post_ok(&mut olga, "/layouts", json!({ "plan": drawn })).await;
    assert_eq!((&layout["places"], &layout["seats"]), (&json!(600), &json!(1)));
    assert_eq!(text(&layout["remarks"][0]["kind"]), "areas_not_sold");
    let (_, file) = olga.get(&format!("{API}/layouts/{}/file?form=seating_plan", text(&layout["id"]))).await;
    assert_eq!(file["zones"][0]["areas"], drawn["zones"][0]["areas"]);
}
