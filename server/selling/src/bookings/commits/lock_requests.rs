//! Requests of sales to the lock store, batched by show: one call costs several times as much as one request
//! in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::booking::PAYMENT_EXTENSION_MS;
use domain::time::Timestamp;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{Commits, full};
use crate::SellingState;
use catalogue::Show;
use http::{ApiResult, Problem};
use seats::seat_locks::{FencedSelection, MAX_PER_CALL, Refusal, StoredHold, with_map};

type Reply<T> = oneshot::Sender<ApiResult<T>>;

/// A request to the lock store, waiting in its queue.
pub(super) struct LockRequest {
    show: Arc<Show>,
    asked: LockQuery,
}

enum LockQuery {
    /// Reads the owner's hold.
    CurrentHold { owner: String, reply: Reply<Option<StoredHold>> },
    /// Begins the payment of one sale.
    BeginPayment { sale: FencedSelection, reply: Reply<Result<Timestamp, Refusal>> },
}

impl Commits {
    /// Returns the owner's hold in this show, as [`seats::seat_locks::SeatLocks::hold_of`] does.
    pub(crate) async fn hold_of(
        &self,
        state: &SellingState,
        show: &Arc<Show>,
        owner: &str,
    ) -> ApiResult<Option<StoredHold>> {
        let (reply, answer) = oneshot::channel();
        self.run(state, show, LockQuery::CurrentHold { owner: owner.to_owned(), reply })?;
        answer.await.map_err(|_| Problem::internal(&"a hold was not looked up"))?
    }

    /// Extends the hold of a payment, as [`seats::seat_locks::SeatLocks::begin_payment`] does.
    pub(crate) async fn begin_payment(
        &self,
        state: &SellingState,
        show: &Arc<Show>,
        sale: FencedSelection,
    ) -> ApiResult<Result<Timestamp, Refusal>> {
        let (reply, answer) = oneshot::channel();
        self.run(state, show, LockQuery::BeginPayment { sale, reply })?;
        answer.await.map_err(|_| Problem::internal(&"a hold was not extended"))?
    }

    fn run(&self, state: &SellingState, show: &Arc<Show>, asked: LockQuery) -> ApiResult<()> {
        let request = LockRequest { show: Arc::clone(show), asked };
        let start = || drop(state.tasks.spawn(serve(state.clone())));
        self.lock_requests.add(request, start).map_err(|_| full())
    }
}

struct ShowRequests {
    show: Arc<Show>,
    owners: Vec<String>,
    holds: Vec<Reply<Option<StoredHold>>>,
    sales: Vec<FencedSelection>,
    payments: Vec<Reply<Result<Timestamp, Refusal>>>,
}

async fn serve(state: SellingState) {
    let mut worker = state.commits.lock_requests.worker();
    while let Some(lock_requests) = worker.next_batch().await {
        assert!(lock_requests.len() <= MAX_PER_CALL, "a batch is no larger than a call");
        let mut shows: BTreeMap<Uuid, ShowRequests> = BTreeMap::new();
        for LockRequest { show, asked } in lock_requests {
            let of_show = shows.entry(show.id).or_insert_with(|| ShowRequests {
                show,
                owners: Vec::new(),
                holds: Vec::new(),
                sales: Vec::new(),
                payments: Vec::new(),
            });
            match asked {
                LockQuery::CurrentHold { owner, reply } => {
                    of_show.owners.push(owner);
                    of_show.holds.push(reply);
                }
                LockQuery::BeginPayment { sale, reply } => {
                    of_show.sales.push(sale);
                    of_show.payments.push(reply);
                }
            }
        }
        // In parallel: a Cluster shard that is down must not delay shows of other shards for long.
        futures::future::join_all(shows.into_values().map(|of_show| ask(&state, of_show))).await;
    }
}

async fn ask(state: &SellingState, asked: ShowRequests) {
    let ShowRequests { show, owners, holds, sales, payments } = asked;
    if !owners.is_empty() {
        send_replies(holds, with_map(state, &show, || state.locks.holds_of(show.id, &owners)).await);
    }
    if !sales.is_empty() {
        let begun = with_map(state, &show, || state.locks.begin_payments(show.id, &sales, PAYMENT_EXTENSION_MS));
        send_replies(payments, begun.await);
    }
}

/// Sends each caller its answer. A caller that has gone is ignored: both requests may be repeated.
fn send_replies<T>(replies: Vec<Reply<T>>, answers: ApiResult<Vec<T>>) {
    match answers {
        Ok(answers) => {
            assert_eq!(answers.len(), replies.len(), "an answer each");
            replies.into_iter().zip(answers).for_each(|(reply, answer)| drop(reply.send(Ok(answer))));
        }
        Err(problem) => replies.into_iter().for_each(|reply| drop(reply.send(Err(problem.clone())))),
    }
}
