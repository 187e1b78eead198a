//! Endpoints of accounts.
//!
//! Signing in, out, and changing a password take no `Idempotency-Key`: their answers set cookies, which are not kept
//! to be given again, and doing them twice does no harm. All else that changes something takes one.

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
