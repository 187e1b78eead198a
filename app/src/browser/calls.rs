//! API calls, used by all requests of the pages. Each has a deadline. Calls that change nothing or have an idempotency
//! key are retried with exponential back-off and full jitter on top of the server's `Retry-After`. Every answer updates
//! the server's clock.

use domain::api::{ProblemView, SERVER_TIME_HEADER};
use domain::json::{self, FromJson};
use domain::time::Timestamp;
use gloo_net::http::{Method, Request, RequestBuilder, Response};
use language::{problem_in_words, say};
use serde::Serialize;
use serde::de::DeserializeOwned;
use web_sys::AbortSignal;

use super::{clock, events, ids, puzzle};

/// Deadline of an answer, milliseconds.
const DEADLINE_MS: u32 = 10_000;
/// Most puzzles solved for one call: one, and another if the first expired.
const PUZZLES: u32 = 2;
const MAX_ATTEMPTS: u32 = 4;
/// Longest pause before the first retry without `Retry-After`, milliseconds. Doubles with each retry…
const FIRST_PAUSE_MS: u32 = 300;
/// …up to this.
const LONGEST_PAUSE_MS: u32 = 5_000;
/// No retry if the server asks for a longer pause, milliseconds: a person is looking at the page.
const LONGEST_RETRY_AFTER_MS: u32 = 15_000;

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// No answer: it is unknown whether the call took effect.
    Unreachable,
    /// The server refused.
    Problem(Box<ProblemView>),
}

impl Failure {
    /// The problem's stable code; empty without an answer.
    pub fn code(&self) -> &str {
        match self {
            Self::Unreachable => "",
            Self::Problem(problem) => &problem.code,
        }
    }

    /// The HTTP status; 0 without an answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::Unreachable => 0,
            Self::Problem(problem) => problem.status,
        }
    }

    /// In words for people. `unreachable` is the message for a missing answer.
    pub fn in_words(&self, unreachable: &'static str) -> String {
        match self {
            Self::Unreachable => say!(unreachable),
            Self::Problem(problem) => problem_in_words(problem),
        }
    }

    /// The challenge of a puzzle to solve first.
    fn challenge(&self) -> Option<&str> {
        match self {
            Self::Unreachable => None,
            Self::Problem(problem) => problem.puzzle.as_ref().map(|puzzle| &*puzzle.challenge),
        }
    }

    /// Returns true if a retry of the same call may succeed soon.
    pub fn may_pass(&self) -> bool {
        matches!(self.status(), 0 | 500 | 502..=504) || self.code() == "still_running"
    }
}

/// Reads a resource that the page of a show needs at once, with the small JSON parser, whose code loads before serde's.
///
/// # Errors
/// [`Failure`].
pub async fn read<T: FromJson>(path: &str) -> Result<T, Failure> {
    parse_small(&retrying(&ApiCall::reading(path)).await?)
}

/// Reads a resource.
///
/// # Errors
/// [`Failure`].
pub async fn get<T: DeserializeOwned>(path: &str) -> Result<T, Failure> {
    get_within(path, DEADLINE_MS).await
}

/// As [`get`], with another deadline for each attempt.
///
/// # Errors
/// [`Failure`].
pub async fn get_within<T: DeserializeOwned>(path: &str, deadline_ms: u32) -> Result<T, Failure> {
    parse(&retrying(&ApiCall { deadline_ms, ..ApiCall::reading(path) }).await?)
}

/// Reads a binary resource.
///
/// # Errors
/// [`Failure`].
pub async fn bytes(path: &str) -> Result<Vec<u8>, Failure> {
    let answer = send(&ApiCall::reading(path)).await.map_err(|refused| refused.failure)?;
    answer.binary().await.map_err(|_| Failure::Unreachable)
}

/// Reads a text, with this deadline for each attempt.
///
/// # Errors
/// [`Failure`].
pub async fn text(path: &str, deadline_ms: u32) -> Result<String, Failure> {
    retrying(&ApiCall { deadline_ms, ..ApiCall::reading(path) }).await
}

/// Makes a change under its idempotency key. Retried with full jitter while there is no answer or the answer asks for a
/// retry; the key makes retries harmless.
///
/// # Errors
/// The last attempt's [`Failure`].
pub async fn change<T: DeserializeOwned>(path: &str, key: &str, body: &impl Serialize) -> Result<T, Failure> {
    change_within(path, key, body, DEADLINE_MS).await
}

