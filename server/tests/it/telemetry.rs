//! What operators see at `/metrics`.

use reqwest::StatusCode;

use crate::world::World;

const TOKEN: &str = "a token for whoever scrapes";

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
