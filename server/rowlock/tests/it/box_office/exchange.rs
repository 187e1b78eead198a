//! Exchanges of sold seats for others.

use platform::ids::new_id;
use reqwest::StatusCode;
use serde_json::json;

use super::{acts, booking_path, code, desk_path, hold_seats, sell_seats, seller_with_open_till, two_theatres};
use crate::door::{codes, device, tonight};
use crate::world::{PRICE, World, expect_answer, text};

#[tokio::test(flavor = "multi_thread")]
async fn exchange_is_one_transaction_and_the_difference_goes_through_the_till() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let old = sell_seats(&mut ann, &world, &[4], "cash").await;
    let hold = hold_seats(&mut ann, &world, &[6, 7]).await;
    let request_body = |total: i64| json!({ "show": world.show, "hold": hold["id"], "total_minor": total, "reason": "A friend came." });
    let path = booking_path(&old, "/exchange");
    assert_eq!(
        code(&ann.post(&path, request_body(PRICE)).await),
        (409, "wrong_state".into()),
        "the new seats cost more"
    );
    assert_eq!(rita.post(&path, request_body(2 * PRICE)).await.0, StatusCode::NOT_FOUND);
    let (status, new) = ann.post(&path, request_body(2 * PRICE)).await;
    assert_eq!(
        (status, &new["state"], &new["means"]),
        (StatusCode::CREATED, &json!("CONFIRMED"), &json!("cash")),
        "{new}"
    );
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
    let world = World::start(1, &[]).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
    let buyer = world.visitor();
    let bought = buyer.buy_seats(&[3], "tok_paid").await;
    let hold = hold_seats(&mut ann, &world, &[6, 7]).await;
    let dear = json!({ "show": world.show, "hold": hold["id"], "total_minor": 2 * PRICE, "reason": "More legroom." });
    assert_eq!(code(&ann.post(&booking_path(&bought, "/exchange"), dear).await), (409, "wrong_state".into()));
    let path = format!("/api/v1/shows/{}/holds/{}", world.show, text(&hold["id"]));
    let hold = expect_answer(ann.send(reqwest::Method::PATCH, &path, json!({ "remove": [7] })).await, StatusCode::OK);
    let same = json!({ "show": world.show, "hold": hold["id"], "total_minor": PRICE, "reason": "More legroom." });
    let (status, new) = ann.post(&booking_path(&bought, "/exchange"), same).await;
    assert_eq!((status, &new["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{new}");
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
    let (status, new) = ann.post(&path, request_body).await;
    assert_eq!((status, &new["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{new}");
    assert_eq!(door.outcome(&ticket).await, "not_valid");
    assert_eq!(door.outcome(&codes(&world, &new).await[0]).await, "admitted");
}

#[tokio::test(flavor = "multi_thread")]
async fn booking_with_a_pending_refund_is_exchanged_once_the_refund_is_settled() {
    let world = World::start(1, &[]).await;
    let mut ann = seller_with_open_till(&world, "ann@example.org").await;
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
