//! Reports over a real history match the rows to the cent, for every day.

mod history;
mod pages;

use reqwest::StatusCode;
use serde_json::Value;

use crate::accounts::{Browser, grant, register_and_log_in};
use crate::world::{World, expect_answer};

/// A signed-in member of the Aurora's staff.
pub async fn staff(world: &World, email: &str, role: &str) -> Browser {
    let browser = register_and_log_in(world, email).await;
    grant(world, email, "aurora", role).await;
    browser
}

/// A report of the Aurora.
pub async fn report(of: &mut Browser, name: &str, from: &str, to: &str) -> Value {
    expect_answer(of.get(&format!("/api/v1/theatres/aurora/reports/{name}?from={from}&to={to}")).await, StatusCode::OK)
}
