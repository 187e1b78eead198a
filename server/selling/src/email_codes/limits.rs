//! Rate limits of mailed codes: per recipient, per visitor, per network address.

use crate::SellingState;
use http::{ClientAddress, Problem};
use platform::rate_limits::Allowance;

/// Limit per visitor: 8 codes in the busiest hour.
const VISITOR: Allowance = Allowance { name: "code-visitor", burst: 4, each_ms: 900_000 };
/// Limit per recipient, from all visitors: 12 codes in the busiest hour. More than one visitor's limit, so that one
/// visitor cannot exhaust it; few, so that with five tries each a guesser is right once in 16,000 hours.
const PERSON: Allowance = Allowance { name: "code-person", burst: 6, each_ms: 600_000 };
/// Limit per network address: a household, or an office behind one.
const ADDRESS: Allowance = Allowance { name: "code-address", burst: 60, each_ms: 10_000 };

/// Counts a code for this visitor, recipient (by normalized address) and network address. The narrowest limit comes
/// first, so that a visitor above it consumes nothing of the shared limits.
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
