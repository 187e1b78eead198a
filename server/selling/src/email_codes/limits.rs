//! How many codes are mailed: to one person, for one visitor, for an address of the network.

use crate::SellingState;
use http::{ClientAddress, Problem};
use platform::rate_limits::Allowance;

/// Codes for one visitor: 8 in the busiest hour.
const VISITOR: Allowance = Allowance { name: "code-visitor", burst: 4, each_ms: 900_000 };
/// Codes mailed to one person, whoever asks for them: 12 in the busiest hour. More than one visitor's, so that nobody is
/// shut out by one other; few, so that with five tries each a guesser is right once in 16,000 hours.
const PERSON: Allowance = Allowance { name: "code-person", burst: 6, each_ms: 600_000 };
/// Codes asked for from an address: a household, or an office behind one.
const ADDRESS: Allowance = Allowance { name: "code-address", burst: 60, each_ms: 10_000 };

/// Counts a code that this visitor wants mailed to that person, by their address as it is looked up. The narrow bucket
/// first: whoever has used it up takes nothing from others.
///
/// # Errors
/// 429.
pub(super) async fn count(
    state: &SellingState,
    visitor: &str,
    person: &str,
    address: &ClientAddress,
) -> Result<(), Problem> {
    state.rate_limits.take(&VISITOR, visitor).await?;
    state.rate_limits.take(&ADDRESS, &address.0).await?;
    Ok(state.rate_limits.take(&PERSON, person).await?)
}
