//! Refunds that Stripe has accepted, until they succeed or fail; effects that failed too often and are parked, and the
//! decisions about them.

use selling::bookings::{retry_parked, settle_parked};
use selling::outbox;
use simulator::payment::{NewPayment, Payment, Protocol, RefundStatus, StripeTerms};

use crate::box_office::pages::send;
use crate::box_office::{acts, booking_path, hired, hold_seats, seller_with_open_till, two_theatres};
use crate::faults::mail_server::MailServer;
use crate::gateways::{GatewayServer, KEY, SECRET};
use crate::organiser::{organiser, post_ok};
use crate::prelude::*;
use crate::sale::deliver;
use crate::sql_guards::{insert_booking, insert_payment};

async fn world_with_stripe() -> (World, GatewayServer) {
    let till = GatewayServer::closed(KEY, SECRET);
    till.open().await;
    (world_with_gateways("stripe", &till).await, till)
}

/// A world with these gateways, whose Stripe is `till`.
async fn world_with_gateways(gateways: &str, till: &GatewayServer) -> World {
    let settings = [
        ("PAYMENT_GATEWAYS", gateways),
        ("STRIPE_URL", &*till.url),
        ("STRIPE_SECRET_KEY", KEY),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
    ];
    let world = World::start(1, &settings).await;
    till.simulator.set_stripe_endpoint(format!("{}/api/v1/webhooks/payments/stripe", world.servers[0].url));
    world
}

/// A sale whose refund is pending, because Stripe holds refunds back.
async fn sale_with_pending_refund() -> (World, GatewayServer, Visitor, Value) {
    let (world, till) = world_with_stripe().await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1], "pm_paid").await;
    till.simulator.ledger.hold_refunds(true);
    ann.cancel(&booking, None).await;
    world.wait_for_count("the refund is pending", "SELECT count(*) FROM refund_waits", 1).await;
    world.wait_for_empty_outbox().await;
    (world, till, ann, booking)
}

/// A sale whose refund has succeeded, and whose webhooks have arrived.
async fn refunded_sale() -> (World, GatewayServer, Visitor, Value) {
    let (world, till) = world_with_stripe().await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1], "pm_paid").await;
    ann.cancel(&booking, None).await;
    ann.wait_for_money(&booking, "REFUNDED").await;
    world.wait_for_empty_outbox().await;
    world.wait_for_count("its news are noted", "SELECT count(*) FROM webhook_events", 2).await;
    (world, till, ann, booking)
}

async fn retry(world: &World, parked: i64) {
    let why = "The buyer has another card there.";
    retry_parked(&world.pg, parked, why, platform::clock::now()).await.expect("tried again");
}

fn payment(till: &GatewayServer, booking: &Value) -> Payment {
    till.payment(&format!("pay:{}", text(&booking["id"])))
}

fn refund_states(till: &GatewayServer, booking: &Value) -> Vec<RefundStatus> {
    payment(till, booking).refunds.iter().map(|refund| refund.status).collect()
}

/// Returns where the refund is reported as failed: API, buyer's page, staff page, and the booking's entry in a list.
async fn reports_failed_refund(seller: &Browser, buyer: &Visitor, booking: &Value) -> [bool; 4] {
    let id = text(&booking["id"]);
    let view = buyer.booking(booking).await;
    let (_, own) = buyer.page(&format!("/bookings/{id}")).await;
    // The island's texts contain those of other states too, so only the headline counts.
    let headline = own.split("<h1").nth(1).and_then(|rest| rest.split("</h1>").next()).unwrap_or_default();
    let (status, at_counter) = seller.page(&format!("/staff/aurora/box-office/bookings/{id}")).await;
    assert_eq!(status, StatusCode::OK, "{at_counter}");
    let list =
        expect_page(seller.page("/staff/aurora/box-office/bookings?q=ann%40example").await, StatusCode::OK, &[id]);
    [
        view["refunds"][0]["came_back"] == true,
        headline.contains("Your bank returned the refund"),
        at_counter.contains("data-testid=\"came-back\"") && at_counter.contains("Refund came back"),
        list.contains("Refund returned"),
    ]
}

async fn make_due(world: &World) {
    world.execute("UPDATE refund_waits SET look_at = now() - interval '1 second'").await;
}