/// As [`change`], with another deadline for each attempt.
///
/// # Errors
/// The last attempt's [`Failure`].
pub async fn change_within<T: DeserializeOwned>(
    path: &str,
    key: &str,
    body: &impl Serialize,
    deadline_ms: u32,
) -> Result<T, Failure> {
    let body = serde_json::to_string(body).map_err(|_| Failure::Unreachable)?;
    parse(&retrying(&ApiCall { deadline_ms, ..ApiCall::posting(path, key, &body) }).await?)
}

/// As [`change`], for changes that the page of a show makes at once. The small JSON parser reads the answer.
///
/// # Errors
/// The last attempt's [`Failure`].
pub async fn ask<T: FromJson>(method: Method, path: &str, key: &str, body: &impl Serialize) -> Result<T, Failure> {
    let body = serde_json::to_string(body).map_err(|_| Failure::Unreachable)?;
    parse_small(&retrying(&ApiCall { method, ..ApiCall::posting(path, key, &body) }).await?)
}

/// Takes seats, as [`ask`]. If the server requires a puzzle, solves it and repeats the call under the same key. Calls
/// `begins` for each puzzle. Returns `None` if `is_wanted` turns false before the end.
///
/// # Errors
/// The last attempt's [`Failure`]; the requirement itself if the puzzle cannot be solved here.
pub async fn take<T: FromJson>(
    path: &str,
    key: &str,
    body: &impl Serialize,
    begins: impl Fn(),
    is_wanted: impl Fn() -> bool,
) -> Result<Option<T>, Failure> {
    let body = serde_json::to_string(body).map_err(|_| Failure::Unreachable)?;
    let answer = solving(path, key, &body, begins, is_wanted).await?;
    answer.map(|text| parse_small(&text)).transpose()
}

/// Joins a queue, as [`change`], with puzzles as in [`take`]. Calls `begins` for each puzzle.
///
/// # Errors
/// The last attempt's [`Failure`]; the requirement itself if the puzzle cannot be solved here.
pub async fn join<T: DeserializeOwned>(path: &str, key: &str, begins: impl Fn()) -> Result<T, Failure> {
    let answer = solving(path, key, "null", begins, || true).await?;
    parse(&answer.ok_or(Failure::Unreachable)?)
}

/// Sends a call, and repeats it with the solution of each required puzzle. `None` once it is not wanted any more.
async fn solving(
    path: &str,
    key: &str,
    body: &str,
    begins: impl Fn(),
    is_wanted: impl Fn() -> bool,
) -> Result<Option<String>, Failure> {
    let (mut solution, mut puzzles) = (None::<String>, 0);
    loop {
        let call = ApiCall { solution: solution.as_deref(), ..ApiCall::posting(path, key, body) };
        let failure = match retrying(&call).await {
            Ok(text) => return Ok(Some(text)),
            Err(failure) => failure,
        };
        let Some(challenge) = failure.challenge().filter(|_| puzzles < PUZZLES) else { return Err(failure) };
        if !is_wanted() {
            return Ok(None);
        }
        puzzles += 1;
        begins();
        solution = puzzle::solve(challenge).await;
        if !is_wanted() {
            return Ok(None);
        }
        if solution.is_none() {
            return Err(failure);
        }
    }
}

/// As [`change`], with a single attempt, for callers that can continue without an answer after this time.
///
/// # Errors
/// [`Failure`].
pub async fn try_change<T: DeserializeOwned>(
    path: &str,
    key: &str,
    body: &impl Serialize,
    deadline_ms: u32,
) -> Result<T, Failure> {
    let body = serde_json::to_string(body).map_err(|_| Failure::Unreachable)?;
    parse(&once(&ApiCall { deadline_ms, ..ApiCall::posting(path, key, &body) }).await?)
}

/// Removes something under its idempotency key, with retries as [`change`].
///
/// # Errors
/// The last attempt's [`Failure`].
pub async fn remove(path: &str, key: &str) -> Result<(), Failure> {
    let call = ApiCall { method: Method::DELETE, key: Some(key), ..ApiCall::reading(path) };
    retrying(&call).await.map(drop)
}

/// Posts to `path` while the page unloads. The answer is ignored.
pub fn beacon(path: &str) {
    // False if the browser refuses to queue it: the hold then runs its full time.
    let _ = super::window().navigator().send_beacon(path);
}

