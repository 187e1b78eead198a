//! Seat locks in Redis: one script per call, one round trip.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::seats::{SeatIndex, SeatState};
use domain::time::Timestamp;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{ErrorKind, RedisError, Script, Value};
use uuid::Uuid;

use super::scripts::Scripts;
use super::{Attempt, Held, Keys, KnownSeats, MapSnapshot, Refusal, Sale, SeatLocks, StoreError, channel_of};
use crate::{clock, ids};

/// A call that takes longer has failed; the caller is told to come back.
const CALL_DEADLINE: Duration = Duration::from_secs(3);
/// Making a connection may take this long.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// A call is tried this often: the connection may have died under the first.
const TRIES: u32 = 3;
/// Full jitter before a second try: at most this long, doubling.
const FIRST_PAUSE_MS: u64 = 20;

/// Seat locks in one Redis.
pub struct RedisLocks {
    connection: ConnectionManager,
    prefix: String,
    scripts: Scripts,
    /// Redis' clock minus ours, milliseconds, as of the last answer.
    ahead_ms: AtomicI64,
}

impl RedisLocks {
    /// Connects; later losses are repaired by itself.
    ///
    /// # Errors
    /// When the address is unusable or nobody answers there.
    pub async fn connect(url: &str, prefix: &str) -> Result<Self, RedisError> {
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT_DEADLINE))
            .set_response_timeout(Some(CALL_DEADLINE))
            .set_number_of_retries(1);
        let connection = redis::Client::open(url)?.get_connection_manager_with_config(config).await?;
        let store =
            Self { connection, prefix: prefix.to_owned(), scripts: Scripts::new(), ahead_ms: AtomicI64::new(0) };
        let (seconds, micros): (i64, i64) = redis::cmd("TIME").query_async(&mut store.connection.clone()).await?;
        store.set_clock(seconds * 1_000 + micros / 1_000);
        Ok(store)
    }

    fn set_clock(&self, now_ms: i64) {
        self.ahead_ms.store(now_ms - clock::now().0, Ordering::Relaxed);
    }

    /// Runs a script and returns its answer's code and what follows the clock.
    async fn call(&self, show: Uuid, script: &Script, args: &[Vec<u8>]) -> Result<(String, Vec<Value>), StoreError> {
        self.call_counting(show, script, args).await.map(|(code, rest, _)| (code, rest))
    }

    /// The same, and how often it took: an answer may belong to a repeat of what the first try did.
    async fn call_counting(
        &self,
        show: Uuid,
        script: &Script,
        args: &[Vec<u8>],
    ) -> Result<(String, Vec<Value>, u32), StoreError> {
        let keys = Keys::of(&self.prefix, show);
        let channel = channel_of(&self.prefix, show);
        let mut tried = 1;
        let value = loop {
            let mut call = script.prepare_invoke();
            keys.0.iter().for_each(|key| {
                call.key(key);
            });
            call.arg(&channel);
            args.iter().for_each(|arg| {
                call.arg(arg);
            });
            match call.invoke_async::<Value>(&mut self.connection.clone()).await {
                Ok(value) => break value,
                Err(error) if tried < TRIES && is_worth_another_try(&error) => {
                    let pause = ids::jitter(FIRST_PAUSE_MS << tried);
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                    tried += 1;
                }
                Err(error) => return Err(StoreError::Unavailable(error)),
            }
        };
        let Value::Array(mut parts) = value else { return Err(nonsense(&value)) };
        if parts.len() < 2 {
            return Err(nonsense(&parts));
        }
        let rest = parts.split_off(2);
        let (code, now) = (text(&parts[0])?, number(&parts[1])?);
        self.set_clock(now);
        if code == "NOMAP" {
            return Err(StoreError::NoMap(show));
        }
        Ok((code, rest, tried))
    }
}

/// Every script may be repeated, so a lost or late answer is simply asked for again.
fn is_worth_another_try(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_timeout()
        || error.is_connection_dropped()
        || error.kind() == ErrorKind::Server(redis::ServerErrorKind::BusyLoading)
}

