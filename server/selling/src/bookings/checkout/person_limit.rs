//! The limit of seats per person, for a person who may pay for several bookings at once.
//!
//! Every browser that signs in adds its visitor to the account, and a guest may give the address of an account. The
//! seats of all of them are counted before a charge (`checks`); but two browsers of one person that pay concurrently
//! would not count each other's seats. So the submission of such a buyer takes an advisory lock on its show and
//! person until its transaction ends, counts again in the next statement, and only then claims seats. A batch tries
//! the locks of all its persons without waiting, and counts them in one statement; a submission whose lock is taken
//! is committed alone, and waits. Guests without a verified address, and accounts with one visitor and no verified
//! address, take no lock and are not counted again: a visitor has one hold at a time. While the lock store is
//! unavailable, holds are not verified, and a visitor may have checked out and released several: these buyers take a
//! lock on their show and visitor, and are counted again too.
//!
//! The lock is taken after the booking's row lock, before that of a card (`instruments`) and before any claim. The
//! holder of the lock waits for no row of a submission that waits for the lock: those rows are its own key and
//! booking.
//!
//! **Known gaps.** The person is looked up with the buyer's record. An account that verifies its address, or whose
//! second browser signs in for the first time, in the milliseconds between that lookup and the submission may pass
//! the limit once. While the lock store is unavailable, so may a visitor who pays for two bookings in the same
//! milliseconds, if only one of their e-mail addresses is an account's, or if another replica still verifies one hold.

use std::collections::{HashMap, HashSet};

use domain::time::Timestamp;
use sqlx::PgConnection;

use super::checks::{self, PersonLock};
use super::instruments;
use crate::bookings::sql::BookingRow;
use catalogue::Show;
use http::{ApiResult, Problem};
use platform::database::BindAll;

/// Namespace of the advisory locks of persons: "acct" in ASCII, from when they were accounts.
const LOCK_SPACE: i64 = 0x6163_6374;

/// Refuses a submission if the person's visitors have too many seats of its show by now. Runs in the submission's
/// transaction, after the booking was locked.
///
/// # Errors
/// As the check before it: 429 `person_limit`; 503 when other transactions of this person take too long.
pub(crate) async fn check_under_lock(
    tx: &mut PgConnection,
    show: &Show,
    row: &BookingRow,
    person: &PersonLock,
    now: Timestamp,
) -> ApiResult<()> {
    lock(tx, person).await?;
    // A statement after the lock: its snapshot includes commits of earlier holders of the lock.
    checks::recheck(tx, show, row, now).await
}

/// Takes the lock of a person until the transaction ends.
pub(super) async fn lock(tx: &mut PgConnection, person: &PersonLock) -> sqlx::Result<()> {
    instruments::lock(tx, LOCK_SPACE, person.0.clone()).await
}

/// A submission of a batch for which the seats of its person are counted under a lock.
pub(crate) struct PersonCheck<'a> {
    pub(crate) index: usize,
    pub(crate) person: &'a PersonLock,
    pub(crate) show: &'a Show,
    pub(crate) row: &'a BookingRow,
}

/// Reasons why a submission leaves its batch.
pub(crate) enum Verdict {
    /// Another transaction has the lock: the submission is committed alone, and waits for it.
    Busy,
    /// The person would have too many seats.
    Refused(Problem),
}

/// [`check_under_lock`] for the submissions of a batch: tries all locks in one statement without waiting, and counts in
/// the next. Submissions without a verdict stay in the batch.
///
/// # Errors
/// When the database fails.
pub(crate) async fn try_check_batch(
    tx: &mut PgConnection,
    submissions: &[PersonCheck<'_>],
    now: Timestamp,
) -> sqlx::Result<HashMap<usize, Verdict>> {
    let mut verdicts = HashMap::new();
    if submissions.is_empty() {
        return Ok(verdicts);
    }
    let names: Vec<&str> = submissions.iter().map(|submission| submission.person.0.as_str()).collect();
    let sql = "SELECT pg_try_advisory_xact_lock(hashtextextended(name, $2))
               FROM unnest($1::text[]) WITH ORDINALITY AS person (name, place) ORDER BY place";
    let locked: Vec<bool> = sqlx::query_scalar(sql).bind_all((&names, LOCK_SPACE)).fetch_all(&mut *tx).await?;
    let (mut mine, mut seen) = (Vec::with_capacity(submissions.len()), HashSet::new());
    for (submission, is_locked) in submissions.iter().zip(locked) {
        // A second submission of a person is counted after the first one is written.
        if is_locked && seen.insert(submission.person) {
            mine.push(submission);
        } else {
            verdicts.insert(submission.index, Verdict::Busy);
        }
    }
    let bookings: Vec<(&Show, &BookingRow)> = mine.iter().map(|submission| (submission.show, submission.row)).collect();
    if bookings.is_empty() {
        return Ok(verdicts);
    }
    // In a statement after the locks.
    let rechecked = checks::recheck_all(tx, &bookings, now).await?;
    for (submission, rechecked) in mine.into_iter().zip(rechecked) {
        if let Err(problem) = rechecked {
            verdicts.insert(submission.index, Verdict::Refused(problem));
        }
    }
    Ok(verdicts)
}
