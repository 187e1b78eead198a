//! Subscription to the lock store's announcements: one subscriber for all hubs.
//!
//! An announcement is `epoch;version;item,item,…`. An item is `seat=state`, or `aN=left` for the places left in area N;
//! `*` instead of items means that the map was rebuilt. Written by `seat_locks/lua`; this is the only reader.

use std::sync::Arc;

use domain::seats::{AreaIndex, SeatIndex, SeatState};
use uuid::Uuid;

use super::hub::Hub;
use super::hubs::HubCommand;
use crate::SeatsState;
use crate::seat_locks::{MapSnapshot, channel_of, show_of_channel, with_map};
use catalogue::Show;
use http::{ApiResult, Code};
use platform::redis_link::SubscriptionEvent;

/// Runs until the server stops. After lost announcements the hub reads a snapshot.
pub async fn follow_changes(state: SeatsState) {
    // Locked, not taken: after a panic this function runs again.
    let mut orders = state.hubs.orders_taken.lock().await;
    // The panic ended all subscriptions. Readers reconnect, which subscribes again.
    state.hubs.close_opened();
    let mut subscriber = state.redis.subscriber();
    let prefix = state.redis_prefix.as_str();
    loop {
        tokio::select! {
            () = state.stop.cancelled() => return,
            order = orders.recv() => match order {
                Some(HubCommand::Follow(show, done)) => subscriber.subscribe(&channel_of(prefix, show), done),
                Some(HubCommand::Forget(show)) => subscriber.unsubscribe(&channel_of(prefix, show)),
                None => return,
            },
            event = subscriber.next_event() => match event {
                SubscriptionEvent::Message { channel, payload } => take(&state, prefix, &channel, &payload),
                SubscriptionEvent::Missed { channel } => missed(&state, prefix, &channel),
            },
        }
    }
}

fn take(state: &SeatsState, prefix: &str, channel: &str, payload: &[u8]) {
    let Some(hub) = show_of_channel(prefix, channel).and_then(|show| state.hubs.get(show)) else { return };
    // The replica that granted a hold may be gone when it expires; each replica that shows the map sweeps it too.
    state.watched.add(hub.show);
    match parse(payload) {
        Some(step) => {
            hub.note_locked(&step, state.clock.now());
            hub.take(step);
        }
        // An announcement in an unknown format: only a snapshot shows the state.
        None => hub.mark_stale(),
    }
}

fn missed(state: &SeatsState, prefix: &str, channel: &str) {
    let Some(show) = show_of_channel(prefix, channel) else { return };
    tracing::debug!(%show, "lost announcements of seat changes, reading a snapshot");
    state.watched.add(show);
    // The hub's own tick reads the snapshot, parallel to other hubs, and retries until it succeeds.
    if let Some(hub) = state.hubs.get(show) {
        hub.mark_stale();
    }
}

/// Reads the map of an open show again; builds it first if the lock store lost it.
pub async fn refresh(state: &SeatsState, show: Uuid) {
    if let Some(hub) = state.hubs.get(show) {
        resync(state, &hub).await;
    }
}

async fn resync(state: &SeatsState, hub: &Hub) {
    let before = hub.received();
    match snapshot(state, hub.show).await {
        Ok((show, snapshot)) if hub.has_layout(show.layout.sections(), snapshot.map.len()) => {
            hub.resync(before, &snapshot)
        }
        // The show was moved to another screen: its readers reconnect to a hub of that room.
        Ok(_) => {
            state.catalogue.evict(hub.show).await;
            state.hubs.close(hub);
        }
        // A rehearsal has ended.
        Err(problem) if problem.code() == Code::NotFound => state.hubs.close(hub),
        Err(problem) => {
            hub.mark_stale();
            tracing::warn!(?problem, show = %hub.show, "read a snapshot of the seat map failed, retrying");
        }
    }
}

async fn snapshot(state: &SeatsState, show: Uuid) -> ApiResult<(Arc<Show>, MapSnapshot)> {
    let show = state.catalogue.find_show_or_rehearsal(show).await?;
    let snapshot = with_map(state, &show, || state.locks.snapshot(show.id)).await?;
    Ok((show, snapshot))
}

/// One announcement: the changes from the previous version to `version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MapChange {
    pub(super) epoch: u64,
    pub(super) version: u64,
    /// `None` after a rebuild of the map: readers need a snapshot.
    pub(super) changes: Option<Changes>,
}

/// Changed seats and areas of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) seats: Vec<(SeatIndex, SeatState)>,
    /// Number of an area and its places left.
    pub(super) areas: Vec<(AreaIndex, u32)>,
}

/// Parses an announcement; `None` if it is malformed.
fn parse(text: &[u8]) -> Option<MapChange> {
    let mut parts = std::str::from_utf8(text).ok()?.splitn(3, ';');
    let (epoch, version) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let changes = match parts.next()? {
        "*" => None,
        list => {
            let mut changes = Changes::default();
            list.split(',').try_for_each(|item| add_item(&mut changes, item))?;
            Some(changes)
        }
    };
    Some(MapChange { epoch, version, changes })
}

fn add_item(changes: &mut Changes, item: &str) -> Option<()> {
    let (what, now) = item.split_once('=')?;
    match what.strip_prefix('a') {
        Some(area) => changes.areas.push((area.parse().ok()?, now.parse().ok()?)),
        None => changes.seats.push((what.parse().ok()?, SeatState::from_byte(now.parse().ok()?)?)),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_in_the_format_of_the_scripts_are_parsed() {
        let seats = vec![(12, SeatState::Locked), (0, SeatState::Available)];
        let step = |changes| Some(MapChange { epoch: 7, version: 3, changes });
        assert_eq!(parse(b"7;3;12=1,0=0"), step(Some(Changes { seats: seats.clone(), areas: vec![] })));
        assert_eq!(parse(b"7;3;12=1,a3=57,0=0,a0=0"), step(Some(Changes { seats, areas: vec![(3, 57), (0, 0)] })));
        assert_eq!(parse(b"7;3;*"), step(None));
    }

    #[test]
    fn malformed_announcements_are_rejected() {
        for text in ["", "7;3", "7;x;*", "7;3;", "7;3;12", "7;3;12=9", "7;3;-1=1", "7;3;a=1", "7;3;a1=-1", "7;3;b1=1"] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse(&[0xff, b';']), None);
    }
}
