//! Pages for people: load through a capability, fill a struct of `app`, render.
//!
//! Elsewhere: the API (each crate's endpoints) and the markup of pages (`app`).

use app::pages::accounts::{Notice, SignedOutPage, next_in_query};
use app::pages::problems::{NotFoundPage, ProblemEntry, ProblemsPage};
use axum::Router;
use axum::extract::rejection::{FormRejection, PathRejection, QueryRejection};
use axum::extract::{Form, FromRequest, FromRequestParts, MatchedPath, Path, Query};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use domain::VariantName;
use domain::time::Timestamp;
use language::Moment;
use strum::VariantArray;

use crate::AppState;
use crate::web::budget::{NEVER, RouteTerms};
use catalogue::{InvalidSearch, Show};
use http::cache_tags::CacheTags;
use http::caching::{CachePolicy, PRIVATE};
use http::{Code, Problem, describe_rejection, page_locale};
use platform::database::is_temporary;

mod accounts;
mod booking;
pub mod browse;
mod mailed;
mod search_engines;
mod show;
mod staff;

/// The address of a page, its handlers, and the terms under which it is shed.
type Page = (&'static str, MethodRouter<AppState>, Option<RouteTerms>);

/// All pages. Routes, metrics, budgets and the test of the cache classes read it.
fn pages() -> Vec<Page> {
    let mut pages = vec![("/docs/problems", get(problems), NEVER)];
    pages.extend(browse::pages());
    pages.extend(search_engines::pages());
    pages.extend(show::pages());
    pages.extend(booking::pages());
    pages.extend(mailed::pages());
    pages.extend(accounts::pages());
    pages.extend(staff::pages());
    pages
}

/// The routes of all pages.
pub fn routes() -> Router<AppState> {
    let routes =
        pages().into_iter().fold(Router::new(), |router, (address, handlers, _)| router.route(address, handlers));
    routes.method_not_allowed_fallback(wrong_method)
}

/// Redirects a GET at an address that only takes forms to the nearest page above it, with the same query. Browsers send
/// one when a refused form is reloaded or its language is switched. Other methods get "not found".
async fn wrong_method(method: Method, route: MatchedPath, uri: Uri) -> PageResult {
    let (mut route, mut path) = (route.as_str(), uri.path());
    while matches!(method, Method::GET | Method::HEAD)
        && let (Some((above, _)), Some((path_above, _))) = (route.rsplit_once('/'), path.rsplit_once('/'))
    {
        (route, path) = (above, path_above);
        if addresses().any(|address| address == route) {
            let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            return Ok(redirect_to(&format!("{path}{query}")));
        }
    }
    Err(PageError::NotFound)
}

/// Addresses of pages, as metrics name them.
pub fn addresses() -> impl Iterator<Item = &'static str> {
    pages().into_iter().map(|(address, ..)| address)
}

/// Addresses of the pages that may be shed, and their terms.
pub fn shed() -> impl Iterator<Item = (&'static str, RouteTerms)> {
    pages().into_iter().filter_map(|(address, _, terms)| Some((address, terms?)))
}

/// The page to which the `type` of every problem leads.
async fn problems() -> Response {
    let entries = Code::VARIANTS.iter().map(|code| {
        let (status, name, title) = code.describe();
        ProblemEntry { code: name.to_owned(), status: status.as_u16(), title: title.to_owned() }
    });
    public_page(ProblemsPage { entries: entries.collect() }, CachePolicy::with_tags(CacheTags::default()))
}

/// A page of one visitor, never cached.
fn private_page(page: impl app::Page) -> Response {
    ([(header::CACHE_CONTROL, PRIVATE)], Html(document(page))).into_response()
}

/// A public page, the same for all readers of its language.
fn public_page(page: impl app::Page, cache_policy: CachePolicy) -> Response {
    (cache_policy, Html(document(page))).into_response()
}

fn document(page: impl app::Page) -> String {
    let reader = page_locale::current();
    app::render_in(reader.language, reader.absolute_address(), |other| reader.address_in(other), page)
}

/// The start of a show in its theatre's time zone and the reader's language: `Sat 21 Nov, 20:15`.
fn start_in_words(show: &Show) -> String {
    let start = Moment::parse(&show.local_iso(show.starts_at));
    start.map_or_else(|| show.starts_local.clone(), |start| start.in_words(page_locale::language()))
}

/// The problem's message in the reader's language.
fn words(problem: &Problem) -> String {
    language::with_language(page_locale::language(), || language::problem_in_words(&problem.view()))
}

/// An instant in the time zone of a show's theatre and the reader's language.
fn in_words(show: &Show, at: Timestamp) -> String {
    Moment::parse(&show.local_iso(at)).map_or_else(|| show.local_time(at), |at| at.in_words(page_locale::language()))
}

