//! Refunds that Stripe has accepted, until they succeed or fail.

use selling::bookings::{retry_parked, settle_parked};
use selling::outbox;
use serde_json::Value;
use simulator::payment::{NewPayment, Payment, Protocol, RefundStatus, StripeTerms};

use crate::accounts::Browser;
use crate::box_office::hired;
use crate::gateways::{GatewayServer, KEY, SECRET};
use crate::world::{PRICE, Visitor, World, text, wait_until};

/// A server with Stripe as its gateway, and Stripe.
async fn world_with_stripe() -> (World, GatewayServer) {
    let till = GatewayServer::closed(KEY, SECRET);
    till.open().await;
    let settings = [
        ("PAYMENT_GATEWAYS", "stripe"),
        ("STRIPE_URL", &*till.url),
        ("STRIPE_SECRET_KEY", KEY),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
    ];
    let world = World::start(1, &settings).await;
    till.simulator.set_stripe_endpoint(format!("{}/api/v1/webhooks/payments/stripe", world.servers[0].url));
    (world, till)
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
    let request = buyer.client.get(format!("{}/bookings/{id}", buyer.base)).header("cookie", &buyer.cookie);
    let own = request.send().await.expect("the server answers").text().await.expect("a page");
    // The island's texts contain those of other states too, so only the headline counts.
    let headline = own.split("<h1").nth(1).and_then(|rest| rest.split("</h1>").next()).unwrap_or_default();
    let (status, at_counter) = seller.page(&format!("/staff/aurora/box-office/bookings/{id}")).await;
    assert_eq!(status, reqwest::StatusCode::OK, "{at_counter}");
    let (status, list) = seller.page("/staff/aurora/box-office/bookings?q=ann%40example").await;
    assert!(status == reqwest::StatusCode::OK && list.contains(id), "{list}");
    [
        view["refunds"][0]["came_back"] == true,
        headline.contains("Your money came back to us"),
        at_counter.contains("data-testid=\"came-back\"") && at_counter.contains("Refund came back"),
        list.contains("Money came back to us"),
    ]
}

async fn make_due(world: &World) {
    world.execute("UPDATE refund_waits SET look_at = now() - interval '1 second'").await;
}

