//! Storage of a waiting room in Redis: one function per script, and the rebuild of a room that Redis has lost.

use std::ops::Range;

use domain::time::Timestamp;
use domain::waiting_room::{MAX_TICKETS, MAX_WAITING, PASS_MS};
use redis::Value;
use uuid::Uuid;

use super::entry::{CLAIM_MS, UNUSED_CLAIM_MS};
use super::room::ActiveRoom;
use super::sql;
use crate::AdmissionState;
use http::ApiResult;
use platform::redis_link::{LuaScript, ScriptCall};
use seats::seat_locks::StoreError;

/// Devices per ticket: the one it was issued to, and one more.
const DEVICES: u32 = 2;
/// The keys of a room for every script, in the order of `lua/join.lua`.
const NAMES: [&str; 6] = ["room", "left", "inside", "entered", "lately", "present"];

/// All scripts, hashed once.
pub(super) struct RoomScripts {
    join: LuaScript,
    admit: LuaScript,
    enter: LuaScript,
    leave: LuaScript,
    left: LuaScript,
    load: LuaScript,
    close: LuaScript,
    present: LuaScript,
}

impl RoomScripts {
    pub(super) fn new() -> Self {
        Self {
            join: LuaScript::new(include_str!("lua/join.lua")),
            admit: LuaScript::new(include_str!("lua/admit.lua")),
            enter: LuaScript::new(include_str!("lua/enter.lua")),
            leave: LuaScript::new(include_str!("lua/leave.lua")),
            left: LuaScript::new(include_str!("lua/left.lua")),
            load: LuaScript::new(include_str!("lua/load.lua")),
            close: LuaScript::new(include_str!("lua/close.lua")),
            present: LuaScript::new(include_str!("lua/present.lua")),
        }
    }
}

/// The keys of a room, all in the slot of its show.
pub(super) fn keys(prefix: &str, show: Uuid, room: Uuid) -> [String; NAMES.len()] {
    NAMES.map(|name| format!("{prefix}{{show:{show}}}:queue:{}:{name}", room.simple()))
}

/// The answer of a script; `None` if the room is missing, or older than this replica has seen. [`rebuild`] then
/// builds it.
pub(super) type IfLoaded<T> = Result<Option<T>, StoreError>;

/// A range of numbers given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberRange {
    pub(super) first: u64,
    pub(super) count: u64,
    /// True if the room is full.
    pub(super) is_full: bool,
}

/// The state of a room in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoomStatus {
    pub(super) now: Timestamp,
    pub(super) joined: u64,
    /// The number drawn, recorded in Postgres or not; `None` before opening.
    pub(super) drawn: Option<u64>,
    pub(super) called: u64,
    pub(super) gone: u64,
    pub(super) inside: u64,
    pub(super) lately: u32,
}

/// The result of an attempt to enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryOutcome {
    Inside(Timestamp),
    NotYet,
    Late,
    Over,
    Elsewhere,
}

/// The state from which a lost room is rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RebuildStart {
    pub(super) first: u64,
    /// Numbers of lost blocks, which hardly any visitor has.
    pub(super) gaps: Vec<Range<u64>>,
    /// The last number that was seen to be free.
    pub(super) seen: u64,
    pub(super) drawn: Option<u64>,
    pub(super) called: u64,
    pub(super) inside: u64,
}

/// Gives out numbers to so many people, as far as the mark allows.
pub(super) async fn join(state: &AdmissionState, room: &ActiveRoom, people: u64) -> IfLoaded<NumberRange> {
    let scripts = &state.waiting_rooms.scripts;
    let mut call = scripts.join.call(&room.keys);
    call.arg(people).arg(room.min_free()).arg(room.reserved()).arg(room.settings().opens_at.0);
    call.arg(MAX_WAITING).arg(MAX_TICKETS);
    let Some([first, count, full]) = call_if_loaded(state, room, &call).await? else { return Ok(None) };
    let given = NumberRange { first: positive(first)?, count: positive(count)?, is_full: full == 1 };
    room.raise_seen(given.first + given.count);
    Ok(Some(given))
}

/// Marks these tickets as used: their holders have sent a request since they joined.
pub(super) async fn note_used(state: &AdmissionState, room: &ActiveRoom, numbers: &[u64]) -> Result<(), StoreError> {
    let mut call = state.waiting_rooms.scripts.present.call(&room.keys);
    for number in numbers {
        call.arg(*number);
    }
    run_script(state, room, &call).await.map(|_| ())
}

