//! House seats of a screen: blocked in every show planned there, also after a layout change and a move; and their page.

use super::pages::{PAGES, PLAN, send};
use super::{API, organiser, post, post_ok, room, screen_of, set_prices, visitor_of, week, world_with_organiser};
use crate::box_office::{desk_path, seller};
use crate::prelude::*;

fn path(screen: &Value) -> String {
    format!("/screens/{}/house-seats", text(&screen["id"]))
}

fn house_seats_body(screen: &Value, seats: &[&str], kept: bool, reason: &str) -> Value {
    json!({ "layout": screen["layout"], "seats": seats, "kept": kept, "reason": reason })
}

/// Blocks seats of a screen. Returns its house seats.
async fn block(olga: &mut Browser, screen: &Value, seats: &[&str], reason: &str) -> Value {
    post_ok(olga, &path(screen), house_seats_body(screen, seats, true, reason)).await
}

async fn shows(olga: &mut Browser, world: &World, screen: &Value, weekday: &str, times: &[&str]) -> Vec<Visitor> {
    let planned = post_ok(olga, "/programme", week(&screen["id"], "2030-01-07", weekday, times)).await;
    planned["shows"].as_array().expect("a list").iter().map(|show| visitor_of(world, show)).collect()
}

fn labels(seats: &Value) -> Vec<&str> {
    seats.as_array().expect("a list").iter().map(|seat| text(&seat["label"])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn planned_shows_block_the_screens_house_seats_and_the_box_office_releases_them() {
    let (world, mut olga) = world_with_organiser(1).await;
    let mut ann = seller(&world, "ann@example.org").await;
    let screen = screen_of(&mut olga, &room("A-B")).await;
    set_prices(&mut olga, &["gold"]).await;
    let earlier = shows(&mut olga, &world, &screen, "monday", &["20:00"]).await;
    block(&mut olga, &screen, &["A2", "A1"], "Press").await;
    let kept = block(&mut olga, &screen, &["B10"], "House").await;
    assert_eq!((labels(&kept["seats"]), &kept["gone"]), (vec!["A1", "A2", "B10"], &json!([])), "{kept}");
    assert_eq!((&kept["seats"][0]["reason"], &kept["seats"][2]["seat"]), (&json!("Press"), &json!(19)));
    let (_, screens) = olga.get(&format!("{API}/screens")).await;
    let mine =
        screens.as_array().expect("a list").iter().find(|one| one["id"] == screen["id"]).expect("the screen is listed");
    assert_eq!(mine["house_seats"], 3);

    let later = shows(&mut olga, &world, &screen, "tuesday", &["14:00", "20:00"]).await;
    for visitor in &later {
        assert_eq!(visitor.seat_states().await, "33000000000000000003");
        assert_eq!(visitor.hold(&[0]).await.0, StatusCode::CONFLICT);
    }
    assert_eq!(earlier[0].seat_states().await, "0".repeat(20), "earlier shows are unchanged");

    // The box office releases one like any other, for this show only.
    let (one, other) = (&later[0], &later[1]);
    let (_, holder) = ann.get(&desk_path(&format!("shows/{}/seats/0", one.show))).await;
    assert_eq!([&holder["by"], &holder["reason"]], [&json!("house"), &json!("Press")], "{holder}");
    let back = json!({ "seats": [0], "kept": false, "reason": "No press today." });
    expect_answer(ann.post(&desk_path(&format!("shows/{}/house-seats", one.show)), back).await, StatusCode::NO_CONTENT);
    one.wait_for_seat(0, '0').await;
    // Redis loses everything; the house seats survive.
    world.delete_redis_keys().await;
    wait_until("the maps are unchanged", || async {
        one.seat_states().await == "03000000000000000003" && other.seat_states().await == "33000000000000000003"
    })
    .await;

    post_ok(&mut olga, &path(&screen), house_seats_body(&screen, &["A1"], false, "One is enough.")).await;
    let last = shows(&mut olga, &world, &screen, "wednesday", &["20:00"]).await;
    assert_eq!(last[0].seat_states().await, "03000000000000000003");
    let query = "SELECT act FROM audit_list WHERE act LIKE 'standing%' OR act LIKE 'seats%' ORDER BY number";
    let acts: Vec<String> = world.values(sqlx::query_scalar(query)).await;
    let [kept, start] = ["standing_seats_kept", "seats_kept_from_start"];
    assert_eq!(acts, [kept, kept, start, "seats_put_back", "standing_seats_put_back", start]);
    let words =
        "SELECT count(*) FROM audit_list WHERE act = 'seats_kept_from_start' AND reason = 'B10: House; A1, A2: Press'";
    assert_eq!(world.count(words).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_house_seats_are_refused_and_other_theatres_screens_are_not_found() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    let mut olga = organiser(&world).await;
    let screen = screen_of(&mut olga, &room("A-B")).await;
    let other = post_ok(&mut olga, "/layouts", json!({ "plan": room("A-C") })).await;
    let mut elsewhere = house_seats_body(&screen, &["A1"], true, "House");
    elsewhere["layout"] = other["id"].clone();
    let many: Vec<String> = (0..201).map(|number| format!("A{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (body, status, code) in [
        (house_seats_body(&screen, &["A1", "C1"], true, "House"), 400, "unknown_seat"),
        (house_seats_body(&screen, &["C1"], false, "House"), 400, "unknown_seat"),
        (house_seats_body(&screen, &["A1", " A1"], true, "House"), 400, "seat_twice"),
        (house_seats_body(&screen, &[], true, "House"), 400, "malformed"),
        (house_seats_body(&screen, &many, true, "House"), 400, "malformed"),
        (house_seats_body(&screen, &["A1"], true, " "), 400, "malformed"),
        (elsewhere, 409, "wrong_state"),
    ] {
        let (said, problem) = post(&mut olga, &path(&screen), body).await;
        assert_eq!((said.as_u16(), text(&problem["code"])), (status, code), "{problem}");
    }
    assert_eq!(world.count("SELECT count(*) FROM standing_house_seats").await, 0, "all or none");
    let mut rita = register_and_log_in(&world, "rita@example.org").await;
    grant(&world, "rita@example.org", "rialto", "organiser").await;
    rita.log_in("rita@example.org", PASSWORD).await;
    let there = format!("/api/v1/theatres/rialto{}", path(&screen));
    assert_eq!(rita.get(&there).await.0, StatusCode::NOT_FOUND);
    assert_eq!(rita.post(&there, house_seats_body(&screen, &["A1"], true, "House")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn house_seats_are_matched_by_name_in_another_layout_and_missing_ones_are_listed() {
    let (world, mut olga) = world_with_organiser(1).await;
    let screen = screen_of(&mut olga, &room("A-B")).await;
    set_prices(&mut olga, &["gold"]).await;
    block(&mut olga, &screen, &["A3", "B1"], "House").await;
    let publish = format!("/screens/{}/layout", text(&screen["id"]));
    let small = post_ok(&mut olga, "/layouts", json!({ "plan": room("A") })).await;
    let changed = post_ok(&mut olga, &publish, json!({ "layout": small["id"], "reason": "Rebuilt." })).await;
    assert_eq!((&changed["house_seats"], &changed["house_seats_gone"]), (&json!(1), &json!(["B1"])), "{changed}");
    let (_, standing) = olga.get(&format!("{API}{}", path(&screen))).await;
    assert_eq!((labels(&standing["seats"]), labels(&standing["gone"])), (vec!["A3"], vec!["B1"]));
    let planned = shows(&mut olga, &world, &screen, "monday", &["20:00"]).await;
    assert_eq!(planned[0].seat_states().await, "0030000000");
    // Chosen for the previous layout, on a page that was opened earlier.
    let answer = post(&mut olga, &path(&screen), house_seats_body(&screen, &["A1"], true, "House")).await;
    expect_problem(answer, StatusCode::CONFLICT, "wrong_state");
    for wanted in ["/screens", &path(&screen)] {
        let there = format!("/staff/aurora{wanted}");
        let (status, page) = olga.visitor().raw(Method::GET, &there, Value::Null, "page").await;
        assert!(status == StatusCode::OK && page.contains("B1"), "{wanted} names the missing seat: {page}");
    }
    // A larger layout has the seat again. A seat removed in the small one stays removed.
    let large = post_ok(&mut olga, "/layouts", json!({ "plan": room("A-C") })).await;
    let changed = post_ok(&mut olga, &publish, json!({ "layout": large["id"], "reason": "Rebuilt." })).await;
    assert_eq!((&changed["house_seats"], &changed["house_seats_gone"]), (&json!(2), &json!([])));
    let changed = post_ok(&mut olga, &publish, json!({ "layout": small["id"], "reason": "Rebuilt." })).await;
    assert_eq!((&changed["house_seats"], &changed["house_seats_gone"]), (&json!(1), &json!(["B1"])));
    let now = json!({ "id": screen["id"], "layout": small["id"] });
    let after = post_ok(&mut olga, &path(&now), house_seats_body(&now, &["B1"], false, "It is gone.")).await;
    assert_eq!((labels(&after["seats"]), &after["gone"]), (vec!["A3"], &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_show_takes_the_house_seats_of_its_new_screen_where_free() {
    let (world, mut olga) = world_with_organiser(1).await;
    let mut ann = seller(&world, "ann@example.org").await;
    let from = screen_of(&mut olga, &room("A-B")).await;
    let to = screen_of(&mut olga, &room("A-B")).await;
    set_prices(&mut olga, &["gold"]).await;
    block(&mut olga, &from, &["A1"], "Press").await;
    block(&mut olga, &to, &["B5", "B6"], "House").await;
    let show = shows(&mut olga, &world, &from, "monday", &["20:00"]).await.remove(0);
    let by_hand = json!({ "seats": [1], "kept": true, "reason": "For the mayor." });
    ann.post(&desk_path(&format!("shows/{}/house-seats", show.show)), by_hand).await;
    // B5 is a house seat of the other screen. A buyer has priority over the house.
    let booking = show.buy_seats(&[14], "tok_paid").await;

    let moving = format!("/programme/{}/move", show.show);
    let (status, preview) = olga.get(&format!("{API}{moving}?screen={}", text(&to["id"]))).await;
    assert_eq!((status, &preview["same"]["bookings"]), (StatusCode::OK, &json!(1)), "{preview}");
    assert_eq!(preview["house_seats_lost"], 0, "{preview}");
    post_ok(&mut olga, &moving, json!({ "screen": to["id"], "reason": "The projector is broken." })).await;
    wait_until("the move is done", || async {
        let (_, seen) = olga.clone().get(&format!("{API}/programme/{}", show.show)).await;
        seen["moved"]["state"] == "done"
    })
    .await;
    wait_until("the map has the other layout", || async { show.seat_states().await == "03000000000000230000" }).await;
    assert_eq!(show.booking(&booking).await["seats"][0]["label"], "B5");
    for (seat, reason) in [(1, "For the mayor."), (15, "House")] {
        let (_, holder) = ann.get(&desk_path(&format!("shows/{}/seats/{seat}", show.show))).await;
        assert_eq!([&holder["by"], &holder["reason"]], [&json!("house"), &json!(reason)], "{holder}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn buyers_have_priority_over_house_seats_when_a_moved_show_lacks_seats() {
    let (world, mut olga) = world_with_organiser(1).await;
    let from = screen_of(&mut olga, &room("A-B")).await;
    let to = screen_of(&mut olga, &room("A")).await;
    set_prices(&mut olga, &["gold"]).await;
    let all: Vec<String> = (1..=10).map(|number| format!("A{number}")).collect();
    block(&mut olga, &to, &all.iter().map(String::as_str).collect::<Vec<_>>(), "House").await;
    let show = shows(&mut olga, &world, &from, "monday", &["20:00"]).await.remove(0);
    show.buy_seats(&[14, 15], "tok_paid").await;
    let moving = format!("/programme/{}/move?screen={}", show.show, text(&to["id"]));
    let preview = expect_answer(olga.get(&format!("{API}{moving}")).await, StatusCode::OK);
    assert_eq!((&preview["offered"]["seats"], &preview["refunded"]["seats"]), (&json!(2), &json!(0)), "{preview}");
}

#[tokio::test(flavor = "multi_thread")]
async fn house_seats_are_ticked_or_typed_and_refused_input_is_kept() {
    let (world, olga) = world_with_organiser(1).await;
    let there = format!("{PAGES}/screens/{}/house-seats", world.screen);
    let (status, html) = olga.page(&there).await;
    assert_eq!((status, html.matches("name=\"seat\"").count()), (StatusCode::OK, 300), "{html}");
    let layout = world.layout.to_string();
    let fields = |key, names, kept| {
        let seats = [("key", key), ("layout", layout.as_str()), ("seat", "A1"), ("seat", "O20")];
        let rest = [("names", names), ("reason", "Press & friends"), ("kept", kept)];
        [&seats[..], &rest[..]].concat()
    };
    let refused = send(&olga, &there, &fields("k-1", "A1, A2, Z9", "true")).await;
    let parts = ["data-testid=\"house-unknown\"", "Z9", "A1, A2, Z9</textarea>"];
    let html = expect_page(refused, StatusCode::BAD_REQUEST, &parts);
    let is_ticked = |field: &&str| field.contains("name=\"seat\"") && field.contains(" checked");
    let ticked = html.split("<input").filter_map(|rest| rest.split('>').next()).filter(is_ticked).count();
    assert!(html.contains("value=\"Press &amp; friends\"") && ticked == 2, "{html}");
    let kept = send(&olga, &there, &fields("k-2", "A1, A2", "true")).await;
    assert_eq!(kept, (StatusCode::SEE_OTHER, format!("{there}?done=true")));
    let (_, html) = olga.page(&there).await;
    assert_eq!(html.matches("data-kept=\"true\"").count(), 3, "{html}");
    expect_answer(send(&olga, &there, &fields("k-3", "", "false")).await, StatusCode::SEE_OTHER);
    assert_eq!(world.count("SELECT count(*) FROM standing_house_seats WHERE label = 'A2'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM standing_house_seats").await, 1);
    assert_eq!(send(&olga, &there, &[("key", "k-4"), ("seat", "A1")]).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(olga.page(&format!("{PAGES}/screens/none/house-seats")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn house_seats_of_a_previous_layout_are_kept_and_each_form_keeps_its_input() {
    let (world, mut olga) = world_with_organiser(1).await;
    let there = format!("{PAGES}/screens/{}/house-seats", world.screen);
    let before = world.layout.to_string();
    let first = [("seat", "A1"), ("seat", "O20"), ("names", ""), ("reason", "Press"), ("kept", "true")];
    let fields = [&[("key", "k-1"), ("layout", before.as_str())][..], &first[..]].concat();
    assert_eq!(send(&olga, &there, &fields).await.0, StatusCode::SEE_OTHER);
    let plan: Value = serde_json::from_str(PLAN).expect("a plan");
    let small = post_ok(&mut olga, "/layouts", json!({ "plan": plan })).await;
    let request_body = json!({ "layout": small["id"], "reason": "Rebuilt." });
    post_ok(&mut olga, &format!("/screens/{}/layout", world.screen), request_body).await;

    // From a page that was opened earlier.
    let late = [("seat", "A2"), ("seat", "O19"), ("names", "B1, Z9"), ("reason", "The doctor"), ("kept", "true")];
    let fields = [&[("key", "k-2"), ("layout", before.as_str())][..], &late[..]].concat();
    let parts = ["data-testid=\"house-unknown\"", "O19, Z9", "B1, Z9</textarea>"];
    let html = expect_page(send(&olga, &there, &fields).await, StatusCode::CONFLICT, &parts);
    let is_ticked = |field: &&str| field.contains("name=\"seat\"") && field.contains(" checked");
    let ticked = html.split("<input").filter_map(|rest| rest.split('>').next()).filter(is_ticked).count();
    assert!(html.contains("value=\"The doctor\"") && ticked == 1, "{html}");

    // Seats that the layout lacks are removed with another form, which needs a reason too.
    let layout = small["id"].as_str().expect("an id");
    let forget = [("layout", layout), ("kept", "false"), ("forgets", "true"), ("seat", "O20")];
    let fields = [&[("key", "k-3"), ("reason", " ")][..], &forget[..]].concat();
    let refused = send(&olga, &there, &fields).await;
    let html = expect_page(refused, StatusCode::BAD_REQUEST, &["id=\"gone-reason-error\""]);
    assert!(!html.contains("id=\"house-reason-error\"") && !html.contains("house-unknown"), "{html}");
    let fields = [&[("key", "k-4"), ("reason", "They are gone.")][..], &forget[..]].concat();
    assert_eq!(send(&olga, &there, &fields).await.0, StatusCode::SEE_OTHER);
}
