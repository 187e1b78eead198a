//! A lane: sends mails of one kind, a few concurrently, so that a hanging mail server delays only the mails that are being
//! sent. The owner of the mails defines which are due, and records the results.

use std::time::Duration;

use domain::time::SECOND_MS;
use futures::{StreamExt, stream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use platform::background::wait_for_wake;

/// Interval of the checks for due mails without a wake-up: postponed mails, and those of another replica.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of mails of a lane that are sent concurrently. The next is leased when one is done, so that no leased mail
/// waits until its lease expires.
const MAX_CONCURRENT_MAILS: usize = 8;
/// Deadline of composing and sending a mail: a little more than the mailer gives a mail server.
pub const SEND_WITHIN: Duration = Duration::from_secs(25);
const _: () = assert!(SEND_WITHIN.as_secs() > super::SEND_DEADLINE.as_secs(), "the mailer gives up first");
/// Lease of a mail, milliseconds: longer than sending it and recording that may take. After it another replica takes the
/// mail of a dead one.
pub const LEASE_MS: i64 = 45 * SECOND_MS;
const _: () = assert!(LEASE_MS as u128 > SEND_WITHIN.as_millis(), "a lease lasts longer than sending");

/// A lane of mails of one kind.
#[derive(Debug)]
pub struct MailLane<'a> {
    /// The kind of mails, for the log.
    pub what: &'static str,
    /// Ends the lane.
    pub stop: &'a CancellationToken,
    /// Wakes the lane when a mail is due.
    pub wake: &'a Notify,
}

impl MailLane<'_> {
    /// Sends due mails until the server stops. `take` leases one due mail at a time; `send`, which runs concurrently, sends
    /// a mail and records the result. Leased mails are finished.
    pub async fn send_forever<M, Taking, Sending>(&self, take: impl Fn() -> Taking, send: impl Fn(M) -> Sending)
    where
        Taking: Future<Output = sqlx::Result<Option<M>>>,
        Sending: Future<Output = ()>,
    {
        let due = stream::unfold(&take, move |take| async move {
            let mail = self.next_due(take).await;
            mail.map(|mail| (mail, take))
        });
        due.for_each_concurrent(MAX_CONCURRENT_MAILS, send).await;
    }

    /// Waits for a due mail and leases it; `None` when the server stops.
    async fn next_due<M, Taking>(&self, take: &impl Fn() -> Taking) -> Option<M>
    where
        Taking: Future<Output = sqlx::Result<Option<M>>>,
    {
        while !self.stop.is_cancelled() {
            match take().await {
                Ok(Some(mail)) => return Some(mail),
                Ok(None) => {}
                Err(cause) => tracing::warn!(%cause, "read due {} failed", self.what),
            }
            if !wait_for_wake(self.stop, self.wake, LOOK_EVERY).await {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn at_most_eight_are_leased_at_a_time_and_all_are_sent() {
        let (stop, wake, go_on) = (CancellationToken::new(), Notify::new(), CancellationToken::new());
        let (left, sent) = (Mutex::new((0..20).collect::<Vec<u32>>()), Mutex::new(0));
        let lane = MailLane { what: "mails of a test", stop: &stop, wake: &wake };
        let take = || async { Ok(left.lock().expect("not poisoned").pop()) };
        let send = |_: u32| async {
            go_on.cancelled().await;
            let mut sent = sent.lock().expect("not poisoned");
            *sent += 1;
            if *sent == 20 {
                stop.cancel();
            }
        };
        let watch = async {
            while left.lock().expect("not poisoned").len() > 20 - MAX_CONCURRENT_MAILS {
                tokio::task::yield_now().await;
            }
            tokio::task::yield_now().await;
            assert_eq!(left.lock().expect("not poisoned").len(), 20 - MAX_CONCURRENT_MAILS);
            go_on.cancel();
        };
        tokio::join!(lane.send_forever(take, send), watch);
        assert_eq!(*sent.lock().expect("not poisoned"), 20);
    }
}
