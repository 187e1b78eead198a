//! Refunds that Stripe has accepted, until they reach the payer or come back.

use selling::bookings::{retry_parked, settle_parked};
use selling::outbox;
use serde_json::Value;
use simulator::payment::{Dialect, NewPayment, Payment, RefundStatus, StripeTerms};

use crate::accounts::Browser;
use crate::box_office::hired;
use crate::box_office::pages::page;
use crate::gateways::{KEY, SECRET, Till};
use crate::world::{PRICE, Visitor, World, text, until};

/// A server that charges at Stripe, and Stripe.
async fn at_stripe() -> (World, Till) {
    let till = Till::closed(KEY, SECRET);
    till.open().await;
    let settings = [
        ("PAYMENT_GATEWAYS", "stripe"),
        ("STRIPE_URL", &*till.url),
        ("STRIPE_SECRET_KEY", KEY),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
    ];
    let world = World::start(1, &settings).await;
    till.simulator.tell_stripe_events_to(format!("{}/api/v1/webhooks/payments/stripe", world.servers[0].url));
    (world, till)
}

fn payment(till: &Till, booking: &Value) -> Payment {
    till.payment(&format!("pay:{}", text(&booking["id"])))
}

fn stand(till: &Till, booking: &Value) -> Vec<RefundStatus> {
    payment(till, booking).refunds.iter().map(|refund| refund.status).collect()
}

