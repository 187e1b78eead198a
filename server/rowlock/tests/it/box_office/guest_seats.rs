//! Seats the house keeps, given straight to a guest.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{acts, at_work, code, desk, hired, holds, sale, sales, seller, two_theatres};
use crate::accounts::{Browser, signed_up};
use crate::world::{World, text};

fn path(world: &World) -> String {
    desk(&format!("shows/{}/house-seats/hold", world.show))
}

fn wish(seats: &[u32]) -> Value {
    json!({ "seats": seats, "reason": "The mayor is here." })
}

/// The house keeps these seats.
async fn keeps(seller: &mut Browser, world: &World, seats: &[u32]) {
    let wish = json!({ "seats": seats, "kept": true, "reason": "For the mayor." });
    let (status, answer) = seller.post(&desk(&format!("shows/{}/house-seats", world.show)), wish).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
}

/// The same request under the same key each time.
async fn send(seller: &mut Browser, world: &World, body: Value) -> (StatusCode, Value) {
    let key = [("idempotency-key", "for-the-mayor")];
    let (status, _, answer) = seller.send_with(Method::POST, &path(world), &body, &key).await;
    (status, answer)
}

/// Lets the seller's hold go.
async fn lets_go(seller: &mut Browser, world: &World, held: &Value) {
    let path = format!("/api/v1/shows/{}/holds/{}", world.show, text(&held["id"]));
    assert_eq!(seller.send(Method::DELETE, &path, Value::Null).await.0, StatusCode::NO_CONTENT);
}

/// Writes down that the house keeps seat 4 and no other, or none, past the map.
async fn writes_past_the_map(world: &World, is_kept: bool) {
    let past = sqlx::query("UPDATE shows SET blocked = CASE WHEN $1 THEN ARRAY[4] ELSE '{}' END").bind(is_kept);
    past.execute(&world.pg).await.expect("it is written");
}

async fn kept(world: &World) -> i64 {
    world.count("SELECT cardinality(blocked)::bigint FROM shows").await
}

