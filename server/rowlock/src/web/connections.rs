//! Connections of visitors: accepted, served until they end, and closed gracefully when the server stops.
//!
//! Not axum's, for one reason: answers to requests that arrived together are written together ([`CoalescedWrites`]). A client that
//! reconnects sends several at once, and a system call for each answer would cost more than all other work of a retry.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceExt};

use crate::config::Config;
use http::client_address::{ClientAddress, Peer};
use http::concurrency::{Concurrency, ConcurrencySlot};
use http::write_coalescing::CoalescedWrites;
use seats::live::MAX_SOCKETS;

/// Deadline for the headers of each request; then its connection is closed. So is one that is idle for so long: a client
/// opens another for its next request.
const HEADERS_DEADLINE: Duration = Duration::from_secs(30);
/// A connection whose client takes no bytes for this long is closed: its answers would stay in memory. Longer than the
/// deadlines of a live map (`seats::live`), which has its own rules for slow readers.
const WRITE_DEADLINE: Duration = Duration::from_secs(120);
/// Connections at one time; one more waits in the system's queue. Live maps are counted where they are (`live::sockets`).
const MAX_CONNECTIONS: usize = 20_000;
/// Connections of an address for each live map it may have open: a browser has up to six more beside it.
const CONNECTIONS_PER_SOCKET: usize = 4;

/// Connections of a network for each that one of its addresses may have.
const ADDRESSES_PER_NETWORK: usize = 4;

/// Open files of a server besides its connections and live maps: calls to stores, gateways and mail servers, and files
/// of the site.
const OTHER_FILES: usize = 1_000;
/// Files that a server needs at full load: every connection and every live map is one.
const FILES_NEEDED: u64 = (MAX_CONNECTIONS + MAX_SOCKETS + OTHER_FILES) as u64;

/// Raises the limit of open files to the highest that this process may have; warns if that is too low for a full load.
pub fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    // If this fails, the warning below names the limit that is left.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let limit = getrlimit(Resource::Nofile).current;
    if let Some(limit) = limit.filter(|limit| *limit < FILES_NEEDED) {
        tracing::warn!(limit, needed = FILES_NEEDED, "the limit of open files is too low for a full server");
    }
}

/// Limits on connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Deadline for the headers of a request.
    headers_deadline: Duration,
    /// Maximum time in which the client takes none of the bytes that were sent.
    write_deadline: Duration,
    /// Connections at one time.
    all: usize,
    /// Maximum per address; none behind a proxy of ours, whose address all connections have.
    per_address: Option<usize>,
}

impl ConnectionLimits {
    /// The limits of these settings.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let is_direct = config.site.trusted_proxies == 0 && config.sockets_per_address > 0;
        let per_address = is_direct.then_some(config.sockets_per_address * CONNECTIONS_PER_SOCKET);
        let (headers_deadline, write_deadline) = (HEADERS_DEADLINE, WRITE_DEADLINE);
        Self { headers_deadline, write_deadline, all: MAX_CONNECTIONS, per_address }
    }
}

/// Pause after a failure to accept for lack of resources.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Serves `service` until `stop`; then ends when every connection has.
pub async fn serve<S>(listener: TcpListener, service: S, limits: ConnectionLimits, stop: CancellationToken)
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static,
{
    let (connections, places) = (TaskTracker::new(), Arc::new(Semaphore::new(limits.all)));
    let (of_addresses, of_networks) = (Concurrency::default(), Concurrency::default());
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((listener.accept().await?, place))
        };
        let accepted = tokio::select! {
            accepted = next => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok(((stream, peer), place)) => {
                let Ok(slots) = slots_of(&of_addresses, &of_networks, peer, limits) else {
                    tracing::debug!(%peer, "connection closed: too many from its address");
                    continue;
                };
                let (service, stop) = (service.clone(), stop.clone());
                connections.spawn(async move {
                    serve_connection(stream, peer, service, limits, stop).await;
                    drop((slots, place));
                });
            }
            Err(cause) if is_of_one_connection(&cause) => tracing::debug!(%cause, "accept one connection failed"),
            Err(cause) => {
                tracing::error!(%cause, "accept connections failed; pausing");
                tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
            }
        }
    }
    // No new connections.
    drop(listener);
    connections.close();
    connections.wait().await;
}

struct TooManyConnections;

/// Slots of the address a connection comes from and of the network around it; none where addresses are not limited.
fn slots_of(
    of_addresses: &Concurrency,
    of_networks: &Concurrency,
    peer: SocketAddr,
    limits: ConnectionLimits,
) -> Result<Option<[ConcurrencySlot; 2]>, TooManyConnections> {
    let Some(most) = limits.per_address else { return Ok(None) };
    let address = ClientAddress::counted(peer.ip());
    // Other networks keep half of all connections, unless the operator allows one address more.
    let most_of_network = (most * ADDRESSES_PER_NETWORK).min(limits.all / 2).max(most);
    let of_network = of_networks.take(&address.network(), most_of_network).ok_or(TooManyConnections)?;
    let of_address = of_addresses.take(&address.0, most).ok_or(TooManyConnections)?;
    Ok(Some([of_network, of_address]))
}

/// True if the failure concerns one connection only.
fn is_of_one_connection(cause: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(cause.kind(), Kind::ConnectionRefused | Kind::ConnectionAborted | Kind::ConnectionReset)
}

/// Lets the kernel close the connection when its client takes no bytes for this long, also while the client only
/// answers probes of its full buffer (Linux 5.11 and later). It costs nothing per request. Other systems have no such
/// option.
fn set_write_deadline(stream: &TcpStream, deadline: Duration) {
    #[cfg(target_os = "linux")]
    if let Err(cause) = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(deadline)) {
        tracing::debug!(%cause, "set TCP_USER_TIMEOUT failed");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (stream, deadline);
}