/// Calls the next places; `numbers` are those at the drawn places from `from`.
pub(super) async fn admit(
    state: &AdmissionState,
    room: &ActiveRoom,
    limit: u64,
    (from, numbers): (u64, &[u64]),
) -> IfLoaded<RoomStatus> {
    let scripts = &state.waiting_rooms.scripts;
    let setting = room.settings();
    let mut call = scripts.admit.call(&room.keys);
    call.arg(setting.opens_at.0).arg(room.min_free()).arg(or_minus_one(room.people())).arg(setting.per_second);
    call.arg(limit).arg(CLAIM_MS).arg(UNUSED_CLAIM_MS).arg(from);
    for number in numbers {
        call.arg(*number);
    }
    let Some([now, next, drawn, called, gone, inside, lately]) = call_if_loaded(state, room, &call).await? else {
        return Ok(None);
    };
    let joined = positive(next)?;
    room.raise_seen(joined);
    Ok(Some(RoomStatus {
        now: Timestamp(now),
        joined,
        drawn: u64::try_from(drawn).ok(),
        called: positive(called)?,
        gone: positive(gone)?,
        inside: positive(inside)?,
        lately: u32::try_from(lately).unwrap_or(u32::MAX),
    }))
}

/// Lets a visitor in whose place was called.
pub(super) async fn enter(
    state: &AdmissionState,
    room: &ActiveRoom,
    (number, place): (u64, u64),
    owner: &str,
    limit: u64,
) -> IfLoaded<EntryOutcome> {
    let scripts = &state.waiting_rooms.scripts;
    let mut call = scripts.enter.call(&room.keys);
    call.arg(number).arg(place).arg(owner).arg(PASS_MS).arg(limit).arg(DEVICES).arg(room.min_free());
    call.arg(room.settings().per_second);
    let answer = run_script(state, room, &call).await?;
    match answer[..] {
        [0] => Ok(None),
        [1, until] => Ok(Some(EntryOutcome::Inside(Timestamp(until)))),
        [2, _] => Ok(Some(EntryOutcome::NotYet)),
        [3, _] => Ok(Some(EntryOutcome::Late)),
        [4, _] => Ok(Some(EntryOutcome::Over)),
        [5, _] => Ok(Some(EntryOutcome::Elsewhere)),
        _ => Err(unexpected_answer(&answer)),
    }
}

/// Gives a number back.
pub(super) async fn leave(state: &AdmissionState, room: &ActiveRoom, number: u64, place: Option<u64>) -> IfLoaded<()> {
    let scripts = &state.waiting_rooms.scripts;
    let mut call = scripts.leave.call(&room.keys);
    call.arg(number).arg(or_minus_one(place)).arg(room.min_free());
    let answer: Option<[i64; 0]> = call_if_loaded(state, room, &call).await?;
    Ok(answer.map(|_| ()))
}

/// True if a number was given back or its pass has ended. A lost room has forgotten that.
pub(super) async fn has_left(state: &AdmissionState, room: &ActiveRoom, number: u64) -> Result<bool, StoreError> {
    let mut call = state.waiting_rooms.scripts.left.call(&room.keys);
    call.arg(number);
    run_left(state, room, &call).await
}

/// True if a number cannot let this visitor in: [`has_left`], or all its devices have entered and the last one was
/// another visitor's.
pub(super) async fn is_used_up(
    state: &AdmissionState,
    room: &ActiveRoom,
    number: u64,
    owner: &str,
) -> Result<bool, StoreError> {
    let mut call = state.waiting_rooms.scripts.left.call(&room.keys);
    call.arg(number).arg(owner).arg(DEVICES);
    run_left(state, room, &call).await
}

async fn run_left(state: &AdmissionState, room: &ActiveRoom, call: &ScriptCall<'_>) -> Result<bool, StoreError> {
    let answer: Option<[i64; 1]> = call_if_loaded(state, room, call).await?;
    Ok(answer == Some([1]))
}

/// Reverts an opening, unless it is due.
pub(super) async fn close(state: &AdmissionState, room: &ActiveRoom) -> Result<(), StoreError> {
    let mut call = state.waiting_rooms.scripts.close.call(&room.keys);
    call.arg(room.settings().opens_at.0);
    run_script(state, room, &call).await.map(|_| ())
}

/// Builds a lost room. Returns the new gap; `None` if another replica has built the room.
async fn load(
    state: &AdmissionState,
    room: &ActiveRoom,
    start: &RebuildStart,
) -> Result<Option<Range<u64>>, StoreError> {
    let scripts = &state.waiting_rooms.scripts;
    let mut call = scripts.load.call(&room.keys);
    call.arg(start.first).arg(or_minus_one(start.drawn)).arg(start.called).arg(start.inside).arg(PASS_MS);
    let lost: u64 = start.gaps.iter().map(|gap| gap.end - gap.start).sum();
    call.arg(room.min_free()).arg(format_gaps(&start.gaps)).arg(lost).arg(start.seen);
    let answer = run_script(state, room, &call).await?;
    match answer[..] {
        [1, built, lost] => Ok((built == 1).then_some(positive(lost)?..start.first)),
        _ => Err(unexpected_answer(&answer)),
    }
}

