//! Staff switch a room on and off, and the changes are audited.

use reqwest::StatusCode;
use serde_json::json;

use super::{Guest, queue_of, switch_on};
use crate::accounts::{Browser, PASSWORD, grant, register_and_log_in};
use crate::organiser::organiser;
use crate::world::{CHECK_VIOLATION, World, assert_refused, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn organiser_switches_the_room_on_changes_it_and_switches_it_off() {
    let world = World::start(1, &[]).await;
    register_and_log_in(&world, "org@example.org").await;
    grant(&world, "org@example.org", "aurora", "organiser").await;
    let mut organiser = Browser::new(&world);
    assert_eq!(organiser.log_in("org@example.org", PASSWORD).await.0, StatusCode::OK);
    let path = format!("/api/v1/theatres/aurora/shows/{}/waiting-room", world.show);
    let at = |ms| platform::clock::rfc3339(platform::clock::now().plus_ms(ms));
    for (request_body, status) in [
        (json!({ "on": true, "opens_at": at(60_000), "per_second": 0, "reason": "x" }), StatusCode::BAD_REQUEST),
        (json!({ "on": true, "opens_at": at(60_000), "per_second": 1_001, "reason": "x" }), StatusCode::BAD_REQUEST),
        (json!({ "on": true, "opens_at": at(-1_000), "per_second": 10, "reason": "x" }), StatusCode::BAD_REQUEST),
        (json!({ "on": true, "opens_at": "tomorrow", "per_second": 10, "reason": "x" }), StatusCode::BAD_REQUEST),
        (json!({ "on": true, "opens_at": at(60_000), "per_second": 10, "reason": " " }), StatusCode::BAD_REQUEST),
        // A day after the show has begun.
        (json!({ "on": true, "opens_at": at(48 * 3_600_000), "per_second": 10, "reason": "x" }), StatusCode::CONFLICT),
    ] {
        let (said, answer) = organiser.post(&path, request_body.clone()).await;
        assert_eq!(said, status, "{request_body} {answer}");
    }
    assert_eq!(world.count("SELECT count(*) FROM waiting_rooms").await, 0);

    let on = json!({ "on": true, "opens_at": at(600_000), "per_second": 10, "reason": "On sale." });
    assert_eq!(organiser.post(&path, on).await.0, StatusCode::NO_CONTENT);
    let before = world.visitor().get(&queue_of(&world)).await.1;
    let on = json!({ "on": true, "opens_at": at(700_000), "per_second": 20, "reason": "Later." });
    assert_eq!(organiser.post(&path, on).await.0, StatusCode::NO_CONTENT);
    let after = world.visitor().get(&queue_of(&world)).await.1;
    assert_eq!((&after["draw"], &after["queue"]["per_second"]), (&before["draw"], &json!(20)), "the draw is unchanged");
    assert!(after["opens_at_ms"].as_i64() > before["opens_at_ms"].as_i64());

    let guest = Guest::join(&world, 0).await;
    let off = json!({ "on": false, "reason": "No need." });
    assert_eq!(organiser.post(&path, off).await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.visitor().get(&queue_of(&world)).await.0, StatusCode::NOT_FOUND);
    assert_eq!(guest.visitor().hold(&[5]).await.0, StatusCode::CREATED);
    let acts = "SELECT count(*) FROM audit_list WHERE act IN
                ('waiting_room_on', 'waiting_room_changed', 'waiting_room_off') AND theatre_id = 'aurora'";
    assert_eq!(world.count(acts).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_concurrent_switches_create_one_room() {
    let world = World::start(2, &[]).await;
    let olga = organiser(&world).await;
    let path = format!("/api/v1/theatres/aurora/shows/{}/waiting-room", world.show);
    let opens_at = platform::clock::rfc3339(platform::clock::now().plus_ms(600_000));
    let on = json!({ "on": true, "opens_at": opens_at, "per_second": 10, "reason": "On sale." });
    let asked = (0..8).map(|number| {
        let (mut olga, path, on) = (olga.moved_to(&world, number % 2), path.clone(), on.clone());
        async move { olga.post(&path, on).await }
    });
    let answers = futures::future::join_all(asked).await;
    // The second one changes the first one's room, or gets a conflict.
    let is_told = |(status, _): &(StatusCode, _)| matches!(*status, StatusCode::NO_CONTENT | StatusCode::CONFLICT);
    assert!(answers.iter().all(is_told), "{answers:?}");
    assert!(answers.iter().any(|(status, _)| *status == StatusCode::NO_CONTENT), "{answers:?}");
    assert_eq!(world.count("SELECT count(*) FROM waiting_rooms").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_room_has_a_new_draw_and_old_tickets_are_void() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 60_000, 10).await;
    let mut guest = Guest::join(&world, 0).await;
    let before = guest.state().await;
    let off = ["waiting-room", "off", &world.show.to_string(), "--reason", "Once more."];
    assert!(world.command(&off).await.0);
    let (visitor, path) = (world.visitor(), queue_of(&world));
    wait_until("the server sees the change", || async { visitor.get(&path).await.0 == StatusCode::NOT_FOUND }).await;
    switch_on(&world, 60_000, 10).await;
    let after = guest.state().await;
    assert_eq!(after["state"], "OUTSIDE", "{after}");
    assert_ne!(after["draw"]["commitment"], before["draw"]["commitment"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn published_draw_fields_are_immutable() {
    let world = World::start(1, &[]).await;
    switch_on(&world, 2_500, 100).await;
    let mut guest = Guest::join(&world, 0).await;
    guest.wait_for_place().await;
    for change in [
        "UPDATE waiting_rooms SET draw_key = decode(repeat('00', 32), 'hex')",
        "UPDATE waiting_rooms SET drawn = drawn + 1",
        "UPDATE waiting_rooms SET drawn = NULL",
        "UPDATE waiting_rooms SET reserved = 1",
        "UPDATE waiting_rooms SET opens_at = opens_at + interval '1 hour'",
    ] {
        assert_refused(change, sqlx::query(change).execute(&world.pg).await, CHECK_VIOLATION, "stands");
    }
}
