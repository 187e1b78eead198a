//! How often one may try: per person and per address, for all replicas together.
//!
//! A bucket in Redis each, which fills by itself (`take.lua`). While Redis is away every replica counts for itself
//! (`local`): a guesser then has as many tries more as there are replicas, and people sign in all the same. Postgres is
//! not asked to count: when Redis is away it has enough to do.
//!
//! Whom a bucket is of is hashed: a copy of Redis names nobody.

mod local;

use std::time::Duration;

use domain::time::Timestamp;
use redis::Value;
use sha2::{Digest, Sha256};

use crate::AppState;
use crate::seat_locks::link::LuaScript;
use crate::web::problem::Limit;
use crate::web::{ClientAddress, Code, Problem};

/// A try waits so long for Redis, then this replica counts by itself.
const DEADLINE: Duration = Duration::from_millis(250);

/// What one may do in a row, and how soon again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Its name, for whoever runs into it.
    name: &'static str,
    /// So many at once.
    burst: u32,
    /// Each is back after this long, milliseconds.
    each_ms: i64,
}

/// Tries to sign in to an account from one address; those that go well do not count. A reset by mail fills it again.
const LOGIN_PAIR: Allowance = Allowance { name: "login-pair", burst: 10, each_ms: 30_000 };
/// Tries to sign in to an account from anywhere: many more, so that nobody is shut out by the guesses of one other.
/// It too counts no try that goes well, and is filled by a reset.
const LOGIN_PERSON: Allowance = Allowance { name: "login-person", burst: 100, each_ms: 30_000 };
/// Tries to sign in from an address.
pub(super) const LOGIN_ADDRESS: Allowance = Allowance { name: "login-address", burst: 60, each_ms: 1_000 };
/// New accounts from an address.
pub(super) const REGISTER_ADDRESS: Allowance = Allowance { name: "register-address", burst: 20, each_ms: 30_000 };
/// Mails to a person, whoever asks for them.
pub(super) const MAIL_PERSON: Allowance = Allowance { name: "mail-person", burst: 4, each_ms: 300_000 };
/// Changes a manager makes to who works in a theatre: each tells whether an address has an account.
pub(super) const GRANTS_MANAGER: Allowance = Allowance { name: "grants-manager", burst: 30, each_ms: 20_000 };
/// Questions of a program with a theatre's key.
const API_KEY: Allowance = Allowance { name: "api-key", burst: 120, each_ms: 500 };
/// Codes before checkout for one visitor: 8 in the busiest hour.
const CODE_VISITOR: Allowance = Allowance { name: "code-visitor", burst: 4, each_ms: 900_000 };
/// Codes mailed to one person, whoever asks for them: 12 in the busiest hour. More than one visitor's, so that nobody is
/// shut out by one other; few, so that with five tries each a guesser is right once in 16,000 hours.
const CODE_PERSON: Allowance = Allowance { name: "code-person", burst: 6, each_ms: 600_000 };
/// Codes asked for from an address: a household, or an office behind one.
const CODE_ADDRESS: Allowance = Allowance { name: "code-address", burst: 60, each_ms: 10_000 };
/// PINs typed: of a manager, and by whoever is at the till. One that is right does not count.
pub(super) const PIN: Allowance = Allowance { name: "pin", burst: 5, each_ms: 180_000 };
/// Mails asked for from an address, and links tried from there.
pub(super) const MAIL_ADDRESS: Allowance = Allowance { name: "mail-address", burst: 20, each_ms: 30_000 };

impl Allowance {
    const fn limit(&self) -> Limit {
        Limit { name: self.name, burst: self.burst, window_s: self.burst as u64 * self.each_ms.unsigned_abs() / 1_000 }
    }
}

/// People joining waiting lists from an address, of which so many tries for seats a minute may come: a tenth of these in a
/// row, then a hundredth a minute; `None`: nobody counts. One visitor is in a few lists at most anyhow.
fn waiting_list_address(tries_a_minute: u32) -> Option<Allowance> {
    let each_ms = 6_000_000_i64.checked_div(i64::from(tries_a_minute))?;
    Some(Allowance { name: "waiting-list-address", burst: (tries_a_minute / 10).max(1), each_ms })
}

/// What a bucket said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Granted,
    /// Nothing in it for so long, milliseconds.
    Empty(i64),
}

/// What is done to a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Take,
    Give,
    Clear,
}

impl Act {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Take => "take",
            Self::Give => "give",
            Self::Clear => "clear",
        }
    }
}

/// The buckets.
pub(super) struct Throttle {
    prefix: String,
    script: LuaScript,
    local: local::Buckets,
}

impl Throttle {
    /// `prefix` goes before every Redis key.
    pub(super) fn new(prefix: &str) -> Self {
        let script = LuaScript::new(include_str!("take.lua"));
        Self { prefix: prefix.to_owned(), script, local: local::Buckets::default() }
    }

