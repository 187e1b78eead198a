//! Accounts that sell at the counter of a show's theatre: they take seats for customers at the counter, without
//! waiting.

use std::time::Duration;

use domain::roles::Role;
use moka::future::Cache;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::AdmissionState;
use catalogue::Show;
use identity::accounts;

/// Time for which an answer is cached.
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// Maximum of cached answers, one per account and show.
const MAX_KNOWN: u64 = 50_000;
/// Maximum of concurrent queries, only for signed-in accounts; beyond it an account counts as no seller until its
/// retry.
const MAX_CONCURRENT_QUERIES: usize = 8;

/// A cache of the accounts that sell for a show.
pub(super) struct Sellers {
    known: Cache<(Uuid, Uuid), bool>,
    asking: Semaphore,
}

impl Default for Sellers {
    fn default() -> Self {
        Self {
            known: Cache::builder().max_capacity(MAX_KNOWN).time_to_live(KNOWN_FOR).build(),
            asking: Semaphore::new(MAX_CONCURRENT_QUERIES),
        }
    }
}

/// True if the account sells at the counter of the show's theatre. Visitors without an account cause no query.
pub(super) async fn is_seller(state: &AdmissionState, show: &Show, account: Option<Uuid>) -> bool {
    let Some(account) = account else { return false };
    let sellers = &state.waiting_rooms.sellers;
    let asked = (account, show.id);
    if let Some(sells) = sellers.known.get(&asked).await {
        return sells;
    }
    let Ok(_turn) = sellers.asking.try_acquire() else { return false };
    let query = accounts::may_at(&state.pg, account, &show.theatre_id, &[Role::BoxOffice]);
    match sellers.known.try_get_with(asked, query).await {
        Ok(sells) => sells,
        Err(cause) => {
            tracing::debug!(%cause, "read sellers of the theatre failed: the account must wait");
            false
        }
    }
}
