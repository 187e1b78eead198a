//! HTTP requests of a test's visitors.

use std::fmt::Display;

use reqwest::header::{AsHeaderName, HeaderMap};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, tungstenite};
use uuid::Uuid;

use super::{World, text, wait_until};

#[derive(Clone)]
pub struct Visitor {
    pub client: reqwest::Client,
    pub base: String,
    pub cookie: String,
    pub show: Uuid,
}

pub type JsonAnswer = (StatusCode, Value);

/// An answer with its headers.
#[derive(Clone, Debug)]
pub struct RawAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl RawAnswer {
    /// Sends a request and reads its answer.
    pub async fn of(request: RequestBuilder) -> Self {
        let answer = request.send().await.expect("the server answers");
        let (status, headers) = (answer.status(), answer.headers().clone());
        Self { status, headers, body: answer.text().await.expect("a body") }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?} is no JSON"))
    }

    pub fn into_json(self) -> JsonAnswer {
        (self.status, self.json())
    }

    /// Status, and the target of a redirect or the page.
    pub fn into_page(self) -> (StatusCode, String) {
        let location = self.location().to_owned();
        (self.status, if location.is_empty() { self.body } else { location })
    }

    /// A header that the answer must have.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_else(|| panic!("{self:?} has no {name}"))
    }

    /// A header, or an empty text if the answer does not have it.
    pub fn optional_header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// Target of a redirect; empty if the answer is none.
    pub fn location(&self) -> &str {
        self.optional_header("location")
    }

    /// Value of a form's field.
    pub fn hidden(&self, name: &str) -> String {
        let field =
            self.body.split("<input").find(|field| field.contains(&format!("name=\"{name}\""))).expect("the field");
        let (_, value) = field.split_once("value=\"").expect("its value");
        value.split('"').next().expect("a text").to_owned()
    }

    /// All values of a header, separated by commas.
    pub fn all_headers(&self, name: impl AsHeaderName) -> String {
        let values = self.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.collect::<Vec<_>>().join(", ")
    }

    pub fn status_and_body(&self) -> (StatusCode, &str) {
        (self.status, &self.body)
    }
}

/// Checks the status of an answer and returns its body.
#[track_caller]
pub fn expect_answer<T: Display>((status, body): (StatusCode, T), expected: StatusCode) -> T {
    assert_eq!(status, expected, "{body}");
    body
}

/// Checks status and code of a problem and returns it.
#[track_caller]
pub fn expect_problem((status, problem): JsonAnswer, expected: StatusCode, code: &str) -> Value {
    assert_eq!((status, &problem["code"]), (expected, &json!(code)), "{problem}");
    problem
}

/// Checks the status of an answer and the state of its booking, and returns it.
#[track_caller]
pub fn expect_state((status, booking): JsonAnswer, expected: StatusCode, state: &str) -> Value {
    assert_eq!((status, &booking["state"]), (expected, &json!(state)), "{booking}");
    booking
}

/// Checks the status of a page and that it contains these parts, and returns it.
#[track_caller]
pub fn expect_page((status, html): (StatusCode, String), expected: StatusCode, parts: &[&str]) -> String {
    assert_eq!(status, expected, "{html}");
    for part in parts {
        assert!(html.contains(part), "{part}: {html}");
    }
    html
}

pub type LiveSocket = WebSocketStream<MaybeTlsStream<TcpStream>>;

