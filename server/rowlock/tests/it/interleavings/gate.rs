//! A proxy in front of Postgres that holds back each statement of an actor until it has a permit.
//!
//! It parses the frontend/backend protocol 3 as far as needed (PostgreSQL manual, "Message Formats"): a batch of
//! frontend messages ends with Sync or is one simple query, and its answer ends with `ReadyForQuery`. A batch that
//! executes nothing passes (sqlx prepares a statement in a separate batch). BEGIN passes, because it takes no snapshot
//! and no lock. ROLLBACK passes, because sqlx queues it when a transaction is dropped, and the actor may wait for the
//! locks that it frees.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{oneshot, watch};

use crate::postgres_process::open_proxy;

/// Length of a message's type and size, in bytes.
const HEADER_BYTES: usize = 5;
/// Maximum length of a printed statement, in characters.
const SHOWN_CHARS: usize = 110;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    pub actor: usize,
    number: u32,
    /// Process id of its Postgres backend.
    pub pid: i32,
}

#[derive(Debug)]
pub enum GateEvent {
    Waits { connection: ConnectionId, statement: String, permit: oneshot::Sender<()> },
    Answered { connection: ConnectionId, is_in_transaction: bool },
    Closed { connection: ConnectionId },
    Finished { actor: usize, answer: String },
}

pub struct Gate {
    pub url: String,
    is_closed: watch::Sender<bool>,
}

struct GateState {
    actor: usize,
    is_closed: watch::Receiver<bool>,
    events: UnboundedSender<GateEvent>,
    connections: AtomicU32,
}

impl Gate {
    /// Opens an actor's proxy in front of this Postgres. Statements pass until it is closed.
    pub async fn new(database_url: &str, actor: usize, events: UnboundedSender<GateEvent>) -> Self {
        let mut direct = reqwest::Url::parse(database_url).expect("DATABASE_URL is an address");
        // The proxy cannot parse encrypted traffic.
        direct.query_pairs_mut().append_pair("sslmode", "disable");
        let (is_closed, seen) = watch::channel(false);
        let shared = Arc::new(GateState { actor, is_closed: seen, events, connections: AtomicU32::new(0) });
        let url = open_proxy(direct.as_str(), move |client, postgres| {
            let shared = Arc::clone(&shared);
            async move { connection(client, postgres, &shared).await }
        });
        Self { url: url.await, is_closed }
    }

    pub fn close(&self) {
        self.is_closed.send_replace(true);
    }

    pub fn open(&self) {
        self.is_closed.send_replace(false);
    }
}

struct Message(Vec<u8>);

impl Message {
    fn kind(&self) -> u8 {
        self.0[0]
    }

