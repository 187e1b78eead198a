//! How many join waiting lists from one address of the network, and how often the address of one offer is pressed.

use uuid::Uuid;

use crate::SellingState;
use http::{ClientAddress, Problem};
use platform::rate_limits::Allowance;

/// Presses of the button of one offer's mail, from all devices: each locks the entry and asks the lock store.
const TAKE_OFFER: Allowance = Allowance { name: "waiting-list-offer", burst: 10, each_ms: 6_000 };

/// From an address of which so many tries for seats a minute may come: a tenth of these in a row, then a hundredth a
/// minute; `None`: nobody counts. One visitor is in a few lists at most anyhow.
fn of_address(tries_a_minute: u32) -> Option<Allowance> {
    let each_ms = 6_000_000_i64.checked_div(i64::from(tries_a_minute))?;
    Some(Allowance { name: "waiting-list-address", burst: (tries_a_minute / 10).max(1), each_ms })
}

/// Counts somebody who wants to join from this address.
///
/// # Errors
/// 429.
pub(super) async fn count(state: &SellingState, address: &ClientAddress) -> Result<(), Problem> {
    match of_address(state.admission_settings.holds_per_address_min) {
        Some(of) => Ok(state.rate_limits.take(&of, &address.0).await?),
        None => Ok(()),
    }
}

/// Whoever was counted did not join: it does not count.
pub(super) async fn give_back(state: &SellingState, address: &ClientAddress) {
    if let Some(of) = of_address(state.admission_settings.holds_per_address_min) {
        state.rate_limits.give_back(&of, &address.0).await;
    }
}

/// Counts a visitor who wants to take the offer of this entry over.
///
/// # Errors
/// 429.
pub(super) async fn count_taking(state: &SellingState, entry: Uuid) -> Result<(), Problem> {
    Ok(state.rate_limits.take(&TAKE_OFFER, &entry.to_string()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_join_waiting_lists_as_an_address_may_try_for_seats() {
        let of = |tries| of_address(tries).map(|of| (of.burst, of.each_ms));
        assert_eq!(of(1_200), Some((120, 5_000)));
        assert_eq!(of(1), Some((1, 6_000_000)), "somebody may join");
        assert_eq!(of(60_000), Some((6_000, 100)));
        assert_eq!(of(0), None);
    }
}
