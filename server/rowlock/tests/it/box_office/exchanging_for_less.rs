//! Other seats that cost less: the difference goes back, and a manager stands for it.

use std::sync::Arc;

use platform::ids::new_id;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{PIN, acts, at_work, code, desk, holds, manager, of_booking, sale, sales, sells};
use crate::accounts::Browser;
use crate::books::Totals;
use crate::door::{codes, device, tonight};
use crate::faults::till::Till as Gateway;
use crate::faults::wires::Wires;
use crate::world::{PRICE, Visitor, World, insert_show, text, until};

/// A world whose gateway's ledger can be read, and that gateway.
pub(super) async fn audited() -> (World, Gateway) {
    let gateway = Gateway::open(Arc::<Wires>::default()).await;
    (World::start(1, &[("SIMULATOR_URL", gateway.url.as_str())]).await, gateway)
}

/// Waits until the books balance: tickets, refunds and fees, in this order.
pub(super) async fn books(world: &World, gateway: &Gateway) -> [i64; 3] {
    let totals = world.books(world.setting("REDIS_URL"), &gateway.simulator).balance().await;
    let Totals { money_in, tickets, refunds, fees, pending, .. } = totals;
    assert_eq!((money_in, pending), (tickets + refunds + fees, 0));
    [tickets, refunds, fees]
}

/// The wish to have what is held in that show instead.
pub(super) fn wish(show: Uuid, hold: &Value) -> Value {
    json!({ "show": show, "hold": hold["id"], "total_minor": hold["total"]["minor"], "reason": "One stays at home." })
}

/// The same with somebody who stands for it.
pub(super) fn backed(wish: &Value, manager: &Value, pin: &str) -> Value {
    let mut wish = wish.clone();
    (wish["manager"], wish["pin"]) = (manager.clone(), json!(pin));
    wish
}

/// A show of this evening at the Aurora, whose seats cost this.
async fn show_for(world: &World, price: i64) -> Uuid {
    let show = tonight(world).await.show;
    let priced = sqlx::query("UPDATE shows SET prices = $2 WHERE id = $1").bind(show).bind(json!({ "gold": price }));
    priced.execute(&world.pg).await.expect("it is priced");
    show
}

async fn holds_in(browser: &mut Browser, show: Uuid, seats: &[u32]) -> Value {
    let (status, hold) = browser.post(&format!("/api/v1/shows/{show}/holds"), json!({ "seats": seats })).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    hold
}

