//! Serves one reader, from the first frame to the close frame.
//!
//! Memory between two ticks is small on purpose: the connection, the reader's position and one
//! timer. Futures that run once (first frames, close) are boxed and freed afterwards.
//!
//! A reader changes sections once per pause, to the last sections asked for in it. One that sends more is not read until
//! the pause is over: its messages wait in its own connection and cost other readers nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::time::Timestamp;
use domain::wire::{ClientMessage, Frame, OwnHold};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tungstenite::protocol::frame::coding::CloseCode;

use super::connection::{ConnectionEnd, ConnectionEvent, LiveConnection};
use super::reader::{MapSubscriber, Next, NoSuchSection};
use super::websocket_frames::{self, encode};
use crate::SeatsState;
use crate::seat_locks::with_map;
use catalogue::Show;
use platform::ids;

/// Period of heartbeats. The ping keeps proxies open and finds dead peers. The empty delta lets a page find a dead
/// connection: a page waits for two of them (`app/src/seat_map/live/connection_state.rs`).
const HEARTBEAT_PERIOD: Duration = Duration::from_secs(25);
/// Heartbeats without any message or pong after which a peer counts as gone.
const MAX_SILENT_HEARTBEATS: u8 = 3;
/// Whole heartbeats without progress of a frame after which a peer counts as gone.
const MAX_STUCK_HEARTBEATS: u8 = 2;
/// Timeout for sending the first frame.
const FIRST_FRAME_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout for sending the close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Readers of a stopping server reconnect spread over this long, milliseconds.
const DRAIN_SPREAD_MS: u64 = 1_500;

/// Show and visitor of a socket, for its first frames.
pub(super) struct SocketContext {
    pub(super) show: Arc<Show>,
    pub(super) owner: String,
}

/// The reason for the end of a socket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The connection is lost; no close frame can be sent.
    Disconnected,
    /// The peer sent a close frame.
    ClosedByPeer,
    /// The server stops.
    Stopping,
    /// The peer violated the protocol.
    Close(CloseCode, &'static str),
}

impl From<ConnectionEnd> for End {
    fn from(fault: ConnectionEnd) -> Self {
        match fault {
            ConnectionEnd::Disconnected => Self::Disconnected,
            ConnectionEnd::Closed => Self::ClosedByPeer,
            ConnectionEnd::ProtocolError(code, reason) => Self::Close(code, reason),
        }
    }
}

/// Serves one reader until either side leaves.
pub(super) async fn serve<S>(
    state: SeatsState,
    context: SocketContext,
    mut connection: LiveConnection<S>,
    mut reader: MapSubscriber,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let end = match Box::pin(send_first_frames(&state, context, &mut connection, &mut reader)).await {
        Ok(()) => match run(&mut connection, &mut reader, &state.stop, || state.clock.now()).await {
            Ok(never) => match never {},
            Err(end) => end,
        },
        Err(end) => end,
    };
    drop(reader);
    Box::pin(close(&mut connection, end)).await;
}

/// Sends the map, and the reader's own hold.
async fn send_first_frames<S>(
    state: &SeatsState,
    context: SocketContext,
    connection: &mut LiveConnection<S>,
    reader: &mut MapSubscriber,
) -> Result<(), End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if let Next::Frame(frame) = reader.next(|| state.clock.now()) {
        connection.put(frame);
    }
    let SocketContext { show, owner } = context;
    let asked = with_map(state, &show, || state.locks.hold_of(show.id, &owner));
    // The map is sent while the lock store is asked.
    let mut input = ReaderInput::default();
    let sent = async {
        while !connection.is_free() {
            match next_event(connection, input.is_full()).await? {
                ConnectionEvent::Written => {}
                ConnectionEvent::PingOrPong => input.count(),
                ConnectionEvent::Message(bytes) => input.take(reader, &bytes)?,
            }
        }
        input.end_pause(reader)
    };
    let (held, sent) = tokio::join!(asked, timeout(FIRST_FRAME_TIMEOUT, sent));
    sent.map_err(|_| End::Disconnected)??;
    // Without the store the reader still gets the known map; the page then asks for the hold over HTTP.
    if let Ok(held) = held {
        let mine = held.map(|held| OwnHold {
            hold: held.hold,
            expires_at: held.expires_at,
            paying: held.paying,
            seats: held.selection.seats,
        });
        connection.put(encode(&Frame::OwnHold { now: state.clock.now(), mine }));
    }
    Ok(())
}

