//! The configured gateways in order of preference. Each is a [`GuardedGateway`]: with a breaker, a limit of concurrent calls
//! and a bounded queue.
//!
//! Charges go only to gateways with a closed breaker; a gateway with an open breaker is probed with a call that charges
//! nothing ([`probe_forever`]). `bookings::money::gateway_calls` decides at which gateway a booking is charged, and when it
//! may change (docs/decisions/0008).

mod adapters;
mod settings;

pub use adapters::{ADAPTERS, Adapter, secrets};
pub use settings::wrong_settings;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use domain::money::Money;
use domain::time::Timestamp;
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::Instrument;
use uuid::Uuid;

use super::PaymentEvent;
use super::gateway::{
    Charge, ChargeAnswer, Gateway, GatewayError, GatewayPayment, LedgerPage, PaymentIds, RefundAnswer, VoidAnswer,
    WebhookRefused, Window,
};
use http::{ApiResult, Code, Problem};
use platform::background::PeriodicLoop;
use platform::breaker::{Breaker, BreakerLimits, Pass};
use platform::ids;
use platform::telemetry::{self, GatewayOperation, GatewayOutcome, STEP};
use tokio_util::sync::CancellationToken;

/// Limits of the breaker. A failure is a call with all its attempts.
static BREAKER: BreakerLimits = BreakerLimits {
    failures_to_open: 5,
    window: Duration::from_secs(30),
    first_open_ms: 1_000,
    max_open_ms: 15_000,
    // Longer than the deadline of a call.
    probe_timeout: Duration::from_secs(12),
};
/// Maximum number of concurrent calls to one gateway.
const MAX_AT_ONCE: usize = 128;
/// Maximum number of queued calls: twice what one batch of sales makes at once (`bookings::commits`). Beyond it the gateway
/// counts as unavailable.
const MAX_WAITING: usize = 1_024;
/// Deadline of a queued call.
const QUEUE_DEADLINE: Duration = Duration::from_secs(2);
/// Interval of the checks for gateways to probe.
const PROBE_EVERY: Duration = Duration::from_millis(250);
/// Deadline of the fingerprint call: shorter than all checks before a charge together (`bookings::checkout::checks`), so
/// that a timeout counts as a failure for the breaker.
const FINGERPRINT_DEADLINE: Duration = Duration::from_secs(3);

/// The reason why a call was not sent.
#[derive(Debug, thiserror::Error)]
enum NotSentCause {
    #[error("it did not answer lately; again in {0:?}")]
    CircuitOpen(Duration),
    #[error("all lines to it are busy")]
    Busy,
}

/// A gateway behind a breaker and a bounded queue.
pub struct GuardedGateway {
    gateway: Arc<dyn Gateway>,
    breaker: Mutex<Breaker>,
    /// Slots for running and queued calls.
    queue_slots: Semaphore,
    /// Slots for running calls.
    call_slots: Semaphore,
}

impl GuardedGateway {
    fn new(gateway: Arc<dyn Gateway>) -> Self {
        Self {
            gateway,
            breaker: Mutex::new(Breaker::new(&BREAKER)),
            queue_slots: Semaphore::new(MAX_AT_ONCE + MAX_WAITING),
            call_slots: Semaphore::new(MAX_AT_ONCE),
        }
    }

