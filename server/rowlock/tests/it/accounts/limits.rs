//! The limit of seats per person, for people with an account: it is the account's, whatever browsers they use.

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::Value;

use super::{Browser, PASSWORD, signed_up};
use crate::cancel::books_balance;
use crate::commits::GATHERING;
use crate::world::{Visitor, World, text};

/// What Ann signs in with.
const ANN: &str = "ann@example.org";

/// A world whose show has this limit. Before anyone asked for it.
async fn limited(servers: usize, most: i16, settings: &[(&str, &str)]) -> World {
    let world = World::start(servers, settings).await;
    let set = sqlx::query("UPDATE shows SET per_person = $1").bind(most).execute(&world.pg).await;
    set.expect("it is set");
    world
}

async fn checked_out(visitor: &Visitor, seats: &[u32]) -> (Value, Value) {
    let (status, hold) = visitor.hold(seats).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let (status, booking) = visitor.book(&hold).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    (hold, booking)
}

/// One more browser of Ann's, at that server.
async fn another_browser(world: &World, server: usize) -> Browser {
    let mut browser = Browser::at(world, server);
    let (status, answer) = browser.log_in(ANN, PASSWORD).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    browser
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_and_in_again_gives_nobody_more_seats() {
    let world = limited(1, 3, &[]).await;
    let mut ann = signed_up(&world, ANN).await;
    assert_eq!(ann.visitor().bought(&[1, 2], "tok_paid").await["state"], "CONFIRMED");
    assert_eq!(ann.post("/api/v1/users/logout", Value::Null).await.0, StatusCode::NO_CONTENT);
    assert_eq!(ann.log_in(ANN, PASSWORD).await.0, StatusCode::OK);
    assert_eq!(world.count("SELECT count(*) FROM account_visitors").await, 2, "she is another visitor now");
    let again = ann.visitor();
    let (hold, booking) = checked_out(&again, &[5, 6]).await;
    let (status, refusal) = again.pay(&booking, Some("tok_paid")).await;
    assert_eq!((status, text(&refusal["code"])), (StatusCode::TOO_MANY_REQUESTS, "person_limit"), "{refusal}");
    let words = text(&refusal["detail"]);
    assert!(words.contains("may have 3") && words.contains("your account has 2"), "it says which limit: {words}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "nothing was charged");
    // What others buy, with an account or without, is none of hers.
    let ben = signed_up(&world, "ben@example.org").await;
    assert_eq!(ben.visitor().bought(&[10, 11, 12], "tok_paid").await["state"], "CONFIRMED");
    assert_eq!(world.visitor().bought(&[20, 21, 22], "tok_paid").await["state"], "CONFIRMED");
    // Her seats are still held, and one of them she may have.
    assert_eq!(again.change(&hold, &[], &[6]).await.0, StatusCode::OK);
    let (_, fewer) = again.book(&hold).await;
    assert_eq!(again.pay(&fewer, Some("tok_paid")).await.1["state"], "CONFIRMED", "three in all");
    books_balance(&world).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_browsers_of_one_account_that_pay_at_once_one_passes() {
    let world = limited(2, 2, &[GATHERING]).await;
    let mut browsers = vec![signed_up(&world, ANN).await];
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
    // They are gathered, so all of them are checked before any is written down.
    let pay = ready.iter().map(|(visitor, hold, booking)| visitor.pay_for(hold, booking.as_ref(), "tok_paid"));
    let told = join_all(pay).await;
    let sold = told.iter().filter(|(_, answer)| answer["state"] == "CONFIRMED").count();
    let refused = told.iter().filter(|(_, answer)| answer["code"] == "person_limit").count();
    assert_eq!((sold, refused), (1, 3), "{told:?}");
    assert_eq!(world.count("SELECT count(*) FROM payments").await, 1, "the others were not charged");
    assert_eq!(world.count("SELECT count(*) FROM seat_claims WHERE state = 'sold'").await, 2);
    books_balance(&world).await;
    world.end().await;
}

/// More of them than there are lanes of the pipeline, so some of them share one.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_with_one_browser_still_pay_together_with_everyone() {
    let world = limited(1, 2, &[GATHERING]).await;
    let mut ready = Vec::new();
    for number in 0..5_u32 {
        let browser = signed_up(&world, &format!("buyer{number}@example.org")).await;
        let visitor = browser.visitor();
        let (_, booking) = checked_out(&visitor, &[number]).await;
        ready.push((visitor, booking));
    }
    // On the gateway's page: their bookings wait for it, as their submission wrote them.
    let told = join_all(ready.iter().map(|(visitor, booking)| visitor.pay(booking, None))).await;
    assert!(told.iter().all(|(_, answer)| answer["state"] == "PAYMENT_PENDING"), "{told:?}");
    let transactions = world.count("SELECT count(DISTINCT xmin::text) FROM bookings").await;
    assert!(transactions < 5, "none of them went by itself: {transactions}");
    world.end().await;
}
