//! Reading a whole map without a script.
//!
//! A script that hands over 50,000 bytes copies them three times on the way (out of the string, into Lua,
//! into the answer): five to seven times the cost of `GET`. A transaction reads the same instant. Holds that
//! are due are left to the sweeper, which is never more than a tenth of a second away.

use bytes::Bytes;
use domain::time::Timestamp;
use redis::{Pipeline, Value};
use uuid::Uuid;

use super::answer::{Rest, nonsense};
use super::{Keys, MapSnapshot, StoreError};

/// Where keys stand in [`Keys`].
const MAP: usize = 0;
const AREAS: usize = 5;
const VERSION: usize = 6;
const EPOCH: usize = 8;

/// The reads of one instant.
pub(super) fn reads(keys: &Keys) -> Pipeline {
    let key = |place: usize| keys.0[place].as_str();
    let mut reads = redis::pipe();
    reads.atomic().cmd("TIME").cmd("MGET").arg(key(EPOCH)).arg(key(VERSION)).cmd("GET").arg(key(MAP));
    reads.cmd("HGETALL").arg(key(AREAS));
    reads
}

/// What they read: the store's clock and the map, or nothing when the show is not loaded or older than
/// what was seen of it. Then a script says which.
pub(super) fn read(
    show: Uuid,
    values: &[Value],
    seen: (u64, u64),
) -> Result<Option<(Timestamp, MapSnapshot)>, StoreError> {
    let [Value::Array(time), Value::Array(counters), map, areas] = values else { return Err(nonsense(values)) };
    let [Value::BulkString(_), Value::BulkString(_)] = counters.as_slice() else { return Ok(None) };
    let (mut time, mut counters) = (Rest(time), Rest(counters));
    let now = Timestamp(time.number()? * 1_000 + time.number()? / 1_000);
    let (epoch, version) = (counters.number()?.unsigned_abs(), counters.number()?.unsigned_abs());
    let map = match map {
        Value::BulkString(bytes) => Bytes::copy_from_slice(bytes),
        Value::Nil => Bytes::new(),
        other => return Err(nonsense(other)),
    };
    let pairs = match areas {
        Value::Array(pairs) => pairs.clone(),
        // What a connection of the newer protocol says.
        Value::Map(pairs) => pairs.iter().flat_map(|(area, left)| [area.clone(), left.clone()]).collect(),
        other => return Err(nonsense(other)),
    };
    let (mut rest, mut areas) = (Rest(&pairs), Vec::new());
    while !rest.is_empty() {
        areas.push((rest.area()?, rest.places_left()?));
    }
    areas.sort_unstable();
    if (epoch, version) < seen || (map.is_empty() && areas.is_empty()) {
        tracing::debug!(%show, epoch, version, "the map read is none to use");
        return Ok(None);
    }
    Ok(Some((now, MapSnapshot { epoch, version, map, areas })))
}