impl Visitor {
    /// A request with the visitor's cookie, if there is one.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        if self.cookie.is_empty() { request } else { request.header("cookie", &self.cookie) }
    }

    /// Sends a request with a fresh idempotency key. The answer must be JSON or empty.
    pub async fn call(&self, method: Method, path: &str, body: Value) -> JsonAnswer {
        self.call_with_key(method, path, body, &platform::ids::new_id().to_string()).await
    }

    /// Sends a request with the given idempotency key.
    pub async fn call_with_key(&self, method: Method, path: &str, body: Value, key: &str) -> JsonAnswer {
        let (status, text) = self.raw(method, path, body, key).await;
        (status, if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("JSON") })
    }

    /// Sends a request; returns the status and the body as text.
    pub async fn raw(&self, method: Method, path: &str, body: Value, key: &str) -> (StatusCode, String) {
        let request = self.request(method, path).header("idempotency-key", key);
        let answer = RawAnswer::of(if body.is_null() { request } else { request.json(&body) }).await;
        (answer.status, answer.body)
    }

    pub async fn page(&self, path: &str) -> (StatusCode, String) {
        self.raw(Method::GET, path, Value::Null, "page").await
    }

    /// Submits a form without a cookie, such as `card=paid` to the gateway's page.
    pub async fn post_form(&self, url: &str, form: &str) -> reqwest::Response {
        let request = self.client.post(url).header("content-type", "application/x-www-form-urlencoded");
        request.body(form.to_owned()).send().await.expect("the form is answered")
    }

    /// The same visitor at another server.
    pub fn moved_to(&self, world: &World, server: usize) -> Self {
        Self { base: world.servers[server].url.clone(), ..self.clone() }
    }

    /// The same visitor at another show.
    pub fn at_show(&self, show: Uuid) -> Self {
        Self { show, ..self.clone() }
    }

    pub async fn get(&self, path: &str) -> JsonAnswer {
        self.call(Method::GET, path, Value::Null).await
    }

    pub async fn hold(&self, seats: &[u32]) -> JsonAnswer {
        self.call(Method::POST, &format!("/api/v1/shows/{}/holds", self.show), json!({ "seats": seats })).await
    }

    /// Holds places in area 0.
    pub async fn hold_places(&self, quantity: u32) -> JsonAnswer {
        let path = format!("/api/v1/shows/{}/holds", self.show);
        self.call(Method::POST, &path, json!({ "area": 0, "quantity": quantity })).await
    }

    pub async fn join_waiting_list(&self, quantity: u32) -> JsonAnswer {
        let path = format!("/api/v1/shows/{}/waiting-list", self.show);
        self.call(Method::POST, &path, json!({ "quantity": quantity, "email": "ann@example.org" })).await
    }

    pub async fn waiting_list_entry(&self) -> JsonAnswer {
        self.get(&format!("/api/v1/shows/{}/waiting-list", self.show)).await
    }

    /// Waits until the visitor's entry on the waiting list has this state, and returns it.
    pub async fn wait_for_entry_state(&self, state: &str) -> Value {
        wait_until(&format!("the waiting-list entry is {state}"), || async {
            self.waiting_list_entry().await.1["state"] == state
        })
        .await;
        self.waiting_list_entry().await.1
    }

    pub async fn release_hold(&self, hold: &Value) -> StatusCode {
        let path = format!("/api/v1/shows/{}/holds/{}", self.show, text(&hold["id"]));
        self.call(Method::DELETE, &path, Value::Null).await.0
    }

    /// Releases the hold that is kept for a second payment attempt after this booking's payment was declined.
    pub async fn release_kept_hold(&self, declined: &Value) {
        let kept = json!({ "id": declined["kept_hold"]["hold"] });
        wait_until("the kept hold is released", || async {
            self.release_hold(&kept).await;
            !self.has_hold().await
        })
        .await;
    }

    /// Free places in area 0.
    pub async fn places_left(&self) -> Value {
        let (_, body) = self.get(&format!("/api/v1/shows/{}/seats", self.show)).await;
        body["areas"][0]["left"].clone()
    }

    pub async fn change(&self, hold: &Value, add: &[u32], remove: &[u32]) -> JsonAnswer {
        let path = format!("/api/v1/shows/{}/holds/{}", self.show, text(&hold["id"]));
        self.call(Method::PATCH, &path, json!({ "add": add, "remove": remove })).await
    }

    pub fn checkout_body(&self, hold: &Value) -> Value {
        let buyer = json!({ "name": "Ann Example", "email": "ann@example.org" });
        json!({ "show": self.show, "hold": hold["id"], "buyer": buyer })
    }

    pub fn purchase_body(&self, hold: &Value, token: Option<&str>) -> Value {
        let mut body = self.checkout_body(hold);
        body["pay"] = json!({ "total_minor": hold["total"]["minor"] });
        if let Some(token) = token {
            body["pay"]["payment_token"] = token.into();
        }
        body
    }

    pub async fn book(&self, hold: &Value) -> JsonAnswer {
        self.call(Method::POST, "/api/v1/bookings", self.checkout_body(hold)).await
    }

    /// Holds and checks out. Returns the hold and the booking.
    pub async fn check_out(&self, seats: &[u32]) -> (Value, Value) {
        let hold = expect_answer(self.hold(seats).await, StatusCode::CREATED);
        let booking = expect_answer(self.book(&hold).await, StatusCode::CREATED);
        assert_eq!(booking["state"], "SEATS_LOCKED", "{booking}");
        (hold, booking)
    }

    pub async fn buy(&self, hold: &Value, token: Option<&str>) -> JsonAnswer {
        self.call(Method::POST, "/api/v1/bookings", self.purchase_body(hold, token)).await
    }

    /// Pays for a hold: confirms its booking if there is one, or checks out and pays in one request.
    pub async fn pay_for(&self, hold: &Value, booking: Option<&Value>, token: &str) -> JsonAnswer {
        match booking {
            Some(booking) => self.pay(booking, Some(token)).await,
            None => self.buy(hold, Some(token)).await,
        }
    }

    pub async fn current_hold(&self) -> Value {
        expect_answer(self.get(&format!("/api/v1/shows/{}/hold", self.show)).await, StatusCode::OK)
    }

    pub async fn has_hold(&self) -> bool {
        let (status, hold) = self.get(&format!("/api/v1/shows/{}/hold", self.show)).await;
        assert!(matches!(status, StatusCode::OK | StatusCode::NO_CONTENT), "{hold}");
        status == StatusCode::OK
    }

    pub async fn buy_seats(&self, seats: &[u32], token: &str) -> Value {
        let hold = expect_answer(self.hold(seats).await, StatusCode::CREATED);
        let booking = expect_answer(self.book(&hold).await, StatusCode::CREATED);
        expect_answer(self.pay(&booking, Some(token)).await, StatusCode::OK)
    }

    pub async fn cancel(&self, booking: &Value, seats: Option<&[u32]>) -> JsonAnswer {
        let path = format!("/api/v1/bookings/{}/cancel", text(&booking["id"]));
        self.call(Method::POST, &path, seats.map_or(Value::Null, |seats| json!({ "seats": seats }))).await
    }

    /// Waits until the booking's money is in this state, and returns the booking.
    pub async fn wait_for_money(&self, booking: &Value, money: &str) -> Value {
        wait_until(&format!("the money is {money}"), || async { self.booking(booking).await["money"] == money }).await;
        self.booking(booking).await
    }

    pub async fn pay(&self, booking: &Value, token: Option<&str>) -> JsonAnswer {
        let path = format!("/api/v1/bookings/{}/confirm", text(&booking["id"]));
        let body = token.map_or_else(|| json!({}), |token| json!({ "payment_token": token }));
        self.call(Method::POST, &path, body).await
    }

    pub async fn booking(&self, booking: &Value) -> Value {
        self.get(&format!("/api/v1/bookings/{}", text(&booking["id"]))).await.1
    }

    fn live_map_url(&self) -> String {
        format!("{}/api/v1/shows/{}/live", self.base.replace("http://", "ws://"), self.show)
    }

    pub async fn open_live_map(&self) -> LiveSocket {
        tokio_tungstenite::connect_async(self.live_map_url()).await.expect("the live map opens").0
    }

    /// Opens the live map with the cookie and one more header, if any.
    pub async fn open_own_live_map(
        &self,
        query: &str,
        header: Option<(&'static str, &str)>,
    ) -> Result<LiveSocket, tungstenite::Error> {
        let mut request = format!("{}{query}", self.live_map_url()).into_client_request()?;
        for (name, value) in header.into_iter().chain([("cookie", self.cookie.as_str())]) {
            request.headers_mut().insert(name, value.parse().expect("a header"));
        }
        tokio_tungstenite::connect_async(request).await.map(|(socket, _)| socket)
    }

    /// State of every seat, one digit each.
    pub async fn seat_states(&self) -> String {
        let (_, body) = self.get(&format!("/api/v1/shows/{}/seats", self.show)).await;
        text(&body["states"]).to_owned()
    }

    pub async fn wait_for_seat(&self, seat: usize, state: char) {
        wait_until(&format!("seat {seat} is {state}"), || async {
            self.seat_states().await.chars().nth(seat) == Some(state)
        })
        .await;
    }

    pub async fn wait_for_booking(&self, booking: &Value, state: &str) -> Value {
        wait_until(&format!("the booking is {state}"), || async { self.booking(booking).await["state"] == state })
            .await;
        self.booking(booking).await
    }
}
