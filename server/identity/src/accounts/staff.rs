//! Extracts members of staff; other theatres' resources are not found for them.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use domain::roles::{Permission, Role, check_permission};
use sqlx::PgPool;
use uuid::Uuid;

use super::grants;
use super::sessions::{Session, SignedIn};
use crate::IdentityState;
use http::{ApiResult, Code, Problem};

/// A signed-in account with its current roles. Without a session, the answer is 401. [`Staff::at`] checks the roles.
#[derive(Clone, Debug)]
pub struct Staff {
    /// The session.
    pub session: Session,
    grants: Vec<(String, Role)>,
}

impl<S> FromRequestParts<S> for Staff
where
    S: Send + Sync,
    IdentityState: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let state = IdentityState::from_ref(state);
        let SignedIn(session) =
            <SignedIn as FromRequestParts<IdentityState>>::from_request_parts(parts, &state).await?;
        let grants = grants::roles_of(&mut *state.pg.acquire().await?, session.account).await?;
        Ok(Self { session, grants })
    }
}

impl Staff {
    /// Returns the theatres in which the account has a role.
    #[must_use]
    pub fn theatres(&self) -> Vec<String> {
        let mut theatres: Vec<String> = self.grants.iter().map(|(at, _)| at.clone()).collect();
        theatres.dedup();
        theatres
    }

    /// Returns the account's roles in a theatre.
    #[must_use]
    pub fn roles_at(&self, theatre: &str) -> Vec<Role> {
        self.grants.iter().filter(|(at, _)| at == theatre).map(|(_, role)| *role).collect()
    }

    /// Fails unless the account has one of the `wanted` roles in this theatre. Call it before reading the theatre's
    /// data.
    ///
    /// # Errors
    /// 404 without a role in the theatre, so that nothing is revealed; 403 with another role.
    pub fn at(&self, theatre: &str, wanted: &[Role]) -> ApiResult<()> {
        match check_permission(&self.roles_at(theatre), wanted) {
            Permission::Granted => Ok(()),
            Permission::NotStaff => Err(Problem::not_found("theatre")),
            Permission::WrongRole => {
                let who = wanted.iter().map(|role| role_name(*role)).collect::<Vec<_>>().join(" or ");
                Err(Problem::new(Code::NotAllowed, format!("This is for {who} of the theatre.")))
            }
        }
    }
}

/// Returns `true` when an account has any role in a theatre.
pub async fn works_at(pg: &PgPool, account: Uuid, theatre: &str) -> sqlx::Result<bool> {
    let grants = grants::roles_of(&mut *pg.acquire().await?, account).await?;
    Ok(grants.iter().any(|(at, _)| at == theatre))
}

/// Returns `true` when an account has one of the `wanted` roles in a theatre.
pub async fn may_at(pg: &PgPool, account: Uuid, theatre: &str, wanted: &[Role]) -> sqlx::Result<bool> {
    let grants = grants::roles_of(&mut *pg.acquire().await?, account).await?;
    let held: Vec<Role> = grants.into_iter().filter(|(at, _)| at == theatre).map(|(_, role)| role).collect();
    Ok(check_permission(&held, wanted) == Permission::Granted)
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::BoxOffice => "the box office",
        Role::Manager => "a manager",
        Role::Organiser => "an organiser",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_theatre_is_not_found_and_another_role_is_forbidden() {
        let session = Session { id: Uuid::nil(), account: Uuid::nil(), owner: String::new(), is_browser: true };
        let staff = Staff { session, grants: vec![("aurora".to_owned(), Role::BoxOffice)] };
        let code = |theatre, wanted: &[Role]| staff.at(theatre, wanted).map_err(|problem| problem.code());
        assert_eq!(code("aurora", &[Role::BoxOffice]), Ok(()));
        assert_eq!(code("aurora", &[Role::Manager]), Err(Code::NotAllowed));
        assert_eq!(code("rialto", &[Role::BoxOffice]), Err(Code::NotFound));
        assert_eq!(code("", &[Role::BoxOffice]), Err(Code::NotFound));
    }
}
