//! Refusals that many routes share, for the API description: named in `responses(…)` of `utoipa::path`, beside the route's
//! own. `problem/codes.rs` defines the codes; `authorisation.rs` decides who is refused.

use domain::api::ProblemView;
use utoipa::IntoResponses;

/// For callers who are not signed in, or have another role in this theatre.
#[derive(IntoResponses)]
pub enum NotStaff {
    /// 401.
    #[response(status = 401, description = "not_signed_in")]
    NotSignedIn(ProblemView),
    /// 403.
    #[response(status = 403, description = "not_allowed")]
    NotAllowed(ProblemView),
}

/// The same where programs with a key of the theatre may call as well.
#[derive(IntoResponses)]
pub enum NotStaffNorProgram {
    /// 401.
    #[response(status = 401, description = "not_signed_in, token_invalid")]
    NotSignedIn(ProblemView),
    /// 403.
    #[response(status = 403, description = "not_allowed")]
    NotAllowed(ProblemView),
}

/// To who works in another theatre: for them there is nothing here.
#[derive(IntoResponses)]
#[response(status = 404, description = "Also for another theatre's staff")]
pub struct OtherTheatre(pub ProblemView);

/// To a key that came with another request before.
#[derive(IntoResponses)]
#[response(status = 422, description = "key_reused")]
pub struct KeyReused(pub ProblemView);