#[async_trait]
impl SeatLocks for RedisLocks {
    async fn lock(
        &self,
        show: Uuid,
        per_person: usize,
        attempts: &[Attempt],
    ) -> Result<Vec<Result<Held, Refusal>>, StoreError> {
        let mut args = vec![arg(per_person), arg(attempts.len())];
        for attempt in attempts {
            args.extend([arg(attempt.hold), arg(&attempt.owner), arg(attempt.length_ms), arg(attempt.seats.len())]);
            args.extend(attempt.seats.iter().map(arg));
        }
        let (_, answers) = self.call(show, &self.scripts.lock, &args).await?;
        if answers.len() != attempts.len() {
            return Err(nonsense(&answers));
        }
        answers.iter().zip(attempts).map(|(answer, attempt)| lock_answer(answer, attempt)).collect()
    }

    async fn change(
        &self,
        show: Uuid,
        per_person: usize,
        hold: Uuid,
        owner: &str,
        add: &[SeatIndex],
        remove: &[SeatIndex],
    ) -> Result<Result<Held, Refusal>, StoreError> {
        let mut args = vec![arg(per_person), arg(hold), arg(owner), arg(add.len()), arg(remove.len())];
        args.extend(add.iter().chain(remove).map(arg));
        let (code, rest) = self.call(show, &self.scripts.change, &args).await?;
        if code != "OK" {
            return refusal(&code, &rest).map(Err);
        }
        let [expires, fence, seats @ ..] = rest.as_slice() else { return Err(nonsense(&rest)) };
        Ok(Ok(Held {
            hold,
            expires_at: Timestamp(number(expires)?),
            fence: number(fence)?,
            paying: false,
            seats: seats.iter().map(seat).collect::<Result<_, _>>()?,
        }))
    }

    async fn mine(&self, show: Uuid, owner: &str) -> Result<Option<Held>, StoreError> {
        let (code, rest) = self.call(show, &self.scripts.mine, &[arg(owner)]).await?;
        if code == "GONE" {
            return Ok(None);
        }
        let [hold, expires, fence, paying, seats @ ..] = rest.as_slice() else { return Err(nonsense(&rest)) };
        Ok(Some(Held {
            hold: id(hold)?,
            expires_at: Timestamp(number(expires)?),
            fence: number(fence)?,
            paying: number(paying)? == 1,
            seats: seats.iter().map(seat).collect::<Result<_, _>>()?,
        }))
    }

    async fn leave(&self, show: Uuid, hold: Uuid, owner: &str, grace_ms: i64) -> Result<(), StoreError> {
        self.call(show, &self.scripts.leave, &[arg(hold), arg(owner), arg(grace_ms)]).await.map(|_| ())
    }

    async fn release(&self, show: Uuid, hold: Uuid, owner: &str) -> Result<Result<(), Refusal>, StoreError> {
        let args = [arg(hold), arg(owner)];
        let (code, rest, tried) = self.call_counting(show, &self.scripts.release, &args).await?;
        // Gone at a second try: the first one did it, and its answer was lost.
        if code == "OK" || (code == "GONE" && tried > 1) { Ok(Ok(())) } else { refusal(&code, &rest).map(Err) }
    }

    async fn begin_payment(
        &self,
        show: Uuid,
        sale: &Sale,
        extension_ms: i64,
    ) -> Result<Result<Timestamp, Refusal>, StoreError> {
        let seats = sale.seats.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let args = [arg(sale.hold), arg(&sale.owner), arg(sale.fence), arg(extension_ms), seats.into_bytes()];
        let (code, rest) = self.call(show, &self.scripts.extend, &args).await?;
        if code != "OK" {
            return refusal(&code, &rest).map(Err);
        }
        let expires = rest.first().ok_or_else(|| nonsense(&rest))?;
        Ok(Ok(Timestamp(number(expires)?)))
    }

    async fn end_payment(&self, show: Uuid, sale: &Sale, extension_ms: i64) -> Result<(), StoreError> {
        let args = [arg(sale.hold), arg(&sale.owner), arg(sale.fence), arg(extension_ms)];
        self.call(show, &self.scripts.unextend, &args).await.map(|_| ())
    }

    async fn book(&self, show: Uuid, sale: &Sale) -> Result<(), StoreError> {
        self.call(show, &self.scripts.book, &sale_args(sale)).await.map(|_| ())
    }

    async fn free(&self, show: Uuid, sale: &Sale) -> Result<(), StoreError> {
        self.call(show, &self.scripts.free, &sale_args(sale)).await.map(|_| ())
    }

