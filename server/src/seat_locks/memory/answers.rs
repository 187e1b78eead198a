//! What was granted for which request, for a day at least.

use std::collections::{BTreeMap, HashMap};

use domain::time::{MINUTE_MS, Timestamp};
use uuid::Uuid;

use super::super::{Asked, Held, Refusal};

const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Granted answers by request: today's and the day before's.
#[derive(Default)]
pub(super) struct Answers(BTreeMap<i64, HashMap<Uuid, (u64, Held)>>);

impl Answers {
    /// The answer to a request that was granted before, or `None`.
    pub(super) fn of(&self, asked: Asked, now: Timestamp) -> Option<Result<Held, Refusal>> {
        let today = now.0.div_euclid(DAY_MS);
        let found = [today, today - 1].iter().find_map(|day| self.0.get(day)?.get(&asked.id))?;
        Some(if found.0 == asked.digest { Ok(found.1.clone()) } else { Err(Refusal::Reused) })
    }

    /// Keeps what was granted. It says nothing of payments: there was none in progress.
    pub(super) fn keep(&mut self, asked: Asked, held: &Held, now: Timestamp) {
        let today = now.0.div_euclid(DAY_MS);
        self.0.retain(|day, _| *day >= today - 1);
        self.0.entry(today).or_default().insert(asked.id, (asked.digest, held.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat_locks::Lot;

    #[test]
    fn an_answer_is_kept_for_a_day_at_least_and_for_two_at_most() {
        let asked = Asked { id: Uuid::from_u128(1), digest: 7 };
        let at = Timestamp(DAY_MS - 1);
        let held = Held { hold: asked.id, expires_at: at, latest: at, fence: 1, paying: false, lot: Lot::default() };
        let mut answers = Answers::default();
        answers.keep(asked, &held, at);
        assert_eq!(answers.of(asked, at.plus_ms(DAY_MS)), Some(Ok(held)));
        assert_eq!(answers.of(Asked { digest: 8, ..asked }, at), Some(Err(Refusal::Reused)));
        assert_eq!(answers.of(asked, at.plus_ms(DAY_MS + 1)), None);
    }
}
