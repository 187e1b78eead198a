//! Fair to people where many want the same seats: how often one may try for them, and what is unusual about how
//! somebody does (`domain::fairness`). How extensions shrink for whoever lets holds run out is the lock store's, where
//! the holds are.
//!
//! A try is counted for the visitor and for the address of the network it comes from ([`limits`]): buckets in Redis,
//! shared by all replicas, of which each gives out a lot before it tells. No try waits for that; only whoever is about to
//! be refused is asked about, for people who work where the show is are not. What was seen of
//! visitors and addresses is kept in memory for half an hour ([`watch`]); what of it is unusual is written down in the
//! background ([`batch`]) and shown to managers ([`flags`]). A flag refuses nobody anything.
//!
//! What is not here: puzzles (`puzzles`), codes before checkout (`email_codes`), how often one may try anything else
//! (`rate_limits`).

mod batch;
mod endpoints;
mod flags;
mod limits;
mod sql;
mod watch;

use std::borrow::Cow;

use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use crate::AdmissionSettings;
use crate::{AdmissionState, puzzles};
use catalogue::Show;
use http::{ClientAddress, Code, Problem};
use identity::Visitor;
use seats::seat_locks::with_map;

use limits::{Counts, Refused};

pub use batch::write_forever;
pub use endpoints::routes;
pub use flags::{dismiss, list};

/// Before refusing, we check whether this is staff or a repeat of a granted request; at most this many such checks of
/// each kind run at once, and beyond that we refuse without checking.
const MAX_ASKED_ABOUT: usize = 32;

/// What a replica needs to be fair.
pub struct Fairness {
    limits: limits::Limits,
    watches: watch::Watches,
    asking_for_staff: Semaphore,
    asking_for_repeats: Semaphore,
}

impl Fairness {
    /// From the settings.
    #[must_use]
    pub fn new(settings: &AdmissionSettings, redis_prefix: &str) -> Self {
        Self {
            limits: limits::Limits::new(settings, redis_prefix),
            watches: watch::Watches::default(),
            asking_for_staff: Semaphore::new(MAX_ASKED_ABOUT),
            asking_for_repeats: Semaphore::new(MAX_ASKED_ABOUT),
        }
    }

    /// A turn to ask the lock store whether a request that is about to be refused repeats a granted one; none while
    /// too many are asked about.
    #[must_use]
    pub fn turn_for_a_repeat(&self) -> Option<SemaphorePermit<'_>> {
        self.asking_for_repeats.try_acquire().ok()
    }
}

/// A caller who tries for seats of a show, changes a hold or checks out.
#[derive(Clone, Copy, Debug)]
pub struct Trying<'a> {
    /// The show.
    pub show: Uuid,
    /// The visitor, as the lock store knows them.
    pub owner: &'a str,
    /// The account they are signed in to.
    pub account: Option<Uuid>,
    /// Where they come from.
    pub address: &'a ClientAddress,
    /// Neither limited nor watched: they work where the show is, or ask for what they were granted.
    is_free: bool,
}

impl<'a> Trying<'a> {
    /// Somebody who tries for seats of this show.
    #[must_use]
    pub fn new(show: Uuid, visitor: &'a Visitor, address: &'a ClientAddress) -> Self {
        Self { show, owner: &visitor.owner, account: visitor.account, address, is_free: false }
    }

