//! From a hold to a ticket or a refund, with the simulator as the gateway.

use domain::seats::SeatState;
use seats::seat_locks::{FencedSelection, SeatLocks, Selection};

use crate::faults::gateway_proxy::GatewayProxy;
use crate::prelude::*;
use crate::redis_process::LiveMap;

#[tokio::test(flavor = "multi_thread")]
async fn immediate_payment_issues_a_ticket_sends_a_mail_and_sells_the_seat() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let booking = ann.check_out(&[46, 47]).await.1;
    assert_eq!(booking["total"]["minor"], 2 * PRICE);
    let (status, paid) = ann.pay(&booking, Some("tok_paid")).await;
    assert_eq!((status, &paid["state"], &paid["money"]), (StatusCode::OK, &json!("CONFIRMED"), &json!("PAID")));
    assert_eq!(paid["ticket_url"], format!("/bookings/{}/ticket", text(&booking["id"])));
    ann.wait_for_seat(46, '2').await;
    wait_until("the mail is sent", || async { world.mails().len() == 1 }).await;
    assert!(world.mails()[0].contains("ann@example.org"));
    let (_, events) = ann.get(&format!("/api/v1/bookings/{}/events", text(&booking["id"]))).await;
    assert_eq!(event_names(&events), ["created", "hold_taken", "payment_submitted", "payment_succeeded", "seats_sold"]);
    // A second payment with a new key changes nothing and gets the confirmed booking.
    expect_state(ann.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
}

