//! The check that a guest's cookie still opens its visitor.

use http::Problem;

use crate::{IdentityState, Visitor};

/// Whether the caller is the visitor their cookie names: always with a session.
///
/// A visitor who was handed over to an account is opened by a session of it alone: the cookie they had as a guest may
/// have been set in that browser by somebody who kept a copy.
///
/// # Errors
/// When the database fails.
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

/// Refuses a caller who is not the visitor their cookie names ([`is_own_visitor`]).
///
/// # Errors
/// 404, as for any booking of another's; or when the database fails.
pub async fn refuse_handed_over(state: &IdentityState, visitor: &Visitor) -> Result<(), Problem> {
    if is_own_visitor(state, visitor).await? { Ok(()) } else { Err(Problem::not_found("booking")) }
}
