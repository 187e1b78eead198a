//! Every error of the API: RFC 9457 problem+json outside, the cause in the log once.

mod codes;

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::api::{AreaProblem, ProblemView, PuzzleView, SeatProblem};
use domain::layout::import::Finding;
use domain::seats::{SeatIndex, SeatState};
use uuid::Uuid;

use platform::database::is_temporary;
use platform::rate_limits::{Allowance, RateLimited};

use super::caching::PRIVATE;

pub use codes::Code;

/// Default `Retry-After` of temporary failures, seconds.
const RETRY_AFTER_S: u16 = 2;
/// Initial capacity of a body, bytes: enough for a problem with two seats, so that refusals in a rush do not reallocate.
const USUAL_BYTES: usize = 512;
/// Maximum `Retry-After`, seconds.
const MAX_RETRY_AFTER_S: u16 = 60;

/// An error response.
#[derive(Clone, Debug)]
pub struct Problem {
    code: Code,
    detail: String,
    seats: Vec<SeatProblem>,
    areas: Vec<AreaProblem>,
    /// Boxed, because few problems have it.
    more: Option<Box<ProblemExtension>>,
    hold: Option<Uuid>,
    /// A pause other than the default of its code, seconds.
    retry_after_s: Option<u16>,
    /// Boxed, because few problems have it.
    headers: Option<Box<ProblemHeader>>,
    is_serialization_conflict: bool,
}

/// Extra headers of some problems.
#[derive(Clone, Debug)]
enum ProblemHeader {
    Limit(Limit),
    /// The address of the server that is responsible.
    ResponsibleServer(String),
}

/// Fields that only some problems have, never both.
#[derive(Clone, Debug)]
enum ProblemExtension {
    /// Findings in an uploaded file.
    Findings(Vec<Finding>),
    /// The puzzle to solve first.
    Puzzle(PuzzleView),
}

impl From<RateLimited> for Problem {
    fn from(RateLimited { of, retry_after }: RateLimited) -> Self {
        let detail = "That was too often in a short time. Please wait a little, then try again.";
        Self::new(Code::TooManyAttempts, detail).with_limit(Limit::from(of)).with_retry_after(retry_after)
    }
}

impl From<Allowance> for Limit {
    fn from(of: Allowance) -> Self {
        Self { name: of.name, burst: of.burst, window_s: of.window_s() }
    }
}

/// A limit that was reached, for the `RateLimit` headers (draft-ietf-httpapi-ratelimit-headers-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Name of the limit.
    pub name: &'static str,
    /// Burst of the limit.
    pub burst: u32,
    /// Time in which the whole burst refills, seconds.
    pub window_s: u64,
}

/// The result of API handlers. The problem is boxed: the success path stays small.
pub type ApiResult<T> = Result<T, Problem>;