async fn age_and_wait_until_parked(world: &World) {
    let old = "UPDATE refund_waits SET since = now() - interval '31 days', look_at = now() - interval '1 second'";
    world.execute(old).await;
    let query = "SELECT count(*) FROM outbox WHERE parked_why LIKE 'refund_overdue%'";
    world.wait_for_count("the refund is parked", query, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_refund_is_settled_on_success_and_blocks_nothing() {
    let (world, till) = world_with_stripe().await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[10, 11, 12], "pm_paid").await;
    assert_eq!(booking["state"], "CONFIRMED", "{booking}");
    till.simulator.ledger.hold_refunds(true);
    for (seat, waiting) in [(10, 1), (11, 2)] {
        ann.cancel(&booking, Some(&[seat])).await;
        world.wait_for_count("the refund is pending", "SELECT count(*) FROM refund_waits", waiting).await;
        ann.wait_for_seat(seat as usize, '0').await;
        world.wait_for_empty_outbox().await;
    }
    ann.cancel(&booking, Some(&[12])).await;
    world.wait_for_count("all refunds are pending", "SELECT count(*) FROM refund_waits", 3).await;
    assert_eq!(ann.booking(&booking).await["money"], "REFUNDING");
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await, 0);

    // Stripe sends a webhook for one of them, and that one is settled.
    let id = payment(&till, &booking).id;
    till.simulator.set_refund_status(&id, 1, RefundStatus::Succeeded).expect("the webhook is sent");
    let query = "SELECT count(*) FROM refunds WHERE state = 'settled' AND number = 2";
    world.wait_for_count("the second is settled", query, 1).await;
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'requested'").await, 2);

    // Queried, and still pending.
    make_due(&world).await;
    world.wait_for_count("the refunds are queried", "SELECT count(*) FROM refund_waits WHERE look_at > now()", 2).await;
    world.wait_for_empty_outbox().await;
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'requested'").await, 2);

    for place in [0, 2] {
        till.simulator.ledger.set_refund_status(&id, place, RefundStatus::Succeeded).expect("the refund exists");
    }
    make_due(&world).await;
    ann.wait_for_money(&booking, "REFUNDED").await;
    world.wait_for_count("all are settled", "SELECT count(*) FROM refunds WHERE state = 'settled'", 3).await;
    world.wait_for_empty_outbox().await;
    assert_eq!(world.count("SELECT count(*) FROM refund_waits").await, 0);
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Succeeded; 3], "each was requested once");
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_a_cancelled_show_does_not_reload_for_pending_refunds() {
    let (world, till) = world_with_stripe().await;
    let mut olga = organiser(&world).await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1], "pm_paid").await;
    till.simulator.ledger.hold_refunds(true);
    post_ok(&mut olga, &format!("/programme/{}/cancel", world.show), json!({ "reason": "The roof leaks." })).await;
    let page = async || {
        let path = format!("/staff/aurora/shows/{}", world.show);
        let page = RawAnswer::of(olga.visitor().request(Method::GET, &path)).await;
        (page.optional_header("refresh").to_owned(), page.body)
    };
    assert_eq!(page().await.0, format!("2; url=/staff/aurora/shows/{}", world.show));
    world.wait_for_count("the refund is pending", "SELECT count(*) FROM refund_waits", 1).await;
    wait_until("every booking is undone", || async { page().await.0.is_empty() }).await;
    let (_, shown) = page().await;
    assert!(shown.contains("Refunds the bank has not confirmed yet: 1"), "{shown}");
    let id = payment(&till, &booking).id;
    till.simulator.set_refund_status(&id, 0, RefundStatus::Succeeded).expect("the webhook is sent");
    ann.wait_for_money(&booking, "REFUNDED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_pending_for_a_month_is_parked() {
    let (world, till, ann, booking) = sale_with_pending_refund().await;
    age_and_wait_until_parked(&world).await;
    // It succeeds after all, and must not be paid again.
    let id = payment(&till, &booking).id;
    till.simulator.set_refund_status(&id, 0, RefundStatus::Succeeded).expect("the webhook is sent");
    ann.wait_for_money(&booking, "REFUNDED").await;
    assert_eq!(world.count("SELECT count(*) FROM outbox").await, 0, "it waits no more");
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Succeeded]);
}

