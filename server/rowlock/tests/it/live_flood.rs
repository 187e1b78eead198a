//! One hostile reader of the live map, or one hostile address: other readers are not affected.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use domain::wire::{Ask, Frame};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::world::{Visitor, World, until};

type Socket = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

/// Sections of the large room, and seats of each.
const SECTIONS: u16 = 24;
const SEATS_OF_A_SECTION: u32 = 500;
const SEATS: u32 = SECTIONS as u32 * SEATS_OF_A_SECTION;
/// SUBSCRIBEs of the hostile reader that are written at one time; it writes until the end, as fast as they are read.
const AT_ONCE: usize = 200;
/// A reader changes sections once in so long, milliseconds.
const PAUSE_MS: u128 = 50;
/// Frames of one reader in that time at most: what was added, the overview, the areas, and what a tick brings.
const FRAMES_PER_PAUSE: u32 = 6;
/// Changes of the seat map, one after the other.
const CHANGES: u32 = 20;
/// The other reader has a change within this.
const WITHIN: Duration = Duration::from_millis(200);

/// Opens the live map as a visitor who comes from that address by a proxy of ours.
async fn connect(visitor: &Visitor, from: &str) -> Result<Socket, tungstenite::Error> {
    let url = format!("{}/api/v1/shows/{}/live", visitor.base.replace("http://", "ws://"), visitor.show);
    let mut request = url.into_client_request()?;
    request.headers_mut().insert("cookie", visitor.cookie.parse().expect("a header"));
    request.headers_mut().insert("x-forwarded-for", from.parse().expect("a header"));
    tokio_tungstenite::connect_async(request).await.map(|(socket, _)| socket)
}

/// Makes the room one of 24 sections with 500 seats. Before the show is opened.
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
    enlarged.expect("the room is enlarged");
}

/// Waits for the frame that says this seat changed.
async fn reads_change(socket: &mut Socket, seat: u32) {
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
async fn a_reader_who_floods_the_server_with_subscribes_delays_no_other() {
    let world = World::start(1, &[]).await;
    enlarge_room(&world).await;
    let (eve, bob, ann) = (world.visitor(), world.visitor(), world.visitor());
    let mut watching = connect(&bob, "203.0.113.1").await.expect("the live map opens");
    let (mut says, mut hears) = connect(&eve, "203.0.113.7").await.expect("the live map opens").split();
    // A reader who takes nothing gets nothing: the hostile reader reads all of it.
    let frames = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&frames);
    let reading = tokio::spawn(async move {
        while hears.next().await.is_some_and(|heard| heard.is_ok()) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let began = tokio::time::Instant::now();
    let (has_begun, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let flooding = {
        let (has_begun, is_over) = (Arc::clone(&has_begun), Arc::clone(&is_over));
        // Of each pair the second has sixteen sections that the first has not.
        let asks = [vec![0], (8..SECTIONS).collect::<Vec<u16>>()]
            .map(|sections| Message::binary(Ask::Subscribe { sections }.encode()));
        tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                for ask in asks.iter().cycle().take(AT_ONCE) {
                    // A server that reads no more keeps it waiting here.
                    says.feed(ask.clone()).await.expect("the connection is open");
                }
                says.flush().await.expect("the connection is open");
                has_begun.store(true, Ordering::Relaxed);
            }
        })
    };
    until("the flood has begun", || async { has_begun.load(Ordering::Relaxed) }).await;

    let (mut in_time, mut hold) = (0, Value::Null);
    for seat in 0..CHANGES {
        // One seat after the other, two in each section.
        let seat = seat * SEATS_OF_A_SECTION / 2;
        let changed =
            async { if hold.is_null() { ann.hold(&[seat]).await.1 } else { ann.change(&hold, &[seat], &[]).await.1 } };
        let change = reads_change(&mut watching, seat);
        let (changed, waited) = tokio::join!(changed, async {
            let began = tokio::time::Instant::now();
            change.await;
            began.elapsed()
        });
        assert!(changed["id"].is_string(), "{changed}");
        in_time += u32::from(waited <= WITHIN);
        // Ten seats are the most one may hold.
        hold = if changed["seats"].as_array().is_some_and(|seats| seats.len() < 10) {
            changed
        } else {
            ann.let_go(&changed).await;
            Value::Null
        };
    }
    assert!(!flooding.is_finished(), "the flood is still under way");
    let (frames, pauses) = (frames.load(Ordering::Relaxed), began.elapsed().as_millis() / PAUSE_MS + 1);
    let most = u128::from(FRAMES_PER_PAUSE) * pauses;
    assert!(u128::from(frames) <= most, "{frames} frames in {pauses} pauses: SUBSCRIBEs are answered one by one");
    is_over.store(true, Ordering::Relaxed);
    flooding.abort();
    reading.abort();
    // Other work on this machine may delay one or two; a hub that is kept busy delays all.
    assert!(in_time >= CHANGES * 3 / 4, "{in_time} of {CHANGES} changes came within {WITHIN:?}");
    world.end().await;
}

fn is_too_many(refused: &tungstenite::Error) -> bool {
    matches!(refused, tungstenite::Error::Http(answer)
        if answer.status() == 429 && answer.headers().contains_key("retry-after"))
}

#[tokio::test(flavor = "multi_thread")]
async fn open_live_maps_of_an_address_are_limited_and_others_are_not_affected() {
    let world = World::start(1, &[("SOCKETS_PER_ADDRESS", "5"), ("TRUSTED_PROXIES", "1")]).await;
    let household = |number: u16| format!("2001:db8:1:2::{number:x}");
    let mut open = Vec::new();
    for number in 0..5 {
        open.push(connect(&world.visitor(), &household(number)).await.expect("there is room"));
    }
    let refused = connect(&world.visitor(), &household(9)).await.expect_err("the network has five");
    assert!(is_too_many(&refused), "{refused}");
    assert!(connect(&world.visitor(), "2001:db8:1:3::1").await.is_ok(), "another network");
    // Closed, or only gone: its place is free.
    drop(open.pop());
    until("a place is free", || async { connect(&world.visitor(), &household(9)).await.is_ok() }).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_of_many_addresses_has_as_many_live_maps_as_sixteen_of_them() {
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
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visitor_has_thirty_live_maps_open_wherever_they_come_from() {
    let world = World::start(1, &[("SOCKETS_PER_ADDRESS", "500"), ("TRUSTED_PROXIES", "1")]).await;
    let eve = world.visitor();
    let mut open = Vec::new();
    for number in 0..30 {
        open.push(connect(&eve, &format!("203.0.113.{number}")).await.expect("there is room"));
    }
    let refused = connect(&eve, "203.0.113.99").await.expect_err("the visitor has thirty");
    assert!(is_too_many(&refused), "{refused}");
    assert!(connect(&world.visitor(), "203.0.113.99").await.is_ok(), "another visitor");
    drop(open);
    world.end().await;
}
