//! Limits on open sockets of the live map: in total, per network, per address and per visitor.
//!
//! An idle socket is cheap, but their number is limited. Without a limit per address, one machine could take all of it;
//! without one per network, so could the owner of an IPv6 /48, who has 65,536 addresses as they are counted.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use http::concurrency::{Concurrency, ConcurrencySlot};
use http::{ApiResult, ClientAddress, Code, Problem};

/// Maximum of open sockets on one replica.
pub const MAX_SOCKETS: usize = 20_000;
/// Maximum of open sockets of one visitor: one per tab with a show.
const MAX_PER_VISITOR: usize = 30;
/// The limit of a network, as a multiple of the limit of one address.
const ADDRESSES_PER_NETWORK: usize = 16;
/// Maximum of open sockets of one network, so that half of the replica's stay for others.
const MAX_PER_NETWORK: usize = MAX_SOCKETS / 2;
/// `Retry-After` of a refusal.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Counters of open sockets.
pub(super) struct Sockets {
    free: Arc<Semaphore>,
    /// Maximum of open sockets of one address; 0 turns off all limits but the total.
    per_address: usize,
    of_networks: Concurrency,
    of_addresses: Concurrency,
    of_visitors: Concurrency,
}

/// The slot of one socket, released on drop.
pub(super) struct SocketSlot {
    _counted: Option<[ConcurrencySlot; 3]>,
    _permit: OwnedSemaphorePermit,
}

impl Sockets {
    pub(super) fn new(per_address: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(MAX_SOCKETS)),
            per_address,
            of_networks: Concurrency::default(),
            of_addresses: Concurrency::default(),
            of_visitors: Concurrency::default(),
        }
    }

    pub(super) fn count(&self) -> usize {
        MAX_SOCKETS - self.free.available_permits()
    }

    /// Takes a slot for one more socket of this address and visitor.
    ///
    /// # Errors
    /// 429 if the network, address or visitor is at its limit, 503 if the replica is.
    pub(super) fn admit(&self, address: &ClientAddress, visitor: &str) -> ApiResult<SocketSlot> {
        let counted = if self.per_address == 0 { None } else { Some(self.count_for(address, visitor)?) };
        let full =
            |_| Problem::new(Code::Overloaded, "Too many people are watching right now. Please try again shortly.");
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(full)?;
        Ok(SocketSlot { _counted: counted, _permit: permit })
    }

    /// The limit of one network, at least that of one address.
    fn network_limit(&self) -> usize {
        (self.per_address * ADDRESSES_PER_NETWORK).min(MAX_PER_NETWORK).max(self.per_address)
    }

    fn count_for(&self, address: &ClientAddress, visitor: &str) -> ApiResult<[ConcurrencySlot; 3]> {
        let too_many = |detail| Problem::new(Code::TooManyAttempts, detail).with_retry_after(RETRY_AFTER);
        let in_network = || too_many("Very many live maps are open in your network already.");
        let of_network = self.of_networks.take(&address.network(), self.network_limit()).ok_or_else(in_network)?;
        let of_address = self.of_addresses.take(&address.0, self.per_address).ok_or_else(in_network)?;
        let of_visitor = self.of_visitors.take(visitor, MAX_PER_VISITOR);
        let of_visitor =
            of_visitor.ok_or_else(|| too_many("You have very many live maps open. Please close some tabs."))?;
        Ok([of_network, of_address, of_visitor])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(place: ApiResult<SocketSlot>) -> Option<Code> {
        place.err().map(|problem| problem.code())
    }

    fn at(address: &str) -> ClientAddress {
        ClientAddress(address.to_owned())
    }

    #[test]
    fn an_address_and_a_visitor_at_their_limit_are_refused_until_a_socket_closes() {
        let sockets = Sockets::new(40);
        let mut ann: Vec<SocketSlot> =
            (0..MAX_PER_VISITOR).map(|_| sockets.admit(&at("here"), "ann").expect("there is room")).collect();
        assert_eq!(
            code(sockets.admit(&at("elsewhere"), "ann")),
            Some(Code::TooManyAttempts),
            "the visitor has too many"
        );
        let others: Vec<SocketSlot> =
            (0..10).map(|who| sockets.admit(&at("here"), &format!("{who}")).expect("there is room")).collect();
        assert_eq!(code(sockets.admit(&at("here"), "zoe")), Some(Code::TooManyAttempts), "the address has too many");
        assert_eq!(sockets.count(), MAX_PER_VISITOR + others.len());
        ann.pop();
        assert_eq!(code(sockets.admit(&at("here"), "zoe")), None);
        drop((ann, others));
        assert_eq!((sockets.count(), sockets.of_addresses.callers(), sockets.of_visitors.callers()), (0, 0, 0));
    }

    #[test]
    fn a_network_with_very_many_addresses_leaves_sockets_for_others() {
        let sockets = Sockets::new(500);
        let of_household = |number: usize| at(&format!("2001:db8:1:{number:x}::/64"));
        let admit = |number: usize| sockets.admit(&of_household(number), &format!("{number}"));
        let mut open: Vec<SocketSlot> =
            (0..500 * ADDRESSES_PER_NETWORK).map(|n| admit(n).expect("there is room")).collect();
        assert_eq!(code(admit(9_999)), Some(Code::TooManyAttempts), "the network has too many");
        assert_eq!(code(sockets.admit(&at("2001:db8:2:0::/64"), "ann")), None, "another network");
        open.pop();
        assert_eq!(code(admit(9_999)), None);
        drop(open);
        assert_eq!((sockets.count(), sockets.of_networks.callers()), (0, 0));
        let of_network = |per_address| Sockets::new(per_address).network_limit();
        assert_eq!(
            (of_network(2_000), of_network(15_000)),
            (MAX_SOCKETS / 2, 15_000),
            "others keep half, unless one address may have more"
        );
    }

    #[test]
    fn without_a_limit_per_address_only_the_total_is_counted() {
        let sockets = Sockets::new(0);
        let open: Vec<SocketSlot> =
            (0..100).map(|_| sockets.admit(&at("here"), "ann").expect("there is room")).collect();
        assert_eq!((sockets.count(), sockets.of_visitors.callers()), (open.len(), 0));
    }
}
