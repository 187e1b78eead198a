//! Fairness where many want the same seats: rate limits on attempts, and flags of unusual behaviour
//! (`domain::fairness`). The lock store shortens extensions for owners whose holds ran out, because it has the holds.
//!
//! An attempt is counted for the visitor and for the network address it comes from ([`limits`]): token buckets in
//! Redis, shared by all replicas, of which each grants a lot before it reports it. No attempt waits for that. Only
//! before a refusal are stores called, because staff of the show's theatre and replays are exempt. Observations of
//! visitors and addresses are kept in memory for half an hour ([`watch`]); unusual ones are written in the background
//! ([`batch`]) and shown to managers ([`flags`]). A flag refuses nothing.
//!
//! Puzzles are in `puzzles`, codes before checkout in `email_codes`, and limits on other acts in
//! `rate_limits`.

mod batch;
mod flags;
mod limits;
mod watch;

use std::borrow::Cow;

use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use crate::AdmissionSettings;
use crate::{AdmissionState, puzzles};
use catalogue::Show;
use http::{ApiResult, ClientAddress, Code, Problem};
use identity::Visitor;
use seats::seat_locks::with_map;

use limits::{LimitExceeded, LimitedAct};

pub use batch::write_forever;
pub use flags::{dismiss, list, routes};

/// Maximum of concurrent checks of each kind (staff, replay) before a refusal; beyond it requests are refused
/// without a check.
const MAX_CHECKS: usize = 32;

/// State of fairness on one replica.
pub struct Fairness {
    limits: limits::AttemptLimits,
    watches: watch::Watches,
    staff_checks: Semaphore,
    replay_checks: Semaphore,
}

impl Fairness {
    /// Creates the state from the settings.
    #[must_use]
    pub fn new(settings: &AdmissionSettings, redis_prefix: &str) -> Self {
        Self {
            limits: limits::AttemptLimits::new(settings, redis_prefix),
            watches: watch::Watches::default(),
            staff_checks: Semaphore::new(MAX_CHECKS),
            replay_checks: Semaphore::new(MAX_CHECKS),
        }
    }

    /// Acquires a permit to ask the lock store if a request about to be refused is a replay of a granted one; `None`
    /// while too many such checks run.
    #[must_use]
    pub fn try_acquire_replay_check(&self) -> Option<SemaphorePermit<'_>> {
        self.replay_checks.try_acquire().ok()
    }
}

/// The caller of an attempt, a change of a hold or a checkout.
#[derive(Clone, Copy, Debug)]
pub struct LimitedCaller<'a> {
    /// The show.
    pub show: Uuid,
    /// The visitor, as the lock store identifies them.
    pub owner: &'a str,
    /// The account they are signed in to.
    pub account: Option<Uuid>,
    /// Its network address.
    pub address: &'a ClientAddress,
    /// Neither limited nor watched: staff of the show's theatre, or a replay.
    is_exempt: bool,
}

impl<'a> LimitedCaller<'a> {
    /// The caller of an attempt at seats of this show.
    #[must_use]
    pub fn new(show: Uuid, visitor: &'a Visitor, address: &'a ClientAddress) -> Self {
        Self { show, owner: &visitor.owner, account: visitor.account, address, is_exempt: false }
    }

