//! Checks that a guest's cookie still gives access to its visitor.

use http::Problem;

use crate::{IdentityState, Visitor};

/// Returns `true` when the cookie gives access to its visitor; always with a session.
///
/// A visitor that was handed over to an account is accessible only by a session of that account: another person may
/// have set the guest cookie in this browser and kept a copy.
pub async fn is_own_visitor(state: &IdentityState, visitor: &Visitor) -> Result<bool, Problem> {
    if visitor.account.is_some() {
        return Ok(true);
    }
    let is_handed_over: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM account_visitors WHERE owner = $1)")
        .bind(&visitor.owner)
        .fetch_one(&state.pg)
        .await?;
    Ok(!is_handed_over)
}

/// Refuses a caller without access to the visitor of their cookie ([`is_own_visitor`]).
///
/// # Errors
/// 404, as for other visitors' bookings; or when the database fails.
pub async fn refuse_handed_over(state: &IdentityState, visitor: &Visitor) -> Result<(), Problem> {
    if is_own_visitor(state, visitor).await? { Ok(()) } else { Err(Problem::not_found("booking")) }
}
