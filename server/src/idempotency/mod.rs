//! One answer per intent (M5, first boundary): a client's key is bound to its request, and the answer
//! is stored in the same Postgres transaction as the effect.
//!
//! The row is the lock as well: a second request with the key waits on it, then replays. What is not
//! here yet: the layers in front of Postgres, which only make replays cheaper.

mod batch;
mod key;
mod purge;
mod sql;

pub use batch::{claim_all, complete_all, replay_all};
pub use key::IdempotencyKey;
pub use purge::purge_forever;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::time::{MINUTE_MS, Timestamp};
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::{PgConnection, PgPool};

use crate::web::{Code, Problem};

/// How long an unfinished request keeps its key.
const PENDING_LIFE_MS: i64 = 5 * MINUTE_MS;
/// How long an answer is kept for its key.
const COMPLETED_LIFE_MS: i64 = 24 * 60 * MINUTE_MS;

/// A key with the request it is bound to.
#[derive(Clone, Debug)]
pub struct Intent {
    owner: String,
    key: String,
    request_hash: Vec<u8>,
}

impl Intent {
    /// Binds `key` to a request. `body` is hashed as parsed, so key order and white space do not count.
    #[must_use]
    pub fn new(owner: &str, key: IdempotencyKey, method_and_path: &str, body: &impl Serialize) -> Self {
        let mut hash = Sha256::new();
        hash.update(method_and_path.as_bytes());
        hash.update([0]);
        // A value that came out of JSON goes back in.
        hash.update(serde_json::to_vec(body).unwrap_or_default());
        Self { owner: owner.to_owned(), key: key.0, request_hash: hash.finalize().to_vec() }
    }

    /// The key itself, for ids that follow from it.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whose key it is, and the key: what it is known by.
    #[must_use]
    pub fn name(&self) -> (String, String) {
        (self.owner.clone(), self.key.clone())
    }

    /// The request's digest, shortened: for a store that keeps keys itself.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.request_hash.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }

    /// The stored answer, if there is one.
    ///
    /// # Errors
    /// 422 when the key belongs to another request, 409 while that one is still running.
    pub async fn replay(&self, pg: &PgPool, now: Timestamp) -> Result<Option<Answer>, Problem> {
        let mut connection = pg.acquire().await?;
        match sql::find(&mut connection, &self.owner, &self.key, now).await? {
            None => Ok(None),
            Some(row) => self.judge(row).map(Some),
        }
    }

    /// Claims the key inside the caller's transaction. `Some` is the answer to give instead of doing
    /// the work; `None` means: do it, then [`Intent::complete`] or [`Intent::running`], then commit.
    ///
    /// # Errors
    /// As [`Intent::replay`].
    pub async fn begin(&self, tx: &mut PgConnection, now: Timestamp) -> Result<Option<Answer>, Problem> {
        let until = now.plus_ms(PENDING_LIFE_MS);
        if sql::claim(tx, &self.owner, &self.key, &self.request_hash, now, until).await? {
            return Ok(None);
        }
        match sql::find(tx, &self.owner, &self.key, now).await? {
            Some(row) => self.judge(row).map(Some),
            // It ran out between the two statements; the client asks again.
            None => Err(still_running()),
        }
    }

    /// Stores the answer in the caller's transaction.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn complete(&self, tx: &mut PgConnection, answer: &Answer, now: Timestamp) -> Result<(), sqlx::Error> {
        let until = now.plus_ms(COMPLETED_LIFE_MS);
        sql::complete(tx, &self.owner, &self.key, answer.status.as_u16().cast_signed(), &answer.body, until).await
    }

    fn judge(&self, row: sql::KeyRow) -> Result<Answer, Problem> {
        if row.request_hash != self.request_hash {
            return Err(Problem::new(
                Code::KeyReused,
                "Use a new Idempotency-Key for a new request; this one was used with another body or path.",
            ));
        }
        match (row.status, row.body) {
            (Some(status), Some(body)) => {
                let status = StatusCode::from_u16(status.cast_unsigned()).map_err(|cause| Problem::internal(&cause))?;
                Ok(Answer { status, body })
            }
            _ => Err(still_running()),
        }
    }
}

fn still_running() -> Problem {
    Problem::new(Code::StillRunning, "Wait a moment, then send the same request again to get its answer.")
}

/// An answer that can be given again, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    status: StatusCode,
    body: Vec<u8>,
}

impl Answer {
    /// `body` as JSON.
    ///
    /// # Errors
    /// When it cannot be serialised: a bug.
    pub fn json(status: StatusCode, body: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_vec(body).map_err(|cause| Problem::internal(&cause))?;
        Ok(Self { status, body })
    }

    /// Done, and nothing to say.
    #[must_use]
    pub fn no_content() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: Vec::new() }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = (self.status, Body::from(self.body)).into_response();
        let headers = response.headers_mut();
        if self.status != StatusCode::NO_CONTENT {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