    /// Its string fields, from the beginning.
    fn strings(&self) -> impl Iterator<Item = String> {
        self.0[HEADER_BYTES..].split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

/// Messages of one side. A read is cancel-safe.
struct Messages {
    from: OwnedReadHalf,
    buffer: Vec<u8>,
}

impl Messages {
    fn of(from: OwnedReadHalf) -> Self {
        Self { from, buffer: Vec::new() }
    }

    /// Returns the next message; `None` after the side has closed.
    async fn next(&mut self) -> std::io::Result<Option<Message>> {
        loop {
            if let Some(header) = self.buffer.get(1..HEADER_BYTES) {
                let size = u32::from_be_bytes(header.try_into().expect("four bytes")) as usize + 1;
                if self.buffer.len() >= size {
                    return Ok(Some(Message(self.buffer.drain(..size).collect())));
                }
            }
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Returns the first message of a client, which has no type.
    async fn startup(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(header) = self.buffer.get(..4) {
                let size = u32::from_be_bytes(header.try_into().expect("four bytes")) as usize;
                if self.buffer.len() >= size {
                    return Ok(Some(self.buffer.drain(..size).collect()));
                }
            }
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

struct ConnectionEnds {
    client: Messages,
    to_client: OwnedWriteHalf,
    postgres: Messages,
    to_postgres: OwnedWriteHalf,
}

async fn connection(client: TcpStream, postgres: TcpStream, shared: &GateState) -> std::io::Result<()> {
    let ((from_client, to_client), (from_postgres, to_postgres)) = (client.into_split(), postgres.into_split());
    let (client, postgres) = (Messages::of(from_client), Messages::of(from_postgres));
    let mut ends = ConnectionEnds { client, to_client, postgres, to_postgres };
    let Some(pid) = forward_startup(&mut ends).await? else { return Ok(()) };
    let number = shared.connections.fetch_add(1, Ordering::SeqCst);
    let connection = ConnectionId { actor: shared.actor, number, pid };
    let ended = serve(&mut ends, connection, shared).await;
    // The receiver is gone when the test is over.
    let _ = shared.events.send(GateEvent::Closed { connection });
    ended
}

/// Forwards everything until Postgres waits for the first query. Returns the backend's process id.
async fn forward_startup(ends: &mut ConnectionEnds) -> std::io::Result<Option<i32>> {
    let Some(startup) = ends.client.startup().await? else { return Ok(None) };
    ends.to_postgres.write_all(&startup).await?;
    let mut pid = None;
    loop {
        tokio::select! {
            message = ends.client.next() => {
                let Some(message) = message? else { return Ok(None) };
                ends.to_postgres.write_all(&message.0).await?;
            }
            message = ends.postgres.next() => {
                let Some(message) = message? else { return Ok(None) };
                ends.to_client.write_all(&message.0).await?;
                match (message.kind(), message.0.get(HEADER_BYTES..HEADER_BYTES + 4)) {
                    (b'K', Some(bytes)) => pid = Some(i32::from_be_bytes(bytes.try_into().expect("four bytes"))),
                    (b'Z', _) => return Ok(pid),
                    _ => {}
                }
            }
        }
    }
}

async fn serve(ends: &mut ConnectionEnds, connection: ConnectionId, shared: &GateState) -> std::io::Result<()> {
    let mut prepared = HashMap::new();
    while let Some(batch) = next_batch(ends, &mut prepared).await? {
        if let Some(statement) = batch.statement.filter(|statement| !needs_no_permit(statement)) {
            wait_for_permit(connection, statement, shared).await;
        }
        ends.to_postgres.write_all(&batch.bytes).await?;
        loop {
            let Some(message) = ends.postgres.next().await? else { return Ok(()) };
            if message.kind() != b'Z' {
                ends.to_client.write_all(&message.0).await?;
                continue;
            }
            // Sent before the actor can continue.
            let is_in_transaction = message.0.get(HEADER_BYTES) != Some(&b'I');
            let _ = shared.events.send(GateEvent::Answered { connection, is_in_transaction });
            ends.to_client.write_all(&message.0).await?;
            break;
        }
    }
    Ok(())
}

/// Returns whether a statement takes no snapshot of rows that another actor writes, and no lock that another one waits
/// for.
fn needs_no_permit(statement: &str) -> bool {
    const UNRESTRICTED: [&str; 5] = ["BEGIN", "ROLLBACK", "SAVEPOINT ", "RELEASE ", "SET "];
    UNRESTRICTED.iter().any(|beginning| statement.starts_with(beginning)) || is_of_own_key(statement)
}

/// Returns whether a statement concerns the action's own idempotency key.
fn is_of_own_key(statement: &str) -> bool {
    let table = ["FROM ", "INSERT INTO ", "UPDATE "].iter().find_map(|word| statement.split_once(word));
    table.is_some_and(|(_, rest)| rest.starts_with("idempotency_keys "))
}

/// Frontend messages that are answered together.
struct Batch {
    bytes: Vec<u8>,
    statement: Option<String>,
}

async fn next_batch(
    ends: &mut ConnectionEnds,
    prepared: &mut HashMap<String, String>,
) -> std::io::Result<Option<Batch>> {
    let (mut bytes, mut bound, mut statement) = (Vec::new(), None, None);
    loop {
        let Some(message) = ends.client.next().await? else { return Ok(None) };
        let mut strings = message.strings();
        match message.kind() {
            b'P' => drop(prepared.insert(strings.next().unwrap_or_default(), strings.next().unwrap_or_default())),
            b'B' => bound = strings.nth(1).and_then(|name| prepared.get(&name)).map(|sql| one_line(sql)),
            b'E' => statement = statement.or(bound.take()),
            b'Q' => statement = strings.next().map(|sql| one_line(&sql)),
            _ => {}
        }
        bytes.extend_from_slice(&message.0);
        match message.kind() {
            b'S' | b'Q' => return Ok(Some(Batch { bytes, statement })),
            b'X' => return Ok(None),
            _ => {}
        }
    }
}

/// Shortens a statement to one line for printing.
fn one_line(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    words.join(" ").chars().take(SHOWN_CHARS).collect()
}

async fn wait_for_permit(connection: ConnectionId, statement: String, shared: &GateState) {
    let mut is_closed = shared.is_closed.clone();
    if !*is_closed.borrow_and_update() {
        return;
    }
    let (permit, granted) = oneshot::channel();
    let _ = shared.events.send(GateEvent::Waits { connection, statement, permit });
    tokio::select! {
        // A dropped permit counts as granted: its controller is gone.
        _ = granted => {}
        _ = is_closed.changed() => {}
    }
}
