//! The WebSocket handshake, and the raw connection after it.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::net::TcpStream;
use tungstenite::handshake::server::create_response_with_body;

use super::connection::LiveConnection;
use http::write_coalescing::CoalescedWrites;
use http::{Code, Problem};

/// Send buffer of the kernel for one reader, bytes (Linux doubles it for its own use). The default
/// grows to megabytes, and a reader that resumes would first get outdated frames.
const SEND_BUFFER_BYTES: usize = 16 * 1024;

/// Answers the handshake. The connection is available after the response was sent.
///
/// # Errors
/// `malformed` if the request is no WebSocket handshake.
pub(super) fn accept(request: &mut Request) -> Result<(Response, OnUpgrade), Problem> {
    let no_handshake = |_| Problem::new(Code::Malformed, "Ask for a WebSocket upgrade here.");
    let response = create_response_with_body(request, Body::empty).map_err(no_handshake)?;
    Ok((response, hyper::upgrade::on(request)))
}

/// Returns the upgraded connection; `None` if it broke or is no plain TCP stream.
pub(super) async fn connected(upgrade: OnUpgrade) -> Option<LiveConnection<TcpStream>> {
    let upgraded =
        upgrade.await.inspect_err(|cause| tracing::debug!(%cause, "a reader disconnected during the handshake"));
    // This frees the HTTP state of the connection, mainly its buffer of eight kilobytes.
    let Ok(parts) = upgraded.ok()?.downcast::<CoalescedWrites<TokioIo<TcpStream>>>() else {
        tracing::error!("live connections need a listener of plain TCP");
        return None;
    };
    let Some(stream) = parts.io.into_inner().map(TokioIo::into_inner) else {
        // A client that pipelines requests and reads no responses.
        tracing::debug!("live connection refused: responses to earlier requests are unread");
        return None;
    };
    if let Err(cause) = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER_BYTES) {
        tracing::debug!(%cause, "set SO_SNDBUF of a live connection failed");
    }
    Some(LiveConnection::new(stream, &parts.read_buf))
}
