//! Requests of staff to the API. One extractor checks, in this order, session, theatre and path, role, key and body.

use std::marker::PhantomData;

use axum::extract::{FromRef, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use domain::roles::Role;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::action::StaffAction;
use super::staff::Staff;
use crate::IdentityState;
use http::idempotency::{IdempotencyKey, Intent};
use http::{ApiJson, ApiPath, ApiResult, Problem};

/// Roles of which a caller needs one. A manager may do all that the box office may.
pub trait Roles: Send + Sync {
    /// The roles.
    const ROLES: &'static [Role];
}

/// For managers alone.
pub struct Managers;
/// For organisers and managers.
pub struct Organisers;
/// For the box office.
pub struct BoxOffice;

impl Roles for Managers {
    const ROLES: &'static [Role] = &[Role::Manager];
}

impl Roles for Organisers {
    const ROLES: &'static [Role] = &[Role::Manager, Role::Organiser];
}

impl Roles for BoxOffice {
    const ROLES: &'static [Role] = &[Role::BoxOffice];
}

/// The parameters of a path that names a show.
#[derive(Deserialize)]
pub struct ShowPath {
    /// The show.
    pub show: Uuid,
}

/// A request of a caller with one of the roles `R`. `P` has the parameters of the path but the theatre.
///
/// Callers without a role in the theatre get 404, staff with another role 403.
pub struct StaffRequest<R, P = ()> {
    /// The member of staff.
    pub staff: Staff,
    /// The theatre.
    pub theatre: String,
    /// The other parameters of the path.
    pub path: P,
    /// Method and path, as intents are bound to them.
    address: String,
    roles: PhantomData<R>,
}

#[derive(Deserialize)]
struct TheatrePath {
    theatre: String,
}

impl<S, R, P> FromRequestParts<S> for StaffRequest<R, P>
where
    S: Send + Sync,
    IdentityState: FromRef<S>,
    R: Roles,
    P: DeserializeOwned + Send,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
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
pub struct StaffMutation<R, P, B> {
    /// The request without its body.
    pub from: StaffRequest<R, P>,
    /// The body.
    pub body: B,
    /// The key, bound to address and body.
    pub intent: Intent,
}

impl<R, P, B> StaffMutation<R, P, B> {
    /// The action that is requested, for that reason in the body.
    pub fn action<'a>(&'a self, reason: &'a str) -> StaffAction<'a> {
        StaffAction { staff: &self.from.staff, theatre: &self.from.theatre, intent: &self.intent, reason }
    }
}

impl<S, R, P, B> FromRequest<S> for StaffMutation<R, P, B>
where
    S: Send + Sync,
    IdentityState: FromRef<S>,
    R: Roles,
    P: DeserializeOwned + Send,
    B: DeserializeOwned + Serialize,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> ApiResult<Self> {
        let (mut parts, body) = request.into_parts();
        let from = StaffRequest::<R, P>::from_request_parts(&mut parts, state).await?;
        let key = IdempotencyKey::from_request_parts(&mut parts, state).await?;
        let ApiJson(body) = ApiJson::<B>::from_request(Request::from_parts(parts, body), state).await?;
        let intent = from.intent(key, &body);
        Ok(Self { from, body, intent })
    }
}
