//! The box office: tills, sales at the counter, refunds, house seats.

mod exchange;
mod house_seats;
pub mod pages;
mod sales;
mod tills;

use crate::prelude::*;

pub const PIN: &str = "274951";

pub fn desk_path(rest: &str) -> String {
    format!("/api/v1/theatres/aurora/box-office/{rest}")
}

pub async fn seller(world: &World, email: &str) -> Browser {
    hired(world, email, "box_office").await
}

pub async fn hired(world: &World, email: &str, role: &str) -> Browser {
    let mut browser = register_and_log_in(world, email).await;
    grant(world, email, "aurora", role).await;
    expect_answer(browser.log_in(email, PASSWORD).await, StatusCode::OK);
    browser
}

pub async fn set_name(world: &World, email: &str, name: &str) {
    let named = sqlx::query("UPDATE accounts SET name = $2 WHERE email = $1").bind(email).bind(name);
    assert_eq!(named.execute(&world.pg).await.expect("the name is written").rows_affected(), 1);
}

/// A manager of the Aurora with a PIN, and their account.
pub async fn manager(world: &World) -> (Browser, Value) {
    let mut max = hired(world, "max@example.org", "manager").await;
    let answer = max.post(&desk_path("pin"), json!({ "pin": PIN, "password": PASSWORD })).await;
    expect_answer(answer, StatusCode::NO_CONTENT);
    let (_, me) = max.me().await;
    (max, me["id"].clone())
}

pub async fn seller_with_open_till(world: &World, email: &str) -> Browser {
    let mut browser = seller(world, email).await;
    expect_answer(browser.post(&desk_path("till"), json!({ "float_minor": 10_000 })).await, StatusCode::CREATED);
    browser
}

pub async fn hold_seats(browser: &mut Browser, world: &World, seats: &[u32]) -> Value {
    let path = format!("/api/v1/shows/{}/holds", world.show);
    expect_answer(browser.post(&path, json!({ "seats": seats })).await, StatusCode::CREATED)
}

pub fn sale(hold: &Value, means: &str) -> Value {
    json!({ "hold": hold["id"], "means": means, "total_minor": hold["total"]["minor"] })
}

pub async fn sell_seats(browser: &mut Browser, world: &World, seats: &[u32], means: &str) -> Value {
    let hold = hold_seats(browser, world, seats).await;
    let sold = expect_answer(browser.post(&sales_path(world), sale(&hold, means)).await, StatusCode::CREATED);
    assert_eq!(sold["total"]["minor"], PRICE * seats.len() as i64);
    sold
}

pub fn sales_path(world: &World) -> String {
    desk_path(&format!("shows/{}/sales", world.show))
}

pub fn booking_path(booking: &Value, rest: &str) -> String {
    desk_path(&format!("bookings/{}{rest}", text(&booking["id"])))
}

pub fn code((status, answer): &(StatusCode, Value)) -> (u16, String) {
    (status.as_u16(), answer["code"].as_str().unwrap_or_default().to_owned())
}

pub async fn acts(world: &World) -> Vec<String> {
    world.values(sqlx::query_scalar("SELECT act FROM audit_list WHERE theatre_id = 'aurora' ORDER BY number")).await
}

async fn world_with_open_till() -> (World, Browser) {
    let world = World::start(1, &[]).await;
    let ann = seller_with_open_till(&world, "ann@example.org").await;
    (world, ann)
}

async fn world_with_two_theatres() -> (World, Browser) {
    let world = World::start(1, &[]).await;
    let rita = two_theatres(&world).await;
    (world, rita)
}

/// Adds a second theatre, whose manager is `rita@example.org`.
pub async fn two_theatres(world: &World) -> Browser {
    another_theatre(world).await;
    let mut rita = register_and_log_in(world, "rita@example.org").await;
    grant(world, "rita@example.org", "rialto", "manager").await;
    rita.log_in("rita@example.org", PASSWORD).await;
    rita
}
