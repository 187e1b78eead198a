//! Tests of hub, readers and sockets together, without a store.

use std::sync::Arc;

use bytes::Bytes;
use domain::best_available::{SeatRequest, Suggestion};
use domain::seats::{SeatIndex, SeatState};
use domain::time::Timestamp;
use domain::wire::{ClientMessage, Frame, SeatChange};
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::connection::LiveConnection;
use super::feed::{Changes, MapChange};
use super::hub::Hub;
use super::map::{LiveMap, MapVersion};
use super::reader::{MapSubscriber, Next, NoSuchSection};
use super::socket::run;
use crate::seat_locks::MapSnapshot;

const ROOM: u32 = 40;
const NOW: Timestamp = Timestamp(1_000);

fn snapshot(epoch: u64, version: u64, booked: &[usize]) -> MapSnapshot {
    let mut map = vec![0_u8; ROOM as usize];
    booked.iter().for_each(|seat| map[*seat] = SeatState::Booked as u8);
    MapSnapshot { epoch, version, map: map.into(), areas: vec![] }
}

/// A hub of four sections of ten seats, at version 10 of epoch 1.
fn hub() -> Arc<Hub> {
    let hub = Hub::new(Uuid::nil(), [0..10, 10..20, 20..30, 30..40].into());
    hub.resync(MapVersion::default(), &snapshot(1, 10, &[]));
    hub.publish_tick(true);
    Arc::new(hub)
}

fn lock(hub: &Hub, version: u64, seats: &[SeatIndex]) {
    let seats = seats.iter().map(|seat| (*seat, SeatState::Locked)).collect();
    hub.take(MapChange { epoch: 1, version, changes: Some(Changes { seats, areas: vec![] }) });
}

fn locked(seats: &[SeatIndex]) -> Vec<SeatChange> {
    seats.iter().map(|seat| SeatChange { seat: *seat, state: SeatState::Locked }).collect()
}

/// Decodes the frame behind a WebSocket header of two bytes, or four.
fn unpack(bytes: &[u8]) -> Frame {
    let start = if bytes[1] == 126 { 4 } else { 2 };
    Frame::decode(&bytes[start..], ROOM).expect("a frame of ours")
}

fn bytes(reader: &mut MapSubscriber) -> Bytes {
    match reader.next(|| NOW) {
        Next::Frame(bytes) => bytes,
        other => panic!("{other:?} is no frame"),
    }
}

fn next(reader: &mut MapSubscriber) -> Frame {
    unpack(&bytes(reader))
}

fn has_everything(reader: &mut MapSubscriber) -> bool {
    reader.next(|| NOW) == Next::Nothing
}

/// A reader that has the present map.
fn reader(hub: &Arc<Hub>) -> MapSubscriber {
    let mut reader = MapSubscriber::new(Arc::clone(hub));
    assert!(matches!(next(&mut reader), Frame::Snapshot { .. }));
    assert!(has_everything(&mut reader));
    reader
}

fn delta(from: u64, to: u64, seats: &[SeatIndex]) -> Frame {
    Frame::Delta { from, to, changes: locked(seats) }
}

#[test]
fn readers_in_step_share_one_frame_a_tick() {
    let hub = hub();
    let (mut ann, mut bob) = (reader(&hub), reader(&hub));
    lock(&hub, 11, &[3]);
    lock(&hub, 12, &[5]);
    assert!(has_everything(&mut ann), "nothing is published between two ticks");
    hub.publish_tick(false);
    let (frame_ann, frame_bob) = (bytes(&mut ann), bytes(&mut bob));
    assert_eq!(unpack(&frame_ann), delta(10, 12, &[3, 5]));
    assert_eq!(frame_ann.as_ptr(), frame_bob.as_ptr(), "the same bytes, not equal ones");
}

#[test]
fn seats_seem_taken_from_the_tick_of_their_lock_until_that_of_their_release() {
    let hub = hub();
    assert!(hub.taken_among(&[3, 4]).is_empty());
    lock(&hub, 11, &[3]);
    hub.publish_tick(false);
    assert!(!hub.taken_among(&[4, 3]).is_empty() && hub.taken_among(&[4]).is_empty());
    assert!(hub.taken_among(&[ROOM]).is_empty(), "no such seat");
    let seats = vec![(3, SeatState::Available)];
    hub.take(MapChange { epoch: 1, version: 12, changes: Some(Changes { seats, areas: vec![] }) });
    hub.publish_tick(false);
    assert!(hub.taken_among(&[3]).is_empty());
    assert!(
        Hub::new(Uuid::nil(), std::iter::once(0..ROOM).collect()).taken_among(&[3]).is_empty(),
        "a hub without a map"
    );
}

