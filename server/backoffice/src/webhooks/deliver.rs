//! Delivers webhooks: signed, with a timeout, back-off and a maximum number of attempts.
//!
//! The signature has the scheme that payment gateways use with us (`payments::signature`):
//! `Rowlock-Signature: t=<unix seconds>,v1=<hex>[,v1=<hex>]`, HMAC-SHA-256 over `<t>.<raw body>`. During the rotation of a
//! secret there are two signatures, so that the receiver may switch at any time.
//!
//! Every replica delivers; one replica at a time leases a delivery. A slow endpoint does not delay the others: of the
//! concurrent deliveries, one endpoint gets at most a quarter and one theatre at most half. An endpoint whose last
//! delivery failed gets one; all such endpoints together get half, after the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::api::systems::{DeliveryState, EndpointState};
use domain::time::{MINUTE_MS, SECOND_MS};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, Url};
use sha2::Sha256;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use super::client::is_callable;
use super::sql::{self, DeliveryLimits, DueDelivery};
use crate::BackofficeState;
use identity::audit::{self, AuditEntry};
use platform::ids;

/// Maximum number of concurrent deliveries of this replica.
const MAX_CONCURRENT: usize = 16;
/// Maximum per endpoint.
const MAX_PER_ENDPOINT: i64 = 4;
/// Maximum per failing endpoint: one message shows whether it has recovered.
const MAX_PER_FAILING_ENDPOINT: i64 = 1;
/// Maximum for the endpoints of one theatre together.
const MAX_PER_THEATRE: i64 = 8;
/// Maximum for all failing endpoints together, across theatres.
const MAX_FAILING: i64 = 8;
/// Polling interval for due deliveries.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Delay before a poll for a freed slot: limits the rate of polls after deliveries.
const FREED_SLOT_DELAY: Duration = Duration::from_millis(50);
/// Lease of a delivery, milliseconds: longer than any timeout.
const LEASE_MS: i64 = 2 * MINUTE_MS;
/// Maximum number of attempts: with a back-off from five seconds to an hour, two hours on average.
const MAX_TRIES: i32 = 14;
/// Maximum back-off, milliseconds.
const MAX_BACKOFF_MS: u64 = 60 * 60 * SECOND_MS.unsigned_abs();
/// Maximum number of consecutive failures before an endpoint is switched off; its managers see the reason.
const MAX_FAILURES: i32 = 40;
/// Maximum length of a stored error, characters.
const MAX_ERROR_CHARS: usize = 200;

#[derive(Debug, PartialEq, Eq)]
enum DeliveryOutcome {
    Delivered(u16),
    /// 410: the other system asks to stop.
    Gone,
    Failed(Option<u16>, String),
}

/// Delivers until the server stops; unfinished deliveries are retried after their lease.
pub async fn deliver_forever(state: BackofficeState) {
    let slots = Arc::new(Semaphore::new(MAX_CONCURRENT));
    let running = RunningDeliveries::default();
    let mut look = tokio::time::interval(POLL_INTERVAL);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        // Not the shared loop of `background`: this one polls on schedule, and shortly after a slot is freed.
        tokio::select! {
            () = state.stop.cancelled() => return,
            _ = look.tick() => {}
            () = running.wait_for_freed_slot() => {}
        }
        let free = slots.available_permits();
        if free == 0 {
            continue;
        }
        let share = DeliveryLimits {
            of_endpoint: MAX_PER_ENDPOINT,
            of_failing: MAX_PER_FAILING_ENDPOINT,
            of_theatre: MAX_PER_THEATRE,
            of_all_failing: MAX_FAILING,
            now: free as i64,
        };
        let now = state.clock.now();
        let taken = sql::take(&state.pg, &running.all(), (now, now.plus_ms(LEASE_MS)), share).await;
        let taken = taken.unwrap_or_else(|cause| {
            tracing::warn!(%cause, "reading the due webhook deliveries failed");
            Vec::new()
        });
        for due in taken {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let at_work = running.enter(due.endpoint_id, slot);
            state.tasks.spawn(deliver_one(state.clone(), due, at_work));
        }
    }
}

/// Running deliveries of this replica, by endpoint.
#[derive(Clone, Default)]
struct RunningDeliveries {
    at_work: Arc<Mutex<HashMap<Uuid, i64>>>,
    freed: Arc<Notify>,
}

