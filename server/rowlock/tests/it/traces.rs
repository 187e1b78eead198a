//! Exported traces of a sale, from the request to the transaction.

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

use crate::world::{Visitor, World, text, wait_until};

/// Largest request that the stand-ins read, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// Trace and span ids of a client.
const HOLDING: &str = "0af7651916cd43dd8448eb211c80319c";
const PAYING: &str = "1bf7651916cd43dd8448eb211c80319d";
const CALLER: &str = "b7ad6b7169203331";

/// A collector of spans.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

impl Collector {
    async fn open() -> (Self, String) {
        let collector = Self::default();
        let routes = Router::new().route("/v1/traces", post(Self::receive)).with_state(collector.clone());
        (collector, serve(routes).await)
    }

    async fn receive(State(collector): State<Self>, body: Bytes) -> StatusCode {
        let Ok(export_url) = ExportTraceServiceRequest::decode(body) else { return StatusCode::BAD_REQUEST };
        let spans = export_url.resource_spans.into_iter().flat_map(|of| of.scope_spans).flat_map(|of| of.spans);
        collector.0.lock().expect("no panic").extend(spans);
        StatusCode::OK
    }

    fn of(&self, trace: &str) -> Vec<Span> {
        let spans = self.0.lock().expect("no panic");
        spans.iter().filter(|span| hex::encode(&span.trace_id) == trace).cloned().collect()
    }
}

/// A gateway proxy that records the trace context of charges.
#[derive(Clone)]
struct TracingProxy {
    behind: String,
    charges: Arc<Mutex<Vec<String>>>,
}

impl TracingProxy {
    async fn forward(State(proxy): State<Self>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, MAX_BYTES).await.expect("a body");
        if parts.method == http::Method::POST && parts.uri.path() == "/v1/payments" {
            let trace = parts.headers.get("traceparent").map(|value| value.to_str().expect("text").to_owned());
            proxy.charges.lock().expect("no panic").push(trace.unwrap_or_default());
        }
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut headers = parts.headers;
        headers.remove("host");
        let url = format!("{}{}", proxy.behind, parts.uri);
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

/// Sends a POST within a trace.
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

/// Names of a span and of its exported ancestors.
fn span_path<'a>(spans: &'a [Span], of: &'a Span) -> Vec<&'a str> {
    let above = |span: &Span| spans.iter().find(|other| other.span_id == span.parent_span_id);
    std::iter::successors(Some(of), |span| above(span)).map(|span| span.name.as_str()).collect()
}

fn has_span_path(spans: &[Span], names: &[&str]) -> bool {
    spans.iter().any(|span| span_path(spans, span) == names)
}

#[tokio::test(flavor = "multi_thread")]
async fn sale_is_traced_from_the_request_to_the_transaction() {
    let (collector, export_url) = Collector::open().await;
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", export_url.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    let mut world = World::start(0, &settings).await;
    let proxy = TracingProxy { behind: world.setting("SIMULATOR_URL").to_owned(), charges: Arc::default() };
    let charges = Arc::clone(&proxy.charges);
    let gateway = serve(Router::new().fallback(TracingProxy::forward).with_state(proxy)).await;
    world.add_server(&[("SIMULATOR_URL", &gateway)]).await;
    let ann = world.visitor();
    let path = format!("/api/v1/shows/{}/holds", world.show);
    let hold = post_in(&ann, HOLDING, &path, json!({ "seats": [7] })).await;
    let (_, booking) = ann.book(&hold).await;
    let path = format!("/api/v1/bookings/{}/confirm", text(&booking["id"]));
    let paid = post_in(&ann, PAYING, &path, json!({ "payment_token": "tok_paid" })).await;
    assert_eq!(paid["state"], "CONFIRMED");

    wait_until("the hold is exported", || async {
        has_span_path(&collector.of(HOLDING), &["lock call", "lock", "request"])
    })
    .await;
    wait_until("the payment is exported", || async {
        let spans = collector.of(PAYING);
        has_span_path(&spans, &["gateway", "idempotency", "request"])
            && has_span_path(&spans, &["transaction", "commit", "idempotency", "request"])
    })
    .await;
    let spans = collector.of(PAYING);
    let request = spans.iter().find(|span| span.name == "request").expect("the span is exported");
    assert_eq!(hex::encode(&request.parent_span_id), CALLER, "the client's trace continues");
    let asked = spans.iter().find(|span| span.name == "gateway").expect("the span is exported");
    let passed_on = format!("00-{PAYING}-{}-01", hex::encode(&asked.span_id));
    assert_eq!(*charges.lock().expect("no panic"), [passed_on], "the gateway gets the trace context");
    let words = format!("{spans:?}");
    assert!(words.contains("/api/v1/bookings/{booking}/confirm"), "the route is an attribute: {words}");
    assert!(!words.contains("example.org") && !words.contains("Ann"), "no personal data: {words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_no_trace_context_is_sent() {
    let mut world = World::start(0, &[]).await;
    let proxy = TracingProxy { behind: world.setting("SIMULATOR_URL").to_owned(), charges: Arc::default() };
    let charges = Arc::clone(&proxy.charges);
    let gateway = serve(Router::new().fallback(TracingProxy::forward).with_state(proxy)).await;
    world.add_server(&[("SIMULATOR_URL", &gateway)]).await;
    world.visitor().buy_seats(&[7], "tok_paid").await;
    assert_eq!(*charges.lock().expect("no panic"), [String::new()]);
}
