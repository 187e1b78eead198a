//! Batched booking lookups, and the read transaction that lookups share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Connection as _, PgConnection};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::load::load_details;
use super::run::{BATCHES_ON_A_CONNECTION, Connection, too_slow};
use super::{BookingDetails, Commits, full};
use crate::SellingState;
use crate::bookings::checkout::checks::{self, Buyer, Record};
use http::{ApiResult, Problem};

/// Timeout of a lookup, connecting included. Shorter than the timeout of a buyer's checks (`checks`), so that the
/// server is free for the next lookups.
const WITHIN: Duration = Duration::from_secs(3);
/// Index scans only, as in `run`. A lookup has at most two statements, each limited to half the timeout: Postgres
/// stops abandoned work.
const BEGIN: &str = "BEGIN READ ONLY; SET LOCAL statement_timeout = '1500ms'; SET LOCAL enable_seqscan = off; \
                     SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

pub(super) struct Lookup {
    id: Uuid,
    owner: String,
    reply: oneshot::Sender<ApiResult<Option<BookingDetails>>>,
}

impl Commits {
    /// Returns the booking of that id if it is this owner's, read in a batch with other lookups.
    ///
    /// # Errors
    /// 503 when too many wait already, or the database is unavailable.
    pub(crate) async fn find_owned(
        &self,
        state: &SellingState,
        id: Uuid,
        owner: &str,
    ) -> ApiResult<Option<BookingDetails>> {
        let (reply, answer) = oneshot::channel();
        let lookup = Lookup { id, owner: owner.to_owned(), reply };
        // Boxed: a future that may connect to Postgres is kilobytes, and a task is moved several times.
        let start = || drop(state.tasks.spawn(Box::pin(serve(state.clone()))));
        self.lookups.add(lookup, start).map_err(|_| full())?;
        answer.await.map_err(|_| Problem::internal(&"a booking was not looked up"))?
    }
}

async fn serve(state: SellingState) {
    let mut worker = state.commits.lookups.worker();
    while let Some(wanted) = worker.next_batch().await {
        let ids: Vec<Uuid> = wanted.iter().map(|lookup| lookup.id).collect();
        match read(&state, &mut None, async |tx| load_details(tx, &ids).await).await {
            Ok(bookings) => {
                for lookup in wanted {
                    let theirs = bookings.get(&lookup.id).filter(|found| found.row.owner == lookup.owner);
                    // The caller may have gone.
                    drop(lookup.reply.send(Ok(theirs.cloned())));
                }
            }
            Err(problem) => wanted.into_iter().for_each(|lookup| drop(lookup.reply.send(Err(problem.clone())))),
        }
    }
}

/// Runs a read transaction on this connection, or on a new one that is kept there. A connection that failed is
/// closed, because a late answer on it belongs to no request.
///
/// # Errors
/// When the database does not answer in time, or fails.
pub(super) async fn read<T>(
    state: &SellingState,
    on: &mut Connection,
    question: impl AsyncFnOnce(&mut PgConnection) -> sqlx::Result<T>,
) -> ApiResult<T> {
    let asked = async {
        let connection = match on.take() {
            Some(connection) => on.insert(connection),
            None => on.insert(state.pg.acquire().await?),
        };
        let mut tx = connection.begin_with(BEGIN).await?;
        let answer = question(&mut tx).await?;
        tx.commit().await?;
        Ok::<_, sqlx::Error>(answer)
    };
    let answer = match tokio::time::timeout(WITHIN, asked).await {
        Ok(answer) => answer.map_err(Problem::from),
        Err(_) => {
            tracing::warn!("Postgres does not answer a lookup in time; its connection is closed");
            Err(too_slow())
        }
    };
    if answer.is_err() {
        on.iter_mut().for_each(PoolConnection::close_on_drop);
        *on = None;
    }
    answer
}

/// Returns the current bookings with seats and payments; those in this replica's cache are only compared by version.
///
/// # Errors
/// When the database does not answer in time, or fails.
pub(crate) async fn load_current(state: &SellingState, ids: &[Uuid]) -> ApiResult<HashMap<Uuid, BookingDetails>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let recent: Vec<Arc<BookingDetails>> = ids.iter().filter_map(|id| state.commits.recent.get(*id)).collect();
    let question = async |tx: &mut PgConnection| {
        let mut bookings = unchanged(tx, &recent).await?;
        let others: Vec<Uuid> = ids.iter().copied().filter(|id| !bookings.contains_key(id)).collect();
        if !others.is_empty() {
            bookings.extend(load_details(tx, &others).await?);
        }
        Ok(bookings)
    };
    read(state, &mut None, question).await
}

async fn unchanged(
    tx: &mut PgConnection,
    recent: &[Arc<BookingDetails>],
) -> sqlx::Result<HashMap<Uuid, BookingDetails>> {
    if recent.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<Uuid> = recent.iter().map(|found| found.row.id).collect();
    let versions: Vec<(Uuid, i32)> =
        sqlx::query_as("SELECT id, version FROM bookings WHERE id = ANY($1)").bind(&ids).fetch_all(tx).await?;
    let versions: HashMap<Uuid, i32> = versions.into_iter().collect();
    let stand = recent.iter().filter(|found| versions.get(&found.row.id) == Some(&found.row.version));
    Ok(stand.map(|found| (found.row.id, BookingDetails::clone(found))).collect())
}

pub(super) struct RecordLookup {
    buyer: Buyer,
    reply: oneshot::Sender<ApiResult<Record>>,
}

impl Commits {
    /// Returns a buyer's record, read in a batch with other lookups.
    ///
    /// # Errors
    /// 503 when too many wait already, or the database is unavailable.
    pub(crate) async fn record_of(&self, state: &SellingState, buyer: Buyer) -> ApiResult<Record> {
        let (reply, answer) = oneshot::channel();
        // Boxed, as in `lookups`.
        let start = || drop(state.tasks.spawn(Box::pin(serve_records(state.clone()))));
        self.records.add(RecordLookup { buyer, reply }, start).map_err(|_| full())?;
        answer.await.map_err(|_| Problem::internal(&"a buyer's record was not looked up"))?
    }
}

async fn serve_records(state: SellingState) {
    // Kept from batch to batch, as in `run`.
    let (mut on, mut rounds) = (None, 0_u32);
    let mut worker = state.commits.records.worker();
    while let Some(questions) = worker.next_batch().await {
        rounds += 1;
        if rounds.is_multiple_of(BATCHES_ON_A_CONNECTION) {
            on = None;
        }
        let buyers: Vec<&Buyer> = questions.iter().map(|question| &question.buyer).collect();
        let question = async |tx: &mut PgConnection| checks::records(tx, &buyers, state.clock.now()).await;
        let read = read(&state, &mut on, question);
        // A caller may have gone: the lookup may be repeated at will.
        match read.await {
            Ok(records) => {
                assert_eq!(records.len(), questions.len(), "a record each");
                questions.into_iter().zip(records).for_each(|(asked, record)| drop(asked.reply.send(Ok(record))));
            }
            Err(problem) => questions.into_iter().for_each(|asked| drop(asked.reply.send(Err(problem.clone())))),
        }
    }
}
