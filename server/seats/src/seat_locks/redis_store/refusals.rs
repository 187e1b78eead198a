//! Refuses attempts at taken seats without a script.
//!
//! A transaction reads what `lock.lua` decides by, with one command of each kind for all attempts of a call. It writes
//! nothing, so nothing is replicated, appended or announced. Only an attempt that the script would refuse for its seats at
//! this instant is refused. The script decides the rest: a free seat, a request whose answer is stored (a retry gets
//! that answer, even if the seat is taken), an owner with a hold or without room below the limit, and all attempts while a
//! hold is due, because the script frees it first.

use domain::seats::SeatState;
use redis::{Cmd, Pipeline, Value};

use super::answer::{AnswerFields, unexpected_answer, write_id};
use super::{HoldLimits, Keys, LockAttempt, Refusal, StoreResult};

/// Positions of keys in [`Keys`].
const MAP: usize = 0;
const EXPIRY: usize = 2;
const OWNERS: usize = 3;
const VERSION: usize = 6;
const EPOCH: usize = 8;
/// The stored answers of two days. Which day is the present one does not matter: an answer too old to be replayed only
/// leaves its attempt to the script.
const ANSWERS: [usize; 2] = [9, 10];
/// An owner without a hold, after the number of seats bought.
const NO_HOLD: &[u8] = b":-";

pub(super) fn reads(keys: &Keys, attempts: &[LockAttempt]) -> Pipeline {
    let key = |place: usize| keys.0[place].as_str();
    let of_all = |name: &str, place: usize, write: fn(&mut Cmd, &LockAttempt)| {
        let mut command = redis::cmd(name);
        command.arg(key(place));
        attempts.iter().for_each(|attempt| write(&mut command, attempt));
        command
    };
    let mut reads = redis::pipe();
    reads.atomic().cmd("TIME").cmd("MGET").arg(key(EPOCH)).arg(key(VERSION));
    // The hold that is due first.
    reads.cmd("ZRANGE").arg(key(EXPIRY)).arg(0).arg(0).arg("WITHSCORES");
    reads.add_command(of_all("HMGET", OWNERS, |command, attempt| {
        command.arg(&attempt.owner);
    }));
    for place in ANSWERS {
        reads.add_command(of_all("HMGET", place, |command, attempt| write_id(command, attempt.asked.id)));
    }
    // The map has a byte per seat.
    reads.add_command(of_all("BITFIELD_RO", MAP, |command, attempt| {
        for seat in &attempt.selection.seats {
            command.arg("GET").arg("u8").arg(format!("#{seat}"));
        }
    }));
    reads
}

/// Parses their answers: the refusal of each attempt, or nothing if the script must decide.
pub(super) fn read(
    values: &[Value],
    seen: (u64, u64),
    terms: HoldLimits,
    attempts: &[LockAttempt],
) -> StoreResult<Vec<Option<Refusal>>> {
    let [
        Value::Array(time),
        Value::Array(counters),
        first_due,
        Value::Array(owners),
        Value::Array(answers),
        Value::Array(older_answers),
        Value::Array(states),
    ] = values
    else {
        return Err(unexpected_answer(values));
    };
    let mut time = AnswerFields(time);
    let now_ms = time.number()? * 1_000 + time.number()? / 1_000;
    if !is_current(counters, seen)? || is_due(first_due, now_ms)? {
        return Ok(vec![None; attempts.len()]);
    }
    let mut states = AnswerFields(states);
    let stored = owners.iter().zip(answers.iter().zip(older_answers));
    let decide = |(attempt, (owner, answers)): (&LockAttempt, (&Value, (&Value, &Value)))| -> StoreResult<_> {
        let mut taken = Vec::new();
        for seat in &attempt.selection.seats {
            let state = states.state()?;
            let is_free = state == SeatState::Available || (state == SeatState::Blocked && attempt.takes_kept);
            if !is_free {
                taken.push((*seat, state));
            }
        }
        let is_new = matches!(answers, (Value::Nil, Value::Nil));
        let is_refused = !taken.is_empty() && is_new && may_hold(owner, attempt, terms);
        Ok(is_refused.then_some(Refusal::Taken(taken)))
    };
    attempts.iter().zip(stored).map(decide).collect()
}

