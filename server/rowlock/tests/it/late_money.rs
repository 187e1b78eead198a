//! Money that comes when the time for its booking is over: seats if they can be had, else all of it back.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::by_mail::addresses_open_without_a_cookie;
use crate::cancel::books_balance;
use crate::world::{PRICE, Visitor, World, text, until};

/// A booking whose payment page is open, checked out with that wish about late money.
async fn paying(visitor: &Visitor, seats: &[u32], if_late: Option<&str>) -> Value {
    let (status, hold) = visitor.hold(seats).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let buyer = json!({ "name": "Ann Example", "email": "ann@example.org" });
    let mut wish = json!({ "show": visitor.show, "hold": hold["id"], "buyer": buyer });
    if let Some(if_late) = if_late {
        wish["if_late"] = if_late.into();
    }
    let (status, booking) = visitor.call(Method::POST, "/api/v1/bookings", wish).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    let (_, pending) = visitor.pay(&booking, None).await;
    assert_eq!(pending["state"], "PAYMENT_PENDING", "{pending}");
    pending
}

/// Lets a booking's time run out without a call to the gateway, as if that were away. The release of its seats is planned.
pub async fn time_out(world: &World, booking: &Value) {
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
        sqlx::query(statement).bind(text(&booking["id"])).execute(&mut *tx).await.expect("time passes");
    }
    tx.commit().await.expect("time has passed");
}

