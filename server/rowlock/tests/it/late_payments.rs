//! Payments that arrive after the booking expired: new seats if possible, a full refund otherwise.

use crate::mailed_links::assert_mails_link_without_cookie;
use crate::prelude::*;
use seats::seat_locks::{HoldLimits, LockAttempt, RequestIdentity, SeatLocks, Selection};

/// A booking whose payment page is open, checked out with this choice for late payments.
pub async fn open_payment(visitor: &Visitor, seats: &[u32], if_late: Option<&str>) -> Value {
    let hold = expect_answer(visitor.hold(seats).await, StatusCode::CREATED);
    let buyer = json!({ "name": "Ann Example", "email": "ann@example.org" });
    let mut request_body = json!({ "show": visitor.show, "hold": hold["id"], "buyer": buyer });
    if let Some(if_late) = if_late {
        request_body["if_late"] = if_late.into();
    }
    let booking =
        expect_answer(visitor.call(Method::POST, "/api/v1/bookings", request_body).await, StatusCode::CREATED);
    expect_state(visitor.pay(&booking, None).await, StatusCode::OK, "PAYMENT_PENDING")
}

/// Expires a booking without a call to the gateway, as during an outage. The release of its seats is in the outbox.
pub async fn expire_without_gateway(world: &World, booking: &Value) {
    let statements = [
        "UPDATE bookings SET state = 'EXPIRED', expires_at = now() - interval '1 second', version = version + 1,
                             updated_at = now() WHERE id = $1::uuid",
        "INSERT INTO booking_events
         SELECT id, version, 'timed_out', 'PAYMENT_PENDING', state, money, 'reconciler', 'Its time was over.', now()
         FROM bookings WHERE id = $1::uuid",
        "INSERT INTO outbox (booking_id, effect, run_after, created_at) VALUES ($1::uuid, 'release_seats', now(), now())",
    ];
    let mut tx = world.pg.begin().await.expect("a transaction");
    for statement in statements {
        sqlx::query(statement).bind(text(&booking["id"])).execute(&mut *tx).await.expect("the booking expires");
    }
    tx.commit().await.expect("the expiry is committed");
}

pub async fn expire(world: &World, booking: &Value) {
    expire_without_gateway(world, booking).await;
    world.wait_for_empty_outbox().await;
}

pub async fn pay_on_page(visitor: &Visitor, pending: &Value, card: &str) {
    let answer = visitor.post_form(text(&pending["pay_url"]), &format!("card={card}")).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
}

async fn booking_paid_by_late_money(visitor: &Visitor, booking: &Value) -> Value {
    let seen = visitor.wait_for_money(booking, "MOVED").await;
    assert_eq!(seen["state"], "EXPIRED", "the expired booking stays expired");
    let fresh = visitor.booking(&json!({ "id": seen["moved_to"] })).await;
    assert_eq!((&fresh["state"], &fresh["money"]), (&json!("CONFIRMED"), &json!("PAID")), "{fresh}");
    assert_eq!(fresh["total"], seen["total"]);
    fresh
}

