//! Calls to the API, all requests of the pages: a deadline on each, retries of what changes nothing or has an idempotency
//! key ([`retry`]), the server's clock read from every answer.

use domain::api::{ProblemView, SERVER_TIME_HEADER};
use domain::json::{self, FromJson};
use domain::time::Timestamp;
use gloo_net::http::{Method, Request, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use web_sys::AbortSignal;

use super::retry::{Outcome, pause_ms, read_retry_after};
use super::{clock, events, ids, puzzle};

/// How long an answer may take, milliseconds.
const DEADLINE_MS: u32 = 10_000;
/// Puzzles solved for one call at most: one, and another where the first ran out.
const PUZZLES: u32 = 2;

/// Why a call brought nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// No answer: we do not know whether it was done.
    Unreachable,
    /// The server said no.
    Problem(Box<ProblemView>),
}

impl Failure {
    /// The problem's stable code; empty when there was no answer.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Unreachable => "",
            Self::Problem(problem) => &problem.code,
        }
    }

    /// The HTTP status; 0 when there was no answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Unreachable => 0,
            Self::Problem(problem) => problem.status,
        }
    }

    /// The challenge of the puzzle that is to be solved first.
    fn challenge(&self) -> Option<&str> {
        match self {
            Self::Unreachable => None,
            Self::Problem(problem) => problem.puzzle.as_ref().map(|puzzle| &*puzzle.challenge),
        }
    }

    /// Whether the same call may go better in a moment.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self.status(), 0 | 500 | 502..=504) || self.code() == "still_running"
    }
}

/// Reads a resource that the page of a show needs at once: by the small reader, which is there before serde's.
///
/// # Errors
/// [`Failure`].
pub async fn read<T: FromJson>(path: &str) -> Result<T, Failure> {
    parse_small(&retrying(&Call::reading(path)).await?)
}

/// Reads a resource.
///
/// # Errors
/// [`Failure`].
pub async fn get<T: DeserializeOwned>(path: &str) -> Result<T, Failure> {
    parse(&retrying(&Call::reading(path)).await?)
}

/// Reads a resource that is no text.
///
/// # Errors
/// [`Failure`].
pub async fn bytes(path: &str) -> Result<Vec<u8>, Failure> {
    let answer = send(&Call::reading(path)).await.map_err(|refused| refused.failure)?;
    answer.binary().await.map_err(|_| Failure::Unreachable)
}

/// A call that changes something, under its idempotency key. Retried with full jitter while it is not
/// known to have been answered, or the answer says to come back: the key makes that harmless.
///
/// # Errors
/// The last try's [`Failure`].
pub async fn change<T: DeserializeOwned>(
    method: Method,
    path: &str,
    key: &str,
    body: &impl Serialize,
) -> Result<T, Failure> {
    let body = serde_json::to_string(body).map_err(|_| Failure::Unreachable)?;
    parse(&retrying(&Call::changing(method, path, key, &body)).await?)
}

/// The same for what the page of a show changes at once: its answer is read by the small reader.
///
/// # Errors
/// The last try's [`Failure`].
pub async fn ask<T: FromJson>(method: Method, path: &str, key: &str, body: &impl Serialize) -> Result<T, Failure> {
    let body = serde_json::to_string(body).map_err(|_| Failure::Unreachable)?;
    parse_small(&retrying(&Call::changing(method, path, key, &body)).await?)
}

/// Takes seats, as [`ask`]: where the server wants a puzzle solved first, that is done, and the same call made again
/// under the same key. `begins` hears of each puzzle; `None` when they are not wanted any more by then, as
/// `is_wanted` says.
///
/// # Errors
/// The last try's [`Failure`]; the one that asked for a puzzle where that cannot be solved here.
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

/// Joins something, as [`change`] and with puzzles as [`take`]: `begins` runs when one is being solved.
///
/// # Errors
/// The last try's [`Failure`]; the one that asked for a puzzle where that cannot be solved here.
pub async fn join<T: DeserializeOwned>(path: &str, key: &str, begins: impl Fn()) -> Result<T, Failure> {
    let answer = solving(path, key, "null", begins, || true).await?;
    parse(&answer.ok_or(Failure::Unreachable)?)
}

