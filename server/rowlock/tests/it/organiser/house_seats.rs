//! Seats a screen keeps for the house in every show planned there: from the start, through another room and a move.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{HERE, ask, done, organiser, priced, screen_of, visitor_of, week};
use crate::accounts::{Browser, PASSWORD, another_theatre, grant, signed_up};
use crate::box_office::{desk, seller};
use crate::world::{Visitor, World, text, until};

/// Rows of ten seats, all gold: of `A-B`, A1 is 0 and B10 is 19.
fn room(rows: &str) -> Value {
    json!({ "sketch": 1, "name": "Small room", "focus": { "kind": "screen", "at": [0, -60], "width": 200 },
        "categories": [{ "name": "gold", "label": "Gold" }],
        "zones": [{ "category": "gold", "rows": [{ "rows": rows, "seats": "1-10" }] }] })
}

fn path(screen: &Value) -> String {
    format!("/screens/{}/house-seats", text(&screen["id"]))
}

fn wish(screen: &Value, seats: &[&str], kept: bool, reason: &str) -> Value {
    json!({ "layout": screen["layout"], "seats": seats, "kept": kept, "reason": reason })
}

/// Keeps seats of a screen; what it keeps then.
async fn keep(olga: &mut Browser, screen: &Value, seats: &[&str], reason: &str) -> Value {
    done(olga, &path(screen), wish(screen, seats, true, reason)).await
}

/// Shows on a day of that week; who looks at each.
async fn shows(olga: &mut Browser, world: &World, screen: &Value, weekday: &str, times: &[&str]) -> Vec<Visitor> {
    let planned = done(olga, "/programme", week(&screen["id"], "2030-01-07", weekday, times)).await;
    planned["shows"].as_array().expect("a list").iter().map(|show| visitor_of(world, show)).collect()
}