    /// Whose tries they are: an account's, on whatever device, or a visitor's.
    fn person(&self) -> Cow<'a, str> {
        self.account.map_or(Cow::Borrowed(self.owner), |account| Cow::Owned(account.to_string()))
    }

    /// They try; `request` is the hold they would get. It counts for the visitor, and for the address when it
    /// [goes on](Self::goes_on). Asks no store, unless it is about to refuse.
    ///
    /// # Errors
    /// 429 when they, or all who come from there, try too often.
    pub async fn once(&mut self, state: &AdmissionState, show: &Show, request: Option<Uuid>) -> Result<(), Problem> {
        self.is_free = puzzles::is_known_to_work_there(state, self.show, self.account).await;
        if self.is_free {
            return Ok(());
        }
        let (fairness, now) = (&state.fairness, state.clock.now());
        match fairness.limits.of_visitor(state, Counts::Tries, self, now) {
            Ok(()) => {
                fairness.watches.tried(self, now);
                Ok(())
            }
            Err(refused) => {
                fairness.watches.tried_in_vain(self, now);
                Box::pin(self.unless_free(state, show, request, refused)).await
            }
        }
    }

    /// The try goes on to the seats, so it counts for the address. One that was answered with a puzzle does not: else a
    /// crowd behind one address would pay twice for each hold.
    ///
    /// # Errors
    /// 429 when all who come from there try too often.
    pub async fn goes_on(&mut self, state: &AdmissionState, show: &Show, request: Option<Uuid>) -> Result<(), Problem> {
        if self.is_free {
            return Ok(());
        }
        match state.fairness.limits.of_address(state, Counts::Tries, self, state.clock.now()) {
            Ok(()) => Ok(()),
            Err(refused) => Box::pin(self.unless_free(state, show, request, refused)).await,
        }
    }

    /// Counts a change or an extension of a hold: the lock store may keep its answer for a day.
    ///
    /// # Errors
    /// 429 when the visitor, or all visitors of the address, do so too often.
    pub async fn count_change(&mut self, state: &AdmissionState, show: &Show) -> Result<(), Problem> {
        self.count(state, show, Counts::Changes).await
    }

    /// Counts a checkout of a hold. A replay is not counted.
    ///
    /// # Errors
    /// 429 when the visitor, or all visitors of the address, check out too often.
    pub async fn count_checkout(&mut self, state: &AdmissionState, show: &Show) -> Result<(), Problem> {
        self.count(state, show, Counts::Checkouts).await
    }

    /// Counts an act for the visitor and for the address; staff of the show's theatre are not counted.
    async fn count(&mut self, state: &AdmissionState, show: &Show, what: Counts) -> Result<(), Problem> {
        self.is_free = puzzles::is_known_to_work_there(state, self.show, self.account).await;
        if self.is_free {
            return Ok(());
        }
        let (limits, now) = (&state.fairness.limits, state.clock.now());
        let counted = limits.of_visitor(state, what, self, now);
        match counted.and_then(|()| limits.of_address(state, what, self, now)) {
            Ok(()) => Ok(()),
            Err(refused) => Box::pin(self.unless_free(state, show, None, refused)).await,
        }
    }

    /// The seller at the counter is not limited, nor whoever repeats what another replica granted.
    ///
    /// To be boxed: it asks two stores, and nearly nobody who tries comes this far.
    async fn unless_free(
        &mut self,
        state: &AdmissionState,
        show: &Show,
        request: Option<Uuid>,
        refused: Refused,
    ) -> Result<(), Problem> {
        // Turns of their own: while Postgres is slow to say who is staff, repeats are told all the same.
        if let Ok(_turn) = state.fairness.asking_for_staff.try_acquire() {
            self.is_free = puzzles::works_there(state, show, self.account).await;
        }
        if !self.is_free
            && let Some(_turn) = state.fairness.turn_for_a_repeat()
        {
            self.is_free = self.is_repeat(state, show, request).await;
        }
        if self.is_free { Ok(()) } else { Err(refused.told()) }
    }

    /// Whether they have what they ask for.
    async fn is_repeat(&self, state: &AdmissionState, show: &Show, request: Option<Uuid>) -> bool {
        if request.is_none() {
            return false;
        }
        let own = with_map(state, show, || state.locks.mine(show.id, self.owner)).await;
        own.is_ok_and(|own| own.map(|held| held.hold) == request)
    }

    /// They were granted a hold.
    pub fn held(&self, state: &AdmissionState) {
        if !self.is_free {
            state.fairness.watches.held(self, state.clock.now());
        }
    }

    /// They were sent away before the seats: what they sent for a puzzle was wrong, or they are to solve one first.
    pub fn refused(&self, state: &AdmissionState, why: &Problem) {
        if self.is_free || why.code() == Code::PuzzleWanted {
            return;
        }
        let now = state.clock.now();
        // They are refused already.
        let _ = state.fairness.limits.of_address(state, Counts::Tries, self, now);
        if matches!(why.code(), Code::PuzzleWrong | Code::PuzzleSpent) {
            state.fairness.watches.puzzled(self, now);
        }
    }
}