    /// Counts a try.
    ///
    /// # Errors
    /// 429, with how long to wait.
    pub(super) async fn take(&self, state: &AppState, of: &Allowance, whose: &str) -> Result<(), Problem> {
        match self.act(state, of, whose, Act::Take).await {
            Said::Granted => Ok(()),
            Said::Empty(ms) => {
                tracing::info!(limit = of.name, wait_ms = ms, "somebody tries too often");
                let pause = Duration::from_millis(ms.unsigned_abs());
                let detail = "That was too often in a short time. Please wait a little, then try again.";
                Err(Problem::new(Code::TooManyAttempts, detail).with_limit(of.limit()).with_retry_after(pause))
            }
        }
    }

    /// The try that was counted went well: it does not count.
    pub(super) async fn give_back(&self, state: &AppState, of: &Allowance, whose: &str) {
        self.act(state, of, whose, Act::Give).await;
    }

    /// Forgets all tries.
    async fn clear(&self, state: &AppState, of: &Allowance, whose: &str) {
        self.act(state, of, whose, Act::Clear).await;
    }

    async fn act(&self, state: &AppState, of: &Allowance, whose: &str, act: Act) -> Said {
        let key = format!("{}throttle:{}:{}", self.prefix, of.name, hashed(whose));
        let mut call = self.script.call(&[&key]);
        call.arg(of.burst).arg(of.each_ms).arg(act.as_str());
        match tokio::time::timeout(DEADLINE, state.redis.eval(&call)).await {
            Ok(Ok(answer)) => match read(&answer.value) {
                Some(said) => return said,
                None => tracing::error!(answer = ?answer.value, "a rate-limit bucket holds an invalid value"),
            },
            Ok(Err(cause)) => tracing::debug!(%cause, "tries are counted by this replica alone for now"),
            Err(_) => tracing::debug!("tries are counted by this replica alone: Redis takes too long"),
        }
        self.local.act(of, key, act, state.locks.now())
    }
}

fn read(answer: &Value) -> Option<Said> {
    let Value::Array(parts) = answer else { return None };
    match parts.as_slice() {
        [Value::Int(1), Value::Int(_), Value::Int(_)] => Some(Said::Granted),
        [Value::Int(0), Value::Int(_), Value::Int(wait)] => Some(Said::Empty(*wait)),
        _ => None,
    }
}

/// 128 bits are enough to keep people apart.
fn hashed(whose: &str) -> String {
    let mut name = hex::encode(Sha256::digest(whose.as_bytes()));
    name.truncate(32);
    name
}

/// The person of an address as typed: white space and the case of ASCII letters make no other one, as in SQL.
pub(super) fn person(email: &str) -> String {
    email.trim().to_ascii_lowercase()
}

/// Tries to sign in to an account from an address.
pub(super) struct Login {
    person: String,
    pair: String,
}

impl Login {
    /// To the account of an address as typed.
    pub(super) fn of(email: &str, address: &ClientAddress) -> Self {
        let person = person(email);
        // What is typed may have a line's end in it; an address of the network has none, so the last one divides.
        Self { pair: format!("{person}\n{}", address.0), person }
    }

    /// Counts a try.
    ///
    /// # Errors
    /// 429.
    pub(super) async fn take(&self, state: &AppState) -> Result<(), Problem> {
        let throttle = &state.accounts.throttle;
        // The narrow one first: whoever has used it up takes nothing from those who come from elsewhere.
        throttle.take(state, &LOGIN_PAIR, &self.pair).await?;
        throttle.take(state, &LOGIN_PERSON, &self.person).await
    }

    /// The try that was counted went well, or nobody found out how it goes: it does not count.
    pub(super) async fn give_back(&self, state: &AppState) {
        state.accounts.throttle.give_back(state, &LOGIN_PAIR, &self.pair).await;
        state.accounts.throttle.give_back(state, &LOGIN_PERSON, &self.person).await;
    }

    /// Forgets all tries: those from this address, and the account's.
    pub(super) async fn clear(&self, state: &AppState) {
        state.accounts.throttle.clear(state, &LOGIN_PAIR, &self.pair).await;
        state.accounts.throttle.clear(state, &LOGIN_PERSON, &self.person).await;
    }
}

/// Counts a try of this address.
///
/// # Errors
/// 429.
pub(super) async fn of_address(state: &AppState, of: &Allowance, address: &ClientAddress) -> Result<(), Problem> {
    state.accounts.throttle.take(state, of, &address.0).await
}

/// Counts a question of a program with this key.
///
/// # Errors
/// 429.
pub async fn of_key(state: &AppState, key: uuid::Uuid) -> Result<(), Problem> {
    state.accounts.throttle.take(state, &API_KEY, &key.to_string()).await
}

