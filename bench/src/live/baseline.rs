//! The baseline server: sends every change as a separate JSON text to every socket, as a common live-map
//! design does.
//!
//! The comparison is fair: it uses the same web framework, socket settings and Redis channel, and
//! serialises each text once for all sockets. It lacks only what the benchmark measures: ticks, merged
//! changes and binary frames.

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

/// Inbound buffer of a socket, bytes: the same as the server's.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// Changes a slow socket may lag behind before it is closed; as many as a run can make.
const MAX_BEHIND: usize = 1 << 18;

/// Options of the baseline server.
#[derive(Clone, Debug, clap::Args)]
pub struct BaselineOptions {
    /// The address to listen at.
    #[arg(long)]
    listen: SocketAddr,
    /// The Redis channel of changes.
    #[arg(long)]
    channel: String,
    /// The Redis key of the map.
    #[arg(long)]
    map: String,
    /// The Redis key of its version.
    #[arg(long)]
    version: String,
    /// Set TCP_NODELAY, as most WebSocket libraries do. Without it the kernel joins small texts, as for
    /// the server under test.
    #[arg(long)]
    nodelay: bool,
}

struct Baseline {
    seats: Mutex<(u64, Vec<u8>)>,
    changes: broadcast::Sender<(u64, Utf8Bytes)>,
}

pub fn serve(redis_url: &str, options: &BaselineOptions) -> Result<()> {
    // The same number of threads as the server has: one a core.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = redis::Client::open(redis_url)?;
        let (mut sink, stream) = client.get_async_pubsub().await?.split();
        sink.subscribe(&options.channel).await?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let map: Vec<u8> = redis::cmd("GET").arg(&options.map).query_async(&mut connection).await?;
        let version: u64 = redis::cmd("GET").arg(&options.version).query_async(&mut connection).await?;
        let (changes, _) = broadcast::channel(MAX_BEHIND);
        let baseline = Arc::new(Baseline { seats: Mutex::new((version, map)), changes });
        tokio::spawn(relay_announcements(Arc::clone(&baseline), stream));
        let router =
            Router::new().route("/live", get(live)).route("/healthz", get(async || "alive\n")).with_state(baseline);
        let listener = TcpListener::bind(options.listen).await?;
        let nodelay = options.nodelay;
        let listener = listener.tap_io(move |stream| {
            if nodelay {
                // Fails only on a closed socket.
                let _ = stream.set_nodelay(true);
            }
        });
        axum::serve(listener, router).await?;
        anyhow::Ok(())
    })
}

/// Applies every announcement, `epoch;version;seat=state,…`, and broadcasts its changes.
async fn relay_announcements(baseline: Arc<Baseline>, mut announcements: redis::aio::PubSubStream) {
    while let Some(message) = announcements.next().await {
        if let Err(error) = apply_announcement(&baseline, message.get_payload_bytes()) {
            eprintln!("an announcement cannot be parsed: {error:#}");
        }
    }
}

fn apply_announcement(baseline: &Baseline, payload: &[u8]) -> Result<()> {
    let text = std::str::from_utf8(payload)?;
    let (_, rest) = text.split_once(';').context("no epoch")?;
    let (version, changes) = rest.split_once(';').context("no version")?;
    let version: u64 = version.parse()?;
    let mut seats = baseline.seats.lock().unwrap_or_else(PoisonError::into_inner);
    if version <= seats.0 {
        return Ok(());
    }
    for change in changes.split(',') {
        let (seat, state) = change.split_once('=').context("no change")?;
        let (seat, state): (usize, u8) = (seat.parse()?, state.parse()?);
        *seats.1.get_mut(seat).context("no such seat")? = state;
        let text = format!(r#"{{"version":{version},"seat":{seat},"state":{state}}}"#);
        // Fails only without subscribers.
        let _ = baseline.changes.send((version, text.into()));
    }
    seats.0 = version;
    Ok(())
}

async fn live(State(baseline): State<Arc<Baseline>>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.read_buffer_size(READ_BUFFER_BYTES).on_upgrade(|socket| serve_socket(baseline, socket))
}

async fn serve_socket(baseline: Arc<Baseline>, mut socket: WebSocket) {
    let (whole, mut changes) = {
        let seats = baseline.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let states: String = seats.1.iter().map(|state| char::from(b'0' + state)).collect();
        (format!(r#"{{"version":{},"states":"{states}"}}"#, seats.0), baseline.changes.subscribe())
    };
    if socket.send(Message::Text(whole.into())).await.is_err() {
        return;
    }
    loop {
        tokio::select! {
            received = socket.recv() => match received {
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
