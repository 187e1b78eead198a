//! Reports over a history that really happened: they say what the rows say, to the cent, for every day.

mod history;
mod shown;

use reqwest::StatusCode;
use serde_json::Value;

use crate::accounts::{Browser, grant, signed_up};
use crate::world::World;

/// Somebody who works at the Aurora.
pub async fn staff(world: &World, email: &str, role: &str) -> Browser {
    let somebody = signed_up(world, email).await;
    grant(world, email, "aurora", role).await;
    somebody
}

/// A report of the Aurora.
pub async fn report(of: &mut Browser, name: &str, from: &str, to: &str) -> Value {
    let (status, report) = of.get(&format!("/api/v1/theatres/aurora/reports/{name}?from={from}&to={to}")).await;
    assert_eq!(status, StatusCode::OK, "{report}");
    report
}