impl Problem {
    /// A problem; `detail` explains to a person what happened and what to do.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            seats: Vec::new(),
            areas: Vec::new(),
            more: None,
            hold: None,
            retry_after_s: None,
            headers: None,
            is_serialization_conflict: false,
        }
    }

    /// Appends a sentence to the detail.
    #[must_use]
    pub fn with_sentence(mut self, sentence: &str) -> Self {
        self.detail = format!("{} {sentence}", self.detail);
        self
    }

    /// Adds the seats that the problem is about.
    #[must_use]
    pub fn with_seats(mut self, seats: Vec<SeatProblem>) -> Self {
        self.seats = seats;
        self
    }

    /// Adds to each seat held by another visitor how long ago it was taken, as far as `ago` has it.
    #[must_use]
    pub fn with_times(mut self, ago: impl Fn(SeatIndex) -> Option<u32>) -> Self {
        for seat in self.seats.iter_mut().filter(|seat| seat.state == SeatState::Locked) {
            seat.taken_ms_ago = ago(seat.seat);
        }
        self
    }

    /// Adds the areas that the problem is about.
    #[must_use]
    pub fn with_areas(mut self, areas: Vec<AreaProblem>) -> Self {
        self.areas = areas;
        self
    }

    /// Adds the findings in an uploaded file.
    #[must_use]
    pub fn with_findings(mut self, findings: Vec<Finding>) -> Self {
        self.more = Some(Box::new(ProblemExtension::Findings(findings)));
        self
    }

    /// Adds the puzzle that must be solved first.
    #[must_use]
    pub fn with_puzzle(mut self, puzzle: PuzzleView) -> Self {
        self.more = Some(Box::new(ProblemExtension::Puzzle(puzzle)));
        self
    }

    /// Adds the caller's own hold.
    #[must_use]
    pub fn with_hold(mut self, hold: Uuid) -> Self {
        self.hold = Some(hold);
        self
    }

    /// Sets `Retry-After`: the pause in whole seconds, at least one.
    #[must_use]
    pub fn with_retry_after(mut self, pause: Duration) -> Self {
        let seconds = pause.as_millis().div_ceil(1_000).clamp(1, u128::from(MAX_RETRY_AFTER_S));
        self.retry_after_s = Some(seconds as u16);
        self
    }

    /// Adds the limit that was reached.
    #[must_use]
    pub fn with_limit(mut self, limit: Limit) -> Self {
        self.headers = Some(Box::new(ProblemHeader::Limit(limit)));
        self
    }

    /// A 404 problem, the same for a missing object and for one of another owner.
    #[must_use]
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("There is no such {what}, or it is not yours."))
    }

    /// A redirection to another server: the same path at `address`.
    #[must_use]
    pub fn misdirected(address: &str) -> Self {
        let detail = format!("This show is sold in another region: {address}");
        Self {
            headers: Some(Box::new(ProblemHeader::ResponsibleServer(address.to_owned()))),
            ..Self::new(Code::OtherRegion, detail)
        }
    }

    /// A defect of the server: logs the cause and hides it from the caller.
    #[must_use]
    pub fn internal(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "request failed by an internal error");
        Self::new(Code::Internal, "We have noted what happened. Nothing was charged or lost; please try again.")
    }

    /// The explanation for a person.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// True if a transaction was rolled back by a conflict and may be retried at once: it had no effect.
    #[must_use]
    pub const fn is_serialization_conflict(&self) -> bool {
        self.is_serialization_conflict
    }

    /// The code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Status and body of the response.
    #[must_use]
    pub fn to_json(&self) -> (StatusCode, Vec<u8>) {
        // Strings and numbers can always be serialised.
        (self.code.describe().0, serde_json::to_vec(&self.clone().into_view()).unwrap_or_default())
    }

    /// The data of the problem, for pages with texts of their own.
    #[must_use]
    pub fn view(&self) -> ProblemView {
        self.clone().into_view()
    }

    fn into_view(self) -> ProblemView {
        let (status, name, title) = self.code.describe();
        let (findings, puzzle) = match self.more.map(|more| *more) {
            Some(ProblemExtension::Findings(findings)) => (findings, None),
            Some(ProblemExtension::Puzzle(puzzle)) => (Vec::new(), Some(puzzle)),
            None => (Vec::new(), None),
        };
        ProblemView {
            kind: format!("/docs/problems#{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: self.detail,
            code: name.to_owned(),
            seats: self.seats,
            areas: self.areas,
            findings,
            puzzle,
            hold: self.hold,
            request_id: None,
        }
    }
}

impl From<sqlx::Error> for Problem {
    fn from(cause: sqlx::Error) -> Self {
        match cause {
            cause if is_temporary(&cause) => {
                tracing::warn!(%cause, "database unavailable, or transaction rolled back; the caller may retry");
                let code = cause.as_database_error().and_then(|error| error.code());
                let is_serialization_conflict = matches!(code.as_deref(), Some("40001" | "40P01"));
                let detail = "Please try again in a moment; nothing was lost.";
                Self { is_serialization_conflict, ..Self::new(Code::DatabaseUnavailable, detail) }
            }
            // A trigger refuses a show that was called off, if this server does not know that yet.
            sqlx::Error::Database(error) if error.code().as_deref() == Some("RL001") => {
                Self::new(Code::SalesClosed, "This show will not take place. Nothing was charged.")
            }
            // The same for a show that is being or was moved to another screen: its seats are renamed.
            sqlx::Error::Database(error) if error.code().as_deref() == Some("RL002") => {
                let detail = "This show moves to another screen. Nothing was charged: please choose again in a moment.";
                Self::new(Code::SalesClosed, detail)
            }
            // A bug that a constraint detected: the total is not the sum of the lines.
            sqlx::Error::Database(error) if error.constraint() == Some(TOTAL_IS_OF_LINES) => {
                tracing::error!(cause = %error, "booking refused by the database: its total is not the sum of its lines");
                let detail =
                    "The total does not fit the seats. Nothing was charged or changed: please check out again.";
                Self::new(Code::WrongState, detail)
            }
            other => Self::internal(&other),
        }
    }
}

