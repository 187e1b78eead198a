//! Subscription to the lock store's announcements: one subscriber for all hubs.

use std::sync::Arc;

use uuid::Uuid;

use super::announcement;
use super::hub::Hub;
use super::hubs::HubCommand;
use crate::SeatsState;
use crate::seat_locks::{MapSnapshot, channel_of, show_of_channel, with_map};
use catalogue::Show;
use http::Problem;
use platform::redis_link::SubscriptionEvent;

/// Runs until the server stops. After lost announcements the hub reads a snapshot.
pub async fn follow_changes(state: SeatsState) {
    let Some(mut orders) = state.hubs.orders_taken.lock().await.take() else { return };
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
    match announcement::read(payload) {
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
        Ok((show, snapshot)) if hub.is_of(show.layout.sections(), snapshot.map.len()) => hub.resync(before, &snapshot),
        // The show was moved to another screen: its readers reconnect to a hub of that room.
        Ok(_) => {
            state.catalogue.evict(hub.show).await;
            state.hubs.close(hub);
        }
        Err(problem) => {
            hub.mark_stale();
            tracing::warn!(?problem, show = %hub.show, "read a snapshot of the seat map failed, retrying");
        }
    }
}

async fn snapshot(state: &SeatsState, show: Uuid) -> Result<(Arc<Show>, MapSnapshot), Problem> {
    let show = state.catalogue.find_show(show).await?;
    let snapshot = with_map(state, &show, || state.locks.snapshot(show.id)).await?;
    Ok((show, snapshot))
}
