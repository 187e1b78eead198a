//! Holds: all or none, named conflicts, replays, leaving and returning, expiry. The hold of a declined card is kept for a
//! second attempt.

use futures::{StreamExt, stream};
use seats::seat_locks::Keys;

use crate::idempotency::post;
use crate::prelude::*;
use crate::sale::deliver;
use crate::telemetry::{TOKEN, value};

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
async fn refusal_is_the_same_and_counted_alike_with_and_without_a_live_map() {
    let (world, [ann, bob]) = World::with_visitors(1, &[("METRICS_TOKEN", TOKEN)]).await;
    expect_answer(ann.hold(&[46]).await, StatusCode::CREATED);
    let without_map = bob.hold(&[45, 46]).await;
    assert_eq!(without_map.0, StatusCode::LOCKED, "{}", without_map.1);
    bob.wait_for_seat(46, '1').await;
    assert_eq!(bob.hold(&[45, 46]).await, without_map);
    let conflicts = "rowlock_lock_attempts_total{outcome=\"conflict\"}";
    assert_eq!(value(&world.servers[0].url, conflicts).await, 2.0);
    // The refused attempts took nothing.
    expect_answer(bob.hold(&[45]).await, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_is_replayed_at_a_server_whose_live_map_shows_the_seat_as_taken() {
    let (world, [ann, bob, cem]) = World::with_visitors(2, &[]).await;
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let there = ann.moved_to(&world, 1);
    let granted = ann.raw(Method::POST, &path, json!({ "seats": [5] }), "once").await;
    assert_eq!(granted.0, StatusCode::CREATED);
    there.wait_for_seat(5, '1').await;
    expect_problem(there.hold(&[5]).await, StatusCode::CONFLICT, "one_hold_per_show");
    assert_eq!(there.raw(Method::POST, &path, json!({ "seats": [5] }), "once").await, granted);

    // Also after the hold has ended and another visitor has the seat.
    let granted = bob.raw(Method::POST, &path, json!({ "seats": [6] }), "once").await;
    let hold: Value = serde_json::from_str(&granted.1).expect("JSON");
    assert_eq!(bob.release_hold(&hold).await, StatusCode::NO_CONTENT);
    expect_answer(cem.hold(&[6]).await, StatusCode::CREATED);
    let there = bob.moved_to(&world, 1);
    there.wait_for_seat(6, '1').await;
    assert_eq!(there.raw(Method::POST, &path, json!({ "seats": [6] }), "once").await, granted);
    expect_problem(there.hold(&[6]).await, StatusCode::LOCKED, "seats_locked");
}

#[tokio::test(flavor = "multi_thread")]
async fn released_seat_is_granted_at_once_however_old_the_live_map_is() {
    let (_world, [mut ann, mut bob]) = World::with_visitors(1, &[]).await;
    let (_, mut hold) = ann.hold(&[7]).await;
    // A live map lags by a tick, so most of these attempts find the seat taken there.
    for _ in 0..10 {
        ann.wait_for_seat(7, '1').await;
        assert_eq!(ann.release_hold(&hold).await, StatusCode::NO_CONTENT);
        hold = expect_answer(bob.hold(&[7]).await, StatusCode::CREATED);
        std::mem::swap(&mut ann, &mut bob);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_is_replayed_byte_for_byte_and_a_reused_key_is_refused() {
    let (world, ann) = World::with_visitor(1, &[]).await;
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
    let bob = world.visitor();
    assert_eq!(bob.raw(Method::POST, &path, json!({ "seats": [3] }), "one-intent").await.0, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_at_another_server_is_replayed_after_sales_closed() {
    let world = World::start(2, &[]).await;
    let (ann, path) = (world.visitor_at(0), format!("/api/v1/shows/{}/holds", world.show));
    let there = ann.moved_to(&world, 1);
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
    let answer = there.call_with_key(Method::POST, &longer, Value::Null, "change").await;
    expect_problem(answer, StatusCode::UNPROCESSABLE_ENTITY, "key_reused");
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
    let at_other = ann.moved_to(&world, 1);
    let answers = join_all((0..20).map(|number| {
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
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, hold) = ann.hold(&[10]).await;
    let more = expect_answer(ann.change(&hold, &[11, 12], &[10]).await, StatusCode::OK);
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
    assert_eq!(ann.change(&hold, &[], &[11, 12]).await.0, StatusCode::NO_CONTENT);
    for (seat, state) in (10..15).zip("00010".chars()) {
        ann.wait_for_seat(seat, state).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_has_at_most_one_hold_and_ten_seats() {
    let (_world, ann) = World::with_visitor(1, &[]).await;
    let (_, hold) = ann.hold(&[0, 1, 2, 3, 4, 5, 6, 7]).await;
    let refusal = expect_problem(ann.hold(&[20]).await, StatusCode::CONFLICT, "one_hold_per_show");
    assert_eq!(refusal["hold"], hold["id"]);
    expect_problem(ann.change(&hold, &[20, 21, 22], &[]).await, StatusCode::TOO_MANY_REQUESTS, "person_limit");
    let (_, booking) = ann.book(&hold).await;
    expect_state(ann.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
    ann.wait_for_seat(7, '2').await;
    assert_eq!(ann.hold(&[20, 21, 22]).await.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(ann.hold(&[20, 21]).await.0, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_tab_frees_seats_after_the_grace_period_and_a_return_keeps_the_expiry() {
    let (world, [ann, bob]) = World::with_visitors(1, &[("LEAVE_GRACE_MS", "1500")]).await;
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
    let (world, ann) = World::with_visitor(1, &[("HOLD_MS", "1000")]).await;
    let (hold, booking) = ann.check_out(&[40]).await;
    ann.wait_for_seat(40, '0').await;
    assert_eq!(ann.change(&hold, &[41], &[]).await.0, StatusCode::GONE);
    expect_problem(ann.pay(&booking, Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    ann.wait_for_booking(&booking, "EXPIRED").await;
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 0, "an expired hold is not charged");
}

#[tokio::test(flavor = "multi_thread")]
async fn sold_seats_survive_a_loss_of_redis() {
    let (world, ann) = World::with_visitor(1, &[]).await;
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
    let (world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let request_body = json!({ "seats": [10, 11] });
    let (status, first) = ann.raw(Method::POST, &path, request_body.clone(), "once").await;
    assert_eq!(status, StatusCode::CREATED);
    let hold: Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(ann.change(&hold, &[12], &[10]).await.0, StatusCode::OK);
    let replay = ann.raw(Method::POST, &path, request_body.clone(), "once").await;
    assert_eq!(replay, (status, first.clone()), "the replay ignores later changes");
    assert_eq!(ann.release_hold(&hold).await, StatusCode::NO_CONTENT);
    let (status, of_bob) = bob.hold(&[11]).await;
    assert_eq!(status, StatusCode::CREATED);
    // A repeated release gets the same answer and changes nothing.
    assert_eq!(ann.release_hold(&hold).await, StatusCode::NO_CONTENT);
    assert_eq!(bob.get(&format!("/api/v1/shows/{}/hold", world.show)).await.1["id"], of_bob["id"]);
    assert_eq!(ann.raw(Method::POST, &path, request_body, "once").await, (status, first), "the release is ignored");
    let answer = ann.get(&format!("/api/v1/shows/{}/hold", world.show)).await;
    assert_eq!(answer.0, StatusCode::NO_CONTENT, "no seat is taken");
    let answer = ann.call_with_key(Method::POST, &path, json!({ "seats": [20] }), "once").await;
    expect_problem(answer, StatusCode::UNPROCESSABLE_ENTITY, "key_reused");
    world.end().await;
}

#[tokio::test]
async fn hold_is_extended_up_to_its_longest_life_and_a_retry_adds_nothing() {
    let (world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let (_, hold) = ann.hold(&[30]).await;
    let ms = |hold: &Value, field: &str| hold[field].as_i64().expect("an instant");
    let path = format!("/api/v1/shows/{}/holds/{}/extend", world.show, text(&hold["id"]));
    let longer = expect_answer(ann.call_with_key(Method::POST, &path, Value::Null, "longer").await, StatusCode::OK);
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

/// Seats of a visitor whose first card was declined. Returns the ended booking.
async fn decline_first_card(visitor: &Visitor, seats: &[u32]) -> Value {
    let hold = expect_answer(visitor.hold(seats).await, StatusCode::CREATED);
    let (_, over) = visitor.buy(&hold, Some("tok_declined")).await;
    assert_eq!((&over["state"], &over["money"]), (&json!("CANCELLED"), &json!("FAILED")), "{over}");
    over
}

/// The kept hold, as a purchase body needs it.
fn kept_hold(over: &Value) -> Value {
    assert!(over["kept_hold"]["hold"].is_string(), "no hold is kept: {over}");
    json!({ "id": over["kept_hold"]["hold"], "total": over["total"] })
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_of_a_declined_card_stay_held_and_a_second_card_buys_them() {
    let world = World::start(2, &[]).await;
    let (ann, bob) = (world.visitor(), world.visitor_at(1));
    let (_, first) = ann.hold(&[46, 47]).await;
    let tries = async {
        let (_, over) = ann.buy(&first, Some("tok_declined")).await;
        let sold = expect_state(ann.buy(&kept_hold(&over), Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
        (over, sold)
    };
    tokio::pin!(tries);
    // Meanwhile another visitor keeps trying to hold one of them.
    let (over, sold) = loop {
        tokio::select! {
            done = &mut tries => break done,
            (status, answer) = bob.hold(&[47]) => {
                // Held or, later, sold.
                assert!(matches!(status, StatusCode::LOCKED | StatusCode::CONFLICT), "{status} {answer}");
            }
        }
    };
    assert_ne!(sold["id"], over["id"]);
    assert_eq!((&sold["seats"], &sold["total"]["minor"]), (&over["seats"], &json!(2 * PRICE)));
    // The first id of the hold is expired.
    expect_problem(ann.buy(&first, Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    let (_, last) = ann.get(&format!("/api/v1/bookings/{}", text(&over["id"]))).await;
    assert_eq!(last["state"], "CANCELLED");
    ann.wait_for_seat(46, '2').await;
    world.wait_until_books_balance().await;
    for (query, count) in [
        ("SELECT count(*) FROM tickets", 2),
        ("SELECT count(*) FROM payments WHERE state = 'succeeded'", 1),
        ("SELECT count(*) FROM seat_claims WHERE state = 'sold'", 2),
    ] {
        assert_eq!(world.count(query).await, count, "{query}");
    }
    // The first booking's release runs again, as after a crash, and frees no seat of the second booking.
    let again = "INSERT INTO outbox (booking_id, effect, run_after, created_at)
                 SELECT id, 'release_seats', now(), now() FROM bookings WHERE state = 'CANCELLED'";
    world.execute(again).await;
    world.wait_until_books_balance().await;
    ann.wait_for_seat(46, '2').await;
    assert_eq!(bob.hold(&[47]).await.0, StatusCode::CONFLICT);
}

#[tokio::test(flavor = "multi_thread")]
async fn decline_by_webhook_keeps_the_hold() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, hold) = ann.hold(&[5]).await;
    let pending =
        expect_state(ann.buy(&hold, Some("tok_pending_failed")).await, StatusCode::CREATED, "PAYMENT_PENDING");
    let over = ann.wait_for_booking(&pending, "CANCELLED").await;
    let next = kept_hold(&over);
    let until_ms = over["kept_hold"]["until_ms"].as_i64().expect("an instant");
    let end = hold["expires_at_ms"].as_i64().expect("an instant");
    assert!((until_ms - end).abs() < 2_000, "the hold ends as it would have without the payment: {until_ms} {end}");
    assert_eq!(world.visitor().hold(&[5]).await.0, StatusCode::LOCKED);
    expect_state(ann.buy(&next, Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifth_declined_card_ends_the_hold() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let mut over = decline_first_card(&ann, &[8, 9]).await;
    for number in 2..=5 {
        let last = kept_hold(&over);
        over = ann.buy(&last, Some("tok_declined")).await.1;
        assert_eq!(over["state"], "CANCELLED", "decline {number}: {over}");
        assert_eq!(over["kept_hold"].is_null(), number == 5, "decline {number}: {over}");
    }
    ann.wait_for_seat(8, '0').await;
    assert_eq!(world.visitor().hold(&[8, 9]).await.0, StatusCode::CREATED);
    assert!(!ann.has_hold().await);
    assert_eq!(world.count("SELECT count(*) FROM declined_payments").await, 5);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_with_the_second_card_are_one_sale() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let there = ann.moved_to(&world, 1);
    let next = kept_hold(&decline_first_card(&ann, &[12]).await);
    let tabs = (0..8).map(|tab| if tab % 2 == 0 { &ann } else { &there });
    let answers = join_all(tabs.map(|tab| tab.buy(&next, Some("tok_paid")))).await;
    for (status, answer) in &answers {
        assert!(status.is_success() || *status == StatusCode::CONFLICT, "{status} {answer}");
    }
    world.wait_for_count("the booking is confirmed", "SELECT count(*) FROM tickets", 1).await;
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM payments WHERE state = 'succeeded'").await, 1);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_hold_is_refused_to_other_visitors() {
    let (_world, [ann, eve]) = World::with_visitors(1, &[]).await;
    let over = decline_first_card(&ann, &[20]).await;
    expect_problem(eve.buy(&kept_hold(&over), Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    assert_eq!(eve.get(&format!("/api/v1/bookings/{}", text(&over["id"]))).await.0, StatusCode::NOT_FOUND);
    expect_state(ann.buy(&kept_hold(&over), Some("tok_paid")).await, StatusCode::CREATED, "CONFIRMED");
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_stopped_by_its_payer_keeps_no_hold() {
    let (_world, ann) = World::with_visitor(1, &[]).await;
    let (_, hold) = ann.hold(&[30]).await;
    let (_, pending) = ann.buy(&hold, None).await;
    let page = ann.post_form(text(&pending["pay_url"]), "card=paid&action=cancel").await;
    assert_eq!(page.status(), StatusCode::SEE_OTHER);
    let over = ann.wait_for_booking(&pending, "CANCELLED").await;
    assert!(over["kept_hold"].is_null(), "{over}");
    ann.wait_for_seat(30, '0').await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_payment_of_a_declined_booking_takes_the_kept_hold() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let over = decline_first_card(&ann, &[40, 41]).await;
    let next = kept_hold(&over);
    let paid = json!({
        "id": "evt_after_all", "type": "payment.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": over["id"], "amount_minor": 2 * PRICE, "currency": "EUR",
                     "status": "succeeded", "refunded_minor": 0 },
    });
    assert_eq!(deliver(&ann, &paid).await.0, StatusCode::OK);
    let seen = ann.wait_for_money(&over, "MOVED").await;
    let fresh = ann.booking(&json!({ "id": seen["moved_to"] })).await;
    assert_eq!((&fresh["state"], &fresh["seats"]), (&json!("CONFIRMED"), &over["seats"]), "{fresh}");
    expect_problem(ann.buy(&next, Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    ann.wait_for_seat(40, '2').await;
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 2);
    // The gateway's ledger has the payment as declined.
    world.end_with_known_findings(&["CONFIRMED; 0 were taken"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_of_a_kept_hold_are_free_after_the_map_was_lost() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let next = kept_hold(&decline_first_card(&ann, &[50]).await);
    world.wait_for_empty_outbox().await;
    world.delete_redis_keys().await;
    expect_problem(ann.buy(&next, Some("tok_paid")).await, StatusCode::GONE, "hold_expired");
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let bob = world.visitor();
    let hold = expect_answer(bob.call(Method::POST, &path, json!({ "seats": [50] })).await, StatusCode::CREATED);
    assert_eq!(bob.buy(&hold, Some("tok_paid")).await.1["state"], "CONFIRMED");
    world.wait_until_books_balance().await;
}

/// Changes without effect, in total.
const CHANGES: usize = 3_000;
/// …and concurrently.
const CONCURRENT: usize = 50;

fn path_of(visitor: &Visitor, hold: &Value) -> String {
    format!("/api/v1/shows/{}/holds/{}", visitor.show, text(&hold["id"]))
}

/// Fields of the show's hashes of stored answers, and the bytes of all its keys.
async fn stored_answers(world: &World) -> (u64, u64) {
    let mut redis = world.redis().await;
    let keys = Keys::of(world.setting("REDIS_PREFIX"), world.show).0;
    let (mut fields, mut bytes) = (0, 0);
    for key in &keys {
        let used: Option<u64> = redis::cmd("MEMORY")
            .arg("USAGE")
            .arg(key)
            .arg("SAMPLES")
            .arg(0)
            .query_async(&mut redis)
            .await
            .expect("bytes");
        bytes += used.unwrap_or_default();
    }
    for key in keys.iter().filter(|key| key.ends_with(":today") || key.ends_with(":before")) {
        fields += redis::cmd("HLEN").arg(key).query_async::<u64>(&mut redis).await.expect("a length");
    }
    (fields, bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn noop_changes_store_nothing_in_redis_and_real_ones_are_replayed() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let (status, hold) = ann.hold(&[1, 2]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let path = path_of(&ann, &hold);
    let before = stored_answers(&world).await;
    let same_seats = json!({ "add": [1, 2], "remove": [7] });
    let answers = stream::iter(0..CHANGES)
        .map(|number| {
            let (ann, path, body) = (&ann, &path, same_seats.clone());
            async move { ann.call_with_key(Method::PATCH, path, body, &format!("nothing-{number}")).await }
        })
        .buffer_unordered(CONCURRENT);
    let answers: Vec<_> = answers.collect().await;
    for (status, answer) in answers {
        assert_eq!((status, &answer["seats"]), (StatusCode::OK, &hold["seats"]), "{answer}");
    }
    assert_eq!(stored_answers(&world).await, before, "fields and bytes");

    // A real change is stored, and another server replays it.
    let elsewhere = ann.moved_to(&world, 1);
    let real = json!({ "add": [3], "remove": [1] });
    let changed = ann.call_with_key(Method::PATCH, &path, real.clone(), "real").await;
    assert_eq!(changed.0, StatusCode::OK, "{}", changed.1);
    let later = expect_answer(ann.change(&hold, &[1], &[3]).await, StatusCode::OK);
    assert_eq!(elsewhere.call_with_key(Method::PATCH, &path, real, "real").await, changed);
    assert_eq!(ann.current_hold().await["seats"], later["seats"], "the replay changes nothing");
    assert!(stored_answers(&world).await.0 > before.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_keyed_change_of_a_hold_counts_towards_the_rate_limit() {
    let (_world, [ann, ben]) = World::with_visitors(1, &[("HOLDS_PER_VISITOR_MIN", "12")]).await;
    let (_, hold) = ann.hold(&[1]).await;
    let path = path_of(&ann, &hold);
    let mut accepted = 0;
    let refusal = loop {
        let (status, answer) = ann.call(Method::PATCH, &path, json!({ "remove": [7] })).await;
        if status != StatusCode::OK {
            break (status, answer);
        }
        accepted += 1;
        assert!(accepted <= 96, "at most three buckets");
    };
    assert_eq!(refusal.0, StatusCode::TOO_MANY_REQUESTS, "{}", refusal.1);
    assert!(accepted >= 48, "{accepted} changes were accepted");
    let extended = post(&ann, &format!("{path}/extend"), "longer", "", &[]).await;
    assert_eq!(extended.status, StatusCode::TOO_MANY_REQUESTS, "{extended:?}");
    assert_eq!(extended.json()["code"], "too_many_attempts");
    assert_eq!(extended.header("ratelimit-policy"), "\"change-visitor\";q=48;w=60");
    // Releases are not limited, and another visitor is not affected.
    assert_eq!(ann.release_hold(&hold).await, StatusCode::NO_CONTENT);
    let (_, hold) = ben.hold(&[1]).await;
    expect_answer(ben.change(&hold, &[2], &[1]).await, StatusCode::OK);
}
