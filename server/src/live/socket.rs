//! One reader of a live map.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use bytes::Bytes;
use domain::wire::{Frame, Mine};
use tokio::time::{Instant, interval_at, timeout};

use super::hub::Hub;
use super::hubs::Reader;
use crate::catalogue::Show;
use crate::seat_locks::with_map;
use crate::{AppState, ids};

/// A ping goes out this often, so that proxies keep the line and dead peers are found.
const PING_EVERY: Duration = Duration::from_secs(25);
/// A peer that says nothing for this long, not even pong, is gone.
const SILENCE_LIMIT: Duration = Duration::from_secs(75);
/// A peer that takes nothing for this long is gone as well.
const WRITE_LIMIT: Duration = Duration::from_secs(60);
/// Readers of a stopping server come back spread over this long, milliseconds.
const DRAIN_SPREAD_MS: u64 = 2_000;

/// Where a reader says it is: epoch and version it has.
pub(super) type Resume = Option<(u64, u64)>;

/// Why a connection ends.
enum End {
    /// The peer is gone; nobody is there to be told.
    Gone,
    /// It broke the rules, or we are stopping.
    Close(u16, &'static str),
}

/// Serves one reader until either side leaves.
pub(super) async fn serve(
    state: AppState,
    show: Arc<Show>,
    owner: String,
    mut socket: WebSocket,
    resume: Resume,
    reader: Reader,
) {
    let end = match talk(&state, &show, &owner, &mut socket, resume, reader).await {
        Ok(never) => match never {},
        Err(end) => end,
    };
    if let End::Close(code, reason) = end {
        let frame = CloseFrame { code, reason: reason.into() };
        let _ = timeout(WRITE_LIMIT, socket.send(Message::Close(Some(frame)))).await;
    }
}

async fn talk(
    state: &AppState,
    show: &Show,
    owner: &str,
    socket: &mut WebSocket,
    resume: Resume,
    reader: Reader,
) -> Result<std::convert::Infallible, End> {
    let Reader { hub, mut ticks } = reader;
    let mut at = catch_up(state, socket, resume, &hub).await?;
    send_mine(state, show, owner, socket).await?;
    let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    let mut last_heard = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = state.stop.cancelled() => {
                let drain = Frame::Drain { retry_ms: ids::jitter(DRAIN_SPREAD_MS) };
                send(socket, Message::Binary(drain.encode().into())).await?;
                return Err(End::Close(close_code::RESTART, "this server is stopping, come back to another"));
            }
            heard = socket.recv() => {
                listen(heard)?;
                last_heard = Instant::now();
            }
            ticked = ticks.changed() => {
                ticked.map_err(|_| End::Close(close_code::RESTART, "the map was closed, come back"))?;
                at = catch_up(state, socket, Some(at), &hub).await?;
            }
            _ = pings.tick() => {
                if last_heard.elapsed() > SILENCE_LIMIT {
                    return Err(End::Close(close_code::POLICY, "no sign of life"));
                }
                send(socket, Message::Ping(Bytes::new())).await?;
            }
        }
    }
}

/// Brings a reader to the present: nothing, one delta, or the snapshot.
async fn catch_up(state: &AppState, socket: &mut WebSocket, at: Resume, hub: &Hub) -> Result<(u64, u64), End> {
    let delta = at.map_or(Err(()), |(epoch, version)| hub.delta(epoch, version));
    match (at, delta) {
        (Some((epoch, version)), Ok(None)) => Ok((epoch, version)),
        (Some((epoch, _)), Ok(Some((to, bytes)))) => {
            send(socket, Message::Binary(bytes)).await?;
            Ok((epoch, to))
        }
        _ => {
            let (epoch, version, bytes) = hub.snapshot(state.locks.now());
            send(socket, Message::Binary(bytes)).await?;
            Ok((epoch, version))
        }
    }
}

async fn send_mine(state: &AppState, show: &Show, owner: &str, socket: &mut WebSocket) -> Result<(), End> {
    // Without the lock store the map still shows what it knew; the hold is asked for over HTTP then.
    let Ok(held) = with_map(state, show, || state.locks.mine(show.id, owner)).await else { return Ok(()) };
    let mine =
        held.map(|held| Mine { hold: held.hold, expires_at: held.expires_at, paying: held.paying, seats: held.seats });
    let frame = Frame::Mine { now: state.locks.now(), mine };
    send(socket, Message::Binary(frame.encode().into())).await
}

/// A reader has nothing to say but pong and goodbye.
fn listen(heard: Option<Result<Message, axum::Error>>) -> Result<(), End> {
    match heard {
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
        Some(Ok(Message::Close(_))) | None => Err(End::Gone),
        Some(Ok(Message::Text(_) | Message::Binary(_))) => {
            Err(End::Close(close_code::UNSUPPORTED, "this connection only speaks, it does not listen"))
        }
        Some(Err(_)) => Err(End::Close(close_code::PROTOCOL, "that was no WebSocket frame we accept")),
    }
}

async fn send(socket: &mut WebSocket, message: Message) -> Result<(), End> {
    match timeout(WRITE_LIMIT, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(End::Gone),
    }
}
