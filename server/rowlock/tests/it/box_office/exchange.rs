//! Exchanges of sold seats for others. A cheaper exchange refunds the difference with a manager's PIN. Of two concurrent
//! actions on one booking exactly one succeeds, and the money matches it.

use super::{
    PIN, acts, booking_path, code, desk_path, hold_seats, manager, sale, sales_path, sell_seats, seller_with_open_till,
    world_with_open_till, world_with_two_theatres,
};
use crate::books::Totals;
use crate::door::{codes, device, tonight};
use crate::faults::gateway_proxy::GatewayProxy as Gateway;
use crate::faults::injector::FaultInjector;
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn exchange_is_one_transaction_and_the_difference_goes_through_the_till() {
    let (world, mut rita) = world_with_two_theatres().await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let old = sell_seats(&mut ann, &world, &[4], "cash").await;
    let hold = hold_seats(&mut ann, &world, &[6, 7]).await;
    let request_body = |total: i64| json!({ "show": world.show, "hold": hold["id"], "total_minor": total, "reason": "A friend came." });
    let path = booking_path(&old, "/exchange");
    assert_eq!(code(&ann.post(&path, request_body(PRICE)).await), (409, "wrong_state".into()), "they cost more");
    assert_eq!(rita.post(&path, request_body(2 * PRICE)).await.0, StatusCode::NOT_FOUND);
    let new = expect_state(ann.post(&path, request_body(2 * PRICE)).await, StatusCode::CREATED, "CONFIRMED");
    assert_eq!(new["means"], "cash");
    let visitor = world.visitor();
    visitor.wait_for_seat(4, '0').await;
    visitor.wait_for_seat(6, '2').await;
    let claims = "SELECT count(*) FROM seat_claims WHERE state = 'sold'";
    assert_eq!(world.count(claims).await, 2);
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["cash"]["minor"], 2 * PRICE);
    let (_, before) = ann.get(&booking_path(&old, "")).await;
    assert_eq!([&before["state"], &before["money"]], [&json!("CANCELLED"), &json!("MOVED")]);
    assert_eq!(world.count("SELECT count(*) FROM tickets WHERE revoked_at IS NULL").await, 2);
    assert_eq!(code(&ann.post(&path, request_body(2 * PRICE)).await), (409, "wrong_state".into()), "once");
    // Back to one seat: a refund needs a manager.
    let hold = hold_seats(&mut ann, &world, &[8]).await;
    let less = json!({ "show": world.show, "hold": hold["id"], "total_minor": PRICE, "reason": "They left." });
    assert_eq!(code(&ann.post(&booking_path(&new, "/exchange"), less).await), (422, "pin_wrong".into()));
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000 + 2 * PRICE);
    world.wait_for_empty_outbox().await;
    assert_eq!(world.count(claims).await, 2);
    assert_eq!(acts(&world).await, ["till_opened", "sold", "exchanged"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn online_booking_is_exchanged_at_the_same_price_and_refunded_later_through_its_gateway() {
    let (world, mut ann) = world_with_open_till().await;
    let buyer = world.visitor();
    let bought = buyer.buy_seats(&[3], "tok_paid").await;
    let hold = hold_seats(&mut ann, &world, &[6, 7]).await;
    let dear = json!({ "show": world.show, "hold": hold["id"], "total_minor": 2 * PRICE, "reason": "More legroom." });
    assert_eq!(code(&ann.post(&booking_path(&bought, "/exchange"), dear).await), (409, "wrong_state".into()));
    let path = format!("/api/v1/shows/{}/holds/{}", world.show, text(&hold["id"]));
    let hold = expect_answer(ann.send(Method::PATCH, &path, json!({ "remove": [7] })).await, StatusCode::OK);
    let same = json!({ "show": world.show, "hold": hold["id"], "total_minor": PRICE, "reason": "More legroom." });
    let new = expect_state(ann.post(&booking_path(&bought, "/exchange"), same).await, StatusCode::CREATED, "CONFIRMED");
    // The new booking belongs to the buyer, who may cancel it: the money goes back through its gateway.
    assert_eq!(buyer.booking(&bought).await["moved_to"], new["id"]);
    assert_eq!(buyer.booking(&new).await["state"], "CONFIRMED");
    assert_eq!(buyer.cancel(&new, None).await.0, StatusCode::OK);
    buyer.wait_for_money(&new, "REFUNDED").await;
    buyer.wait_for_seat(3, '0').await;
    buyer.wait_for_seat(6, '0').await;
    assert_eq!(world.count("SELECT count(*) FROM till_rows WHERE kind = 'exchange'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn scanned_ticket_blocks_an_exchange_until_the_scan_is_undone() {
    let mut world = World::start(1, &[]).await;
    world.show = tonight(&world).await.show;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let door = device(&world, world.show, "Left door").await;
    let old = sell_seats(&mut ann, &world, &[4], "cash").await;
    let (ticket, scan) = (codes(&world, &old).await.remove(0), new_id());
    let (status, answer) = door.scan_as(&ticket, scan).await;
    assert_eq!((status, text(&answer["tickets"][0]["outcome"])), (StatusCode::OK, "admitted"), "{answer}");
    let hold = hold_seats(&mut ann, &world, &[6]).await;
    let request_body =
        json!({ "show": world.show, "hold": hold["id"], "total_minor": PRICE, "reason": "A better view." });
    let path = booking_path(&old, "/exchange");
    assert_eq!(code(&ann.post(&path, request_body.clone()).await), (409, "wrong_state".into()));
    world.visitor().wait_for_seat(4, '2').await;
    assert_eq!(door.undo(scan, "The wrong screen.").await.0, StatusCode::NO_CONTENT);
    let new = expect_state(ann.post(&path, request_body).await, StatusCode::CREATED, "CONFIRMED");
    assert_eq!(door.outcome(&ticket).await, "not_valid");
    assert_eq!(door.outcome(&codes(&world, &new).await[0]).await, "admitted");
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_with_a_pending_refund_is_exchanged_once_the_refund_is_settled() {
    let (world, mut ann) = world_with_open_till().await;
    let old = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    let (_, booking) = ann.get(&booking_path(&old, "")).await;
    let label = text(&booking["seats"][0]["label"]);
    let words = ["cancel-booking", text(&old["reference"]), "--seat", label, "--reason", "The seat is broken."];
    let (well, said) = world.command(&words).await;
    assert!(well, "{said}");
    let hold = hold_seats(&mut ann, &world, &[6]).await;
    let request_body =
        json!({ "show": world.show, "hold": hold["id"], "total_minor": PRICE, "reason": "A better view." });
    let path = booking_path(&old, "/exchange");
    assert_eq!(code(&ann.post(&path, request_body.clone()).await), (409, "wrong_state".into()));
    let why = json!({ "reason": "With the ticket in hand." });
    expect_answer(ann.post(&booking_path(&old, "/pay-out"), why).await, StatusCode::OK);
    let (status, new) = ann.post(&path, request_body).await;
    assert_eq!((status, &new["total"]["minor"]), (StatusCode::CREATED, &json!(PRICE)), "{new}");
    // Paid out once, whatever is left in the outbox.
    world.wait_for_empty_outbox().await;
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await, 1);
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000 + PRICE);
}

/// A world with a gateway whose ledger the test can read.
pub(super) async fn audited_world() -> (World, Gateway) {
    let gateway = Gateway::open(Arc::<FaultInjector>::default()).await;
    (World::start(1, &[("SIMULATOR_URL", gateway.url.as_str())]).await, gateway)
}

/// Waits until the books balance. Returns tickets, refunds and fees.
pub(super) async fn balanced_sums(world: &World, gateway: &Gateway) -> [i64; 3] {
    let totals = world.books(world.setting("REDIS_URL"), &gateway.simulator).wait_until_balanced().await;
    let Totals { money_in, tickets, refunds, fees, pending, .. } = totals;
    assert_eq!((money_in, pending), (tickets + refunds + fees, 0));
    [tickets, refunds, fees]
}

pub(super) fn exchange_body(show: Uuid, hold: &Value) -> Value {
    json!({ "show": show, "hold": hold["id"], "total_minor": hold["total"]["minor"], "reason": "One stays at home." })
}

pub(super) fn approved(body: &Value, manager: &Value, pin: &str) -> Value {
    let mut body = body.clone();
    (body["manager"], body["pin"]) = (manager.clone(), json!(pin));
    body
}

/// A show at the Aurora this evening, with seats at this price.
async fn show_for(world: &World, price: i64) -> Uuid {
    let show = tonight(world).await.show;
    world
        .run(sqlx::query("UPDATE shows SET prices = $2 WHERE id = $1").bind(show).bind(json!({ "gold": price })))
        .await;
    show
}

async fn holds_in(browser: &mut Browser, show: Uuid, seats: &[u32]) -> Value {
    let path = format!("/api/v1/shows/{show}/holds");
    expect_answer(browser.post(&path, json!({ "seats": seats })).await, StatusCode::CREATED)
}

async fn assert_not_exchanged(world: &World, ann: &mut Browser, old: &Value) {
    let (_, booking) = ann.get(&booking_path(old, "")).await;
    assert_eq!([&booking["state"], &booking["money"]], [&json!("CONFIRMED"), &json!("PAID")]);
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE channel = 'box_office'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM till_rows WHERE kind = 'exchange'").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM refunds").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM tickets WHERE revoked_at IS NOT NULL").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM audit_list WHERE act = 'exchanged'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn price_difference_leaves_the_till_once_and_the_shift_balances() {
    let (world, gateway) = audited_world().await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let old = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    let hold = hold_seats(&mut ann, &world, &[8]).await;
    let (path, plain) = (booking_path(&old, "/exchange"), exchange_body(world.show, &hold));
    let mut unsigned = plain.clone();
    unsigned["manager"] = max.clone();
    for refused in [&plain, &unsigned, &approved(&plain, &max, "123456"), &approved(&plain, &json!(new_id()), PIN)] {
        let answer = ann.post(&path, refused.clone()).await;
        assert_eq!(code(&answer), (422, "pin_wrong".into()), "{refused}: {}", answer.1);
    }
    assert_not_exchanged(&world, &mut ann, &old).await;

    let (visitor, key, good) = (ann.visitor(), new_id().to_string(), approved(&plain, &max, PIN));
    let (status, new) = visitor.call_with_key(Method::POST, &path, good.clone(), &key).await;
    assert_eq!((status, &new["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{new}");
    assert_eq!([&new["total"]["minor"], &new["difference"]["minor"]], [PRICE, -PRICE]);
    let back = &new["refunds"][0];
    assert_eq!((&back["amount"]["minor"], &back["settled"]), (&json!(PRICE), &json!(true)), "{new}");
    // The same key gets the same answer, whatever PIN is sent, and nothing is paid out again.
    for again in [good, approved(&plain, &max, "000000")] {
        assert_eq!(visitor.call_with_key(Method::POST, &path, again, &key).await, (status, new.clone()));
    }
    assert_eq!(world.count("SELECT count(*) FROM till_rows WHERE kind = 'exchange'").await, 1);
    let (_, before) = ann.get(&booking_path(&old, "")).await;
    assert_eq!([&before["state"], &before["money"]], [&json!("CANCELLED"), &json!("MOVED")]);
    assert_eq!(world.count("SELECT count(*) FROM tickets WHERE revoked_at IS NULL").await, 1);
    for (seat, state) in [(4, '0'), (5, '0'), (8, '2')] {
        world.visitor().wait_for_seat(seat, state).await;
    }

    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!((&till["cash"]["minor"], &till["expected"]["minor"]), (&json!(PRICE), &json!(10_000 + PRICE)));
    let line = &till["rows"][0];
    assert_eq!((&line["kind"], &line["amount"]["minor"]), (&json!("exchange"), &json!(-PRICE)), "{till}");
    let (status, printed) = ann.post(&booking_path(&new, "/tickets"), json!(null)).await;
    assert_eq!((status, printed.as_array().map(Vec::len)), (StatusCode::OK, Some(1)));
    assert_eq!(code(&ann.post(&booking_path(&old, "/tickets"), json!(null)).await), (409, "wrong_state".into()));
    assert_eq!(acts(&world).await, ["pin_set", "till_opened", "sold", "exchanged", "tickets_printed"]);
    let query = "SELECT count(*) FROM audit_list WHERE act = 'exchanged' AND actor IS NOT NULL
                AND reason LIKE '%by the PIN of account %: One stays at home.'";
    assert_eq!(world.count(query).await, 1);
    let counted = json!({ "counted_minor": 10_000 + PRICE });
    assert_eq!(ann.post(&desk_path("till/cash-up"), counted).await.0, StatusCode::OK);
    assert_eq!(balanced_sums(&world, &gateway).await, [PRICE, PRICE, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_after_a_refund_at_another_till_needs_the_new_total() {
    let (world, gateway) = audited_world().await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let mut ben = seller_with_open_till(&world, "ben@example.org").await;
    let old = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    let hold = hold_seats(&mut ann, &world, &[8, 9]).await;
    // Ann sees two seats for two: no difference.
    let mut even = exchange_body(world.show, &hold);
    even["from_total_minor"] = old["total"]["minor"].clone();
    let part = json!({ "seats": [4], "reason": "It is broken.", "manager": max, "pin": PIN });
    assert_eq!(ben.post(&booking_path(&old, "/refund"), part).await.0, StatusCode::OK);
    let path = booking_path(&old, "/exchange");
    assert_eq!(code(&ann.post(&path, even.clone()).await), (409, "wrong_state".into()));
    assert_eq!(world.count("SELECT count(*) FROM till_rows WHERE kind = 'exchange'").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE channel = 'box_office'").await, 1);
    // The current state: the refunded seat is paid again.
    even["from_total_minor"] = json!(PRICE);
    let (status, new) = ann.post(&path, even).await;
    assert_eq!((status, &new["difference"]["minor"]), (StatusCode::CREATED, &json!(PRICE)), "{new}");
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!((&till["rows"][0]["kind"], &till["rows"][0]["amount"]["minor"]), (&json!("exchange"), &json!(PRICE)));
    let (_, later) = ann.get(&booking_path(&new, "")).await;
    assert_eq!(later["difference"], Value::Null, "the difference belongs to the exchange, not to the booking");
    assert_eq!(balanced_sums(&world, &gateway).await, [2 * PRICE, PRICE, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_of_a_counter_card_payment_moves_no_cash_and_guest_seats_stay_free() {
    let (world, gateway) = audited_world().await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let old = sell_seats(&mut ann, &world, &[4, 5], "card").await;
    let hold = hold_seats(&mut ann, &world, &[8]).await;
    let less = approved(&exchange_body(world.show, &hold), &max, PIN);
    let (status, new) = ann.post(&booking_path(&old, "/exchange"), less).await;
    assert_eq!((status, &new["means"]), (StatusCode::CREATED, &json!("card")));
    assert_eq!(new["refunds"][0]["settled"], true);
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!((&till["card"]["minor"], &till["expected"]["minor"]), (&json!(PRICE), &json!(10_000)));

    let hold = hold_seats(&mut ann, &world, &[0, 1]).await;
    let guest = json!({ "hold": hold["id"], "means": "free", "total_minor": 0, "reason": "Press." });
    let given = expect_answer(ann.post(&sales_path(&world), guest).await, StatusCode::CREATED);
    let hold = hold_seats(&mut ann, &world, &[2]).await;
    let mut other = exchange_body(world.show, &hold);
    other["total_minor"] = json!(0);
    let (status, new) = ann.post(&booking_path(&given, "/exchange"), other).await;
    assert_eq!((status, &new["means"]), (StatusCode::CREATED, &json!("free")), "{new}");
    assert_eq!(new["total"]["minor"], 0);
    assert_eq!(balanced_sums(&world, &gateway).await, [PRICE, PRICE, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_of_an_online_payment_refunds_the_card_and_no_till() {
    let (world, gateway) = audited_world().await;
    let (mut max, account) = manager(&world).await;
    let buyer = world.visitor();
    let bought = buyer.buy_seats(&[3, 4], "tok_paid").await;
    let hold = hold_seats(&mut max, &world, &[8]).await;
    let plain = exchange_body(world.show, &hold);
    let path = booking_path(&bought, "/exchange");
    assert_eq!(code(&max.post(&path, plain.clone()).await), (422, "pin_wrong".into()));
    let (status, new) = max.post(&path, approved(&plain, &account, PIN)).await;
    assert_eq!((status, &new["refunds"][0]["amount"]["minor"]), (StatusCode::CREATED, &json!(PRICE)), "{new}");
    assert_eq!(world.count("SELECT count(*) FROM till_rows").await, 0);
    world
        .wait_for_count("the gateway has refunded it", "SELECT count(*) FROM refunds WHERE state = 'settled'", 1)
        .await;
    assert_eq!(balanced_sums(&world, &gateway).await, [PRICE, PRICE, 0]);
    // Exchanged once more at the same price; then the buyer cancels. Refunds never exceed the payments.
    let hold = hold_seats(&mut max, &world, &[9]).await;
    let answer = max.post(&booking_path(&new, "/exchange"), exchange_body(world.show, &hold)).await;
    let last = expect_answer(answer, StatusCode::CREATED);
    assert_eq!(balanced_sums(&world, &gateway).await, [PRICE, PRICE, 0]);
    assert_eq!(buyer.cancel(&last, None).await.0, StatusCode::OK);
    buyer.wait_for_money(&last, "REFUNDED").await;
    let fee = PRICE / 10;
    assert_eq!(balanced_sums(&world, &gateway).await, [0, 2 * PRICE - fee, fee]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_for_another_show_at_another_price_voids_the_old_ticket() {
    let (mut world, gateway) = audited_world().await;
    world.show = tonight(&world).await.show;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let [cheap, dear] = [show_for(&world, PRICE - 250).await, show_for(&world, PRICE + 750).await];
    let old = sell_seats(&mut ann, &world, &[4], "cash").await;
    let old_ticket = codes(&world, &old).await.remove(0);
    let hold = holds_in(&mut ann, cheap, &[7]).await;
    let astray = approved(&exchange_body(dear, &hold), &max, PIN);
    assert_eq!(code(&ann.post(&booking_path(&old, "/exchange"), astray).await), (410, "hold_expired".into()));
    let (status, new) =
        ann.post(&booking_path(&old, "/exchange"), approved(&exchange_body(cheap, &hold), &max, PIN)).await;
    assert_eq!((status, &new["show"]), (StatusCode::CREATED, &json!(cheap)));
    assert_eq!(new["refunds"][0]["amount"]["minor"], 250);
    let there = world.visitor().at_show(cheap);
    there.wait_for_seat(7, '2').await;
    world.visitor().wait_for_seat(4, '0').await;
    let (door, elsewhere) = (device(&world, world.show, "Left").await, device(&world, cheap, "Right").await);
    assert_eq!(door.outcome(&old_ticket).await, "not_valid");
    assert_ne!(elsewhere.outcome(&old_ticket).await, "admitted");
    let hold = holds_in(&mut ann, dear, &[7]).await;
    let (status, last) = ann.post(&booking_path(&new, "/exchange"), exchange_body(dear, &hold)).await;
    assert_eq!((status, &last["total"]["minor"]), (StatusCode::CREATED, &json!(PRICE + 750)), "{last}");
    there.wait_for_seat(7, '0').await;
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000 + PRICE + 750);
    assert_eq!(balanced_sums(&world, &gateway).await, [PRICE + 750, 250, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_needs_a_show_that_has_not_begun_and_cash_in_the_till() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let old = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    let path = booking_path(&old, "/exchange");
    let begun = insert_show(&world.pg, 300_000, -60).await;
    let hold = hold_seats(&mut ann, &world, &[8]).await;
    let late = approved(&exchange_body(begun, &hold), &max, PIN);
    assert_eq!(code(&ann.post(&path, late).await), (409, "sales_closed".into()));
    let all = json!({ "amount_minor": 10_000 + 2 * PRICE, "reason": "It is late." });
    assert_eq!(ann.post(&desk_path("till/drops"), all).await.0, StatusCode::OK);
    let less = approved(&exchange_body(world.show, &hold), &max, PIN);
    assert_eq!(code(&ann.post(&path, less.clone()).await), (409, "till_short".into()));
    assert_not_exchanged(&world, &mut ann, &old).await;
    // The hold survived the refusals: with cash in the till the exchange succeeds.
    let other = holds_in(&mut ann, insert_show(&world.pg, 300_000, 30 * 3_600).await, &[0]).await;
    let elsewhere = sales_path(&world).replace(&world.show.to_string(), text(&other["show"]));
    expect_answer(ann.post(&elsewhere, sale(&other, "cash")).await, StatusCode::CREATED);
    expect_answer(ann.post(&path, less).await, StatusCode::CREATED);
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["expected"]["minor"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_of_a_show_that_has_begun_is_exchanged_with_a_pin_only() {
    let (world, gateway) = audited_world().await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let old = sell_seats(&mut ann, &world, &[4], "cash").await;
    let begun = "UPDATE shows SET starts_at = now() - interval '1 day' WHERE id = $1";
    world.run(sqlx::query(begun).bind(world.show)).await;
    let coming = insert_show(&world.pg, 300_000, 30 * 3_600).await;
    let hold = holds_in(&mut ann, coming, &[7]).await;
    let (path, plain) = (booking_path(&old, "/exchange"), exchange_body(coming, &hold));
    let mut unsigned = plain.clone();
    unsigned["manager"] = max.clone();
    for refused in [&plain, &unsigned, &approved(&plain, &max, "123456")] {
        let answer = ann.post(&path, refused.clone()).await;
        assert_eq!(code(&answer), (422, "pin_wrong".into()), "{refused}: {}", answer.1);
    }
    assert_not_exchanged(&world, &mut ann, &old).await;
    // The hold survived the refusals.
    let (status, new) = ann.post(&path, approved(&plain, &max, PIN)).await;
    assert_eq!((status, &new["difference"]["minor"]), (StatusCode::CREATED, &json!(0)), "{new}");
    let query = "SELECT count(*) FROM audit_list WHERE act = 'exchanged' AND reason LIKE '%by the PIN of account %'";
    assert_eq!(world.count(query).await, 1);
    assert_eq!(balanced_sums(&world, &gateway).await, [PRICE, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_for_a_seat_sold_meanwhile_changes_nothing() {
    let (world, gateway) = audited_world().await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let old = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    let buyer = world.visitor();
    buyer.buy_seats(&[9], "tok_paid").await;
    buyer.wait_for_seat(9, '2').await;
    // Redis loses the sale and grants the seat again.
    world.mark_seat_free_in_redis(9).await;
    let hold = hold_seats(&mut ann, &world, &[9]).await;
    let less = approved(&exchange_body(world.show, &hold), &max, PIN);
    assert_eq!(code(&ann.post(&booking_path(&old, "/exchange"), less).await), (409, "seats_taken".into()));
    assert_not_exchanged(&world, &mut ann, &old).await;
    for seat in [4, 5, 9] {
        buyer.wait_for_seat(seat, '2').await;
    }
    assert_eq!(balanced_sums(&world, &gateway).await, [3 * PRICE, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_limits_pin_attempts() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let old = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    let hold = hold_seats(&mut ann, &world, &[8]).await;
    let (path, plain) = (booking_path(&old, "/exchange"), exchange_body(world.show, &hold));
    let mut statuses = Vec::new();
    for guess in 0..6 {
        statuses.push(code(&ann.post(&path, approved(&plain, &max, &format!("00000{guess}"))).await).0);
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    assert_eq!(code(&ann.post(&path, approved(&plain, &max, PIN)).await).0, 429, "nor the correct PIN");
    assert_not_exchanged(&world, &mut ann, &old).await;
}

/// Rounds per case, because either side may win. More would empty Ben's till.
const ROUNDS: u32 = 2;

/// Concurrent pairs. The booking always has two seats, and an exchange always takes one.
#[derive(Clone, Copy, Debug)]
enum Case {
    /// An exchange and its retry under one key.
    Repeat,
    /// Two sellers, each with a hold and a key.
    Sellers,
    /// An exchange and a refund of the whole booking.
    Refund,
    /// An exchange, and the buyer, who paid online and cancels.
    Buyer,
}

struct Counters {
    ann: Browser,
    ben: Browser,
    max: Value,
}

/// Money that is kept: for tickets, and as a fee. The rest is refunded.
type KeptMoney = (i64, i64);

/// Returns whether the action succeeded. A failure must be the conflict.
fn is_success(answer: &(StatusCode, Value)) -> bool {
    if !answer.0.is_success() {
        assert_eq!(code(answer), (409, "wrong_state".into()), "{}", answer.1);
    }
    answer.0.is_success()
}

/// Asserts that exactly one of two actions succeeded. Returns whether it was the first.
fn is_first_successful(first: &(StatusCode, Value), second: &(StatusCode, Value)) -> bool {
    assert_ne!(is_success(first), is_success(second), "{} {}", first.1, second.1);
    is_success(first)
}

impl Counters {
    async fn run_concurrently(&mut self, world: &World, case: Case) -> KeptMoney {
        match case {
            Case::Repeat => self.repeat(world).await,
            Case::Sellers => self.sellers(world).await,
            Case::Refund => self.refund(world).await,
            Case::Buyer => self.buyer(world).await,
        }
    }

    /// Ann sells two seats for cash and holds another one for the exchange.
    async fn sale_and_hold(&mut self, world: &World) -> (Value, Value) {
        let old = sell_seats(&mut self.ann, world, &[4, 5], "cash").await;
        let hold = hold_seats(&mut self.ann, world, &[8]).await;
        (old, approved(&exchange_body(world.show, &hold), &self.max, PIN))
    }

    async fn hold_of_ben(&mut self, world: &World) -> Value {
        let hold = hold_seats(&mut self.ben, world, &[9]).await;
        approved(&exchange_body(world.show, &hold), &self.max, PIN)
    }

    async fn repeat(&mut self, world: &World) -> KeptMoney {
        let (old, less) = self.sale_and_hold(world).await;
        let (ann, path, key) = (self.ann.visitor(), booking_path(&old, "/exchange"), new_id().to_string());
        let ask = || ann.call_with_key(Method::POST, &path, less.clone(), &key);
        let (one, other) = tokio::join!(ask(), ask());
        assert_eq!(one.0, StatusCode::CREATED, "{}", one.1);
        assert_eq!(one, other, "concurrent requests with one key get one answer");
        (PRICE, 0)
    }

    async fn sellers(&mut self, world: &World) -> KeptMoney {
        let (old, anns) = self.sale_and_hold(world).await;
        let bens = self.hold_of_ben(world).await;
        let path = booking_path(&old, "/exchange");
        let (one, other) = tokio::join!(self.ann.post(&path, anns), self.ben.post(&path, bens));
        // The losing side still has its hold.
        let (sold, held) = if is_first_successful(&one, &other) { (8, 9) } else { (9, 8) };
        world.visitor().wait_for_seat(sold, '2').await;
        world.visitor().wait_for_seat(held, '1').await;
        (PRICE, 0)
    }

    async fn refund(&mut self, world: &World) -> KeptMoney {
        let (old, less) = self.sale_and_hold(world).await;
        let all = json!({ "reason": "They are ill.", "manager": self.max, "pin": PIN });
        let (path, back) = (booking_path(&old, "/exchange"), booking_path(&old, "/refund"));
        let (exchanged, refunded) = tokio::join!(self.ann.post(&path, less), self.ben.post(&back, all));
        (if is_first_successful(&exchanged, &refunded) { PRICE } else { 0 }, 0)
    }

    async fn buyer(&mut self, world: &World) -> KeptMoney {
        let buyer = world.visitor();
        let bought = buyer.buy_seats(&[4, 5], "tok_paid").await;
        let less = self.hold_of_ben(world).await;
        let path = booking_path(&bought, "/exchange");
        let (exchanged, cancelled) = tokio::join!(self.ben.post(&path, less), buyer.cancel(&bought, None));
        if is_first_successful(&exchanged, &cancelled) { (PRICE, 0) } else { (0, 2 * PRICE / 10) }
    }

    async fn expected(&mut self) -> i64 {
        let mut sum = 0;
        for seller in [&mut self.ann, &mut self.ben] {
            let (_, till) = seller.get(&desk_path("till")).await;
            sum += till["expected"]["minor"].as_i64().expect("a sum");
        }
        sum
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_actions_on_a_booking_wins_and_money_is_counted_once() {
    let (mut world, gateway) = audited_world().await;
    let (_, max) = manager(&world).await;
    let (ann, ben) = (
        seller_with_open_till(&world, "ann@example.org").await,
        seller_with_open_till(&world, "ben@example.org").await,
    );
    let mut counters = Counters { ann, ben, max };
    let (mut total, mut in_tills) = ([0; 3], 2 * 10_000);
    for case in [Case::Repeat, Case::Sellers, Case::Refund, Case::Buyer].repeat(ROUNDS as usize) {
        world.show = insert_show(&world.pg, 300_000, 30 * 3_600).await;
        let (tickets, fee) = counters.run_concurrently(&world, case).await;
        for (sum, part) in total.iter_mut().zip([tickets, 2 * PRICE - tickets - fee, fee]) {
            *sum += part;
        }
        if !matches!(case, Case::Buyer) {
            in_tills += tickets;
        }
        assert_eq!(balanced_sums(&world, &gateway).await, total, "{case:?}");
        assert_eq!(counters.expected().await, in_tills, "{case:?}");
    }
    let cash = "SELECT sum(amount_minor)::bigint FROM till_rows";
    assert_eq!(world.count(cash).await, in_tills, "every till row once");
}