#[tokio::test(flavor = "multi_thread")]
async fn resent_refund_that_succeeds_after_a_month_is_not_parked_any_more() {
    let (world, till, _, booking) = refunded_sale().await;
    let id = payment(&till, &booking).id;
    till.simulator.set_refund_status(&id, 0, RefundStatus::Failed).expect("the webhook is sent");
    world.wait_for_count("all three are noted", "SELECT count(*) FROM webhook_events", 5).await;
    let parked = outbox::parked(&world.pg, None).await.expect("the list").remove(0);
    till.simulator.ledger.hold_refunds(true);
    retry(&world, parked.id).await;
    world.wait_for_count("the refund is pending", "SELECT count(*) FROM refund_waits", 1).await;
    world.wait_for_empty_outbox().await;
    age_and_wait_until_parked(&world).await;
    till.simulator.set_refund_status(&id, 1, RefundStatus::Succeeded).expect("the webhook is sent");
    world.wait_for_empty_outbox().await;
    assert_eq!(world.count("SELECT count(*) FROM refund_waits").await, 0);
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Failed, RefundStatus::Succeeded]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_refund_stays_parked_despite_a_late_success_event() {
    let (world, till, ann, booking) = sale_with_pending_refund().await;
    let id = payment(&till, &booking).id;
    till.simulator.set_refund_status(&id, 0, RefundStatus::Failed).expect("the webhook is sent");
    world.wait_for_count("the refund is parked", "SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL", 1).await;
    // The earlier event arrives after the last one.
    till.simulator.set_refund_status(&id, 0, RefundStatus::Succeeded).expect("the webhook is sent");
    ann.wait_for_money(&booking, "REFUNDED").await;
    assert_eq!(world.count("SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_that_fails_after_it_was_settled_is_parked_once() {
    let (world, till, ann, booking) = refunded_sale().await;

    // The card is closed. Stripe sends three events of different types.
    let id = payment(&till, &booking).id;
    till.simulator.set_refund_status(&id, 0, RefundStatus::Failed).expect("the webhook is sent");
    world.wait_for_count("all three are noted", "SELECT count(*) FROM webhook_events", 5).await;
    let list = outbox::parked(&world.pg, None).await.expect("the list");
    assert_eq!(list.len(), 1, "{list:?}");
    assert_eq!((list[0].effect.as_str(), list[0].booking.to_string().as_str()), ("refund", text(&booking["id"])));
    assert!(list[0].amount.is_some() && list[0].why.contains("expired_or_canceled_card"), "{list:?}");
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'refund_failed'").await, 1);
    let seller = hired(&world, "ann@example.org", "box_office").await;
    assert_eq!(reports_failed_refund(&seller, &ann, &booking).await, [true; 4]);

    retry(&world, list[0].id).await;
    world.wait_for_empty_outbox().await;
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Failed, RefundStatus::Succeeded]);
    assert_eq!(ann.booking(&booking).await["money"], "REFUNDED");
    assert_eq!(reports_failed_refund(&seller, &ann, &booking).await, [false; 4]);

    // It fails too. Then staff pay it otherwise, and Stripe gets no third refund.
    till.simulator.set_refund_status(&id, 1, RefundStatus::Failed).expect("the webhook is sent");
    world.wait_for_count("the refund is parked", "SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL", 1).await;
    let parked = outbox::parked(&world.pg, None).await.expect("the list").remove(0);
    settle_parked(&world.pg, parked.id, "Paid by bank transfer.", platform::clock::now()).await.expect("settled");
    world.wait_for_count("all is noted", "SELECT count(*) FROM webhook_events", 9).await;
    assert_eq!(world.count("SELECT count(*) FROM outbox").await, 0);
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Failed, RefundStatus::Failed]);
    assert_eq!(world.count("SELECT count(*) FROM refund_failures").await, 2);
    assert_eq!(reports_failed_refund(&seller, &ann, &booking).await, [false; 4]);
    let steps = ann.booking(&booking).await["steps"].clone();
    let steps: Vec<&str> = steps.as_array().expect("steps").iter().map(|step| text(&step["step"])).collect();
    let expected = ["refunded", "came_back", "sent_again", "came_back", "paid_otherwise"];
    assert_eq!(steps[steps.len() - expected.len()..], expected, "{steps:?}");
    // The gateway does not know of the bank transfer.
    world.end_with_known_findings(&["money REFUNDED; 1250 were taken and 0 given back"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_that_fails_without_a_webhook_is_parked_and_not_repeated() {
    let (world, till, ann, booking) = sale_with_pending_refund().await;
    let id = payment(&till, &booking).id;
    till.simulator.ledger.set_refund_status(&id, 0, RefundStatus::Failed).expect("the refund exists");
    make_due(&world).await;
    world.wait_for_count("the refund is parked", "SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL", 1).await;
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Failed], "no other refund was requested");
    assert_eq!(world.count("SELECT count(*) FROM refund_waits").await, 0);
    let parked = outbox::parked(&world.pg, None).await.expect("the list").remove(0);
    till.simulator.ledger.hold_refunds(false);
    retry(&world, parked.id).await;
    ann.wait_for_money(&booking, "REFUNDED").await;
    world.wait_for_empty_outbox().await;
    let heard = world.count("SELECT count(*) FROM webhook_events").await;

    // The webhook arrives late: a refund that has succeeded meanwhile is not repeated.
    till.simulator.ledger.set_refund_status(&id, 0, RefundStatus::Pending).expect("the refund is pending");
    till.simulator.set_refund_status(&id, 0, RefundStatus::Failed).expect("the webhook is sent");
    wait_until("the webhook is stored", || async { world.count("SELECT count(*) FROM webhook_events").await > heard })
        .await;
    assert_eq!(world.count("SELECT count(*) FROM outbox").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM refund_failures").await, 1);
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Failed, RefundStatus::Succeeded]);
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_refund_retried_after_days_is_sent_once() {
    let (world, till) = world_with_stripe().await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1, 2], "pm_paid").await;
    ann.cancel(&booking, Some(&[1])).await;
    world.wait_for_count("the refund is settled", "SELECT count(*) FROM refunds WHERE state = 'settled'", 1).await;
    world.wait_for_empty_outbox().await;
    // A later event would remove the effect from the parked ones.
    wait_until("its event is delivered", || async { till.simulator.has_delivered_all() }).await;
    // As if the answer had been lost, and the effect parked until Stripe deleted the idempotency key.
    till.simulator.ledger.forget_refund_keys();
    for lost in [
        "ALTER TABLE refunds DISABLE TRIGGER refunds_settle_once",
        "UPDATE refunds SET state = 'requested', settled_at = NULL",
        "ALTER TABLE refunds ENABLE TRIGGER refunds_settle_once",
        "INSERT INTO outbox (booking_id, effect, amount_minor, refund_number, attempts, run_after, parked_why, created_at)
         SELECT booking_id, 'refund_part', amount_minor, number, 40, now(), 'no answer', now() FROM refunds",
    ] {
        world.execute(lost).await;
    }
    let parked = outbox::parked(&world.pg, None).await.expect("the list").remove(0);
    retry_parked(&world.pg, parked.id, "Stripe is back.", platform::clock::now()).await.expect("tried again");
    world.wait_for_empty_outbox().await;
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Succeeded], "exactly one refund exists");
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_refund_that_fails_after_an_exchange_is_sent_again() {
    let (world, till) = world_with_stripe().await;
    let mut seller = seller_with_open_till(&world, "sue@example.org").await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1, 2], "pm_paid").await;
    let label = text(&booking["seats"][0]["label"]);
    let words = ["cancel-booking", text(&booking["reference"]), "--seat", label, "--reason", "The seat is broken."];
    let (well, said) = world.command(&words).await;
    assert!(well, "{said}");
    world.wait_for_count("the refund is settled", "SELECT count(*) FROM refunds WHERE state = 'settled'", 1).await;
    world.wait_for_empty_outbox().await;
    // A later event would remove the effect from the parked ones.
    wait_until("its event is delivered", || async { till.simulator.has_delivered_all() }).await;
    let hold = hold_seats(&mut seller, &world, &[8]).await;
    let exchange = json!({ "show": world.show, "hold": hold["id"], "total_minor": PRICE, "reason": "A better view." });
    let answer = seller.post(&booking_path(&booking, "/exchange"), exchange).await;
    expect_state(answer, StatusCode::CREATED, "CONFIRMED");

    // The card is closed. The rest of the money pays for the other booking by now.
    let id = payment(&till, &booking).id;
    till.simulator.set_refund_status(&id, 0, RefundStatus::Failed).expect("the webhook is sent");
    world.wait_for_count("the refund is parked", "SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL", 1).await;
    wait_until("its events are delivered", || async { till.simulator.has_delivered_all() }).await;
    let parked = outbox::parked(&world.pg, None).await.expect("the list").remove(0);
    retry(&world, parked.id).await;
    world.wait_for_empty_outbox().await;
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Failed, RefundStatus::Succeeded]);
    assert_eq!(world.count("SELECT sum(amount_minor)::bigint FROM refunds").await, PRICE, "it is counted once");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_refund_at_a_left_gateway_is_parked() {
    let till = GatewayServer::closed(KEY, SECRET);
    let world = world_with_gateways("stripe,simulator", &till).await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1], "tok_paid").await;
    assert_eq!(booking["state"], "CONFIRMED", "{booking}");
    // The failed request arrives late, and Stripe charges.
    let id = text(&booking["id"]);
    let metadata = [("booking", id), ("way", "token")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let asked = NewPayment {
        amount_minor: PRICE,
        currency: "EUR".into(),
        reference: id.into(),
        description: "late".into(),
        return_url: format!("{}/bookings/{id}", ann.base),
        cancel_url: None,
        webhook_url: "http://stripe.invalid/".into(),
        expires_at_ms: i64::MAX,
        token: Some("tok_paid".into()),
        protocol: Protocol::Stripe(StripeTerms { checkout: false, metadata: metadata.into() }),
    };
    till.simulator.ledger.open(&format!("pay:{id}"), asked, "pi_late".into(), 0).expect("opened");
    till.simulator.pay("pi_late", simulator::cards::by_token("tok_paid").expect("a card"), None).expect("charged");
    till.open().await;
    world
        .wait_for_count("its webhook is stored", "SELECT count(*) FROM webhook_events WHERE gateway = 'stripe'", 2)
        .await;
    world.wait_for_empty_outbox().await;
    let sent_back = "SELECT count(*) FROM payment_switches WHERE settled_as = 'refunded'";
    assert_eq!(world.count(sent_back).await, 1);

    till.simulator.set_refund_status("pi_late", 0, RefundStatus::Failed).expect("the webhook is sent");
    let query = "SELECT count(*) FROM outbox WHERE effect = 'void_left' AND parked_why IS NOT NULL";
    world.wait_for_count("the refund is parked", query, 1).await;
    assert_eq!(world.count(sent_back).await, 0, "no refund is recorded");
    let parked = outbox::parked(&world.pg, None).await.expect("the list").remove(0);
    retry_parked(&world.pg, parked.id, "The card is there again.", platform::clock::now()).await.expect("tried again");
    world.wait_for_empty_outbox().await;
    assert_eq!(world.count(sent_back).await, 1);
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Failed, RefundStatus::Succeeded]);
    assert_eq!(ann.booking(&booking).await["money"], "PAID", "the sale is not affected");
}

