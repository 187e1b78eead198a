//! Granted answers by request, for replay: kept for at least a day, and only the latest of each owner.

use std::collections::{BTreeMap, HashMap, VecDeque};

use domain::time::{MINUTE_MS, Timestamp};
use uuid::Uuid;

use super::super::{Refusal, RequestIdentity, SeatResult, StoredHold};

const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Answers kept per owner and day: `MAX_ANSWERS_OF_OWNER` of `lua/prelude.lua`.
const MAX_ANSWERS_OF_OWNER: usize = 100;

/// Granted answers by request: today's and the day before's.
#[derive(Default)]
pub(super) struct Answers(BTreeMap<i64, DayAnswers>);

#[derive(Default)]
struct DayAnswers {
    by_request: HashMap<Uuid, (u64, StoredHold)>,
    /// Requests of an owner, the oldest first.
    of_owner: HashMap<String, VecDeque<Uuid>>,
}

impl Answers {
    /// The answer to a request that was granted before, or `None`.
    pub(super) fn of(&self, asked: RequestIdentity, now: Timestamp) -> Option<SeatResult<StoredHold>> {
        let today = now.0.div_euclid(DAY_MS);
        let found = [today, today - 1].iter().find_map(|day| self.0.get(day)?.by_request.get(&asked.id))?;
        Some(if found.0 == asked.digest { Ok(found.1.clone()) } else { Err(Refusal::Reused) })
    }

    /// Stores an answer granted to an owner. No payment was in progress then.
    pub(super) fn keep(&mut self, asked: RequestIdentity, owner: &str, held: &StoredHold, now: Timestamp) {
        let today = now.0.div_euclid(DAY_MS);
        self.0.retain(|day, _| *day >= today - 1);
        let DayAnswers { by_request, of_owner } = self.0.entry(today).or_default();
        by_request.insert(asked.id, (asked.digest, held.clone()));
        let requests = of_owner.entry(owner.to_owned()).or_default();
        requests.push_back(asked.id);
        if requests.len() > MAX_ANSWERS_OF_OWNER
            && let Some(oldest) = requests.pop_front()
        {
            by_request.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seat_locks::Selection;

    #[test]
    fn an_answer_is_kept_for_at_least_a_day_and_at_most_two() {
        let asked = RequestIdentity { id: Uuid::from_u128(1), digest: 7 };
        let at = Timestamp(DAY_MS - 1);
        let held = StoredHold {
            hold: asked.id,
            expires_at: at,
            latest: at,
            fence: 1,
            paying: false,
            selection: Selection::default(),
        };
        let mut answers = Answers::default();
        answers.keep(asked, "ann", &held, at);
        assert_eq!(answers.of(asked, at.plus_ms(DAY_MS)), Some(Ok(held)));
        assert_eq!(answers.of(RequestIdentity { digest: 8, ..asked }, at), Some(Err(Refusal::Reused)));
        assert_eq!(answers.of(asked, at.plus_ms(DAY_MS + 1)), None);
    }

    #[test]
    fn the_scripts_keep_the_same_number_of_answers_per_owner() {
        let kept = format!("local MAX_ANSWERS_OF_OWNER = {MAX_ANSWERS_OF_OWNER}\n");
        assert!(include_str!("../lua/prelude.lua").contains(&kept), "{kept}");
    }
}