    async fn sweep(&self, show: Uuid) -> Result<u64, StoreError> {
        let (_, rest) = self.call(show, &self.scripts.sweep, &[]).await?;
        let left = rest.first().ok_or_else(|| nonsense(&rest))?;
        Ok(number(left)?.unsigned_abs())
    }

    async fn snapshot(&self, show: Uuid) -> Result<MapSnapshot, StoreError> {
        let (_, rest) = self.call(show, &self.scripts.snapshot, &[]).await?;
        let [epoch, version, Value::BulkString(map)] = rest.as_slice() else { return Err(nonsense(&rest)) };
        Ok(MapSnapshot {
            epoch: number(epoch)?.unsigned_abs(),
            version: number(version)?.unsigned_abs(),
            map: Bytes::copy_from_slice(map),
        })
    }

    async fn load(&self, show: Uuid, known: &KnownSeats) -> Result<(), StoreError> {
        let mut args = vec![known.map.clone(), arg(known.lowest_fence), arg(known.sold.len())];
        args.extend(known.sold.iter().flat_map(|(seat, fence)| [arg(seat), arg(fence)]));
        args.extend(known.bought.iter().flat_map(|(owner, count)| [arg(owner), arg(count)]));
        self.call(show, &self.scripts.load, &args).await.map(|_| ())
    }

    fn now(&self) -> Timestamp {
        clock::now().plus_ms(self.ahead_ms.load(Ordering::Relaxed))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let pong = redis::cmd("PING").query_async::<Value>(&mut self.connection.clone()).await;
        pong.map(|_| ()).map_err(StoreError::Unavailable)
    }
}

fn sale_args(sale: &Sale) -> Vec<Vec<u8>> {
    let mut args = vec![arg(sale.hold), arg(&sale.owner), arg(sale.fence)];
    args.extend(sale.seats.iter().map(arg));
    args
}

fn lock_answer(answer: &Value, attempt: &Attempt) -> Result<Result<Held, Refusal>, StoreError> {
    let Value::Array(parts) = answer else { return Err(nonsense(answer)) };
    let [code, rest @ ..] = parts.as_slice() else { return Err(nonsense(answer)) };
    let code = text(code)?;
    if code != "HELD" {
        return refusal(&code, rest).map(Err);
    }
    let [expires, fence] = rest else { return Err(nonsense(answer)) };
    Ok(Ok(Held {
        hold: attempt.hold,
        expires_at: Timestamp(number(expires)?),
        fence: number(fence)?,
        paying: false,
        seats: attempt.seats.clone(),
    }))
}

fn refusal(code: &str, rest: &[Value]) -> Result<Refusal, StoreError> {
    let first = || rest.first().ok_or_else(|| nonsense(rest));
    Ok(match code {
        "TAKEN" => Refusal::Taken(rest.chunks(2).map(taken).collect::<Result<_, _>>()?),
        "OTHER" => Refusal::OtherHold(id(first()?)?),
        "LIMIT" => Refusal::Limit(u32::try_from(number(first()?)?).unwrap_or(0)),
        "REUSED" => Refusal::Reused,
        "OUTSIDE" => Refusal::Outside(seat(first()?)?),
        "GONE" => Refusal::Gone,
        "PAYING" => Refusal::Paying,
        "CHANGED" => Refusal::Changed,
        other => return Err(nonsense(other)),
    })
}

fn taken(pair: &[Value]) -> Result<(SeatIndex, SeatState), StoreError> {
    let [index, state] = pair else { return Err(nonsense(pair)) };
    let byte = u8::try_from(number(state)?).ok().and_then(SeatState::from_byte);
    Ok((seat(index)?, byte.ok_or_else(|| nonsense(pair))?))
}

fn arg(value: impl ToString) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn text(value: &Value) -> Result<String, StoreError> {
    redis::from_redis_value_ref(value).map_err(|_| nonsense(value))
}

fn number(value: &Value) -> Result<i64, StoreError> {
    redis::from_redis_value_ref(value).map_err(|_| nonsense(value))
}

fn seat(value: &Value) -> Result<SeatIndex, StoreError> {
    SeatIndex::try_from(number(value)?).map_err(|_| nonsense(value))
}

fn id(value: &Value) -> Result<Uuid, StoreError> {
    Uuid::parse_str(&text(value)?).map_err(|_| nonsense(value))
}

fn nonsense<T: std::fmt::Debug + ?Sized>(answer: &T) -> StoreError {
    StoreError::Nonsense(format!("{answer:?}"))
}
