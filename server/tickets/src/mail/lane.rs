//! A lane: sends mails of one kind, a few concurrently, so that a hanging mail server delays only the mails that are being
//! sent. The owner of the mails defines which are due, and records the results.

use std::time::Duration;

use domain::time::SECOND_MS;
use futures::{StreamExt, stream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use platform::background::wait_for_wake;

/// Interval of the checks for due mails without a wake-up: postponed ones, and those that another replica left.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Mails of a lane that are sent concurrently. The next is leased when one is done: no leased mail waits behind another until
/// its lease expires.
const SIDE_BY_SIDE: usize = 8;
/// Deadline of composing and sending a mail: a little more than the mailer gives a mail server.
pub const SEND_WITHIN: Duration = Duration::from_secs(25);
const _: () = assert!(SEND_WITHIN.as_secs() > super::SEND_DEADLINE.as_secs(), "the mailer gives up first");
/// A mail taken by a replica that died is free for another after this long, milliseconds: longer than sending it and
/// noting that may take.
pub const LEASE_MS: i64 = 45 * SECOND_MS;
const _: () = assert!(LEASE_MS as u128 > SEND_WITHIN.as_millis(), "a lease lasts longer than sending");

/// A lane of mails of one kind.
#[derive(Debug)]
pub struct MailLane<'a> {
    /// Their kind, for the log.
    pub what: &'static str,
    /// Ends it.
    pub stop: &'a CancellationToken,
    /// Wakes the lane when a mail is due.
    pub wake: &'a Notify,
}

impl MailLane<'_> {
    /// Until the server stops, has `take` take a mail that is due, one at a time, and `send` send it and note that,
    /// side by side. What was taken is finished.
    pub async fn send_forever<M, Taking, Sending>(&self, take: impl Fn() -> Taking, send: impl Fn(M) -> Sending)
    where
        Taking: Future<Output = sqlx::Result<Option<M>>>,
        Sending: Future<Output = ()>,
    {
        let due = stream::unfold(&take, move |take| async move {
            let mail = self.next_due(take).await;
            mail.map(|mail| (mail, take))
        });
        due.for_each_concurrent(SIDE_BY_SIDE, send).await;
    }

    /// Waits for a mail that is due, and takes it. `None`: the server stops.
    async fn next_due<M, Taking>(&self, take: &impl Fn() -> Taking) -> Option<M>
    where
        Taking: Future<Output = sqlx::Result<Option<M>>>,
    {
        while !self.stop.is_cancelled() {
            match take().await {
                Ok(Some(mail)) => return Some(mail),
                Ok(None) => {}
                Err(cause) => tracing::warn!(%cause, "{} could not be read", self.what),
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
            while left.lock().expect("not poisoned").len() > 20 - SIDE_BY_SIDE {
                tokio::task::yield_now().await;
            }
            tokio::task::yield_now().await;
            assert_eq!(left.lock().expect("not poisoned").len(), 20 - SIDE_BY_SIDE);
            go_on.cancel();
        };
        tokio::join!(lane.send_forever(take, send), watch);
        assert_eq!(*sent.lock().expect("not poisoned"), 20);
    }
}
