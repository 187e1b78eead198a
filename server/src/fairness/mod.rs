//! Fair to people where many want the same seats: how often one may try for them, and what is unusual about how
//! somebody does (`domain::fairness`). How extensions shrink for whoever lets holds run out is the lock store's, where
//! the holds are.
//!
//! A try is counted for the visitor and for the address of the network it comes from ([`limits`]): buckets in Redis,
//! shared by all replicas, of which each gives out a lot before it tells. No try waits for that. What was seen of
//! visitors and addresses is kept in memory for half an hour ([`watch`]); what of it is unusual is written down in the
//! background ([`batch`]) and shown to managers ([`flags`]). A flag refuses nobody anything.
//!
//! What is not here: puzzles (`puzzles`), codes before checkout (`email_codes`), how often one may sign in
//! (`accounts::throttle`).

mod batch;
mod flags;
mod http;
mod limits;
mod sql;
mod watch;

use std::borrow::Cow;

use uuid::Uuid;

use crate::AppState;
use crate::config::Config;
use crate::web::{ClientAddress, Code, Problem, Visitor};

pub use batch::write_forever;
pub use flags::{dismiss, list};
pub use http::routes;

/// What a replica needs to be fair.
pub struct Fairness {
    limits: limits::Limits,
    watches: watch::Watches,
}

impl Fairness {
    /// From the settings.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self { limits: limits::Limits::new(config), watches: watch::Watches::default() }
    }
}

/// Who tries for seats of a show, and from where.
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
}

impl<'a> Trying<'a> {
    /// Somebody who tries for seats of this show.
    #[must_use]
    pub fn new(show: Uuid, visitor: &'a Visitor, address: &'a ClientAddress) -> Self {
        Self { show, owner: &visitor.owner, account: visitor.account, address }
    }

    /// Whose tries they are: an account's, on whatever device, or a visitor's.
    fn person(&self) -> Cow<'a, str> {
        self.account.map_or(Cow::Borrowed(self.owner), |account| Cow::Owned(account.to_string()))
    }

    /// They try. Asks no store.
    ///
    /// # Errors
    /// 429 when they, or all who come from there, try too often.
    pub fn once(&self, state: &AppState) -> Result<(), Problem> {
        let now = state.locks.now();
        state.fairness.watches.tried(self, now);
        state.fairness.limits.take(state, self, now)
    }

    /// They were granted a hold.
    pub fn held(&self, state: &AppState) {
        state.fairness.watches.held(self, state.locks.now());
    }

    /// What they sent for a puzzle was refused, if that is why.
    pub fn refused(&self, state: &AppState, why: &Problem) {
        if matches!(why.code(), Code::PuzzleWrong | Code::PuzzleSpent) {
            state.fairness.watches.puzzled(self, state.locks.now());
        }
    }
}
