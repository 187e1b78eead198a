//! The seat limit per person for accounts: all browsers of an account share one limit.

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::Value;

use super::{Browser, PASSWORD, register_and_log_in};
use crate::commits::SLOW_GATHER;
use crate::world::{World, expect_answer, expect_problem, text};

/// Ann's login.
const ANN: &str = "ann@example.org";

/// A world whose show has this limit. The limit is set before the show is loaded.
async fn world_with_limit(servers: usize, most: i16, settings: &[(&str, &str)]) -> World {
    let world = World::start(servers, settings).await;
    let set = sqlx::query("UPDATE shows SET per_person = $1").bind(most).execute(&world.pg).await;
    set.expect("the limit is set");
    world
}

/// Another browser of Ann's at this server.
async fn another_browser(world: &World, server: usize) -> Browser {
    let mut browser = Browser::at(world, server);
    expect_answer(browser.log_in(ANN, PASSWORD).await, StatusCode::OK);
    browser
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_and_in_again_does_not_raise_the_seat_limit() {
    let world = world_with_limit(1, 3, &[]).await;
    let mut ann = register_and_log_in(&world, ANN).await;
    assert_eq!(ann.visitor().buy_seats(&[1, 2], "tok_paid").await["state"], "CONFIRMED");
    assert_eq!(ann.post("/api/v1/users/logout", Value::Null).await.0, StatusCode::NO_CONTENT);
    assert_eq!(ann.log_in(ANN, PASSWORD).await.0, StatusCode::OK);
    assert_eq!(world.count("SELECT count(*) FROM account_visitors").await, 2, "sign-in creates another visitor");
    let again = ann.visitor();
    let (hold, booking) = again.check_out(&[5, 6]).await;
    let refusal =
        expect_problem(again.pay(&booking, Some("tok_paid")).await, StatusCode::TOO_MANY_REQUESTS, "person_limit");
    let words = text(&refusal["detail"]);
    assert!(
        words.contains("may have 3") && words.contains("your account has 2"),
        "the detail names the limit: {words}"
    );
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nothing was charged");
    // Purchases of others, with or without an account, do not count.
    let ben = register_and_log_in(&world, "ben@example.org").await;
    assert_eq!(ben.visitor().buy_seats(&[10, 11, 12], "tok_paid").await["state"], "CONFIRMED");
    assert_eq!(world.visitor().buy_seats(&[20, 21, 22], "tok_paid").await["state"], "CONFIRMED");
    // Her seats are still held, and the limit allows one of them.
    assert_eq!(again.change(&hold, &[], &[6]).await.0, StatusCode::OK);
    let (_, fewer) = again.book(&hold).await;
    assert_eq!(again.pay(&fewer, Some("tok_paid")).await.1["state"], "CONFIRMED", "the limit of three is reached");
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_concurrent_payments_from_browsers_of_an_account_passes_the_limit() {
    let world = world_with_limit(2, 2, &[SLOW_GATHER]).await;
    let mut browsers = vec![register_and_log_in(&world, ANN).await];
    for server in [1, 0, 1] {
        browsers.push(another_browser(&world, server).await);
    }
    let mut ready = Vec::new();
    for (seat, browser) in (0_u32..).step_by(2).zip(&browsers) {
        let visitor = browser.visitor();
        let (_, hold) = visitor.hold(&[seat, seat + 1]).await;
        // Half of them check out and pay in one request.
        let booking = if seat % 4 == 0 { Some(visitor.book(&hold).await.1) } else { None };
        ready.push((visitor, hold, booking));
    }
    // The payments are batched, so all are checked before any is written.
    let pay = ready.iter().map(|(visitor, hold, booking)| visitor.pay_for(hold, booking.as_ref(), "tok_paid"));
    let answers = join_all(pay).await;
    let sold = answers.iter().filter(|(_, answer)| answer["state"] == "CONFIRMED").count();
    let refused = answers.iter().filter(|(_, answer)| answer["code"] == "person_limit").count();
    assert_eq!((sold, refused), (1, 3), "{answers:?}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "the others were not charged");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 2);
    world.wait_until_books_balance().await;
}

/// More accounts than pipeline lanes, so some share a lane.
#[tokio::test(flavor = "multi_thread")]
async fn payments_of_accounts_with_one_browser_are_batched() {
    let world = world_with_limit(1, 2, &[SLOW_GATHER]).await;
    let mut ready = Vec::new();
    for number in 0..5_u32 {
        let browser = register_and_log_in(&world, &format!("buyer{number}@example.org")).await;
        let visitor = browser.visitor();
        let (_, booking) = visitor.check_out(&[number]).await;
        ready.push((visitor, booking));
    }
    // These pay on the gateway's page: their bookings stay as the submission wrote them.
    let answers = join_all(ready.iter().map(|(visitor, booking)| visitor.pay(booking, None))).await;
    assert!(answers.iter().all(|(_, answer)| answer["state"] == "PAYMENT_PENDING"), "{answers:?}");
    let transactions = world.count("SELECT count(DISTINCT xmin::text) FROM bookings").await;
    assert!(transactions < 5, "the payments were batched: {transactions}");
}
