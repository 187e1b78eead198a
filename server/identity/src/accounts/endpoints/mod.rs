//! Endpoints of accounts.
//!
//! Sign-in, sign-out and password changes take no `Idempotency-Key`: their answers set cookies, which must not be
//! stored for a replay, and duplicates are harmless. All other writes take one.

mod password;
mod staff;
mod users;

pub use password::ResetIntent;
pub use users::Registration;
use utoipa_axum::router::OpenApiRouter;

use crate::IdentityState;

/// The routes of accounts, under `/api/v1`.
pub fn routes() -> OpenApiRouter<IdentityState> {
    OpenApiRouter::new().merge(users::routes()).merge(password::routes()).merge(staff::routes())
}
