//! House seats: kept, released, and given to a guest in one step.

use super::{
    acts, code, desk_path, hired, hold_seats, sale, sales_path, sell_seats, seller, world_with_open_till,
    world_with_two_theatres,
};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn house_keeps_seats_and_releases_them() {
    let (world, mut rita) = world_with_two_theatres().await;
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

#[tokio::test(flavor = "multi_thread")]
async fn seats_with_other_labels_than_the_seller_saw_are_not_kept() {
    let world = World::start(1, &[]).await;
    let mut ann = seller(&world, "ann@example.org").await;
    let path = desk_path(&format!("shows/{}/house-seats", world.show));
    let request_body =
        |labels: &[&str]| json!({ "seats": [5, 4], "labels": labels, "kept": true, "reason": "For the mayor." });
    // As a page that was opened before the show moved to another room.
    assert_eq!(code(&ann.post(&path, request_body(&["A6", "B5"])).await), (409, "wrong_state".into()));
    assert_eq!(code(&ann.post(&path, request_body(&["A6"])).await), (400, "malformed".into()));
    assert_eq!(blocked_count(&world).await, 0);
    expect_answer(ann.post(&path, request_body(&["A6", "A5"])).await, StatusCode::NO_CONTENT);
    assert_eq!(blocked_count(&world).await, 2);
}

fn path(world: &World) -> String {
    desk_path(&format!("shows/{}/house-seats/hold", world.show))
}

fn grant_body(seats: &[u32]) -> Value {
    json!({ "seats": seats, "reason": "The mayor is here." })
}

async fn block_seats(seller: &mut Browser, world: &World, seats: &[u32]) {
    let body = json!({ "seats": seats, "kept": true, "reason": "For the mayor." });
    let answer = seller.post(&desk_path(&format!("shows/{}/house-seats", world.show)), body).await;
    expect_answer(answer, StatusCode::NO_CONTENT);
}

async fn send(seller: &mut Browser, world: &World, body: Value) -> (StatusCode, Value) {
    let key = [("idempotency-key", "for-the-mayor")];
    let (status, _, answer) = seller.send_with(Method::POST, &path(world), &body, &key).await;
    (status, answer)
}

async fn release(seller: &mut Browser, world: &World, held: &Value) {
    let path = format!("/api/v1/shows/{}/holds/{}", world.show, text(&held["id"]));
    assert_eq!(seller.send(Method::DELETE, &path, Value::Null).await.0, StatusCode::NO_CONTENT);
}

/// Writes to Postgres, and not to the map, that the house keeps only seat 4, or no seat.
async fn set_blocked_in_postgres(world: &World, is_kept: bool) {
    world.run(sqlx::query("UPDATE shows SET blocked = CASE WHEN $1 THEN ARRAY[4] ELSE '{}' END").bind(is_kept)).await;
}

async fn blocked_count(world: &World) -> i64 {
    world.count("SELECT cardinality(blocked)::bigint FROM shows").await
}

async fn version(world: &World) -> i64 {
    let (_, seats) = world.visitor().get(&format!("/api/v1/shows/{}/seats", world.show)).await;
    seats["version"].as_i64().expect("a version")
}

#[tokio::test(flavor = "multi_thread")]
async fn house_seat_is_held_for_its_guest_without_being_on_sale() {
    let (world, mut ann) = world_with_open_till().await;
    block_seats(&mut ann, &world, &[0, 1, 2]).await;
    let visitor = world.visitor();
    visitor.wait_for_seat(2, '3').await;
    let before = version(&world).await;
    let (status, held) = ann.post(&path(&world), grant_body(&[0, 1])).await;
    assert_eq!((status, held["seats"].as_array().map(Vec::len)), (StatusCode::CREATED, Some(2)), "{held}");
    // One step from blocked to held: no version of the map has the seats on sale.
    visitor.wait_for_seat(0, '1').await;
    assert_eq!((version(&world).await, &visitor.seat_states().await[..4]), (before + 1, "1130"));
    assert_eq!(visitor.hold(&[0]).await.0, StatusCode::LOCKED);
    assert_eq!((blocked_count(&world).await, world.count("SELECT count(*) FROM house_seats").await), (1, 1));
    let (_, mine) = ann.get(&format!("/api/v1/shows/{}/hold", world.show)).await;
    assert_eq!(mine["id"], held["id"]);
    expect_answer(ann.post(&sales_path(&world), sale(&held, "cash")).await, StatusCode::CREATED);
    visitor.wait_for_seat(1, '2').await;
    assert_eq!(acts(&world).await, ["till_opened", "seats_kept", "house_seats_taken", "sold"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_grant_of_a_house_seat_gets_the_same_answer_and_takes_nothing() {
    let world = World::start(1, &[]).await;
    let mut ann = seller(&world, "ann@example.org").await;
    block_seats(&mut ann, &world, &[4, 5]).await;
    let first = send(&mut ann, &world, grant_body(&[4])).await;
    assert_eq!(first.0, StatusCode::CREATED, "{}", first.1);
    assert_eq!(send(&mut ann, &world, grant_body(&[4])).await, first);
    assert_eq!(code(&send(&mut ann, &world, grant_body(&[5])).await), (422, "key_reused".into()));
    // After a release the seat is on sale, and a retry does not take it from a new holder.
    let visitor = world.visitor();
    release(&mut ann, &world, &first.1).await;
    visitor.wait_for_seat(4, '0').await;
    let visitors = expect_answer(visitor.hold(&[4]).await, StatusCode::CREATED);
    assert_eq!(send(&mut ann, &world, grant_body(&[4])).await, first);
    assert!(visitor.has_hold().await);
    // Nor from the house, which keeps it again.
    assert_eq!(visitor.release_hold(&visitors).await, StatusCode::NO_CONTENT);
    block_seats(&mut ann, &world, &[4]).await;
    assert_eq!(send(&mut ann, &world, grant_body(&[4])).await, first);
    visitor.wait_for_seat(4, '3').await;
    assert_eq!(blocked_count(&world).await, 2);
    assert_eq!(acts(&world).await, ["seats_kept", "house_seats_taken", "seats_kept"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_finishes_a_grant_that_a_crash_interrupted() {
    let world = World::start(1, &[]).await;
    let mut ann = seller(&world, "ann@example.org").await;
    block_seats(&mut ann, &world, &[4]).await;
    let first = send(&mut ann, &world, grant_body(&[4])).await;
    assert_eq!(first.0, StatusCode::CREATED, "{}", first.1);
    // State after a server died behind its commit: the key is used, Postgres has the seat on sale, and the map shows it
    // as blocked, without an answer.
    release(&mut ann, &world, &first.1).await;
    world.delete_redis_keys().await;
    set_blocked_in_postgres(&world, true).await;
    let visitor = world.visitor();
    assert_eq!(visitor.hold(&[4]).await.0, StatusCode::CONFLICT);
    set_blocked_in_postgres(&world, false).await;
    assert_eq!(visitor.hold(&[4]).await.0, StatusCode::CONFLICT, "no visitor gets it");
    let again = send(&mut ann, &world, grant_body(&[4])).await;
    assert_eq!((again.0, &again.1["id"]), (StatusCode::CREATED, &first.1["id"]), "{}", again.1);
    assert_eq!(visitor.hold(&[4]).await.0, StatusCode::LOCKED);
    assert_eq!(acts(&world).await, ["seats_kept", "house_seats_taken"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_grant_leaves_the_seats_with_the_house() {
    let (world, mut rita) = world_with_two_theatres().await;
    let mut ann = seller(&world, "ann@example.org").await;
    block_seats(&mut ann, &world, &[6, 7]).await;
    // All or none, and only house seats.
    assert_eq!(code(&ann.post(&path(&world), grant_body(&[6, 8])).await), (409, "wrong_state".into()));
    for (body, expected) in [
        (grant_body(&[]), "malformed"),
        (grant_body(&[6, 6]), "seat_twice"),
        (grant_body(&[300]), "unknown_seat"),
        (grant_body(&(0..11).collect::<Vec<_>>()), "malformed"),
        (json!({ "seats": [6], "reason": " " }), "malformed"),
    ] {
        assert_eq!(code(&ann.post(&path(&world), body.clone()).await), (400, expected.to_owned()), "{body}");
    }
    let other = hold_seats(&mut ann, &world, &[9]).await;
    let refused = ann.post(&path(&world), grant_body(&[6])).await;
    assert_eq!(code(&refused), (409, "one_hold_per_show".into()));
    assert_eq!(refused.1["hold"], other["id"]);
    // Refused for another theatre's manager, a buyer, and an organiser.
    assert_eq!(rita.post(&path(&world), grant_body(&[6])).await.0, StatusCode::NOT_FOUND);
    let mut ben = register_and_log_in(&world, "ben@example.org").await;
    assert_eq!(ben.post(&path(&world), grant_body(&[6])).await.0, StatusCode::NOT_FOUND);
    let mut dora = hired(&world, "dora@example.org", "organiser").await;
    assert_eq!(dora.post(&path(&world), grant_body(&[6])).await.0, StatusCode::FORBIDDEN);
    world.visitor().wait_for_seat(9, '1').await;
    assert_eq!((blocked_count(&world).await, &world.visitor().seat_states().await[6..9]), (2, "330"));
    assert_eq!(acts(&world).await, ["seats_kept"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn house_seat_that_is_held_stays_with_its_holder_and_the_grant_is_refused() {
    let world = World::start(1, &[]).await;
    let mut ann = seller(&world, "ann@example.org").await;
    block_seats(&mut ann, &world, &[10]).await;
    let visitor = world.visitor();
    assert_eq!(visitor.hold(&[11]).await.0, StatusCode::CREATED);
    // Blocked in Postgres only; the map has the hold.
    world.execute("UPDATE shows SET blocked = blocked || 11").await;
    let refused = ann.post(&path(&world), grant_body(&[10, 11])).await;
    assert_eq!(code(&refused), (423, "seats_locked".into()));
    assert!(text(&refused.1["detail"]).contains("no longer keeps these seats"), "{}", refused.1);
    visitor.wait_for_seat(10, '0').await;
    visitor.wait_for_seat(11, '1').await;
    assert!(visitor.has_hold().await);
    assert_eq!(blocked_count(&world).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_map_does_not_block_the_grant_of_a_house_seat() {
    let world = World::start(1, &[]).await;
    let mut ann = seller(&world, "ann@example.org").await;
    block_seats(&mut ann, &world, &[12]).await;
    world.delete_redis_keys().await;
    expect_answer(ann.post(&path(&world), grant_body(&[12])).await, StatusCode::CREATED);
    world.visitor().wait_for_seat(12, '1').await;
}
