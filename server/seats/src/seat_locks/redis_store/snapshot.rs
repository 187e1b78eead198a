//! Reads a whole map without a script.
//!
//! A script that returns 50,000 bytes copies them three times (out of the string, into Lua,
//! into the answer): five to seven times the cost of `GET`. A transaction reads the same instant. Due
//! holds are left to the sweeper, which runs every tenth of a second.

use bytes::Bytes;
use domain::time::Timestamp;
use redis::{Pipeline, Value};
use uuid::Uuid;

use super::answer::{AnswerFields, unexpected_answer};
use super::{Keys, MapSnapshot, StoreResult};

/// Positions of keys in [`Keys`].
const MAP: usize = 0;
const AREAS: usize = 5;
const VERSION: usize = 6;
const EPOCH: usize = 8;

pub(super) fn reads(keys: &Keys) -> Pipeline {
    let key = |place: usize| keys.0[place].as_str();
    let mut reads = redis::pipe();
    reads.atomic().cmd("TIME").cmd("MGET").arg(key(EPOCH)).arg(key(VERSION)).cmd("GET").arg(key(MAP));
    reads.cmd("HGETALL").arg(key(AREAS));
    reads
}

/// Parses their answers: the store's clock and the map, or nothing if the show is not loaded or older than
/// `seen`. The snapshot script then returns the cause.
pub(super) fn read(show: Uuid, values: &[Value], seen: (u64, u64)) -> StoreResult<Option<(Timestamp, MapSnapshot)>> {
    let [Value::Array(time), Value::Array(counters), map, areas] = values else {
        return Err(unexpected_answer(values));
    };
    let [Value::BulkString(_), Value::BulkString(_)] = counters.as_slice() else { return Ok(None) };
    let (mut time, mut counters) = (AnswerFields(time), AnswerFields(counters));
    let now = Timestamp(time.number()? * 1_000 + time.number()? / 1_000);
    let (epoch, version) = (counters.number()?.unsigned_abs(), counters.number()?.unsigned_abs());
    let map = match map {
        Value::BulkString(bytes) => Bytes::copy_from_slice(bytes),
        Value::Nil => Bytes::new(),
        other => return Err(unexpected_answer(other)),
    };
    let pairs = match areas {
        Value::Array(pairs) => pairs.clone(),
        // The type in the newer protocol, RESP3.
        Value::Map(pairs) => pairs.iter().flat_map(|(area, left)| [area.clone(), left.clone()]).collect(),
        other => return Err(unexpected_answer(other)),
    };
    let (mut rest, mut areas) = (AnswerFields(&pairs), Vec::new());
    while !rest.is_empty() {
        areas.push((rest.area()?, rest.places_left()?));
    }
    areas.sort_unstable();
    if (epoch, version) < seen || (map.is_empty() && areas.is_empty()) {
        tracing::debug!(%show, epoch, version, "the map is missing or older than the version seen");
        return Ok(None);
    }
    Ok(Some((now, MapSnapshot { epoch, version, map, areas })))
}
