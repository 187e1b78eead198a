//! A request to a page of a theatre: the caller, the permission check and the answer.

use app::staff::pages::{Desk, Form, FormError, Section};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use language::{StaffError, say};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::super::accounts::safe_next_path;
use super::super::{PageError, SignedInPageError, private_page, redirect_to, signed_in, signed_in_sender};
use crate::AppState;
use http::idempotency::{IdempotencyKey, Intent};
use http::{Code, Problem, page_locale};
use identity::accounts::{Staff, StaffAction};
use platform::ids;

/// A permitted request of a member of staff to a page of a theatre. `P` has the parameters of the path.
///
/// Callers who are not signed in are redirected to the sign-in page, and back to this address. A form gets 401 instead,
/// and a reload sends it again after the sign-in. Strangers and other roles get 404: the navigation never leads them
/// here. All this happens before any data of the theatre, the query or the form is read.
pub(super) struct StaffVisit<P = ()> {
    pub state: AppState,
    pub staff: Staff,
    /// The frame of the page that answers.
    pub desk: Desk,
    pub path: P,
    address: String,
    /// Status of the page that answers.
    status: StatusCode,
}

#[derive(Deserialize)]
struct TheatrePath {
    theatre: String,
}

/// A visit to an address with one more parameter than the theatre.
pub(super) type VisitOf<T> = StaffVisit<(String, T)>;

/// The query of a page that its form leads back to. It is ignored if it cannot be read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DoneQuery {
    done: bool,
}

impl<P: DeserializeOwned + Send> FromRequestParts<AppState> for StaffVisit<P> {
    type Rejection = SignedInPageError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, SignedInPageError> {
        let Path(TheatrePath { theatre }) = Path::from_request_parts(parts, state).await?;
        let Path(path) = Path::<P>::from_request_parts(parts, state).await?;
        // Each row of the table of pages has its section.
        let section = *parts.extensions.get::<Section>().ok_or(PageError::Fault)?;
        let (who, home) = (Staff::from_request_parts(parts, state).await, section.href(&theatre));
        let staff = if parts.method.is_safe() {
            let own = parts.uri.path_and_query().and_then(|own| safe_next_path(own.as_str()));
            signed_in(who, own.unwrap_or(&home))?
        } else {
            signed_in_sender(who, &home)?
        };
        staff.at(&theatre, section.roles()).map_err(|_| PageError::NotFound)?;
        let found = state.catalogue.theatre(&theatre).await?.ok_or(PageError::NotFound)?;
        let done = Query::try_from_uri(&parts.uri).is_ok_and(|Query(DoneQuery { done })| done);
        let (name, roles, key) = (found.name, staff.roles_at(&theatre), ids::new_id().to_string());
        let desk = Desk { theatre, name, roles, section, key, done, error: None };
        let (state, address) = (state.clone(), parts.uri.path().to_owned());
        Ok(Self { state, staff, desk, path, address, status: StatusCode::OK })
    }
}

impl<P> StaffVisit<P> {
    /// The same visit without parameters of the path, for pages that several addresses answer with.
    pub fn split(self) -> (StaffVisit, P) {
        let Self { state, staff, desk, path, address, status } = self;
        (StaffVisit { state, staff, desk, path: (), address, status }, path)
    }

    /// The intent of a form: its key, bound to its address and content.
    ///
    /// # Errors
    /// 400 without a key: it is not our form.
    pub fn intent(&self, form: &Form, body: &impl Serialize) -> Result<Intent, Problem> {
        let key = IdempotencyKey::of_form(form.get("key"))?;
        Ok(Intent::new(&self.staff.session.owner, key, &format!("form {}", self.address), body))
    }

    /// The action of a form, for that reason.
    pub fn action<'a>(&'a self, intent: &'a Intent, reason: &'a str) -> StaffAction<'a> {
        StaffAction { staff: &self.staff, theatre: &self.desk.theatre, intent, reason }
    }

    /// Shows a problem on the page that answers, with the problem's status; in these words, if given.
    pub fn fail(mut self, problem: &Problem, words: Option<String>) -> Self {
        self.status = problem.code().describe().0;
        self.desk.error = Some(match words {
            Some(words) => FormError { message: words.into(), findings: Vec::new() },
            None => FormError { message: staff_error(problem), findings: problem.view().findings },
        });
        self
    }

    /// The same for problems that the caller can solve. Internal errors have their own page, and so has a thing of the
    /// programme that does not exist.
    pub fn refuse(self, problem: &Problem) -> Result<Self, SignedInPageError> {
        self.solvable(problem).map(|visit| visit.fail(problem, None))
    }

    /// The same in the page's own message.
    pub fn refuse_in_words(self, problem: &Problem, message: &'static str) -> Result<Self, SignedInPageError> {
        let words = say!(in page_locale::language(), message);
        self.solvable(problem).map(|visit| visit.fail(problem, Some(words)))
    }

    /// The visit, unless the problem has its own page.
    pub fn solvable(self, problem: &Problem) -> Result<Self, SignedInPageError> {
        match problem.code() {
            Code::Internal | Code::DatabaseUnavailable => Err(problem.clone().into()),
            Code::NotFound if matches!(self.desk.section, Section::Shows | Section::Rooms | Section::Prices) => {
                Err(PageError::NotFound.into())
            }
            _ => Ok(self),
        }
    }

    /// Refuses a form whose fields show their errors.
    pub fn refuse_fields(self) -> Self {
        self.fail(&malformed("Some fields cannot be read."), Some(marked()))
    }

    /// The page that answers. It is never cached.
    pub fn show<T: app::Page>(self, page: impl FnOnce(Desk) -> T) -> Response {
        (self.status, private_page(page(self.desk))).into_response()
    }

    /// Redirects to another page of the theatre.
    pub fn redirect_to(&self, rest: &str) -> Response {
        redirect_to(&format!("/staff/{}/{rest}", self.desk.theatre))
    }
}

pub(super) struct SentForm(pub Form);

impl FromRequest<AppState> for SentForm {
    type Rejection = PageError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, PageError> {
        let axum::Form(fields) = axum::Form::<Vec<(String, String)>>::from_request(request, state).await?;
        Ok(Self(Form::new(fields)))
    }
}

pub(super) fn malformed(detail: impl Into<String>) -> Problem {
    Problem::new(Code::Malformed, detail)
}

/// The message that some fields are refused.
pub(super) const FIELDS_REFUSED: &str = "field.refused";

/// Some fields are refused, and each has its message beside it.
pub(super) fn marked() -> String {
    say!(in page_locale::language(), FIELDS_REFUSED)
}

pub(super) fn staff_error(problem: &Problem) -> StaffError {
    language::with_language(page_locale::language(), || language::problem_for_staff(&problem.view()))
}