/// A call to send. A plain type: generic code would be compiled and downloaded for each use.
struct ApiCall<'a> {
    method: Method,
    path: &'a str,
    key: Option<&'a str>,
    body: Option<&'a str>,
    /// Solution of a required puzzle.
    solution: Option<&'a str>,
    deadline_ms: u32,
}

impl<'a> ApiCall<'a> {
    fn reading(path: &'a str) -> Self {
        Self { method: Method::GET, path, key: None, body: None, solution: None, deadline_ms: DEADLINE_MS }
    }

    fn posting(path: &'a str, key: &'a str, body: &'a str) -> Self {
        Self { method: Method::POST, key: Some(key), body: Some(body), ..Self::reading(path) }
    }

    fn request(&self) -> Result<Request, gloo_net::Error> {
        let mut builder = RequestBuilder::new(self.path)
            .method(self.method.clone())
            .header("accept", "application/json")
            .abort_signal(Some(&AbortSignal::timeout_with_u32(self.deadline_ms)));
        if let Some(key) = self.key {
            builder = builder.header("content-type", "application/json").header("idempotency-key", key);
        }
        if let Some(solution) = self.solution {
            builder = builder.header("puzzle-solution", solution);
        }
        match self.body {
            Some(body) => builder.body(body),
            None => builder.build(),
        }
    }
}

/// Retries failures that may pass. A read without an answer is not retried: its page notices when the connection is back.
async fn retrying(call: &ApiCall<'_>) -> Result<String, Failure> {
    let mut attempts = 0;
    loop {
        let refused = match read_text(call).await {
            Ok(text) => return Ok(text),
            Err(refused) => refused,
        };
        attempts += 1;
        let is_unanswered_reading = call.key.is_none() && refused.failure.status() == 0;
        match refused.pause_ms(attempts, ids::jitter).filter(|_| !is_unanswered_reading) {
            Some(pause_ms) => events::after(pause_ms).await,
            None => return Err(refused.failure),
        }
    }
}

async fn once(call: &ApiCall<'_>) -> Result<String, Failure> {
    read_text(call).await.map_err(|refused| refused.failure)
}

struct FailedAttempt {
    failure: Failure,
    /// The pause the server asked for, milliseconds.
    retry_after_ms: Option<u32>,
}

impl FailedAttempt {
    /// Returns true if the same call may succeed soon. A 429 counts as final without `Retry-After`, and for two codes
    /// that the page handles itself.
    fn may_pass(&self) -> bool {
        match (self.failure.status(), self.failure.code()) {
            (429, "waiting_room" | "too_many_declines") => false,
            (429, _) => self.retry_after_ms.is_some(),
            _ => self.failure.may_pass(),
        }
    }

    /// The pause before the next attempt, milliseconds; `None` to give up. `jitter` returns a uniform number below its
    /// argument.
    fn pause_ms(&self, attempts: u32, jitter: impl FnOnce(u32) -> u32) -> Option<u32> {
        let floor_ms = self.retry_after_ms.unwrap_or(0);
        if attempts >= MAX_ATTEMPTS || !self.may_pass() || floor_ms > LONGEST_RETRY_AFTER_MS {
            return None;
        }
        let doubled = FIRST_PAUSE_MS.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        Some(floor_ms + jitter(doubled.min(LONGEST_PAUSE_MS)))
    }
}

impl From<Failure> for FailedAttempt {
    fn from(failure: Failure) -> Self {
        Self { failure, retry_after_ms: None }
    }
}

async fn read_text(call: &ApiCall<'_>) -> Result<String, FailedAttempt> {
    Ok(send(call).await?.text().await.map_err(|_| Failure::Unreachable)?)
}

/// Sends a call once. The answer has a success status.
async fn send(call: &ApiCall<'_>) -> Result<Response, FailedAttempt> {
    let sent_at = clock::monotonic_ms();
    let request = call.request().map_err(|_| Failure::Unreachable)?;
    let answer = request.send().await.map_err(|_| Failure::Unreachable)?;
    if let Some(now) = answer.headers().get(SERVER_TIME_HEADER).and_then(|text| text.parse().ok()) {
        clock::observe_answer(Timestamp(now), sent_at);
    }
    if answer.ok() {
        return Ok(answer);
    }
    let retry_after_ms = answer.headers().get("retry-after").as_deref().and_then(read_retry_after);
    Err(FailedAttempt { failure: problem_of(&answer).await, retry_after_ms })
}

/// Reads a `Retry-After` header in seconds. Dates are ignored.
fn read_retry_after(header: &str) -> Option<u32> {
    let seconds: u32 = header.trim().parse().ok()?;
    Some(seconds.saturating_mul(1_000))
}