/// Ages a pending refund until it is parked.
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

    // They succeed without webhooks.
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
async fn refund_pending_for_a_month_is_parked() {
    let (world, till) = world_with_stripe().await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1], "pm_paid").await;
    till.simulator.ledger.hold_refunds(true);
    ann.cancel(&booking, None).await;
    world.wait_for_count("the refund is pending", "SELECT count(*) FROM refund_waits", 1).await;
    world.wait_for_empty_outbox().await;
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
    let (world, till) = world_with_stripe().await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1], "pm_paid").await;
    ann.cancel(&booking, None).await;
    ann.wait_for_money(&booking, "REFUNDED").await;
    world.wait_for_empty_outbox().await;
    world.wait_for_count("its news are noted", "SELECT count(*) FROM webhook_events", 2).await;
    let id = payment(&till, &booking).id;
    till.simulator.set_refund_status(&id, 0, RefundStatus::Failed).expect("the webhook is sent");
    world.wait_for_count("all three are noted", "SELECT count(*) FROM webhook_events", 5).await;
    let parked = outbox::parked(&world.pg).await.expect("the list").remove(0);
    till.simulator.ledger.hold_refunds(true);
    retry_parked(&world.pg, parked.id, "The buyer has another card there.", platform::clock::now())
        .await
        .expect("tried again");
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
    let (world, till) = world_with_stripe().await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1], "pm_paid").await;
    till.simulator.ledger.hold_refunds(true);
    ann.cancel(&booking, None).await;
    world.wait_for_count("the refund is pending", "SELECT count(*) FROM refund_waits", 1).await;
    world.wait_for_empty_outbox().await;
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
    let (world, till) = world_with_stripe().await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1], "pm_paid").await;
    ann.cancel(&booking, None).await;
    ann.wait_for_money(&booking, "REFUNDED").await;
    world.wait_for_empty_outbox().await;
    world.wait_for_count("its news are noted", "SELECT count(*) FROM webhook_events", 2).await;

    // The card is closed. Stripe sends three events of different types.
    let id = payment(&till, &booking).id;
    till.simulator.set_refund_status(&id, 0, RefundStatus::Failed).expect("the webhook is sent");
    world.wait_for_count("all three are noted", "SELECT count(*) FROM webhook_events", 5).await;
    let list = outbox::parked(&world.pg).await.expect("the list");
    assert_eq!(list.len(), 1, "{list:?}");
    assert_eq!((list[0].effect.as_str(), list[0].booking.to_string().as_str()), ("refund", text(&booking["id"])));
    assert!(list[0].amount.is_some() && list[0].why.contains("expired_or_canceled_card"), "{list:?}");
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'refund_failed'").await, 1);
    let seller = hired(&world, "ann@example.org", "box_office").await;
    assert_eq!(reports_failed_refund(&seller, &ann, &booking).await, [true; 4]);

    // Staff retry it: a new refund is sent.
    retry_parked(&world.pg, list[0].id, "The buyer has another card there.", platform::clock::now())
        .await
        .expect("tried again");
    world.wait_for_empty_outbox().await;
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Failed, RefundStatus::Succeeded]);
    assert_eq!(ann.booking(&booking).await["money"], "REFUNDED");
    assert_eq!(reports_failed_refund(&seller, &ann, &booking).await, [false; 4]);

    // It fails too. Then staff pay it otherwise, and Stripe gets no third refund.
    till.simulator.set_refund_status(&id, 1, RefundStatus::Failed).expect("the webhook is sent");
    world.wait_for_count("the refund is parked", "SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL", 1).await;
    let parked = outbox::parked(&world.pg).await.expect("the list").remove(0);
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
    let (world, till) = world_with_stripe().await;
    let ann = world.visitor();
    let booking = ann.buy_seats(&[1], "pm_paid").await;
    till.simulator.ledger.hold_refunds(true);
    ann.cancel(&booking, None).await;
    world.wait_for_count("the refund is pending", "SELECT count(*) FROM refund_waits", 1).await;
    world.wait_for_empty_outbox().await;
    // It fails without a webhook.
    let id = payment(&till, &booking).id;
    till.simulator.ledger.set_refund_status(&id, 0, RefundStatus::Failed).expect("the refund exists");
    make_due(&world).await;
    world.wait_for_count("the refund is parked", "SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL", 1).await;
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Failed], "no other refund was requested");
    assert_eq!(world.count("SELECT count(*) FROM refund_waits").await, 0);
    let parked = outbox::parked(&world.pg).await.expect("the list").remove(0);
    till.simulator.ledger.hold_refunds(false);
    retry_parked(&world.pg, parked.id, "The buyer has another card there.", platform::clock::now())
        .await
        .expect("tried again");
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
    let parked = outbox::parked(&world.pg).await.expect("the list").remove(0);
    retry_parked(&world.pg, parked.id, "Stripe is back.", platform::clock::now()).await.expect("tried again");
    world.wait_for_empty_outbox().await;
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Succeeded], "exactly one refund exists");
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_refund_at_a_left_gateway_is_parked() {
    let till = GatewayServer::closed(KEY, SECRET);
    let settings = [
        ("PAYMENT_GATEWAYS", "stripe,simulator"),
        ("STRIPE_URL", &*till.url),
        ("STRIPE_SECRET_KEY", KEY),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
    ];
    let world = World::start(1, &settings).await;
    till.simulator.set_stripe_endpoint(format!("{}/api/v1/webhooks/payments/stripe", world.servers[0].url));
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
    let parked = outbox::parked(&world.pg).await.expect("the list").remove(0);
    retry_parked(&world.pg, parked.id, "The card is there again.", platform::clock::now()).await.expect("tried again");
    world.wait_for_empty_outbox().await;
    assert_eq!(world.count(sent_back).await, 1);
    assert_eq!(refund_states(&till, &booking), [RefundStatus::Failed, RefundStatus::Succeeded]);
    assert_eq!(ann.booking(&booking).await["money"], "PAID", "the sale is not affected");
}