/// Formats gaps as in Postgres and the scripts: `from-to,from-to`.
pub(super) fn format_gaps(gaps: &[Range<u64>]) -> String {
    gaps.iter().map(|gap| format!("{}-{}", gap.start, gap.end)).collect::<Vec<_>>().join(",")
}

/// Parses gaps; malformed ones are skipped.
pub(super) fn parse_gaps(words: &str) -> Vec<Range<u64>> {
    let gap = |word: &str| {
        let (start, end) = word.split_once('-')?;
        Some(start.parse().ok()?..end.parse().ok()?).filter(|gap| !gap.is_empty())
    };
    words.split(',').filter_map(gap).collect()
}

fn or_minus_one(value: Option<u64>) -> i64 {
    value.map_or(-1, |value| i64::try_from(value).unwrap_or(i64::MAX))
}

fn positive(value: i64) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_| unexpected_answer(&value))
}

/// Runs a script; returns the values after its code, or `None` if the room is missing.
async fn call_if_loaded<const N: usize>(
    state: &AdmissionState,
    room: &ActiveRoom,
    call: &ScriptCall<'_>,
) -> IfLoaded<[i64; N]> {
    let answer = run_script(state, room, call).await?;
    match answer.split_first() {
        Some((0, [])) => Ok(None),
        Some((1, rest)) => rest.try_into().map(Some).map_err(|_| unexpected_answer(&answer)),
        _ => Err(unexpected_answer(&answer)),
    }
}

async fn run_script(state: &AdmissionState, room: &ActiveRoom, call: &ScriptCall<'_>) -> Result<Vec<i64>, StoreError> {
    let answer = state.redis.eval(call).await.map_err(|cause| {
        // A failover may have lost the last writes.
        room.mark_suspect();
        StoreError::Unavailable(cause)
    })?;
    read(&answer.value).ok_or_else(|| unexpected_answer(&answer.value))
}

fn read(answer: &Value) -> Option<Vec<i64>> {
    let Value::Array(parts) = answer else { return None };
    parts.iter().map(|part| if let Value::Int(number) = part { Some(*number) } else { None }).collect()
}

fn unexpected_answer(answer: &impl std::fmt::Debug) -> StoreError {
    StoreError::UnexpectedAnswer(format!("{answer:?} about a waiting room"))
}

/// Builds the room, unless another replica has built it. Numbers continue after the mark.
pub(super) async fn rebuild(state: &AdmissionState, room: &ActiveRoom) -> ApiResult<()> {
    let row = sql::load_room(&state.pg, room.id).await?;
    room.apply_row(&row);
    let start = row.start(room.seen());
    if let Some(gap) = load(state, room, &start).await?
        && start.first > 0
    {
        tracing::warn!(room = %room.id, ?start, ?gap, "rebuilt a waiting room that Redis had lost, or a part of it");
        // A crash here leaves the gap unrecorded: after the next loss its places take room for two minutes each.
        if !gap.is_empty() {
            sql::record_gap(&state.pg, room.id, gap).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_match_the_declarations_in_join_lua_in_order() {
        let declared: Vec<&str> = include_str!("lua/join.lua")
            .lines()
            .skip_while(|line| !line.starts_with("-- KEYS:"))
            .take_while(|line| !line.starts_with("-- ARGV:"))
            .filter_map(|line| {
                let rest = line.trim_start_matches("-- KEYS:").trim_start_matches("--").trim_start();
                let (number, rest) = rest.split_once(' ')?;
                number.parse::<usize>().ok()?;
                rest.split_whitespace().next()
            })
            .collect();
        assert_eq!(declared, NAMES);
    }

    #[test]
    fn gaps_are_read_back_as_they_were_written() {
        for gaps in [vec![], vec![6..256, 300..512]] {
            assert_eq!(parse_gaps(&format_gaps(&gaps)), gaps);
        }
        assert_eq!(parse_gaps("7-7,x,9,5-3"), Vec::<Range<u64>>::new());
    }

    #[test]
    fn all_keys_of_a_room_are_in_the_slot_of_its_show() {
        let (show, room) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let tag = format!("{{show:{show}}}");
        assert!(keys("p:", show, room).iter().all(|key| key.starts_with("p:") && key.contains(&tag)));
        assert_ne!(keys("", show, room), keys("", show, Uuid::from_u128(3)));
    }
}