    /// The gateway's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.gateway.name()
    }

    /// True if charges are accepted.
    #[must_use]
    pub fn is_available(&self) -> bool {
        !self.breaker().is_open() && self.queue_slots.available_permits() > 0
    }

    /// As [`Gateway::takes_token`].
    #[must_use]
    pub fn takes_token(&self, token: &str) -> bool {
        self.gateway.takes_token(token)
    }

    /// As [`Gateway::fingerprint`].
    ///
    /// # Errors
    /// [`GatewayError`].
    pub async fn fingerprint(&self, token: &str) -> Result<Option<String>, GatewayError> {
        let asked = async {
            let answer = tokio::time::timeout(FINGERPRINT_DEADLINE, self.gateway.fingerprint(token)).await;
            answer.unwrap_or_else(|_| Err(GatewayError::unreachable("the fingerprint call timed out")))
        };
        self.record_call(GatewayOperation::Instrument, self.call_guarded(asked)).await
    }

    /// As [`Gateway::charge`]; not sent while the breaker is open: a charge is never the probe.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub async fn charge(&self, charge: &Charge) -> Result<ChargeAnswer, GatewayError> {
        let asked = async {
            if self.breaker().is_open() {
                return Err(GatewayError::not_sent(NotSentCause::CircuitOpen(self.time_until_probe())));
            }
            self.call_guarded(self.gateway.charge(charge)).await
        };
        self.record_call(GatewayOperation::Charge, asked).await
    }

    /// As [`Gateway::status`].
    ///
    /// # Errors
    /// [`GatewayError`].
    pub async fn status(&self, payment: &PaymentIds) -> Result<Option<GatewayPayment>, GatewayError> {
        self.record_call(GatewayOperation::Status, self.call_guarded(self.gateway.status(payment))).await
    }

    /// As [`Gateway::void`].
    ///
    /// # Errors
    /// [`GatewayError`].
    pub async fn void(&self, payment: &PaymentIds) -> Result<VoidAnswer, GatewayError> {
        self.record_call(GatewayOperation::Void, self.call_guarded(self.gateway.void(payment))).await
    }

    /// As [`Gateway::refund`].
    ///
    /// # Errors
    /// [`GatewayError`].
    pub async fn refund(
        &self,
        payment: &PaymentIds,
        amount: Money,
        key: &str,
        lost: &[String],
    ) -> Result<RefundAnswer, GatewayError> {
        self.record_call(GatewayOperation::Refund, self.call_guarded(self.gateway.refund(payment, amount, key, lost)))
            .await
    }

    /// As [`Gateway::ledger`].
    ///
    /// # Errors
    /// [`GatewayError`].
    pub async fn ledger(&self, window: Window, after: Option<&str>) -> Result<LedgerPage, GatewayError> {
        self.record_call(GatewayOperation::Ledger, self.call_guarded(self.gateway.ledger(window, after))).await
    }

    /// As [`Gateway::read_webhook`].
    ///
    /// # Errors
    /// [`WebhookRefused`].
    pub fn read_webhook(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<PaymentEvent>, WebhookRefused> {
        self.gateway.read_webhook(headers, body, now)
    }

    /// Runs a call, and records its outcome and duration.
    async fn record_call<T>(
        &self,
        question: GatewayOperation,
        call: impl Future<Output = Result<T, GatewayError>>,
    ) -> Result<T, GatewayError> {
        let began = Instant::now();
        let span = tracing::debug_span!(target: STEP, "gateway", gateway = self.name(), ?question);
        let answer = call.instrument(span).await;
        let outcome = match &answer {
            Ok(_) | Err(GatewayError::Undecided(_)) => GatewayOutcome::Answered,
            Err(GatewayError::Refused { .. }) => GatewayOutcome::Refused,
            Err(GatewayError::NotSent(_)) => GatewayOutcome::NotSent,
            Err(GatewayError::Unreachable(_)) => GatewayOutcome::Unreachable,
        };
        telemetry::gateway_call(self.name(), question, outcome, began.elapsed());
        answer
    }

    /// Makes a call if a slot is free and the breaker admits it, and reports the result to the breaker.
    async fn call_guarded<T>(&self, call: impl Future<Output = Result<T, GatewayError>>) -> Result<T, GatewayError> {
        let _queue_slot = self.queue_slots.try_acquire().map_err(|_| GatewayError::not_sent(NotSentCause::Busy))?;
        let _call_slot = self.acquire_call_slot().await?;
        let admitted = self.breaker().admit(Instant::now());
        let pass = admitted.map_err(|wait| GatewayError::not_sent(NotSentCause::CircuitOpen(wait)))?;
        let running = RunningCall { gateway: self, pass: Some(pass) };
        let outcome = call.await;
        running.finish();
        match &outcome {
            // A refusal is an answer too: the gateway is up.
            Ok(_) | Err(GatewayError::Refused { .. } | GatewayError::Undecided(_)) => self.breaker().succeeded(),
            Err(cause @ (GatewayError::NotSent(_) | GatewayError::Unreachable(_))) => {
                if self.breaker().failed(Instant::now(), pass, ids::jitter) {
                    tracing::warn!(gateway = self.name(), %cause, "call to the gateway failed repeatedly; breaker opened");
                }
            }
        }
        outcome
    }

    /// Waits for a slot until the deadline of a queued call.
    async fn acquire_call_slot(&self) -> Result<SemaphorePermit<'_>, GatewayError> {
        match tokio::time::timeout(QUEUE_DEADLINE, self.call_slots.acquire()).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(GatewayError::not_sent(NotSentCause::Busy)),
        }
    }

    /// Time until the gateway may be probed.
    fn time_until_probe(&self) -> Duration {
        self.breaker().time_until_probe(Instant::now())
    }

    /// Probes the gateway, if its breaker is open and admits a probe: reads the status of a payment that never existed.
    async fn probe(&self) {
        if !self.breaker().is_open() || self.time_until_probe() > Duration::ZERO {
            return;
        }
        if self.status(&PaymentIds { booking: Uuid::nil(), gateway_ref: None }).await.is_ok() {
            tracing::info!(gateway = self.name(), "probe answered; breaker closed");
        }
    }

    // Held for a few assignments only, never across an await.
    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for GuardedGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedGateway")
            .field("gateway", &self.name())
            .field("breaker", &self.breaker())
            .finish_non_exhaustive()
    }
}