/// A page, or an error page.
pub type PageResult = Result<Response, PageError>;
/// A page for a signed-in caller, the way to sign in, or an error page.
type SignedInPageResult = Result<Response, SignedInPageError>;

/// The variables of a page's address.
#[derive(FromRequestParts)]
#[from_request(via(Path), rejection(PageError))]
struct PagePath<T>(T);

/// The query of a page's address.
#[derive(FromRequestParts)]
#[from_request(via(Query), rejection(PageError))]
struct PageQuery<T>(T);

/// A form that a page sends.
#[derive(FromRequest)]
#[from_request(via(Form), rejection(PageError))]
struct PageForm<T>(T);

/// The reason why a page cannot be shown.
#[derive(Debug)]
pub enum PageError {
    /// The address does not exist, or belongs to another visitor.
    NotFound,
    /// The address has an invalid query or path; the text explains it.
    Unreadable(String),
    /// The database is unavailable for a moment.
    Busy,
    /// An internal error, logged already.
    Fault,
}

impl From<sqlx::Error> for PageError {
    fn from(cause: sqlx::Error) -> Self {
        if is_temporary(&cause) {
            tracing::warn!(%cause, "database unavailable");
            return Self::Busy;
        }
        tracing::error!(%cause, "page failed by an internal error");
        Self::Fault
    }
}

impl From<Problem> for PageError {
    /// The cause was logged where it happened.
    fn from(problem: Problem) -> Self {
        match problem.code() {
            Code::NotFound => Self::NotFound,
            Code::DatabaseUnavailable | Code::LockStoreUnavailable | Code::Overloaded => Self::Busy,
            _ => Self::Fault,
        }
    }
}

impl From<InvalidSearch> for PageError {
    fn from(why: InvalidSearch) -> Self {
        Self::Unreadable(why.to_string())
    }
}

impl From<PathRejection> for PageError {
    fn from(_: PathRejection) -> Self {
        Self::NotFound
    }
}

impl From<FormRejection> for PageError {
    fn from(rejection: FormRejection) -> Self {
        Self::Unreadable(describe_rejection(&rejection.body_text()))
    }
}

impl From<QueryRejection> for PageError {
    fn from(rejection: QueryRejection) -> Self {
        Self::Unreadable(describe_rejection(&rejection.body_text()))
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let language = page_locale::language();
        let (status, page) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, NotFoundPage::nothing_here(language)),
            Self::Unreadable(why) => (StatusCode::BAD_REQUEST, NotFoundPage::unreadable(language, why)),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, NotFoundPage::server_error(language)),
            Self::Fault => (StatusCode::INTERNAL_SERVER_ERROR, NotFoundPage::server_error(language)),
        };
        let mut response = (status, private_page(page)).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        response
    }
}

/// Redirects with 303 See Other, which browsers follow with GET.
fn redirect_to(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/"));
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE))];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// The reason why a page of an account or of staff is not shown.
#[derive(Debug)]
enum SignedInPageError {
    /// Not signed in; the address to return to.
    SignIn(String),
    /// A form whose sender is not signed in; the address to return to.
    KeepForm(String),
    /// Another error page.
    ErrorPage(PageError),
}

impl<T: Into<PageError>> From<T> for SignedInPageError {
    fn from(why: T) -> Self {
        Self::ErrorPage(why.into())
    }
}

impl IntoResponse for SignedInPageError {
    fn into_response(self) -> Response {
        match self {
            Self::ErrorPage(why) => why.into_response(),
            Self::SignIn(next) => {
                let (notice, next) = (Notice::SignInFirst.as_str(), next_in_query(&next));
                redirect_to(&format!("/login?notice={notice}&next={next}"))
            }
            Self::KeepForm(next) => {
                let page = private_page(SignedOutPage { next });
                (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], page).into_response()
            }
        }
    }
}

/// The signed-in caller; others are redirected to the sign-in page, and back to `next`.
fn signed_in<T>(who: Result<T, Problem>, next: &str) -> Result<T, SignedInPageError> {
    who.map_err(|problem| match problem.code() {
        Code::NotSignedIn | Code::TokenInvalid => SignedInPageError::SignIn(next.to_owned()),
        _ => problem.into(),
    })
}

/// The signed-in sender of a form. Others get 401 with a page that says how to send the form again: a redirect would
/// lose its input.
fn signed_in_sender<T>(who: Result<T, Problem>, next: &str) -> Result<T, SignedInPageError> {
    signed_in(who, next).map_err(|error| match error {
        SignedInPageError::SignIn(next) => SignedInPageError::KeepForm(next),
        other => other,
    })
}

/// `Retry-After` of temporary failures, seconds.
const RETRY_AFTER_S: u32 = 5;

/// The fallback for unknown addresses.
pub async fn nothing_here() -> PageError {
    PageError::NotFound
}
