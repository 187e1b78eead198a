//! Metrics at `/metrics`; exported traces of a sale, from the request to the transaction; spans and logs without keys.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Router, http};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::prelude::*;
use crate::reconciler::NO_WEBHOOKS;
use crate::redis_process::Redis;
use crate::replicas::Replica;

pub const TOKEN: &str = "a token for the scraper; 32 bytes or more";

const NAMES: [&str; 8] = [
    "rowlock_lock_attempts_total{outcome=\"acquired\"}",
    "rowlock_lock_attempts_total{outcome=\"conflict\"}",
    "rowlock_lock_attempt_duration_seconds_bucket{le=\"0.2\"}",
    "rowlock_confirm_duration_seconds_count",
    "rowlock_idempotency_total{outcome=\"worked\"}",
    "rowlock_oldest_pending_payment_age_seconds",
    "rowlock_outbox_parked",
    "rowlock_http_requests_total{method=\"POST\",route=\"/api/v1/shows/{show}/holds\",status=\"201\"}",
];

/// Attempted calls to Redis.
const CALLS: &str = "rowlock_redis_calls_total";

async fn scrape(url: &str, token: Option<&str>) -> (StatusCode, String) {
    let request = reqwest::Client::builder().no_proxy().build().expect("a client").get(format!("{url}/metrics"));
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    let answer = request.send().await.expect("the server answers");
    (answer.status(), answer.text().await.expect("text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_readable_with_the_token_only() {
    let (world, [ann, bob]) = World::with_visitors(1, &[("METRICS_TOKEN", TOKEN)]).await;
    let (_, hold) = ann.hold(&[7]).await;
    assert_eq!(bob.hold(&[7]).await.0, StatusCode::LOCKED);
    let (_, booking) = ann.book(&hold).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let url = &world.servers[0].url;
    for wrong in [None, Some("another token"), Some("")] {
        let (status, text) = scrape(url, wrong).await;
        assert_eq!((status, text.as_str()), (StatusCode::UNAUTHORIZED, ""), "{wrong:?}");
    }
    let text = expect_page(scrape(url, Some(TOKEN)).await, StatusCode::OK, &NAMES);
    let id = booking["id"].as_str().expect("an id");
    assert!(!text.contains(id), "labels contain no booking id");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_setting_metrics_are_not_found() {
    let world = World::start(1, &[]).await;
    assert_eq!(scrape(&world.servers[0].url, Some("")).await.0, StatusCode::NOT_FOUND);
}

pub async fn value(url: &str, line: &str) -> f64 {
    let text = expect_answer(scrape(url, Some(TOKEN)).await, StatusCode::OK);
    let found = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{line} is missing in:\n{text}")).parse().expect("a number")
}

async fn wait_until_metric_rises(url: &str, line: &str) {
    wait_until(&format!("{line} rises"), || async { value(url, line).await > 0.0 }).await;
}

/// Metrics of sales and stores start at zero and move when their event happens.
#[tokio::test(flavor = "multi_thread")]
async fn every_metric_moves_with_its_event() {
    let redis = Redis::start(&[]).await;
    let url = redis.url();
    let settings = [("METRICS_TOKEN", TOKEN), ("REDIS_URL", url.as_str()), ("LEAVE_GRACE_MS", "50")];
    let mut world = World::start(0, &settings).await;
    world.add_server(&[NO_WEBHOOKS]).await;
    let url = world.servers[0].url.clone();
    let (expired, retries) = ("rowlock_holds_expired_total", "rowlock_serialization_retries_total");
    let (rescued, oldest) = ("rowlock_bookings_rescued_total", "rowlock_oldest_pending_payment_age_seconds");
    let (replays, fast) =
        ("rowlock_idempotent_replay_duration_seconds_count", "rowlock_idempotency_total{outcome=\"fast_road\"}");
    let (unavailable, failed) =
        ("rowlock_redis_errors_total{kind=\"unavailable\"}", "rowlock_lock_attempts_total{outcome=\"failed\"}");
    let without_redis = "rowlock_idempotency_total{outcome=\"without_redis\"}";
    for line in [expired, retries, rescued, oldest, replays, fast, unavailable, failed, without_redis] {
        assert_eq!(value(&url, line).await, 0.0, "{line}");
    }

    // A visitor leaves, and their hold expires. If Redis frees it and its answer is lost, it is not counted, and
    // another visitor leaves.
    wait_until("an expired hold is counted", || async {
        let visitor = world.visitor();
        let (_, left) = visitor.hold(&[1]).await;
        let path = format!("/api/v1/shows/{}/holds/{}/leave", world.show, text(&left["id"]));
        assert_eq!(visitor.call(Method::POST, &path, Value::Null).await.0, StatusCode::NO_CONTENT);
        visitor.wait_for_seat(1, '0').await;
        value(&url, expired).await > 0.0
    })
    .await;
    let ann = world.visitor();

    // A transaction is aborted once, counted with a sequence, which no rollback resets.
    for statement in [
        "CREATE SEQUENCE tries",
        "CREATE FUNCTION give_way() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF nextval('tries') = 1 THEN RAISE EXCEPTION 'a conflict' USING ERRCODE = '40001'; END IF;
             RETURN NEW;
         END $$",
        "CREATE TRIGGER give_way BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION give_way()",
    ] {
        world.run(sqlx::query(statement)).await;
    }
    let (_, booking) = ann.check_out(&[2]).await;
    let path = format!("/api/v1/bookings/{}/confirm", text(&booking["id"]));
    let body = json!({ "payment_token": "tok_pending_paid" });
    let (status, pending) = ann.call_with_key(Method::POST, &path, body.clone(), "once").await;
    assert_eq!((status, &pending["state"]), (StatusCode::OK, &json!("PAYMENT_PENDING")), "{pending}");
    assert_eq!(value(&url, retries).await, 1.0);
    let charges = "rowlock_gateway_calls_total{gateway=\"simulator\",question=\"charge\",outcome=\"answered\"}";
    assert_eq!(value(&url, charges).await, 1.0);
    wait_until_metric_rises(&url, oldest).await;

    // The same request is replayed.
    assert_eq!(ann.call_with_key(Method::POST, &path, body, "once").await, (status, pending));
    assert_eq!((value(&url, replays).await, value(&url, fast).await), (1.0, 1.0));

    // The webhook is lost, so the reconciler queries the gateway. Only a payment that has waited counts as rescued.
    world.execute("UPDATE bookings SET updated_at = now() - interval '1 minute', version = version + 1").await;
    wait_until("the reconciler has queried the gateway", || async {
        let unheard = "UPDATE payments SET updated_at = now() - interval '1 minute'";
        world.execute(unheard).await;
        ann.booking(&booking).await["state"] == "CONFIRMED"
    })
    .await;
    wait_until_metric_rises(&url, rescued).await;
    assert_eq!(value(&url, oldest).await, 0.0, "the booking is paid");

    // Redis stops answering: keys use Postgres alone.
    redis.freeze().await;
    assert_eq!(ann.hold(&[3]).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert!(value(&url, unavailable).await > 0.0 && value(&url, failed).await > 0.0);
    assert!(value(&url, CALLS).await > value(&url, unavailable).await, "answered calls count too");
    assert_eq!(ann.cancel(&booking, None).await.0, StatusCode::OK);
    wait_until_metric_rises(&url, without_redis).await;
    let (_, text) = scrape(&url, Some(TOKEN)).await;
    redis.thaw().await;
    tokio::task::spawn_blocking(move || assert_promtool_accepts(&text)).await.expect("promtool accepts the metrics");
}

/// A gauge of late work is the age of the oldest row in its table. One query reads the ages of all tables.
#[tokio::test(flavor = "multi_thread")]
async fn gauges_of_late_work_have_its_age() {
    let world = World::start(1, &[("METRICS_TOKEN", TOKEN)]).await;
    let url = &world.servers[0].url;
    // No worker takes these rows before tomorrow.
    for late in [
        "INSERT INTO outbox (booking_id, effect, run_after, created_at)
         VALUES (gen_random_uuid(), 'send_ticket', now() + interval '1 day', now() - interval '1 hour')",
        "INSERT INTO ledger_comparisons (gateway, day, planned_at, leased_until)
         VALUES ('simulator', (now() AT TIME ZONE 'utc')::date, now() - interval '2 hours', now() + interval '1 day')",
        "INSERT INTO cdn VALUES (true, now() + interval '1 day')",
        "INSERT INTO cdn_purges (tag, run_after, due_at)
         VALUES ('show', now() + interval '1 day', now() - interval '3 hours')",
    ] {
        world.execute(late).await;
    }
    for (gauge, hours) in [
        ("rowlock_outbox_oldest_age_seconds", 1.0),
        ("rowlock_ledger_late_seconds", 2.0),
        ("rowlock_cdn_purges_late_seconds", 3.0),
    ] {
        let age = value(url, gauge).await / 3_600.0;
        assert!((hours..hours + 0.5).contains(&age), "{gauge}: {age} hours");
    }
    // The end of the test would wait for it.
    world.execute("DELETE FROM outbox").await;
}

/// Checks a scrape with Prometheus' promtool: the one in `PROMTOOL`, or the system's.
fn assert_promtool_accepts(scraped: &str) {
    let named = std::env::var_os("PROMTOOL");
    let child = Command::new(named.clone().unwrap_or_else(|| "promtool".into()))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(cause) if named.is_none() && cause.kind() == std::io::ErrorKind::NotFound => return,
        Err(cause) => panic!("promtool does not start: {cause}"),
    };
    child.stdin.take().expect("a pipe").write_all(scraped.as_bytes()).expect("it reads");
    let ended = child.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()));
}

/// Largest request that the stand-ins read, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
const HOLDING: &str = "0af7651916cd43dd8448eb211c80319c";
const PAYING: &str = "1bf7651916cd43dd8448eb211c80319d";
const OPENING_TICKET: &str = "2cf7651916cd43dd8448eb211c80319e";
const CALLER: &str = "b7ad6b7169203331";

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

/// Serves these routes on a free port. Returns the URL.
pub async fn serve(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

/// Sends a POST within a trace.
async fn post_in(visitor: &Visitor, trace: &str, path: &str, body: Value) -> Value {
    let request = visitor.request(Method::POST, path).header("idempotency-key", new_id().to_string());
    let request = request.header("traceparent", format!("00-{trace}-{CALLER}-01")).json(&body);
    let answer = RawAnswer::of(request).await;
    assert!(answer.status.is_success(), "{answer:?}");
    answer.json()
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

/// The address of a ticket contains the code that opens it.
#[tokio::test(flavor = "multi_thread")]
async fn ticket_code_in_an_address_is_in_no_span_and_no_log_line() {
    let (collector, export_url) = Collector::open().await;
    let (world, ann) = World::with_visitor(1, &[]).await;
    ann.buy_seats(&[7], "tok_paid").await;
    let code: String = world.value(sqlx::query_scalar("SELECT code FROM tickets")).await;
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", export_url.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("NO_PROXY", "127.0.0.1"),
        // Every SQL statement of a request is a log line.
        ("RUST_LOG", "info,sqlx=debug"),
    ];
    let traced = Replica::new(&world, &settings);
    traced.start().await;
    let guest = Visitor { base: traced.url.clone(), ..world.visitor() };
    for (path, status) in [("/tickets", StatusCode::OK), ("/no-route", StatusCode::NOT_FOUND)] {
        let request = guest.request(Method::GET, &format!("{path}/{code}"));
        let request = request.header("traceparent", format!("00-{OPENING_TICKET}-{CALLER}-01"));
        let answer = RawAnswer::of(request).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    wait_until("both requests are exported", || async {
        collector.of(OPENING_TICKET).iter().filter(|span| span.name == "request").count() == 2
    })
    .await;
    traced.stop().await;
    let spans = format!("{:?}", collector.of(OPENING_TICKET));
    for words in [spans, traced.read_log()] {
        assert!(words.contains("/tickets/{code}"), "the route is there: {words}");
        assert!(!words.contains(&code), "the code is not: {words}");
    }
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