/// A running call. If its caller drops it, a probe ends without a result.
struct RunningCall<'a> {
    gateway: &'a GuardedGateway,
    pass: Option<Pass>,
}

impl RunningCall<'_> {
    fn finish(mut self) {
        self.pass = None;
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass {
            self.gateway.breaker().abandoned(Instant::now(), pass);
        }
    }
}

/// The gateways, the preferred one first.
#[derive(Debug)]
pub struct Gateways {
    gateways: Vec<GuardedGateway>,
}

impl Gateways {
    /// The gateways in order of preference.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn new(gateways: Vec<Arc<dyn Gateway>>) -> Self {
        assert!(!gateways.is_empty(), "at least one gateway is configured");
        gateways.iter().for_each(|gateway| telemetry::expect_gateway(gateway.name()));
        Self { gateways: gateways.into_iter().map(GuardedGateway::new).collect() }
    }

    /// Names of all gateways, the first choice first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.gateways.iter().map(GuardedGateway::name)
    }

    /// The gateway of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&GuardedGateway> {
        self.gateways.iter().find(|gateway| gateway.name() == name)
    }

    /// Checks that a gateway accepts charges. Called before seats are claimed: a buyer who cannot pay keeps the hold.
    ///
    /// # Errors
    /// 503 `gateway_unavailable` with `Retry-After`.
    pub fn require_available(&self) -> ApiResult<()> {
        if self.gateways.iter().any(GuardedGateway::is_available) {
            return Ok(());
        }
        let retry_after = self.gateways.iter().map(GuardedGateway::time_until_probe).min().unwrap_or_default();
        let words =
            "Payments cannot be taken at this moment. Your seats stay yours until the hold ends; nothing was charged.";
        Err(Problem::new(Code::GatewayUnavailable, words).with_retry_after(retry_after))
    }

    /// The gateway for the next booking: the first available one; the first of all if none is.
    #[must_use]
    pub fn first_choice(&self) -> &'static str {
        self.gateways.iter().find(|gateway| gateway.is_available()).unwrap_or(&self.gateways[0]).name()
    }

    /// An available gateway for a booking that has left the gateways `left`.
    #[must_use]
    pub fn first_choice_except(&self, left: &[String]) -> Option<&'static str> {
        let other =
            |gateway: &&GuardedGateway| gateway.is_available() && left.iter().all(|name| name != gateway.name());
        self.gateways.iter().find(other).map(GuardedGateway::name)
    }

    /// The token, if the gateway `name` may take it; `None` for a token of another gateway: then the payment page is opened
    /// instead.
    #[must_use]
    pub fn token_for(&self, name: &str, token: Option<String>) -> Option<String> {
        let token = token?;
        let taken_by: Vec<&str> =
            self.gateways.iter().filter(|gateway| gateway.takes_token(&token)).map(GuardedGateway::name).collect();
        (taken_by.is_empty() || taken_by.contains(&name)).then_some(token)
    }

    async fn probe(&self) {
        futures::future::join_all(self.gateways.iter().map(GuardedGateway::probe)).await;
    }
}

/// Probes the gateways with an open breaker. Runs until the server stops.
pub async fn probe_forever(gateways: Arc<Gateways>, stop: CancellationToken) {
    let mut rounds = PeriodicLoop::every(&stop, PROBE_EVERY);
    while rounds.wait_next().await {
        tokio::select! {
            () = stop.cancelled() => return,
            () = gateways.probe() => {}
        }
    }
}

#[cfg(test)]
mod tests;