#[test]
fn json_includes_changes_before_the_tick_and_is_serialised_once_a_version() {
    let hub = hub();
    let mut reader = reader(&hub);
    lock(&hub, 11, &[3]);
    let write = |map: &LiveMap| Bytes::from(map.seats().iter().map(|seat| *seat as u8).collect::<Vec<_>>());
    let (at, states) = hub.json(write).expect("the hub has a map");
    assert_eq!((at.version, states[3]), (11, SeatState::Locked as u8));
    assert_eq!(hub.json(|_| panic!("written twice")).map(|(at, _)| at), Some(at));
    assert!(has_everything(&mut reader), "a socket waits for the tick");
    lock(&hub, 12, &[4]);
    hub.publish_tick(false);
    assert_eq!(next(&mut reader), delta(10, 12, &[3, 4]));
}

#[test]
fn suggestions_are_kept_until_the_next_version_and_for_their_layout_only() {
    let (hub, request) = (hub(), SeatRequest { count: 2, category: None });
    let (key, none): (_, Arc<[Suggestion]>) = ((Uuid::nil(), request), Arc::from(Vec::new()));
    let (at, _) = hub.states().expect("the hub has a map");
    hub.keep_suggestions(at, key, &none);
    assert_eq!(hub.suggestions(key), Some((at, Arc::clone(&none))));
    assert_eq!(hub.suggestions((Uuid::from_u128(1), request)), None);
    lock(&hub, 11, &[3]);
    assert_eq!(hub.suggestions(key), None, "a change counts before the tick");
    hub.keep_suggestions(at, key, &none);
    assert_eq!(hub.suggestions(key), None, "the search was of an earlier version");
}

#[test]
fn a_reader_that_missed_ticks_gets_one_merged_delta_and_is_in_step_again() {
    let hub = hub();
    let mut slow = reader(&hub);
    for version in 11..31 {
        lock(&hub, version, &[version as u32 % ROOM]);
        hub.publish_tick(false);
    }
    let Frame::Delta { from: 10, to: 30, changes } = next(&mut slow) else { panic!("one delta of everything") };
    assert_eq!(changes.len(), 20);
    assert!(has_everything(&mut slow));
    lock(&hub, 31, &[1]);
    hub.publish_tick(false);
    assert_eq!(next(&mut slow), delta(30, 31, &[1]));
}

#[test]
fn a_resumed_reader_gets_a_delta_and_one_with_an_unknown_version_gets_a_snapshot() {
    let hub = hub();
    lock(&hub, 11, &[3]);
    hub.publish_tick(false);
    let resumed = |epoch, version| {
        let mut reader = MapSubscriber::new(Arc::clone(&hub));
        reader.resume(MapVersion { epoch, version });
        next(&mut reader)
    };
    assert_eq!(resumed(1, 10), delta(10, 11, &[3]));
    for (epoch, version) in [(2, 10), (0, 11), (1, 9), (1, 12)] {
        assert!(matches!(resumed(epoch, version), Frame::Snapshot { .. }), "{epoch} {version}");
    }
}

#[test]
fn a_gap_is_filled_by_a_snapshot_that_reaches_readers_as_a_delta() {
    let hub = hub();
    let mut reader = reader(&hub);
    lock(&hub, 12, &[1]);
    assert!(hub.is_stale());
    hub.resync(hub.received(), &snapshot(1, 11, &[6]));
    assert!(!hub.is_stale());
    hub.publish_tick(false);
    let Frame::Delta { from: 10, to: 12, changes } = next(&mut reader) else { panic!("a delta") };
    assert_eq!(changes, [locked(&[1])[0], SeatChange { seat: 6, state: SeatState::Booked }]);
}