    /// The name under which attempts are counted: the account on any device, or the visitor.
    fn person(&self) -> Cow<'a, str> {
        self.account.map_or(Cow::Borrowed(self.owner), |account| Cow::Owned(account.to_string()))
    }

    /// Counts an attempt for the visitor, and for the address when it [passes](Self::count_for_address). `request` is
    /// the id of the hold. Calls no store, except before a refusal.
    ///
    /// # Errors
    /// 429 if the visitor, or all visitors of the address, exceed their limit.
    pub async fn count_attempt(&mut self, state: &AdmissionState, show: &Show, request: Option<Uuid>) -> ApiResult<()> {
        self.is_exempt = puzzles::is_cached_staff_of(state, self.show, self.account).await;
        if self.is_exempt {
            return Ok(());
        }
        let (fairness, now) = (&state.fairness, state.clock.now());
        match fairness.limits.of_visitor(state, LimitedAct::Attempts, self, now) {
            Ok(()) => {
                fairness.watches.record_attempt(self, now);
                Ok(())
            }
            Err(refused) => {
                fairness.watches.record_refused_attempt(self, now);
                Box::pin(self.refuse_unless_exempt(state, show, request, refused)).await
            }
        }
    }

    /// Counts an attempt for the address, once it reaches the seats. An attempt answered with a puzzle is not counted;
    /// otherwise visitors behind one address would pay twice for each hold.
    ///
    /// # Errors
    /// 429 if all visitors of the address exceed its limit.
    pub async fn count_for_address(
        &mut self,
        state: &AdmissionState,
        show: &Show,
        request: Option<Uuid>,
    ) -> ApiResult<()> {
        if self.is_exempt {
            return Ok(());
        }
        match state.fairness.limits.of_address(state, LimitedAct::Attempts, self, state.clock.now()) {
            Ok(()) => Ok(()),
            Err(refused) => Box::pin(self.refuse_unless_exempt(state, show, request, refused)).await,
        }
    }

    /// Counts a change or an extension of a hold: the lock store may keep its answer for a day.
    ///
    /// # Errors
    /// 429 when the visitor, or all visitors of the address, do so too often.
    pub async fn count_change(&mut self, state: &AdmissionState, show: &Show) -> ApiResult<()> {
        self.count(state, show, LimitedAct::Changes).await
    }

    /// Counts a checkout of a hold. A replay is not counted.
    ///
    /// # Errors
    /// 429 when the visitor, or all visitors of the address, check out too often.
    pub async fn count_checkout(&mut self, state: &AdmissionState, show: &Show) -> ApiResult<()> {
        self.count(state, show, LimitedAct::Checkouts).await
    }

    /// Counts an act for the visitor and for the address; staff of the show's theatre are not counted.
    async fn count(&mut self, state: &AdmissionState, show: &Show, act: LimitedAct) -> ApiResult<()> {
        self.is_exempt = puzzles::is_cached_staff_of(state, self.show, self.account).await;
        if self.is_exempt {
            return Ok(());
        }
        let (limits, now) = (&state.fairness.limits, state.clock.now());
        let counted = limits.of_visitor(state, act, self, now);
        match counted.and_then(|()| limits.of_address(state, act, self, now)) {
            Ok(()) => Ok(()),
            Err(refused) => Box::pin(self.refuse_unless_exempt(state, show, None, refused)).await,
        }
    }

    /// Refuses, unless the caller is staff at the counter or repeats what another replica granted.
    ///
    /// To be boxed: it calls two stores, and hardly any attempt reaches it.
    async fn refuse_unless_exempt(
        &mut self,
        state: &AdmissionState,
        show: &Show,
        request: Option<Uuid>,
        refused: LimitExceeded,
    ) -> ApiResult<()> {
        // Separate permits: replays are answered even while Postgres is slow to return the staff.
        if let Ok(_permit) = state.fairness.staff_checks.try_acquire() {
            self.is_exempt = puzzles::is_staff_of(state, show, self.account).await;
        }
        if !self.is_exempt
            && let Some(_permit) = state.fairness.try_acquire_replay_check()
        {
            self.is_exempt = self.is_replay(state, show, request).await;
        }
        if self.is_exempt { Ok(()) } else { Err(refused.into_problem()) }
    }

    /// True if the caller has the hold it asks for.
    async fn is_replay(&self, state: &AdmissionState, show: &Show, request: Option<Uuid>) -> bool {
        if request.is_none() {
            return false;
        }
        let own = with_map(state, show, || state.locks.hold_of(show.id, self.owner)).await;
        own.is_ok_and(|own| own.map(|held| held.hold) == request)
    }

    /// Records a granted hold.
    pub fn record_hold(&self, state: &AdmissionState) {
        if !self.is_exempt {
            state.fairness.watches.record_hold(self, state.clock.now());
        }
    }

    /// Counts a refusal before the seats for the address, unless a puzzle is only required. Records wrong solutions.
    pub fn record_refusal(&self, state: &AdmissionState, why: &Problem) {
        if self.is_exempt || why.code() == Code::PuzzleWanted {
            return;
        }
        let now = state.clock.now();
        // The result is ignored: the attempt is refused already.
        let _ = state.fairness.limits.of_address(state, LimitedAct::Attempts, self, now);
        if matches!(why.code(), Code::PuzzleWrong | Code::PuzzleSpent) {
            state.fairness.watches.record_wrong_solution(self, now);
        }
    }
}
