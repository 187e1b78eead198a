//! The check for a verified address before checkout, in shows that require codes.

use super::{PROVEN_MS, sql};
use crate::SellingState;
use catalogue::Show;
use http::{Code, Problem};
use identity::{Visitor, accounts};

/// Refuses a guest who has not verified this address recently. An account with a verified address needs no
/// code, whichever address it buys for.
///
/// # Errors
/// 403 `email_code_wanted`.
pub async fn check(state: &SellingState, show: &Show, visitor: &Visitor, email: &str) -> Result<(), Problem> {
    if !show.email_code {
        return Ok(());
    }
    // Boxed: connecting takes kilobytes, which every checkout would carry along, and few shows require codes.
    let mut connection = Box::pin(state.pg.acquire()).await?;
    if let Some(account) = visitor.account
        && accounts::has_proven_address(&mut connection, account).await?
    {
        return Ok(());
    }
    let since = state.clock.now().plus_ms(-PROVEN_MS);
    if sql::is_proven(&mut connection, &visitor.owner, &accounts::normalise_address(email), since).await? {
        return Ok(());
    }
    let detail =
        "This show asks for a code before checkout. We mail it to your address; your seats stay yours meanwhile.";
    Err(Problem::new(Code::EmailCodeWanted, detail))
}