/// Sends the reader its changes, one frame at a time, as fast as it takes them.
pub(super) async fn run<S>(
    connection: &mut LiveConnection<S>,
    reader: &mut MapSubscriber,
    stop: &CancellationToken,
    now: impl Fn() -> Timestamp,
) -> Result<std::convert::Infallible, End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // The first heartbeat is jittered, so that readers that connected together spread their heartbeats.
    let mut heartbeat = std::pin::pin!(sleep(Duration::from_millis(ids::jitter(HEARTBEAT_PERIOD.as_millis() as u64))));
    let (mut silent, mut stuck, mut input) = (0, 0, ReaderInput::default());
    loop {
        let is_full = input.is_full();
        if connection.is_free() {
            match reader.next(&now) {
                Next::Frame(frame) => connection.put(frame),
                Next::Nothing => {}
                Next::Stopping => return Err(End::Stopping),
            }
        }
        tokio::select! {
            biased;
            event = next_event(connection, is_full) => match event? {
                ConnectionEvent::Written => {}
                ConnectionEvent::PingOrPong => {
                    silent = 0;
                    input.count();
                }
                ConnectionEvent::Message(bytes) => {
                    silent = 0;
                    input.take(reader, &bytes)?;
                }
            },
            () = input.wait_for_pause_end(), if input.is_paused() => input.end_pause(reader)?,
            ticked = reader.ticks.changed(), if connection.is_free() => {
                ticked.map_err(|_| End::Close(CloseCode::Restart, "the map was closed, come back"))?;
            }
            // Readers in step get the stop from the tick; a reader with a frame in progress waits for no tick.
            () = stop.cancelled(), if !connection.is_free() => return Err(End::Stopping),
            () = &mut heartbeat => {
                heartbeat.as_mut().reset(Instant::now() + HEARTBEAT_PERIOD);
                (silent, stuck) = (silent + 1, if connection.is_free() || connection.take_progress() { 0 } else { stuck + 1 });
                if silent > MAX_SILENT_HEARTBEATS {
                    return Err(End::Close(CloseCode::Policy, "no sign of life"));
                }
                if stuck > MAX_STUCK_HEARTBEATS {
                    return Err(End::Disconnected);
                }
                if connection.is_free() {
                    connection.put(reader.heartbeat());
                }
            }
        }
    }
}

/// The next event of a connection; only the end of a write if the reader's input is full.
async fn next_event<S>(
    connection: &mut LiveConnection<S>,
    is_input_full: bool,
) -> Result<ConnectionEvent, ConnectionEnd>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if is_input_full { connection.written().await } else { connection.event().await }
}

async fn close<S>(connection: &mut LiveConnection<S>, end: End)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let frames = match end {
        End::Disconnected => return,
        End::ClosedByPeer => vec![websocket_frames::close(CloseCode::Normal, "")],
        End::Close(code, reason) => vec![websocket_frames::close(code, reason)],
        End::Stopping => vec![
            encode(&Frame::Drain { retry_ms: ids::jitter(DRAIN_SPREAD_MS) }),
            websocket_frames::close(CloseCode::Restart, "this server is stopping, come back to another"),
        ],
    };
    // A peer that does not take the frames or close in time gets a closed connection.
    let _ = timeout(CLOSE_TIMEOUT, async {
        if connection.finish(&frames).await.is_ok() {
            connection.drain().await;
        }
    })
    .await;
}

/// Minimum time between two changes of sections: the shortest tick.
const PAUSE: Duration = Duration::from_millis(50);
/// Messages of a reader that are read per pause; a page sends one or two.
const MAX_PER_PAUSE: u8 = 32;

/// Messages of a reader since the last pause. Usually there are none, and then there is no timer.
#[derive(Default)]
struct ReaderInput {
    messages: u8,
    /// Sections asked for last and not followed yet.
    wanted: Option<Vec<u16>>,
    /// The timer of the current pause, started by its first message.
    pause: Option<Pin<Box<Sleep>>>,
}

impl ReaderInput {
    /// True if no more messages are read in this pause.
    fn is_full(&self) -> bool {
        self.messages >= MAX_PER_PAUSE
    }

    /// Counts a message, and starts a pause if none is running.
    fn count(&mut self) {
        self.messages = self.messages.saturating_add(1);
        self.pause.get_or_insert_with(|| Box::pin(sleep(PAUSE)));
    }

    /// Reads a message. Its sections are followed at once, or at the end of the running pause.
    fn take(&mut self, reader: &mut MapSubscriber, bytes: &[u8]) -> Result<(), End> {
        let Ok(ClientMessage::Subscribe { sections }) = ClientMessage::decode(bytes) else {
            return Err(End::Close(CloseCode::Unsupported, "nothing we understand; see docs/api.md"));
        };
        let is_first = self.pause.is_none();
        self.count();
        if is_first {
            return follow(reader, &sections);
        }
        self.wanted = Some(sections);
        Ok(())
    }

    fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// Waits until the pause is over; returns at once without one.
    async fn wait_for_pause_end(&mut self) {
        if let Some(pause) = &mut self.pause {
            pause.as_mut().await;
        }
    }

    /// Ends the pause. If sections were asked for, they are followed and start the next pause.
    fn end_pause(&mut self, reader: &mut MapSubscriber) -> Result<(), End> {
        let wanted = std::mem::take(self).wanted;
        let Some(sections) = wanted else { return Ok(()) };
        self.pause = Some(Box::pin(sleep(PAUSE)));
        follow(reader, &sections)
    }
}

fn follow(reader: &mut MapSubscriber, sections: &[u16]) -> Result<(), End> {
    let no_such_section = |NoSuchSection(_)| End::Close(CloseCode::Policy, "the room has no such section");
    reader.follow(sections).map_err(no_such_section)
}