async fn nothing_is_left_to_do(world: &World) {
    until("nothing is left to do", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
}

/// Whether it is said that the booking's refund came back: by the API, by the buyer's page, by the staff's and where the
/// booking stands in a list.
async fn says_it_came_back(seller: &Browser, buyer: &Visitor, booking: &Value) -> [bool; 4] {
    let id = text(&booking["id"]);
    let view = buyer.booking(booking).await;
    let request = buyer.client.get(format!("{}/bookings/{id}", buyer.base)).header("cookie", &buyer.cookie);
    let own = request.send().await.expect("the server answers").text().await.expect("a page");
    // What the page might say in another state stands in it as well.
    let headline = own.split("<h1").nth(1).and_then(|rest| rest.split("</h1>").next()).unwrap_or_default();
    let (status, at_counter) = page(seller, &format!("/staff/aurora/box-office/bookings/{id}")).await;
    assert_eq!(status, reqwest::StatusCode::OK, "{at_counter}");
    let (status, list) = page(seller, "/staff/aurora/box-office/bookings?q=ann%40example").await;
    assert!(status == reqwest::StatusCode::OK && list.contains(id), "{list}");
    [
        view["refunds"][0]["came_back"] == true,
        headline.contains("Your money came back to us"),
        at_counter.contains("data-testid=\"came-back\"") && at_counter.contains("Refund came back"),
        list.contains("Money came back to us"),
    ]
}

async fn look_now(world: &World) {
    let due = sqlx::query("UPDATE refund_waits SET look_at = now() - interval '1 second'").execute(&world.pg).await;
    due.expect("they are to be looked at");
}

/// A refund is on its way for so long that it is parked.
async fn a_month_passes(world: &World) {
    let old = "UPDATE refund_waits SET since = now() - interval '31 days', look_at = now() - interval '1 second'";
    sqlx::query(old).execute(&world.pg).await.expect("it is old");
    until("it is parked", || async {
        world.count("SELECT count(*) FROM outbox WHERE parked_why LIKE 'refund_overdue%'").await == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_on_its_way_is_settled_when_it_arrived_and_holds_nothing_up() {
    let (world, till) = at_stripe().await;
    let ann = world.visitor();
    let booking = ann.bought(&[10, 11, 12], "pm_paid").await;
    assert_eq!(booking["state"], "CONFIRMED", "{booking}");
    till.simulator.ledger.let_refunds_wait(true);
    for (seat, waiting) in [(10, 1), (11, 2)] {
        ann.cancel(&booking, Some(&[seat])).await;
        until("the refund is on its way", || async {
            world.count("SELECT count(*) FROM refund_waits").await == waiting
        })
        .await;
        ann.sees(seat as usize, '0').await;
        nothing_is_left_to_do(&world).await;
    }
    ann.cancel(&booking, Some(&[12])).await;
    until("all are on their way", || async { world.count("SELECT count(*) FROM refund_waits").await == 3 }).await;
    assert_eq!(ann.booking(&booking).await["money"], "REFUNDING");
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await, 0);

    // Stripe tells of one of them: that one it is.
    let id = payment(&till, &booking).id;
    till.simulator.refund_becomes(&id, 1, RefundStatus::Succeeded).expect("told");
    until("the second is settled", || async {
        world.count("SELECT count(*) FROM refunds WHERE state = 'settled' AND number = 2").await == 1
    })
    .await;
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'requested'").await, 2);

    // Looked at, and still on its way.
    look_now(&world).await;
    until("they were looked at", || async {
        world.count("SELECT count(*) FROM refund_waits WHERE look_at > now()").await == 2
    })
    .await;
    nothing_is_left_to_do(&world).await;
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'requested'").await, 2);

    // They arrive, and the webhooks do not.
    for place in [0, 2] {
        till.simulator.ledger.refund_becomes(&id, place, RefundStatus::Succeeded).expect("it is there");
    }
    look_now(&world).await;
    ann.sees_money(&booking, "REFUNDED").await;
    until("all are settled", || async {
        world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await == 3
    })
    .await;
    nothing_is_left_to_do(&world).await;
    assert_eq!(world.count("SELECT count(*) FROM refund_waits").await, 0);
    assert_eq!(stand(&till, &booking), [RefundStatus::Succeeded; 3], "each was asked for once");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_is_on_its_way_for_a_month_waits_for_a_person() {
    let (world, till) = at_stripe().await;
    let ann = world.visitor();
    let booking = ann.bought(&[1], "pm_paid").await;
    till.simulator.ledger.let_refunds_wait(true);
    ann.cancel(&booking, None).await;
    until("it is on its way", || async { world.count("SELECT count(*) FROM refund_waits").await == 1 }).await;
    nothing_is_left_to_do(&world).await;
    a_month_passes(&world).await;
    // It arrives after all: nobody is to pay it a second time.
    let id = payment(&till, &booking).id;
    till.simulator.refund_becomes(&id, 0, RefundStatus::Succeeded).expect("told");
    ann.sees_money(&booking, "REFUNDED").await;
    assert_eq!(world.count("SELECT count(*) FROM outbox").await, 0, "it waits no more");
    assert_eq!(stand(&till, &booking), [RefundStatus::Succeeded]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_was_sent_again_and_arrived_after_a_month_waits_no_more() {
    let (world, till) = at_stripe().await;
    let ann = world.visitor();
    let booking = ann.bought(&[1], "pm_paid").await;
    ann.cancel(&booking, None).await;
    ann.sees_money(&booking, "REFUNDED").await;
    nothing_is_left_to_do(&world).await;
    until("its news are noted", || async { world.count("SELECT count(*) FROM webhook_events").await == 2 }).await;
    let id = payment(&till, &booking).id;
    till.simulator.refund_becomes(&id, 0, RefundStatus::Failed).expect("told");
    until("all three are noted", || async { world.count("SELECT count(*) FROM webhook_events").await == 5 }).await;
    let parked = outbox::parked(&world.pg).await.expect("the list").remove(0);
    till.simulator.ledger.let_refunds_wait(true);
    retry_parked(&world.pg, parked.id, "The buyer has another card there.", platform::clock::now())
        .await
        .expect("tried again");
    until("it is on its way", || async { world.count("SELECT count(*) FROM refund_waits").await == 1 }).await;
    nothing_is_left_to_do(&world).await;
    a_month_passes(&world).await;
    till.simulator.refund_becomes(&id, 1, RefundStatus::Succeeded).expect("told");
    nothing_is_left_to_do(&world).await;
    assert_eq!(world.count("SELECT count(*) FROM refund_waits").await, 0);
    assert_eq!(stand(&till, &booking), [RefundStatus::Failed, RefundStatus::Succeeded]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_came_back_waits_for_its_person_although_it_is_said_to_have_arrived() {
    let (world, till) = at_stripe().await;
    let ann = world.visitor();
    let booking = ann.bought(&[1], "pm_paid").await;
    till.simulator.ledger.let_refunds_wait(true);
    ann.cancel(&booking, None).await;
    until("it is on its way", || async { world.count("SELECT count(*) FROM refund_waits").await == 1 }).await;
    nothing_is_left_to_do(&world).await;
    let id = payment(&till, &booking).id;
    till.simulator.refund_becomes(&id, 0, RefundStatus::Failed).expect("told");
    until("it is parked", || async {
        world.count("SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL").await == 1
    })
    .await;
    // The news of before come after those of the end.
    till.simulator.refund_becomes(&id, 0, RefundStatus::Succeeded).expect("told");
    ann.sees_money(&booking, "REFUNDED").await;
    assert_eq!(world.count("SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL").await, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_comes_back_after_it_was_settled_waits_for_a_person_once() {
    let (world, till) = at_stripe().await;
    let ann = world.visitor();
    let booking = ann.bought(&[1], "pm_paid").await;
    ann.cancel(&booking, None).await;
    ann.sees_money(&booking, "REFUNDED").await;
    nothing_is_left_to_do(&world).await;
    until("its news are noted", || async { world.count("SELECT count(*) FROM webhook_events").await == 2 }).await;

    // The card is gone. Stripe says so three times, in three words.
    let id = payment(&till, &booking).id;
    till.simulator.refund_becomes(&id, 0, RefundStatus::Failed).expect("told");
    until("all three are noted", || async { world.count("SELECT count(*) FROM webhook_events").await == 5 }).await;
    let list = outbox::parked(&world.pg).await.expect("the list");
    assert_eq!(list.len(), 1, "{list:?}");
    assert_eq!((list[0].effect.as_str(), list[0].booking.to_string().as_str()), ("refund", text(&booking["id"])));
    assert!(list[0].amount.is_some() && list[0].why.contains("expired_or_canceled_card"), "{list:?}");
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'refund_failed'").await, 1);
    let seller = hired(&world, "ann@example.org", "box_office").await;
    assert_eq!(says_it_came_back(&seller, &ann, &booking).await, [true; 4]);

    // A person has it sent again: another refund, and that one.
    retry_parked(&world.pg, list[0].id, "The buyer has another card there.", platform::clock::now())
        .await
        .expect("tried again");
    nothing_is_left_to_do(&world).await;
    assert_eq!(stand(&till, &booking), [RefundStatus::Failed, RefundStatus::Succeeded]);
    assert_eq!(ann.booking(&booking).await["money"], "REFUNDED");
    assert_eq!(says_it_came_back(&seller, &ann, &booking).await, [false; 4]);

    // In vain as well: then it is paid in another way, and Stripe is asked for no third.
    till.simulator.refund_becomes(&id, 1, RefundStatus::Failed).expect("told");
    until("it is parked", || async {
        world.count("SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL").await == 1
    })
    .await;
    let parked = outbox::parked(&world.pg).await.expect("the list").remove(0);
    settle_parked(&world.pg, parked.id, "Paid by bank transfer.", platform::clock::now()).await.expect("settled");
    until("all is noted", || async { world.count("SELECT count(*) FROM webhook_events").await == 9 }).await;
    assert_eq!(world.count("SELECT count(*) FROM outbox").await, 0);
    assert_eq!(stand(&till, &booking), [RefundStatus::Failed, RefundStatus::Failed]);
    assert_eq!(world.count("SELECT count(*) FROM refund_failures").await, 2);
    assert_eq!(says_it_came_back(&seller, &ann, &booking).await, [false; 4]);
    let story = ann.booking(&booking).await["steps"].clone();
    let story: Vec<&str> = story.as_array().expect("steps").iter().map(|step| text(&step["step"])).collect();
    let told = ["refunded", "came_back", "sent_again", "came_back", "paid_otherwise"];
    assert_eq!(story[story.len() - told.len()..], told, "{story:?}");
    // No gateway knows of the bank transfer.
    world.end_despite(&["money REFUNDED; 1250 were taken and 0 given back"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_failed_unheard_waits_for_a_person_and_no_other_is_sent() {
    let (world, till) = at_stripe().await;
    let ann = world.visitor();
    let booking = ann.bought(&[1], "pm_paid").await;
    till.simulator.ledger.let_refunds_wait(true);
    ann.cancel(&booking, None).await;
    until("it is on its way", || async { world.count("SELECT count(*) FROM refund_waits").await == 1 }).await;
    nothing_is_left_to_do(&world).await;
    // It fails, and the webhook does not come.
    let id = payment(&till, &booking).id;
    till.simulator.ledger.refund_becomes(&id, 0, RefundStatus::Failed).expect("it is there");
    look_now(&world).await;
    until("it is parked", || async {
        world.count("SELECT count(*) FROM outbox WHERE parked_why IS NOT NULL").await == 1
    })
    .await;
    assert_eq!(stand(&till, &booking), [RefundStatus::Failed], "nobody was asked for another");
    assert_eq!(world.count("SELECT count(*) FROM refund_waits").await, 0);
    let parked = outbox::parked(&world.pg).await.expect("the list").remove(0);
    till.simulator.ledger.let_refunds_wait(false);
    retry_parked(&world.pg, parked.id, "The buyer has another card there.", platform::clock::now())
        .await
        .expect("tried again");
    ann.sees_money(&booking, "REFUNDED").await;
    nothing_is_left_to_do(&world).await;
    let heard = world.count("SELECT count(*) FROM webhook_events").await;

    // Now it comes: nobody is to pay once more for what has arrived meanwhile.
    till.simulator.ledger.refund_becomes(&id, 0, RefundStatus::Pending).expect("it is to be told");
    till.simulator.refund_becomes(&id, 0, RefundStatus::Failed).expect("told");
    until("it is heard", || async { world.count("SELECT count(*) FROM webhook_events").await > heard }).await;
    assert_eq!(world.count("SELECT count(*) FROM outbox").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM refund_failures").await, 1);
    assert_eq!(stand(&till, &booking), [RefundStatus::Failed, RefundStatus::Succeeded]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_a_person_has_tried_again_after_days_is_sent_once() {
    let (world, till) = at_stripe().await;
    let ann = world.visitor();
    let booking = ann.bought(&[1, 2], "pm_paid").await;
    ann.cancel(&booking, Some(&[1])).await;
    until("it is settled", || async { world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await == 1 })
        .await;
    nothing_is_left_to_do(&world).await;
    // Heard later, it would take the effect off the list.
    until("its event is heard", || async { till.simulator.has_delivered_all() }).await;
    // As if its answer had been lost, and the effect parked until Stripe had forgotten the key.
    till.simulator.ledger.forget_refund_keys();
    for lost in [
        "ALTER TABLE refunds DISABLE TRIGGER refunds_settle_once",
        "UPDATE refunds SET state = 'requested', settled_at = NULL",
        "ALTER TABLE refunds ENABLE TRIGGER refunds_settle_once",
        "INSERT INTO outbox (booking_id, effect, amount_minor, refund_number, attempts, run_after, parked_why, created_at)
         SELECT booking_id, 'refund_part', amount_minor, number, 40, now(), 'no answer', now() FROM refunds",
    ] {
        sqlx::query(lost).execute(&world.pg).await.expect("the answer was lost");
    }
    let parked = outbox::parked(&world.pg).await.expect("the list").remove(0);
    retry_parked(&world.pg, parked.id, "Stripe is back.", platform::clock::now()).await.expect("tried again");
    nothing_is_left_to_do(&world).await;
    assert_eq!(stand(&till, &booking), [RefundStatus::Succeeded], "there is one");
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_a_gateway_left_behind_could_not_send_back_waits_for_a_person() {
    let till = Till::closed(KEY, SECRET);
    let settings = [
        ("PAYMENT_GATEWAYS", "stripe,simulator"),
        ("STRIPE_URL", &*till.url),
        ("STRIPE_SECRET_KEY", KEY),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
    ];
    let world = World::start(1, &settings).await;
    till.simulator.tell_stripe_events_to(format!("{}/api/v1/webhooks/payments/stripe", world.servers[0].url));
    let ann = world.visitor();
    let booking = ann.bought(&[1], "tok_paid").await;
    assert_eq!(booking["state"], "CONFIRMED", "{booking}");
    // The question that never left arrives all the same, and Stripe charges for it.
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
        dialect: Dialect::Stripe(StripeTerms { checkout: false, metadata: metadata.into() }),
    };
    till.simulator.ledger.open(&format!("pay:{id}"), asked, "pi_late".into(), 0).expect("opened");
    till.simulator.pay("pi_late", simulator::cards::by_token("tok_paid").expect("a card"), None).expect("charged");
    till.open().await;
    until("its news are noted", || async {
        world.count("SELECT count(*) FROM webhook_events WHERE gateway = 'stripe'").await == 2
    })
    .await;
    nothing_is_left_to_do(&world).await;
    let sent_back = "SELECT count(*) FROM payment_switches WHERE settled_as = 'refunded'";
    assert_eq!(world.count(sent_back).await, 1);

    till.simulator.refund_becomes("pi_late", 0, RefundStatus::Failed).expect("told");
    until("it is parked", || async {
        world.count("SELECT count(*) FROM outbox WHERE effect = 'void_left' AND parked_why IS NOT NULL").await == 1
    })
    .await;
    assert_eq!(world.count(sent_back).await, 0, "it did not go back");
    let parked = outbox::parked(&world.pg).await.expect("the list").remove(0);
    retry_parked(&world.pg, parked.id, "The card is there again.", platform::clock::now()).await.expect("tried again");
    nothing_is_left_to_do(&world).await;
    assert_eq!(world.count(sent_back).await, 1);
    assert_eq!(stand(&till, &booking), [RefundStatus::Failed, RefundStatus::Succeeded]);
    assert_eq!(ann.booking(&booking).await["money"], "PAID", "the sale is none of it");
    world.end().await;
}
