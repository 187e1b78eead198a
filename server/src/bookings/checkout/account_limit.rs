//! The limit of seats per person, for an account with several visitors.
//!
//! Every browser that signs in makes its visitor one more of the account's. What they all bought is counted before a
//! charge (`checks`); but two browsers of one account that pay at the same moment would both be told that the other has
//! nothing yet. So the submission of such a buyer goes by itself, past the batches: it takes a lock of its show and
//! account that lasts until its transaction ends, counts again, and only then claims seats. Everybody else, guests and
//! accounts with one visitor, neither waits nor is counted twice: their own hold stands in the way of another.
//!
//! The lock is taken after the booking's row, before that of a card (`instruments`) and before any claim. Nobody who
//! holds it waits for what somebody who waits for it has locked: that is their own key and booking.
//!
//! **What is left.** Whether there are several is asked with the buyer's record. An account whose second browser signs in
//! for the first time within the milliseconds between that and the first one's submission may pass the limit once.

use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{checks, instruments};
use crate::bookings::sql::BookingRow;
use crate::catalogue::Show;
use crate::web::Problem;

/// Keeps the advisory locks of accounts apart from others: "acct" in ASCII.
const LOCK_SPACE: i64 = 0x6163_6374;

/// Lets a submission pass unless the account's visitors have too many seats of its show by now. In the submission's
/// transaction, after the booking was locked.
///
/// # Errors
/// As the check before it: 429 `person_limit`; 503 when others of this account take too long.
pub(in crate::bookings) async fn claim(
    tx: &mut PgConnection,
    show: &Show,
    row: &BookingRow,
    account: Uuid,
    now: Timestamp,
) -> Result<(), Problem> {
    instruments::lock(tx, LOCK_SPACE, format!("{}{account}", show.id)).await?;
    // In a statement after the lock: it sees what whoever had it before has committed.
    checks::look_again(tx, show, row, now).await
}
