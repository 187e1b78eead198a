//! Rolling update of replicas behind the shipped proxy: no request fails, live maps get a retry time and reconnect, and
//! files of both versions are served, whichever replica gets the request.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use domain::wire::Frame;
use futures::StreamExt;
use http::caching::{FOREVER, PRIVATE};
use reqwest::header::CACHE_CONTROL;
use tokio::process::Command;
use tokio_tungstenite::tungstenite::Message;

use super::{RunningProgram, file, is_used, program, proxy, statistic};
use crate::prelude::*;
use crate::replicas::{Replica, free_address};
use crate::static_files::{NEW, OF_A_MODULE, OLD, SiteFolder, content};

/// Visitors who hold and release seats, and who watch the live map.
const BUSY: usize = 6;
const WATCHING: usize = 4;
/// Minimum pause of a visitor: rate limits apply to faster ones.
const PACE: Duration = Duration::from_millis(100);
/// Longest retry time that a live map may get.
const LONGEST_BREAK_MS: u64 = 1_500;

/// Repeats requests until stopped; each must succeed.
async fn keep_holding_and_releasing(visitor: Visitor, seat: u32, stop: Arc<AtomicBool>, done: Arc<AtomicUsize>) {
    let seats = format!("/api/v1/shows/{}/seats", visitor.show);
    let holds = format!("/api/v1/shows/{}/holds", visitor.show);
    let mut pace = tokio::time::interval(PACE);
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        let (status, body) = visitor.get(&seats).await;
        assert_eq!(status, StatusCode::OK, "reading: {body}");
        let (status, hold) = visitor.call(Method::POST, &holds, json!({ "seats": [seat] })).await;
        assert_eq!(status, StatusCode::CREATED, "holding a seat: {hold}");
        let mine = format!("{holds}/{}", text(&hold["id"]));
        let (status, body) = visitor.call(Method::DELETE, &mine, Value::Null).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "releasing it: {body}");
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Watches like the page: waits for the retry time, and reconnects once.
async fn keep_watching(visitor: Visitor, stop: Arc<AtomicBool>, breaks: Arc<AtomicUsize>, watching: Arc<AtomicUsize>) {
    while !stop.load(Ordering::Relaxed) {
        let mut socket = visitor.open_live_map().await;
        watching.fetch_add(1, Ordering::Relaxed);
        let retry_ms = loop {
            let next = socket.next();
            let Ok(next) = tokio::time::timeout(Duration::from_millis(100), next).await else {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                continue;
            };
            match next.expect("a retry frame precedes the close").expect("a good message") {
                Message::Binary(bytes) => {
                    if let Frame::Drain { retry_ms } = Frame::decode(&bytes, 300).expect("a frame") {
                        break retry_ms;
                    }
                }
                Message::Close(_) => panic!("the socket is closed without a retry frame"),
                _ => {}
            }
        };
        watching.fetch_sub(1, Ordering::Relaxed);
        assert!(retry_ms <= LONGEST_BREAK_MS, "{retry_ms} ms");
        tokio::time::sleep(Duration::from_millis(retry_ms)).await;
        breaks.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rolling_update_fails_no_request() {
    let Some(program) = program("HAPROXY", "haproxy") else { return };
    let world = World::start(0, &[]).await;
    let port = free_address().port();
    let public = format!("http://127.0.0.1:{port}");
    let names = ["one", "two"];
    let replicas = names.map(|_| Replica::new(&world, &[("PUBLIC_URL", public.as_str()), ("TRUSTED_PROXIES", "1")]));
    let control = std::env::temp_dir().join(format!("rowlock-proxy-{port}"));
    let text = proxy(port, &control, [&replicas[0].url, &replicas[1].url]);
    join_all(replicas.iter().map(Replica::start)).await;
    let file = file("haproxy.cfg", &text);
    let _proxy = RunningProgram::start(Command::new(program).arg("-db").arg("-f").arg(&file), &file, port).await;
    let both = || async { is_used(&control, names[0]).await && is_used(&control, names[1]).await };
    wait_until("both replicas are used", both).await;

    let (stop, done, breaks, watching) = (Arc::<AtomicBool>::default(), Arc::default(), Arc::default(), Arc::default());
    let visitor = || Visitor {
        client: reqwest::Client::builder().no_proxy().build().expect("a client"),
        base: public.clone(),
        cookie: format!("rowlock_visitor={}", new_id().simple()),
        show: world.show,
    };
    let mut people = Vec::new();
    for seat in 0..BUSY as u32 {
        people.push(tokio::spawn(keep_holding_and_releasing(visitor(), seat, Arc::clone(&stop), Arc::clone(&done))));
    }
    for _ in 0..WATCHING {
        people.push(tokio::spawn(keep_watching(
            visitor(),
            Arc::clone(&stop),
            Arc::clone(&breaks),
            Arc::clone(&watching),
        )));
    }
    let all_watch = || async { watching.load(Ordering::Relaxed) == WATCHING };
    wait_until("every live map is open", all_watch).await;
    let mut sockets = 0;
    for name in names {
        let open = statistic(&control, &format!("live,live-{name}"), "scur").await;
        sockets += open.parse::<usize>().expect("a number of sockets");
    }
    assert_eq!(sockets, WATCHING, "live maps have a backend of their own");
    for replica in &replicas {
        let before = done.load(Ordering::Relaxed);
        replica.stop().await;
        wait_until("requests succeed without the replica", || async { done.load(Ordering::Relaxed) > before + BUSY })
            .await;
        replica.start().await;
        wait_until("both replicas are used again", both).await;
        wait_until("every live map is open again", all_watch).await;
    }
    stop.store(true, Ordering::Relaxed);
    for person in people {
        person.await.expect("no request failed");
    }
    assert!(breaks.load(Ordering::Relaxed) >= WATCHING, "every live map was interrupted");
    for replica in &replicas {
        replica.kill().await;
    }
    let _ = std::fs::remove_file(&control);
    world.end().await;
}

/// Requests per file: without the retry at the other replica, some would fail.
const TIMES: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn files_of_both_versions_are_served_during_a_rolling_update() {
    let Some(program) = program("HAPROXY", "haproxy") else { return };
    let world = World::start(0, &[]).await;
    let port = free_address().port();
    let public = format!("http://127.0.0.1:{port}");
    let sites = [SiteFolder::with_versions(&[OLD]), SiteFolder::with_versions(&[NEW])];
    let replicas = sites.each_ref().map(|site| {
        let settings = [("PUBLIC_URL", public.as_str()), ("TRUSTED_PROXIES", "1"), ("SITE_ROOT", site.path())];
        Replica::new(&world, &settings)
    });
    let control = std::env::temp_dir().join(format!("rowlock-proxy-{port}"));
    let settings = file("haproxy.cfg", &proxy(port, &control, [&replicas[0].url, &replicas[1].url]));
    join_all(replicas.iter().map(Replica::start)).await;
    let _proxy =
        RunningProgram::start(Command::new(program).arg("-db").arg("-f").arg(&settings), &settings, port).await;
    wait_until("both replicas are used", || async { is_used(&control, "one").await && is_used(&control, "two").await })
        .await;

    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let ask = async |version: &str, file: &str| {
        let answer = client.get(format!("{public}/site/{version}/{file}")).send().await.expect("an answer");
        let kept = answer.headers()[CACHE_CONTROL].to_str().expect("text").to_owned();
        (answer.status(), kept, answer.text().await.expect("a body"))
    };
    for _ in 0..TIMES {
        for version in [OLD, NEW] {
            for file in OF_A_MODULE {
                let expected = (StatusCode::OK, FOREVER.to_owned(), content(file, version));
                assert_eq!(ask(version, file).await, expected, "{version}, {file}");
            }
        }
    }
    // A file that no replica has is not retried forever.
    let missing = ask("00000000000000ff", OF_A_MODULE[0]).await;
    assert_eq!(missing, (StatusCode::NOT_FOUND, PRIVATE.to_owned(), String::new()));
    for replica in &replicas {
        replica.kill().await;
    }
    let _ = std::fs::remove_file(&control);
    world.end().await;
}