/// A running delivery. Dropping it frees its slot, also after a panic.
struct RunningDelivery {
    running: RunningDeliveries,
    endpoint: Uuid,
    slot: Option<OwnedSemaphorePermit>,
}

impl RunningDeliveries {
    fn all(&self) -> Vec<(Uuid, i64)> {
        let at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        at_work.iter().map(|(endpoint, count)| (*endpoint, *count)).collect()
    }

    fn enter(&self, endpoint: Uuid, slot: OwnedSemaphorePermit) -> RunningDelivery {
        *self.at_work.lock().unwrap_or_else(PoisonError::into_inner).entry(endpoint).or_default() += 1;
        RunningDelivery { running: self.clone(), endpoint, slot: Some(slot) }
    }

    /// Waits until a slot is freed, and a moment longer: several are often freed together.
    async fn wait_for_freed_slot(&self) {
        self.freed.notified().await;
        tokio::time::sleep(FREED_SLOT_DELAY).await;
    }
}

impl Drop for RunningDelivery {
    fn drop(&mut self) {
        let mut at_work = self.running.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = at_work.get_mut(&self.endpoint) {
            *count -= 1;
            if *count == 0 {
                at_work.remove(&self.endpoint);
            }
        }
        // Free the slot before notifying the waiter.
        drop(at_work);
        self.slot = None;
        self.running.freed.notify_one();
    }
}

async fn deliver_one(state: BackofficeState, due: DueDelivery, _at_work: RunningDelivery) {
    let outcome = send_message(&state, &due).await;
    if let Err(cause) = record_outcome(&state, &due, &outcome).await {
        // The lease expires, and the message is sent again: receivers accept duplicates.
        tracing::warn!(delivery = due.id, %cause, "recording the outcome of a webhook delivery failed");
    }
}

async fn send_message(state: &BackofficeState, due: &DueDelivery) -> DeliveryOutcome {
    let url = match Url::parse(&due.url) {
        Ok(url) if state.webhook_settings.webhooks_may_be_private || is_callable(&url) => url,
        _ => return DeliveryOutcome::Failed(None, "the address is not on the public internet".to_owned()),
    };
    let secrets: Vec<&str> = std::iter::once(due.secret.as_str()).chain(due.old_secret.as_deref()).collect();
    let signed = sign(due.body.as_bytes(), state.clock.now().0.div_euclid(SECOND_MS), &secrets);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in [
        (SIGNATURE_HEADER, signed),
        ("rowlock-event", due.event.clone()),
        ("rowlock-message", due.message_id.to_string()),
        ("rowlock-try", due.tries.to_string()),
    ] {
        // Fixed names, hex and numbers are valid header values.
        headers.extend(HeaderValue::try_from(value).ok().map(|value| (HeaderName::from_static(name), value)));
    }
    let sent = state.webhooks.0.post(url).headers(headers).body(due.body.clone()).send().await;
    match sent {
        // The body is not read.
        Ok(answer) => outcome_of(answer.status()),
        Err(cause) => DeliveryOutcome::Failed(None, describe_error(&cause)),
    }
}

fn outcome_of(status: StatusCode) -> DeliveryOutcome {
    match status {
        status if status.is_success() => DeliveryOutcome::Delivered(status.as_u16()),
        StatusCode::GONE => DeliveryOutcome::Gone,
        status if status.is_redirection() => {
            DeliveryOutcome::Failed(Some(status.as_u16()), "it redirects, and redirects are not followed".to_owned())
        }
        status => DeliveryOutcome::Failed(Some(status.as_u16()), format!("it answered {}", status.as_u16())),
    }
}

/// Formats the innermost cause, without the address, which is stored elsewhere.
fn describe_error(cause: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = cause;
    while let Some(deeper) = last.source() {
        last = deeper;
    }
    let words = if cause.is_timeout() { "it did not answer in time".to_owned() } else { last.to_string() };
    words.chars().filter(|sign| !sign.is_control()).take(MAX_ERROR_CHARS).collect()
}