#[tokio::test(flavor = "multi_thread")]
async fn declined_card_releases_the_claims_and_keeps_the_hold() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let booking = ann.check_out(&[3]).await.1;
    let declined = expect_state(ann.pay(&booking, Some("tok_declined")).await, StatusCode::OK, "CANCELLED");
    assert_eq!(declined["money"], "FAILED");
    let seen = ann.booking(&booking).await;
    let last = seen["steps"].as_array().and_then(|steps| steps.last()).expect("a step");
    assert_eq!((&last["step"], &last["why"]), (&json!("failed"), &json!("declined")), "{seen}");
    assert!(seen["expires_at_theatre"].is_null(), "nothing is left to pay: {seen}");
    world
        .wait_for_count("the claims are released", "SELECT count(*) FROM seat_claims WHERE state <> 'released'", 0)
        .await;
    assert_eq!(world.visitor().hold(&[3]).await.0, StatusCode::LOCKED);
    ann.release_kept_hold(&declined).await;
    ann.wait_for_seat(3, '0').await;
    assert_eq!(world.visitor().hold(&[3]).await.0, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_payments_end_by_webhook() {
    let world = World::start(1, &[]).await;
    for (token, state, seat, seen) in
        [("tok_pending_paid", "CONFIRMED", 5, '2'), ("tok_pending_failed", "CANCELLED", 6, '1')]
    {
        let visitor = world.visitor();
        let (hold, booking) = visitor.check_out(&[seat]).await;
        let pending = expect_state(visitor.pay(&booking, Some(token)).await, StatusCode::OK, "PAYMENT_PENDING");
        let [held_until, paid_until] = [&hold, &pending].map(|of| of["expires_at_ms"].as_i64().expect("milliseconds"));
        assert_eq!(paid_until - held_until, 120_000, "submitting extends the hold by two minutes");
        visitor.wait_for_booking(&booking, state).await;
        visitor.wait_for_seat(seat as usize, seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn buyer_without_a_token_pays_on_the_gateways_page() {
    let (_world, ann) = World::with_visitor(1, &[]).await;
    let booking = ann.check_out(&[8]).await.1;
    let pending = expect_state(ann.pay(&booking, None).await, StatusCode::OK, "PAYMENT_PENDING");
    let answer = ann.post_form(text(&pending["pay_url"]), "card=paid").await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let back = answer.headers()["location"].to_str().expect("text").to_owned();
    // With the parameter the booking's page knows that a card was submitted.
    assert_eq!(back, format!("{}/bookings/{}?submitted=1", ann.base, text(&booking["id"])));
    ann.wait_for_booking(&booking, "CONFIRMED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn free_booking_is_confirmed_and_cancelled_without_a_gateway_call() {
    let gateway = GatewayProxy::open(Arc::default()).await;
    let (world, ann) = World::with_visitor(1, &[("SIMULATOR_URL", gateway.url.as_str())]).await;
    let with_card_limit = insert_show(&world.pg, 300_000, 24 * 3600).await;
    world.execute("UPDATE shows SET prices = '{\"gold\": 0}'").await;
    world.run(sqlx::query("UPDATE shows SET per_instrument = 2 WHERE id = $1").bind(with_card_limit)).await;
    let limited = ann.at_show(with_card_limit);
    let mut sold = Vec::new();
    // As many as the declined cards after which a visitor must wait.
    for (visitor, seat, token) in [
        (&ann, 1, Some("tok_paid")),
        (&ann, 5, Some("tok_declined")),
        (&ann, 9, None),
        (&limited, 1, Some("tok_paid")),
        (&limited, 5, Some("tok_paid")),
    ] {
        let hold = expect_answer(visitor.hold(&[seat, seat + 1]).await, StatusCode::CREATED);
        assert_eq!(hold["total"]["minor"], 0, "{hold}");
        let booking = expect_state(visitor.buy(&hold, token).await, StatusCode::CREATED, "CONFIRMED");
        assert_eq!((&booking["money"], &booking["pay_url"]), (&json!("PAID"), &Value::Null), "{booking}");
        visitor.wait_for_seat(seat as usize, '2').await;
        sold.push(booking);
    }
    let checked_out = ann.check_out(&[13]).await.1;
    sold.push(expect_state(ann.pay(&checked_out, None).await, StatusCode::OK, "CONFIRMED"));
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 11);

    expect_state(ann.cancel(&sold[0], Some(&[1])).await, StatusCode::OK, "CONFIRMED");
    for booking in &sold[..2] {
        expect_state(ann.cancel(booking, None).await, StatusCode::OK, "CANCELLED");
        ann.wait_for_money(booking, "REFUNDED").await;
    }
    world.wait_for_empty_outbox().await;
    assert_eq!(gateway.simulator.ledger.all().len(), 0);
    for booking in &sold {
        let id = Uuid::parse_str(text(&booking["id"])).expect("an id");
        assert_eq!(gateway.status_queries(id), 0, "{booking}");
    }
    for rows in ["SELECT count(*) FROM declined_payments", "SELECT count(*) FROM payment_instruments"] {
        assert_eq!(world.count(rows).await, 0, "{rows}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_keys_and_twenty_requests_are_one_charge() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let at_other = ann.moved_to(&world, 1);
    let booking = ann.check_out(&[9]).await.1;
    let answers = join_all((0..20).map(|number| {
        let visitor = if number % 2 == 0 { &ann } else { &at_other };
        visitor.pay(&booking, Some("tok_paid"))
    }))
    .await;
    for (status, answer) in &answers {
        assert!(*status == StatusCode::OK || *status == StatusCode::CONFLICT, "{status} {answer}");
    }
    ann.wait_for_booking(&booking, "CONFIRMED").await;
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'payment_submitted'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_changed_after_checkout_are_not_charged_without_a_new_checkout() {
    let (_world, ann) = World::with_visitor(1, &[]).await;
    let (hold, booking) = ann.check_out(&[70]).await;
    ann.change(&hold, &[71], &[]).await;
    expect_problem(ann.pay(&booking, Some("tok_paid")).await, StatusCode::CONFLICT, "wrong_state");
    let (_, revised) = ann.book(&hold).await;
    assert_eq!((&revised["id"], &revised["total"]["minor"]), (&booking["id"], &json!(2 * PRICE)));
    assert_eq!(ann.pay(&revised, Some("tok_paid")).await.1["state"], "CONFIRMED");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_hold_buys_a_seat_that_was_sold_and_returned_since() {
    let world = World::start(1, &[]).await;
    // A batch commits the first purchase. The second has a wish for late money, and is committed alone.
    for (seat, if_late) in [(40, None), (50, Some("refund"))] {
        let (ann, bob) = (world.visitor(), world.visitor());
        let hold = expect_answer(ann.hold(&[seat]).await, StatusCode::CREATED);
        let sold = bob.buy_seats(&[seat + 1], "tok_paid").await;
        expect_state(bob.cancel(&sold, None).await, StatusCode::OK, "CANCELLED");
        ann.wait_for_seat(seat as usize + 1, '0').await;
        let hold = expect_answer(ann.change(&hold, &[seat + 1], &[]).await, StatusCode::OK);
        let mut order = ann.purchase_body(&hold, Some("tok_paid"));
        if let Some(if_late) = if_late {
            order["if_late"] = json!(if_late);
        }
        let answer = ann.call(Method::POST, "/api/v1/bookings", order).await;
        let bought = expect_state(answer, StatusCode::CREATED, "CONFIRMED");
        assert_eq!(bought["total"]["minor"], 2 * PRICE, "{bought}");
    }
    world.wait_for_empty_outbox().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_booking_is_not_found() {
    let (_world, [ann, eve]) = World::with_visitors(1, &[]).await;
    let booking = ann.check_out(&[80]).await.1;
    let id = text(&booking["id"]);
    assert_eq!(eve.get(&format!("/api/v1/bookings/{id}")).await.0, StatusCode::NOT_FOUND);
    assert_eq!(eve.get(&format!("/api/v1/bookings/{id}/events")).await.0, StatusCode::NOT_FOUND);
    assert_eq!(eve.pay(&booking, Some("tok_paid")).await.0, StatusCode::NOT_FOUND);
    let hold = json!({ "id": platform::ids::derived_id(&["not hers"]) });
    assert_eq!(eve.book(&hold).await.0, StatusCode::GONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_after_the_deadline_is_refunded_and_reported() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (_, hold) = ann.hold(&[90]).await;
    let buyer = json!({ "name": "Ann Example", "email": "ann@example.org" });
    let request_body = json!({ "show": world.show, "hold": hold["id"], "buyer": buyer, "if_late": "refund" });
    let (_, booking) = ann.call(Method::POST, "/api/v1/bookings", request_body).await;
    // The page is open when the booking expires, and the payment is voided.
    let (_, pending) = ann.pay(&booking, None).await;
    let expire =
        "UPDATE bookings SET expires_at = now() - interval '1 second', version = version + 1 WHERE id = $1::uuid";
    world.run(sqlx::query(expire).bind(text(&booking["id"]))).await;
    let overdue = "UPDATE payments SET updated_at = now() - interval '1 hour'";
    world.execute(overdue).await;
    ann.wait_for_booking(&booking, "EXPIRED").await;
    ann.wait_for_seat(90, '0').await;
    // A late success event with a valid signature.
    let gateway_says = json!({
        "id": "evt_late", "type": "payment.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": PRICE, "currency": "EUR",
                     "status": "succeeded", "refunded_minor": 0 },
    });
    let outcome = deliver(&ann, &gateway_says).await;
    assert_eq!(outcome, (StatusCode::OK, json!({ "outcome": "applied" })), "{pending}");
    let seen = ann.wait_for_money(&booking, "REFUNDING").await;
    assert_eq!(seen["state"], "EXPIRED", "the expired booking stays expired");
    assert_eq!(deliver(&ann, &gateway_says).await.1, json!({ "outcome": "duplicate" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_lock_sells_no_seat_twice_and_costs_only_that_seat() {
    let (world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let sold = ann.check_out(&[100]).await.1;
    assert_eq!(ann.pay(&sold, Some("tok_paid")).await.1["state"], "CONFIRMED");
    ann.wait_for_seat(100, '2').await;
    world.wait_for_empty_outbox().await;
    world.mark_seat_free_in_redis(100).await;
    let (status, hold) = bob.hold(&[100, 101]).await;
    assert_eq!(status, StatusCode::CREATED, "Redis has lost the sale");
    let (_, booking) = bob.book(&hold).await;
    let refusal = expect_problem(bob.pay(&booking, Some("tok_paid")).await, StatusCode::CONFLICT, "seats_taken");
    assert_eq!(refusal["seats"], json!([{ "seat": 100, "label": "F1", "state": "BOOKED" }]));
    // The map is correct again, and Bob can still buy his other seat.
    bob.wait_for_seat(100, '2').await;
    bob.wait_for_seat(101, '1').await;
    assert_eq!(world.visitor().hold(&[100]).await.0, StatusCode::CONFLICT);
    let (_, revised) = bob.book(&hold).await;
    assert_eq!(bob.pay(&revised, Some("tok_paid")).await.1["state"], "CONFIRMED");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 2, "a refused payment is not charged");
}

#[tokio::test(flavor = "multi_thread")]
async fn returned_seats_that_a_late_map_update_booked_are_freed_by_the_next_comparison() {
    let (mut world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let returned = ann.buy_seats(&[100, 101, 103], "tok_paid").await;
    expect_state(ann.cancel(&returned, None).await, StatusCode::OK, "CANCELLED");
    world.wait_for_empty_outbox().await;
    let (hold, owner, fence): (Uuid, String, i64) = sqlx::query_as("SELECT hold_id, owner, fence FROM bookings")
        .fetch_one(&world.pg)
        .await
        .expect("the only booking");
    bob.buy_seats(&[102], "tok_paid").await;
    world.wait_for_empty_outbox().await;
    world.execute("UPDATE shows SET blocked = '{103}'").await;
    let mut watching = LiveMap::open(&bob).await;
    let store = rowlock::start::lock_store(world.setting("REDIS_URL"), world.setting("REDIS_PREFIX")).await;
    let late = FencedSelection { hold, owner, fence, selection: Selection::of_seats(vec![100, 101, 103]) };
    store.expect("Redis answers").1.book(world.show, &late).await.expect("the seats are booked");
    watching.wait_for_seat(100, SeatState::Booked).await;
    // A new server compares a show with its claims when it first uses it.
    let fresh = world.add_server(&[]).await;
    bob.moved_to(&world, fresh).seat_states().await;
    watching.wait_for_seat(100, SeatState::Available).await;
    let states = bob.seat_states().await;
    assert_eq!(&states[100..104], "0023", "the sold seat stays sold, and the withdrawn seat is blocked");
    expect_answer(ann.hold(&[100, 101]).await, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_checkouts_from_two_tabs_create_one_booking() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let at_other = ann.moved_to(&world, 1);
    let (_, hold) = ann.hold(&[110]).await;
    let (one, other) = tokio::join!(ann.book(&hold), at_other.book(&hold));
    assert_eq!((one.0, other.0), (StatusCode::CREATED, StatusCode::CREATED), "{} {}", one.1, other.1);
    assert_eq!(one.1["id"], other.1["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_refused_before_it_started_leaves_the_hold_unchanged() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (hold, booking) = ann.check_out(&[120]).await;
    for token in ["", "a\u{0}b", &"t".repeat(256)] {
        let (status, refusal) = ann.pay(&booking, Some(token)).await;
        assert_eq!((status, text(&refusal["code"])), (StatusCode::BAD_REQUEST, "malformed"), "{token:?}");
    }
    let path = format!("/api/v1/bookings/{}/confirm", text(&booking["id"]));
    let buyer = json!({ "name": "Ann Example", "email": "ann@example.org" });
    let again = json!({ "show": world.show, "hold": hold["id"], "buyer": buyer });
    assert_eq!(ann.call_with_key(Method::POST, "/api/v1/bookings", again, "used").await.0, StatusCode::CREATED);
    let reused = ann.call_with_key(Method::POST, &path, json!({ "payment_token": "tok_paid" }), "used").await;
    assert_eq!(reused.0, StatusCode::UNPROCESSABLE_ENTITY);
    for (add, remove) in [([121].as_slice(), [].as_slice()), (&[], &[121])] {
        let (status, changed) = ann.change(&hold, add, remove).await;
        assert_eq!((status, &changed["expires_at_ms"]), (StatusCode::OK, &hold["expires_at_ms"]));
    }
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
}

pub async fn deliver(visitor: &Visitor, event: &Value) -> (StatusCode, Value) {
    let body = event.to_string();
    let signature = World::sign(&body, platform::clock::now().0 / 1_000);
    let request = visitor.client.post(format!("{}/api/v1/webhooks/payments/simulator", visitor.base));
    let request = request.header("payment-signature", signature).header("content-type", "application/json");
    RawAnswer::of(request.body(body)).await.into_json()
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_extended_after_checkout_can_be_paid_until_its_new_expiry() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let booking = ann.check_out(&[60, 61]).await.1;
    let (_, hold) = ann.get(&format!("/api/v1/shows/{}/hold", world.show)).await;
    let path = format!("/api/v1/shows/{}/holds/{}/extend", world.show, text(&hold["id"]));
    let longer = expect_answer(ann.call_with_key(Method::POST, &path, Value::Null, "longer").await, StatusCode::OK);
    let kept = ann.booking(&booking).await;
    assert_eq!(kept["expires_at_ms"], longer["expires_at_ms"], "{kept}");
    assert!(kept["expires_at_ms"].as_i64() > booking["expires_at_ms"].as_i64(), "the booking is extended");
    // A retry gets the same answer, and adds no event.
    let events = format!("/api/v1/bookings/{}/events", text(&booking["id"]));
    assert_eq!(ann.call_with_key(Method::POST, &path, Value::Null, "longer").await.1, longer);
    assert_eq!(event_names(&ann.get(&events).await.1), ["created", "hold_taken", "kept_longer"]);
    // Paid from this replica's cached booking, which has changed since.
    expect_state(ann.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_of_an_ended_booking_cannot_be_extended() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let booking = ann.check_out(&[62]).await.1;
    let (_, hold) = ann.get(&format!("/api/v1/shows/{}/hold", world.show)).await;
    let expire = "UPDATE bookings SET state = 'EXPIRED', version = version + 1 WHERE id = $1::uuid";
    world.run(sqlx::query(expire).bind(text(&booking["id"]))).await;
    let path = format!("/api/v1/shows/{}/holds/{}/extend", world.show, text(&hold["id"]));
    expect_problem(ann.call(Method::POST, &path, Value::Null).await, StatusCode::GONE, "hold_expired");
}

pub fn event_names(events: &Value) -> Vec<&str> {
    events.as_array().expect("a list").iter().map(|event| text(&event["event"])).collect()
}
