//! Limits on open sockets of the live map: in all, of one address, and of one visitor.
//!
//! An idle socket is cheap, but their number is limited: without a limit per address one machine could take all of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::web::concurrency::{Concurrency, Slot};
use crate::web::{Code, Problem};

/// Sockets one replica serves at most.
const MAX_SOCKETS: usize = 20_000;
/// Sockets of one visitor at one time: as many tabs of shows.
const MAX_PER_VISITOR: usize = 30;
/// `Retry-After` of a refusal.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Open sockets, counted.
pub(super) struct Sockets {
    free: Arc<Semaphore>,
    /// Sockets of one address at most; 0: no limit, neither for visitors.
    per_address: usize,
    of_addresses: Concurrency,
    of_visitors: Concurrency,
}

/// A place of one socket, free again when it is dropped.
pub(super) struct Place {
    _counted: Option<[Slot; 2]>,
    _permit: OwnedSemaphorePermit,
}

impl Sockets {
    pub(super) fn new(per_address: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(MAX_SOCKETS)),
            per_address,
            of_addresses: Concurrency::default(),
            of_visitors: Concurrency::default(),
        }
    }

    /// The number of open sockets.
    pub(super) fn count(&self) -> usize {
        MAX_SOCKETS - self.free.available_permits()
    }

    /// A place for one more socket of this address and visitor.
    ///
    /// # Errors
    /// 429 when address or visitor has too many already, 503 when the replica has.
    pub(super) fn admit(&self, address: &str, visitor: &str) -> Result<Place, Problem> {
        let counted = if self.per_address == 0 { None } else { Some(self.count_for(address, visitor)?) };
        let full =
            |_| Problem::new(Code::Overloaded, "Too many people are watching right now. Please try again shortly.");
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(full)?;
        Ok(Place { _counted: counted, _permit: permit })
    }

    fn count_for(&self, address: &str, visitor: &str) -> Result<[Slot; 2], Problem> {
        let too_many = |detail| Problem::new(Code::TooManyAttempts, detail).with_retry_after(RETRY_AFTER);
        let of_address = self.of_addresses.take(address, self.per_address);
        let of_address = of_address.ok_or_else(|| too_many("Very many live maps are open in your network already."))?;
        let of_visitor = self.of_visitors.take(visitor, MAX_PER_VISITOR);
        let of_visitor =
            of_visitor.ok_or_else(|| too_many("You have very many live maps open. Please close some tabs."))?;
        Ok([of_address, of_visitor])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(place: Result<Place, Problem>) -> Option<Code> {
        place.err().map(|problem| problem.code())
    }

    #[test]
    fn an_address_and_a_visitor_have_so_many_and_a_closed_socket_makes_room() {
        let sockets = Sockets::new(40);
        let mut ann: Vec<Place> =
            (0..MAX_PER_VISITOR).map(|_| sockets.admit("here", "ann").expect("there is room")).collect();
        assert_eq!(code(sockets.admit("elsewhere", "ann")), Some(Code::TooManyAttempts), "the visitor has too many");
        let others: Vec<Place> =
            (0..10).map(|who| sockets.admit("here", &format!("{who}")).expect("there is room")).collect();
        assert_eq!(code(sockets.admit("here", "zoe")), Some(Code::TooManyAttempts), "the address has too many");
        assert_eq!(sockets.count(), MAX_PER_VISITOR + others.len());
        ann.pop();
        assert_eq!(code(sockets.admit("here", "zoe")), None);
        drop((ann, others));
        assert_eq!((sockets.count(), sockets.of_addresses.callers(), sockets.of_visitors.callers()), (0, 0, 0));
    }

    #[test]
    fn without_a_limit_no_socket_is_counted() {
        let sockets = Sockets::new(0);
        let open: Vec<Place> = (0..100).map(|_| sockets.admit("here", "ann").expect("there is room")).collect();
        assert_eq!((sockets.count(), sockets.of_visitors.callers()), (open.len(), 0));
    }
}
