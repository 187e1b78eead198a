//! Replicas are exchanged one by one behind the proxy that is shipped, while people go on: no request of theirs fails,
//! and whoever watches a map is told when to come back, and can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use domain::wire::Frame;
use futures::StreamExt;
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio_tungstenite::tungstenite::Message;

use super::{Running, file, is_used, program, proxy};
use crate::ports;
use crate::replicas::Replica;
use crate::world::{Visitor, World, text, until};

/// People who take seats and let them go, and who watch.
const BUSY: usize = 6;
const WATCHING: usize = 4;
/// How soon they want the next at the earliest: people are no load generator, and limits are for those.
const PACE: Duration = Duration::from_millis(100);
/// Nobody who watches is told to stay away for longer.
const LONGEST_BREAK_MS: u64 = 1_500;

/// Goes on until told to stop; every request must be answered as if nothing happened.
async fn be_busy(visitor: Visitor, seat: u32, stop: Arc<AtomicBool>, done: Arc<AtomicUsize>) {
    let seats = format!("/api/v1/shows/{}/seats", visitor.show);
    let holds = format!("/api/v1/shows/{}/holds", visitor.show);
    let mut pace = tokio::time::interval(PACE);
    while !stop.load(Ordering::Relaxed) {
        pace.tick().await;
        let (status, body) = visitor.get(&seats).await;
        assert_eq!(status, StatusCode::OK, "reading: {body}");
        let (status, hold) = visitor.call(Method::POST, &holds, json!({ "seats": [seat] })).await;
        assert_eq!(status, StatusCode::CREATED, "taking a seat: {hold}");
        let mine = format!("{holds}/{}", text(&hold["id"]));
        let (status, body) = visitor.call(Method::DELETE, &mine, Value::Null).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "letting it go: {body}");
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Watches as the page does: told to come back, it waits as long as it was told, and comes back once.
async fn watch(visitor: Visitor, stop: Arc<AtomicBool>, breaks: Arc<AtomicUsize>, watching: Arc<AtomicUsize>) {
    while !stop.load(Ordering::Relaxed) {
        let mut socket = visitor.watch().await;
        watching.fetch_add(1, Ordering::Relaxed);
        let retry_ms = loop {
            let next = socket.next();
            let Ok(next) = tokio::time::timeout(Duration::from_millis(100), next).await else {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                continue;
            };
            match next.expect("nobody is cut off without a word").expect("a good message") {
                Message::Binary(bytes) => {
                    if let Frame::Drain { retry_ms } = Frame::decode(&bytes, 300).expect("a frame") {
                        break retry_ms;
                    }
                }
                Message::Close(_) => panic!("the socket is closed without a word"),
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
async fn replicas_are_exchanged_while_people_go_on() {
    let Some(program) = program("HAPROXY", "haproxy") else { return };
    let world = World::start(0, &[]).await;
    let port = ports::free().port();
    let public = format!("http://127.0.0.1:{port}");
    let names = ["one", "two"];
    let replicas = names.map(|_| Replica::new(&world, &[("PUBLIC_URL", public.as_str()), ("TRUSTED_PROXIES", "1")]));
    let control = std::env::temp_dir().join(format!("rowlock-proxy-{port}"));
    let text = proxy(port, &control, [&replicas[0].url, &replicas[1].url]);
    join_all(replicas.iter().map(Replica::start)).await;
    let file = file("haproxy.cfg", &text);
    let _proxy = Running::start(Command::new(program).arg("-db").arg("-f").arg(&file), &file, port).await;
    let both = || async { is_used(&control, names[0]).await && is_used(&control, names[1]).await };
    until("both replicas are used", both).await;

    let (stop, done, breaks, watching) = (Arc::<AtomicBool>::default(), Arc::default(), Arc::default(), Arc::default());
    let visitor = || Visitor {
        client: reqwest::Client::builder().no_proxy().build().expect("a client"),
        base: public.clone(),
        cookie: format!("rowlock_visitor={}", platform::ids::new_id().simple()),
        show: world.show,
    };
    let mut people = Vec::new();
    for seat in 0..BUSY as u32 {
        people.push(tokio::spawn(be_busy(visitor(), seat, Arc::clone(&stop), Arc::clone(&done))));
    }
    for _ in 0..WATCHING {
        people.push(tokio::spawn(watch(visitor(), Arc::clone(&stop), Arc::clone(&breaks), Arc::clone(&watching))));
    }
    let all_watch = || async { watching.load(Ordering::Relaxed) == WATCHING };
    until("everyone watches", all_watch).await;
    for replica in &replicas {
        let before = done.load(Ordering::Relaxed);
        replica.stop().await;
        until("people go on without it", || async { done.load(Ordering::Relaxed) > before + BUSY }).await;
        replica.start().await;
        until("both replicas are used again", both).await;
        until("everyone watches again", all_watch).await;
    }
    stop.store(true, Ordering::Relaxed);
    for person in people {
        person.await.expect("nobody was failed");
    }
    assert!(breaks.load(Ordering::Relaxed) >= WATCHING, "everyone watched at one of them");
    for replica in &replicas {
        replica.kill().await;
    }
    let _ = std::fs::remove_file(&control);
    world.end().await;
}
