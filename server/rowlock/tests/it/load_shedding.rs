//! Overload: page views are shed with a time to retry, and buyers still get their tickets. Thousands of checkouts of one
//! hold do not delay or refuse other buyers.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use reqwest::Response;
use reqwest::header::{ACCEPT_LANGUAGE, CONTENT_TYPE, RETRY_AFTER};
use tokio::task::JoinHandle;

use crate::booking_totals::WAITING;
use crate::idempotency::post;
use crate::prelude::*;
use crate::telemetry::{TOKEN, value};

/// Concurrent page views.
const CROWD: usize = 120;
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Timeout of every fifth request.
const SHORT_TIMEOUT: Duration = Duration::from_millis(300);
/// An answer within this time did not wait in the queue, which takes two seconds.
const WITHOUT_QUEUEING: Duration = Duration::from_secs(1);
/// A server with connections for sixteen queries, as by default.
const SETTINGS: [(&str, &str); 2] = [("METRICS_TOKEN", TOKEN), ("DATABASE_CONNECTIONS", "16")];

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
        assert!(body.contains("<html lang=\"de\"") && body.contains("Etwas ist schiefgegangen"), "{body}");
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

async fn shed(world: &World, class: &str) -> f64 {
    value(&world.servers[0].url, &format!("rowlock_shed_total{{class=\"{class}\"}}")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn page_views_are_shed_while_buyers_get_tickets() {
    let (world, [ann, bob]) = World::with_visitors(1, &SETTINGS).await;
    // The server caches the show from now on.
    let hold = expect_answer(ann.hold(&[7]).await, StatusCode::CREATED);
    assert_eq!(request_page(&ann, false).await.status(), StatusCode::OK);

    // The front page's query is blocked.
    let mut blocker = world.pg.begin().await.expect("a transaction");
    let sql = "LOCK TABLE cities IN ACCESS EXCLUSIVE MODE";
    sqlx::query(sql).execute(&mut *blocker).await.expect("the table is locked");
    let seen = Arc::new(CrowdState::default());
    let crowd: Vec<_> = (0..CROWD)
        .map(|number| tokio::spawn(browse_until_stopped(world.visitor(), number, Arc::clone(&seen))))
        .collect();
    wait_until("new requests are shed without waiting", || async { seen.refused_at_once.load(Relaxed) > 0 }).await;

    // Holds and payments succeed while the crowd continues.
    let booking = expect_answer(ann.book(&hold).await, StatusCode::CREATED);
    expect_state(ann.pay(&booking, Some("tok_paid")).await, StatusCode::OK, "CONFIRMED");
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
    let world = World::start(1, &SETTINGS).await;
    // Five times the concurrency limit: requests wait in the queue for a moment.
    let crowd = (0..40).map(|number| {
        let visitor = world.visitor();
        async move { request_page(&visitor, number % 2 == 0).await.status() }
    });
    let statuses = join_all(crowd).await;
    assert!(statuses.iter().all(|status| *status == StatusCode::OK), "{statuses:?}");
    assert_eq!(shed(&world, "looking").await, 0.0);
}

const BOOKINGS: &str = "/api/v1/bookings";
const FLOOD: usize = 2_000;
/// Sale steps that may queue at the server: fewer than the flood.
const QUEUE: usize = 1_000;
const SALE_WITHIN: Duration = Duration::from_secs(2);

fn check_out(visitor: &Visitor, body: &str, key: &str) -> JoinHandle<RawAnswer> {
    let (visitor, body, key) = (visitor.clone(), body.to_owned(), key.to_owned());
    tokio::spawn(async move { post(&visitor, BOOKINGS, &key, &body, &[]).await })
}

async fn complete_sale(visitor: &Visitor, seat: u32, how: &str) -> Value {
    let hold = expect_answer(visitor.hold(&[seat]).await, StatusCode::CREATED);
    let (status, paid) = match how {
        "in one request" => visitor.buy(&hold, Some("tok_paid")).await,
        "in two requests" => {
            let (status, booking) = visitor.book(&hold).await;
            assert_eq!(status, StatusCode::CREATED, "{how}: {booking}");
            visitor.pay(&booking, Some("tok_paid")).await
        }
        // A choice for late payments needs a separate transaction.
        _ => {
            let mut order = visitor.purchase_body(&hold, Some("tok_paid"));
            order["if_late"] = json!("refund");
            visitor.call(Method::POST, BOOKINGS, order).await
        }
    };
    assert!(status.is_success(), "{how}: {status} {paid}");
    paid
}

#[tokio::test(flavor = "multi_thread")]
async fn flood_of_checkouts_of_one_hold_neither_delays_nor_refuses_other_sales() {
    let queue = QUEUE.to_string();
    let (world, ann) = World::with_visitor(1, &[("COMMIT_QUEUE", &queue)]).await;
    let (hold, booking) = ann.check_out(&[0]).await;
    // No checkout of this hold ends before the test releases the lock.
    let keeper = world.lock_booking(text(&booking["id"])).await;
    let body = ann.checkout_body(&hold).to_string();
    let shared = [check_out(&ann, &body, "shared"), check_out(&ann, &body, "shared")];
    world.wait_for_count("the first checkout waits for the row lock", WAITING, 1).await;
    let flood: Vec<_> = (0..FLOOD).map(|number| check_out(&ann, &body, &number.to_string())).collect();
    let answered = || flood.iter().filter(|request| request.is_finished()).count();
    wait_until("the flood has arrived", || async { answered() >= FLOOD - QUEUE }).await;

    let ways = [(5, "in one request"), (6, "in two requests"), (7, "by itself")];
    let sales = ways.map(|(seat, how)| {
        let ben = world.visitor();
        async move { tokio::time::timeout(SALE_WITHIN, complete_sale(&ben, seat, how)).await.map(|paid| (how, paid)) }
    });
    for sale in join_all(sales).await {
        let (how, paid) = sale.unwrap_or_else(|_| panic!("a sale takes longer than {SALE_WITHIN:?}"));
        assert_eq!(paid["state"], "CONFIRMED", "{how}: {paid}");
    }
    assert!(!shared[0].is_finished() && answered() < FLOOD, "the flood is still running");

    keeper.rollback().await.expect("the booking is unlocked");
    let mut revised = 0;
    for request in flood {
        let answer = request.await.expect("the task ends");
        match answer.status {
            StatusCode::CREATED => revised += 1,
            StatusCode::CONFLICT => {
                assert_eq!(answer.json()["code"], "still_running", "{answer:?}");
                assert!(answer.header("retry-after").parse::<u32>().is_ok(), "{answer:?}");
            }
            _ => panic!("{answer:?}"),
        }
    }
    assert!(revised <= 1, "one waited, and the others got a retryable answer");
    let [one, other] = shared;
    let (one, other) = (one.await.expect("the task ends"), other.await.expect("the task ends"));
    assert_eq!(one.status, StatusCode::CREATED, "{one:?}");
    assert_eq!(one.body, other.body, "the same key shares the answer");
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 4);
}

/// Checks out holds that do not exist until a limit refuses. Returns the number of checkouts before, and the refusal.
async fn until_refused(next: impl Fn() -> Visitor, from: &str) -> (usize, RawAnswer) {
    let buyer = json!({ "name": "Ann Example", "email": "ann@example.org" });
    for accepted in 0..100 {
        let visitor = next();
        let body = json!({ "show": visitor.show, "hold": new_id(), "buyer": buyer }).to_string();
        let answer = post(&visitor, BOOKINGS, "once", &body, &[("x-forwarded-for", from)]).await;
        match answer.status {
            StatusCode::GONE => {}
            StatusCode::UNPROCESSABLE_ENTITY => panic!("a refusal keeps no key: {answer:?}"),
            _ => return (accepted, answer),
        }
    }
    panic!("no checkout was refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn checkouts_are_limited_per_visitor_and_per_address_without_affecting_others() {
    for (setting, policy) in [
        ("HOLDS_PER_VISITOR_MIN", "\"checkout-visitor\";q=12;w=60"),
        ("HOLDS_PER_ADDRESS_MIN", "\"checkout-address\";q=12;w=60"),
    ] {
        let world = World::start(1, &[(setting, "12"), ("TRUSTED_PROXIES", "1")]).await;
        let ann = world.visitor();
        let next = || if setting == "HOLDS_PER_VISITOR_MIN" { ann.clone() } else { world.visitor() };
        let (accepted, refusal) = until_refused(next, "2001:db8:1:2::7").await;
        assert!((12..=24).contains(&accepted), "{setting}: {accepted} checkouts were accepted");
        assert_eq!(refusal.status, StatusCode::TOO_MANY_REQUESTS, "{refusal:?}");
        assert_eq!(refusal.json()["code"], "too_many_attempts", "{refusal:?}");
        assert_eq!(refusal.header("ratelimit-policy"), policy);
        assert!(refusal.header("retry-after").parse::<u32>().is_ok_and(|wait| (1..=60).contains(&wait)));
        // Ben's request has no proxy header: it comes from the test's address.
        complete_sale(&world.visitor(), 5, "in two requests").await;
        world.end().await;
    }
}
