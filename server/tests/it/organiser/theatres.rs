//! Theatres: written down by whoever manages all of them, changed by whoever manages the one.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::HERE;
use crate::accounts::{another_theatre, grant, signed_up};
use crate::reports::staff;
use crate::world::{World, text};

fn theatre(city: Value) -> Value {
    let mut wish =
        json!({ "name": "Foz", "address": "Rua do Farol 3", "currency": "EUR", "reason": "It opens in May." });
    for (key, value) in city.as_object().expect("an object") {
        wish[key] = value.clone();
    }
    wish
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_manages_all_theatres_writes_one_more_down_and_manages_it() {
    let world = World::start(1, &[]).await;
    another_theatre(&world).await;
    let porto = json!({ "new_city": { "name": "Porto", "country": "PT", "time_zone": "Europe/Lisbon" } });
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (status, problem) = max.post("/api/v1/theatres", theatre(porto.clone())).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::FORBIDDEN, "not_allowed"), "he manages one of two");
    signed_up(&world, "mia@example.org").await;
    for place in ["aurora", "rialto"] {
        grant(&world, "mia@example.org", place, "manager").await;
    }
    let mut mia = crate::accounts::Browser::new(&world);
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
    assert_eq!(world.count("SELECT count(*) FROM theatres").await, 2, "nothing was half done");
    let (status, made) = mia.post("/api/v1/theatres", theatre(porto)).await;
    assert_eq!((status, &made["time_zone"]), (StatusCode::CREATED, &json!("Europe/Lisbon")), "{made}");
    let id = text(&made["id"]);
    assert_eq!(mia.get(&format!("/api/v1/theatres/{id}/screens")).await.0, StatusCode::OK, "she manages it");
    let (_, listed) = mia.get(&format!("/api/v1/cities/{}/theatres", text(&made["city"]))).await;
    assert_eq!(listed[0]["name"], "Foz", "and people find it");
    let (status, second) = mia.post("/api/v1/theatres", theatre(json!({ "city": made["city"] }))).await;
    assert_eq!(status, StatusCode::CREATED, "she still manages all of them: {second}");
    assert_ne!(second["id"], made["id"]);
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'theatre_created'").await, 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_theatre_takes_another_name_and_no_other_currency_once_something_was_planned() {
    let world = World::start(1, &[]).await;
    let mut max = staff(&world, "max@example.org", "manager").await;
    let (_, before) = max.get(HERE).await;
    let change = |name: &str, currency: &str, version: &Value| json!({ "name": name, "address": "Rua 9", "currency": currency, "version": version, "reason": "Sold." });
    let (status, problem) = max.post(HERE, change("Aurora", "USD", &before["version"])).await;
    assert_eq!((status, text(&problem["code"])), (StatusCode::CONFLICT, "wrong_state"), "a show is planned in euros");
    let (status, after) = max.post(HERE, change("Aurora Nova", "EUR", &before["version"])).await;
    assert_eq!((status, &after["name"], &after["address"]), (StatusCode::OK, &json!("Aurora Nova"), &json!("Rua 9")));
    let (status, _) = max.post(HERE, change("Once more", "EUR", &before["version"])).await;
    assert_eq!(status, StatusCode::CONFLICT, "decided on an older version");
    let (_, page) = world.visitor().raw(reqwest::Method::GET, "/theatres/aurora", Value::Null, "k").await;
    assert!(page.contains("Aurora Nova"));
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'theatre_changed'").await, 1);
    world.end().await;
}
