//! A proxy in front of Postgres, which passes everything on until a connection says certain words.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::postgres_proxy;

/// Read at once, bytes.
const CHUNK_BYTES: usize = 16 * 1024;
/// What ends a transaction, as sqlx says it; and as Postgres answers.
const COMMIT: &[u8] = b"COMMIT\0";
/// Postgres waits for the next question, and no transaction is open (PostgreSQL manual, message `ReadyForQuery`).
const IDLE: &[u8] = b"Z\0\0\0\x05I";

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is cut instead of a commit: nothing was done.
    CutBeforeCommit,
    /// It is cut after a commit was passed on: it is done, and nobody hears so.
    CutAfterCommit,
    /// From the words on nothing goes either way, and it stays open.
    Silence,
}

/// Strikes connections that have said these words since their last transaction ended.
#[derive(Clone, Copy, Debug)]
struct Armed {
    fate: Fate,
    words: &'static str,
    /// How many connections are left to strike.
    left: u32,
}

#[derive(Default)]
struct Shared {
    armed: Mutex<Option<Armed>>,
    struck: AtomicU32,
}

impl Shared {
    fn struck_by(&self, said: &[u8]) -> Option<Fate> {
        let mut guard = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let armed = guard.as_mut().filter(|armed| armed.left > 0)?;
        let is_over = armed.fate == Fate::Silence || said.ends_with(COMMIT);
        if !is_over || !said.windows(armed.words.len()).any(|words| words == armed.words.as_bytes()) {
            return None;
        }
        armed.left -= 1;
        self.struck.fetch_add(1, Ordering::SeqCst);
        Some(armed.fate)
    }
}

/// The proxy.
pub struct Wire {
    /// Its address, as DATABASE_URL.
    pub url: String,
    shared: Arc<Shared>,
}

impl Wire {
    /// In front of that Postgres.
    pub async fn open(database_url: &str) -> Self {
        let shared = Arc::<Shared>::default();
        let to_all = Arc::clone(&shared);
        let url =
            postgres_proxy::open(database_url, move |client, postgres| pass(client, postgres, Arc::clone(&to_all)));
        Self { url: url.await, shared }
    }

    /// The next connections, so many, meet this fate once they have said these words.
    pub fn strike(&self, connections: u32, fate: Fate, words: &'static str) {
        let armed = Armed { fate, words, left: connections };
        *self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner) = Some(armed);
    }

    /// No more do.
    pub fn mend(&self) {
        *self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Connections that have met theirs.
    pub fn struck(&self) -> u32 {
        self.shared.struck.load(Ordering::SeqCst)
    }
}

/// Until one side closes, or fate strikes.
async fn pass(mut client: TcpStream, mut postgres: TcpStream, shared: Arc<Shared>) -> std::io::Result<()> {
    let (mut up, mut down) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    // What was said since the last transaction ended.
    let mut said = Vec::new();
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let chunk = &up[..read?];
                if chunk.is_empty() {
                    return Ok(());
                }
                said.extend_from_slice(chunk);
                match shared.struck_by(&said) {
                    None => postgres.write_all(chunk).await?,
                    Some(Fate::CutBeforeCommit) => return Ok(()),
                    Some(Fate::CutAfterCommit) => {
                        postgres.write_all(chunk).await?;
                        // Cut any sooner, it may not be done.
                        return is_done(&mut postgres, &mut down).await;
                    }
                    Some(Fate::Silence) => std::future::pending().await,
                }
            }
            read = postgres.read(&mut down) => {
                let chunk = &down[..read?];
                if chunk.is_empty() {
                    return Ok(());
                }
                if chunk.ends_with(IDLE) {
                    said.clear();
                }
                client.write_all(chunk).await?;
            }
        }
    }
}

/// Reads on until Postgres says that it has committed.
async fn is_done(postgres: &mut TcpStream, chunk: &mut [u8]) -> std::io::Result<()> {
    let mut told = Vec::new();
    while !told.windows(COMMIT.len()).any(|words| words == COMMIT) {
        let read = postgres.read(chunk).await?;
        assert!(read > 0, "Postgres has closed the connection instead of committing");
        told.extend_from_slice(&chunk[..read]);
    }
    Ok(())
}
