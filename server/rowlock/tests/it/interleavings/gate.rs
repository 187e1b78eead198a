//! A proxy in front of Postgres that holds each statement of an actor back until it has a permit.
//!
//! It reads the frontend/backend protocol 3 as far as it must (PostgreSQL manual, "Message Formats"): a batch of
//! frontend messages ends with Sync or is one simple query, and its answer ends with `ReadyForQuery`. A batch that
//! executes nothing (sqlx prepares a statement in a batch of its own) passes; so does BEGIN, which takes no snapshot
//! and no lock, and ROLLBACK: sqlx queues it when a transaction is dropped, and the actor may wait for the locks it frees.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{oneshot, watch};

use crate::postgres_proxy;

/// Length of a message's type and size, bytes.
const HEADER_BYTES: usize = 5;
/// A statement is shown up to this length, characters.
const SHOWN_CHARS: usize = 110;

/// A connection of one actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    /// Whose it is.
    pub actor: usize,
    number: u32,
    /// Process id of its Postgres backend.
    pub pid: i32,
}

/// What the controller hears.
#[derive(Debug)]
pub enum Event {
    /// A statement waits for its permit.
    Waits { connection: ConnectionId, statement: String, permit: oneshot::Sender<()> },
    /// Postgres has answered a batch.
    Answered { connection: ConnectionId, is_in_transaction: bool },
    /// The connection is closed.
    Closed { connection: ConnectionId },
    /// The action of an actor has its answer.
    Finished { actor: usize, answer: String },
}

/// The proxy of one actor.
pub struct Gate {
    /// Its address, as DATABASE_URL.
    pub url: String,
    is_closed: watch::Sender<bool>,
}

struct Shared {
    actor: usize,
    is_closed: watch::Receiver<bool>,
    events: UnboundedSender<Event>,
    connections: AtomicU32,
}

impl Gate {
    /// Opens the proxy of an actor in front of that Postgres; its statements pass until it is closed.
    pub async fn new(database_url: &str, actor: usize, events: UnboundedSender<Event>) -> Self {
        let mut direct = reqwest::Url::parse(database_url).expect("DATABASE_URL is an address");
        // What is encrypted cannot be read.
        direct.query_pairs_mut().append_pair("sslmode", "disable");
        let (is_closed, seen) = watch::channel(false);
        let shared = Arc::new(Shared { actor, is_closed: seen, events, connections: AtomicU32::new(0) });
        let url = postgres_proxy::open(direct.as_str(), move |client, postgres| {
            let shared = Arc::clone(&shared);
            async move { connection(client, postgres, &shared).await }
        });
        Self { url: url.await, is_closed }
    }

    /// From now on statements wait for permits.
    pub fn close(&self) {
        self.is_closed.send_replace(true);
    }

    /// Statements pass, those that wait included.
    pub fn open(&self) {
        self.is_closed.send_replace(false);
    }
}

/// One message, with its header.
struct Message(Vec<u8>);

impl Message {
    fn kind(&self) -> u8 {
        self.0[0]
    }

