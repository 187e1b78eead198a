//! The conversation with one reader, from the first frame to goodbye.
//!
//! What stays in memory between two ticks is small on purpose: the line, the reader's position and one
//! timer. Everything that happens once (the greeting, the farewell) is boxed and gone afterwards.

use std::sync::Arc;
use std::time::Duration;

use domain::time::Timestamp;
use domain::wire::{Frame, Mine};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tungstenite::protocol::frame::coding::CloseCode;

use super::connection::{Event, Fault, Line};
use super::reader::{Next, Reader};
use super::reader_input::ReaderInput;
use super::websocket_frames::{self, packed};
use crate::SeatsState;
use crate::seat_locks::with_map;
use catalogue::Show;
use platform::ids;

/// A ping goes out this often, so that proxies keep the line and dead peers are found, and with it a frame that says nothing
/// new, so that pages find a dead line: they wait for two of them (`app/src/seat_map/live/connection.rs`).
const BEAT: Duration = Duration::from_secs(25);
/// A peer that says nothing for so many beats, not even pong, is gone.
const MAX_SILENT_BEATS: u8 = 3;
/// A peer that takes nothing of a frame for so many whole beats is gone as well.
const MAX_STUCK_BEATS: u8 = 2;
/// Taking the first frame takes this long at most.
const GREETING: Duration = Duration::from_secs(60);
/// Saying goodbye takes this long at most.
const FAREWELL: Duration = Duration::from_secs(5);
/// Readers of a stopping server come back spread over this long, milliseconds.
const DRAIN_SPREAD_MS: u64 = 1_500;

/// Who is reading what, for the greeting.
pub(super) struct Greeting {
    pub(super) show: Arc<Show>,
    pub(super) owner: String,
}

/// Why a conversation ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer is gone; nobody is there to be told.
    Gone,
    /// The peer said goodbye.
    Bye,
    /// We are stopping.
    Leave,
    /// The rules were broken.
    Close(CloseCode, &'static str),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Gone => Self::Gone,
            Fault::Bye => Self::Bye,
            Fault::Broken(code, reason) => Self::Close(code, reason),
        }
    }
}

/// Serves one reader until either side leaves.
pub(super) async fn serve<S>(state: SeatsState, greeting: Greeting, mut line: Line<S>, mut reader: Reader)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let end = match Box::pin(greet(&state, greeting, &mut line, &mut reader)).await {
        Ok(()) => match converse(&mut line, &mut reader, &state.stop, || state.clock.now()).await {
            Ok(never) => match never {},
            Err(end) => end,
        },
        Err(end) => end,
    };
    drop(reader);
    Box::pin(say_goodbye(&mut line, end)).await;
}

/// The map, and the reader's own hold.
async fn greet<S>(state: &SeatsState, greeting: Greeting, line: &mut Line<S>, reader: &mut Reader) -> Result<(), End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if let Next::Frame(frame) = reader.next(|| state.clock.now()) {
        line.put(frame);
    }
    let Greeting { show, owner } = greeting;
    let asked = with_map(state, &show, || state.locks.mine(show.id, &owner));
    // The map goes out while the store is asked.
    let mut input = ReaderInput::default();
    let told = async {
        while !line.is_free() {
            match next_event(line, input.is_full()).await? {
                Event::Written => {}
                Event::Alive => input.count(),
                Event::Said(bytes) => input.take(reader, &bytes)?,
            }
        }
        input.end_pause(reader)
    };
    let (held, told) = tokio::join!(asked, timeout(GREETING, told));
    told.map_err(|_| End::Gone)??;
    // Without the store the map still shows what it knew; the hold is asked for over HTTP then.
    if let Ok(held) = held {
        let mine = held.map(|held| Mine {
            hold: held.hold,
            expires_at: held.expires_at,
            paying: held.paying,
            seats: held.lot.seats,
        });
        line.put(packed(&Frame::Mine { now: state.clock.now(), mine }));
    }
    Ok(())
}

/// Brings the reader what changes, one frame at a time, for as long as they take it.
pub(super) async fn converse<S>(
    line: &mut Line<S>,
    reader: &mut Reader,
    stop: &CancellationToken,
    now: impl Fn() -> Timestamp,
) -> Result<std::convert::Infallible, End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // The first beat is drawn, so that readers who came together do not beat together.
    let mut beat = std::pin::pin!(sleep(Duration::from_millis(ids::jitter(BEAT.as_millis() as u64))));
    let (mut silent, mut stuck, mut input) = (0, 0, ReaderInput::default());
    loop {
        let is_full = input.is_full();
        if line.is_free() {
            match reader.next(&now) {
                Next::Frame(frame) => line.put(frame),
                Next::Nothing => {}
                Next::Leave => return Err(End::Leave),
            }
        }
        tokio::select! {
            biased;
            event = next_event(line, is_full) => match event? {
                Event::Written => {}
                Event::Alive => {
                    silent = 0;
                    input.count();
                }
                Event::Said(bytes) => {
                    silent = 0;
                    input.take(reader, &bytes)?;
                }
            },
            () = input.pause_is_over(), if input.is_paused() => input.end_pause(reader)?,
            ticked = reader.ticks.changed(), if line.is_free() => {
                ticked.map_err(|_| End::Close(CloseCode::Restart, "the map was closed, come back"))?;
            }
            // Readers in step hear it from the tick; one who takes nothing hears no tick.
            () = stop.cancelled(), if !line.is_free() => return Err(End::Leave),
            () = &mut beat => {
                beat.as_mut().reset(Instant::now() + BEAT);
                (silent, stuck) = (silent + 1, if line.is_free() || line.has_moved() { 0 } else { stuck + 1 });
                if silent > MAX_SILENT_BEATS {
                    return Err(End::Close(CloseCode::Policy, "no sign of life"));
                }
                if stuck > MAX_STUCK_BEATS {
                    return Err(End::Gone);
                }
                if line.is_free() {
                    line.put(reader.beat());
                }
            }
        }
    }
}

/// The next event of a connection; where the reader's input is full, of writing alone.
async fn next_event<S>(line: &mut Line<S>, is_input_full: bool) -> Result<Event, Fault>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if is_input_full { line.written().await } else { line.event().await }
}

async fn say_goodbye<S>(line: &mut Line<S>, end: End)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let frames = match end {
        End::Gone => return,
        End::Bye => vec![websocket_frames::close(CloseCode::Normal, "")],
        End::Close(code, reason) => vec![websocket_frames::close(code, reason)],
        End::Leave => vec![
            packed(&Frame::Drain { retry_ms: ids::jitter(DRAIN_SPREAD_MS) }),
            websocket_frames::close(CloseCode::Restart, "this server is stopping, come back to another"),
        ],
    };
    // Whoever does not take it, or hear us out, in time finds the line closed.
    let _ = timeout(FAREWELL, async {
        if line.finish(&frames).await.is_ok() {
            line.hear_out().await;
        }
    })
    .await;
}
