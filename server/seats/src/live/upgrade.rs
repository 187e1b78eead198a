//! From an HTTP request to a line: the WebSocket handshake, and the bare connection after it.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::net::TcpStream;
use tungstenite::handshake::server::create_response_with_body;

use super::connection::Line;
use http::gathered::Gathered;
use http::{Code, Problem};

/// What the kernel keeps unsent for one reader, bytes (Linux doubles it for its own use). The default
/// grows to megabytes, and a reader who wakes up would first get all that was true while they slept.
const SEND_BUFFER_BYTES: usize = 16 * 1024;

/// Answers the handshake. The connection follows when the answer is on its way.
///
/// # Errors
/// When this is no WebSocket handshake.
pub(super) fn accept(request: &mut Request) -> Result<(Response, OnUpgrade), Problem> {
    let no_handshake = |_| Problem::new(Code::Malformed, "Ask for a WebSocket upgrade here.");
    let response = create_response_with_body(request, Body::empty).map_err(no_handshake)?;
    Ok((response, hyper::upgrade::on(request)))
}

/// The connection as a line; `None` when it broke, or is none we can write to directly.
pub(super) async fn connected(upgrade: OnUpgrade) -> Option<Line<TcpStream>> {
    let upgraded = upgrade.await.inspect_err(|cause| tracing::debug!(%cause, "a reader left during the handshake"));
    // What HTTP kept of the connection, its eight kilobytes of buffer first of all, ends here.
    let Ok(parts) = upgraded.ok()?.downcast::<Gathered<TokioIo<TcpStream>>>() else {
        tracing::error!("live connections need a listener of plain TCP");
        return None;
    };
    let Some(stream) = parts.io.into_inner().map(TokioIo::into_inner) else {
        // Whoever sends requests before it and reads no answers.
        tracing::debug!("a reader asked for a live connection with answers unread");
        return None;
    };
    if let Err(cause) = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER_BYTES) {
        tracing::debug!(%cause, "a live connection keeps its usual buffer");
    }
    Some(Line::new(stream, &parts.read_buf))
}
