//! Overload: page views are shed with a time to retry, and buyers still get their tickets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT_LANGUAGE, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::Value;

use crate::world::{Visitor, World, expect_answer, wait_until};

/// Concurrent page views; the server has connections for sixteen queries.
const CROWD: usize = 120;
/// Pause before a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Timeout of every fifth request.
const SHORT_TIMEOUT: Duration = Duration::from_millis(300);
/// An answer within this time did not wait in the queue, which takes two seconds.
const WITHOUT_QUEUEING: Duration = Duration::from_secs(1);
const TOKEN: &str = "a token for the scraper; 32 bytes or more";

/// Counters of the crowd, and its stop flag.
#[derive(Default)]
struct CrowdState {
    over: AtomicBool,
    refused: AtomicUsize,
    refused_at_once: AtomicUsize,
}

/// Requests the front page in German, or the API route with the same data.
async fn request_page(visitor: &Visitor, is_program: bool) -> Response {
    let path = if is_program { "/api/v1/cities" } else { "/" };
    let request = visitor.client.get(format!("{}{path}", visitor.base)).header(ACCEPT_LANGUAGE, "de");
    request.send().await.expect("the server answers")
}

/// Asserts a 503 in the language or format of the client, with a `Retry-After`.
async fn assert_shed(refusal: Response, is_program: bool) {
    assert_eq!(refusal.status(), StatusCode::SERVICE_UNAVAILABLE);
    let pause = refusal.headers()[RETRY_AFTER].to_str().ok().and_then(|text| text.parse::<u64>().ok());
    assert!(pause.is_some_and(|seconds| (1..=5).contains(&seconds)), "{pause:?}");
    let kind = refusal.headers()[CONTENT_TYPE].to_str().expect("text").to_owned();
    let body = refusal.text().await.expect("a body");
    if is_program {
        assert_eq!(kind, "application/problem+json");
        let problem: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(problem["code"], "overloaded");
    } else {
        assert!(kind.starts_with("text/html"), "{kind}");
        assert!(body.contains("<html lang=\"de\"") && body.contains("Das Saallicht ist kurz an"), "{body}");
    }
}

/// One client of the crowd, until the stop flag is set.
async fn browse_until_stopped(visitor: Visitor, number: usize, seen: Arc<CrowdState>) {
    let (is_program, is_impatient) = (number.is_multiple_of(2), number.is_multiple_of(5));
    let mut again = tokio::time::interval(RETRY_PAUSE);
    while !seen.over.load(Relaxed) {
        again.tick().await;
        let began = Instant::now();
        let patience = if is_impatient { SHORT_TIMEOUT } else { crate::world::TEST_TIMEOUT * 2 };
        let Ok(answer) = tokio::time::timeout(patience, request_page(&visitor, is_program)).await else { continue };
        // Requests that waited in the database until it answered, or until their deadline.
        if matches!(answer.status(), StatusCode::OK | StatusCode::GATEWAY_TIMEOUT) {
            continue;
        }
        assert_shed(answer, is_program).await;
        seen.refused.fetch_add(1, Relaxed);
        if began.elapsed() < WITHOUT_QUEUEING {
            seen.refused_at_once.fetch_add(1, Relaxed);
        }
    }
}

/// Shed requests of a class.
async fn shed(world: &World, class: &str) -> f64 {
    let url = format!("{}/metrics", world.servers[0].url);
    let answer = world.visitor().client.get(url).bearer_auth(TOKEN).send().await.expect("the server answers");
    let line = format!("rowlock_shed_total{{class=\"{class}\"}} ");
    let text = answer.text().await.expect("text");
    let value = text.lines().find_map(|found| found.strip_prefix(&line));
    value.unwrap_or_else(|| panic!("{line} is missing in:\n{text}")).parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn page_views_are_shed_while_buyers_get_tickets() {
    let world = World::start(1, &[("METRICS_TOKEN", TOKEN)]).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    // The server caches the show from now on.
    let (status, hold) = ann.hold(&[7]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    assert_eq!(request_page(&ann, false).await.status(), StatusCode::OK);

    // The front page's query is blocked.
    let mut blocker = world.pg.begin().await.expect("a transaction");
    sqlx::query("LOCK TABLE cities IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *blocker)
        .await
        .expect("the table is locked");
    let seen = Arc::new(CrowdState::default());
    let crowd: Vec<_> = (0..CROWD)
        .map(|number| tokio::spawn(browse_until_stopped(world.visitor(), number, Arc::clone(&seen))))
        .collect();
    wait_until("new requests are shed without waiting", || async { seen.refused_at_once.load(Relaxed) > 0 }).await;

    // Holds and payments succeed while the crowd continues.
    let booking = expect_answer(ann.book(&hold).await, StatusCode::CREATED);
    let (status, paid) = ann.pay(&booking, Some("tok_paid")).await;
    assert_eq!((status, &paid["state"]), (StatusCode::OK, &Value::from("CONFIRMED")), "{paid}");
    assert_eq!(bob.buy_seats(&[8], "tok_paid").await["state"], "CONFIRMED");
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 2);
    for path in [format!("/shows/{}", world.show), "/login".to_owned(), "/healthz".to_owned(), "/readyz".to_owned()] {
        let answer = bob.client.get(format!("{}{path}", bob.base)).send().await.expect("the server answers");
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
    }
    assert!(shed(&world, "looking").await > 0.0);
    assert_eq!((shed(&world, "opening").await, shed(&world, "choosing").await), (0.0, 0.0));

    // The query runs again, while the crowd is still there.
    blocker.rollback().await.expect("the lock is released");
    wait_until("pages are served again", || async { request_page(&ann, false).await.status() == StatusCode::OK }).await;
    seen.over.store(true, Relaxed);
    for one in crowd {
        one.await.expect("every request of the crowd got a valid answer");
    }
    assert!(seen.refused.load(Relaxed) > 0);
    wait_until("no request is shed any more", || async {
        let before = shed(&world, "looking").await;
        for _ in 0..20 {
            request_page(&ann, true).await;
        }
        shed(&world, "looking").await == before
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crowd_served_within_the_queue_time_is_never_shed() {
    let world = World::start(1, &[("METRICS_TOKEN", TOKEN)]).await;
    // Five times the concurrency limit: requests wait in the queue for a moment.
    let crowd = (0..40).map(|number| {
        let visitor = world.visitor();
        async move { request_page(&visitor, number % 2 == 0).await.status() }
    });
    let statuses = futures::future::join_all(crowd).await;
    assert!(statuses.iter().all(|status| *status == StatusCode::OK), "{statuses:?}");
    assert_eq!(shed(&world, "looking").await, 0.0);
}
