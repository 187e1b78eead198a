//! What operators see at `/metrics`.

use std::io::Write;
use std::process::{Command, Stdio};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::reconciling::LOST;
use crate::redis_process::Redis;
use crate::world::{World, text, until};

pub const TOKEN: &str = "a token for the scraper; 32 bytes or more";

/// One for each line an operator must have.
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

/// Calls to Redis that were tried.
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
async fn whoever_has_the_token_reads_every_line_and_nobody_else_any() {
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
    assert!(!text.contains(id), "labels name nobody's booking");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_there_is_no_such_page() {
    let world = World::start(1, &[]).await;
    assert_eq!(scrape(&world.servers[0].url, Some("")).await.0, StatusCode::NOT_FOUND);
    world.end().await;
}

/// What a line stands at now.
pub async fn value(url: &str, line: &str) -> f64 {
    let (status, text) = scrape(url, Some(TOKEN)).await;
    assert_eq!(status, StatusCode::OK);
    let found = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{line} is missing in:\n{text}")).parse().expect("a number")
}

async fn rises(url: &str, line: &str) {
    until(&format!("{line} rises"), || async { value(url, line).await > 0.0 }).await;
}

/// Each line an operator is woken by is at zero first, and moves when what it counts is done to the server.
#[tokio::test(flavor = "multi_thread")]
async fn each_line_moves_when_what_it_counts_happens() {
    let redis = Redis::start(&[]).await;
    let url = redis.url();
    let settings = [("METRICS_TOKEN", TOKEN), ("REDIS_URL", url.as_str()), ("LEAVE_GRACE_MS", "50")];
    let mut world = World::start(0, &settings).await;
    world.add_server(&[LOST]).await;
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

    // Somebody leaves, and their hold runs out. Where Redis freed it and its answer was lost, nobody counts it:
    // then somebody else leaves.
    until("a hold that ran out is counted", || async {
        let someone = world.visitor();
        let (_, left) = someone.hold(&[1]).await;
        let path = format!("/api/v1/shows/{}/holds/{}/leave", world.show, text(&left["id"]));
        assert_eq!(someone.call(Method::POST, &path, Value::Null).await.0, StatusCode::NO_CONTENT);
        someone.sees(1, '0').await;
        value(&url, expired).await > 0.0
    })
    .await;
    let ann = world.visitor();

    // A transaction gives way once. A counter is turned back by no rollback.
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
    let (_, hold) = ann.hold(&[2]).await;
    let (_, booking) = ann.book(&hold).await;
    let path = format!("/api/v1/bookings/{}/confirm", text(&booking["id"]));
    let body = json!({ "payment_token": "tok_pending_paid" });
    let (status, pending) = ann.call_with_key(Method::POST, &path, body.clone(), "once").await;
    assert_eq!((status, &pending["state"]), (StatusCode::OK, &json!("PAYMENT_PENDING")), "{pending}");
    assert_eq!(value(&url, retries).await, 1.0);
    let charges = "rowlock_gateway_calls_total{gateway=\"simulator\",question=\"charge\",outcome=\"answered\"}";
    assert_eq!(value(&url, charges).await, 1.0);
    rises(&url, oldest).await;

    // The same request again is answered as before.
    assert_eq!(ann.call_with_key(Method::POST, &path, body, "once").await, (status, pending));
    assert_eq!((value(&url, replays).await, value(&url, fast).await), (1.0, 1.0));

    // The gateway's news is lost; whoever asks is the reconciler.
    until("the reconciler has asked the gateway", || async {
        let unheard = "UPDATE payments SET updated_at = now() - interval '1 minute'";
        sqlx::query(unheard).execute(&world.pg).await.expect("it was not heard of");
        ann.booking(&booking).await["state"] == "CONFIRMED"
    })
    .await;
    rises(&url, rescued).await;
    assert_eq!(value(&url, oldest).await, 0.0, "it is paid");

    // Redis stops answering: keys go by Postgres alone.
    redis.freeze().await;
    assert_eq!(ann.hold(&[3]).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert!(value(&url, unavailable).await > 0.0 && value(&url, failed).await > 0.0);
    assert!(value(&url, CALLS).await > value(&url, unavailable).await, "those that were answered are calls as well");
    assert_eq!(ann.cancel(&booking, None).await.0, StatusCode::OK);
    rises(&url, without_redis).await;
    let (_, text) = scrape(&url, Some(TOKEN)).await;
    redis.thaw().await;
    tokio::task::spawn_blocking(move || taken_by_prometheus(&text)).await.expect("Prometheus takes it");
    world.end().await;
}

/// Prometheus' own tool finds nothing to say about a scrape: what `PROMTOOL` names, or the one of the system.
fn taken_by_prometheus(scraped: &str) {
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
