//! The demo's loader, run again over a folder that somebody has edited.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::organiser::{HERE, done, organiser, priced};
use crate::world::{World, text};

/// A folder like `demo/`: two theatres, one screen each, a show every evening.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("rowlock-demo-{}", platform::ids::new_id().simple()));
        std::fs::create_dir(&folder).expect("a folder is made");
        let room = json!({ "sketch": 1, "name": "Small", "focus": { "kind": "screen", "at": [0, -60], "width": 300 },
            "categories": [{ "name": "gold", "label": "Gold" }],
            "zones": [{ "category": "gold", "rows": [{ "rows": "A-B", "seats": "1-10" }] }] });
        std::fs::write(folder.join("room.json"), room.to_string()).expect("the room is written");
        Self(folder)
    }

    /// Writes what a seat costs in both theatres, on every day at any time.
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

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a theatre asks for gold, the version of that, and when it was written.
async fn asked(world: &World, theatre: &str) -> (i64, i32, String) {
    sqlx::query_as(
        "SELECT (tariff->'base'->>'gold')::bigint, version, updated_at::text FROM theatre_tariffs WHERE theatre_id = $1",
    )
    .bind(theatre)
    .fetch_one(&world.pg)
    .await
    .expect("the theatre has prices")
}

/// The rooms that the shows on a screen are in, and how many seats the house keeps of each, the first one first.
async fn rooms(world: &World, screen: &str) -> Vec<(String, i32)> {
    sqlx::query_as(
        "SELECT layout_id::text, coalesce(cardinality(blocked), 0) FROM shows WHERE screen_id = $1 ORDER BY starts_at",
    )
    .bind(screen)
    .fetch_all(&world.pg)
    .await
    .expect("shows are listed")
}

