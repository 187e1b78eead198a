//! Who sells at the counter of a show's theatre: they take seats for whoever stands in front of them, who waits in no room.

use std::time::Duration;

use domain::roles::Role;
use moka::future::Cache;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::AdmissionState;
use catalogue::Show;
use identity::accounts;

/// Whether somebody sells there is known for so long…
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// …of so many accounts and shows at a time.
const MAX_KNOWN: u64 = 50_000;
/// Accounts the database is asked about at once: those in a crowd that are signed in. Whoever comes beyond tries again.
const MAX_ASKED_ABOUT: usize = 8;

/// Which accounts sell where a show is.
pub(super) struct Sellers {
    known: Cache<(Uuid, Uuid), bool>,
    asking: Semaphore,
}

impl Default for Sellers {
    fn default() -> Self {
        Self {
            known: Cache::builder().max_capacity(MAX_KNOWN).time_to_live(KNOWN_FOR).build(),
            asking: Semaphore::new(MAX_ASKED_ABOUT),
        }
    }
}

/// Whether somebody is signed in who sells at the counter of the show's theatre. Of those who are not signed in nobody is
/// asked.
pub(super) async fn sells_there(state: &AdmissionState, show: &Show, account: Option<Uuid>) -> bool {
    let Some(account) = account else { return false };
    let sellers = &state.waiting_rooms.sellers;
    let asked = (account, show.id);
    if let Some(sells) = sellers.known.get(&asked).await {
        return sells;
    }
    let Ok(_turn) = sellers.asking.try_acquire() else { return false };
    let look = accounts::may_at(&state.pg, account, &show.theatre_id, &[Role::BoxOffice]);
    match sellers.known.try_get_with(asked, look).await {
        Ok(sells) => sells,
        Err(cause) => {
            tracing::debug!(%cause, "nobody can say who sells there: everybody waits");
            false
        }
    }
}
