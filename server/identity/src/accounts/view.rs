//! Views of an account.

use domain::api::accounts::{AccountView, GrantView};
use sqlx::PgConnection;
use uuid::Uuid;

use super::sql;
use crate::IdentityState;
use http::Problem;

/// Returns the account of an id; `None` when it is closed.
pub async fn of_account(tx: &mut PgConnection, id: Uuid) -> Result<Option<AccountView>, sqlx::Error> {
    let Some(account) = sql::by_id(tx, id).await? else { return Ok(None) };
    let grants = sql::grants::of_account(tx, id).await?;
    Ok(Some(AccountView {
        id,
        name: account.name,
        email: account.email,
        email_proven: account.email_proven_at.is_some(),
        grants: grants.into_iter().map(|(theatre, role)| GrantView { theatre, role }).collect(),
    }))
}

/// Returns the name and address of the signed-in account, to prefill forms.
pub async fn name_and_address(
    state: &IdentityState,
    account: Option<Uuid>,
) -> Result<Option<(String, String)>, Problem> {
    let Some(id) = account else { return Ok(None) };
    let found = sql::by_id(&mut *state.pg.acquire().await?, id).await?;
    Ok(found.map(|account| (account.name, account.email)))
}

/// Returns `true` when this account is open and its address is proven.
pub async fn has_proven_address(tx: &mut PgConnection, id: Uuid) -> Result<bool, sqlx::Error> {
    Ok(sql::by_id(tx, id).await?.is_some_and(|account| account.email_proven_at.is_some()))
}