/// What the shows on a screen cost, the first one first.
async fn costs(world: &World, screen: &str) -> Vec<i64> {
    sqlx::query_scalar("SELECT (prices->>'gold')::bigint FROM shows WHERE screen_id = $1 ORDER BY starts_at")
        .bind(screen)
        .fetch_all(&world.pg)
        .await
        .expect("shows are listed")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_price_reaches_theatres_that_no_organiser_priced_and_no_show_that_is_there() {
    let world = World::start(1, &[]).await;
    let folder = Folder::new();
    folder.price(1_000);
    folder.load(&world, "2").await;
    let first = asked(&world, "borealis").await;
    assert_eq!((first.0, first.1), (1_000, 1));
    // Today's show may have begun; tomorrow's has not.
    let before = costs(&world, "borealis-1").await;
    assert!(!before.is_empty() && before.iter().all(|minor| *minor == 1_000), "{before:?}");
    folder.load(&world, "2").await;
    assert_eq!(asked(&world, "borealis").await, first, "the same file changes nothing");

    let mut olga = organiser(&world).await;
    priced(&mut olga, &["gold"]).await;
    let hers = asked(&world, "aurora").await;
    assert_eq!((hers.0, hers.1), (1_250, 2));
    let there = costs(&world, "aurora-1").await;
    assert!(there.iter().all(|minor| *minor == 1_000), "{there:?}");

    folder.price(1_100);
    folder.load(&world, "3").await;
    let edited = asked(&world, "borealis").await;
    assert_eq!((edited.0, edited.1), (1_100, 1), "still the demo's own, so that the next edit counts too");
    assert_eq!(asked(&world, "aurora").await, hers, "what an organiser set stays");
    let after = costs(&world, "borealis-1").await;
    let (kept, added) = after.split_at(before.len());
    assert_eq!(kept, before, "shows that are there keep their price");
    assert!(!added.is_empty() && added.iter().all(|minor| *minor == 1_100), "{added:?}");
    let after = costs(&world, "aurora-1").await;
    let (kept, added) = after.split_at(there.len());
    assert_eq!(kept, there, "whoever set them since");
    // Her evening, or a fifth more at a weekend.
    let is_hers = |minor: &i64| matches!(*minor, 1_250 | 1_500);
    assert!(!added.is_empty() && added.iter().all(is_hers), "what the demo adds costs what she asks for: {added:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_shows_are_in_the_room_that_an_organiser_gave_the_screen_once_all_of_it_is_priced() {
    let world = World::start(1, &[]).await;
    let folder = Folder::new();
    folder.price(1_000);
    folder.load(&world, "2").await;
    let before = rooms(&world, "aurora-1").await;
    let of_file = &before.first().expect("a show tomorrow at the latest").0;
    assert!(before.iter().all(|(room, house)| room == of_file && *house == 2), "{before:?}");

    let mut olga = organiser(&world).await;
    let plan = json!({ "sketch": 1, "name": "Rebuilt", "focus": { "kind": "screen", "at": [0, -60], "width": 300 },
        "categories": [{ "name": "gold", "label": "Gold" }, { "name": "sofa", "label": "Sofa" }],
        "zones": [{ "category": "gold", "rows": [{ "rows": "A", "seats": "1-10" }] },
                  { "category": "sofa", "rows": [{ "rows": "B", "seats": "1-4" }] }] });
    let given = done(&mut olga, "/layouts", json!({ "plan": plan })).await;
    let wish = json!({ "layout": given["id"], "reason": "Rebuilt." });
    done(&mut olga, "/screens/aurora-1/layout", wish).await;
    // Nobody has said what a sofa costs.
    folder.load(&world, "3").await;
    assert_eq!(rooms(&world, "aurora-1").await, before);
    assert!(rooms(&world, "borealis-1").await.len() > before.len(), "the other theatre goes on");

    priced(&mut olga, &["gold", "sofa"]).await;
    folder.load(&world, "3").await;
    let after = rooms(&world, "aurora-1").await;
    let (kept, added) = after.split_at(before.len());
    assert_eq!(kept, before, "shows that are there stay in their room");
    // Of the two seats that the house keeps by name, the new room has one.
    let is_new = |(room, house): &(String, i32)| room == text(&given["id"]) && *house == 1;
    assert!(!added.is_empty() && added.iter().all(is_new), "{added:?}");
    let sofas: Vec<Option<i64>> = sqlx::query_scalar(
        "SELECT (prices->>'sofa')::bigint FROM shows WHERE screen_id = 'aurora-1' ORDER BY starts_at",
    )
    .fetch_all(&world.pg)
    .await
    .expect("shows are listed");
    let (without, with) = sofas.split_at(before.len());
    assert!(without.iter().all(Option::is_none) && with.iter().all(Option::is_some), "{sofas:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_shows_keep_what_the_house_keeps_on_their_screen_with_its_reason() {
    let world = World::start(1, &[]).await;
    let folder = Folder::new();
    folder.price(1_000);
    folder.load(&world, "2").await;
    let before = rooms(&world, "aurora-1").await;

    let mut olga = organiser(&world).await;
    let (_, standing) = olga.get(&format!("{HERE}/screens/aurora-1/house-seats")).await;
    // The file keeps A2 as well, without a reason.
    let wish = json!({ "layout": standing["layout"], "seats": ["A2", "A3"], "kept": true, "reason": "Press" });
    done(&mut olga, "/screens/aurora-1/house-seats", wish).await;
    folder.load(&world, "4").await;

    let after = rooms(&world, "aurora-1").await;
    let (kept, added) = after.split_at(before.len());
    assert_eq!(kept, before, "shows that are there stay as they are");
    assert!(!added.is_empty() && added.iter().all(|(_, house)| *house == 3), "A2, A3 and B10: {added:?}");
    let noted: Vec<(i32, String, bool)> =
        sqlx::query_as("SELECT seat_no, reason, is_standing FROM house_seats ORDER BY show_id, seat_no")
            .fetch_all(&world.pg)
            .await
            .expect("house seats are listed");
    let noted: Vec<_> =
        noted.iter().map(|(seat, reason, is_standing)| (*seat, reason.as_str(), *is_standing)).collect();
    assert_eq!(noted, [(1, "Press", true), (2, "Press", true)].repeat(added.len()));
    world.end().await;
}
