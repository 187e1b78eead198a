//! A hostile reader of the live map, or a hostile address, does not affect other readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use domain::wire::{ClientMessage, Frame};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{self, Message};

use crate::world::{LiveSocket, Visitor, World, wait_until};

/// Sections of the large layout, and seats of each.
const SECTIONS: u16 = 24;
const SEATS_OF_A_SECTION: u32 = 500;
const SEATS: u32 = SECTIONS as u32 * SEATS_OF_A_SECTION;
/// SUBSCRIBEs that the hostile reader writes at a time. It writes until the end, as fast as they are read.
const SUBSCRIBES_PER_WRITE: usize = 200;
/// Minimum pause between two section changes of a reader, in milliseconds.
const MIN_CHANGE_PAUSE_MS: u128 = 50;
/// Maximum of frames to a reader per pause: the added sections, the overview, the areas, and those of a tick.
const FRAMES_PER_PAUSE: u32 = 6;
/// Changes of the seat map, one after the other.
const CHANGES: u32 = 20;
/// Time limit for a change to reach the other reader.
const CHANGE_TIMEOUT: Duration = Duration::from_millis(200);

/// Opens the live map from this address behind a trusted proxy.
async fn connect(visitor: &Visitor, from: &str) -> Result<LiveSocket, tungstenite::Error> {
    visitor.open_own_live_map("", Some(("x-forwarded-for", from))).await
}

/// Replaces the layout by one of 24 sections with 500 seats. Call it before the show is loaded.
async fn enlarge_room(world: &World) {
    let mut plan: Value = sqlx::query_scalar("SELECT plan FROM layouts WHERE id = $1")
        .bind(world.layout)
        .fetch_one(&world.pg)
        .await
        .expect("a room");
    let zones: Vec<Value> = (0..SECTIONS)
        .map(|section| {
            let rows = [json!({ "rows": "A-T", "seats": "1-25" })];
            json!({ "name": format!("Block {section}"), "category": "gold", "at": [i32::from(section) * 1_500, 0], "rows": rows })
        })
        .collect();
    plan["zones"] = zones.into();
    let statement = "UPDATE layouts SET plan = $1, seat_count = $2 WHERE id = $3";
    let enlarged =
        sqlx::query(statement).bind(plan).bind(SEATS.cast_signed()).bind(world.layout).execute(&world.pg).await;
    enlarged.expect("the layout is replaced");
}

