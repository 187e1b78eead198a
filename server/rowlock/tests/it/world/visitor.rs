//! What visitors of a test's world do, and what they see.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use uuid::Uuid;

use super::{text, until};

/// Somebody with a browser's cookie.
#[derive(Clone)]
pub struct Visitor {
    pub client: reqwest::Client,
    pub base: String,
    pub cookie: String,
    pub show: Uuid,
}

/// Status and JSON of an answer.
pub type Answer = (StatusCode, Value);

impl Visitor {
    /// Sends a request with a fresh key; the answer must be JSON or empty.
    pub async fn call(&self, method: Method, path: &str, body: Value) -> Answer {
        self.call_with_key(method, path, body, &platform::ids::new_id().to_string()).await
    }

    /// The same with a key of the caller's.
    pub async fn call_with_key(&self, method: Method, path: &str, body: Value, key: &str) -> Answer {
        let (status, text) = self.raw(method, path, body, key).await;
        (status, if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("JSON") })
    }

    /// Status and bytes of an answer.
    pub async fn raw(&self, method: Method, path: &str, body: Value, key: &str) -> (StatusCode, String) {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.base))
            .header("cookie", &self.cookie)
            .header("idempotency-key", key);
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("the server answers");
        (answer.status(), answer.text().await.expect("a body"))
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, Value::Null).await
    }

    pub async fn hold(&self, seats: &[u32]) -> Answer {
        self.call(Method::POST, &format!("/api/v1/shows/{}/holds", self.show), json!({ "seats": seats })).await
    }

    /// Holds places on the floor.
    pub async fn stand(&self, quantity: u32) -> Answer {
        let path = format!("/api/v1/shows/{}/holds", self.show);
        self.call(Method::POST, &path, json!({ "area": 0, "quantity": quantity })).await
    }

    /// Joins the waiting list.
    pub async fn wait_for(&self, quantity: u32) -> Answer {
        let path = format!("/api/v1/shows/{}/waiting-list", self.show);
        self.call(Method::POST, &path, json!({ "quantity": quantity, "email": "ann@example.org" })).await
    }

    /// This visitor's place in the waiting list.
    pub async fn waiting(&self) -> Answer {
        self.get(&format!("/api/v1/shows/{}/waiting-list", self.show)).await
    }

    /// Waits until their waiting stands so, and returns it.
    pub async fn sees_waiting(&self, state: &str) -> Value {
        until(&format!("their waiting is {state}"), || async { self.waiting().await.1["state"] == state }).await;
        self.waiting().await.1
    }

    /// Lets a hold go.
    pub async fn let_go(&self, hold: &Value) -> StatusCode {
        let path = format!("/api/v1/shows/{}/holds/{}", self.show, text(&hold["id"]));
        self.call(Method::DELETE, &path, Value::Null).await.0
    }

    /// Lets go of what is kept for another card after the payment of this booking was declined.
    pub async fn lets_kept_hold_go(&self, declined: &Value) {
        let kept = json!({ "id": declined["kept_hold"]["hold"] });
        until("the kept hold is let go", || async {
            self.let_go(&kept).await;
            !self.holds_something().await
        })
        .await;
    }

    /// Places left on the floor, as everyone sees it.
    pub async fn places_left(&self) -> Value {
        let (_, body) = self.get(&format!("/api/v1/shows/{}/seats", self.show)).await;
        body["areas"][0]["left"].clone()
    }

    pub async fn change(&self, hold: &Value, add: &[u32], remove: &[u32]) -> Answer {
        let path = format!("/api/v1/shows/{}/holds/{}", self.show, text(&hold["id"]));
        self.call(Method::PATCH, &path, json!({ "add": add, "remove": remove })).await
    }

    /// What checks out a hold.
    pub fn wish(&self, hold: &Value) -> Value {
        let buyer = json!({ "name": "Ann Example", "email": "ann@example.org" });
        json!({ "show": self.show, "hold": hold["id"], "buyer": buyer })
    }

    /// What checks it out and pays what it costs.
    pub fn order(&self, hold: &Value, token: Option<&str>) -> Value {
        let mut order = self.wish(hold);
        order["pay"] = json!({ "total_minor": hold["total"]["minor"] });
        if let Some(token) = token {
            order["pay"]["payment_token"] = token.into();
        }
        order
    }

    pub async fn book(&self, hold: &Value) -> Answer {
        self.call(Method::POST, "/api/v1/bookings", self.wish(hold)).await
    }

    /// Checks out and pays in one request.
    pub async fn buy(&self, hold: &Value, token: Option<&str>) -> Answer {
        self.call(Method::POST, "/api/v1/bookings", self.order(hold, token)).await
    }

    /// Pays for a hold: for the booking it became, or else it becomes one in the same request.
    pub async fn pay_for(&self, hold: &Value, booking: Option<&Value>, token: &str) -> Answer {
        match booking {
            Some(booking) => self.pay(booking, Some(token)).await,
            None => self.buy(hold, Some(token)).await,
        }
    }

    /// What this visitor holds of the show.
    pub async fn held(&self) -> Value {
        let (status, hold) = self.get(&format!("/api/v1/shows/{}/hold", self.show)).await;
        assert_eq!(status, StatusCode::OK, "{hold}");
        hold
    }

    /// Whether seats of the show are held.
    pub async fn holds_something(&self) -> bool {
        let (status, hold) = self.get(&format!("/api/v1/shows/{}/hold", self.show)).await;
        assert!(matches!(status, StatusCode::OK | StatusCode::NO_CONTENT), "{hold}");
        status == StatusCode::OK
    }

    /// Checks out these seats and pays with that token.
    pub async fn bought(&self, seats: &[u32], token: &str) -> Value {
        let (status, hold) = self.hold(seats).await;
        assert_eq!(status, StatusCode::CREATED, "{hold}");
        let (status, booking) = self.book(&hold).await;
        assert_eq!(status, StatusCode::CREATED, "{booking}");
        let (status, paid) = self.pay(&booking, Some(token)).await;
        assert_eq!(status, StatusCode::OK, "{paid}");
        paid
    }

    /// Cancels a booking, or some seats of it.
    pub async fn cancel(&self, booking: &Value, seats: Option<&[u32]>) -> Answer {
        let path = format!("/api/v1/bookings/{}/cancel", text(&booking["id"]));
        self.call(Method::POST, &path, seats.map_or(Value::Null, |seats| json!({ "seats": seats }))).await
    }

    /// Waits until the money of a booking stands so, and returns the booking.
    pub async fn sees_money(&self, booking: &Value, money: &str) -> Value {
        until(&format!("the money is {money}"), || async { self.booking(booking).await["money"] == money }).await;
        self.booking(booking).await
    }

    pub async fn pay(&self, booking: &Value, token: Option<&str>) -> Answer {
        let path = format!("/api/v1/bookings/{}/confirm", text(&booking["id"]));
        let body = token.map_or_else(|| json!({}), |token| json!({ "payment_token": token }));
        self.call(Method::POST, &path, body).await
    }

    pub async fn booking(&self, booking: &Value) -> Value {
        self.get(&format!("/api/v1/bookings/{}", text(&booking["id"]))).await.1
    }

    /// Opens the live map.
    pub async fn watch(&self) -> WebSocketStream<MaybeTlsStream<TcpStream>> {
        let url = format!("{}/api/v1/shows/{}/live", self.base.replace("http://", "ws://"), self.show);
        tokio_tungstenite::connect_async(url).await.expect("the live map opens").0
    }

    /// A digit per seat.
    pub async fn states(&self) -> String {
        let (_, body) = self.get(&format!("/api/v1/shows/{}/seats", self.show)).await;
        text(&body["states"]).to_owned()
    }

    /// Waits until the map shows that seat in that state.
    pub async fn sees(&self, seat: usize, state: char) {
        until(&format!("seat {seat} is {state}"), || async { self.states().await.chars().nth(seat) == Some(state) })
            .await;
    }

    /// Waits until the booking is in that state, and returns it.
    pub async fn sees_booking(&self, booking: &Value, state: &str) -> Value {
        until(&format!("the booking is {state}"), || async { self.booking(booking).await["state"] == state }).await;
        self.booking(booking).await
    }
}
