//! A proxy in front of Postgres that forwards everything until a connection sends given text.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::postgres_proxy;

/// Read buffer, in bytes.
const CHUNK_BYTES: usize = 16 * 1024;
/// The end of a transaction: in sqlx's query, and in Postgres' answer.
const COMMIT: &[u8] = b"COMMIT\0";
/// Postgres waits for a query, and no transaction is open (PostgreSQL manual, message `ReadyForQuery`).
const IDLE: &[u8] = b"Z\0\0\0\x05I";

/// Fault of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionFault {
    /// Cut before the commit is forwarded: not committed.
    CutBeforeCommit,
    /// Cut after the commit was forwarded: committed, without an answer.
    CutAfterCommit,
    /// Nothing is forwarded in either direction, and the connection stays open.
    Silence,
}

/// Applies a fault to connections that sent this text since their last transaction ended.
#[derive(Clone, Copy, Debug)]
struct ArmedFault {
    fault: ConnectionFault,
    words: &'static str,
    /// Connections left to fail.
    left: u32,
}

#[derive(Default)]
struct ProxyState {
    armed: Mutex<Option<ArmedFault>>,
    failed_connections: AtomicU32,
}

impl ProxyState {
    fn fault_for(&self, sent: &[u8]) -> Option<ConnectionFault> {
        let mut guard = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let armed = guard.as_mut().filter(|armed| armed.left > 0)?;
        let is_over = armed.fault == ConnectionFault::Silence || sent.ends_with(COMMIT);
        if !is_over || !sent.windows(armed.words.len()).any(|words| words == armed.words.as_bytes()) {
            return None;
        }
        armed.left -= 1;
        self.failed_connections.fetch_add(1, Ordering::SeqCst);
        Some(armed.fault)
    }
}

/// The proxy.
pub struct PostgresProxy {
    /// Its address, as DATABASE_URL.
    pub url: String,
    shared: Arc<ProxyState>,
}

impl PostgresProxy {
    /// Opens the proxy in front of this Postgres.
    pub async fn open(database_url: &str) -> Self {
        let shared = Arc::<ProxyState>::default();
        let to_all = Arc::clone(&shared);
        let url =
            postgres_proxy::open(database_url, move |client, postgres| pass(client, postgres, Arc::clone(&to_all)));
        Self { url: url.await, shared }
    }

    /// The next `connections` connections that send this text get this fault.
    pub fn fail_next(&self, connections: u32, fault: ConnectionFault, words: &'static str) {
        let armed = ArmedFault { fault, words, left: connections };
        *self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner) = Some(armed);
    }

    /// Stops applying faults.
    pub fn stop_faults(&self) {
        *self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Connections that got a fault.
    pub fn failed_connections(&self) -> u32 {
        self.shared.failed_connections.load(Ordering::SeqCst)
    }
}

/// Forwards until one side closes or the fault applies.
async fn pass(mut client: TcpStream, mut postgres: TcpStream, shared: Arc<ProxyState>) -> std::io::Result<()> {
    let (mut up, mut down) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    // Bytes sent since the last transaction ended.
    let mut sent = Vec::new();
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let chunk = &up[..read?];
                if chunk.is_empty() {
                    return Ok(());
                }
                sent.extend_from_slice(chunk);
                match shared.fault_for(&sent) {
                    None => postgres.write_all(chunk).await?,
                    Some(ConnectionFault::CutBeforeCommit) => return Ok(()),
                    Some(ConnectionFault::CutAfterCommit) => {
                        postgres.write_all(chunk).await?;
                        // Cut any sooner, the commit may not happen.
                        return wait_for_commit(&mut postgres, &mut down).await;
                    }
                    Some(ConnectionFault::Silence) => std::future::pending().await,
                }
            }
            read = postgres.read(&mut down) => {
                let chunk = &down[..read?];
                if chunk.is_empty() {
                    return Ok(());
                }
                if chunk.ends_with(IDLE) {
                    sent.clear();
                }
                client.write_all(chunk).await?;
            }
        }
    }
}

/// Reads until Postgres confirms the commit.
async fn wait_for_commit(postgres: &mut TcpStream, chunk: &mut [u8]) -> std::io::Result<()> {
    let mut answer = Vec::new();
    while !answer.windows(COMMIT.len()).any(|words| words == COMMIT) {
        let read = postgres.read(chunk).await?;
        assert!(read > 0, "Postgres has closed the connection instead of committing");
        answer.extend_from_slice(&chunk[..read]);
    }
    Ok(())
}