#[test]
fn a_new_epoch_and_a_store_that_fell_back_reach_readers_as_a_snapshot() {
    for (epoch, version) in [(2, 1), (1, 4)] {
        let hub = hub();
        let mut reader = reader(&hub);
        hub.resync(hub.received(), &snapshot(epoch, version, &[7]));
        hub.publish_tick(false);
        let Frame::Snapshot { epoch: e, version: v, map, .. } = next(&mut reader) else { panic!("a snapshot") };
        assert_eq!((e, v, map[7]), (epoch, version, SeatState::Booked));
        assert!(has_everything(&mut reader));
    }
}

#[test]
fn a_snapshot_older_than_the_received_announcements_changes_nothing() {
    let hub = hub();
    let mut reader = reader(&hub);
    let before = hub.received();
    lock(&hub, 11, &[3]);
    hub.resync(before, &snapshot(1, 10, &[]));
    hub.publish_tick(false);
    assert_eq!(next(&mut reader), delta(10, 11, &[3]));
}

#[test]
fn the_shorter_of_delta_and_snapshot_is_sent() {
    let seats = 20_000;
    let hub = Hub::new(Uuid::nil(), std::iter::once(0..seats).collect());
    let map = vec![0_u8; seats as usize].into();
    hub.resync(MapVersion::default(), &MapSnapshot { epoch: 1, version: 10, map, areas: vec![] });
    hub.publish_tick(true);
    let hub = Arc::new(hub);
    let mut reader = MapSubscriber::new(Arc::clone(&hub));
    bytes(&mut reader);
    lock(&hub, 11, &(0..seats).collect::<Vec<_>>());
    hub.publish_tick(false);
    let sent = bytes(&mut reader);
    assert!(sent.len() < 40, "a room that is locked as a whole is a dozen bytes, not {}", sent.len());
}

#[test]
fn a_reader_of_some_sections_gets_their_changes_and_an_overview_of_the_others() {
    let hub = hub();
    let mut some = MapSubscriber::new(Arc::clone(&hub));
    some.follow(&[1, 3]).expect("the sections are there");
    assert!(matches!(next(&mut some), Frame::Snapshot { .. }));
    assert_eq!(next(&mut some), Frame::Overview { free: vec![10, 10, 10, 10] });
    lock(&hub, 11, &[3, 12, 35]);
    lock(&hub, 12, &[4]);
    hub.publish_tick(false);
    assert_eq!(next(&mut some), delta(10, 12, &[12, 35]));
    assert!(has_everything(&mut some), "the overview waits for its period");
    hub.publish_tick(true);
    assert_eq!(next(&mut some), Frame::Overview { free: vec![8, 9, 10, 9] });
    lock(&hub, 13, &[5]);
    hub.publish_tick(false);
    assert!(!some.ticks.has_changed().expect("the hub is there"), "changes of other sections wake no reader");
    hub.publish_tick(true);
    assert_eq!(next(&mut some), delta(12, 13, &[]));
    assert_eq!(next(&mut some), Frame::Overview { free: vec![7, 9, 10, 9] });
    hub.publish_tick(true);
    assert!(!some.ticks.has_changed().expect("the hub is there"), "an unchanged overview wakes no reader");
}

#[test]
fn a_change_of_sections_sends_all_seats_of_the_added_ones_without_a_snapshot() {
    let hub = hub();
    let mut some = MapSubscriber::new(Arc::clone(&hub));
    some.follow(&[1]).expect("the section is there");
    assert!(matches!(next(&mut some), Frame::Snapshot { .. }));
    assert!(matches!(next(&mut some), Frame::Overview { .. }));
    lock(&hub, 11, &[12, 35]);
    hub.publish_tick(false);
    some.follow(&[1, 3]).expect("the sections are there");
    let Frame::Delta { from: 10, to: 11, changes } = next(&mut some) else { panic!("a delta") };
    let seats: Vec<_> = changes.iter().map(|change| change.seat).collect();
    assert_eq!(seats, [12].into_iter().chain(30..40).collect::<Vec<_>>());
    assert!(changes.contains(&locked(&[35])[0]));
    some.follow(&[]).expect("the whole room is there");
    assert!(matches!(next(&mut some), Frame::Snapshot { .. }));
    assert_eq!(some.follow(&[1, 4]), Err(NoSuchSection(4)));
}

