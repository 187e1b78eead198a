//! What is long over and of no use to anyone is deleted: a little in each statement, so that none of them holds anybody
//! up, and one after the other until nothing is left, so that as much goes as comes.
//!
//! What is over, how much goes at once and how often one looks is said by whoever keeps it, beside their own queries.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::background::Rounds;

/// Looks so often, until the server stops, and deletes as [`clear`] does.
pub async fn clear_forever<F>(
    stop: &CancellationToken,
    every: Duration,
    what: &'static str,
    at_once: i64,
    delete: impl Fn(i64) -> F,
) where
    F: Future<Output = Result<u64, sqlx::Error>>,
{
    let mut rounds = Rounds::every(stop, every);
    while rounds.go_on().await {
        clear(stop, what, at_once, &delete).await;
    }
}

/// Calls `delete`, which deletes `at_once` rows of each kind at most and says how many in all, until it finds fewer: then
/// nothing is left, and nobody asks for that once more. When the database fails, the rest waits for another round.
pub async fn clear<F>(stop: &CancellationToken, what: &'static str, at_once: i64, delete: impl Fn(i64) -> F)
where
    F: Future<Output = Result<u64, sqlx::Error>>,
{
    while !stop.is_cancelled() {
        match delete(at_once).await {
            Ok(0) => return,
            Ok(gone) => {
                tracing::debug!(what, gone, "what is over was deleted");
                if gone < at_once.unsigned_abs() {
                    return;
                }
            }
            Err(cause) => {
                tracing::warn!(%cause, what, "what is over could not be deleted");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use super::*;

    /// What is left of a table of so many rows of which three go at once, and how often it was asked.
    async fn cleared(rows: u64, fails_at: Option<u32>, stop: &CancellationToken) -> (u64, u32) {
        let (left, asked) = (Cell::new(rows), Cell::new(0));
        let delete = |at_once: i64| {
            asked.set(asked.get() + 1);
            if fails_at == Some(asked.get()) {
                return ready(Err(sqlx::Error::PoolTimedOut));
            }
            let gone = left.get().min(at_once.unsigned_abs());
            left.set(left.get() - gone);
            ready(Ok(gone))
        };
        clear(stop, "rows of a test", 3, delete).await;
        (left.get(), asked.get())
    }

    #[tokio::test]
    async fn as_much_goes_as_there_is_a_little_at_a_time() {
        let stop = CancellationToken::new();
        assert_eq!(cleared(0, None, &stop).await, (0, 1));
        assert_eq!(cleared(8, None, &stop).await, (0, 3), "two where three might be are the last");
        assert_eq!(cleared(9, None, &stop).await, (0, 4), "three may have others behind them");
        assert_eq!(cleared(8, Some(2), &stop).await, (5, 2), "a database that fails is left in peace");
        stop.cancel();
        assert_eq!(cleared(8, None, &stop).await, (8, 0), "a server that stops begins nothing");
    }
}