/// The name under which `migrations/0006_selling.sql` refuses a total that is not the sum of a booking's lines.
const TOTAL_IS_OF_LINES: &str = "booking_total_is_of_lines";

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (code, extra) = (self.code, self.headers.clone());
        let status = code.describe().0;
        let may_pass = status == StatusCode::SERVICE_UNAVAILABLE || code.is_worth_repeating();
        let has_retry_after = may_pass || self.retry_after_s.is_some();
        let retry_after_s = self.retry_after_s.unwrap_or(RETRY_AFTER_S);
        let mut json = Vec::with_capacity(USUAL_BYTES);
        serde_json::to_writer(&mut json, &self.into_view()).expect("text, numbers and lists of them are JSON");
        let mut response = (status, json).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(PRIVATE));
        if has_retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_after_s));
        }
        let lines = match extra.as_deref() {
            None => Vec::new(),
            Some(ProblemHeader::ResponsibleServer(address)) => vec![("location", address.clone())],
            Some(ProblemHeader::Limit(Limit { name, burst, window_s })) => vec![
                ("ratelimit-policy", format!("\"{name}\";q={burst};w={window_s}")),
                ("ratelimit", format!("\"{name}\";r=0;t={retry_after_s}")),
            ],
        };
        for (header, value) in lines {
            // Our own names, numbers and addresses are valid header values.
            headers.extend(HeaderValue::try_from(value).ok().map(|value| (HeaderName::from_static(header), value)));
        }
        if status == StatusCode::UNAUTHORIZED && matches!(code, Code::NotSignedIn | Code::TokenInvalid) {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_failure_has_a_retry_after_in_whole_seconds() {
        let problem = || Problem::new(Code::LockStoreUnavailable, "Not now.");
        let header = |problem: Problem| {
            problem.into_response().headers()[header::RETRY_AFTER].to_str().expect("text").to_owned()
        };
        assert_eq!(header(problem()), "2");
        for (pause, seconds) in [(0, "1"), (1_001, "2"), (10_000, "10"), (u64::MAX, "60")] {
            assert_eq!(header(problem().with_retry_after(Duration::from_millis(pause))), seconds);
        }
    }

    #[test]
    fn a_limit_that_no_pause_lifts_has_no_retry_after() {
        for code in [Code::PersonLimit, Code::InstrumentLimit, Code::WaitingListFull] {
            let response = Problem::new(code, "No.").into_response();
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            assert!(!response.headers().contains_key(header::RETRY_AFTER), "{code:?}");
        }
    }

    #[test]
    fn a_full_waiting_room_has_the_retry_after_that_it_names() {
        let problem = Problem::new(Code::WaitingListFull, "Later.").with_retry_after(Duration::from_secs(60));
        assert_eq!(problem.into_response().headers()[header::RETRY_AFTER], "60");
    }

    #[test]
    fn a_rate_limited_response_names_the_limit_and_its_wait() {
        let limit = Limit { name: "login-person", burst: 10, window_s: 300 };
        let problem = Problem::new(Code::TooManyAttempts, "Later.").with_limit(limit);
        let response = problem.with_retry_after(Duration::from_secs(30)).into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()["ratelimit"], "\"login-person\";r=0;t=30");
        assert_eq!(response.headers()["ratelimit-policy"], "\"login-person\";q=10;w=300");
        assert_eq!(response.headers()[header::RETRY_AFTER], "30");
    }
}
