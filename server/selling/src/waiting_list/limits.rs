//! Rate limits of joins per network address, and of take-overs per offer.

use uuid::Uuid;

use crate::SellingState;
use http::{ClientAddress, Problem};
use platform::rate_limits::Allowance;

/// Rate limit of take-overs of one offer, from all devices: each locks the entry and calls the lock store.
const TAKE_OFFER: Allowance = Allowance { name: "waiting-list-offer", burst: 10, each_ms: 6_000 };

/// Derives the limit of joins from the address's limit of seat requests per minute: a tenth as burst, then a
/// hundredth a minute; `None`: unlimited. One visitor is in a few lists at most anyway.
fn of_address(tries_a_minute: u32) -> Option<Allowance> {
    let each_ms = 6_000_000_i64.checked_div(i64::from(tries_a_minute))?;
    Some(Allowance { name: "waiting-list-address", burst: (tries_a_minute / 10).max(1), each_ms })
}

/// Counts a join from this address.
///
/// # Errors
/// 429.
pub(super) async fn count(state: &SellingState, address: &ClientAddress) -> Result<(), Problem> {
    match of_address(state.admission_settings.holds_per_address_min) {
        Some(of) => Ok(state.rate_limits.take(&of, &address.0).await?),
        None => Ok(()),
    }
}

/// Returns the token of a join that failed.
pub(super) async fn return_token(state: &SellingState, address: &ClientAddress) {
    if let Some(of) = of_address(state.admission_settings.holds_per_address_min) {
        state.rate_limits.give_back(&of, &address.0).await;
    }
}

/// Counts a take-over of this entry's offer.
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
    fn the_join_limit_is_derived_from_the_seat_request_limit() {
        let of = |tries| of_address(tries).map(|of| (of.burst, of.each_ms));
        assert_eq!(of(1_200), Some((120, 5_000)));
        assert_eq!(of(1), Some((1, 6_000_000)), "one join is allowed");
        assert_eq!(of(60_000), Some((6_000, 100)));
        assert_eq!(of(0), None);
    }
}
