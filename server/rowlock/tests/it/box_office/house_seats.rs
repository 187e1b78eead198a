//! House seats.

use reqwest::StatusCode;
use serde_json::json;

use super::{acts, code, desk_path, sell_seats, seller, two_theatres};
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn house_keeps_seats_and_releases_them() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let mut ann = seller(&world, "ann@example.org").await;
    let path = desk_path(&format!("shows/{}/house-seats", world.show));
    let request_body = |seats: &[u32], kept: bool| json!({ "seats": seats, "kept": kept, "reason": "For the mayor." });
    let visitor = world.visitor();
    assert_eq!(ann.post(&path, request_body(&[0, 1], true)).await.0, StatusCode::NO_CONTENT);
    visitor.wait_for_seat(0, '3').await;
    assert_eq!(visitor.hold(&[1]).await.0, StatusCode::CONFLICT);
    let (_, holder) = ann.get(&desk_path(&format!("shows/{}/seats/0", world.show))).await;
    assert_eq!([&holder["by"], &holder["reason"]], [&json!("house"), &json!("For the mayor.")]);
    // Redis loses everything; the house seats survive.
    world.delete_redis_keys().await;
    visitor.wait_for_seat(1, '3').await;
    assert_eq!(ann.post(&path, request_body(&[1], false)).await.0, StatusCode::NO_CONTENT);
    visitor.wait_for_seat(1, '0').await;
    visitor.wait_for_seat(0, '3').await;
    assert_eq!(visitor.hold(&[1]).await.0, StatusCode::CREATED);
    // Held and sold seats are not blocked, and all or none are.
    assert_eq!(code(&ann.post(&path, request_body(&[1, 2], true)).await), (423, "seats_locked".into()));
    visitor.wait_for_seat(2, '0').await;
    ann.post(&desk_path("till"), json!({ "float_minor": 0 })).await;
    sell_seats(&mut ann, &world, &[3], "card").await;
    visitor.wait_for_seat(3, '2').await;
    assert_eq!(code(&ann.post(&path, request_body(&[3], true)).await), (409, "seats_taken".into()));
    for (body, expected) in [
        (request_body(&[], true), "malformed"),
        (request_body(&[5, 5], true), "seat_twice"),
        (request_body(&[300], true), "unknown_seat"),
        (json!({ "seats": [5], "kept": true, "reason": "" }), "malformed"),
        (request_body(&(0..201).collect::<Vec<_>>(), true), "malformed"),
    ] {
        assert_eq!(code(&ann.post(&path, body.clone()).await), (400, expected.to_owned()), "{body}");
    }
    assert_eq!(rita.post(&path, request_body(&[5], true)).await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.count("SELECT cardinality(blocked)::bigint FROM shows").await, 1);
    assert_eq!(acts(&world).await, ["seats_kept", "seats_put_back", "till_opened", "sold"]);
}