#[test]
fn readers_of_equal_sections_share_bytes_and_section_sets_beyond_the_limit_get_the_room() {
    let sections = 80_u32;
    let hub = Hub::new(Uuid::nil(), (0..sections).map(|section| section..section + 1).collect());
    hub.resync(
        MapVersion::default(),
        &MapSnapshot { epoch: 1, version: 10, map: vec![0_u8; sections as usize].into(), areas: vec![] },
    );
    hub.publish_tick(true);
    let hub = Arc::new(hub);
    let follow = |section: u16| {
        let mut reader = MapSubscriber::new(Arc::clone(&hub));
        reader.follow(&[section]).expect("the section is there");
        while reader.next(|| NOW) != Next::Nothing {}
        reader
    };
    let mut readers: Vec<MapSubscriber> = (0..sections as u16).map(follow).collect();
    let mut again = follow(0);
    lock(&hub, 11, &(0..sections).collect::<Vec<_>>());
    hub.publish_tick(false);
    let seats = |bytes: &Bytes| match Frame::decode(&bytes[if bytes[1] == 126 { 4 } else { 2 }..], sections) {
        Ok(Frame::Delta { changes, .. }) => changes.len(),
        other => panic!("{other:?} is no delta"),
    };
    let frames: Vec<Bytes> = readers.iter_mut().map(bytes).collect();
    assert_eq!(frames[0].as_ptr(), bytes(&mut again).as_ptr());
    assert_eq!((seats(&frames[0]), seats(&frames[79])), (1, 80));
}

#[test]
fn places_left_are_sent_first_and_after_each_change() {
    let hub = hub();
    let mut early = reader(&hub);
    let places = |version, left| {
        let changes = Some(Changes { seats: vec![], areas: vec![(3, left)] });
        hub.take(MapChange { epoch: 1, version, changes });
        hub.publish_tick(false);
    };
    places(11, 57);
    assert_eq!(next(&mut early), delta(10, 11, &[]));
    assert_eq!(next(&mut early), Frame::Areas { left: vec![(3, 57)] });
    let mut late = MapSubscriber::new(Arc::clone(&hub));
    assert!(matches!(next(&mut late), Frame::Snapshot { .. }));
    assert_eq!(next(&mut late), Frame::Areas { left: vec![(3, 57)] });
    lock(&hub, 12, &[1]);
    hub.publish_tick(false);
    assert_eq!(next(&mut late), delta(11, 12, &[1]));
    assert!(has_everything(&mut late));
}

#[test]
fn a_heartbeat_contains_an_empty_delta_at_the_version_of_the_reader() {
    let hub = hub();
    let without_map = MapSubscriber::new(Arc::clone(&hub));
    assert_eq!(without_map.heartbeat()[..], [0x89, 0], "only the ping without a version");
    let reader = reader(&hub);
    lock(&hub, 11, &[3]);
    hub.publish_tick(false);
    // A tick that was published meanwhile is sent later, from the same version.
    let heartbeat = reader.heartbeat();
    assert_eq!(heartbeat[..2], [0x89, 0], "a ping");
    assert_eq!(unpack(&heartbeat[2..]), delta(10, 10, &[]));
}

/// Reads the next frame as a client.
async fn read(peer: &mut DuplexStream) -> Frame {
    let mut header = [0; 2];
    peer.read_exact(&mut header).await.expect("a header");
    assert!(header[0] == 0x82 && header[1] < 126, "a short binary frame");
    let mut payload = vec![0; header[1].into()];
    peer.read_exact(&mut payload).await.expect("a payload");
    Frame::decode(&payload, ROOM).expect("a frame of ours")
}

#[tokio::test]
async fn a_reader_that_blocks_for_a_thousand_ticks_converges_in_one_frame() {
    let hub = hub();
    // A connection whose buffer holds not even the first frame.
    let (ours, mut peer) = duplex(4);
    let mut asleep = MapSubscriber::new(Arc::clone(&hub));
    let talking = tokio::spawn(async move {
        let mut connection = LiveConnection::new(ours, &[]);
        run(&mut connection, &mut asleep, &CancellationToken::new(), || NOW).await.map(|_| ())
    });
    for version in 11..1_011 {
        lock(&hub, version, &[version as u32 % ROOM]);
        hub.publish_tick(false);
        tokio::task::yield_now().await;
    }
    let Frame::Snapshot { version, .. } = read(&mut peer).await else { panic!("the frame it fell asleep over") };
    assert!(version < 1_010);
    let reached = match read(&mut peer).await {
        Frame::Delta { to, .. } => to,
        Frame::Snapshot { version, .. } => version,
        other => panic!("{other:?} is no map"),
    };
    assert_eq!(reached, 1_010);
    drop(peer);
    assert!(talking.await.expect("no panic").is_err());
}