/// Sends a call, and again with the solution of each puzzle that is asked for; `None` when it is not wanted any more.
async fn solving(
    path: &str,
    key: &str,
    body: &str,
    begins: impl Fn(),
    is_wanted: impl Fn() -> bool,
) -> Result<Option<String>, Failure> {
    let (mut solution, mut puzzles) = (None::<String>, 0);
    loop {
        let call = Call { solution: solution.as_deref(), ..Call::changing(Method::POST, path, key, body) };
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

/// As [`change`], tried once, by somebody who knows what to do without an answer when this time is over.
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
    parse(&once(&Call { deadline_ms, ..Call::changing(Method::POST, path, key, &body) }).await?)
}

/// Removes something, under its idempotency key, with retries as [`change`].
///
/// # Errors
/// The last try's [`Failure`].
pub async fn remove(path: &str, key: &str) -> Result<(), Failure> {
    let call = Call { method: Method::DELETE, key: Some(key), ..Call::reading(path) };
    retrying(&call).await.map(drop)
}

/// Posts to `path` while the page goes away; nobody hears the answer.
pub fn beacon(path: &str) {
    // False when the browser refuses to queue it: then the hold runs its full time.
    let _ = super::window().navigator().send_beacon(path);
}

/// A call to be made. One type for all of them: what is generic is compiled for each, and downloaded.
struct Call<'a> {
    method: Method,
    path: &'a str,
    key: Option<&'a str>,
    body: Option<&'a str>,
    /// Of a puzzle the server asked for.
    solution: Option<&'a str>,
    deadline_ms: u32,
}

impl<'a> Call<'a> {
    fn reading(path: &'a str) -> Self {
        Self { method: Method::GET, path, key: None, body: None, solution: None, deadline_ms: DEADLINE_MS }
    }

    fn changing(method: Method, path: &'a str, key: &'a str, body: &'a str) -> Self {
        Self { method, key: Some(key), body: Some(body), ..Self::reading(path) }
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

/// Tries again what may pass. A reading that has no answer is left to its page, which knows when the line is back.
async fn retrying(call: &Call<'_>) -> Result<String, Failure> {
    let mut tries = 0;
    loop {
        let refused = match read_text(call).await {
            Ok(text) => return Ok(text),
            Err(refused) => refused,
        };
        tries += 1;
        let is_unanswered_reading = call.key.is_none() && refused.failure.status() == 0;
        match pause_ms(tries, refused.outcome(), ids::jitter).filter(|_| !is_unanswered_reading) {
            Some(pause_ms) => events::after(pause_ms).await,
            None => return Err(refused.failure),
        }
    }
}

async fn once(call: &Call<'_>) -> Result<String, Failure> {
    read_text(call).await.map_err(|refused| refused.failure)
}

/// A try that brought nothing.
struct Refused {
    failure: Failure,
    /// The pause the server asked for, milliseconds.
    retry_after_ms: Option<u32>,
}

impl Refused {
    fn outcome(&self) -> Outcome<'_> {
        Outcome { status: self.failure.status(), code: self.failure.code(), retry_after_ms: self.retry_after_ms }
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, retry_after_ms: None }
    }
}

async fn read_text(call: &Call<'_>) -> Result<String, Refused> {
    Ok(send(call).await?.text().await.map_err(|_| Failure::Unreachable)?)
}

/// Sends it once; an answer is one of success.
async fn send(call: &Call<'_>) -> Result<Response, Refused> {
    let asked_at = clock::monotonic_ms();
    let request = call.request().map_err(|_| Failure::Unreachable)?;
    let answer = request.send().await.map_err(|_| Failure::Unreachable)?;
    if let Some(now) = answer.headers().get(SERVER_TIME_HEADER).and_then(|text| text.parse().ok()) {
        clock::observe(Timestamp(now), asked_at);
    }
    if answer.ok() {
        return Ok(answer);
    }
    let retry_after_ms = answer.headers().get("retry-after").as_deref().and_then(read_retry_after);
    Err(Refused { failure: problem_of(&answer).await, retry_after_ms })
}

async fn problem_of(answer: &Response) -> Failure {
    let said = answer.text().await.ok().and_then(|text| json::read::<ProblemView>(&text));
    let problem = said.unwrap_or_else(|| ProblemView {
        // A proxy in between speaks no problem+json; its status still says something.
        kind: "about:blank".to_owned(),
        title: String::new(),
        status: answer.status(),
        detail: String::new(),
        code: String::new(),
        seats: Vec::new(),
        areas: Vec::new(),
        findings: Vec::new(),
        puzzle: None,
        hold: None,
        request_id: None,
    });
    Failure::Problem(Box::new(problem))
}

/// An answer that cannot be read is as good as none. Without content (204) it reads as `None`.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let text = if text.is_empty() { "null" } else { text };
    serde_json::from_str(text).map_err(|_| Failure::Unreachable)
}

/// The same by the small reader.
fn parse_small<T: FromJson>(text: &str) -> Result<T, Failure> {
    json::read(if text.is_empty() { "null" } else { text }).ok_or(Failure::Unreachable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_content_is_an_answer_where_nothing_may_come() {
        assert_eq!(parse::<Option<u32>>(""), Ok(None));
        assert_eq!(parse::<u32>(""), Err(Failure::Unreachable));
        assert_eq!(parse_small::<Option<u32>>(""), Ok(None));
        assert_eq!(parse_small::<u32>(""), Err(Failure::Unreachable));
    }
}