fn seats(booking: &Value) -> Vec<u64> {
    booking["seats"].as_array().expect("seats").iter().filter_map(|line| line["seat"].as_u64()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn late_payment_takes_the_same_seats_once_and_can_be_refunded() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let booking = open_payment(&ann, &[90, 91], None).await;
    expire(&world, &booking).await;
    ann.wait_for_seat(90, '0').await;
    // Three webhooks, and one more sent by the test.
    pay_on_page(&ann, &booking, "duplicate_webhooks").await;
    let fresh = booking_paid_by_late_money(&ann, &booking).await;
    assert_ne!(fresh["reference"], booking["reference"]);
    assert_eq!((seats(&fresh), &fresh["buyer"]), (vec![90, 91], &booking["buyer"]));
    ann.wait_for_seat(90, '2').await;
    world.wait_until_books_balance().await;
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 2, "one new booking for all webhooks");
    wait_until("the tickets and a notice are sent", || async { world.mails().len() == 2 }).await;
    assert!(world.mails().iter().any(|mail| mail.contains("Subject: Your payment came late")));
    assert_mails_link_without_cookie(&world);
    let seen = ann.booking(&booking).await;
    let steps: Vec<_> = seen["steps"].as_array().expect("steps").iter().map(|step| text(&step["step"])).collect();
    assert_eq!(steps, ["paying", "expired", "paid_late", "moved"]);

    // The effect runs again, as after a crash before it was marked done.
    let again = "INSERT INTO outbox (booking_id, effect, run_after, created_at)
                 SELECT id, 'place_late', now(), now() FROM bookings";
    world.execute(again).await;
    world.wait_until_books_balance().await;
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 2);

    // The gateway has the money under the first booking; the refund works all the same.
    assert_eq!(ann.cancel(&fresh, Some(&[91])).await.0, StatusCode::OK);
    assert_eq!(ann.cancel(&fresh, None).await.0, StatusCode::OK);
    ann.wait_for_money(&fresh, "REFUNDED").await;
    world.wait_until_books_balance().await;
    assert_eq!(world.count("SELECT sum(amount_minor + fee_minor)::bigint FROM refunds").await, 2 * PRICE);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_payment_takes_no_held_or_sold_seat() {
    let world = World::start(1, &[]).await;
    for (seat, is_sold) in [(20, true), (40, false)] {
        let (ann, bob) = (world.visitor(), world.visitor());
        let booking = open_payment(&ann, &[seat, seat + 1], Some("same_seats")).await;
        expire(&world, &booking).await;
        if is_sold {
            bob.buy_seats(&[seat + 1], "tok_paid").await;
        } else {
            bob.hold(&[seat + 1]).await;
        }
        pay_on_page(&ann, &booking, "paid").await;
        let seen = ann.wait_for_money(&booking, "REFUNDED").await;
        assert_eq!((&seen["state"], &seen["moved_to"]), (&json!("EXPIRED"), &Value::Null));
        assert_eq!(seen["refunds"][0]["amount"]["minor"], 2 * PRICE, "a full refund: {seen}");
        ann.wait_for_seat(seat as usize, '0').await;
    }
    world.wait_until_books_balance().await;
    wait_until("the mails are sent", || async {
        world.mails().iter().filter(|mail| mail.contains("Subject: Your payment came too late")).count() == 2
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_payment_takes_adjacent_seats_at_the_same_price_if_chosen() {
    let (world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let booking = open_payment(&ann, &[128, 129], Some("same_or_better")).await;
    expire(&world, &booking).await;
    bob.buy_seats(&[129], "tok_paid").await;
    pay_on_page(&ann, &booking, "paid").await;
    let fresh = booking_paid_by_late_money(&ann, &booking).await;
    assert_eq!(seats(&fresh), [127, 128], "adjacent and nearest");
    ann.wait_for_seat(127, '2').await;
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_payment_is_refunded_if_the_seats_are_not_wanted() {
    let world = World::start(1, &[]).await;
    // Chosen at checkout.
    let ann = world.visitor();
    let said_so = open_payment(&ann, &[1], Some("refund")).await;
    expire(&world, &said_so).await;
    pay_on_page(&ann, &said_so, "paid").await;
    ann.wait_for_money(&said_so, "REFUNDED").await;
    // The buyer has another hold.
    let ben = world.visitor();
    let again = open_payment(&ben, &[2], None).await;
    expire(&world, &again).await;
    ben.buy_seats(&[3], "tok_paid").await;
    pay_on_page(&ben, &again, "paid").await;
    ben.wait_for_money(&again, "REFUNDED").await;
    // Cancelled, and the payment could not be voided.
    let cem = world.visitor();
    let cancelled = open_payment(&cem, &[4], Some("same_or_better")).await;
    pay_on_page(&cem, &cancelled, "late_webhook").await;
    let (status, answer) = cem.cancel(&cancelled, None).await;
    assert_eq!((status, &answer["state"]), (StatusCode::OK, &json!("CANCELLED")), "charged a second later: {answer}");
    cem.wait_for_money(&cancelled, "REFUNDED").await;
    let unknown = json!({ "show": world.show, "hold": new_id(), "buyer": { "name": "A", "email": "a@b.org" },
                          "if_late": "whatever" });
    assert_eq!(cem.call(Method::POST, "/api/v1/bookings", unknown).await.0, StatusCode::BAD_REQUEST);
    world.wait_until_books_balance().await;
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 1, "Ben's other booking");
}

#[tokio::test(flavor = "multi_thread")]
async fn last_choice_for_late_payments_applies() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, hold) = ann.hold(&[9]).await;
    let buyer = json!({ "name": "Ann Example", "email": "ann@example.org" });
    for if_late in ["refund", "same_seats"] {
        let request_body = json!({ "show": world.show, "hold": hold["id"], "buyer": buyer, "if_late": if_late });
        expect_answer(ann.call(Method::POST, "/api/v1/bookings", request_body).await, StatusCode::CREATED);
    }
    let choices = "SELECT count(*) FROM late_wishes WHERE if_late = 'same_seats'";
    assert_eq!(world.count(choices).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_is_refunded_if_the_show_started_meanwhile() {
    let (mut world, ann) = World::with_visitor(1, &[]).await;
    let booking = open_payment(&ann, &[50], Some("same_or_better")).await;
    // The show starts while the payer is on the gateway's page, and the server is dead.
    world.kill(0).await;
    let statements = [
        "UPDATE shows SET starts_at = now() - interval '1 second'",
        "UPDATE payments SET updated_at = now() - interval '1 hour'",
    ];
    pay_on_page(&ann, &booking, "paid").await;
    for statement in statements {
        world.execute(statement).await;
    }
    let other = world.add_server(&[]).await;
    let ann = ann.moved_to(&world, other);
    let seen = ann.wait_for_money(&booking, "REFUNDED").await;
    assert_eq!(seen["state"], "CANCELLED");
    assert_eq!(seen["refunds"][0]["amount"]["minor"], PRICE, "a full refund: {seen}");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_that_ended_before_a_repeat_after_a_crash_gives_no_seat() {
    let (world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let booking = open_payment(&ann, &[20], Some("same_seats")).await;
    expire(&world, &booking).await;
    // A relay held the seat for the late money, and ended before the sale. Then the hold ended too.
    let id = text(&booking["id"]);
    let attempt = LockAttempt {
        asked: RequestIdentity { id: platform::ids::derived_id(&["late", id, "20"]), digest: 0 },
        owner: format!("late-{}", id.replace('-', "")),
        selection: Selection::of_seats(vec![20]),
        takes_kept: false,
    };
    let store = rowlock::start::lock_store(world.setting("REDIS_URL"), world.setting("REDIS_PREFIX")).await;
    let store = store.expect("Redis answers").1;
    let limits = HoldLimits { per_person: 10, length_ms: 1_000, life_ms: 1_000 };
    let answers = store.lock(world.show, limits, &[attempt]).await.expect("the store answers");
    assert!(answers[0].is_ok(), "{answers:?}");
    ann.wait_for_seat(20, '1').await;
    ann.wait_for_seat(20, '0').await;
    let hold = expect_answer(bob.hold(&[20]).await, StatusCode::CREATED);
    pay_on_page(&ann, &booking, "paid").await;
    ann.wait_for_money(&booking, "REFUNDED").await;
    assert_eq!(bob.current_hold().await["id"], hold["id"], "the live hold keeps its seat");
    world.wait_until_books_balance().await;
}
