//! The demo loader, run again on an edited folder.

use std::path::PathBuf;

use crate::organiser::{API, organiser, post_ok, set_prices};
use crate::prelude::*;

/// A folder like `demo/`: two theatres with one screen each, and a show every evening.
struct DemoFolder(PathBuf);

impl DemoFolder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("rowlock-demo-{}", new_id().simple()));
        std::fs::create_dir(&folder).expect("a folder is made");
        let room = json!({ "sketch": 1, "name": "Small", "focus": { "kind": "screen", "at": [0, -60], "width": 300 },
            "categories": [{ "name": "gold", "label": "Gold" }],
            "zones": [{ "category": "gold", "rows": [{ "rows": "A-B", "seats": "1-10" }] }] });
        std::fs::write(folder.join("room.json"), room.to_string()).expect("the room is written");
        Self(folder)
    }

    /// Writes one seat price for both theatres, at any time.
    fn price(&self, minor: u64) {
        let theatre = |id: &str| -> Value {
            let tariff = json!({ "base": { "gold": minor }, "weekend_percent": 100, "matinee_percent": 100,
                "prime_percent": 100 });
            let plays = json!({ "first": "20:00", "last": "20:00", "formats": ["2D"], "films": ["tide"] });
            let screen = json!({ "id": format!("{id}-1"), "name": "Screen 1", "layout": "room.json",
                "house_seats": ["A2", "B10"], "programme": { "plays": plays } });
            json!({ "id": id, "city": "lisbon", "name": id, "address": "Rua 1", "currency": "EUR",
                "languages": ["English"], "tariff": tariff, "screens": [screen] })
        };
        let film = json!({ "id": "tide", "title": "Tide", "tagline": "In and out.", "synopsis": "Water.",
            "running_minutes": 100, "rating": "PG", "genre": "Drama", "hue": 200, "languages": ["English"],
            "formats": ["2D"] });
        let city = json!({ "id": "lisbon", "name": "Lisbon", "country": "PT", "time_zone": "Europe/Lisbon" });
        let theatres = [theatre("aurora"), theatre("borealis")];
        let chain = json!({ "cities": [city], "films": [film], "theatres": theatres });
        std::fs::write(self.0.join("chain.json"), chain.to_string()).expect("the chain is written");
    }

    async fn load(&self, world: &World, days: &str) {
        let folder = self.0.to_str().expect("the folder's name is text");
        let (good, said) = world.command(&["demo", "--dir", folder, "--days", days]).await;
        assert!(good, "{said}");
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Gold price of a theatre, its version, and its time.
async fn theatre_price(world: &World, theatre: &str) -> (i64, i32, String) {
    sqlx::query_as(
        "SELECT (tariff->'base'->>'gold')::bigint, version, updated_at::text FROM theatre_tariffs WHERE theatre_id = $1",
    )
    .bind(theatre)
    .fetch_one(&world.pg)
    .await
    .expect("the theatre has prices")
}

/// Layouts of the shows on a screen and the number of house seats in each, earliest show first.
async fn show_layouts(world: &World, screen: &str) -> Vec<(String, i32)> {
    sqlx::query_as(
        "SELECT layout_id::text, coalesce(cardinality(blocked), 0) FROM shows WHERE screen_id = $1 ORDER BY starts_at",
    )
    .bind(screen)
    .fetch_all(&world.pg)
    .await
    .expect("shows are listed")
}

async fn show_prices(world: &World, screen: &str) -> Vec<i64> {
    let sql = "SELECT (prices->>'gold')::bigint FROM shows WHERE screen_id = $1 ORDER BY starts_at";
    world.values(sqlx::query_scalar(sql).bind(screen)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_price_applies_to_new_shows_of_theatres_without_organiser_prices() {
    let world = World::start(1, &[]).await;
    let folder = DemoFolder::new();
    folder.price(1_000);
    folder.load(&world, "2").await;
    let first = theatre_price(&world, "borealis").await;
    assert_eq!((first.0, first.1), (1_000, 1));
    // Today's show may have started; tomorrow's has not.
    let before = show_prices(&world, "borealis-1").await;
    assert!(!before.is_empty() && before.iter().all(|minor| *minor == 1_000), "{before:?}");
    folder.load(&world, "2").await;
    assert_eq!(theatre_price(&world, "borealis").await, first, "the same file changes nothing");

    let mut olga = organiser(&world).await;
    set_prices(&mut olga, &["gold"]).await;
    let hers = theatre_price(&world, "aurora").await;
    assert_eq!((hers.0, hers.1), (1_250, 2));
    let there = show_prices(&world, "aurora-1").await;
    assert!(there.iter().all(|minor| *minor == 1_000), "{there:?}");

    folder.price(1_100);
    folder.load(&world, "3").await;
    let edited = theatre_price(&world, "borealis").await;
    assert_eq!((edited.0, edited.1), (1_100, 1), "still the demo's version, so the next edit applies too");
    assert_eq!(theatre_price(&world, "aurora").await, hers, "the organiser's price is kept");
    let after = show_prices(&world, "borealis-1").await;
    let (kept, added) = after.split_at(before.len());
    assert_eq!(kept, before, "existing shows keep their price");
    assert!(!added.is_empty() && added.iter().all(|minor| *minor == 1_100), "{added:?}");
    let after = show_prices(&world, "aurora-1").await;
    let (kept, added) = after.split_at(there.len());
    assert_eq!(kept, there, "existing shows keep the organiser's price");
    // Her evening price, or a fifth more at a weekend.
    let is_hers = |minor: &i64| matches!(*minor, 1_250 | 1_500);
    assert!(!added.is_empty() && added.iter().all(is_hers), "new shows have the organiser's price: {added:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_shows_use_the_screens_new_layout_once_all_its_categories_are_priced() {
    let world = World::start(1, &[]).await;
    let folder = DemoFolder::new();
    folder.price(1_000);
    folder.load(&world, "2").await;
    let before = show_layouts(&world, "aurora-1").await;
    let of_file = &before.first().expect("a show tomorrow at the latest").0;
    assert!(before.iter().all(|(room, house)| room == of_file && *house == 2), "{before:?}");

    let mut olga = organiser(&world).await;
    let plan = json!({ "sketch": 1, "name": "Rebuilt", "focus": { "kind": "screen", "at": [0, -60], "width": 300 },
        "categories": [{ "name": "gold", "label": "Gold" }, { "name": "sofa", "label": "Sofa" }],
        "zones": [{ "category": "gold", "rows": [{ "rows": "A", "seats": "1-10" }] },
                  { "category": "sofa", "rows": [{ "rows": "B", "seats": "1-4" }] }] });
    let given = post_ok(&mut olga, "/layouts", json!({ "plan": plan })).await;
    let request_body = json!({ "layout": given["id"], "reason": "Rebuilt." });
    post_ok(&mut olga, "/screens/aurora-1/layout", request_body).await;
    // The sofa category has no price.
    folder.load(&world, "3").await;
    assert_eq!(show_layouts(&world, "aurora-1").await, before);
    assert!(show_layouts(&world, "borealis-1").await.len() > before.len(), "the other theatre gets new shows");

    set_prices(&mut olga, &["gold", "sofa"]).await;
    folder.load(&world, "3").await;
    let after = show_layouts(&world, "aurora-1").await;
    let (kept, added) = after.split_at(before.len());
    assert_eq!(kept, before, "existing shows keep their layout");
    // The new layout has one of the two named house seats.
    let is_new = |(room, house): &(String, i32)| room == text(&given["id"]) && *house == 1;
    assert!(!added.is_empty() && added.iter().all(is_new), "{added:?}");
    let sql = "SELECT (prices->>'sofa')::bigint FROM shows WHERE screen_id = 'aurora-1' ORDER BY starts_at";
    let sofas: Vec<Option<i64>> = world.values(sqlx::query_scalar(sql)).await;
    let (without, with) = sofas.split_at(before.len());
    assert!(without.iter().all(Option::is_none) && with.iter().all(Option::is_some), "{sofas:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_shows_keep_the_screens_house_seats_with_their_reason() {
    let world = World::start(1, &[]).await;
    let folder = DemoFolder::new();
    folder.price(1_000);
    folder.load(&world, "2").await;
    let before = show_layouts(&world, "aurora-1").await;

    let mut olga = organiser(&world).await;
    let (_, standing) = olga.get(&format!("{API}/screens/aurora-1/house-seats")).await;
    // The file blocks A2 as well, without a reason.
    let request_body = json!({ "layout": standing["layout"], "seats": ["A2", "A3"], "kept": true, "reason": "Press" });
    post_ok(&mut olga, "/screens/aurora-1/house-seats", request_body).await;
    folder.load(&world, "4").await;

    let after = show_layouts(&world, "aurora-1").await;
    let (kept, added) = after.split_at(before.len());
    assert_eq!(kept, before, "existing shows are unchanged");
    assert!(!added.is_empty() && added.iter().all(|(_, house)| *house == 3), "A2, A3 and B10: {added:?}");
    let sql = "SELECT seat_no, reason, is_standing FROM house_seats ORDER BY show_id, seat_no";
    let noted: Vec<(i32, String, bool)> =
        sqlx::query_as(sql).fetch_all(&world.pg).await.expect("house seats are listed");
    let noted: Vec<_> =
        noted.iter().map(|(seat, reason, is_standing)| (*seat, reason.as_str(), *is_standing)).collect();
    assert_eq!(noted, [(1, "Press", true), (2, "Press", true)].repeat(added.len()));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_waiting_room_opens_a_day_before_a_coming_show_and_is_added_once() {
    const ROOMS: &str = "SELECT count(*) FROM waiting_rooms room JOIN shows show ON show.id = room.show_id
                         WHERE show.screen_id = 'aurora-1' AND show.starts_at > now() + interval '47 hours'
                           AND room.opens_at = show.starts_at - interval '24 hours' AND room.switched_off_at IS NULL";
    let world = World::start(1, &[]).await;
    let folder = DemoFolder::new();
    folder.price(1_000);
    folder.load(&world, "4").await;
    let add = || async {
        let (good, said) = world.command(&["waiting-room", "demo", "aurora-1"]).await;
        assert!(good, "{said}");
    };
    for _ in 0..2 {
        add().await;
        assert_eq!(world.count(ROOMS).await, 1);
    }
    world.execute("UPDATE waiting_rooms SET switched_off_at = now()").await;
    add().await;
    assert_eq!(world.count(ROOMS).await, 0, "staff have switched it off");
    world.end().await;
}
