//! The state of this crate's endpoints and background work.

use std::sync::Arc;

use crate::live::Hubs;
use crate::seat_locks::{ComparedShows, LockQueue, SeatLocks, SweptShows};
use http::HttpState;
use identity::IdentityState;

/// State of this crate: identity, the lock store and the hubs. Cheap to clone.
#[derive(Clone)]
pub struct SeatsState(Arc<SeatsParts>);

/// The parts of [`SeatsState`].
pub struct SeatsParts {
    /// The state of the crate above.
    pub identity_state: IdentityState,
    /// The lock store.
    pub locks: Arc<dyn SeatLocks>,
    /// Attempts that wait for the lock store.
    pub lock_queue: LockQueue,
    /// Shows whose map this replica has compared with the claims.
    pub compared_shows: ComparedShows,
    /// Shows whose holds this replica sweeps.
    pub watched: SweptShows,
    /// Live maps, one hub a show.
    pub hubs: Hubs,
}

platform::shared_state!(SeatsState(SeatsParts), identity_state: IdentityState, HttpState, IdentityState);