/// Nothing of an exchange is there: one sale of two seats, as it was sold.
async fn nothing_was_done(world: &World, ann: &mut Browser, old: &Value) {
    let (_, booking) = ann.get(&of_booking(old, "")).await;
    assert_eq!([&booking["state"], &booking["money"]], [&json!("CONFIRMED"), &json!("PAID")]);
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE channel = 'box_office'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM till_rows WHERE kind = 'exchange'").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM refunds").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM tickets WHERE revoked_at IS NOT NULL").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'exchanged'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_difference_comes_out_of_the_till_once_and_the_shift_adds_up() {
    let (world, gateway) = audited().await;
    let (_, max) = manager(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let old = sells(&mut ann, &world, &[4, 5], "cash").await;
    let hold = holds(&mut ann, &world, &[8]).await;
    let (path, plain) = (of_booking(&old, "/exchange"), wish(world.show, &hold));
    let mut unsigned = plain.clone();
    unsigned["manager"] = max.clone();
    for refused in [&plain, &unsigned, &backed(&plain, &max, "123456"), &backed(&plain, &json!(new_id()), PIN)] {
        let answer = ann.post(&path, refused.clone()).await;
        assert_eq!(code(&answer), (422, "pin_wrong".into()), "{refused}: {}", answer.1);
    }
    nothing_was_done(&world, &mut ann, &old).await;

    let (visitor, key, good) = (ann.visitor(), new_id().to_string(), backed(&plain, &max, PIN));
    let (status, new) = visitor.call_with_key(Method::POST, &path, good.clone(), &key).await;
    assert_eq!(
        (status, &new["state"], &new["total"]["minor"]),
        (StatusCode::CREATED, &json!("CONFIRMED"), &json!(PRICE))
    );
    assert_eq!(new["difference"]["minor"], -PRICE);
    let back = &new["refunds"][0];
    assert_eq!((&back["amount"]["minor"], &back["settled"]), (&json!(PRICE), &json!(true)), "{new}");
    // The same key: the same answer, whatever PIN is typed, and nothing is paid out again.
    for again in [good, backed(&plain, &max, "000000")] {
        assert_eq!(visitor.call_with_key(Method::POST, &path, again, &key).await, (status, new.clone()));
    }
    assert_eq!(world.count("SELECT count(*) FROM till_rows WHERE kind = 'exchange'").await, 1);
    let (_, before) = ann.get(&of_booking(&old, "")).await;
    assert_eq!([&before["state"], &before["money"]], [&json!("CANCELLED"), &json!("MOVED")]);
    assert_eq!(world.count("SELECT count(*) FROM tickets WHERE revoked_at IS NULL").await, 1);
    for (seat, state) in [(4, '0'), (5, '0'), (8, '2')] {
        world.visitor().sees(seat, state).await;
    }

    let (_, till) = ann.get(&desk("till")).await;
    assert_eq!((&till["cash"]["minor"], &till["expected"]["minor"]), (&json!(PRICE), &json!(10_000 + PRICE)));
    let line = &till["rows"][0];
    assert_eq!((&line["kind"], &line["amount"]["minor"]), (&json!("exchange"), &json!(-PRICE)), "{till}");
    let (status, printed) = ann.post(&of_booking(&new, "/tickets"), json!(null)).await;
    assert_eq!((status, printed.as_array().map(Vec::len)), (StatusCode::OK, Some(1)));
    assert_eq!(code(&ann.post(&of_booking(&old, "/tickets"), json!(null)).await), (409, "wrong_state".into()));
    assert_eq!(acts(&world).await, ["pin_set", "till_opened", "sold", "exchanged", "tickets_printed"]);
    let told = "SELECT count(*) FROM audit_list WHERE act = 'exchanged' AND actor IS NOT NULL
                AND reason LIKE '%by the PIN of account %: One stays at home.'";
    assert_eq!(world.count(told).await, 1);
    let counted = json!({ "counted_minor": 10_000 + PRICE });
    assert_eq!(ann.post(&desk("till/cash-up"), counted).await.0, StatusCode::OK);
    assert_eq!(books(&world, &gateway).await, [PRICE, PRICE, 0]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_went_back_at_another_till_meanwhile_is_looked_at_once_more() {
    let (world, gateway) = audited().await;
    let (_, max) = manager(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let mut ben = at_work(&world, "ben@example.org").await;
    let old = sells(&mut ann, &world, &[4, 5], "cash").await;
    let hold = holds(&mut ann, &world, &[8, 9]).await;
    // Ann looks at two seats for two: nothing would change hands.
    let mut even = wish(world.show, &hold);
    even["from_total_minor"] = old["total"]["minor"].clone();
    let part = json!({ "seats": [4], "reason": "It is broken.", "manager": max, "pin": PIN });
    assert_eq!(ben.post(&of_booking(&old, "/refund"), part).await.0, StatusCode::OK);
    let path = of_booking(&old, "/exchange");
    assert_eq!(code(&ann.post(&path, even.clone()).await), (409, "wrong_state".into()));
    assert_eq!(world.count("SELECT count(*) FROM till_rows WHERE kind = 'exchange'").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE channel = 'box_office'").await, 1);
    // As it is now: the seat that was paid back is paid once more.
    even["from_total_minor"] = json!(PRICE);
    let (status, new) = ann.post(&path, even).await;
    assert_eq!((status, &new["difference"]["minor"]), (StatusCode::CREATED, &json!(PRICE)), "{new}");
    let (_, till) = ann.get(&desk("till")).await;
    assert_eq!((&till["rows"][0]["kind"], &till["rows"][0]["amount"]["minor"]), (&json!("exchange"), &json!(PRICE)));
    let (_, later) = ann.get(&of_booking(&new, "")).await;
    assert_eq!(later["difference"], Value::Null, "it belongs to the exchange, not to the booking");
    assert_eq!(books(&world, &gateway).await, [2 * PRICE, PRICE, 0]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_by_card_at_the_counter_leaves_the_cash_alone_and_a_guest_of_the_house_stays_one() {
    let (world, gateway) = audited().await;
    let (_, max) = manager(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let old = sells(&mut ann, &world, &[4, 5], "card").await;
    let hold = holds(&mut ann, &world, &[8]).await;
    let less = backed(&wish(world.show, &hold), &max, PIN);
    let (status, new) = ann.post(&of_booking(&old, "/exchange"), less).await;
    assert_eq!(
        (status, &new["means"], &new["refunds"][0]["settled"]),
        (StatusCode::CREATED, &json!("card"), &json!(true))
    );
    let (_, till) = ann.get(&desk("till")).await;
    assert_eq!((&till["card"]["minor"], &till["expected"]["minor"]), (&json!(PRICE), &json!(10_000)));

    let hold = holds(&mut ann, &world, &[0, 1]).await;
    let guest = json!({ "hold": hold["id"], "means": "free", "total_minor": 0, "reason": "Press." });
    let (status, given) = ann.post(&sales(&world), guest).await;
    assert_eq!(status, StatusCode::CREATED, "{given}");
    let hold = holds(&mut ann, &world, &[2]).await;
    let mut other = wish(world.show, &hold);
    other["total_minor"] = json!(0);
    let (status, new) = ann.post(&of_booking(&given, "/exchange"), other).await;
    assert_eq!(
        (status, &new["means"], &new["total"]["minor"]),
        (StatusCode::CREATED, &json!("free"), &json!(0)),
        "{new}"
    );
    assert_eq!(books(&world, &gateway).await, [PRICE, PRICE, 0]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_online_goes_back_to_the_card_and_concerns_no_till() {
    let (world, gateway) = audited().await;
    let (mut max, account) = manager(&world).await;
    let buyer = world.visitor();
    let bought = buyer.bought(&[3, 4], "tok_paid").await;
    let hold = holds(&mut max, &world, &[8]).await;
    let plain = wish(world.show, &hold);
    let path = of_booking(&bought, "/exchange");
    assert_eq!(code(&max.post(&path, plain.clone()).await), (422, "pin_wrong".into()));
    let (status, new) = max.post(&path, backed(&plain, &account, PIN)).await;
    assert_eq!((status, &new["refunds"][0]["amount"]["minor"]), (StatusCode::CREATED, &json!(PRICE)), "{new}");
    assert_eq!(world.count("SELECT count(*) FROM till_rows").await, 0);
    until("the gateway has sent it back", || async {
        world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await == 1
    })
    .await;
    assert_eq!(books(&world, &gateway).await, [PRICE, PRICE, 0]);
    // Exchanged once more, for the same price; then its buyer cancels as ever: never more goes back than was paid.
    let hold = holds(&mut max, &world, &[9]).await;
    let (status, last) = max.post(&of_booking(&new, "/exchange"), wish(world.show, &hold)).await;
    assert_eq!(status, StatusCode::CREATED, "{last}");
    assert_eq!(books(&world, &gateway).await, [PRICE, PRICE, 0]);
    assert_eq!(buyer.cancel(&last, None).await.0, StatusCode::OK);
    buyer.sees_money(&last, "REFUNDED").await;
    let fee = PRICE / 10;
    assert_eq!(books(&world, &gateway).await, [0, 2 * PRICE - fee, fee]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_show_may_cost_less_or_more_and_the_old_ticket_opens_no_door() {
    let (mut world, gateway) = audited().await;
    world.show = tonight(&world).await.show;
    let (_, max) = manager(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let [cheap, dear] = [show_for(&world, PRICE - 250).await, show_for(&world, PRICE + 750).await];
    let old = sells(&mut ann, &world, &[4], "cash").await;
    let old_ticket = codes(&world, &old).await.remove(0);
    let hold = holds_in(&mut ann, cheap, &[7]).await;
    // The show of the hold is named, and no other.
    let astray = backed(&wish(dear, &hold), &max, PIN);
    assert_eq!(code(&ann.post(&of_booking(&old, "/exchange"), astray).await), (410, "hold_expired".into()));
    let (status, new) = ann.post(&of_booking(&old, "/exchange"), backed(&wish(cheap, &hold), &max, PIN)).await;
    assert_eq!(
        (status, &new["show"], &new["refunds"][0]["amount"]["minor"]),
        (StatusCode::CREATED, &json!(cheap), &json!(250))
    );
    let there = Visitor { show: cheap, ..world.visitor() };
    there.sees(7, '2').await;
    world.visitor().sees(4, '0').await;
    let (door, elsewhere) = (device(&world, world.show, "Left").await, device(&world, cheap, "Right").await);
    assert_eq!(door.outcome(&old_ticket).await, "not_valid");
    assert_ne!(elsewhere.outcome(&old_ticket).await, "admitted");
    // Dearer: nobody is asked for a PIN.
    let hold = holds_in(&mut ann, dear, &[7]).await;
    let (status, last) = ann.post(&of_booking(&new, "/exchange"), wish(dear, &hold)).await;
    assert_eq!((status, &last["total"]["minor"]), (StatusCode::CREATED, &json!(PRICE + 750)), "{last}");
    there.sees(7, '0').await;
    let (_, till) = ann.get(&desk("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000 + PRICE + 750);
    assert_eq!(books(&world, &gateway).await, [PRICE + 750, 250, 0]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_show_that_has_begun_takes_nobody_and_a_till_pays_out_no_more_than_is_in_it() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let old = sells(&mut ann, &world, &[4, 5], "cash").await;
    let path = of_booking(&old, "/exchange");
    let begun = insert_show(&world.pg, 300_000, -60).await;
    let hold = holds(&mut ann, &world, &[8]).await;
    let late = backed(&wish(begun, &hold), &max, PIN);
    assert_eq!(code(&ann.post(&path, late).await), (409, "sales_closed".into()));
    let all = json!({ "amount_minor": 10_000 + 2 * PRICE, "reason": "It is late." });
    assert_eq!(ann.post(&desk("till/drops"), all).await.0, StatusCode::OK);
    let less = backed(&wish(world.show, &hold), &max, PIN);
    assert_eq!(code(&ann.post(&path, less.clone()).await), (409, "till_short".into()));
    nothing_was_done(&world, &mut ann, &old).await;
    // What is held was kept all the while: with money in the till it goes through.
    let other = holds_in(&mut ann, insert_show(&world.pg, 300_000, 30 * 3_600).await, &[0]).await;
    let elsewhere = sales(&world).replace(&world.show.to_string(), text(&other["show"]));
    let (status, sold) = ann.post(&elsewhere, sale(&other, "cash")).await;
    assert_eq!(status, StatusCode::CREATED, "{sold}");
    let (status, new) = ann.post(&path, less).await;
    assert_eq!(status, StatusCode::CREATED, "{new}");
    let (_, till) = ann.get(&desk("till")).await;
    assert_eq!(till["expected"]["minor"], 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seat_that_was_sold_meanwhile_leaves_everything_as_it_was() {
    let (world, gateway) = audited().await;
    let (_, max) = manager(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let old = sells(&mut ann, &world, &[4, 5], "cash").await;
    let buyer = world.visitor();
    buyer.bought(&[9], "tok_paid").await;
    buyer.sees(9, '2').await;
    // Redis forgets the sale, and grants the seat again.
    world.forget_lock(9).await;
    let hold = holds(&mut ann, &world, &[9]).await;
    let less = backed(&wish(world.show, &hold), &max, PIN);
    assert_eq!(code(&ann.post(&of_booking(&old, "/exchange"), less).await), (409, "seats_taken".into()));
    nothing_was_done(&world, &mut ann, &old).await;
    for seat in [4, 5, 9] {
        buyer.sees(seat, '2').await;
    }
    assert_eq!(books(&world, &gateway).await, [3 * PRICE, 0, 0]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_is_not_guessed_by_exchanging_either() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let old = sells(&mut ann, &world, &[4, 5], "cash").await;
    let hold = holds(&mut ann, &world, &[8]).await;
    let (path, plain) = (of_booking(&old, "/exchange"), wish(world.show, &hold));
    let mut said = Vec::new();
    for guess in 0..6 {
        said.push(code(&ann.post(&path, backed(&plain, &max, &format!("00000{guess}"))).await).0);
    }
    assert_eq!(said.last(), Some(&429), "{said:?}");
    assert_eq!(code(&ann.post(&path, backed(&plain, &max, PIN)).await).0, 429, "the right one is not tried either");
    nothing_was_done(&world, &mut ann, &old).await;
    world.end().await;
}
