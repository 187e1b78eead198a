//! The connection to Postgres is cut or goes silent during a sale: the commit's outcome is unknown, and each buyer
//! still ends with one ticket and one charge.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::commits::{SLOW_GATHER, with_holds};
use crate::postgres_process::open_proxy;
use crate::prelude::*;

/// A token that pays, and whose gateway repeats its webhook later.
const PAID: &str = "tok_late_webhook";
const BUYERS: u32 = 4;
/// Text in the statement that submits payments…
const SUBMISSION: &str = "payment_submitted";
/// …and in the one that records their success.
const SUCCESS: &str = "payment_succeeded";
/// More buyers than concurrent lookups are served.
const LOOKUPS: u32 = 4;
/// Text in the lookup of a buyer's record: their address.
const RECORD: &str = "ann@example.org";

async fn world_behind_proxy(settings: &[(&str, &str)]) -> (World, PostgresProxy) {
    let mut world = World::start(0, settings).await;
    let proxy = PostgresProxy::open(world.database_url()).await;
    world.add_server(&[("DATABASE_URL", &proxy.url)]).await;
    (world, proxy)
}

/// A buyer's payment: of a booking by `/confirm`, or of a hold in one request.
struct PendingPayment {
    buyer: Visitor,
    path: String,
    body: Value,
}

impl PendingPayment {
    fn at_once(buyer: Visitor, hold: &Value) -> Self {
        let body = buyer.purchase_body(hold, Some(PAID));
        Self { path: "/api/v1/bookings".to_owned(), body, buyer }
    }

    async fn after_checkout(buyer: Visitor, hold: &Value) -> Self {
        let booking = expect_answer(buyer.book(hold).await, StatusCode::CREATED);
        let path = format!("/api/v1/bookings/{}/confirm", text(&booking["id"]));
        Self { path, body: json!({ "payment_token": PAID }), buyer }
    }

    async fn send(&self) -> (StatusCode, Value) {
        self.buyer.call_with_key(Method::POST, &self.path, self.body.clone(), "k").await
    }

    async fn wait_until_sold(&self) {
        wait_until("the same request is answered", || async { self.send().await.0.is_success() }).await;
        let (_, booking) = self.send().await;
        self.buyer.wait_for_booking(&booking, "CONFIRMED").await;
    }
}

/// This many buyers who are about to pay, every other one for a booking.
async fn orders(world: &World, count: u32) -> Vec<PendingPayment> {
    let mut orders = Vec::new();
    for (number, (buyer, hold)) in with_holds(world, count).await.into_iter().enumerate() {
        orders.push(match number % 2 {
            0 => PendingPayment::at_once(buyer, &hold),
            _ => PendingPayment::after_checkout(buyer, &hold).await,
        });
    }
    orders
}

/// Buyers pay concurrently, and the first transaction with this text gets this fault. They retry with the same key
/// until they succeed.
async fn assert_sold_once_despite(fault: ConnectionFault, words: &'static str) {
    let (world, proxy) = world_behind_proxy(&[SLOW_GATHER]).await;
    let orders = orders(&world, BUYERS).await;
    proxy.fail_next(1, fault, words);
    let answers = join_all(orders.iter().map(PendingPayment::send)).await;
    assert_eq!(proxy.failed_connections(), 1, "{answers:?}");
    // Buyers in another batch get an ordinary answer.
    let is_refused = |(status, _): &&(StatusCode, Value)| !status.is_success();
    let refused: Vec<_> = answers.iter().filter(is_refused).collect();
    assert!(!refused.is_empty(), "no request was refused although its outcome is unknown: {answers:?}");
    for (status, refusal) in refused {
        let code = text(&refusal["code"]);
        assert!(matches!((status.as_u16(), code), (503, "database_unavailable") | (409, "still_running")), "{refusal}");
    }
    for order in &orders {
        order.wait_until_sold().await;
    }
    let sold = i64::from(BUYERS);
    assert_eq!(world.count("SELECT count(*) FROM payments").await, sold, "one payment each");
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, sold);
    world.wait_until_books_balance().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn submission_cut_before_its_commit_is_not_recorded() {
    assert_sold_once_despite(ConnectionFault::CutBeforeCommit, SUBMISSION).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn submission_committed_without_an_answer_is_found() {
    assert_sold_once_despite(ConnectionFault::CutAfterCommit, SUBMISSION).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn success_cut_before_its_commit_is_recorded_later() {
    assert_sold_once_despite(ConnectionFault::CutBeforeCommit, SUCCESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn success_committed_without_an_answer_is_found() {
    assert_sold_once_despite(ConnectionFault::CutAfterCommit, SUCCESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unanswered_lookups_do_not_delay_later_buyers() {
    let (world, proxy) = world_behind_proxy(&[]).await;
    let mut orders: Vec<_> = orders(&world, LOOKUPS + 1).await.into_iter().map(Arc::new).collect();
    let late = orders.pop().expect("one buyer");
    proxy.fail_next(u32::MAX, ConnectionFault::Silence, RECORD);
    let mut sent = Vec::new();
    for order in &orders {
        let (failed_connections, order) = (proxy.failed_connections(), Arc::clone(order));
        let waits = tokio::spawn(async move { order.send().await });
        wait_until("lookups hang, and no lookup worker is free", || async {
            proxy.failed_connections() > failed_connections || waits.is_finished()
        })
        .await;
        sent.push(waits);
    }
    proxy.stop_faults();
    late.wait_until_sold().await;
    for waits in sent {
        let (status, refusal) = waits.await.expect("the task ends");
        let code = text(&refusal["code"]);
        assert!(matches!((status.as_u16(), code), (503, "database_unavailable" | "overloaded")), "{refusal}");
    }
    for order in orders {
        order.wait_until_sold().await;
    }
    world.wait_until_books_balance().await;
}

const CHUNK_BYTES: usize = 16 * 1024;
/// The end of a transaction: in sqlx's query, and in Postgres' answer.
const COMMIT: &[u8] = b"COMMIT\0";
/// Postgres waits for a query, and no transaction is open (PostgreSQL manual, message `ReadyForQuery`).
const IDLE: &[u8] = b"Z\0\0\0\x05I";

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

pub struct PostgresProxy {
    pub url: String,
    shared: Arc<ProxyState>,
}

impl PostgresProxy {
    pub async fn open(database_url: &str) -> Self {
        let shared = Arc::<ProxyState>::default();
        let to_all = Arc::clone(&shared);
        let url = open_proxy(database_url, move |client, postgres| pass(client, postgres, Arc::clone(&to_all)));
        Self { url: url.await, shared }
    }

    /// The next `connections` connections that send this text get this fault.
    pub fn fail_next(&self, connections: u32, fault: ConnectionFault, words: &'static str) {
        let armed = ArmedFault { fault, words, left: connections };
        *self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner) = Some(armed);
    }

    pub fn stop_faults(&self) {
        *self.shared.armed.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

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

async fn wait_for_commit(postgres: &mut TcpStream, chunk: &mut [u8]) -> std::io::Result<()> {
    let mut answer = Vec::new();
    while !answer.windows(COMMIT.len()).any(|words| words == COMMIT) {
        let read = postgres.read(chunk).await?;
        assert!(read > 0, "Postgres has closed the connection instead of committing");
        answer.extend_from_slice(&chunk[..read]);
    }
    Ok(())
}
