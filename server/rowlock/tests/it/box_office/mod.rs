//! The box office from outside: tills, sales at the counter, what is taken back, house seats.

mod callers;
mod exchanging;
mod exchanging_at_once;
mod exchanging_for_less;
mod finding;
mod guest_seats;
mod house_seats;
pub mod pages;
mod sales;
mod taking_back;
mod tills;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::accounts::{Browser, PASSWORD, another_theatre, grant, signed_up};
use crate::world::{PRICE, World, text};

/// What managers of these tests stand for things with.
pub const PIN: &str = "274951";

/// The address of something of the Aurora's box office.
pub fn desk(rest: &str) -> String {
    format!("/api/v1/theatres/aurora/box-office/{rest}")
}

/// Somebody at the counter of the Aurora.
pub async fn seller(world: &World, email: &str) -> Browser {
    hired(world, email, "box_office").await
}

/// Somebody who works at the Aurora, signed in since.
pub async fn hired(world: &World, email: &str, role: &str) -> Browser {
    let mut browser = signed_up(world, email).await;
    grant(world, email, "aurora", role).await;
    let (status, answer) = browser.log_in(email, PASSWORD).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    browser
}

/// Gives somebody a name of their own.
pub async fn called(world: &World, email: &str, name: &str) {
    let named = sqlx::query("UPDATE accounts SET name = $2 WHERE email = $1").bind(email).bind(name);
    assert_eq!(named.execute(&world.pg).await.expect("it is written").rows_affected(), 1);
}

/// A manager of the Aurora who has a PIN; their account.
pub async fn manager(world: &World) -> (Browser, Value) {
    let mut max = hired(world, "max@example.org", "manager").await;
    let (status, answer) = max.post(&desk("pin"), json!({ "pin": PIN, "password": PASSWORD })).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
    let (_, me) = max.me().await;
    (max, me["id"].clone())
}

/// A seller whose till is open with a hundred in it.
pub async fn at_work(world: &World, email: &str) -> Browser {
    let mut browser = seller(world, email).await;
    let (status, till) = browser.post(&desk("till"), json!({ "float_minor": 10_000 })).await;
    assert_eq!(status, StatusCode::CREATED, "{till}");
    browser
}

/// Takes these seats for the seller.
pub async fn holds(browser: &mut Browser, world: &World, seats: &[u32]) -> Value {
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let (status, hold) = browser.post(&path, json!({ "seats": seats })).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    hold
}

/// The wish to sell a hold.
pub fn sale(hold: &Value, means: &str) -> Value {
    json!({ "hold": hold["id"], "means": means, "total_minor": hold["total"]["minor"] })
}

/// Sells these seats; the booking.
pub async fn sells(browser: &mut Browser, world: &World, seats: &[u32], means: &str) -> Value {
    let hold = holds(browser, world, seats).await;
    let (status, sold) = browser.post(&sales(world), sale(&hold, means)).await;
    assert_eq!(status, StatusCode::CREATED, "{sold}");
    assert_eq!(sold["total"]["minor"], PRICE * seats.len() as i64);
    sold
}

/// Where this world's show is sold.
pub fn sales(world: &World) -> String {
    desk(&format!("shows/{}/sales", world.show))
}

/// Something of a booking at the counter.
pub fn of_booking(booking: &Value, rest: &str) -> String {
    desk(&format!("bookings/{}{rest}", text(&booking["id"])))
}

/// The code of a problem.
pub fn code((status, answer): &(StatusCode, Value)) -> (u16, String) {
    (status.as_u16(), answer["code"].as_str().unwrap_or_default().to_owned())
}

/// Acts in the Aurora's audit list, the oldest first.
pub async fn acts(world: &World) -> Vec<String> {
    sqlx::query_scalar("SELECT act FROM audit_list WHERE theatre_id = 'aurora' ORDER BY number")
        .fetch_all(&world.pg)
        .await
        .expect("the list is read")
}

/// A world with another theatre in it, whose manager is `rita@example.org`.
pub async fn two_theatres(world: &World) -> Browser {
    another_theatre(world).await;
    let mut rita = signed_up(world, "rita@example.org").await;
    grant(world, "rita@example.org", "rialto", "manager").await;
    rita.log_in("rita@example.org", PASSWORD).await;
    rita
}
