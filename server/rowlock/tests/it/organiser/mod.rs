//! Organisers: layouts from files, weeks of shows, prices, sales settings, cancelled shows.

mod defective_seats;
mod drafts;
mod house_seats;
mod pages;
mod rehearsals;
mod relocation;
mod rooms;
mod sales;

use crate::box_office::hired;
use crate::prelude::*;

pub const API: &str = "/api/v1/theatres/aurora";

pub async fn organiser(world: &World) -> Browser {
    hired(world, "olga@example.org", "organiser").await
}

async fn world_with_organiser(servers: usize) -> (World, Browser) {
    let world = World::start(servers, &[]).await;
    let olga = organiser(&world).await;
    (world, olga)
}

pub async fn post(organiser: &mut Browser, path: &str, body: Value) -> (StatusCode, Value) {
    organiser.post(&format!("{API}{path}"), body).await
}

pub async fn post_ok(organiser: &mut Browser, path: &str, body: Value) -> Value {
    let (status, answer) = post(organiser, path, body.clone()).await;
    assert!(status.is_success(), "{path}: {status} {answer}");
    answer
}

pub async fn screen_of(organiser: &mut Browser, plan: &Value) -> Value {
    let layout = post_ok(organiser, "/layouts", json!({ "name": "Room", "plan": plan })).await;
    post_ok(organiser, "/screens", json!({ "name": "New screen", "layout": layout["id"], "reason": "Opens today." }))
        .await
}

/// A layout with these rows of ten, all gold: in `A-B`, A1 is 0 and B10 is 19.
pub fn room(rows: &str) -> Value {
    json!({ "sketch": 1, "name": "Small room", "focus": { "kind": "screen", "at": [0, -60], "width": 200 },
        "categories": [{ "name": "gold", "label": "Gold" }],
        "zones": [{ "category": "gold", "rows": [{ "rows": rows, "seats": "1-10" }] }] })
}

/// Prices for these categories: 12.50 on a weekday evening.
pub async fn set_prices(organiser: &mut Browser, categories: &[&str]) {
    let base: serde_json::Map<String, Value> =
        categories.iter().map(|category| ((*category).to_owned(), json!(1_250))).collect();
    let (_, before) = organiser.get(&format!("{API}/tariff")).await;
    let tariff = json!({ "base": base, "weekend_percent": 120, "matinee_percent": 80, "prime_percent": 100,
        "surcharge": { "3D": 200 }, "version": before["version"] });
    post_ok(organiser, "/tariff", json!({ "tariff": tariff, "reason": "Autumn prices." })).await;
}

/// A plan of one week from this day on this screen.
pub fn week(screen: &Value, from: &str, weekday: &str, times: &[&str]) -> Value {
    json!({ "screen": screen, "film": "tide", "language": "English", "format": "2D", "from": from, "weeks": 1,
        "pattern": [{ "weekday": weekday, "times": times }], "cleaning_minutes": 20, "reason": "Programme." })
}

pub fn visitor_of(world: &World, show: &Value) -> Visitor {
    world.visitor().at_show(Uuid::parse_str(text(&show["id"])).expect("an id"))
}
