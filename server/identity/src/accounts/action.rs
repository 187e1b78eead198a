//! An action of staff in a theatre: done once per idempotency key, for a reason, and recorded in the audit list.

use domain::time::Timestamp;
use sqlx::{Postgres, Transaction};

use super::grants::reason_of;
use super::staff::Staff;
use crate::IdentityState;
use crate::audit::{self, AuditEntry};
use http::ApiResult;
use http::idempotency::{Answer, Intent};

/// An action of a member of staff.
pub struct StaffAction<'a> {
    /// The member of staff; the caller has checked the role.
    pub staff: &'a Staff,
    /// The theatre.
    pub theatre: &'a str,
    /// The idempotency key and the request.
    pub intent: &'a Intent,
    /// The reason as entered, not validated.
    pub reason: &'a str,
}

/// A running action: its transaction, with the idempotency key claimed in it.
pub struct StartedAction<'a> {
    /// The request and its member of staff.
    pub action: &'a StaffAction<'a>,
    /// The valid reason.
    pub reason: &'a str,
    /// All writes of the action use this transaction.
    pub tx: Transaction<'static, Postgres>,
    /// Start of the action, on the lock store's clock.
    pub now: Timestamp,
}

impl<'a> StaffAction<'a> {
    /// Begins the transaction; `Err` is the stored answer of an earlier request with the same key.
    ///
    /// # Errors
    /// 400 for an invalid reason, 422 when the key belongs to another request, 409 while that one is still running.
    pub async fn begin(&'a self, state: &IdentityState) -> ApiResult<Result<StartedAction<'a>, Answer>> {
        let now = state.clock.now();
        if let Some(answer) = self.intent.replay(&state.pg, now).await? {
            return Ok(Err(answer));
        }
        let reason = reason_of(self.reason)?;
        let mut tx = state.pg.begin().await?;
        if let Some(answer) = self.intent.begin(&mut tx, now).await? {
            return Ok(Err(answer));
        }
        Ok(Ok(StartedAction { action: self, reason, tx, now }))
    }
}

impl StartedAction<'_> {
    /// Records the audit entry and the answer, and commits.
    pub async fn finish(mut self, act: &'static str, subject: String, answer: Answer) -> ApiResult<Answer> {
        self.record(act, subject).await?;
        self.commit(answer).await
    }

    /// Records the audit entry.
    pub async fn record(&mut self, act: &'static str, subject: String) -> sqlx::Result<()> {
        let entry =
            AuditEntry::by(self.action.staff.session.account, act, subject, self.reason).at(self.action.theatre);
        audit::record(&mut self.tx, &entry, self.now).await
    }

    /// Records the answer, and commits.
    pub async fn commit(self, answer: Answer) -> ApiResult<Answer> {
        self.action.intent.commit(self.tx, answer, self.now).await
    }
}