/// Waits for the frame with a change of this seat.
async fn wait_for_change(socket: &mut LiveSocket, seat: u32) {
    loop {
        let message = socket.next().await.expect("the connection is open").expect("a good message");
        let Message::Binary(bytes) = message else { continue };
        if let Frame::Delta { changes, .. } = Frame::decode(&bytes, SEATS).expect("a frame")
            && changes.iter().any(|change| change.seat == seat)
        {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn subscribe_flood_of_one_reader_delays_no_other_reader() {
    let world = World::start(1, &[]).await;
    enlarge_room(&world).await;
    let (eve, bob, ann) = (world.visitor(), world.visitor(), world.visitor());
    let mut watching = connect(&bob, "203.0.113.1").await.expect("the live map opens");
    let (mut sink, mut stream) = connect(&eve, "203.0.113.7").await.expect("the live map opens").split();
    // A reader that reads nothing gets nothing, so the hostile reader reads everything.
    let frames = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&frames);
    let reading = tokio::spawn(async move {
        while stream.next().await.is_some_and(|heard| heard.is_ok()) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let began = tokio::time::Instant::now();
    let (has_begun, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let flooding = {
        let (has_begun, is_over) = (Arc::clone(&has_begun), Arc::clone(&is_over));
        // The second of each pair has sixteen sections that the first has not.
        let asks = [vec![0], (8..SECTIONS).collect::<Vec<u16>>()]
            .map(|sections| Message::binary(ClientMessage::Subscribe { sections }.encode()));
        tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                for ask in asks.iter().cycle().take(SUBSCRIBES_PER_WRITE) {
                    // Blocks here when the server stops reading.
                    sink.feed(ask.clone()).await.expect("the connection is open");
                }
                sink.flush().await.expect("the connection is open");
                has_begun.store(true, Ordering::Relaxed);
            }
        })
    };
    wait_until("the flood has begun", || async { has_begun.load(Ordering::Relaxed) }).await;

    let (mut in_time, mut hold) = (0, Value::Null);
    for seat in 0..CHANGES {
        // One seat after the other, two in each section.
        let seat = seat * SEATS_OF_A_SECTION / 2;
        let changed =
            async { if hold.is_null() { ann.hold(&[seat]).await.1 } else { ann.change(&hold, &[seat], &[]).await.1 } };
        let change = wait_for_change(&mut watching, seat);
        let (changed, waited) = tokio::join!(changed, async {
            let began = tokio::time::Instant::now();
            change.await;
            began.elapsed()
        });
        assert!(changed["id"].is_string(), "{changed}");
        in_time += u32::from(waited <= CHANGE_TIMEOUT);
        // A hold has at most ten seats.
        hold = if changed["seats"].as_array().is_some_and(|seats| seats.len() < 10) {
            changed
        } else {
            ann.release_hold(&changed).await;
            Value::Null
        };
    }
    assert!(!flooding.is_finished(), "the flood is still running");
    let (frames, pauses) = (frames.load(Ordering::Relaxed), began.elapsed().as_millis() / MIN_CHANGE_PAUSE_MS + 1);
    let most = u128::from(FRAMES_PER_PAUSE) * pauses;
    assert!(u128::from(frames) <= most, "{frames} frames in {pauses} pauses: SUBSCRIBEs are answered one by one");
    is_over.store(true, Ordering::Relaxed);
    flooding.abort();
    reading.abort();
    // A busy machine may delay one or two changes; a blocked hub delays all.
    assert!(in_time >= CHANGES * 3 / 4, "{in_time} of {CHANGES} changes came within {CHANGE_TIMEOUT:?}");
}

fn is_too_many(refused: &tungstenite::Error) -> bool {
    matches!(refused, tungstenite::Error::Http(answer)
        if answer.status() == 429 && answer.headers().contains_key("retry-after"))
}

#[tokio::test(flavor = "multi_thread")]
async fn live_maps_of_an_address_are_limited_and_others_are_not_affected() {
    let world = World::start(1, &[("SOCKETS_PER_ADDRESS", "5"), ("TRUSTED_PROXIES", "1")]).await;
    let household = |number: u16| format!("2001:db8:1:2::{number:x}");
    let mut open = Vec::new();
    for number in 0..5 {
        open.push(connect(&world.visitor(), &household(number)).await.expect("there is room"));
    }
    let refused = connect(&world.visitor(), &household(9)).await.expect_err("the network has five");
    assert!(is_too_many(&refused), "{refused}");
    assert!(connect(&world.visitor(), "2001:db8:1:3::1").await.is_ok(), "another network");
    // A closed or broken connection frees its slot.
    drop(open.pop());
    wait_until("a slot is free", || async { connect(&world.visitor(), &household(9)).await.is_ok() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn network_of_many_addresses_has_the_live_maps_of_sixteen_addresses() {
    let world = World::start(1, &[("SOCKETS_PER_ADDRESS", "1"), ("TRUSTED_PROXIES", "1")]).await;
    let mut open = Vec::new();
    for household in 0..16 {
        let from = format!("2001:db8:1:{household:x}::1");
        open.push(connect(&world.visitor(), &from).await.expect("there is room"));
    }
    let refused = connect(&world.visitor(), "2001:db8:1:ff::1").await.expect_err("the network has sixteen");
    assert!(is_too_many(&refused), "{refused}");
    assert!(connect(&world.visitor(), "2001:db8:2:ff::1").await.is_ok(), "another network");
    drop(open);
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_has_at_most_thirty_live_maps_from_any_address() {
    let (world, eve) = World::with_visitor(&[("SOCKETS_PER_ADDRESS", "500"), ("TRUSTED_PROXIES", "1")]).await;
    let mut open = Vec::new();
    for number in 0..30 {
        open.push(connect(&eve, &format!("203.0.113.{number}")).await.expect("there is room"));
    }
    let refused = connect(&eve, "203.0.113.99").await.expect_err("the visitor has thirty");
    assert!(is_too_many(&refused), "{refused}");
    assert!(connect(&world.visitor(), "203.0.113.99").await.is_ok(), "another visitor");
    drop(open);
}
