//! Metrics at `/metrics`.

use std::io::Write;
use std::process::{Command, Stdio};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::reconciler::NO_WEBHOOKS;
use crate::redis_process::Redis;
use crate::world::{World, text, wait_until};

pub const TOKEN: &str = "a token for the scraper; 32 bytes or more";

/// Metrics that operators need.
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
    let world = World::start(1, &[("METRICS_TOKEN", TOKEN)]).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    let (_, hold) = ann.hold(&[7]).await;
    assert_eq!(bob.hold(&[7]).await.0, StatusCode::LOCKED);
    let (_, booking) = ann.book(&hold).await;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    let url = &world.servers[0].url;
    for wrong in [None, Some("another token"), Some("")] {
        let (status, text) = scrape(url, wrong).await;
        assert_eq!((status, text.as_str()), (StatusCode::UNAUTHORIZED, ""), "{wrong:?}");
    }
    let (status, text) = scrape(url, Some(TOKEN)).await;
    assert_eq!(status, StatusCode::OK);
    for name in NAMES {
        assert!(text.contains(name), "{name} is missing in:\n{text}");
    }
    let id = booking["id"].as_str().expect("an id");
    assert!(!text.contains(id), "labels contain no booking id");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_setting_metrics_are_not_found() {
    let world = World::start(1, &[]).await;
    assert_eq!(scrape(&world.servers[0].url, Some("")).await.0, StatusCode::NOT_FOUND);
}

/// Current value of a metric.
pub async fn value(url: &str, line: &str) -> f64 {
    let (status, text) = scrape(url, Some(TOKEN)).await;
    assert_eq!(status, StatusCode::OK);
    let found = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{line} is missing in:\n{text}")).parse().expect("a number")
}

async fn wait_until_metric_rises(url: &str, line: &str) {
    wait_until(&format!("{line} rises"), || async { value(url, line).await > 0.0 }).await;
}

/// Every metric with an alert starts at zero, and moves when its event happens.
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
        sqlx::query(statement).execute(&world.pg).await.expect(statement);
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

    // The webhook is lost, so the reconciler queries the gateway.
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
