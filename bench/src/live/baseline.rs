//! The baseline server: every change as a JSON text of its own to every socket, as the usual blueprint
//! has it.
//!
//! Honestly made: the same web framework with the same socket settings, a text is written once and its
//! bytes are shared by all sockets, and it hears of changes on the same Redis channel. What it lacks is
//! what is measured: ticks, merging, and a language of its own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use axum::extract::{State, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;
use axum::serve::ListenerExt;
use futures::StreamExt;
use tokio::net::TcpListener;
use tokio::sync::broadcast;

/// The inbound buffer of a socket, bytes: the server's, to be fair.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// Changes a slow socket may be behind before it is cut off; as many as a run can make.
const MAX_BEHIND: usize = 1 << 18;

/// What the baseline server takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Where to listen.
    #[arg(long)]
    listen: SocketAddr,
    /// Where changes are announced.
    #[arg(long)]
    channel: String,
    /// The key of the map.
    #[arg(long)]
    map: String,
    /// The key of its version.
    #[arg(long)]
    version: String,
    /// Send each text at once, as most WebSocket libraries do, instead of leaving small ones to the
    /// kernel to join, as the server does.
    #[arg(long)]
    nodelay: bool,
}

struct Room {
    seats: Mutex<(u64, Vec<u8>)>,
    changes: broadcast::Sender<(u64, Utf8Bytes)>,
}

/// Serves until the process is ended.
pub fn serve(redis_url: &str, options: &Options) -> Result<()> {
    // As many threads as the server has: one a core.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = redis::Client::open(redis_url)?;
        let (mut sink, stream) = client.get_async_pubsub().await?.split();
        sink.subscribe(&options.channel).await?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let map: Vec<u8> = redis::cmd("GET").arg(&options.map).query_async(&mut connection).await?;
        let version: u64 = redis::cmd("GET").arg(&options.version).query_async(&mut connection).await?;
        let (changes, _) = broadcast::channel(MAX_BEHIND);
        let room = Arc::new(Room { seats: Mutex::new((version, map)), changes });
        tokio::spawn(follow(Arc::clone(&room), stream));
        let router =
            Router::new().route("/live", get(live)).route("/healthz", get(async || "alive\n")).with_state(room);
        let listener = TcpListener::bind(options.listen).await?;
        let nodelay = options.nodelay;
        let listener = listener.tap_io(move |stream| {
            if nodelay {
                // Refused only by a socket that is gone.
                let _ = stream.set_nodelay(true);
            }
        });
        axum::serve(listener, router).await?;
        anyhow::Ok(())
    })
}

/// Takes every announcement, `epoch;version;seat=state,…`, and tells everyone.
async fn follow(room: Arc<Room>, mut announcements: redis::aio::PubSubStream) {
    while let Some(message) = announcements.next().await {
        if let Err(error) = take(&room, message.get_payload_bytes()) {
            eprintln!("an announcement that cannot be read: {error:#}");
        }
    }
}

fn take(room: &Room, payload: &[u8]) -> Result<()> {
    let text = std::str::from_utf8(payload)?;
    let (_, rest) = text.split_once(';').context("no epoch")?;
    let (version, changes) = rest.split_once(';').context("no version")?;
    let version: u64 = version.parse()?;
    let mut seats = room.seats.lock().unwrap_or_else(PoisonError::into_inner);
    if version <= seats.0 {
        return Ok(());
    }
    for change in changes.split(',') {
        let (seat, state) = change.split_once('=').context("no change")?;
        let (seat, state): (usize, u8) = (seat.parse()?, state.parse()?);
        *seats.1.get_mut(seat).context("no such seat")? = state;
        let text = format!(r#"{{"version":{version},"seat":{seat},"state":{state}}}"#);
        // Nobody watching is fine.
        let _ = room.changes.send((version, text.into()));
    }
    seats.0 = version;
    Ok(())
}

async fn live(State(room): State<Arc<Room>>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.read_buffer_size(READ_BUFFER_BYTES).on_upgrade(|socket| talk(room, socket))
}

async fn talk(room: Arc<Room>, mut socket: WebSocket) {
    let (whole, mut changes) = {
        let seats = room.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let states: String = seats.1.iter().map(|state| char::from(b'0' + state)).collect();
        (format!(r#"{{"version":{},"states":"{states}"}}"#, seats.0), room.changes.subscribe())
    };
    if socket.send(Message::Text(whole.into())).await.is_err() {
        return;
    }
    loop {
        tokio::select! {
            heard = socket.recv() => match heard {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
            change = changes.recv() => {
                let Ok((_, text)) = change else { return };
                if socket.send(Message::Text(text)).await.is_err() {
                    return;
                }
            }
        }
    }
}
