//! Holds: all or none, named conflicts, replays, leaving and returning, expiry.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::world::{World, expect_problem, text, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_holds_of_a_seat_wins_and_the_refusal_names_the_seat() {
    let world = World::start(2, &[]).await;
    let (ann, bob) = (world.visitor_at(0), world.visitor_at(1));
    let (one, other) = tokio::join!(ann.hold(&[46, 47]), bob.hold(&[45, 46]));
    let (winner, loser) = if one.0 == StatusCode::CREATED { (one, other) } else { (other, one) };
    assert_eq!((winner.0, loser.0), (StatusCode::CREATED, StatusCode::LOCKED));
    assert_eq!(loser.1["code"], "seats_locked");
    assert_eq!(loser.1["seats"], json!([{ "seat": 46, "label": "C7", "state": "LOCKED" }]));
    assert_eq!(winner.1["seats"].as_array().map(Vec::len), Some(2));
    assert_eq!(winner.1["total"], json!({ "minor": 2_500, "currency": "EUR" }));
    // All or none: the loser's other seat stays free.
    let states = ann.seat_states().await;
    assert_eq!(states.matches('1').count(), 2, "{states}");
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_is_replayed_byte_for_byte_and_a_reused_key_is_refused() {
    let (world, ann) = World::with_visitor(&[]).await;
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let first = ann.raw(Method::POST, &path, json!({ "seats": [1, 2] }), "one-intent").await;
    let (ours, theirs) = tokio::join!(
        ann.raw(Method::POST, &path, json!({ "seats": [1, 2] }), "one-intent"),
        ann.raw(Method::POST, &path, json!({ "seats": [1, 3] }), "one-intent"),
    );
    assert_eq!(first.0, StatusCode::CREATED);
    assert_eq!(ours, first);
    assert_eq!(theirs.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(theirs.1.contains("key_reused"));
    // Keys are per visitor.
    let bob = world.visitor();
    let (status, _) = bob.raw(Method::POST, &path, json!({ "seats": [3] }), "one-intent").await;
    assert_eq!(status, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_at_another_server_is_replayed_after_sales_closed() {
    let world = World::start(2, &[]).await;
    let (ann, path) = (world.visitor_at(0), format!("/api/v1/shows/{}/holds", world.show));
    let there = crate::world::Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    let seats = json!({ "seats": [1, 2] });
    let taken = ann.raw(Method::POST, &path, seats.clone(), "take").await;
    let hold: Value = serde_json::from_str(&taken.1).expect("JSON");
    let one = format!("{path}/{}", text(&hold["id"]));
    let (longer, more) = (format!("{one}/extend"), json!({ "add": [3], "remove": [2] }));
    let changed = ann.raw(Method::PATCH, &one, more.clone(), "change").await;
    let extended = ann.raw(Method::POST, &longer, Value::Null, "extend").await;
    assert_eq!((taken.0, changed.0, extended.0), (StatusCode::CREATED, StatusCode::OK, StatusCode::OK));

    let closed = "UPDATE shows SET sales = 'paused', starts_at = now() + interval '4 minutes',
                  terms_version = terms_version + 1, terms_at = now()";
    world.execute(closed).await;
    wait_until("the other server sees that sales are closed", || async {
        world.visitor_at(1).hold(&[9]).await.1["code"] == "sales_closed"
    })
    .await;
    assert_eq!(there.raw(Method::POST, &path, seats, "take").await, taken);
    assert_eq!(there.raw(Method::PATCH, &one, more, "change").await, changed);
    assert_eq!(there.raw(Method::POST, &longer, Value::Null, "extend").await, extended);
    // Another request with the key is refused, and a refused request is not replayed as granted.
    expect_problem(
        there.call_with_key(Method::POST, &longer, Value::Null, "change").await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "key_reused",
    );
    for (method, path, body) in [
        (Method::POST, &path, json!({ "seats": [5] })),
        (Method::PATCH, &one, json!({ "add": [5], "remove": [] })),
        (Method::POST, &longer, Value::Null),
    ] {
        let (status, refusal) = there.call(method, path, body).await;
        assert_eq!((status, text(&refusal["code"])), (StatusCode::CONFLICT, "sales_closed"), "{path}: {refusal}");
    }
    ann.wait_for_seat(5, '0').await;
    ann.wait_for_seat(2, '0').await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_concurrent_equal_requests_are_one_hold_and_one_answer() {
    let world = World::start(2, &[]).await;
    let (ann, path) = (world.visitor(), format!("/api/v1/shows/{}/holds", world.show));
    let at_other = crate::world::Visitor { base: world.servers[1].url.clone(), ..ann.clone() };
    let answers = futures::future::join_all((0..20).map(|number| {
        let visitor = if number % 2 == 0 { &ann } else { &at_other };
        visitor.raw(Method::POST, &path, json!({ "seats": [5] }), "double-click")
    }))
    .await;
    let granted: Vec<_> = answers.iter().filter(|(status, _)| *status == StatusCode::CREATED).collect();
    assert!(!granted.is_empty());
    assert!(granted.iter().all(|answer| *answer == granted[0]), "every answer has the same bytes");
    assert!(answers.iter().all(|(status, _)| matches!(*status, StatusCode::CREATED | StatusCode::CONFLICT)));
    assert_eq!(ann.seat_states().await.matches('1').count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn adding_and_removing_seats_keeps_the_expiry() {
    let (world, ann) = World::with_visitor(&[]).await;
    let (_, hold) = ann.hold(&[10]).await;
    let (status, more) = ann.change(&hold, &[11, 12], &[10]).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(more["expires_at_ms"], hold["expires_at_ms"]);
    let seats: Vec<_> = more["seats"].as_array().expect("seats").iter().map(|seat| seat["seat"].clone()).collect();
    assert_eq!(seats, [json!(11), json!(12)]);
    // Seat 13 is held by another visitor: nothing changes, and the refusal names it.
    let bob = world.visitor();
    bob.hold(&[13]).await;
    let (status, refusal) = ann.change(&hold, &[14, 13], &[]).await;
    assert_eq!((status, text(&refusal["seats"][0]["label"])), (StatusCode::LOCKED, "A14"));
    for (seat, state) in (10..15).zip("01110".chars()) {
        ann.wait_for_seat(seat, state).await;
    }
    // A foreign hold cannot be modified, and the answer does not reveal it.
    assert_eq!(bob.change(&hold, &[20], &[]).await.0, StatusCode::GONE);
    // Removing the last seat ends the hold.
    let (status, _) = ann.change(&hold, &[], &[11, 12]).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    for (seat, state) in (10..15).zip("00010".chars()) {
        ann.wait_for_seat(seat, state).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_has_at_most_one_hold_and_ten_seats() {
    let (_world, ann) = World::with_visitor(&[]).await;
    let (_, hold) = ann.hold(&[0, 1, 2, 3, 4, 5, 6, 7]).await;
    let refusal = expect_problem(ann.hold(&[20]).await, StatusCode::CONFLICT, "one_hold_per_show");
    assert_eq!(refusal["hold"], hold["id"]);
    expect_problem(ann.change(&hold, &[20, 21, 22], &[]).await, StatusCode::TOO_MANY_REQUESTS, "person_limit");
    // Bought seats count as well.
    let (_, booking) = ann.book(&hold).await;
    let (_, paid) = ann.pay(&booking, Some("tok_paid")).await;
    assert_eq!(paid["state"], "CONFIRMED");
    ann.wait_for_seat(7, '2').await;
    assert_eq!(ann.hold(&[20, 21, 22]).await.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(ann.hold(&[20, 21]).await.0, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_tab_frees_seats_after_the_grace_period_and_a_return_keeps_the_expiry() {
    let world = World::start(1, &[("LEAVE_GRACE_MS", "1500")]).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let (_, left) = ann.hold(&[30]).await;
    let (_, returned) = bob.hold(&[31]).await;
    for (visitor, hold) in [(&ann, &left), (&bob, &returned)] {
        let path = format!("/api/v1/shows/{}/holds/{}/leave", world.show, text(&hold["id"]));
        assert_eq!(visitor.call(Method::POST, &path, Value::Null).await.0, StatusCode::NO_CONTENT);
    }
    let (status, again) = bob.get(&format!("/api/v1/shows/{}/hold", world.show)).await;
    assert_eq!((status, &again["expires_at_ms"]), (StatusCode::OK, &returned["expires_at_ms"]));
    // Measured with the lock store's clock: not before the grace period ends.
    let left_at = platform::clock::now();
    ann.wait_for_seat(30, '0').await;
    assert!(platform::clock::now().since(left_at) > 1_000, "a reload within the grace period keeps the seats");
    assert_eq!(&bob.seat_states().await[30..32], "01");
    assert_eq!(ann.get(&format!("/api/v1/shows/{}/hold", world.show)).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_expires_and_its_owner_gets_gone() {
    let (world, ann) = World::with_visitor(&[("HOLD_MS", "1000")]).await;
    let (hold, booking) = ann.check_out(&[40]).await;
    ann.wait_for_seat(40, '0').await;
    assert_eq!(ann.change(&hold, &[41], &[]).await.0, StatusCode::GONE);
    expect_problem(ann.pay(&booking, Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    ann.wait_for_booking(&booking, "EXPIRED").await;
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 0, "an expired hold is not charged");
}

#[tokio::test(flavor = "multi_thread")]
async fn sold_seats_survive_a_loss_of_redis() {
    let (world, ann) = World::with_visitor(&[]).await;
    let (_, booking) = ann.check_out(&[50, 51]).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    ann.wait_for_seat(50, '2').await;
    let bob = world.visitor();
    bob.hold(&[60]).await;
    world.delete_redis_keys().await;
    let carol = world.visitor();
    assert_eq!(carol.hold(&[50]).await.0, StatusCode::CONFLICT);
    assert_eq!(carol.hold(&[60]).await.0, StatusCode::CREATED, "only unpaid holds are lost");
    wait_until("the map shows the sold seats", || async {
        let states = carol.seat_states().await;
        &states[50..52] == "22" && &states[60..61] == "1"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_of_a_dead_server_are_freed_for_clients_of_another() {
    let mut world = World::start(2, &[("HOLD_MS", "2000")]).await;
    let (ann, bob) = (world.visitor_at(0), world.visitor_at(1));
    let socket = bob.open_live_map().await;
    ann.hold(&[70]).await;
    bob.wait_for_seat(70, '1').await;
    world.kill(0).await;
    bob.wait_for_seat(70, '0').await;
    drop(socket);
}

#[tokio::test]
async fn replay_is_unchanged_after_the_hold_ended() {
    let world = World::start(1, &[]).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let request_body = json!({ "seats": [10, 11] });
    let (status, first) = ann.raw(Method::POST, &path, request_body.clone(), "once").await;
    assert_eq!(status, StatusCode::CREATED);
    let hold: Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(ann.change(&hold, &[12], &[10]).await.0, StatusCode::OK);
    assert_eq!(
        ann.raw(Method::POST, &path, request_body.clone(), "once").await,
        (status, first.clone()),
        "the replay ignores later changes"
    );
    assert_eq!(ann.release_hold(&hold).await, StatusCode::NO_CONTENT);
    let (status, of_bob) = bob.hold(&[11]).await;
    assert_eq!(status, StatusCode::CREATED);
    // A repeated release gets the same answer and changes nothing.
    assert_eq!(ann.release_hold(&hold).await, StatusCode::NO_CONTENT);
    assert_eq!(bob.get(&format!("/api/v1/shows/{}/hold", world.show)).await.1["id"], of_bob["id"]);
    assert_eq!(
        ann.raw(Method::POST, &path, request_body, "once").await,
        (status, first),
        "the replay ignores the release"
    );
    assert_eq!(
        ann.get(&format!("/api/v1/shows/{}/hold", world.show)).await.0,
        StatusCode::NO_CONTENT,
        "the replay takes no seat"
    );
    expect_problem(
        ann.call_with_key(Method::POST, &path, json!({ "seats": [20] }), "once").await,
        StatusCode::UNPROCESSABLE_ENTITY,
        "key_reused",
    );
    world.end().await;
}

#[tokio::test]
async fn hold_is_extended_up_to_its_longest_life_and_a_retry_adds_nothing() {
    let world = World::start(1, &[]).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let (_, hold) = ann.hold(&[30]).await;
    let ms = |hold: &Value, field: &str| hold[field].as_i64().expect("an instant");
    let path = format!("/api/v1/shows/{}/holds/{}/extend", world.show, text(&hold["id"]));
    let (status, longer) = ann.call_with_key(Method::POST, &path, Value::Null, "longer").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(ms(&longer, "expires_at_ms") - ms(&hold, "expires_at_ms"), 180_000);
    assert_eq!(longer["expires_at_ms"], hold["latest_ms"]);
    assert_eq!(ann.call_with_key(Method::POST, &path, Value::Null, "longer").await, (StatusCode::OK, longer.clone()));
    expect_problem(ann.call(Method::POST, &path, Value::Null).await, StatusCode::CONFLICT, "hold_capped");
    assert_eq!(bob.call(Method::POST, &path, Value::Null).await.0, StatusCode::GONE, "another's");
    let (_, changed) = ann.change(&hold, &[31], &[]).await;
    assert_eq!(changed["expires_at_ms"], longer["expires_at_ms"], "adding a seat adds no time");
    world.end().await;
}

#[tokio::test]
async fn flash_sale_holds_expire_after_ninety_seconds() {
    let world = World::start(1, &[]).await;
    world.execute("UPDATE shows SET flash_sale = true").await;
    let ann = world.visitor();
    let before = platform::clock::now().0;
    let (_, hold) = ann.hold(&[40]).await;
    let lasts = hold["expires_at_ms"].as_i64().expect("an instant") - before;
    assert!((85_000..=95_000).contains(&lasts), "{lasts} ms");
    let path = format!("/api/v1/shows/{}/holds/{}/extend", world.show, text(&hold["id"]));
    expect_problem(ann.call(Method::POST, &path, Value::Null).await, StatusCode::CONFLICT, "hold_capped");
    world.end().await;
}
