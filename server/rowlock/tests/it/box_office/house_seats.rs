//! Seats the house keeps.

use reqwest::StatusCode;
use serde_json::json;

use super::{acts, code, desk, seller, sells, two_theatres};
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn the_house_keeps_seats_and_puts_them_back() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let mut ann = seller(&world, "ann@example.org").await;
    let path = desk(&format!("shows/{}/house-seats", world.show));
    let wish = |seats: &[u32], kept: bool| json!({ "seats": seats, "kept": kept, "reason": "For the mayor." });
    let visitor = world.visitor();
    assert_eq!(ann.post(&path, wish(&[0, 1], true)).await.0, StatusCode::NO_CONTENT);
    visitor.sees(0, '3').await;
    assert_eq!(visitor.hold(&[1]).await.0, StatusCode::CONFLICT);
    let (_, holder) = ann.get(&desk(&format!("shows/{}/seats/0", world.show))).await;
    assert_eq!([&holder["by"], &holder["reason"]], [&json!("house"), &json!("For the mayor.")]);
    // Redis forgets everything; the house keeps its seats.
    world.forget_redis().await;
    visitor.sees(1, '3').await;
    assert_eq!(ann.post(&path, wish(&[1], false)).await.0, StatusCode::NO_CONTENT);
    visitor.sees(1, '0').await;
    visitor.sees(0, '3').await;
    assert_eq!(visitor.hold(&[1]).await.0, StatusCode::CREATED);
    // Held and sold seats are not taken from anybody, and all or none are kept.
    assert_eq!(code(&ann.post(&path, wish(&[1, 2], true)).await), (423, "seats_locked".into()));
    visitor.sees(2, '0').await;
    ann.post(&desk("till"), json!({ "float_minor": 0 })).await;
    sells(&mut ann, &world, &[3], "card").await;
    visitor.sees(3, '2').await;
    assert_eq!(code(&ann.post(&path, wish(&[3], true)).await), (409, "seats_taken".into()));
    for (body, expected) in [
        (wish(&[], true), "malformed"),
        (wish(&[5, 5], true), "seat_twice"),
        (wish(&[300], true), "unknown_seat"),
        (json!({ "seats": [5], "kept": true, "reason": "" }), "malformed"),
        (wish(&(0..201).collect::<Vec<_>>(), true), "malformed"),
    ] {
        assert_eq!(code(&ann.post(&path, body.clone()).await), (400, expected.to_owned()), "{body}");
    }
    assert_eq!(rita.post(&path, wish(&[5], true)).await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.count("SELECT cardinality(blocked)::bigint FROM shows").await, 1);
    assert_eq!(acts(&world).await, ["seats_kept", "seats_put_back", "till_opened", "sold"]);
    world.end().await;
}
