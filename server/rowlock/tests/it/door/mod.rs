//! The door: scanners with and without a network.

mod scans;
mod settlement;

use crate::prelude::*;

pub async fn tonight(world: &World) -> Visitor {
    let show = insert_show(&world.pg, 300_000, 3 * 3600).await;
    world.visitor().at_show(show)
}

#[derive(Clone)]
pub struct Device {
    pub browser: Visitor,
    pub id: Uuid,
    pub name: &'static str,
}

/// A world, a visitor of a show this evening, and a scanner at its door.
async fn world_with_door(servers: usize) -> (World, Visitor, Device) {
    let world = World::start(servers, &[]).await;
    let ann = tonight(&world).await;
    let left = device(&world, ann.show, "Left door").await;
    (world, ann, left)
}

pub async fn device(world: &World, show: Uuid, name: &'static str) -> Device {
    let email = format!("{}@example.org", new_id().simple());
    let browser = register_and_log_in(world, &email).await;
    grant(world, &email, "aurora", "box_office").await;
    Device { browser: Visitor { show, ..browser.visitor() }, id: new_id(), name }
}

impl Device {
    pub fn another(&self, name: &'static str) -> Self {
        Self { id: new_id(), name, ..self.clone() }
    }

    pub fn path(&self, what: &str) -> String {
        format!("/api/v1/theatres/aurora/door/shows/{}{what}", self.browser.show)
    }

    pub fn view(&self) -> Value {
        json!({ "id": self.id, "name": self.name })
    }

    pub async fn scan_as(&self, text: &str, scan: Uuid) -> JsonAnswer {
        let body = json!({ "text": text, "device": self.view() });
        self.browser.call_with_key(Method::POST, &self.path("/scans"), body, &scan.to_string()).await
    }

    pub async fn scan(&self, text: &str) -> Vec<Value> {
        let answer = expect_answer(self.scan_as(text, new_id()).await, StatusCode::OK);
        answer["tickets"].as_array().expect("tickets").clone()
    }

    pub async fn outcome(&self, code: &str) -> String {
        text(&self.scan(code).await[0]["outcome"]).to_owned()
    }

    pub async fn list(&self) -> Value {
        expect_answer(self.browser.get(&self.path(&format!("/list?device={}", self.id))).await, StatusCode::OK)
    }

    /// Settles offline scans of a list. Each has an id, a code, and its age in milliseconds.
    pub async fn settle(&self, list: &Value, scans: &[(Uuid, &str, i64)]) -> JsonAnswer {
        let now = platform::clock::now().0;
        let scans: Vec<Value> = scans
            .iter()
            .map(|(scan, code, ago)| json!({ "scan": scan, "codes": [code], "at_ms": now - ago }))
            .collect();
        self.send_settlement(json!({ "device": self.view(), "seal": list["seal"], "sent_at_ms": now, "scans": scans }))
            .await
    }

    pub async fn send_settlement(&self, body: Value) -> JsonAnswer {
        self.browser.call(Method::POST, &self.path("/settlements"), body).await
    }

    pub async fn undo(&self, scan: Uuid, reason: &str) -> JsonAnswer {
        self.browser.call(Method::POST, &self.path("/undo"), json!({ "scan": scan, "reason": reason })).await
    }

    pub async fn undo_ticket(&self, scan: &Value, code: &str) -> JsonAnswer {
        let body = json!({ "scan": scan, "ticket": code, "reason": "Their friend has it." });
        self.browser.call(Method::POST, &self.path("/undo"), body).await
    }

    pub async fn state(&self) -> Value {
        expect_answer(self.browser.get(&self.path("")).await, StatusCode::OK)
    }

    /// Tickets sold, admitted, and in conflict.
    pub async fn counts(&self) -> [i64; 3] {
        let view = self.state().await;
        ["sold", "admitted", "conflicts"].map(|name| view["counts"][name].as_i64().expect("a number"))
    }
}

/// Ticket codes of a booking, in layout order.
pub async fn codes(world: &World, booking: &Value) -> Vec<String> {
    let id = Uuid::parse_str(text(&booking["id"])).expect("an id");
    let of_booking = "SELECT code FROM tickets WHERE booking_id = $1 ORDER BY seat_no";
    world.values(sqlx::query_scalar(of_booking).bind(id)).await
}

pub fn outcomes(settlement: &Value) -> Vec<&str> {
    let scans = settlement["scans"].as_array().expect("scans");
    scans.iter().map(|scan| text(&scan["tickets"][0]["outcome"])).collect()
}
