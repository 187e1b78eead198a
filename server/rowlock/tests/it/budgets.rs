//! When what people look at cannot be read in time, they are told to come back, and those who pay get their tickets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT_LANGUAGE, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::Value;

use crate::world::{Visitor, World, until};

/// People who look around at a time; the server has connections for sixteen questions.
const CROWD: usize = 120;
/// How soon they try again.
const AGAIN: Duration = Duration::from_millis(50);
/// Every fifth does not wait longer than this before pressing reload.
const IMPATIENCE: Duration = Duration::from_millis(300);
/// An answer this soon comes from nobody who waited for a place: that takes two seconds.
const AT_ONCE: Duration = Duration::from_secs(1);
const TOKEN: &str = "a token for the scraper; 32 bytes or more";

/// What the crowd has seen, and whether it is told to go home.
#[derive(Default)]
struct Seen {
    over: AtomicBool,
    refused: AtomicUsize,
    refused_at_once: AtomicUsize,
}

/// The front page, for somebody who reads German, or what a program reads there.
async fn look(visitor: &Visitor, is_program: bool) -> Response {
    let path = if is_program { "/api/v1/cities" } else { "/" };
    let request = visitor.client.get(format!("{}{path}", visitor.base)).header(ACCEPT_LANGUAGE, "de");
    request.send().await.expect("the server answers")
}

/// Whoever is refused is told so in a way they understand, and when to come back.
async fn is_kind(refusal: Response, is_program: bool) {
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

/// One of the crowd, until it is told to go home.
async fn stroll(visitor: Visitor, number: usize, seen: Arc<Seen>) {
    let (is_program, is_impatient) = (number.is_multiple_of(2), number.is_multiple_of(5));
    let mut again = tokio::time::interval(AGAIN);
    while !seen.over.load(Relaxed) {
        again.tick().await;
        let began = Instant::now();
        let patience = if is_impatient { IMPATIENCE } else { crate::world::PATIENCE * 2 };
        let Ok(answer) = tokio::time::timeout(patience, look(&visitor, is_program)).await else { continue };
        // Those who hung in the database when it went on, or for as long as any request may take.
        if matches!(answer.status(), StatusCode::OK | StatusCode::GATEWAY_TIMEOUT) {
            continue;
        }
        is_kind(answer, is_program).await;
        seen.refused.fetch_add(1, Relaxed);
        if began.elapsed() < AT_ONCE {
            seen.refused_at_once.fetch_add(1, Relaxed);
        }
    }
}

/// How many of a class were refused.
async fn shed(world: &World, class: &str) -> f64 {
    let url = format!("{}/metrics", world.servers[0].url);
    let answer = world.visitor().client.get(url).bearer_auth(TOKEN).send().await.expect("the server answers");
    let line = format!("rowlock_shed_total{{class=\"{class}\"}} ");
    let text = answer.text().await.expect("text");
    let value = text.lines().find_map(|found| found.strip_prefix(&line));
    value.unwrap_or_else(|| panic!("{line} is missing in:\n{text}")).parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_looks_is_told_to_come_back_while_who_pays_gets_a_ticket() {
    let world = World::start(1, &[("METRICS_TOKEN", TOKEN)]).await;
    let (ann, bob) = (world.visitor(), world.visitor());
    // From now on the server knows the show.
    let (status, hold) = ann.hold(&[7]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    assert_eq!(look(&ann, false).await.status(), StatusCode::OK);

    // What the front page reads cannot be read for a while.
    let mut held_up = world.pg.begin().await.expect("a transaction");
    sqlx::query("LOCK TABLE cities IN ACCESS EXCLUSIVE MODE").execute(&mut *held_up).await.expect("it is locked");
    let seen = Arc::new(Seen::default());
    let crowd: Vec<_> =
        (0..CROWD).map(|number| tokio::spawn(stroll(world.visitor(), number, Arc::clone(&seen)))).collect();
    until("newcomers are refused at once", || async { seen.refused_at_once.load(Relaxed) > 0 }).await;

    // Who has seats pays, and who wants some gets them and pays, while the crowd goes on.
    let (status, booking) = ann.book(&hold).await;
    assert_eq!(status, StatusCode::CREATED, "{booking}");
    let (status, paid) = ann.pay(&booking, Some("tok_paid")).await;
    assert_eq!((status, &paid["state"]), (StatusCode::OK, &Value::from("CONFIRMED")), "{paid}");
    assert_eq!(bob.bought(&[8], "tok_paid").await["state"], "CONFIRMED");
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 2);
    for path in [format!("/shows/{}", world.show), "/login".to_owned(), "/healthz".to_owned(), "/readyz".to_owned()] {
        let answer = bob.client.get(format!("{}{path}", bob.base)).send().await.expect("the server answers");
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
    }
    assert!(shed(&world, "looking").await > 0.0);
    assert_eq!((shed(&world, "opening").await, shed(&world, "choosing").await), (0.0, 0.0));

    // It can be read again, while the crowd is still there.
    held_up.rollback().await.expect("it goes on");
    until("pages come back", || async { look(&ann, false).await.status() == StatusCode::OK }).await;
    seen.over.store(true, Relaxed);
    for one in crowd {
        one.await.expect("everybody in the crowd was answered kindly");
    }
    assert!(seen.refused.load(Relaxed) > 0);
    until("nobody is refused any more", || async {
        let before = shed(&world, "looking").await;
        for _ in 0..20 {
            look(&ann, true).await;
        }
        shed(&world, "looking").await == before
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_is_served_in_time_is_never_refused() {
    let world = World::start(1, &[("METRICS_TOKEN", TOKEN)]).await;
    // Five times as many as may be at work at once: they wait for each other, a moment.
    let crowd = (0..40).map(|number| {
        let visitor = world.visitor();
        async move { look(&visitor, number % 2 == 0).await.status() }
    });
    let told = futures::future::join_all(crowd).await;
    assert!(told.iter().all(|status| *status == StatusCode::OK), "{told:?}");
    assert_eq!(shed(&world, "looking").await, 0.0);
    world.end().await;
}
