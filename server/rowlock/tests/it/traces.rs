//! What a collector of traces is told of one sale, from the click to the transaction.

use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Router, http};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::world::{Visitor, World, text, until};

/// Largest request the stand-ins read, bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// Traces and spans of somebody who calls us.
const HOLDING: &str = "0af7651916cd43dd8448eb211c80319c";
const PAYING: &str = "1bf7651916cd43dd8448eb211c80319d";
const CALLER: &str = "b7ad6b7169203331";

/// Hears spans.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

impl Collector {
    async fn open() -> (Self, String) {
        let collector = Self::default();
        let routes = Router::new().route("/v1/traces", post(Self::hear)).with_state(collector.clone());
        (collector, serve(routes).await)
    }

    async fn hear(State(collector): State<Self>, body: Bytes) -> StatusCode {
        let Ok(told) = ExportTraceServiceRequest::decode(body) else { return StatusCode::BAD_REQUEST };
        let spans = told.resource_spans.into_iter().flat_map(|of| of.scope_spans).flat_map(|of| of.spans);
        collector.0.lock().expect("it is whole").extend(spans);
        StatusCode::OK
    }

    fn of(&self, trace: &str) -> Vec<Span> {
        let spans = self.0.lock().expect("it is whole");
        spans.iter().filter(|span| hex::encode(&span.trace_id) == trace).cloned().collect()
    }
}

/// A gateway's door that notes whose trace a charge belongs to, and lets it through.
#[derive(Clone)]
struct Door {
    behind: String,
    charges: Arc<Mutex<Vec<String>>>,
}

impl Door {
    async fn through(State(door): State<Self>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, MAX_BYTES).await.expect("a body");
        if parts.method == http::Method::POST && parts.uri.path() == "/v1/payments" {
            let trace = parts.headers.get("traceparent").map(|value| value.to_str().expect("text").to_owned());
            door.charges.lock().expect("it is whole").push(trace.unwrap_or_default());
        }
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut headers = parts.headers;
        headers.remove("host");
        let url = format!("{}{}", door.behind, parts.uri);
        let answer = client.request(parts.method, url).headers(headers).body(body).send().await.expect("an answer");
        let status = answer.status();
        (status, Body::from(answer.bytes().await.expect("a body"))).into_response()
    }
}

async fn serve(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

/// Posts as part of somebody's trace.
async fn post_in(visitor: &Visitor, trace: &str, path: &str, body: Value) -> Value {
    let sent = visitor
        .client
        .post(format!("{}{path}", visitor.base))
        .header("cookie", &visitor.cookie)
        .header("idempotency-key", platform::ids::new_id().to_string())
        .header("traceparent", format!("00-{trace}-{CALLER}-01"))
        .json(&body)
        .send()
        .await
        .expect("the server answers");
    assert!(sent.status().is_success(), "{}", sent.status());
    sent.json().await.expect("JSON")
}

/// The names of a span and of all it is part of, up to what was not told.
fn road<'a>(spans: &'a [Span], of: &'a Span) -> Vec<&'a str> {
    let above = |span: &Span| spans.iter().find(|other| other.span_id == span.parent_span_id);
    std::iter::successors(Some(of), |span| above(span)).map(|span| span.name.as_str()).collect()
}

fn has_road(spans: &[Span], names: &[&str]) -> bool {
    spans.iter().any(|span| road(spans, span) == names)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_is_told_from_the_click_to_the_transaction() {
    let (collector, told) = Collector::open().await;
    let settings =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", told.as_str()), ("OTEL_BSP_SCHEDULE_DELAY", "50"), ("NO_PROXY", "127.0.0.1")];
    let mut world = World::start(0, &settings).await;
    let door = Door { behind: world.setting("SIMULATOR_URL").to_owned(), charges: Arc::default() };
    let charges = Arc::clone(&door.charges);
    let gateway = serve(Router::new().fallback(Door::through).with_state(door)).await;
    world.add_server(&[("SIMULATOR_URL", &gateway)]).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let hold = post_in(&ann, HOLDING, &path, json!({ "seats": [7] })).await;
    let (_, booking) = ann.book(&hold).await;
    let path = format!("/api/v1/bookings/{}/confirm", text(&booking["id"]));
    let paid = post_in(&ann, PAYING, &path, json!({ "payment_token": "tok_paid" })).await;
    assert_eq!(paid["state"], "CONFIRMED");

    until("the hold is told", || async { has_road(&collector.of(HOLDING), &["lock call", "lock", "request"]) }).await;
    until("the payment is told", || async {
        let spans = collector.of(PAYING);
        has_road(&spans, &["gateway", "idempotency", "request"])
            && has_road(&spans, &["transaction", "commit", "idempotency", "request"])
    })
    .await;
    let spans = collector.of(PAYING);
    let request = spans.iter().find(|span| span.name == "request").expect("it is told");
    assert_eq!(hex::encode(&request.parent_span_id), CALLER, "the caller's trace goes on");
    let asked = spans.iter().find(|span| span.name == "gateway").expect("it is told");
    let passed_on = format!("00-{PAYING}-{}-01", hex::encode(&asked.span_id));
    assert_eq!(*charges.lock().expect("it is whole"), [passed_on], "the gateway is told whose trace it is");
    let words = format!("{spans:?}");
    assert!(words.contains("/api/v1/bookings/{booking}/confirm"), "the route is told: {words}");
    assert!(!words.contains("example.org") && !words.contains("Ann"), "nobody is named: {words}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_nothing_is_passed_on() {
    let mut world = World::start(0, &[]).await;
    let door = Door { behind: world.setting("SIMULATOR_URL").to_owned(), charges: Arc::default() };
    let charges = Arc::clone(&door.charges);
    let gateway = serve(Router::new().fallback(Door::through).with_state(door)).await;
    world.add_server(&[("SIMULATOR_URL", &gateway)]).await;
    world.visitor().bought(&[7], "tok_paid").await;
    assert_eq!(*charges.lock().expect("it is whole"), [String::new()]);
    world.end().await;
}
