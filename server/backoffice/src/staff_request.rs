//! Requests of staff to the API. One extractor checks, in this order, session, theatre and path, role, key and body.

use std::marker::PhantomData;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use domain::roles::Role;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::BackofficeState;
use http::idempotency::{IdempotencyKey, Intent};
use http::{ApiJson, ApiPath, ApiResult, Problem};
use identity::accounts::{Staff, StaffAction};

/// Roles of which a caller needs one. A manager may do all that the box office may.
pub(crate) trait Roles: Send + Sync {
    const ROLES: &'static [Role];
}

/// For managers alone.
pub(crate) struct Managers;
/// For organisers and managers.
pub(crate) struct Organisers;
/// For the box office.
pub(crate) struct BoxOffice;

impl Roles for Managers {
    const ROLES: &'static [Role] = &[Role::Manager];
}

impl Roles for Organisers {
    const ROLES: &'static [Role] = crate::organiser::ROLES;
}

impl Roles for BoxOffice {
    const ROLES: &'static [Role] = &[Role::BoxOffice];
}

#[derive(Deserialize)]
pub(crate) struct ShowPath {
    pub show: Uuid,
}

/// A request of a caller with one of the roles `R`. `P` has the parameters of the path but the theatre.
///
/// Callers without a role in the theatre get 404, staff with another role 403.
pub(crate) struct StaffRequest<R, P = ()> {
    pub staff: Staff,
    pub theatre: String,
    pub path: P,
    /// Method and path, as intents are bound to them.
    address: String,
    roles: PhantomData<R>,
}

#[derive(Deserialize)]
struct TheatrePath {
    theatre: String,
}

impl<R: Roles, P: DeserializeOwned + Send> FromRequestParts<BackofficeState> for StaffRequest<R, P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &BackofficeState) -> ApiResult<Self> {
        let staff = Staff::from_request_parts(parts, state).await?;
        let ApiPath(TheatrePath { theatre }) = ApiPath::from_request_parts(parts, state).await?;
        let ApiPath(path) = ApiPath::<P>::from_request_parts(parts, state).await?;
        staff.at(&theatre, R::ROLES)?;
        let address = format!("{} {}", parts.method, parts.uri.path());
        Ok(Self { staff, theatre, path, address, roles: PhantomData })
    }
}

impl<R, P> StaffRequest<R, P> {
    /// Binds a key to the address and to a body, which must not contain a PIN or a password.
    pub fn intent(&self, key: IdempotencyKey, body: &impl Serialize) -> Intent {
        Intent::new(&self.staff.session.owner, key, &self.address, body)
    }
}

/// A request that changes something: its body `B`, and its intent, which binds the key to address and body.
pub(crate) struct StaffMutation<R, P, B> {
    pub from: StaffRequest<R, P>,
    pub body: B,
    pub intent: Intent,
}

impl<R, P, B> StaffMutation<R, P, B> {
    /// The action that is requested, for that reason in the body.
    pub fn action<'a>(&'a self, reason: &'a str) -> StaffAction<'a> {
        StaffAction { staff: &self.from.staff, theatre: &self.from.theatre, intent: &self.intent, reason }
    }
}

impl<R, P, B> FromRequest<BackofficeState> for StaffMutation<R, P, B>
where
    R: Roles,
    P: DeserializeOwned + Send,
    B: DeserializeOwned + Serialize,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &BackofficeState) -> ApiResult<Self> {
        let (mut parts, body) = request.into_parts();
        let from = StaffRequest::<R, P>::from_request_parts(&mut parts, state).await?;
        let key = IdempotencyKey::from_request_parts(&mut parts, state).await?;
        let ApiJson(body) = ApiJson::<B>::from_request(Request::from_parts(parts, body), state).await?;
        let intent = from.intent(key, &body);
        Ok(Self { from, body, intent })
    }
}
