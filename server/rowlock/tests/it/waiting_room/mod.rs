//! The waiting room: visitors of a show, on several servers, with a Redis that may lose its data.

mod calling;
mod crowds;
mod draw;
mod pages;

use crate::prelude::*;

/// Switches on the room of the world's show, as an operator does, and waits until every server sees it.
async fn switch_on(world: &World, opens_in_ms: i64, per_second: u32) {
    let opens_at = platform::clock::rfc3339(platform::clock::now().plus_ms(opens_in_ms));
    let (show, pace) = (world.show.to_string(), per_second.to_string());
    let words = ["waiting-room", "on", &show, "--opens-at", &opens_at, "--per-second", &pace, "--reason", "On sale."];
    let (good, said) = world.command(&words).await;
    assert!(good, "{said}");
    for server in 0..world.servers.len() {
        let visitor = world.visitor_at(server);
        wait_until("the server sees the room", || async { visitor.get(&queue_of(world)).await.0 == StatusCode::OK })
            .await;
    }
}

fn queue_of(world: &World) -> String {
    format!("/api/v1/shows/{}/queue", world.show)
}

/// Key of the world's only room, by its last part.
async fn key_of(world: &World, name: &str) -> String {
    let room: Uuid =
        world.value(sqlx::query_scalar("SELECT id FROM waiting_rooms WHERE switched_off_at IS NULL")).await;
    format!("{}{{show:{}}}:queue:{}:{name}", world.setting("REDIS_PREFIX"), world.show, room.simple())
}

struct Guest {
    browser: Browser,
    path: String,
    number: u64,
}

impl Guest {
    async fn join(world: &World, server: usize) -> Self {
        let mut browser = Browser::at(world, server);
        let view = expect_answer(browser.post(&queue_of(world), Value::Null).await, StatusCode::CREATED);
        let number = view["number"].as_u64().expect("a number");
        Self { browser, path: queue_of(world), number }
    }

    /// Path of the link that moves the place to another device. The guest is at the first server.
    async fn link(&mut self, world: &World) -> String {
        let link = text(&self.state().await["link"]).to_owned();
        link.strip_prefix(&world.servers[0].url).expect("a URL of this server").to_owned()
    }

    /// A new browser at the first server, which confirms that this place moves to it.
    async fn on_another_device(&self, world: &World, link: &str) -> Self {
        let mut browser = Browser::new(world);
        let (status, headers, _) = browser.send_with(Method::POST, link, &Value::Null, &[]).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        assert_eq!(headers["location"], format!("/shows/{}", world.show));
        Self { browser, path: self.path.clone(), number: self.number }
    }

    async fn state(&mut self) -> Value {
        expect_answer(self.browser.get(&self.path).await, StatusCode::OK)
    }

    async fn visit(&mut self) -> Value {
        expect_answer(self.browser.post(&self.path, Value::Null).await, StatusCode::OK)
    }

    async fn leave(&mut self) {
        expect_answer(self.browser.send(Method::DELETE, &self.path, Value::Null).await, StatusCode::NO_CONTENT);
    }

    /// A visitor with a copy of their cookies, which do not change.
    fn visitor(&self) -> Visitor {
        self.browser.visitor()
    }

    async fn wait_for_state(&mut self, state: &str) -> Value {
        let visitor = self.visitor();
        wait_until(&format!("the guest is {state}"), || async { visitor.get(&self.path).await.1["state"] == state })
            .await;
        self.state().await
    }

    /// Waits until the room has opened, and returns their place.
    async fn wait_for_place(&mut self) -> u64 {
        let visitor = self.visitor();
        wait_until("places are drawn", || async { visitor.get(&self.path).await.1["place"].is_u64() }).await;
        self.state().await["place"].as_u64().expect("a place")
    }

    async fn enter(&mut self) -> Value {
        self.wait_for_state("CALLED").await;
        let view = self.visit().await;
        assert_eq!(view["state"], "INSIDE", "{view}");
        view
    }

    async fn visit_until_inside(&mut self) {
        let visitor = self.visitor();
        let come = || visitor.call(Method::POST, &self.path, Value::Null);
        wait_until("the guest is inside", || async { come().await.1["state"] == "INSIDE" }).await;
    }

    async fn hold(&mut self, seat: u32) -> (StatusCode, Value) {
        let path = self.path.replace("/queue", "/holds");
        self.browser.post(&path, json!({ "seats": [seat] })).await
    }
}

/// This many guests, at alternating servers.
async fn guests(world: &World, count: usize) -> Vec<Guest> {
    let servers = world.servers.len();
    join_all((0..count).map(|number| Guest::join(world, number % servers))).await
}

async fn sorted_by_place(guests: Vec<Guest>) -> Vec<Guest> {
    let mut placed = Vec::new();
    for mut guest in guests {
        placed.push((guest.wait_for_place().await, guest));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, guest)| guest).collect()
}

/// Number of called places, according to a server.
async fn called_places(visitor: &Visitor, path: &str) -> u64 {
    visitor.get(path).await.1["queue"]["called"].as_u64().expect("a number")
}

/// The draw in the answer of `GET …/queue`.
fn draw_of(view: &Value) -> (Option<String>, Option<u64>, String) {
    let draw = &view["draw"];
    (draw["key"].as_str().map(str::to_owned), draw["people"].as_u64(), text(&draw["commitment"]).to_owned())
}
