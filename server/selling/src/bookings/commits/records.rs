//! Buyers' records, looked up in batches: every sale needs one, and almost no buyer has one.

use sqlx::PgConnection;
use tokio::sync::oneshot;

use super::run::BATCHES_ON_A_CONNECTION;
use super::{Commits, full, lookups};
use crate::SellingState;
use crate::bookings::checkout::checks::{self, Buyer, Record};
use http::Problem;

/// A lookup of one buyer's record.
pub(super) struct RecordLookup {
    buyer: Buyer,
    reply: oneshot::Sender<Result<Record, Problem>>,
}

impl Commits {
    /// Returns a buyer's record, read in a batch with other lookups.
    ///
    /// # Errors
    /// 503 when too many wait already, or the database is unavailable.
    pub(crate) async fn record_of(&self, state: &SellingState, buyer: Buyer) -> Result<Record, Problem> {
        let (reply, answer) = oneshot::channel();
        // Boxed, as in `lookups`.
        let start = || drop(state.tasks.spawn(Box::pin(serve(state.clone()))));
        self.records.add(RecordLookup { buyer, reply }, start).map_err(|_| full())?;
        answer.await.map_err(|_| Problem::internal(&"a buyer's record was not looked up"))?
    }
}

/// Serves lookups until the queue is empty.
async fn serve(state: SellingState) {
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
        let read = lookups::read(&state, &mut on, question);
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
