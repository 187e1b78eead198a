//! Reading for a report: one instant of the database, not for long, and a few at a time.

use std::time::Duration;

use sqlx::{Postgres, Transaction};
use tokio::sync::SemaphorePermit;

use crate::BackofficeState;
use http::{Code, Problem};

/// A report waits so long for its turn.
const TURN_DEADLINE: Duration = Duration::from_secs(5);
/// Nothing is written, everything is of one instant, and a question that takes longer than this is given up. Tables are
/// read by keys, from the theatre's shows on: it costs what this theatre sold, and never what all of them did. Left to
/// itself, the planner of a small chain reads whole tables, and keeps doing so for a while when it has grown.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '5s'; \
                     SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; \
                     SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

/// Payments come in before their show starts, or shortly after; a webhook that was lost for weeks is the rare worst.
/// So whoever looks for sales of a day looks at shows from this long before it on, days.
pub(super) const LATE_DAYS: i32 = 35;

/// A turn, with a view of the database.
pub(super) struct Reading<'a> {
    pub(super) tx: Transaction<'static, Postgres>,
    _turn: SemaphorePermit<'a>,
}

impl<'a> Reading<'a> {
    /// Begins when it is its turn.
    ///
    /// # Errors
    /// 503 when others are reading for too long.
    pub(super) async fn begin(state: &'a BackofficeState) -> Result<Self, Problem> {
        let turn = tokio::time::timeout(TURN_DEADLINE, state.reports.together.acquire()).await;
        let Ok(Ok(turn)) = turn else {
            return Err(Problem::new(Code::Overloaded, "Others are reading reports. Please try again in a moment."));
        };
        Ok(Self { tx: state.pg.begin_with(BEGIN).await?, _turn: turn })
    }
}

/// A question that was given up says what to do about it.
pub(super) fn unread(cause: sqlx::Error) -> Problem {
    match &cause {
        sqlx::Error::Database(error) if error.code().as_deref() == Some("57014") => {
            tracing::warn!(%cause, "a report took too long");
            Problem::new(Code::Overloaded, "There is too much to read at once. Please ask for fewer days.")
        }
        _ => cause.into(),
    }
}