/// True if the map is loaded and no older than the version seen.
fn is_current(counters: &[Value], seen: (u64, u64)) -> StoreResult<bool> {
    let [Value::BulkString(_), Value::BulkString(_)] = counters else { return Ok(false) };
    let mut counters = AnswerFields(counters);
    Ok((counters.number()?.unsigned_abs(), counters.number()?.unsigned_abs()) >= seen)
}

/// True if the hold that is due first is due now. Its answer is a pair in the newer protocol, RESP3.
fn is_due(first: &Value, now_ms: i64) -> StoreResult<bool> {
    let first: Vec<(String, f64)> = redis::from_redis_value_ref(first).map_err(|_| unexpected_answer(first))?;
    Ok(first.iter().any(|(_, expires_ms)| *expires_ms <= now_ms as f64))
}

/// True if this owner has no hold, and may have as much as the attempt asks for.
fn may_hold(owner: &Value, attempt: &LockAttempt, terms: HoldLimits) -> bool {
    let bought: Option<usize> = match owner {
        Value::Nil => Some(0),
        Value::BulkString(text) => {
            text.strip_suffix(NO_HOLD).and_then(|count| std::str::from_utf8(count).ok()?.parse().ok())
        }
        _ => None,
    };
    let places: usize = attempt.selection.places.iter().map(|places| places.count as usize).sum();
    bought.is_some_and(|bought| bought + attempt.selection.seats.len() + places <= terms.per_person)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::seat_locks::{RequestIdentity, Selection};

    const TERMS: HoldLimits = HoldLimits { per_person: 6, length_ms: 300_000, life_ms: 480_000 };

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn attempt(seats: &[u32]) -> LockAttempt {
        let asked = RequestIdentity { id: Uuid::nil(), digest: 1 };
        LockAttempt { asked, owner: "ann".into(), selection: Selection::of_seats(seats.to_vec()), takes_kept: false }
    }

    /// Refusals of an attempt at the locked seat 7, by a Redis at 1,000 s with this first due hold and this owner.
    fn refusal(counters: [Value; 2], first_due: Value, owner: Value) -> Option<Refusal> {
        let values = [
            Value::Array(vec![text("1000"), text("0")]),
            Value::Array(counters.to_vec()),
            first_due,
            Value::Array(vec![owner]),
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![Value::Int(1)]),
        ];
        read(&values, (5, 9), TERMS, &[attempt(&[7])]).expect("answers of Redis").remove(0)
    }

    #[test]
    fn a_locked_seat_is_refused_in_both_protocols_unless_a_hold_is_due_or_the_map_is_older_than_seen() {
        let counters = || [text("5"), text("9")];
        let flat = |at: &str| Value::Array(vec![text("hold"), text(at)]);
        let pair = |at| Value::Array(vec![Value::Array(vec![text("hold"), Value::Double(at)])]);
        let taken = Some(Refusal::Taken(vec![(7, SeatState::Locked)]));
        for later in [flat("1000001"), pair(1_000_001.0), Value::Array(vec![])] {
            assert_eq!(refusal(counters(), later, Value::Nil), taken);
        }
        for due in [flat("1000000"), pair(999_999.0)] {
            assert_eq!(refusal(counters(), due, Value::Nil), None);
        }
        for counters in [[text("5"), text("8")], [text("4"), text("10")], [Value::Nil, Value::Nil]] {
            assert_eq!(refusal(counters, flat("1000001"), Value::Nil), None);
        }
    }

    #[test]
    fn an_owner_with_a_hold_or_at_the_limit_is_left_to_the_script() {
        let of = |owner: &str| refusal([text("5"), text("9")], Value::Array(vec![]), text(owner));
        assert!(of("5:-").is_some());
        assert_eq!((of("6:-"), of("0:00000000000000000000000000000001")), (None, None));
    }
}