async fn serve_connection<S>(
    stream: TcpStream,
    peer: SocketAddr,
    service: S,
    limits: ConnectionLimits,
    stop: CancellationToken,
) where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static,
{
    set_write_deadline(&stream, limits.write_deadline);
    // Small frames and small answers leave at once, instead of waiting for the last to be acknowledged.
    if let Err(cause) = stream.set_nodelay(true) {
        tracing::debug!(%cause, "set TCP_NODELAY failed");
    }
    let service = service.map_request(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer.ip()));
        request
    });
    let service = TowerToHyperService::new(service);
    // HTTP/1.1 alone: a server that offers HTTP/2 as well waits for its preface without a deadline.
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.headers_deadline);
    let connection = builder.serve_connection(CoalescedWrites::new(TokioIo::new(stream)), service);
    let mut connection = pin!(connection.with_upgrades());
    let served = tokio::select! {
        biased;
        served = connection.as_mut() => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(cause) = served {
        tracing::trace!(%cause, "a connection broke");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// A server with these limits, which answers everything with nothing.
    async fn served(limits: ConnectionLimits) -> (SocketAddr, CancellationToken) {
        served_bytes(limits, 0).await
    }

    /// A server with these limits, which answers everything with this many bytes.
    async fn served_bytes(limits: ConnectionLimits, bytes: usize) -> (SocketAddr, CancellationToken) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (address, stop) = (listener.local_addr().expect("an address"), CancellationToken::new());
        let answer = move |_: Request| async move { Ok::<_, Infallible>(Response::new(Body::from(vec![b'x'; bytes]))) };
        tokio::spawn(serve(listener, tower::service_fn(answer), limits, stop.clone()));
        (address, stop)
    }

    const MINUTE: Duration = Duration::from_secs(60);
    const GENEROUS: ConnectionLimits =
        ConnectionLimits { headers_deadline: MINUTE, write_deadline: MINUTE, all: 100, per_address: None };

    async fn connect(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.expect("the system accepts it")
    }

    /// Sends this and reads until the other side has closed, or an answer has come.
    async fn answer_to(stream: &mut TcpStream, request: &[u8]) -> String {
        stream.write_all(request).await.expect("it is sent");
        let mut bytes = [0; 1_024];
        let read = stream.read(&mut bytes).await.unwrap_or_default();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n";

    #[tokio::test]
    async fn a_connection_without_headers_or_requests_is_closed() {
        let (address, stop) =
            served(ConnectionLimits { headers_deadline: Duration::from_millis(50), ..GENEROUS }).await;
        for slow in [&b""[..], b"G", b"PRI * HTTP/2.0", b"GET / HTTP/1.1\r\nhost: he"] {
            let answer = answer_to(&mut connect(address).await, slow).await;
            assert!(!answer.contains("200"), "{answer}");
        }
        let mut stream = connect(address).await;
        assert!(answer_to(&mut stream, REQUEST).await.starts_with("HTTP/1.1 200"));
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap_or_default(), 0, "closed when it had been idle");
        stop.cancel();
    }

    #[tokio::test]
    async fn an_address_has_a_maximum_of_connections() {
        let (address, stop) = served(ConnectionLimits { per_address: Some(2), ..GENEROUS }).await;
        let (mut one, mut two) = (connect(address).await, connect(address).await);
        assert!(answer_to(&mut one, REQUEST).await.starts_with("HTTP/1.1 200"));
        assert!(answer_to(&mut two, REQUEST).await.starts_with("HTTP/1.1 200"));
        assert_eq!(connect(address).await.read(&mut [0; 8]).await.unwrap_or_default(), 0, "the third is closed");
        assert!(answer_to(&mut one, REQUEST).await.starts_with("HTTP/1.1 200"), "the others are still served");
        drop(one);
        loop {
            let mut next = connect(address).await;
            if next.write_all(REQUEST).await.is_ok() && next.read(&mut [0; 8]).await.is_ok_and(|read| read > 0) {
                break;
            }
        }
        stop.cancel();
    }

    #[tokio::test]
    async fn at_the_maximum_the_next_connection_waits_until_one_ends() {
        let (address, stop) = served(ConnectionLimits { all: 1, ..GENEROUS }).await;
        let mut first = connect(address).await;
        assert!(answer_to(&mut first, REQUEST).await.starts_with("HTTP/1.1 200"));
        let mut second = connect(address).await;
        let mut waiting = Box::pin(answer_to(&mut second, REQUEST));
        assert!(answer_to(&mut first, REQUEST).await.starts_with("HTTP/1.1 200"));
        assert!(futures::poll!(&mut waiting).is_pending(), "it is not read yet");
        drop(first);
        assert!(waiting.await.starts_with("HTTP/1.1 200"));
        stop.cancel();
    }

    /// More than the buffers of a connection hold.
    #[cfg(target_os = "linux")]
    const LARGE_ANSWER_BYTES: usize = 64 * 1024 * 1024;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_connection_whose_client_reads_nothing_is_closed() {
        let limits = ConnectionLimits { write_deadline: Duration::from_millis(500), all: 1, ..GENEROUS };
        let (address, stop) = served_bytes(limits, LARGE_ANSWER_BYTES).await;
        let mut first = connect(address).await;
        first.write_all(REQUEST).await.expect("it is sent");
        // Its place is free again although the client keeps its end open.
        let mut second = connect(address).await;
        let answer = tokio::time::timeout(MINUTE / 2, answer_to(&mut second, REQUEST)).await;
        assert!(answer.expect("the first connection was closed").starts_with("HTTP/1.1 200"));
        drop(first);
        stop.cancel();
    }
}
