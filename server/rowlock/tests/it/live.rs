//! The live map over a real WebSocket. A hostile reader, or a hostile address, does not affect other readers.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use domain::seats::SeatState;
use domain::wire::{ClientMessage, Frame, SeatChange};
use futures::{SinkExt, StreamExt};
use seats::seat_locks::Keys;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::prelude::*;
use crate::redis_process::Redis;

const SEATS: u32 = 300;

/// Returns the next message that is not a ping.
async fn next(socket: &mut LiveSocket) -> Message {
    loop {
        let message = tokio::time::timeout(TEST_TIMEOUT, socket.next()).await.expect("a message in time");
        match message.expect("the connection is open").expect("a good message") {
            Message::Ping(_) | Message::Pong(_) => {}
            other => return other,
        }
    }
}

/// Returns the next frame with content. Frames that accompany a ping have none.
async fn frame(socket: &mut LiveSocket) -> Frame {
    loop {
        match next(socket).await {
            Message::Binary(bytes) => match Frame::decode(&bytes, SEATS).expect("a frame") {
                Frame::Delta { from, to, changes } if from == to && changes.is_empty() => {}
                other => return other,
            },
            other => panic!("{other:?} is no frame"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_hold_names_how_long_ago_the_seat_was_taken_while_the_map_is_watched() {
    let (_world, [ann, bob]) = World::with_visitors(1, &[]).await;
    let mut socket = bob.open_own_live_map("", None).await.expect("the live map opens");
    assert!(matches!(frame(&mut socket).await, Frame::Snapshot { .. }));
    assert!(matches!(frame(&mut socket).await, Frame::OwnHold { .. }));
    ann.hold(&[46]).await;
    assert!(matches!(frame(&mut socket).await, Frame::Delta { .. }));
    let refusal = expect_answer(bob.hold(&[46, 47]).await, StatusCode::LOCKED);
    let ago = refusal["seats"][0]["taken_ms_ago"].as_u64().expect("the refusal names the time");
    assert!(ago < 10_000, "{ago}");
    // The same when seats are added to a hold.
    let (_, hold) = bob.hold(&[50]).await;
    let refusal = expect_answer(bob.change(&hold, &[46], &[]).await, StatusCode::LOCKED);
    assert!(refusal["seats"][0]["taken_ms_ago"].as_u64().is_some_and(|later| later >= ago), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reader_at_another_server_sees_a_seat_change() {
    let world = World::start(2, &[]).await;
    let (ann, bob) = (world.visitor_at(0), world.visitor_at(1));
    let mut socket = bob.open_own_live_map("", None).await.expect("the live map opens");
    let Frame::Snapshot { epoch, version, map, .. } = frame(&mut socket).await else {
        panic!("the first frame is a snapshot")
    };
    assert!(map.iter().all(|state| *state == SeatState::Available));
    assert!(matches!(frame(&mut socket).await, Frame::OwnHold { mine: None, .. }));

    let (_, hold) = ann.hold(&[46]).await;
    let Frame::Delta { from, to, changes } = frame(&mut socket).await else { panic!("a delta follows") };
    assert_eq!((from, changes.len()), (version, 1));
    assert_eq!((changes[0].seat, changes[0].state), (46, SeatState::Locked));

    // A reader that resumes with its version gets only the later changes.
    drop(socket);
    ann.change(&hold, &[47], &[46]).await;
    let mut socket =
        bob.open_own_live_map(&format!("?epoch={epoch}&version={to}"), None).await.expect("it opens again");
    let mut resumed = frame(&mut socket).await;
    if matches!(resumed, Frame::OwnHold { .. }) {
        // Ann's hold was announced only after Bob had resumed.
        resumed = frame(&mut socket).await;
    }
    let Frame::Delta { from, changes, .. } = resumed else { panic!("{resumed:?} is no delta") };
    assert_eq!((from, changes.len()), (to, 2));
    // Ann's reader also gets her own hold.
    let mut own = ann.open_own_live_map("", None).await.expect("it opens for Ann");
    frame(&mut own).await;
    let Frame::OwnHold { mine: Some(mine), .. } = frame(&mut own).await else { panic!("Ann holds a seat") };
    assert_eq!((mine.hold.to_string().as_str(), mine.seats.as_slice()), (text(&hold["id"]), &[47][..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_version_or_epoch_gets_the_snapshot() {
    let world = World::start(1, &[]).await;
    for query in ["?epoch=1&version=1", "?epoch=99999999999999999&version=99999999999", "?version=3"] {
        let mut socket = world.visitor().open_own_live_map(query, None).await.expect("it opens");
        assert!(matches!(frame(&mut socket).await, Frame::Snapshot { .. }), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_message_closes_its_connection_with_a_reason_and_no_other() {
    let (_world, ann) = World::with_visitor(1, &[]).await;
    let mut quiet = ann.open_own_live_map("", None).await.expect("it opens");
    frame(&mut quiet).await;
    frame(&mut quiet).await;
    let garbage = [Message::binary(vec![0xff; 16]), Message::text("{}"), Message::binary(vec![7; 100_000])];
    for message in garbage {
        let mut socket = ann.open_own_live_map("", None).await.expect("it opens");
        frame(&mut socket).await;
        frame(&mut socket).await;
        socket.send(message).await.expect("it can be sent");
        let Message::Close(Some(close)) = next(&mut socket).await else {
            panic!("the connection is closed with a reason")
        };
        assert!(!close.reason.is_empty());
    }
    ann.hold(&[1]).await;
    assert!(matches!(frame(&mut quiet).await, Frame::Delta { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn cross_site_page_and_unknown_show_are_refused() {
    let (_world, ann) = World::with_visitor(1, &[]).await;
    let refused = ann.open_own_live_map("", Some(("origin", "https://evil.example"))).await.expect_err("another site");
    assert!(
        matches!(&refused, tungstenite::Error::Http(answer) if answer.status() == StatusCode::FORBIDDEN.as_u16()),
        "{refused}"
    );
    assert!(ann.open_own_live_map("", Some(("origin", &ann.base))).await.is_ok(), "our own page");
    let nowhere = Visitor { show: platform::ids::derived_id(&["no show"]), ..ann };
    let refused = nowhere.open_own_live_map("", None).await.expect_err("no such show");
    assert!(
        matches!(&refused, tungstenite::Error::Http(answer) if answer.status() == StatusCode::NOT_FOUND.as_u16()),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_server_sends_its_readers_a_retry_time() {
    let world = World::start(1, &[]).await;
    let mut socket = world.visitor().open_own_live_map("", None).await.expect("it opens");
    frame(&mut socket).await;
    frame(&mut socket).await;
    let (drained, ()) = tokio::join!(async { (frame(&mut socket).await, next(&mut socket).await) }, world.end());
    assert!(matches!(drained.0, Frame::Drain { .. }), "{drained:?}");
    assert!(matches!(drained.1, Message::Close(Some(_))), "{drained:?}");
}

/// Applies frames to the map until this seat has this state. Returns the frames.
async fn follow_until(socket: &mut LiveSocket, map: &mut Vec<SeatState>, seat: usize, state: SeatState) -> Vec<Frame> {
    let mut heard = vec![];
    while map[seat] != state {
        let frame = frame(socket).await;
        match &frame {
            Frame::Snapshot { map: whole, .. } => map.clone_from(whole),
            Frame::Delta { changes, .. } => changes.iter().for_each(|change| map[change.seat as usize] = change.state),
            _ => {}
        }
        heard.push(frame);
    }
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn reader_converges_after_lost_announcements_and_after_a_lost_map() {
    // Its own Redis, because closed connections would affect other tests.
    let redis = Redis::start(&[]).await;
    let world = World::start(2, &[("REDIS_URL", &redis.url())]).await;
    let (ann, bob) = (world.visitor_at(0), world.visitor_at(1));
    let mut socket = bob.open_own_live_map("", None).await.expect("it opens");
    let mut map = vec![SeatState::Available; SEATS as usize];
    ann.hold(&[1]).await;
    follow_until(&mut socket, &mut map, 1, SeatState::Locked).await;

    // This hold's announcement is lost. The reader gets it when the server subscribes again and reads the map.
    world.close_pubsub_connections().await;
    world.visitor_at(0).hold(&[2]).await;
    let heard = follow_until(&mut socket, &mut map, 2, SeatState::Locked).await;
    assert!(heard.iter().all(|frame| !matches!(frame, Frame::Snapshot { .. })), "the same epoch: {heard:?}");

    world.delete_redis_keys().await;
    let heard = follow_until(&mut socket, &mut map, 1, SeatState::Available).await;
    assert!(matches!(heard.last(), Some(Frame::Snapshot { .. })), "another epoch: {heard:?}");
    assert_eq!(map[2], SeatState::Available);
}

#[tokio::test(flavor = "multi_thread")]
async fn reader_of_one_section_gets_only_its_changes_and_switches_sections() {
    let world = World::start(1, &[]).await;
    world.divide_room().await;
    let (ann, bob) = (world.visitor(), world.visitor());
    for query in ["?sections=3", "?sections=x", "?sections=0,1,"] {
        let refused = bob.open_own_live_map(query, None).await.expect_err("the room has no such section");
        assert!(
            matches!(&refused, tungstenite::Error::Http(answer) if answer.status() == StatusCode::BAD_REQUEST.as_u16()),
            "{refused}"
        );
    }
    let mut socket = bob.open_own_live_map("?sections=1", None).await.expect("it opens");
    assert!(matches!(frame(&mut socket).await, Frame::Snapshot { .. }));
    assert!(matches!(frame(&mut socket).await, Frame::OwnHold { .. }));
    assert_eq!(frame(&mut socket).await, Frame::Overview { free: vec![100, 100, 100] });

    let (_, hold) = ann.hold(&[5, 250]).await;
    // In other sections only the version and the count of free seats change.
    assert!(matches!(frame(&mut socket).await, Frame::Delta { changes, .. } if changes.is_empty()));
    assert_eq!(frame(&mut socket).await, Frame::Overview { free: vec![99, 100, 99] });
    ann.change(&hold, &[150], &[5]).await;
    let Frame::Delta { changes, .. } = frame(&mut socket).await else { panic!("a delta of the section") };
    assert_eq!(changes, [SeatChange { seat: 150, state: SeatState::Locked }]);

    socket
        .send(Message::binary(ClientMessage::Subscribe { sections: vec![2] }.encode()))
        .await
        .expect("it can be sent");
    loop {
        // An overview may have been sent before.
        if let Frame::Delta { changes, .. } = frame(&mut socket).await
            && !changes.is_empty()
        {
            assert_eq!(changes.iter().map(|change| change.seat).collect::<Vec<_>>(), (200..300).collect::<Vec<_>>());
            assert!(changes.contains(&SeatChange { seat: 250, state: SeatState::Locked }));
            break;
        }
    }
    socket
        .send(Message::binary(ClientMessage::Subscribe { sections: vec![7] }.encode()))
        .await
        .expect("it can be sent");
    loop {
        if let Message::Close(Some(close)) = next(&mut socket).await {
            assert_eq!(u16::from(close.code), 1008);
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_map_has_the_same_etag_until_it_changes() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let url = format!("{}/api/v1/shows/{}/seats", ann.base, world.show);
    let first = ann.client.get(&url).send().await.expect("an answer");
    let etag = first.headers()["etag"].clone();
    let again = ann.client.get(&url).header("if-none-match", &etag).send().await.expect("an answer");
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    ann.hold(&[2]).await;
    ann.wait_for_seat(2, '1').await;
    let changed = ann.client.get(&url).header("if-none-match", &etag).send().await.expect("an answer");
    assert_eq!(changed.status(), StatusCode::OK);
    let body: Value = changed.json().await.expect("JSON");
    assert_eq!(body["states"].as_str().map(str::len), Some(SEATS as usize), "{}", json!(body));
}

#[tokio::test(flavor = "multi_thread")]
async fn map_of_a_past_show_expires_and_that_of_a_show_on_sale_stays() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let past = insert_show(&world.pg, 300_000, -31 * 24 * 3600).await;
    let mut redis = world.redis().await;
    for (show, stays) in [(past, false), (world.show, true)] {
        expect_answer(ann.get(&format!("/api/v1/shows/{show}/seats")).await, StatusCode::OK);
        let mut lives = Vec::new();
        for key in &Keys::of(world.setting("REDIS_PREFIX"), show).0 {
            let life_ms: i64 = redis::cmd("PTTL").arg(key).query_async(&mut redis).await.expect("Redis answers");
            lives.push(life_ms);
        }
        // -1: the key stays; -2: there is none.
        assert_eq!(lives.contains(&-1), stays, "{lives:?}");
        assert_eq!(lives.iter().any(|life_ms| *life_ms > 0), !stays, "{lives:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn best_seats_are_free_and_the_next_best_follow_when_they_are_taken() {
    let world = World::start(1, &[]).await;
    let (ann, bob) = (world.visitor_at(0), world.visitor_at(0));
    let best = |query: &'static str| {
        let (bob, path) = (&bob, format!("/api/v1/shows/{}/best?{query}", bob.show));
        async move { bob.get(&path).await }
    };
    let (status, first) = best("count=3").await;
    assert_eq!((status, first["suggestions"].as_array().map(Vec::len)), (StatusCode::OK, Some(3)), "{first}");
    let offered = &first["suggestions"][0];
    assert_eq!(offered["together"], "row");
    let seats: Vec<u32> = offered["seats"]
        .as_array()
        .expect("seats")
        .iter()
        .filter_map(|line| line["seat"].as_u64())
        .map(|seat| seat as u32)
        .collect();
    let sum: i64 =
        offered["seats"].as_array().expect("seats").iter().filter_map(|line| line["price"]["minor"].as_i64()).sum();
    assert_eq!((seats.len(), offered["total"]["minor"].as_i64()), (3, Some(sum)));
    assert_eq!(ann.hold(&seats).await.0, StatusCode::CREATED, "offered seats can be held");
    // The map is updated in a moment.
    let mut second = first;
    let others = async {
        while second["suggestions"][0]["seats"][0]["seat"] == seats[0] {
            second = best("count=3&most=1").await.1;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, others).await.expect("other seats are offered");
    assert_eq!(second["suggestions"].as_array().map(Vec::len), Some(1));
    let offered = second["suggestions"][0]["seats"].as_array().expect("seats").clone();
    assert!(offered.iter().all(|line| !seats.contains(&(line["seat"].as_u64().expect("a number") as u32))), "{second}");

    for wrong in ["", "count=0", "count=11", "count=two", "count=2&category=nowhere", "count=2&colour=red"] {
        let answer = bob.get(&format!("/api/v1/shows/{}/best?{wrong}", bob.show)).await;
        assert_eq!(answer.0, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

/// Sections of the large layout, and seats of each.
const SECTIONS: u16 = 24;
const SEATS_OF_A_SECTION: u32 = 500;
const HALL_SEATS: u32 = SECTIONS as u32 * SEATS_OF_A_SECTION;
/// SUBSCRIBEs that the hostile reader writes at a time. It writes until the end, as fast as they are read.
const SUBSCRIBES_PER_WRITE: usize = 200;
/// Minimum pause between two section changes of a reader, in milliseconds.
const MIN_CHANGE_PAUSE_MS: u128 = 50;
/// Maximum of frames to a reader per pause: the added sections, the overview, the areas, and those of a tick.
const FRAMES_PER_PAUSE: u32 = 6;
const CHANGES: u32 = 20;
/// Time limit for a change to reach the other reader.
const CHANGE_TIMEOUT: Duration = Duration::from_millis(200);

/// Opens the live map from this address behind a trusted proxy.
async fn connect(visitor: &Visitor, from: &str) -> Result<LiveSocket, tungstenite::Error> {
    visitor.open_own_live_map("", Some(("x-forwarded-for", from))).await
}

/// Replaces the layout by one of 24 sections with 500 seats. Call it before the show is loaded.
async fn enlarge_room(world: &World) {
    let mut plan: Value =
        world.value(sqlx::query_scalar("SELECT plan FROM layouts WHERE id = $1").bind(world.layout)).await;
    let zones: Vec<Value> = (0..SECTIONS)
        .map(|section| {
            let rows = [json!({ "rows": "A-T", "seats": "1-25" })];
            json!({ "name": format!("Block {section}"), "category": "gold", "at": [i32::from(section) * 1_500, 0], "rows": rows })
        })
        .collect();
    plan["zones"] = zones.into();
    let statement = "UPDATE layouts SET plan = $1, seat_count = $2 WHERE id = $3";
    world.run(sqlx::query(statement).bind(plan).bind(HALL_SEATS.cast_signed()).bind(world.layout)).await;
}

async fn wait_for_change(socket: &mut LiveSocket, seat: u32) {
    loop {
        let message = socket.next().await.expect("the connection is open").expect("a good message");
        let Message::Binary(bytes) = message else { continue };
        if let Frame::Delta { changes, .. } = Frame::decode(&bytes, HALL_SEATS).expect("a frame")
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
    let (world, eve) = World::with_visitor(1, &[("SOCKETS_PER_ADDRESS", "500"), ("TRUSTED_PROXIES", "1")]).await;
    let mut open = Vec::new();
    for number in 0..30 {
        open.push(connect(&eve, &format!("203.0.113.{number}")).await.expect("there is room"));
    }
    let refused = connect(&eve, "203.0.113.99").await.expect_err("the visitor has thirty");
    assert!(is_too_many(&refused), "{refused}");
    assert!(connect(&world.visitor(), "203.0.113.99").await.is_ok(), "another visitor");
    drop(open);
}