async fn problem_of(answer: &Response) -> Failure {
    let parsed = answer.text().await.ok().and_then(|text| json::read::<ProblemView>(&text));
    let problem = parsed.unwrap_or_else(|| ProblemView {
        // A proxy does not send problem+json, but its status is usable.
        kind: "about:blank".to_owned(),
        status: answer.status(),
        ..ProblemView::default()
    });
    Failure::Problem(Box::new(problem))
}

/// Parses an answer. An unreadable one counts as no answer; an empty one (204) reads as `None`.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let text = if text.is_empty() { "null" } else { text };
    serde_json::from_str(text).map_err(|_| Failure::Unreachable)
}

/// The same with the small JSON parser.
fn parse_small<T: FromJson>(text: &str) -> Result<T, Failure> {
    json::read(if text.is_empty() { "null" } else { text }).ok_or(Failure::Unreachable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_answer_is_read_as_none() {
        assert_eq!(parse::<Option<u32>>(""), Ok(None));
        assert_eq!(parse::<u32>(""), Err(Failure::Unreachable));
        assert_eq!(parse_small::<Option<u32>>(""), Ok(None));
        assert_eq!(parse_small::<u32>(""), Err(Failure::Unreachable));
    }

    fn failed(status: u16, code: &str, retry_after_ms: Option<u32>) -> FailedAttempt {
        let problem = ProblemView { status, code: code.to_owned(), ..ProblemView::default() };
        let failure = if status == 0 { Failure::Unreachable } else { Failure::Problem(Box::new(problem)) };
        FailedAttempt { failure, retry_after_ms }
    }

    fn shed(retry_after_ms: u32) -> FailedAttempt {
        failed(503, "overloaded", Some(retry_after_ms))
    }

    #[test]
    fn jitter_is_added_to_the_servers_pause() {
        assert_eq!(shed(3_000).pause_ms(1, |_| 0), Some(3_000));
        assert_eq!(shed(3_000).pause_ms(1, |limit| limit - 1), Some(3_299));
        assert_eq!(shed(3_000).pause_ms(3, |limit| limit - 1), Some(4_199));
    }

    #[test]
    fn without_retry_after_the_jitter_range_doubles() {
        let bare = failed(503, "", None);
        let limits = [1, 2, 3].map(|attempts| bare.pause_ms(attempts, |limit| limit));
        assert_eq!(limits, [Some(300), Some(600), Some(1_200)]);
        assert_eq!(bare.pause_ms(1, |_| 0), Some(0));
    }

    #[test]
    fn attempts_and_pauses_are_bounded() {
        assert_eq!(failed(503, "", None).pause_ms(MAX_ATTEMPTS, |_| 0), None);
        assert_eq!(shed(3_000).pause_ms(u32::MAX, |_| 0), None);
        assert_eq!(shed(LONGEST_RETRY_AFTER_MS).pause_ms(1, |_| 0), Some(LONGEST_RETRY_AFTER_MS));
        assert_eq!(shed(LONGEST_RETRY_AFTER_MS + 1).pause_ms(1, |_| 0), None);
    }

    #[test]
    fn transient_failures_are_retried_and_final_ones_are_not() {
        let repeated = |status, code, retry_after_ms| failed(status, code, retry_after_ms).may_pass();
        for status in [0, 500, 502, 503, 504] {
            assert!(repeated(status, "", None), "{status}");
        }
        assert!(repeated(429, "too_many_attempts", Some(1_000)));
        assert!(repeated(409, "still_running", Some(1_000)));
        for (status, code, retry_after_ms) in [
            (429, "person_limit", None),
            (429, "waiting_room", Some(5_000)),
            (429, "too_many_declines", Some(60_000)),
            (409, "seats_taken", None),
            (404, "not_found", None),
            (410, "hold_expired", None),
            (428, "puzzle_wanted", None),
            (501, "", None),
        ] {
            assert!(!repeated(status, code, retry_after_ms), "{status} {code}");
        }
    }

    #[test]
    fn retry_after_is_read_in_seconds() {
        assert_eq!(read_retry_after("3"), Some(3_000));
        assert_eq!(read_retry_after(" 0 "), Some(0));
        assert_eq!(read_retry_after("4294967295"), Some(u32::MAX));
        for other in ["", "-1", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            assert_eq!(read_retry_after(other), None, "{other}");
        }
    }
}
