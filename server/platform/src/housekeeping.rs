//! Deletes expired rows in batches: each statement deletes few, so that its locks block no other transaction for long.
//! Batches follow each other until nothing is left, so that deletes keep up with inserts.
//!
//! The owner of a table defines the condition, the batch size and the period beside its queries.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::background::PeriodicLoop;

/// Deletes expired rows with [`clear`] once per period, until the server stops.
pub async fn clear_forever<F>(
    stop: &CancellationToken,
    every: Duration,
    what: &'static str,
    batch_size: i64,
    delete: impl Fn(i64) -> F,
) where
    F: Future<Output = sqlx::Result<u64>>,
{
    let mut rounds = PeriodicLoop::every(stop, every);
    while rounds.wait_next().await {
        clear(stop, what, batch_size, &delete).await;
    }
}

/// Calls `delete` until it deletes less than a full batch. `delete` deletes at most `batch_size` rows of each kind and
/// returns the sum. When the database fails, the rest waits for the next round.
pub async fn clear<F>(stop: &CancellationToken, what: &'static str, batch_size: i64, delete: impl Fn(i64) -> F)
where
    F: Future<Output = sqlx::Result<u64>>,
{
    while !stop.is_cancelled() {
        match delete(batch_size).await {
            Ok(0) => return,
            Ok(deleted) => {
                tracing::debug!(what, deleted, "deleted expired rows");
                if deleted < batch_size.unsigned_abs() {
                    return;
                }
            }
            Err(cause) => {
                tracing::warn!(%cause, what, "delete of expired rows failed");
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

    /// Clears a table of `rows` rows in batches of three; returns the rows left and the number of calls of `delete`.
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
    async fn batches_follow_until_nothing_is_left() {
        let stop = CancellationToken::new();
        assert_eq!(cleared(0, None, &stop).await, (0, 1));
        assert_eq!(cleared(8, None, &stop).await, (0, 3), "a batch that is not full is the last");
        assert_eq!(cleared(9, None, &stop).await, (0, 4), "a full batch is followed by another");
        assert_eq!(cleared(8, Some(2), &stop).await, (5, 2), "a failure ends the round");
        stop.cancel();
        assert_eq!(cleared(8, None, &stop).await, (8, 0), "a server that stops deletes nothing");
    }
}