/// The same, and its seats are free.
async fn expire(world: &World, booking: &Value) {
    time_out(world, booking).await;
    until("its seats are free", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
}

/// The buyer pays on the gateway's page.
pub async fn pay_on_page(visitor: &Visitor, pending: &Value, card: &str) {
    let page = visitor.client.post(text(&pending["pay_url"]));
    let form = page.header("content-type", "application/x-www-form-urlencoded").body(format!("card={card}"));
    let answer = form.send().await.expect("the gateway answers");
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
}

/// The booking that late money pays for.
async fn moved(visitor: &Visitor, booking: &Value) -> Value {
    let seen = visitor.sees_money(booking, "MOVED").await;
    assert_eq!(seen["state"], "EXPIRED", "late money revives nothing");
    let fresh = visitor.booking(&json!({ "id": seen["moved_to"] })).await;
    assert_eq!((&fresh["state"], &fresh["money"]), (&json!("CONFIRMED"), &json!("PAID")), "{fresh}");
    assert_eq!(fresh["total"], seen["total"]);
    fresh
}

fn seats(booking: &Value) -> Vec<u64> {
    booking["seats"].as_array().expect("seats").iter().filter_map(|line| line["seat"].as_u64()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_seats_are_taken_by_a_new_booking_once_and_can_be_given_back() {
    let world = World::start(2, &[]).await;
    let ann = world.visitor();
    let booking = paying(&ann, &[90, 91], None).await;
    expire(&world, &booking).await;
    ann.sees(90, '0').await;
    // Told three times, and once more in our own words.
    pay_on_page(&ann, &booking, "duplicate_webhooks").await;
    let fresh = moved(&ann, &booking).await;
    assert_ne!(fresh["reference"], booking["reference"]);
    assert_eq!((seats(&fresh), &fresh["buyer"]), (vec![90, 91], &booking["buyer"]));
    ann.sees(90, '2').await;
    books_balance(&world).await;
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 2, "one new booking, however often it was told");
    until("the tickets and a notice are there", || async { world.mails().len() == 2 }).await;
    assert!(world.mails().iter().any(|mail| mail.contains("Subject: Your payment came late")));
    addresses_open_without_a_cookie(&world);
    let seen = ann.booking(&booking).await;
    let steps: Vec<_> = seen["steps"].as_array().expect("steps").iter().map(|step| text(&step["step"])).collect();
    assert_eq!(steps, ["paying", "expired", "paid_late", "moved"]);

    // Placed once more, as after a crash between doing it and noting that it was done.
    let again = "INSERT INTO outbox (booking_id, effect, run_after, created_at)
                 SELECT id, 'place_late', now(), now() FROM bookings";
    sqlx::query(again).execute(&world.pg).await.expect("it is to be done again");
    books_balance(&world).await;
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 2);

    // The gateway knows the money under the first booking; it comes back all the same.
    assert_eq!(ann.cancel(&fresh, Some(&[91])).await.0, StatusCode::OK);
    assert_eq!(ann.cancel(&fresh, None).await.0, StatusCode::OK);
    ann.sees_money(&fresh, "REFUNDED").await;
    books_balance(&world).await;
    assert_eq!(world.count("SELECT sum(amount_minor + fee_minor)::bigint FROM refunds").await, 2 * PRICE);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_that_are_held_or_sold_meanwhile_are_not_taken_from_anyone() {
    let world = World::start(1, &[]).await;
    for (seat, is_sold) in [(20, true), (40, false)] {
        let (ann, bob) = (world.visitor(), world.visitor());
        let booking = paying(&ann, &[seat, seat + 1], Some("same_seats")).await;
        expire(&world, &booking).await;
        if is_sold {
            bob.bought(&[seat + 1], "tok_paid").await;
        } else {
            bob.hold(&[seat + 1]).await;
        }
        pay_on_page(&ann, &booking, "paid").await;
        let seen = ann.sees_money(&booking, "REFUNDED").await;
        assert_eq!((&seen["state"], &seen["moved_to"]), (&json!("EXPIRED"), &Value::Null));
        assert_eq!(seen["refunds"][0]["amount"]["minor"], 2 * PRICE, "in full: {seen}");
        ann.sees(seat as usize, '0').await;
    }
    books_balance(&world).await;
    until("they are told", || async {
        world.mails().iter().filter(|mail| mail.contains("Subject: Your payment came too late")).count() == 2
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_said_so_gets_others_together_at_the_same_price() {
    let world = World::start(1, &[]).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let booking = paying(&ann, &[128, 129], Some("same_or_better")).await;
    expire(&world, &booking).await;
    bob.bought(&[129], "tok_paid").await;
    pay_on_page(&ann, &booking, "paid").await;
    let fresh = moved(&ann, &booking).await;
    assert_eq!(seats(&fresh), [127, 128], "side by side, as near as can be");
    ann.sees(127, '2').await;
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_seats_are_not_wanted_any_more_the_money_goes_back_though_they_are_free() {
    let world = World::start(1, &[]).await;
    // Said so at checkout.
    let ann = world.visitor();
    let said_so = paying(&ann, &[1], Some("refund")).await;
    expire(&world, &said_so).await;
    pay_on_page(&ann, &said_so, "paid").await;
    ann.sees_money(&said_so, "REFUNDED").await;
    // Chose again meanwhile.
    let ben = world.visitor();
    let again = paying(&ben, &[2], None).await;
    expire(&world, &again).await;
    ben.bought(&[3], "tok_paid").await;
    pay_on_page(&ben, &again, "paid").await;
    ben.sees_money(&again, "REFUNDED").await;
    // Cancelled, and the money could not be stopped.
    let cem = world.visitor();
    let cancelled = paying(&cem, &[4], Some("same_or_better")).await;
    pay_on_page(&cem, &cancelled, "late_webhook").await;
    let (status, answer) = cem.cancel(&cancelled, None).await;
    assert_eq!((status, &answer["state"]), (StatusCode::OK, &json!("CANCELLED")), "told a second later: {answer}");
    cem.sees_money(&cancelled, "REFUNDED").await;
    let unknown = json!({ "show": world.show, "hold": platform::ids::new_id(), "buyer": { "name": "A", "email": "a@b.org" },
                          "if_late": "whatever" });
    assert_eq!(cem.call(Method::POST, "/api/v1/bookings", unknown).await.0, StatusCode::BAD_REQUEST);
    books_balance(&world).await;
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 1, "Ben's other booking");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_last_counts() {
    let world = World::start(1, &[]).await;
    let ann = world.visitor();
    let (_, hold) = ann.hold(&[9]).await;
    let buyer = json!({ "name": "Ann Example", "email": "ann@example.org" });
    for if_late in ["refund", "same_seats"] {
        let wish = json!({ "show": world.show, "hold": hold["id"], "buyer": buyer, "if_late": if_late });
        let (status, booking) = ann.call(Method::POST, "/api/v1/bookings", wish).await;
        assert_eq!(status, StatusCode::CREATED, "{booking}");
    }
    let wishes = "SELECT count(*) FROM late_wishes WHERE if_late = 'same_seats'";
    assert_eq!(world.count(wishes).await, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_show_that_began_during_the_payment_is_refunded() {
    let mut world = World::start(1, &[]).await;
    let ann = world.visitor();
    let booking = paying(&ann, &[50], Some("same_or_better")).await;
    // The show begins while the payer is at the gateway's page, and the server that sent them there is gone.
    world.kill(0).await;
    let statements = [
        "UPDATE shows SET starts_at = now() - interval '1 second'",
        "UPDATE payments SET updated_at = now() - interval '1 hour'",
    ];
    pay_on_page(&ann, &booking, "paid").await;
    for statement in statements {
        sqlx::query(statement).execute(&world.pg).await.expect("time passes");
    }
    let other = world.add_server(&[]).await;
    let ann = Visitor { base: world.servers[other].url.clone(), ..ann };
    let seen = ann.sees_money(&booking, "REFUNDED").await;
    assert_eq!(seen["state"], "CANCELLED");
    assert_eq!(seen["refunds"][0]["amount"]["minor"], PRICE, "in full: {seen}");
    books_balance(&world).await;
    world.end().await;
}