/// Records the outcome of an attempt, for the delivery and for its endpoint.
async fn record_outcome(state: &BackofficeState, due: &DueDelivery, outcome: &DeliveryOutcome) -> sqlx::Result<()> {
    let now = state.clock.now();
    let mut tx = state.pg.begin().await?;
    let (to, status, error, pause) = match outcome {
        DeliveryOutcome::Delivered(status) => (DeliveryState::Delivered, Some(*status), None, 0),
        DeliveryOutcome::Gone => {
            (DeliveryState::Failed, Some(StatusCode::GONE.as_u16()), Some("it says that it is gone"), 0)
        }
        DeliveryOutcome::Failed(status, why) if due.tries >= MAX_TRIES => {
            (DeliveryState::Failed, *status, Some(why.as_str()), 0)
        }
        DeliveryOutcome::Failed(status, why) => {
            (DeliveryState::Waiting, *status, Some(why.as_str()), backoff_ms(state, due.tries))
        }
    };
    // Lock order: the endpoint before its delivery, as in switching it off; the reverse order could deadlock.
    sql::lock_for_outcome(&mut tx, due.endpoint_id).await?;
    // A later attempt or a manager has changed the delivery since: their outcome counts.
    if !sql::record_attempt(&mut tx, due, to, (status, error), now.plus_ms(pause)).await? {
        return Ok(());
    }
    if to == DeliveryState::Delivered {
        sql::reset_failures(&mut tx, due.endpoint_id).await?;
    } else if let Some((theatre, row)) = sql::add_failure(&mut tx, due.endpoint_id).await? {
        let notice = match outcome {
            DeliveryOutcome::Gone => Some("It answered 410 Gone.".to_owned()),
            _ if row.failures >= MAX_FAILURES => {
                Some(format!("{} tries in a row failed; the last one: {}.", row.failures, error.unwrap_or("no answer")))
            }
            _ => None,
        };
        if let (Some(notice), Ok(EndpointState::On)) = (notice, row.state())
            && sql::put_state(&mut tx, &row, EndpointState::Failed, Some(&notice)).await?
        {
            tracing::warn!(endpoint = %row.id, %notice, "switched off webhook endpoint {} after failures", row.id);
            let entry = AuditEntry {
                actor: None,
                theatre: Some(&theatre),
                act: "webhook_switched_off",
                subject: format!("webhook {}", row.id),
                reason: &notice,
            };
            audit::record(&mut tx, &entry, now).await?;
        }
    }
    tx.commit().await
}

/// Exponential back-off with full jitter.
fn backoff_ms(state: &BackofficeState, tries: i32) -> i64 {
    ids::backoff_ms(state.webhook_settings.webhook_first_pause_ms, tries, MAX_BACKOFF_MS)
}

/// Name of the header with the signature.
const SIGNATURE_HEADER: &str = "rowlock-signature";

/// Returns the value of the header with the signature.
fn sign(body: &[u8], at_s: i64, secrets: &[&str]) -> String {
    let mut header = format!("t={at_s}");
    for secret in secrets {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
        mac.update(at_s.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        header.push_str(",v1=");
        header.push_str(&hex::encode(mac.finalize().into_bytes()));
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_2xx_answers_count_as_delivered() {
        let of = |status: u16| outcome_of(StatusCode::from_u16(status).expect("a status"));
        assert_eq!(of(204), DeliveryOutcome::Delivered(204));
        assert_eq!(of(410), DeliveryOutcome::Gone);
        for status in [301, 302, 307, 308, 400, 401, 404, 429, 500, 503] {
            assert!(matches!(of(status), DeliveryOutcome::Failed(Some(code), _) if code == status), "{status}");
        }
    }

    #[tokio::test]
    async fn dropping_a_delivery_frees_its_slot() {
        let (running, endpoint, lane) = (RunningDeliveries::default(), Uuid::from_u128(1), Arc::new(Semaphore::new(2)));
        let slot = || Arc::clone(&lane).try_acquire_owned().expect("a place");
        let (first, second) = (running.enter(endpoint, slot()), running.enter(endpoint, slot()));
        assert_eq!((running.all(), lane.available_permits()), (vec![(endpoint, 2)], 0));
        drop(first);
        running.wait_for_freed_slot().await;
        assert_eq!((running.all(), lane.available_permits()), (vec![(endpoint, 1)], 1));
        drop(second);
        assert!(running.all().is_empty());
    }

    #[test]
    fn a_signature_matches_openssl() {
        // Computed with: printf '1795000000.hello' | openssl dgst -sha256 -hmac secret
        let known = "v1=5386974c8d502619b331b6c9d13406991398c847eba91e921e6f93a6b6edcca9";
        assert_eq!(sign(b"hello", 1_795_000_000, &["secret"]), format!("t=1795000000,{known}"));
        let both = sign(b"hello", 1_795_000_000, &["new", "secret"]);
        assert_eq!((both.matches("v1=").count(), both.ends_with(known)), (2, true));
    }
}
