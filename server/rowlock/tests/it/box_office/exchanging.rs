//! Other seats in place of those that were sold.

use platform::ids::new_id;
use reqwest::StatusCode;
use serde_json::json;

use super::{acts, at_work, code, desk, holds, of_booking, sells, two_theatres};
use crate::door::{codes, device, tonight};
use crate::world::{PRICE, World, text, until};

#[tokio::test(flavor = "multi_thread")]
async fn seats_are_exchanged_in_one_move_and_the_difference_goes_through_the_till() {
    let world = World::start(1, &[]).await;
    let mut rita = two_theatres(&world).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let old = sells(&mut ann, &world, &[4], "cash").await;
    let hold = holds(&mut ann, &world, &[6, 7]).await;
    let wish = |total: i64| json!({ "show": world.show, "hold": hold["id"], "total_minor": total, "reason": "A friend came." });
    let path = of_booking(&old, "/exchange");
    assert_eq!(code(&ann.post(&path, wish(PRICE)).await), (409, "wrong_state".into()), "they cost more");
    assert_eq!(rita.post(&path, wish(2 * PRICE)).await.0, StatusCode::NOT_FOUND);
    let (status, new) = ann.post(&path, wish(2 * PRICE)).await;
    assert_eq!(
        (status, &new["state"], &new["means"]),
        (StatusCode::CREATED, &json!("CONFIRMED"), &json!("cash")),
        "{new}"
    );
    let visitor = world.visitor();
    visitor.sees(4, '0').await;
    visitor.sees(6, '2').await;
    let claims = "SELECT count(*) FROM seat_claims WHERE state = 'sold'";
    assert_eq!(world.count(claims).await, 2);
    let (_, till) = ann.get(&desk("till")).await;
    assert_eq!(till["cash"]["minor"], 2 * PRICE);
    let (_, before) = ann.get(&of_booking(&old, "")).await;
    assert_eq!([&before["state"], &before["money"]], [&json!("CANCELLED"), &json!("MOVED")]);
    assert_eq!(world.count("SELECT count(*) FROM tickets WHERE revoked_at IS NULL").await, 2);
    assert_eq!(code(&ann.post(&path, wish(2 * PRICE)).await), (409, "wrong_state".into()), "once");
    // Back to one seat: nobody gives money back alone.
    let hold = holds(&mut ann, &world, &[8]).await;
    let less = json!({ "show": world.show, "hold": hold["id"], "total_minor": PRICE, "reason": "They left." });
    assert_eq!(code(&ann.post(&of_booking(&new, "/exchange"), less).await), (422, "pin_wrong".into()));
    let (_, till) = ann.get(&desk("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000 + 2 * PRICE);
    until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    assert_eq!(world.count(claims).await, 2);
    assert_eq!(acts(&world).await, ["till_opened", "sold", "exchanged"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_online_is_exchanged_for_the_same_price_and_goes_back_to_its_gateway_later() {
    let world = World::start(1, &[]).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let buyer = world.visitor();
    let bought = buyer.bought(&[3], "tok_paid").await;
    let hold = holds(&mut ann, &world, &[6, 7]).await;
    let dear = json!({ "show": world.show, "hold": hold["id"], "total_minor": 2 * PRICE, "reason": "More legroom." });
    assert_eq!(code(&ann.post(&of_booking(&bought, "/exchange"), dear).await), (409, "wrong_state".into()));
    let path = format!("/api/v1/shows/{}/holds/{}", world.show, text(&hold["id"]));
    let (status, hold) = ann.send(reqwest::Method::PATCH, &path, json!({ "remove": [7] })).await;
    assert_eq!(status, StatusCode::OK, "{hold}");
    let same = json!({ "show": world.show, "hold": hold["id"], "total_minor": PRICE, "reason": "More legroom." });
    let (status, new) = ann.post(&of_booking(&bought, "/exchange"), same).await;
    assert_eq!((status, &new["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{new}");
    // It is the buyer's own, and they may cancel it as ever: the money goes back where it came from.
    assert_eq!(buyer.booking(&bought).await["moved_to"], new["id"]);
    assert_eq!(buyer.booking(&new).await["state"], "CONFIRMED");
    assert_eq!(buyer.cancel(&new, None).await.0, StatusCode::OK);
    buyer.sees_money(&new, "REFUNDED").await;
    buyer.sees(3, '0').await;
    buyer.sees(6, '0').await;
    assert_eq!(world.count("SELECT count(*) FROM till_rows WHERE kind = 'exchange'").await, 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_came_in_has_the_seat_until_the_door_says_otherwise() {
    let mut world = World::start(1, &[]).await;
    world.show = tonight(&world).await.show;
    let mut ann = at_work(&world, "ann@example.org").await;
    let door = device(&world, world.show, "Left door").await;
    let old = sells(&mut ann, &world, &[4], "cash").await;
    let (ticket, scan) = (codes(&world, &old).await.remove(0), new_id());
    let (status, told) = door.scan_as(&ticket, scan).await;
    assert_eq!((status, text(&told["tickets"][0]["outcome"])), (StatusCode::OK, "admitted"), "{told}");
    let hold = holds(&mut ann, &world, &[6]).await;
    let wish = json!({ "show": world.show, "hold": hold["id"], "total_minor": PRICE, "reason": "A better view." });
    let path = of_booking(&old, "/exchange");
    assert_eq!(code(&ann.post(&path, wish.clone()).await), (409, "wrong_state".into()));
    world.visitor().sees(4, '2').await;
    assert_eq!(door.undo(scan, "The wrong screen.").await.0, StatusCode::NO_CONTENT);
    let (status, new) = ann.post(&path, wish).await;
    assert_eq!((status, &new["state"]), (StatusCode::CREATED, &json!("CONFIRMED")), "{new}");
    assert_eq!(door.outcome(&ticket).await, "not_valid");
    assert_eq!(door.outcome(&codes(&world, &new).await[0]).await, "admitted");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_booking_whose_money_is_on_its_way_back_is_exchanged_when_it_has_arrived() {
    let world = World::start(1, &[]).await;
    let mut ann = at_work(&world, "ann@example.org").await;
    let old = sells(&mut ann, &world, &[4, 5], "cash").await;
    let (_, booking) = ann.get(&of_booking(&old, "")).await;
    let label = text(&booking["seats"][0]["label"]);
    let words = ["cancel-booking", text(&old["reference"]), "--seat", label, "--reason", "The seat is broken."];
    let (well, said) = world.command(&words).await;
    assert!(well, "{said}");
    let hold = holds(&mut ann, &world, &[6]).await;
    let wish = json!({ "show": world.show, "hold": hold["id"], "total_minor": PRICE, "reason": "A better view." });
    let path = of_booking(&old, "/exchange");
    assert_eq!(code(&ann.post(&path, wish.clone()).await), (409, "wrong_state".into()));
    let why = json!({ "reason": "With the ticket in hand." });
    let (status, paid) = ann.post(&of_booking(&old, "/pay-out"), why).await;
    assert_eq!(status, StatusCode::OK, "{paid}");
    let (status, new) = ann.post(&path, wish).await;
    assert_eq!((status, &new["total"]["minor"]), (StatusCode::CREATED, &json!(PRICE)), "{new}");
    // Paid out once, whatever the relay finds to do.
    until("the outbox is empty", || async { world.count("SELECT count(*) FROM outbox").await == 0 }).await;
    assert_eq!(world.count("SELECT count(*) FROM refunds WHERE state = 'settled'").await, 1);
    let (_, till) = ann.get(&desk("till")).await;
    assert_eq!(till["expected"]["minor"], 10_000 + PRICE);
    world.end().await;
}