/// Counts a code that this visitor wants mailed to that person. The narrow bucket first: whoever has used it up takes
/// nothing from others.
///
/// # Errors
/// 429.
pub async fn of_code(state: &AppState, visitor: &str, email: &str, address: &ClientAddress) -> Result<(), Problem> {
    let throttle = &state.accounts.throttle;
    throttle.take(state, &CODE_VISITOR, visitor).await?;
    throttle.take(state, &CODE_ADDRESS, &address.0).await?;
    throttle.take(state, &CODE_PERSON, &person(email)).await
}

/// Counts somebody who wants to join a waiting list from this address.
///
/// # Errors
/// 429.
pub async fn of_waiting_list(state: &AppState, address: &ClientAddress) -> Result<(), Problem> {
    match waiting_list_address(state.config.holds_per_address_min) {
        Some(of) => of_address(state, &of, address).await,
        None => Ok(()),
    }
}

/// Whoever was counted did not join: it does not count.
pub async fn give_back_waiting_list(state: &AppState, address: &ClientAddress) {
    if let Some(of) = waiting_list_address(state.config.holds_per_address_min) {
        state.accounts.throttle.give_back(state, &of, &address.0).await;
    }
}

/// The same arithmetic as `take.lua`: when a bucket will be full again, after `act`.
fn step(of: &Allowance, full_at: Option<Timestamp>, act: Act, now: Timestamp) -> (Option<Timestamp>, Said) {
    let full_at = full_at.map_or(now.0, |at| at.0.max(now.0));
    let whole = i64::from(of.burst) * of.each_ms;
    let full_at = match act {
        Act::Clear => now.0,
        Act::Give => full_at - of.each_ms,
        Act::Take if full_at + of.each_ms - now.0 > whole => {
            return (Some(Timestamp(full_at)), Said::Empty(full_at + of.each_ms - now.0 - whole));
        }
        Act::Take => full_at + of.each_ms,
    };
    (Some(Timestamp(full_at)).filter(|at| at.0 > now.0), Said::Granted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Allowance = Allowance { name: "test", burst: 3, each_ms: 1_000 };

    #[test]
    fn so_many_in_a_row_then_one_at_a_time() {
        let now = Timestamp(5_000);
        let mut bucket = None;
        for _ in 0..3 {
            let (after, said) = step(&OF, bucket, Act::Take, now);
            assert_eq!(said, Said::Granted);
            bucket = after;
        }
        assert_eq!(step(&OF, bucket, Act::Take, now), (bucket, Said::Empty(1_000)));
        assert_eq!(step(&OF, bucket, Act::Take, now.plus_ms(400)).1, Said::Empty(600));
        let (after, said) = step(&OF, bucket, Act::Take, now.plus_ms(1_000));
        assert_eq!((after, said), (Some(now.plus_ms(4_000)), Said::Granted));
        assert_eq!(step(&OF, bucket, Act::Take, now.plus_ms(60_000)).0, Some(now.plus_ms(61_000)), "never fuller");
    }

    #[test]
    fn what_is_given_back_can_be_taken_and_no_more_than_that() {
        let now = Timestamp(5_000);
        let full = Some(now.plus_ms(3_000));
        let (given, _) = step(&OF, full, Act::Give, now);
        assert_eq!(step(&OF, given, Act::Take, now), (full, Said::Granted));
        assert_eq!(step(&OF, None, Act::Give, now), (None, Said::Granted));
        assert_eq!(step(&OF, full, Act::Clear, now), (None, Said::Granted));
    }

    #[test]
    fn as_many_join_waiting_lists_as_an_address_may_try_for_seats() {
        let of = |tries| waiting_list_address(tries).map(|of| (of.burst, of.each_ms));
        assert_eq!(of(1_200), Some((120, 5_000)));
        assert_eq!(of(1), Some((1, 6_000_000)), "somebody may join");
        assert_eq!(of(60_000), Some((6_000, 100)));
        assert_eq!(of(0), None);
    }

    #[test]
    fn tries_are_counted_for_the_person_and_for_where_they_come_from() {
        let from = |email: &str, address: &str| Login::of(email, &ClientAddress(address.to_owned()));
        let (one, same) = (from("ann@example.org", "10.0.0.1"), from(" Ann@example.org", "10.0.0.1"));
        let elsewhere = from("ann@example.org", "10.0.0.2");
        assert_eq!((&one.pair, &one.person), (&same.pair, &same.person));
        assert_eq!(one.person, elsewhere.person);
        assert_ne!(one.pair, elsewhere.pair);
    }

    #[test]
    fn a_person_is_one_however_they_type_and_no_other_letters_are_taken_for_theirs() {
        assert_eq!(person(" Ann@Example.ORG "), person("ann@example.org"));
        assert_ne!(person("\u{212A}im@example.org"), person("kim@example.org"), "the Kelvin sign is no k");
        assert_eq!(hashed("ann@example.org").len(), 32);
    }
}
