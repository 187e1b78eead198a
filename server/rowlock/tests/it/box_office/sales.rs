//! Sales at the counter, seats held for a caller at the telephone, and the search for bookings.

use super::{
    acts, booking_path, code, desk_path, hired, hold_seats, sale, sales_path, sell_seats, seller,
    seller_with_open_till, world_with_open_till, world_with_two_theatres,
};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn cash_sale_is_visible_on_the_map_at_once() {
    let (world, mut ann) = world_with_open_till().await;
    let sold = sell_seats(&mut ann, &world, &[4, 5], "cash").await;
    let seen = [&sold["state"], &sold["money"], &sold["channel"], &sold["means"]];
    assert_eq!(seen, ["CONFIRMED", "PAID", "box_office", "cash"]);
    let visitor = world.visitor();
    visitor.wait_for_seat(4, '2').await;
    visitor.wait_for_seat(5, '2').await;
    assert_eq!(visitor.hold(&[5]).await.0, StatusCode::CONFLICT);
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 2);
    assert_eq!(world.count("SELECT count(*) FROM tickets WHERE revoked_at IS NULL").await, 2);
    let paid = "SELECT amount_minor FROM payments WHERE gateway = 'counter_cash' AND state = 'succeeded'";
    assert_eq!(world.count(paid).await, 2 * PRICE);
    assert_eq!(world.count("SELECT amount_minor FROM till_rows WHERE kind = 'sale'").await, 2 * PRICE);
    // No gateway is called, and no mail is sent without an address.
    let effects = "SELECT count(*) FROM booking_events WHERE event = 'taken_at_counter'";
    assert_eq!(world.count(effects).await, 1);
    assert_eq!(world.mails().iter().filter(|mail| mail.contains(text(&sold["reference"]))).count(), 0);
    assert_eq!(acts(&world).await, ["till_opened", "sold"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn seller_is_not_bound_by_the_person_limit() {
    let (world, mut ann) = world_with_open_till().await;
    for first in [0, 10, 20] {
        sell_seats(&mut ann, &world, &(first..first + 10).collect::<Vec<_>>(), "card").await;
    }
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_sells_once_and_two_sellers_never_sell_one_seat() {
    let (world, mut ann) = world_with_open_till().await;
    let mut ben = seller_with_open_till(&world, "ben@example.org").await;
    let hold = hold_seats(&mut ann, &world, &[7]).await;
    let (path, request_body, key) = (sales_path(&world), sale(&hold, "cash"), new_id().to_string());
    let visitor = ann.visitor();
    let sell = async || visitor.call_with_key(Method::POST, &path, request_body.clone(), &key).await;
    let (one, other) = tokio::join!(sell(), sell());
    assert_eq!(one.0, StatusCode::CREATED, "{}", one.1);
    assert_eq!(one, other, "concurrent requests with one key get one answer");
    assert_eq!(sell().await, one);
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM till_rows WHERE kind = 'sale'").await, 1);
    let theirs = hold_seats(&mut ann, &world, &[8]).await;
    assert_eq!(code(&ben.post(&path, sale(&theirs, "cash")).await), (410, "hold_expired".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_lock_sells_no_seat_twice_and_leaves_the_till_unchanged() {
    let (world, mut ann) = world_with_open_till().await;
    let buyer = world.visitor();
    buyer.buy_seats(&[9], "tok_paid").await;
    buyer.wait_for_seat(9, '2').await;
    // Redis loses the sale and grants the seat again.
    world.mark_seat_free_in_redis(9).await;
    let hold = hold_seats(&mut ann, &world, &[9, 10]).await;
    let answer = ann.post(&sales_path(&world), sale(&hold, "cash")).await;
    assert_eq!(code(&answer), (409, "seats_taken".into()), "{}", answer.1);
    assert_eq!(world.count("SELECT count(*) FROM till_rows WHERE kind = 'sale'").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE channel = 'box_office'").await, 0);
    buyer.wait_for_seat(9, '2').await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_sale_is_refused_and_changes_nothing() {
    let (world, mut rita) = world_with_two_theatres().await;
    let mut ann = seller(&world, "ann@example.org").await;
    let hold = hold_seats(&mut ann, &world, &[0]).await;
    let path = sales_path(&world);
    assert_eq!(code(&ann.post(&path, sale(&hold, "cash")).await), (409, "till_closed".into()));
    ann.post(&desk_path("till"), json!({ "float_minor": 0 })).await;
    let request_body = |means: &str, total: i64, reason: &str| json!({ "hold": hold["id"], "means": means, "total_minor": total, "reason": reason });
    for (body, expected) in [
        (request_body("cash", PRICE - 1, ""), (409, "wrong_state")),
        (request_body("cash", -PRICE, ""), (409, "wrong_state")),
        (request_body("free", PRICE, "A guest."), (409, "wrong_state")),
        (request_body("free", 0, " "), (400, "malformed")),
        (request_body("cash", PRICE, "No reason is due."), (400, "malformed")),
        (request_body("cheque", PRICE, ""), (400, "malformed")),
        (json!({ "hold": new_id(), "means": "cash", "total_minor": PRICE }), (410, "hold_expired")),
        (
            json!({ "hold": hold["id"], "means": "cash", "total_minor": PRICE, "email": "no-address" }),
            (400, "person_invalid"),
        ),
    ] {
        let answer = ann.post(&path, body.clone()).await;
        assert_eq!(code(&answer), (expected.0, expected.1.to_owned()), "{body}: {}", answer.1);
    }
    // Another theatre's manager gets 404 under both theatres.
    assert_eq!(rita.post(&path, request_body("cash", PRICE, "")).await.0, StatusCode::NOT_FOUND);
    let at_home = path.replace("aurora", "rialto");
    assert_eq!(rita.post(&at_home, request_body("cash", PRICE, "")).await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 0);
    // After these refusals the hold is unchanged and can be sold.
    assert_eq!(ann.post(&path, request_body("card", PRICE, "")).await.0, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn guest_sale_is_free_and_stores_its_reason() {
    let (world, mut ann) = world_with_open_till().await;
    let hold = hold_seats(&mut ann, &world, &[0, 1]).await;
    let guest = json!({ "hold": hold["id"], "means": "free", "total_minor": 0, "reason": "Press.", "name": "Lu Xun" });
    let (status, sold) = ann.post(&sales_path(&world), guest).await;
    assert_eq!((status, &sold["total"]["minor"], &sold["name"]), (StatusCode::CREATED, &json!(0), &json!("Lu Xun")));
    assert_eq!(world.count("SELECT sum(price_minor)::bigint FROM booking_seats").await, 0);
    let given = "SELECT count(*) FROM audit_list WHERE act = 'given_away' AND reason LIKE '%Press.'";
    assert_eq!(world.count(given).await, 1);
    let (_, till) = ann.get(&desk_path("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_see_buyers_and_holders_and_print_tickets() {
    let (world, mut rita) = world_with_two_theatres().await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let buyer = world.visitor();
    let bought = buyer.buy_seats(&[3], "tok_paid").await;
    buyer.wait_for_seat(3, '2').await;
    expect_answer(buyer.hold(&[20]).await, StatusCode::CREATED);
    let seat = |seat: u32| desk_path(&format!("shows/{}/seats/{seat}", world.show));
    let (_, holder) = ann.get(&seat(3)).await;
    assert_eq!((&holder["by"], &holder["reference"]), (&json!("booking"), &bought["reference"]));
    assert_eq!(ann.get(&seat(20)).await.1["by"], "hold");
    assert_eq!(ann.get(&seat(21)).await.1["by"], "nobody");
    assert_eq!(code(&ann.get(&seat(300)).await), (400, "unknown_seat".into()));
    assert_eq!(rita.get(&seat(3)).await.0, StatusCode::NOT_FOUND);
    let by_name =
        |reference: &str| desk_path(&format!("bookings?reference={}", reference.replace('-', "").to_lowercase()));
    let found = ann.get(&by_name(text(&bought["reference"]))).await;
    assert_eq!((found.0, &found.1["id"], &found.1["channel"]), (StatusCode::OK, &bought["id"], &json!("online")));
    let elsewhere = by_name(text(&bought["reference"])).replace("aurora", "rialto");
    assert_eq!(rita.get(&elsewhere).await.0, StatusCode::NOT_FOUND);
    for _ in 0..2 {
        let (status, printed) = ann.post(&booking_path(&bought, "/tickets"), json!(null)).await;
        assert_eq!((status, printed.as_array().map(Vec::len)), (StatusCode::OK, Some(1)));
    }
    assert_eq!(acts(&world).await, ["till_opened", "tickets_printed", "tickets_printed"]);
    let (_, shows) = ann.get(&desk_path("shows?date=2001-01-01")).await;
    assert_eq!(shows, json!([]));
    let day: String = world.value(sqlx::query_scalar("SELECT local_date::text FROM shows")).await;
    let (_, shows) = ann.get(&desk_path(&format!("shows?date={day}"))).await;
    let seats = &shows[0]["seats"];
    assert_eq!([&seats["sold"], &seats["held"], &seats["free"]], [1, 1, 298].map(|n| json!(n)).each_ref());
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_are_held_under_a_callers_name_and_sold_at_the_counter() {
    let (world, mut rita) = world_with_two_theatres().await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let path = desk_path(&format!("shows/{}/caller-holds", world.show));
    let request_body =
        |seats: &[u32], name: &str, minutes: u32| json!({ "seats": seats, "name": name, "minutes": minutes });
    let (status, held) = ann.post(&path, request_body(&[0, 1], "Mrs Ortega", 60)).await;
    assert_eq!((status, &held["total"]["minor"]), (StatusCode::CREATED, &json!(2 * PRICE)), "{held}");
    let visitor = world.visitor();
    visitor.wait_for_seat(1, '1').await;
    assert_eq!(visitor.hold(&[1]).await.0, StatusCode::LOCKED);
    let (_, holder) = ann.get(&desk_path(&format!("shows/{}/seats/0", world.show))).await;
    assert_eq!(holder, json!({ "by": "caller", "name": "Mrs Ortega" }));
    // Any number of reservations, each for another caller; a refusal names the taken seats.
    assert_eq!(ann.post(&path, request_body(&[2], "Mr Li", 5)).await.0, StatusCode::CREATED);
    assert_eq!(code(&ann.post(&path, request_body(&[2, 3], "Mr Ma", 5)).await), (423, "seats_locked".into()));
    for (body, expected) in [
        (request_body(&[], "A", 30), "malformed"),
        (request_body(&[4], " ", 30), "person_invalid"),
        (request_body(&[4], "A", 4), "malformed"),
        (request_body(&[4], "A", 241), "malformed"),
        (request_body(&[300], "A", 30), "unknown_seat"),
    ] {
        assert_eq!(code(&ann.post(&path, body.clone()).await), (400, expected.to_owned()), "{body}");
    }
    assert_eq!(rita.get(&path).await.0, StatusCode::NOT_FOUND);
    let (_, list) = ann.get(&path).await;
    let names: Vec<_> = list.as_array().expect("a list").iter().map(|one| text(&one["name"])).collect();
    assert_eq!(names, ["Mr Li", "Mrs Ortega"]);
    let sale = json!({ "hold": held["hold"], "means": "cash", "total_minor": 2 * PRICE, "name": "Mrs Ortega" });
    let (status, sold) = ann.post(&sales_path(&world), sale).await;
    assert_eq!((status, &sold["name"]), (StatusCode::CREATED, &json!("Mrs Ortega")), "{sold}");
    visitor.wait_for_seat(0, '2').await;
    let release = format!("{path}/{}/release", text(&list[0]["hold"]));
    let why = json!({ "reason": "Did not come." });
    assert_eq!(ann.post(&release, why.clone()).await.0, StatusCode::NO_CONTENT);
    visitor.wait_for_seat(2, '0').await;
    assert_eq!(code(&ann.post(&release, why).await), (409, "wrong_state".into()));
    assert_eq!(ann.get(&path).await.1, json!([]));
    assert_eq!(acts(&world).await, ["till_opened", "held_for_caller", "held_for_caller", "sold", "caller_let_go"]);
    let named = "SELECT count(*) FROM audit_list WHERE reason ILIKE '%ortega%' OR reason ILIKE '%mr li%'";
    assert_eq!(world.count(named).await, 0, "the audit list contains no caller's name");
    let sql = "SELECT count(*) FROM audit_list WHERE act = 'held_for_caller' AND strpos(reason, $1) > 0";
    let noted: i64 = world.value(sqlx::query_scalar(sql).bind(text(&held["hold"]))).await;
    assert_eq!(noted, 1, "the audit list has the hold's id");
}

/// Sells a seat to this buyer and returns the booking's reference.
async fn sell_to(ann: &mut Browser, world: &World, seat: u32, name: &str, email: &str) -> String {
    let hold = hold_seats(ann, world, &[seat]).await;
    let mut request_body = sale(&hold, "cash");
    (request_body["name"], request_body["email"]) = (json!(name), json!(email));
    let sold = expect_answer(ann.post(&sales_path(world), request_body).await, StatusCode::CREATED);
    text(&sold["reference"]).to_owned()
}

async fn search(browser: &mut Browser, asked: &str) -> Vec<String> {
    let list = expect_answer(browser.get(&desk_path(&format!("bookings?q={asked}"))).await, StatusCode::OK);
    let of = |one: &Value| text(&one["booking"]["reference"]).to_owned();
    list.as_array().expect("a list").iter().map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bookings_are_found_by_part_of_name_or_address_in_their_theatre_only() {
    let (world, mut rita) = world_with_two_theatres().await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let first = sell_to(&mut ann, &world, 0, "Zoe Quill", "zoe@example.com").await;
    let second = sell_to(&mut ann, &world, 1, "Yan Quillfeather", "").await;
    let odd = sell_to(&mut ann, &world, 2, "100% Vera", "v_x@example.com").await;
    sell_seats(&mut ann, &world, &[3], "card").await;
    let both = format!("{second}, {first}");
    assert_eq!(search(&mut ann, "qUILL").await, [second.clone(), first.clone()], "the newest first");
    assert_eq!(search(&mut ann, "%20zoe%40EXAMPLE%20").await, [first]);
    assert_eq!(search(&mut ann, "0%25").await.first(), Some(&odd));
    assert_eq!(search(&mut ann, "v_x").await, [odd]);
    for unmatched in ["%25%25", "__", "z%25e", "zo_", "%5C%5C"] {
        assert!(search(&mut ann, unmatched).await.is_empty(), "{unmatched}");
    }
    let (_, list) = ann.get(&desk_path("bookings?q=feather")).await;
    assert_eq!([&list[0]["name"], &list[0]["email"]], [&json!("Yan Quillfeather"), &json!("")]);

    let long = "a".repeat(101);
    for bad in ["q=a", "q=%20a%20", "q=", "", "q=a%0Ab", &format!("q={long}"), &format!("q=quill&reference={second}")] {
        assert_eq!(code(&ann.get(&desk_path(&format!("bookings?{bad}"))).await), (400, "malformed".into()), "{bad}");
    }
    assert_eq!(rita.get(&desk_path("bookings?q=quill")).await.0, StatusCode::NOT_FOUND);
    let over_there = desk_path("bookings?q=quill").replace("aurora", "rialto");
    assert_eq!(rita.get(&over_there).await, (StatusCode::OK, json!([])), "only the Aurora's bookings are found");
    let mut otto = hired(&world, "otto@example.org", "organiser").await;
    assert_eq!(otto.get(&desk_path("bookings?q=quill")).await.0, StatusCode::FORBIDDEN);

    let looked = acts(&world).await.iter().filter(|act| *act == "bookings_looked_for").count();
    assert_eq!(looked, 10, "every search is audited");
    let sql = "SELECT count(*) FROM audit_list WHERE act = 'bookings_looked_for' AND reason = $1
         AND actor = (SELECT id FROM accounts WHERE email = 'ann@example.org')";
    let noted: i64 = world.value(sqlx::query_scalar(sql).bind(both)).await;
    assert_eq!(noted, 1, "the audit names the searcher and the results");
    let named = "SELECT count(*) FROM audit_list WHERE reason ILIKE '%quill%' OR reason ILIKE '%zoe%'";
    assert_eq!(world.count(named).await, 0, "the audit list contains no buyer's name");
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_of_a_member_of_staff_are_limited() {
    let (world, mut ann) = world_with_open_till().await;
    let path = desk_path("bookings?q=quill");
    let mut searches = 0;
    let (status, headers, problem) = loop {
        let answer = ann.send_with(Method::GET, &path, &Value::Null, &[]).await;
        if answer.0 != StatusCode::OK {
            break answer;
        }
        searches += 1;
        assert!(searches < 100, "the limit is reached");
    };
    assert_eq!((status, &problem["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("too_many_attempts")));
    assert_eq!(headers["ratelimit-policy"], "\"booking-search\";q=20;w=20");
    assert!(searches >= 20, "{searches}");
    let mut ben = hired(&world, "ben@example.org", "box_office").await;
    assert_eq!(ben.get(&path).await.0, StatusCode::OK, "a colleague has a limit of their own");
}

#[tokio::test(flavor = "multi_thread")]
async fn past_shows_and_unpaid_bookings_are_not_searched() {
    let (world, mut ann) = world_with_open_till().await;
    // The name of every visitor in these tests.
    let sold = sell_to(&mut ann, &world, 0, "Ann Example", "").await;
    let visitor = world.visitor();
    visitor.check_out(&[1]).await;
    assert_eq!(search(&mut ann, "ann%20example").await, [sold], "a pending booking is not listed");
    let past = "UPDATE shows SET starts_at = now() - interval '61 days'";
    world.execute(past).await;
    assert!(search(&mut ann, "ann%20example").await.is_empty());
}
