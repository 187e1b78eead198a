//! Following the lock store's announcements: one subscription connection for all hubs.

use std::collections::HashSet;
use std::time::Duration;

use domain::seats::{SeatIndex, SeatState};
use futures::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::hub::{Hub, Step, Taken};
use super::hubs::Order;
use crate::seat_locks::{MapSnapshot, channel_of, show_of_channel, with_map};
use crate::web::Problem;
use crate::{AppState, ids};

/// Longest pause before the subscription is made again; full jitter below it.
const MAX_PAUSE_MS: u64 = 2_000;

/// Runs until the server stops. Whenever the connection was lost, every hub reads a snapshot.
pub async fn follow_changes(state: AppState) {
    let Some(mut orders) = state.hubs.orders_taken.lock().await.take() else { return };
    // Outlives a connection: a hub that is just opening is in no list yet, but somebody asked for it.
    let mut shows = HashSet::new();
    loop {
        let followed = tokio::select! {
            () = state.stop.cancelled() => return,
            followed = follow(&state, &mut orders, &mut shows) => followed,
        };
        if let Err(cause) = followed {
            tracing::warn!(%cause, "lost the announcements of seat changes, subscribing again");
        }
        let pause = Duration::from_millis(ids::jitter(MAX_PAUSE_MS));
        tokio::select! {
            () = state.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn follow(
    state: &AppState,
    orders: &mut mpsc::Receiver<Order>,
    shows: &mut HashSet<Uuid>,
) -> Result<(), redis::RedisError> {
    let client = redis::Client::open(state.config.redis_url.as_str())?;
    let (mut sink, mut stream): (PubSubSink, PubSubStream) = client.get_async_pubsub().await?.split();
    let prefix = state.config.redis_prefix.as_str();
    for show in shows.iter() {
        sink.subscribe(channel_of(prefix, *show)).await?;
        state.watched.add(*show);
        // Read by its own tick, side by side with the others, and again until it succeeds.
        if let Some(hub) = state.hubs.get(*show) {
            hub.mark_stale();
        }
    }
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Follow(show, done)) => {
                    shows.insert(show);
                    sink.subscribe(channel_of(prefix, show)).await?;
                    // Nobody waiting any more is fine: the next reader asks again.
                    let _ = done.send(());
                }
                Some(Order::Forget(show)) => {
                    shows.remove(&show);
                    sink.unsubscribe(channel_of(prefix, show)).await?;
                }
                None => return Ok(()),
            },
            message = stream.next() => match message {
                Some(message) => take(state, prefix, &message).await,
                None => return Ok(()),
            },
        }
    }
}

async fn take(state: &AppState, prefix: &str, message: &redis::Msg) {
    let Some(hub) = show_of_channel(prefix, message.get_channel_name()).and_then(|show| state.hubs.get(show)) else {
        return;
    };
    // Whoever granted it may be gone when it is due; who shows it to people watches it too.
    state.watched.add(hub.show);
    let taken = std::str::from_utf8(message.get_payload_bytes()).ok().and_then(read).map(|step| hub.take(&step));
    match taken {
        Some(Taken::Yes) => {}
        Some(Taken::Gap) | None => resync(state, &hub).await,
    }
}

/// Reads the map of an open show again, building it first if the lock store lost it.
pub async fn refresh(state: &AppState, show: Uuid) {
    if let Some(hub) = state.hubs.get(show) {
        resync(state, &hub).await;
    }
}

async fn resync(state: &AppState, hub: &Hub) {
    match snapshot(state, hub.show).await {
        Ok(snapshot) => hub.resync(&snapshot),
        Err(problem) => {
            hub.mark_stale();
            tracing::warn!(?problem, show = %hub.show, "could not read a snapshot after a gap, trying again");
        }
    }
}

async fn snapshot(state: &AppState, show: Uuid) -> Result<MapSnapshot, Problem> {
    let show = state.catalogue.known_show(show).await?;
    with_map(state, &show, || state.locks.snapshot(show.id)).await
}

/// Reads `epoch;version;seat=state,…`, where `*` instead of changes means: rebuilt.
fn read(text: &str) -> Option<Step> {
    let mut parts = text.splitn(3, ';');
    let (epoch, version) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let changes = match parts.next()? {
        "*" => None,
        list => Some(list.split(',').map(change).collect::<Option<Vec<_>>>()?),
    };
    Some(Step { epoch, version, changes })
}

fn change(text: &str) -> Option<(SeatIndex, SeatState)> {
    let (seat, state) = text.split_once('=')?;
    Some((seat.parse().ok()?, SeatState::from_byte(state.parse().ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_read_as_the_scripts_write_them() {
        let changes = Some(vec![(12, SeatState::Locked), (0, SeatState::Available)]);
        assert_eq!(read("7;3;12=1,0=0"), Some(Step { epoch: 7, version: 3, changes }));
        assert_eq!(read("7;3;*"), Some(Step { epoch: 7, version: 3, changes: None }));
    }

    #[test]
    fn anything_else_is_no_announcement() {
        for text in ["", "7;3", "7;x;*", "7;3;", "7;3;12", "7;3;12=9", "7;3;-1=1"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