fn labels(seats: &Value) -> Vec<&str> {
    seats.as_array().expect("a list").iter().map(|seat| text(&seat["label"])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_show_of_a_week_has_them_off_sale_from_the_start_and_the_box_office_puts_them_back() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let mut ann = seller(&world, "ann@example.org").await;
    let screen = screen_of(&mut olga, &room("A-B")).await;
    priced(&mut olga, &["gold"]).await;
    let earlier = shows(&mut olga, &world, &screen, "monday", &["20:00"]).await;
    keep(&mut olga, &screen, &["A2", "A1"], "Press").await;
    let kept = keep(&mut olga, &screen, &["B10"], "House").await;
    assert_eq!((labels(&kept["seats"]), &kept["gone"]), (vec!["A1", "A2", "B10"], &json!([])), "{kept}");
    assert_eq!((&kept["seats"][0]["reason"], &kept["seats"][2]["seat"]), (&json!("Press"), &json!(19)));
    let (_, screens) = olga.get(&format!("{HERE}/screens")).await;
    let mine = screens.as_array().expect("a list").iter().find(|one| one["id"] == screen["id"]).expect("it is there");
    assert_eq!(mine["house_seats"], 3);

    let later = shows(&mut olga, &world, &screen, "tuesday", &["14:00", "20:00"]).await;
    for visitor in &later {
        assert_eq!(visitor.states().await, "33000000000000000003");
        assert_eq!(visitor.hold(&[0]).await.0, StatusCode::CONFLICT);
    }
    assert_eq!(earlier[0].states().await, "0".repeat(20), "what was planned before stays as it was");

    // The box office has them like any other, in that show alone.
    let (one, other) = (&later[0], &later[1]);
    let (_, holder) = ann.get(&desk(&format!("shows/{}/seats/0", one.show))).await;
    assert_eq!([&holder["by"], &holder["reason"]], [&json!("house"), &json!("Press")], "{holder}");
    let back = json!({ "seats": [0], "kept": false, "reason": "No press today." });
    let (status, answer) = ann.post(&desk(&format!("shows/{}/house-seats", one.show)), back).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
    one.sees(0, '0').await;
    // Redis forgets everything; the house keeps what it kept.
    world.forget_redis().await;
    until("the maps are as they were", || async {
        one.states().await == "03000000000000000003" && other.states().await == "33000000000000000003"
    })
    .await;

    done(&mut olga, &path(&screen), wish(&screen, &["A1"], false, "One is enough.")).await;
    let last = shows(&mut olga, &world, &screen, "wednesday", &["20:00"]).await;
    assert_eq!(last[0].states().await, "03000000000000000003");
    let told = "SELECT act FROM audit_list WHERE act LIKE 'standing%' OR act LIKE 'seats%' ORDER BY number";
    let acts: Vec<String> = sqlx::query_scalar(told).fetch_all(&world.pg).await.expect("the list is read");
    let [kept, start] = ["standing_seats_kept", "seats_kept_from_start"];
    assert_eq!(acts, [kept, kept, start, "seats_put_back", "standing_seats_put_back", start]);
    let words =
        "SELECT count(*) FROM audit_list WHERE act = 'seats_kept_from_start' AND reason = 'B10: House; A1, A2: Press'";
    assert_eq!(world.count(words).await, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_the_room_has_not_are_refused_and_screens_of_others_are_not_there() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    let mut olga = organiser(&world).await;
    let screen = screen_of(&mut olga, &room("A-B")).await;
    let other = done(&mut olga, "/layouts", json!({ "plan": room("A-C") })).await;
    let mut elsewhere = wish(&screen, &["A1"], true, "House");
    elsewhere["layout"] = other["id"].clone();
    let many: Vec<String> = (0..201).map(|number| format!("A{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (body, status, code) in [
        (wish(&screen, &["A1", "C1"], true, "House"), 400, "unknown_seat"),
        (wish(&screen, &["C1"], false, "House"), 400, "unknown_seat"),
        (wish(&screen, &["A1", " A1"], true, "House"), 400, "seat_twice"),
        (wish(&screen, &[], true, "House"), 400, "malformed"),
        (wish(&screen, &many, true, "House"), 400, "malformed"),
        (wish(&screen, &["A1"], true, " "), 400, "malformed"),
        (elsewhere, 409, "wrong_state"),
    ] {
        let (said, problem) = ask(&mut olga, &path(&screen), body).await;
        assert_eq!((said.as_u16(), text(&problem["code"])), (status, code), "{problem}");
    }
    assert_eq!(world.count("SELECT count(*) FROM standing_house_seats").await, 0, "all or none");
    let mut rita = signed_up(&world, "rita@example.org").await;
    grant(&world, "rita@example.org", "rialto", "organiser").await;
    rita.log_in("rita@example.org", PASSWORD).await;
    let there = format!("/api/v1/theatres/rialto{}", path(&screen));
    assert_eq!(rita.get(&there).await.0, StatusCode::NOT_FOUND);
    assert_eq!(rita.post(&there, wish(&screen, &["A1"], true, "House")).await.0, StatusCode::NOT_FOUND);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_room_of_the_screen_finds_them_by_name_and_names_those_it_has_not() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let screen = screen_of(&mut olga, &room("A-B")).await;
    priced(&mut olga, &["gold"]).await;
    keep(&mut olga, &screen, &["A3", "B1"], "House").await;
    let publish = format!("/screens/{}/layout", text(&screen["id"]));
    let small = done(&mut olga, "/layouts", json!({ "plan": room("A") })).await;
    let changed = done(&mut olga, &publish, json!({ "layout": small["id"], "reason": "Rebuilt." })).await;
    assert_eq!((&changed["house_seats"], &changed["house_seats_gone"]), (&json!(1), &json!(["B1"])), "{changed}");
    let (_, standing) = olga.get(&format!("{HERE}{}", path(&screen))).await;
    assert_eq!((labels(&standing["seats"]), labels(&standing["gone"])), (vec!["A3"], vec!["B1"]));
    let planned = shows(&mut olga, &world, &screen, "monday", &["20:00"]).await;
    assert_eq!(planned[0].states().await, "0030000000");
    // Chosen in the room before, by somebody whose page is older.
    let (status, problem) = ask(&mut olga, &path(&screen), wish(&screen, &["A1"], true, "House")).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"));
    for wanted in ["/screens", &path(&screen)] {
        let there = format!("/staff/aurora{wanted}");
        let (status, page) = olga.visitor().raw(reqwest::Method::GET, &there, Value::Null, "page").await;
        assert!(status == StatusCode::OK && page.contains("B1"), "{wanted} names what is gone: {page}");
    }
    // A larger room has it again; back in the small one, what is forgotten stays so.
    let large = done(&mut olga, "/layouts", json!({ "plan": room("A-C") })).await;
    let changed = done(&mut olga, &publish, json!({ "layout": large["id"], "reason": "Rebuilt." })).await;
    assert_eq!((&changed["house_seats"], &changed["house_seats_gone"]), (&json!(2), &json!([])));
    let changed = done(&mut olga, &publish, json!({ "layout": small["id"], "reason": "Rebuilt." })).await;
    assert_eq!((&changed["house_seats"], &changed["house_seats_gone"]), (&json!(1), &json!(["B1"])));
    let now = json!({ "id": screen["id"], "layout": small["id"] });
    let after = done(&mut olga, &path(&now), wish(&now, &["B1"], false, "It is gone.")).await;
    assert_eq!((labels(&after["seats"]), &after["gone"]), (vec!["A3"], &json!([])));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_show_that_moves_leaves_them_behind_and_has_those_of_the_other_screen_where_nobody_sits() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let mut ann = seller(&world, "ann@example.org").await;
    let from = screen_of(&mut olga, &room("A-B")).await;
    let to = screen_of(&mut olga, &room("A-B")).await;
    priced(&mut olga, &["gold"]).await;
    keep(&mut olga, &from, &["A1"], "Press").await;
    keep(&mut olga, &to, &["B5", "B6"], "House").await;
    let show = shows(&mut olga, &world, &from, "monday", &["20:00"]).await.remove(0);
    let by_hand = json!({ "seats": [1], "kept": true, "reason": "For the mayor." });
    ann.post(&desk(&format!("shows/{}/house-seats", show.show)), by_hand).await;
    // B5, which the other screen keeps: whoever has bought it goes before the house.
    let booking = show.bought(&[14], "tok_paid").await;

    let moving = format!("/programme/{}/move", show.show);
    let (status, preview) = olga.get(&format!("{HERE}{moving}?screen={}", text(&to["id"]))).await;
    assert_eq!((status, &preview["same"]["bookings"]), (StatusCode::OK, &json!(1)), "{preview}");
    assert_eq!(preview["house_seats_lost"], 0, "{preview}");
    done(&mut olga, &moving, json!({ "screen": to["id"], "reason": "The projector is broken." })).await;
    until("the show has moved", || async {
        let (_, seen) = olga.clone().get(&format!("{HERE}/programme/{}", show.show)).await;
        seen["moved"]["state"] == "done"
    })
    .await;
    until("the map is the other room's", || async { show.states().await == "03000000000000230000" }).await;
    assert_eq!(show.booking(&booking).await["seats"][0]["label"], "B5");
    for (seat, reason) in [(1, "For the mayor."), (15, "House")] {
        let (_, holder) = ann.get(&desk(&format!("shows/{}/seats/{seat}", show.show))).await;
        assert_eq!([&holder["by"], &holder["reason"]], [&json!("house"), &json!(reason)], "{holder}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_move_leaves_too_few_seats_those_who_bought_go_before_the_house() {
    let world = World::start(1, &[]).await;
    let mut olga = organiser(&world).await;
    let from = screen_of(&mut olga, &room("A-B")).await;
    let to = screen_of(&mut olga, &room("A")).await;
    priced(&mut olga, &["gold"]).await;
    let all: Vec<String> = (1..=10).map(|number| format!("A{number}")).collect();
    keep(&mut olga, &to, &all.iter().map(String::as_str).collect::<Vec<_>>(), "House").await;
    let show = shows(&mut olga, &world, &from, "monday", &["20:00"]).await.remove(0);
    show.bought(&[14, 15], "tok_paid").await;
    let moving = format!("/programme/{}/move?screen={}", show.show, text(&to["id"]));
    let (status, preview) = olga.get(&format!("{HERE}{moving}")).await;
    assert_eq!(status, StatusCode::OK, "{preview}");
    assert_eq!((&preview["offered"]["seats"], &preview["refunded"]["seats"]), (&json!(2), &json!(0)), "{preview}");
    world.end().await;
}