#[tokio::test]
async fn a_stopping_server_does_not_wait_for_a_blocked_reader() {
    let hub = hub();
    let (ours, _peer) = duplex(4);
    let stop = CancellationToken::new();
    stop.cancel();
    let mut stuck = MapSubscriber::new(Arc::clone(&hub));
    let ended = run(&mut LiveConnection::new(ours, &[]), &mut stuck, &stop, || NOW).await.map(|_| ());
    assert_eq!(ended, Err(super::socket::End::Stopping));
    hub.stop();
    assert_eq!(MapSubscriber::new(hub).next(|| NOW), Next::Stopping);
}

#[tokio::test]
async fn a_reader_changes_sections_over_the_connection() {
    use tokio::io::AsyncWriteExt;
    let hub = hub();
    let (ours, mut peer) = duplex(4_096);
    let mut reader = MapSubscriber::new(Arc::clone(&hub));
    let talking = tokio::spawn(async move {
        let mut connection = LiveConnection::new(ours, &[]);
        run(&mut connection, &mut reader, &CancellationToken::new(), || NOW).await.map(|_| ())
    });
    assert!(matches!(read(&mut peer).await, Frame::Snapshot { .. }));
    let ask = ClientMessage::Subscribe { sections: vec![2] }.encode();
    // A mask of zeros leaves the bytes as they are.
    peer.write_all(&[&[0x82, 0x80 | ask.len() as u8, 0, 0, 0, 0][..], &ask].concat()).await.expect("there is room");
    assert_eq!(read(&mut peer).await, Frame::Overview { free: vec![10; 4] });
    lock(&hub, 11, &[1, 22]);
    hub.publish_tick(false);
    assert_eq!(read(&mut peer).await, delta(10, 11, &[22]));
    drop(peer);
    assert!(talking.await.expect("no panic").is_err());
}

/// A message of a client, masked with zeros.
fn subscribe_message(sections: &[u16]) -> Vec<u8> {
    let ask = ClientMessage::Subscribe { sections: sections.to_vec() }.encode();
    [&[0x82, 0x80 | ask.len() as u8, 0, 0, 0, 0][..], &ask].concat()
}

#[tokio::test]
async fn the_last_sections_asked_for_in_a_pause_win_and_a_flood_waits_in_its_own_connection() {
    use tokio::io::AsyncWriteExt;
    let hub = hub();
    let (ours, mut peer) = duplex(1 << 20);
    let mut reader = MapSubscriber::new(Arc::clone(&hub));
    let talking = tokio::spawn(async move {
        let mut connection = LiveConnection::new(ours, &[]);
        run(&mut connection, &mut reader, &CancellationToken::new(), || NOW).await.map(|_| ())
    });
    assert!(matches!(read(&mut peer).await, Frame::Snapshot { .. }));
    // More messages than one pause reads: the rest waits for the next pause.
    let flood: Vec<u8> = (0..20)
        .flat_map(|_| [subscribe_message(&[0]), subscribe_message(&[1])])
        .flatten()
        .chain(subscribe_message(&[0, 3]))
        .collect();
    peer.write_all(&flood).await.expect("there is room");
    let mut seats = Vec::new();
    // After each change of sections a delta contains the added seats.
    while !seats.contains(&30) {
        match read(&mut peer).await {
            Frame::Delta { changes, .. } => seats.extend(changes.iter().map(|change| change.seat)),
            Frame::Overview { .. } => {}
            other => panic!("{other:?} is no answer"),
        }
    }
    // The first change at once, then one per pause: forty-one messages cause at most three changes.
    assert!(seats.len() <= 3 * 20, "{seats:?}");
    drop(peer);
    assert!(talking.await.expect("no panic").is_err());
}