async fn version(world: &World) -> i64 {
    let (_, seats) = world.visitor().get(&format!("/api/v1/shows/{}/seats", world.show)).await;
    seats["version"].as_i64().expect("a version")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_house_seat_goes_to_its_guest_and_nobody_can_take_it_in_between() {
    let world = World::start(1, &[]).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    keeps(&mut ann, &world, &[0, 1, 2]).await;
    let visitor = world.visitor();
    visitor.sees(2, '3').await;
    let before = version(&world).await;
    let (status, held) = ann.post(&path(&world), wish(&[0, 1])).await;
    assert_eq!((status, held["seats"].as_array().map(Vec::len)), (StatusCode::CREATED, Some(2)), "{held}");
    // One step from kept to held: there was no map with the seats on sale.
    visitor.sees(0, '1').await;
    assert_eq!((version(&world).await, &visitor.states().await[..4]), (before + 1, "1130"));
    assert_eq!(visitor.hold(&[0]).await.0, StatusCode::LOCKED);
    assert_eq!((kept(&world).await, world.count("SELECT count(*) FROM house_seats").await), (1, 1));
    // An ordinary hold from there on.
    let (_, mine) = ann.get(&format!("/api/v1/shows/{}/hold", world.show)).await;
    assert_eq!(mine["id"], held["id"]);
    let (status, sold) = ann.post(&sales(&world), sale(&held, "cash")).await;
    assert_eq!(status, StatusCode::CREATED, "{sold}");
    visitor.sees(1, '2').await;
    assert_eq!(acts(&world).await, ["till_opened", "seats_kept", "house_seats_taken", "sold"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_is_told_the_same_and_takes_nothing_again() {
    let world = World::start(1, &[]).await;
    let mut ann = seller(&world, "ann@example.org").await;
    keeps(&mut ann, &world, &[4, 5]).await;
    let first = send(&mut ann, &world, wish(&[4])).await;
    assert_eq!(first.0, StatusCode::CREATED, "{}", first.1);
    assert_eq!(send(&mut ann, &world, wish(&[4])).await, first);
    assert_eq!(code(&send(&mut ann, &world, wish(&[5])).await), (422, "key_reused".into()));
    // Let go it is on sale, and a repeat does not take it from whoever came then.
    let visitor = world.visitor();
    lets_go(&mut ann, &world, &first.1).await;
    visitor.sees(4, '0').await;
    let (status, visitors) = visitor.hold(&[4]).await;
    assert_eq!(status, StatusCode::CREATED, "{visitors}");
    assert_eq!(send(&mut ann, &world, wish(&[4])).await, first);
    assert!(visitor.holds_something().await);
    // Nor from the house, which keeps it again.
    assert_eq!(visitor.let_go(&visitors).await, StatusCode::NO_CONTENT);
    keeps(&mut ann, &world, &[4]).await;
    assert_eq!(send(&mut ann, &world, wish(&[4])).await, first);
    visitor.sees(4, '3').await;
    assert_eq!(kept(&world).await, 2);
    assert_eq!(acts(&world).await, ["seats_kept", "house_seats_taken", "seats_kept"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_finishes_what_a_crash_left_undone() {
    let world = World::start(1, &[]).await;
    let mut ann = seller(&world, "ann@example.org").await;
    keeps(&mut ann, &world, &[4]).await;
    let first = send(&mut ann, &world, wish(&[4])).await;
    assert_eq!(first.0, StatusCode::CREATED, "{}", first.1);
    // As a server leaves it that dies after the commit: the key is spent, Postgres has the seat on sale, and the map has
    // it with the house and knows of no answer.
    lets_go(&mut ann, &world, &first.1).await;
    world.forget_redis().await;
    writes_past_the_map(&world, true).await;
    let visitor = world.visitor();
    assert_eq!(visitor.hold(&[4]).await.0, StatusCode::CONFLICT);
    writes_past_the_map(&world, false).await;
    assert_eq!(visitor.hold(&[4]).await.0, StatusCode::CONFLICT, "nobody gets it by mistake");
    let again = send(&mut ann, &world, wish(&[4])).await;
    assert_eq!((again.0, &again.1["id"]), (StatusCode::CREATED, &first.1["id"]), "{}", again.1);
    assert_eq!(visitor.hold(&[4]).await.0, StatusCode::LOCKED);
    assert_eq!(acts(&world).await, ["seats_kept", "house_seats_taken"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_refuse_the_hold_leaves_the_seats_with_the_house() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let mut ann = seller(&world, "ann@example.org").await;
    keeps(&mut ann, &world, &[6, 7]).await;
    // All or none, and only what the house keeps.
    assert_eq!(code(&ann.post(&path(&world), wish(&[6, 8])).await), (409, "wrong_state".into()));
    for (body, expected) in [
        (wish(&[]), "malformed"),
        (wish(&[6, 6]), "seat_twice"),
        (wish(&[300]), "unknown_seat"),
        (wish(&(0..11).collect::<Vec<_>>()), "malformed"),
        (json!({ "seats": [6], "reason": " " }), "malformed"),
    ] {
        assert_eq!(code(&ann.post(&path(&world), body.clone()).await), (400, expected.to_owned()), "{body}");
    }
    let other = holds(&mut ann, &world, &[9]).await;
    let refused = ann.post(&path(&world), wish(&[6])).await;
    assert_eq!(code(&refused), (409, "one_hold_per_show".into()));
    assert_eq!(refused.1["hold"], other["id"]);
    // Nobody else may: another theatre's manager, a buyer, who plans shows.
    assert_eq!(rita.post(&path(&world), wish(&[6])).await.0, StatusCode::NOT_FOUND);
    let mut ben = signed_up(&world, "ben@example.org").await;
    assert_eq!(ben.post(&path(&world), wish(&[6])).await.0, StatusCode::NOT_FOUND);
    let mut dora = hired(&world, "dora@example.org", "organiser").await;
    assert_eq!(dora.post(&path(&world), wish(&[6])).await.0, StatusCode::FORBIDDEN);
    world.visitor().sees(9, '1').await;
    assert_eq!((kept(&world).await, &world.visitor().states().await[6..9]), (2, "330"));
    assert_eq!(acts(&world).await, ["seats_kept"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seat_somebody_has_all_the_same_stays_theirs_and_the_seller_is_told() {
    let world = World::start(1, &[]).await;
    let mut ann = seller(&world, "ann@example.org").await;
    keeps(&mut ann, &world, &[10]).await;
    let visitor = world.visitor();
    assert_eq!(visitor.hold(&[11]).await.0, StatusCode::CREATED);
    // Kept past the map, which knows better.
    let past = sqlx::query("UPDATE shows SET blocked = blocked || 11").execute(&world.pg).await;
    past.expect("it is written");
    let refused = ann.post(&path(&world), wish(&[10, 11])).await;
    assert_eq!(code(&refused), (423, "seats_locked".into()));
    assert!(text(&refused.1["detail"]).contains("keeps the seats no more"), "{}", refused.1);
    visitor.sees(10, '0').await;
    visitor.sees(11, '1').await;
    assert!(visitor.holds_something().await);
    assert_eq!(kept(&world).await, 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_that_was_lost_does_not_keep_a_seat_from_its_guest() {
    let world = World::start(1, &[]).await;
    let mut ann = seller(&world, "ann@example.org").await;
    keeps(&mut ann, &world, &[12]).await;
    world.forget_redis().await;
    let (status, held) = ann.post(&path(&world), wish(&[12])).await;
    assert_eq!(status, StatusCode::CREATED, "{held}");
    world.visitor().sees(12, '1').await;
    world.end().await;
}
