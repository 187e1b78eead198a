//! A shift at a till, the end of the day, refunds with a manager's PIN, undone sales, and refunds that wait at the counter.

use super::{
    PIN, acts, booking_path, code, desk_path, hired, hold_seats, manager, sale, sales_path, sell_seats, seller,
    seller_with_open_till, set_name, world_with_open_till, world_with_two_theatres,
};
use crate::door::{codes, device, tonight};
use crate::mailed_links::{submit, wait_for_mailed_path};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn shift_runs_from_float_to_cash_up_and_the_day_closes() {
    let world = World::start(1, &[]).await;
    let mut max = hired(&world, "max@example.org", "manager").await;
    let mut ann = seller(&world, "ann@example.org").await;
    assert_eq!(ann.get(&desk_path("till")).await.0, StatusCode::NO_CONTENT);
    let (status, till) = ann.post(&desk_path("till"), json!({ "float_minor": 10_000 })).await;
    assert_eq!((status, &till["expected"]["minor"]), (StatusCode::CREATED, &json!(10_000)), "{till}");
    sell_seats(&mut ann, &world, &[0, 1], "cash").await;
    sell_seats(&mut ann, &world, &[2], "card").await;
    let answer = ann.post(&desk_path("till/drops"), json!({ "amount_minor": 5_000, "reason": "Full." })).await;
    let till = expect_answer(answer, StatusCode::OK);
    let sums = |till: &Value| ["float", "cash", "card", "dropped", "expected"].map(|name| till[name]["minor"].clone());
    assert_eq!(sums(&till), [10_000, 2 * PRICE, PRICE, 5_000, 5_000 + 2 * PRICE].map(Value::from));
    let kinds: Vec<_> = till["rows"].as_array().expect("rows").iter().map(|row| row["kind"].clone()).collect();
    assert_eq!(kinds, ["drop", "sale", "sale", "float"]);

    let early = max.post(&desk_path("day-close"), json!({ "reason": "Quiet." })).await;
    assert_eq!(code(&early), (409, "till_open".into()), "Ann's till is not counted yet");
    let counted = 5_000 + 2 * PRICE - 100;
    let wrong = ann.post(&desk_path("till/cash-up"), json!({ "counted_minor": counted })).await;
    assert_eq!(code(&wrong), (409, "till_differs".into()));
    let up = json!({ "counted_minor": counted, "reason": "A coin rolled away." });
    let (status, closed) = ann.post(&desk_path("till/cash-up"), up).await;
    assert_eq!((status, &closed["difference"]["minor"]), (StatusCode::OK, &json!(-100)), "{closed}");
    assert_eq!(ann.get(&desk_path("till")).await.0, StatusCode::NO_CONTENT);

    let (_, tills) = max.get(&desk_path("tills")).await;
    assert_eq!((tills.as_array().map(Vec::len), &tills[0]["person"]), (Some(1), &json!("Ann Example")));
    let (status, day) = max.post(&desk_path("day-close"), json!({ "reason": "Quiet." })).await;
    assert_eq!((status, &day["number"], &day["difference"]["minor"]), (StatusCode::CREATED, &json!(1), &json!(-100)));
    assert_eq!(max.get(&desk_path("tills")).await.1, json!([]));
    let again = max.post(&desk_path("day-close"), json!({ "reason": "Again." })).await;
    assert_eq!(code(&again), (409, "till_closed".into()), "the till is closed already");
    let expected = ["till_opened", "sold", "sold", "till_drop", "till_cashed_up", "day_closed"];
    assert_eq!(acts(&world).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn till_opens_once_and_pays_out_no_more_than_it_has() {
    let (_world, mut ann) = world_with_open_till().await;
    let twice = ann.post(&desk_path("till"), json!({ "float_minor": 1 })).await;
    assert_eq!(code(&twice), (409, "till_open".into()));
    let drop = |amount: i64, reason: &str| json!({ "amount_minor": amount, "reason": reason });
    for (body, expected) in [
        (drop(10_001, "Too much."), (409, "till_short")),
        (drop(0, "Nothing."), (400, "malformed")),
        (drop(-1, "Backwards."), (400, "malformed")),
        (drop(i64::MAX, "All of it."), (400, "malformed")),
        (drop(1, " "), (400, "malformed")),
    ] {
        let answer = ann.post(&desk_path("till/drops"), body.clone()).await;
        assert_eq!(code(&answer), (expected.0, expected.1.to_owned()), "{body}");
    }
    for minor in [-1, 100_000_001] {
        let answer =
            ann.post(&desk_path("till/cash-up"), json!({ "counted_minor": minor, "reason": "Why not." })).await;
        assert_eq!(code(&answer), (400, "malformed".into()), "{minor}");
    }
    let key = new_id().to_string();
    let visitor = ann.visitor();
    let once = async || visitor.call_with_key(Method::POST, &desk_path("till/drops"), drop(4_000, "Full."), &key).await;
    assert_eq!(once().await, once().await);
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["expected"]["minor"], 6_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn uncounted_till_is_counted_by_a_manager_and_the_day_closes() {
    let (world, mut rita) = world_with_two_theatres().await;
    let mut max = hired(&world, "max@example.org", "manager").await;
    set_name(&world, "max@example.org", "Max Example").await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let mut bob = seller_with_open_till(&world, "bob@example.org").await;
    sell_seats(&mut ann, &world, &[0], "cash").await;
    let (_, till) = ann.get(&desk_path("till")).await;
    let path = desk_path(&format!("tills/{}/cash-up", text(&till["id"])));
    let counted = 10_000 + PRICE - 250;
    let request_body = |reason: &str| json!({ "counted_minor": counted, "reason": reason });
    assert_eq!(code(&bob.post(&path, request_body("Ann is ill.")).await), (403, "not_allowed".into()), "managers only");
    assert_eq!(rita.post(&path, request_body("Ann is ill.")).await.0, StatusCode::NOT_FOUND);
    let over_there = path.replace("aurora", "rialto");
    assert_eq!(rita.post(&over_there, request_body("Ann is ill.")).await.0, StatusCode::NOT_FOUND, "the Aurora's till");
    assert_eq!(code(&max.post(&path, request_body(" ")).await), (400, "malformed".into()), "a reason is required");
    let negative = json!({ "counted_minor": -1, "reason": "Ann is ill." });
    assert_eq!(code(&max.post(&path, negative).await), (400, "malformed".into()));
    assert_eq!(ann.get(&desk_path("till")).await.0, StatusCode::OK, "the refusals left the till open");

    let (status, closed) = max.post(&path, request_body("Ann is ill.")).await;
    let sums = ["expected", "counted", "difference"].map(|name| closed[name]["minor"].clone());
    assert_eq!((status, sums), (StatusCode::OK, [10_000 + PRICE, counted, -250].map(Value::from)), "{closed}");
    assert_eq!([&closed["counted_by"], &closed["counted_why"]], [&json!("Max Example"), &json!("Ann is ill.")]);
    assert_eq!(code(&max.post(&path, request_body("Once more.")).await), (409, "wrong_state".into()));
    assert_eq!(ann.get(&desk_path("till")).await.0, StatusCode::NO_CONTENT);
    let (_, tills) = max.get(&desk_path("tills")).await;
    assert_eq!([&tills[0]["counted_by"], &tills[1]["counted_by"]], [&json!("Max Example"), &Value::Null]);
    let changed = sqlx::query("UPDATE tills SET counted_why = 'No.' WHERE counted_by IS NOT NULL").execute(&world.pg);
    assert_refused("who counted", changed.await, CHECK_VIOLATION, "is not to be changed");

    let up = json!({ "counted_minor": 10_000 });
    assert_eq!(bob.post(&desk_path("till/cash-up"), up).await.0, StatusCode::OK);
    let (status, day) = max.post(&desk_path("day-close"), json!({ "reason": "Quiet." })).await;
    assert_eq!((status, &day["difference"]["minor"]), (StatusCode::CREATED, &json!(-250)), "{day}");
    let expected = ["till_opened", "till_opened", "sold", "till_cashed_up_for", "till_cashed_up", "day_closed"];
    assert_eq!(acts(&world).await, expected);
    let line =
        "SELECT count(*) FROM audit_list WHERE act = 'till_cashed_up_for' AND reason LIKE '%Ann Example%Ann is ill.'
                AND actor = (SELECT id FROM accounts WHERE email = 'max@example.org')";
    assert_eq!(world.count(line).await, 1, "the audit names manager, seller and reason");
}

#[tokio::test(flavor = "multi_thread")]
async fn till_rows_are_append_only_while_the_till_is_open() {
    let (world, mut ann) = world_with_open_till().await;
    sell_seats(&mut ann, &world, &[0], "cash").await;
    let up = json!({ "counted_minor": 10_000 + PRICE });
    assert_eq!(ann.post(&desk_path("till/cash-up"), up).await.0, StatusCode::OK);
    let (row_stays, till_stays) = ("till_rows rows are immutable", "is not to be changed");
    for (change, why) in [
        ("UPDATE till_rows SET amount_minor = 0", row_stays),
        ("DELETE FROM till_rows", row_stays),
        ("TRUNCATE till_rows", row_stays),
        ("UPDATE tills SET counted_minor = 0", till_stays),
        ("UPDATE tills SET closed_at = NULL, counted_minor = NULL, expected_minor = NULL", till_stays),
        (
            "INSERT INTO till_rows (till_id, number, kind, means, amount_minor, actor, reason, at)
             SELECT id, 99, 'drop', 'cash', -1, account_id, 'Late.', now() FROM tills",
            "was counted already",
        ),
    ] {
        assert_refused(change, sqlx::query(change).execute(&world.pg).await, CHECK_VIOLATION, why);
    }
}

fn refund(manager: &Value, pin: &str, seats: Option<&[u32]>) -> Value {
    let mut request_body = json!({ "reason": "The seat is broken.", "manager": manager, "pin": pin });
    if let Some(seats) = seats {
        request_body["seats"] = json!(seats);
    }
    request_body
}

#[tokio::test(flavor = "multi_thread")]
async fn cash_refund_leaves_the_till_with_a_managers_pin_and_calls_no_gateway() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let sold = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    world.visitor().wait_for_seat(4, '2').await;
    let wrong = ann.post(&booking_path(&sold, "/refund"), refund(&max, "123456", None)).await;
    assert_eq!(code(&wrong), (422, "pin_wrong".into()));
    let (status, part) = ann.post(&booking_path(&sold, "/refund"), refund(&max, PIN, Some(&[4]))).await;
    assert_eq!((status, &part["state"], &part["total"]["minor"]), (StatusCode::OK, &json!("CONFIRMED"), &json!(PRICE)));
    let (status, all) = ann.post(&booking_path(&sold, "/refund"), refund(&max, PIN, None)).await;
    assert_eq!((status, &all["state"], &all["money"]), (StatusCode::OK, &json!("CANCELLED"), &json!("REFUNDED")));
    let visitor = world.visitor();
    visitor.wait_for_seat(4, '0').await;
    visitor.wait_for_seat(5, '0').await;
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!((&till["expected"]["minor"], &till["cash"]["minor"]), (&json!(10_000), &json!(0)));
    // The relay has finished the outbox and called no gateway.
    world.wait_for_empty_outbox().await;
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM tickets WHERE revoked_at IS NULL").await, 0);
    let again = ann.post(&booking_path(&sold, "/refund"), refund(&max, PIN, None)).await;
    assert_eq!(code(&again), (409, "wrong_state".into()));
    assert_eq!(acts(&world).await, ["pin_set", "till_opened", "sold", "refunded", "refunded"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn online_payment_is_refunded_through_its_gateway_and_no_till() {
    let world = World::start(1, &[]).await;
    let (mut max, account) = manager(&world).await;
    let buyer = world.visitor();
    let bought = buyer.buy_seats(&[3], "tok_paid").await;
    let answer = max.post(&booking_path(&bought, "/refund"), refund(&account, PIN, None)).await;
    expect_state(answer, StatusCode::OK, "CANCELLED");
    buyer.wait_for_money(&bought, "REFUNDED").await;
    assert_eq!(world.count("SELECT count(*) FROM till_rows").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn pin_attempts_are_limited_and_another_theatres_manager_cannot_approve() {
    let (world, mut rita) = world_with_two_theatres().await;
    let ritas = rita.post("/api/v1/theatres/rialto/box-office/pin", json!({ "pin": PIN, "password": PASSWORD })).await;
    assert_eq!(ritas.0, StatusCode::NO_CONTENT);
    let rita_is = rita.me().await.1["id"].clone();
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let sold = sell_seats(&mut ann, &world, &[4], "cash").await;
    let path = booking_path(&sold, "/refund");
    assert_eq!(code(&ann.post(&path, refund(&rita_is, PIN, None)).await), (422, "pin_wrong".into()));
    assert_eq!(rita.post(&path, refund(&rita_is, PIN, None)).await.0, StatusCode::NOT_FOUND);
    let mut statuses = Vec::new();
    for guess in 0..6 {
        statuses.push(code(&ann.post(&path, refund(&max, &format!("00000{guess}"), None)).await).0);
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    assert_eq!(code(&ann.post(&path, refund(&max, PIN, None)).await).0, 429, "the correct PIN is not checked either");
    let (_, managers) = ann.get(&desk_path("managers")).await;
    assert_eq!(managers.as_array().map(Vec::len), Some(1));
    let stored: String = world.value(sqlx::query_scalar("SELECT pin_hash FROM manager_pins LIMIT 1")).await;
    assert!(stored.starts_with("$argon2id$") && !stored.contains(PIN));
    for pin in ["12345", "111111", "abcdef", "1234567890123"] {
        let answer =
            rita.post("/api/v1/theatres/rialto/box-office/pin", json!({ "pin": pin, "password": PASSWORD })).await;
        assert_eq!(code(&answer), (400, "password_unusable".into()), "{pin}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_pins_lock_out_the_seller_and_not_the_manager() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let (mut ann, mut sam) = (
        seller_with_open_till(&world, "ann@example.org").await,
        seller_with_open_till(&world, "sam@example.org").await,
    );
    let path = booking_path(&sell_seats(&mut sam, &world, &[4], "cash").await, "/refund");
    let mut wrong = 0;
    while code(&ann.post(&path, refund(&max, "123456", None)).await).0 == 422 {
        wrong += 1;
        assert!(wrong <= 5, "five attempts reach the limit");
    }
    assert_eq!(ann.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    assert_eq!(code(&ann.post(&path, refund(&max, PIN, None)).await), (429, "too_many_attempts".into()));
    expect_state(sam.post(&path, refund(&max, PIN, None)).await, StatusCode::OK, "CANCELLED");
}

#[tokio::test(flavor = "multi_thread")]
async fn recent_sale_is_undone_by_its_seller_from_the_same_till() {
    let (world, mut ann) = world_with_open_till().await;
    let mut ben = seller_with_open_till(&world, "ben@example.org").await;
    let why = json!({ "reason": "The wrong show." });
    let first = sell_seats(&mut ann, &world, &[4], "cash").await;
    assert!(first["undo_until_ms"].is_i64(), "{first}");
    assert_eq!(code(&ben.post(&booking_path(&first, "/undo"), why.clone()).await), (409, "undo_too_late".into()));
    let (status, undone) = ann.post(&booking_path(&first, "/undo"), why.clone()).await;
    assert_eq!((status, &undone["money"]), (StatusCode::OK, &json!("REFUNDED")), "{undone}");
    world.visitor().wait_for_seat(4, '0').await;
    let second = sell_seats(&mut ann, &world, &[4], "card").await;
    // After the count the till belongs to another shift.
    assert_eq!(ann.post(&desk_path("till/cash-up"), json!({ "counted_minor": 10_000 })).await.0, StatusCode::OK);
    assert_eq!(code(&ann.post(&booking_path(&second, "/undo"), why.clone()).await), (409, "till_closed".into()));
    ann.post(&desk_path("till"), json!({ "float_minor": 0 })).await;
    assert_eq!(code(&ann.post(&booking_path(&second, "/undo"), why).await), (409, "undo_too_late".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn scanned_tickets_are_refunded_by_a_manager_only() {
    let mut world = World::start(1, &[]).await;
    world.show = tonight(&world).await.show;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let door = device(&world, world.show, "Left door").await;
    let sold = sell_seats(&mut ann, &world, &[4], "cash").await;
    assert_eq!(door.outcome(&codes(&world, &sold).await[0]).await, "admitted");
    let why = json!({ "reason": "The wrong show." });
    assert_eq!(code(&ann.post(&booking_path(&sold, "/undo"), why).await), (409, "undo_too_late".into()));
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["cash"]["minor"], PRICE, "nothing was paid out");
    world.visitor().wait_for_seat(4, '2').await;
    let (status, back) = ann.post(&booking_path(&sold, "/refund"), refund(&max, PIN, None)).await;
    assert_eq!((status, &back["money"]), (StatusCode::OK, &json!("REFUNDED")), "{back}");
    // An online buyer cancels the seats that were not scanned.
    let buyer = world.visitor();
    let bought = buyer.buy_seats(&[6, 7], "tok_paid").await;
    assert_eq!(door.outcome(&codes(&world, &bought).await[0]).await, "admitted");
    assert_eq!(code(&buyer.cancel(&bought, None).await), (409, "wrong_state".into()));
    assert_eq!(code(&buyer.cancel(&bought, Some(&[6])).await), (409, "wrong_state".into()));
    expect_state(buyer.cancel(&bought, Some(&[7])).await, StatusCode::OK, "CONFIRMED");
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_of_a_cancelled_show_wait_at_the_counter() {
    let (world, mut ann) = world_with_open_till().await;
    let sold = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    let show = world.show.to_string();
    let (good, statuses) = world.command(&["cancel-show", &show, "--reason", "The projector is broken."]).await;
    assert!(good, "{statuses}");
    let standing = async || {
        let mut ann = ann.clone();
        ann.get(&booking_path(&sold, "")).await.1
    };
    wait_until("the booking is cancelled", || async { standing().await["state"] == "CANCELLED" }).await;
    assert_eq!(standing().await["to_pay_out"]["minor"], 2 * PRICE);
    world.wait_for_empty_outbox().await;
    let why = json!({ "reason": "With the ticket in hand." });
    let (status, paid) = ann.post(&booking_path(&sold, "/pay-out"), why.clone()).await;
    assert_eq!((status, text(&paid["money"])), (StatusCode::OK, "REFUNDED"), "{paid}");
    assert_eq!(code(&ann.post(&booking_path(&sold, "/pay-out"), why).await), (409, "wrong_state".into()));
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn pay_out_after_a_cancellation_by_the_buyer_needs_a_managers_pin() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    // The seller's own mailbox is the buyer's address.
    let hold = hold_seats(&mut ann, &world, &[4]).await;
    let mut request_body = sale(&hold, "cash");
    request_body["email"] = json!("mine@example.org");
    let sold = expect_answer(ann.post(&sales_path(&world), request_body).await, StatusCode::CREATED);
    let (buyer, reference) = (world.visitor(), text(&sold["reference"]));
    let asked = [("reference", reference), ("email", "mine@example.org")];
    expect_answer(submit(&buyer, "/bookings/find", &asked).await, StatusCode::OK);
    let opens = wait_for_mailed_path(&world, &format!("Your booking {reference}"), "/bookings/by-mail/").await;
    expect_answer(submit(&buyer, &format!("{opens}/cancel"), &[]).await, StatusCode::SEE_OTHER);
    let subject = format!("Cancel booking {reference}?");
    let cancels = wait_for_mailed_path(&world, &subject, "/bookings/cancel/").await;
    expect_answer(submit(&buyer, &cancels, &[]).await, StatusCode::SEE_OTHER);

    let booking = expect_state(ann.get(&booking_path(&sold, "")).await, StatusCode::OK, "CANCELLED");
    assert_eq!(booking["pay_out_needs_pin"], true, "{booking}");
    let back = booking["to_pay_out"]["minor"].as_i64().expect("an amount");
    let page = format!("/staff/aurora/box-office/bookings/{}", text(&sold["id"]));
    expect_page(ann.page(&page).await, StatusCode::OK, &["data-testid=\"pay-out\"", "id=\"pay-out-pin\""]);
    let path = booking_path(&sold, "/pay-out");
    for refused in [json!({ "reason": "With the ticket in hand." }), refund(&max, "123456", None)] {
        assert_eq!(code(&ann.post(&path, refused).await), (422, "pin_wrong".into()));
    }
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000 + PRICE, "nothing was paid out");
    let (status, paid) = ann.post(&path, refund(&max, PIN, None)).await;
    assert_eq!((status, text(&paid["money"])), (StatusCode::OK, "REFUNDED"), "{paid}");
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000 + PRICE - back);
    let approved = "SELECT count(*) FROM audit_list WHERE act = 'paid_out' AND reason LIKE '%by the PIN of%'";
    assert_eq!(world.count(approved).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_of_one_seat_still_waits_when_the_rest_was_paid_back() {
    let world = World::start(1, &[]).await;
    let (_, max) = manager(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let sold = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    let (_, booking) = ann.get(&booking_path(&sold, "")).await;
    let label = text(&booking["seats"][0]["label"]);
    let words = ["cancel-booking", text(&sold["reference"]), "--seat", label, "--reason", "The seat is broken."];
    let (is_done, output) = world.command(&words).await;
    assert!(is_done, "{output}");
    expect_answer(ann.post(&booking_path(&sold, "/refund"), refund(&max, PIN, None)).await, StatusCode::OK);
    let (_, booking) = ann.get(&booking_path(&sold, "")).await;
    assert_eq!(booking["to_pay_out"]["minor"], PRICE, "{booking}");
    let why = json!({ "reason": "With the ticket in hand." });
    expect_answer(ann.post(&booking_path(&sold, "/pay-out"), why).await, StatusCode::OK);
    let (_, booking) = ann.get(&booking_path(&sold, "")).await;
    assert_eq!(booking["to_pay_out"], Value::Null, "{booking}");
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000);
}