    /// Its fields that are strings, from the beginning.
    fn strings(&self) -> impl Iterator<Item = String> {
        self.0[HEADER_BYTES..].split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

/// Messages of one side. Reading one can be given up and begun again: nothing is lost.
struct Messages {
    from: OwnedReadHalf,
    buffer: Vec<u8>,
}

impl Messages {
    fn of(from: OwnedReadHalf) -> Self {
        Self { from, buffer: Vec::new() }
    }

    /// The next; none when the side has closed.
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

    /// The first message of a client, which has no type.
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

/// Both sides of a connection.
struct Ends {
    client: Messages,
    to_client: OwnedWriteHalf,
    postgres: Messages,
    to_postgres: OwnedWriteHalf,
}

async fn connection(client: TcpStream, postgres: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let ((from_client, to_client), (from_postgres, to_postgres)) = (client.into_split(), postgres.into_split());
    let (client, postgres) = (Messages::of(from_client), Messages::of(from_postgres));
    let mut ends = Ends { client, to_client, postgres, to_postgres };
    let Some(pid) = sign_on(&mut ends).await? else { return Ok(()) };
    let number = shared.connections.fetch_add(1, Ordering::SeqCst);
    let connection = ConnectionId { actor: shared.actor, number, pid };
    let ended = serve(&mut ends, connection, shared).await;
    // Nobody hears it when the test is over.
    let _ = shared.events.send(Event::Closed { connection });
    ended
}

/// Passes everything on until Postgres waits for the first query; the backend's process id.
async fn sign_on(ends: &mut Ends) -> std::io::Result<Option<i32>> {
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

/// Batch after batch, until a side closes.
async fn serve(ends: &mut Ends, connection: ConnectionId, shared: &Shared) -> std::io::Result<()> {
    let mut prepared = HashMap::new();
    while let Some(batch) = next_batch(ends, &mut prepared).await? {
        if let Some(statement) = batch.statement.filter(|statement| !passes_freely(statement)) {
            permitted(connection, statement, shared).await;
        }
        ends.to_postgres.write_all(&batch.bytes).await?;
        loop {
            let Some(message) = ends.postgres.next().await? else { return Ok(()) };
            if message.kind() != b'Z' {
                ends.to_client.write_all(&message.0).await?;
                continue;
            }
            // Before the actor can go on.
            let is_in_transaction = message.0.get(HEADER_BYTES) != Some(&b'I');
            let _ = shared.events.send(Event::Answered { connection, is_in_transaction });
            ends.to_client.write_all(&message.0).await?;
            break;
        }
    }
    Ok(())
}

/// What neither takes a snapshot of rows that another actor writes, nor takes a lock that one waits for.
fn passes_freely(statement: &str) -> bool {
    const FREELY: [&str; 5] = ["BEGIN", "ROLLBACK", "SAVEPOINT ", "RELEASE ", "SET "];
    FREELY.iter().any(|beginning| statement.starts_with(beginning)) || is_of_own_key(statement)
}

/// The answer remembered for a request, by its idempotency key. Each action has a key of its own.
fn is_of_own_key(statement: &str) -> bool {
    let table = ["FROM ", "INSERT INTO ", "UPDATE "].iter().find_map(|word| statement.split_once(word));
    table.is_some_and(|(_, rest)| rest.starts_with("idempotency_keys "))
}

/// Frontend messages that are answered together.
struct Batch {
    bytes: Vec<u8>,
    /// What is executed, if anything is.
    statement: Option<String>,
}

async fn next_batch(ends: &mut Ends, prepared: &mut HashMap<String, String>) -> std::io::Result<Option<Batch>> {
    let (mut bytes, mut bound, mut statement) = (Vec::new(), None, None);
    loop {
        let Some(message) = ends.client.next().await? else { return Ok(None) };
        let mut strings = message.strings();
        match message.kind() {
            b'P' => drop(prepared.insert(strings.next().unwrap_or_default(), strings.next().unwrap_or_default())),
            b'B' => bound = strings.nth(1).and_then(|name| prepared.get(&name)).map(|sql| shown(sql)),
            b'E' => statement = statement.or(bound.take()),
            b'Q' => statement = strings.next().map(|sql| shown(&sql)),
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

/// A statement as it is shown to people: one line, and not all of a long one.
fn shown(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    words.join(" ").chars().take(SHOWN_CHARS).collect()
}

/// Waits until the statement may go, if the gate is closed.
async fn permitted(connection: ConnectionId, statement: String, shared: &Shared) {
    let mut is_closed = shared.is_closed.clone();
    if !*is_closed.borrow_and_update() {
        return;
    }
    let (permit, granted) = oneshot::channel();
    let _ = shared.events.send(Event::Waits { connection, statement, permit });
    tokio::select! {
        // A permit that is dropped is one: its controller is gone.
        _ = granted => {}
        _ = is_closed.changed() => {}
    }
}