/// The books' finding about payments that these tests insert without the gateway.
const NOT_CHARGED: &str = "CANCELLED and 0 were taken, and its money is";

/// A booking whose refund is parked. Returns it and the number of the parked effect.
async fn parked_refund(world: &World, effect: &str, number: i32) -> (Uuid, i64) {
    let booking = insert_booking(&world.pg, world.show, "CANCELLED").await;
    insert_payment(&world.pg, booking, 500).await;
    let refunding = "UPDATE bookings SET money = 'REFUNDING', version = version + 1 WHERE id = $1";
    world.run(sqlx::query(refunding).bind(booking)).await;
    let refund = "INSERT INTO refunds VALUES ($1, $2, 500, 0, 'requested', now(), NULL)";
    world.run(sqlx::query(refund).bind(booking).bind(number)).await;
    let sql = "INSERT INTO outbox (booking_id, effect, amount_minor, refund_number, attempts, run_after, parked_why, created_at)
         VALUES ($1, $2, 500, $3, 40, now(), 'the gateway refused', now()) RETURNING id";
    let id = world.value(sqlx::query_scalar(sql).bind(booking).bind(effect).bind(number)).await;
    (booking, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn parked_effects_are_listed_and_settled_or_retried_with_a_recorded_reason() {
    let world = World::start(0, &[]).await;
    let now = platform::clock::now;
    let (booking, whole) = parked_refund(&world, "refund", 0).await;
    let (_, part) = parked_refund(&world, "refund_part", 2).await;
    let (_, again) = parked_refund(&world, "refund", 0).await;
    let list = outbox::parked(&world.pg, None).await.expect("the list");
    assert_eq!(list.iter().map(|job| job.id).collect::<Vec<_>>(), [whole, part, again]);
    assert_eq!((list[0].booking, list[0].effect.as_str(), list[0].attempts), (booking, "refund", 40));
    assert_eq!(list[0].amount.expect("a sum").to_string(), "€5.00");
    assert_eq!(list[0].why, "the gateway refused");

    assert!(settle_parked(&world.pg, whole, "  ", now()).await.is_err(), "without a reason");
    settle_parked(&world.pg, whole, "Paid back in cash.", now()).await.expect("settled");
    settle_parked(&world.pg, part, "Paid back in cash.", now()).await.expect("settled");
    retry_parked(&world.pg, again, "The gateway is back.", now()).await.expect("tried again");
    for id in [whole, part, again, 0] {
        assert!(settle_parked(&world.pg, id, "Once more.", now()).await.is_err(), "{id} is not parked any more");
        assert!(retry_parked(&world.pg, id, "Once more.", now()).await.is_err(), "{id} is not parked any more");
    }
    assert!(outbox::parked(&world.pg, None).await.expect("the list").is_empty());
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE money = 'REFUNDED'").await, 1);
    let expected = "SELECT count(*) FROM booking_events WHERE actor = 'staff' AND reason LIKE '%Paid back in cash.'";
    assert_eq!(world.count(expected).await, 4, "the settlement, and its result");
    let retried = "SELECT count(*) FROM outbox WHERE parked_why IS NULL AND attempts = 0 AND run_after <= now()";
    assert_eq!(world.count(retried).await, 1);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'effect_retried'").await, 1);
    world.end_with_known_findings(&[NOT_CHARGED]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn command_settles_or_retries_parked_effects_and_the_server_runs_them() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let booking = ann.buy_seats(&[1], "tok_paid").await;
    world.wait_for_empty_outbox().await;
    ann.cancel(&booking, None).await;
    ann.wait_for_money(&booking, "REFUNDED").await;
    let again = "INSERT INTO outbox (booking_id, effect, amount_minor, attempts, run_after, parked_why, created_at)
                 SELECT booking_id, 'refund', amount_minor, 40, now(), 'no answer', now() FROM refunds RETURNING id";
    let id: i64 = world.value(sqlx::query_scalar(again)).await;
    let number = id.to_string();
    let (well, list) = world.command(&["parked"]).await;
    assert!(well && list.contains("no answer") && list.contains(&number), "{list}");
    let (well, said) = world.command(&["parked", "retry", &number, "--reason", "The gateway is back."]).await;
    assert!(well, "{said}");
    world.wait_for_empty_outbox().await;
    let seen = ann.booking(&booking).await;
    assert_eq!((&seen["money"], seen["refunds"].as_array().map(Vec::len)), (&json!("REFUNDED"), Some(1)), "{seen}");
    let (well, said) = world.command(&["parked", "settle", &number, "--reason", "Too late."]).await;
    assert!(!well && said.contains("no such parked effect"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_to_a_refused_mailbox_is_parked_soon_and_others_are_retried_through_an_outage() {
    let mail_server = MailServer::open(Arc::default()).await;
    let buyer = "ann@example.org";
    mail_server.refuse(buyer, b"550 no such mailbox\r\n");
    let (world, ann) = World::with_visitor(1, &[("SMTP_URL", mail_server.url.as_str())]).await;
    ann.buy_seats(&[1], "tok_paid").await;
    // Without the pauses between attempts.
    let make_due = "UPDATE outbox SET run_after = now() WHERE parked_why IS NULL";
    let parked = "SELECT count(*) FROM outbox WHERE parked_why = 'the mailbox was refused'";
    wait_until("the mail is parked", || async {
        world.execute(make_due).await;
        world.count(parked).await == 1
    })
    .await;
    assert_eq!(world.count("SELECT count(*) FROM outbox WHERE attempts BETWEEN 2 AND 20").await, 1, "a few attempts");

    mail_server.refuse(buyer, b"451 try again later\r\n");
    assert!(!world.command(&["parked", "retry-mails"]).await.0, "a reason is required");
    let (well, said) = world.command(&["parked", "retry-mails", "--reason", "The mailbox exists."]).await;
    assert!(well && said.contains("1 mails will be retried"), "{said}");
    world.execute("UPDATE outbox SET attempts = 1000").await;
    wait_until("a mail that failed a thousand times is retried", || async {
        world.execute(make_due).await;
        world.count("SELECT count(*) FROM outbox WHERE attempts > 1001 AND parked_why IS NULL").await == 1
    })
    .await;

    mail_server.accept(buyer);
    wait_until("the mail is sent", || async {
        world.execute(make_due).await;
        world.count("SELECT count(*) FROM outbox").await == 0
    })
    .await;
    assert_eq!(mail_server.mails_to(buyer), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn command_counts_all_parked_effects_and_retries_all_mails() {
    let world = World::start(0, &[]).await;
    let booking = insert_booking(&world.pg, world.show, "CANCELLED").await;
    let parked = "INSERT INTO outbox (booking_id, effect, refund_number, attempts, run_after, parked_why, created_at)
                  SELECT $1, CASE WHEN number = 0 THEN 'release_seats' ELSE 'send_notice' END, number, 10, now(),
                         'the mailbox was refused', now()
                  FROM generate_series(0, 500) AS number";
    world.run(sqlx::query(parked).bind(booking)).await;
    let (well, said) = world.command(&["parked"]).await;
    assert!(well && said.contains("501 wait for a person; 500 are listed"), "{said}");

    let (well, said) = world.command(&["parked", "retry-mails", "--reason", "The mail server is back."]).await;
    assert!(well && said.contains("500 mails will be retried"), "{said}");
    let left: Vec<String> =
        world.values(sqlx::query_scalar("SELECT effect FROM outbox WHERE parked_why IS NOT NULL")).await;
    assert_eq!(left, ["release_seats"]);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'effect_retried'").await, 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn effect_parked_while_it_runs_stays_parked() {
    let (world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let (first, second) = (ann.buy_seats(&[1], "tok_paid").await, bob.buy_seats(&[5], "tok_paid").await);
    for (visitor, booking) in [(&ann, &first), (&bob, &second)] {
        visitor.cancel(booking, None).await;
        visitor.wait_for_money(booking, "REFUNDED").await;
    }
    world.wait_for_empty_outbox().await;
    let again = |booking: &Value| {
        let insert = "INSERT INTO outbox (booking_id, effect, amount_minor, run_after, created_at)
                      SELECT booking_id, 'refund', amount_minor, now(), now() FROM refunds WHERE booking_id = $1::uuid";
        sqlx::query(insert).bind(text(&booking["id"]).to_owned()).execute(&world.pg)
    };
    // The relay has leased it and waits for the row lock.
    let mut lock = world.pg.begin().await.expect("a transaction");
    let locked = sqlx::query("SELECT 1 FROM bookings WHERE id = $1::uuid FOR UPDATE").bind(text(&first["id"]));
    locked.execute(&mut *lock).await.expect("the booking is locked");
    again(&first).await.expect("the effect is in the outbox");
    world.wait_for_count("the effect is leased", "SELECT count(*) FROM outbox WHERE attempts = 1", 1).await;
    world.execute("UPDATE outbox SET parked_why = 'It came back.'").await;
    again(&second).await.expect("the effect is in the outbox");
    lock.commit().await.expect("the lock is released");
    // The relay takes the second one after the first.
    world.wait_for_count("the second is done", "SELECT count(*) FROM outbox WHERE parked_why IS NULL", 0).await;
    assert_eq!(world.count("SELECT count(*) FROM outbox WHERE parked_why = 'It came back.'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn parked_refund_is_removed_when_its_gateway_reports_it() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let (booking, id) = parked_refund(&world, "refund", 0).await;
    let (_, other) = parked_refund(&world, "refund", 0).await;
    let event = json!({ "id": "evt_refund", "type": "refund.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking, "amount_minor": 500, "currency": "EUR" } });
    expect_answer(deliver(&ann, &event).await, StatusCode::OK);
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE money = 'REFUNDED'").await, 1);
    let list = outbox::parked(&world.pg, None).await.expect("the list");
    assert_eq!(list.iter().map(|job| job.id).collect::<Vec<_>>(), [other], "another booking's refund stays parked");
    let twice = settle_parked(&world.pg, id, "Paid back in cash.", platform::clock::now()).await;
    assert!(twice.is_err(), "it cannot be settled twice");
    world.end_with_known_findings(&[NOT_CHARGED]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parked_refund_above_the_charge_can_be_settled_and_is_not_counted() {
    let world = World::start(0, &[]).await;
    let now = platform::clock::now;
    // One was due and could not be recorded; the other should never have been requested.
    for (money, afterwards) in [("REFUNDING", "REFUNDED"), ("PAID", "PAID")] {
        let booking = insert_booking(&world.pg, world.show, "CANCELLED").await;
        insert_payment(&world.pg, booking, 500).await;
        let update = "UPDATE bookings SET money = $2, version = version + 1 WHERE id = $1";
        world.run(sqlx::query(update).bind(booking).bind(money)).await;
        let wrong = "INSERT INTO outbox (booking_id, effect, amount_minor, attempts, run_after, parked_why, created_at)
                     VALUES ($1, 'refund', 501, 1, now(), 'above_charge', now()) RETURNING id";
        let id: i64 = world.value(sqlx::query_scalar(wrong).bind(booking)).await;
        settle_parked(&world.pg, id, "Paid back in cash.", now()).await.expect("the effect is settled");
        let money_now = sqlx::query_scalar("SELECT money FROM bookings WHERE id = $1").bind(booking);
        let money_now: String = money_now.fetch_one(&world.pg).await.expect("a booking");
        assert_eq!(money_now, afterwards);
    }
    assert!(outbox::parked(&world.pg, None).await.expect("the list").is_empty());
    assert_eq!(world.count("SELECT count(*) FROM refunds").await, 0, "no more than was charged is counted");
    assert_eq!(world.count("SELECT count(*) FROM payments WHERE refund_state IS NOT NULL").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'effect_settled'").await, 2);
    world.end_with_known_findings(&[NOT_CHARGED]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_left_at_a_gateway_is_not_retried_after_it_was_settled() {
    let world = World::start(0, &[]).await;
    let (seen_to, waits) = (
        insert_booking(&world.pg, world.show, "CANCELLED").await,
        insert_booking(&world.pg, world.show, "CANCELLED").await,
    );
    for booking in [seen_to, waits] {
        insert_payment(&world.pg, booking, 500).await;
        let left = "INSERT INTO payment_switches (booking_id, from_gateway, to_gateway, why, at)
                    VALUES ($1, 'stripe', 'simulator', 'it did not answer', now())";
        world.run(sqlx::query(left).bind(booking)).await;
    }
    let parked = "INSERT INTO outbox (booking_id, effect, attempts, run_after, parked_why, created_at)
                  VALUES ($1, 'void_left', 40, now(), 'the gateway could not send it', now()) RETURNING id";
    let id: i64 = world.value(sqlx::query_scalar(parked).bind(seen_to)).await;
    settle_parked(&world.pg, id, "Paid by bank transfer.", platform::clock::now()).await.expect("settled");
    let unsettled = "SELECT booking_id FROM payment_switches WHERE settled_as IS NULL OR settled_at IS NULL";
    let unsettled: Vec<Uuid> = world.values(sqlx::query_scalar(unsettled)).await;
    assert_eq!(unsettled, [waits], "the other booking's switch is still open");
}

#[tokio::test(flavor = "multi_thread")]
async fn managers_decide_about_parked_effects_of_their_theatre_by_page_or_api() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let mut max = hired(&world, "max@example.org", "manager").await;
    let seller = hired(&world, "ann@example.org", "box_office").await;
    let (home, api) = ("/staff/aurora/parked", "/api/v1/theatres/aurora/parked");
    expect_page(max.page(home).await, StatusCode::OK, &["data-testid=\"parked-none\""]);
    assert!(!max.page("/staff").await.1.contains("data-parked"), "nothing is parked");

    let (_, paid) = parked_refund(&world, "refund", 0).await;
    // The other effect has nothing left to do.
    let sql = "INSERT INTO outbox (booking_id, effect, attempts, run_after, parked_why, created_at)
         VALUES ($1, 'void_left', 40, now(), 'no answer', now()) RETURNING id";
    let again: i64 =
        world.value(sqlx::query_scalar(sql).bind(insert_booking(&world.pg, world.show, "CANCELLED").await)).await;
    assert!(max.page("/staff").await.1.contains("data-parked=\"2\""), "managers see their number");
    for (browser, who) in [(&seller, "a seller"), (&rita, "a manager of another theatre")] {
        assert!(!browser.page("/staff").await.1.contains("data-parked"), "{who}");
        assert_eq!(browser.page(home).await.0, StatusCode::NOT_FOUND, "{who}");
        let (status, _) = send(browser, &format!("{home}/{paid}/settle"), &[("reason", "Mine.")]).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{who}");
    }
    let sql = "SELECT reference FROM bookings JOIN outbox ON booking_id = bookings.id WHERE outbox.id = $1";
    let reference: String = world.value(sqlx::query_scalar(sql).bind(paid)).await;
    let parts = [reference.as_str(), "€5.00", "the gateway refused", "tried 40 times", "data-effect=\"refund\""];
    expect_page(max.page(home).await, StatusCode::OK, &parts);

    // A refused form keeps its input and shows the error.
    let settle = format!("{home}/{paid}/settle");
    let error = format!("id=\"reason-settle-{paid}-error\"");
    let refused = send(&max, &settle, &[("reason", " ")]).await;
    expect_page(refused, StatusCode::BAD_REQUEST, &["<details open", &error]);
    let done = send(&max, &settle, &[("reason", "Paid back in cash.")]).await;
    assert_eq!(done, (StatusCode::SEE_OTHER, format!("{home}?done=true")));
    let repeated = send(&max, &settle, &[("reason", "Once more.")]).await;
    expect_page(repeated, StatusCode::NOT_FOUND, &["data-testid=\"parked-trouble\""]);
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE money = 'REFUNDED'").await, 1);

    let list = expect_answer(max.get(api).await, StatusCode::OK);
    assert_eq!((&list[0]["id"], list.as_array().map(Vec::len)), (&json!(again), Some(1)), "{list}");
    assert!(list[0]["why"] == "no answer" && list[0]["attempts"] == 40, "{list}");
    let retry = format!("{api}/{again}/retry");
    let why = json!({ "reason": "The gateway is back." });
    assert_eq!(rita.post(&retry, why.clone()).await.0, StatusCode::NOT_FOUND);
    let elsewhere = retry.replace("aurora", "rialto");
    assert_eq!(rita.post(&elsewhere, why.clone()).await.0, StatusCode::NOT_FOUND, "it belongs to another theatre");
    assert_eq!(max.post(&retry, why).await.0, StatusCode::NO_CONTENT);
    world.wait_for_empty_outbox().await;
    assert_eq!(max.get(api).await.1, json!([]));
    assert_eq!(acts(&world).await, ["parked_settled", "parked_retried"]);
    world.end_with_known_findings(&[NOT_CHARGED]).await;
}
