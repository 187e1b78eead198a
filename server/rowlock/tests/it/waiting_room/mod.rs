//! The waiting room: people at the door of a show, on several servers, with a Redis that may forget.

mod calling;
mod crowds;
mod draw;
mod losses;
mod pages;
mod passes;
mod staff;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::accounts::Browser;
use crate::world::{Visitor, World, text, until};

/// Switches the room of the world's show on, as an operator does, and waits until every server knows.
async fn switch_on(world: &World, opens_in_ms: i64, per_second: u32) {
    let opens_at = platform::clock::rfc3339(platform::clock::now().plus_ms(opens_in_ms));
    let (show, pace) = (world.show.to_string(), per_second.to_string());
    let words = ["waiting-room", "on", &show, "--opens-at", &opens_at, "--per-second", &pace, "--reason", "On sale."];
    let (good, said) = world.command(&words).await;
    assert!(good, "{said}");
    for server in 0..world.servers.len() {
        let visitor = world.visitor_at(server);
        until("the server knows the room", || async { visitor.get(&queue_of(world)).await.0 == StatusCode::OK }).await;
    }
}

fn queue_of(world: &World) -> String {
    format!("/api/v1/shows/{}/queue", world.show)
}

/// A key of the world's one room, by its last word.
async fn key_of(world: &World, name: &str) -> String {
    let room: uuid::Uuid = sqlx::query_scalar("SELECT id FROM waiting_rooms WHERE switched_off_at IS NULL")
        .fetch_one(&world.pg)
        .await
        .expect("a room");
    format!("{}{{show:{}}}:queue:{}:{name}", world.setting("REDIS_PREFIX"), world.show, room.simple())
}

/// Somebody at the door.
struct Guest {
    browser: Browser,
    path: String,
    number: u64,
}

impl Guest {
    /// Joins at that server.
    async fn joins(world: &World, server: usize) -> Self {
        let mut browser = Browser::at(world, server);
        let (status, view) = browser.post(&queue_of(world), Value::Null).await;
        assert_eq!(status, StatusCode::CREATED, "{view}");
        let number = view["number"].as_u64().expect("a number");
        Self { browser, path: queue_of(world), number }
    }

    /// How they stand.
    async fn looks(&mut self) -> Value {
        let (status, view) = self.browser.get(&self.path).await;
        assert_eq!(status, StatusCode::OK, "{view}");
        view
    }

    /// They come to the door.
    async fn comes(&mut self) -> Value {
        let (status, view) = self.browser.post(&self.path, Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{view}");
        view
    }

    async fn leaves(&mut self) {
        let (status, answer) = self.browser.send(Method::DELETE, &self.path, Value::Null).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
    }

    /// As whoever asks for how they stand, without changing what they keep.
    fn visitor(&self) -> Visitor {
        self.browser.visitor()
    }

    /// Waits until they stand so.
    async fn becomes(&mut self, state: &str) -> Value {
        let visitor = self.visitor();
        until(&format!("they are {state}"), || async { visitor.get(&self.path).await.1["state"] == state }).await;
        self.looks().await
    }

    /// Waits until the room has opened, and says where they stand in it.
    async fn is_drawn(&mut self) -> u64 {
        let visitor = self.visitor();
        until("places are drawn", || async { visitor.get(&self.path).await.1["place"].is_u64() }).await;
        self.looks().await["place"].as_u64().expect("a place")
    }

    /// Waits until their turn has come, and goes in.
    async fn goes_in(&mut self) -> Value {
        self.becomes("CALLED").await;
        let view = self.comes().await;
        assert_eq!(view["state"], "INSIDE", "{view}");
        view
    }

    /// Comes to the door until they are in.
    async fn is_let_in(&mut self) {
        let visitor = self.visitor();
        let come = || visitor.call(Method::POST, &self.path, Value::Null);
        until("they are let in", || async { come().await.1["state"] == "INSIDE" }).await;
    }

    async fn holds(&mut self, seat: u32) -> (StatusCode, Value) {
        let path = self.path.replace("/queue", "/holds");
        self.browser.post(&path, json!({ "seats": [seat] })).await
    }
}

/// So many guests, at one server after the other.
async fn guests(world: &World, count: usize) -> Vec<Guest> {
    let servers = world.servers.len();
    futures::future::join_all((0..count).map(|number| Guest::joins(world, number % servers))).await
}

/// They as they stand, the first in line first.
async fn in_line(guests: Vec<Guest>) -> Vec<Guest> {
    let mut placed = Vec::new();
    for mut guest in guests {
        placed.push((guest.is_drawn().await, guest));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, guest)| guest).collect()
}

/// Places called so far, as a server tells.
async fn called(visitor: &Visitor, path: &str) -> u64 {
    visitor.get(path).await.1["queue"]["called"].as_u64().expect("a number")
}

/// What `GET …/queue` says of the draw.
fn draw_of(view: &Value) -> (Option<String>, Option<u64>, String) {
    let draw = &view["draw"];
    (draw["key"].as_str().map(str::to_owned), draw["people"].as_u64(), text(&draw["commitment"]).to_owned())
}
