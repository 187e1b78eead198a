//! Seat locks in Redis: each call is one script and one round trip. Maps and refusals are read without a script.

mod answer;
mod positions;
mod refusals;
mod scripts;
mod snapshot;

use async_trait::async_trait;
use bytes::Bytes;
use domain::fairness::{HALF_FROM, NONE_FROM};
use domain::seats::SeatIndex;
use domain::time::Timestamp;
use redis::{Cmd, Value};
use uuid::Uuid;

use self::answer::{
    AnswerFields, ScriptAnswer, parse_attempt, parse_parts, places_text, unexpected_answer, write_asked, write_id,
    write_party, write_places, write_sale, write_seats,
};
use self::positions::Positions;
use self::scripts::LockScripts;
use super::{
    FencedSelection, HoldLimits, HoldUpdate, Keys, LockAttempt, MapSnapshot, RebuildInput, Refusal, ReleasedAll,
    Renewal, RequestIdentity, SeatLocks, SeatResult, StoreError, StoreResult, StoredHold, channel_of,
};
use platform::clock::StoreClock;
use platform::redis_link::{Link, LinkError, LuaScript};
use platform::telemetry;

/// Script calls per sweep when very many holds are due at once, as when those of a flash sale expire together.
const SWEEPS_PER_CALL: u32 = 64;
/// Number of fields at the head of every answer: code, clock, epoch, version, holds that ran out.
const HEAD: usize = 5;
/// Holds read per script call when staff release all of a show.
const RELEASED_PER_CALL: u64 = 256;

/// Seat locks in Redis.
pub struct RedisLocks {
    link: Link,
    prefix: String,
    scripts: LockScripts,
    /// The latest version seen of each show: an older one means that the store lost writes.
    positions: Positions,
    /// Redis' clock minus this server's, milliseconds, as of the last answer.
    clock: StoreClock,
}

impl RedisLocks {
    /// Creates a store without calling Redis: until the first answer it uses this server's clock.
    #[must_use]
    pub fn new(link: Link, prefix: &str) -> Self {
        Self {
            link,
            prefix: prefix.to_owned(),
            scripts: LockScripts::new(),
            positions: Positions::default(),
            clock: StoreClock::default(),
        }
    }

    /// Redis' clock, as this store reads it.
    #[must_use]
    pub fn clock(&self) -> StoreClock {
        self.clock.clone()
    }

    /// Reads Redis' clock for the first time.
    ///
    /// # Errors
    /// If no server answers.
    pub async fn read_clock(&self) -> Result<(), LinkError> {
        self.set_clock(self.link.time_ms().await?);
        Ok(())
    }

    fn set_clock(&self, now_ms: i64) {
        self.clock.set(Timestamp(now_ms));
    }

    /// Runs a script on a show's keys; `write` appends its arguments from ARGV[5] on.
    async fn call(
        &self,
        show: Uuid,
        script: &LuaScript,
        write: impl Fn(&mut Cmd) + Send + Sync,
    ) -> StoreResult<ScriptAnswer> {
        let (epoch, version) = self.positions.of(show);
        let mut call = script.call(&Keys::of(&self.prefix, show).0);
        let command = call.command();
        command.arg(channel_of(&self.prefix, show)).arg(self.link.publish_command()).arg(epoch).arg(version);
        write(command);
        let answer = self.link.eval(&call).await?;
        let (value, tried) = (answer.value, answer.attempts);
        let Value::Array(mut parts) = value else { return Err(unexpected_answer(&value)) };
        if parts.len() < HEAD {
            return Err(unexpected_answer(&parts));
        }
        let rest = parts.split_off(HEAD);
        let mut head = AnswerFields(&parts);
        let code = head.bytes()?.to_vec();
        self.set_clock(head.number()?);
        let (epoch, version) = (head.number()?.unsigned_abs(), head.number()?.unsigned_abs());
        if code == b"NOMAP" || code == b"REGRESSED" {
            tracing::info!(%show, reason = %String::from_utf8_lossy(&code), "the lock store has no current map");
            return Err(StoreError::NoMap(show));
        }
        self.positions.note(show, epoch, version);
        // Every call frees due holds before its own work, also the sweeper's.
        let ran_out = head.number()?.unsigned_abs();
        if ran_out > 0 {
            telemetry::holds_expired(ran_out);
        }
        Ok(ScriptAnswer { code, epoch, version, rest, tried })
    }
}

impl From<LinkError> for StoreError {
    fn from(cause: LinkError) -> Self {
        match cause {
            LinkError::Refused(error) => unexpected_answer(&error),
            other => Self::Unavailable(other),
        }
    }
}

#[async_trait]
impl SeatLocks for RedisLocks {
    async fn lock(
        &self,
        show: Uuid,
        terms: HoldLimits,
        attempts: &[LockAttempt],
    ) -> StoreResult<Vec<SeatResult<StoredHold>>> {
        let asked = self.call(show, &self.scripts.lock, |command| {
            command.arg(terms.per_person).arg(terms.length_ms).arg(terms.life_ms).arg(attempts.len());
            for attempt in attempts {
                write_asked(command, attempt.asked);
                command.arg(&attempt.owner).arg(u8::from(attempt.takes_kept));
                command.arg(attempt.selection.seats.len()).arg(attempt.selection.places.len());
                write_seats(command, &attempt.selection.seats);
                write_places(command, &attempt.selection.places);
            }
        });
        let answers = asked.await?.rest;
        if answers.len() != attempts.len() {
            return Err(unexpected_answer(&answers));
        }
        answers.iter().zip(attempts).map(|(answer, attempt)| parse_attempt(answer, attempt)).collect()
    }

    async fn read_refusals(
        &self,
        show: Uuid,
        terms: HoldLimits,
        attempts: &[LockAttempt],
    ) -> StoreResult<Vec<Option<Refusal>>> {
        let keys = Keys::of(&self.prefix, show);
        // Read before the call: other calls may see versions newer than this answer.
        let seen = self.positions.of(show);
        match self.link.read_transaction(&keys.0[0], &refusals::reads(&keys, attempts)).await {
            Ok(values) => refusals::read(&values, seen, terms, attempts),
            // For example a slot that migrates: the script call follows redirects.
            Err(LinkError::Refused(cause)) => {
                tracing::debug!(%cause, %show, "refusals could not be read in one go");
                Ok(vec![None; attempts.len()])
            }
            Err(cause) => Err(cause.into()),
        }
    }

    async fn change(&self, show: Uuid, terms: HoldLimits, change: &HoldUpdate) -> StoreResult<SeatResult<StoredHold>> {
        let asked = self.call(show, &self.scripts.change, |command| {
            write_asked(command, change.asked);
            command.arg(terms.per_person);
            write_id(command, change.hold);
            command.arg(&change.owner).arg(change.add.seats.len()).arg(change.remove.seats.len());
            command.arg(change.add.places.len()).arg(change.remove.places.len());
            write_seats(command, &change.add.seats);
            write_seats(command, &change.remove.seats);
            write_places(command, &change.add.places);
            write_places(command, &change.remove.places);
        });
        asked.await?.hold(change.hold)
    }

    async fn extend(
        &self,
        show: Uuid,
        asked: RequestIdentity,
        hold: Uuid,
        owner: &str,
        by_ms: i64,
    ) -> StoreResult<SeatResult<StoredHold>> {
        let answer = self.call(show, &self.scripts.extend, |command| {
            write_asked(command, asked);
            write_id(command, hold);
            command.arg(owner).arg(by_ms).arg(HALF_FROM).arg(NONE_FROM);
        });
        answer.await?.hold(hold)
    }

    async fn hold_of(&self, show: Uuid, owner: &str) -> StoreResult<Option<StoredHold>> {
        let holds = self.holds_of(show, &[owner.to_owned()]).await?;
        Ok(holds.into_iter().next().flatten())
    }

    async fn holds_of(&self, show: Uuid, owners: &[String]) -> StoreResult<Vec<Option<StoredHold>>> {
        let asked = self.call(show, &self.scripts.mine, |command| {
            for owner in owners {
                command.arg(owner);
            }
        });
        parse_parts(&asked.await?.rest, owners.len(), |code, mut rest| match code {
            b"GONE" => Ok(None),
            b"HELD" => {
                let hold = rest.id()?;
                rest.hold(hold).map(Some)
            }
            other => Err(unexpected_answer(&String::from_utf8_lossy(other))),
        })
    }

    async fn shorten_hold(&self, show: Uuid, hold: Uuid, owner: &str, grace_ms: i64) -> StoreResult<()> {
        let asked = self.call(show, &self.scripts.leave, |command| {
            write_id(command, hold);
            command.arg(owner).arg(grace_ms);
        });
        asked.await.map(drop)
    }

    async fn release(&self, show: Uuid, hold: Uuid, owner: &str) -> StoreResult<SeatResult<()>> {
        let asked = self.call(show, &self.scripts.release, |command| {
            write_id(command, hold);
            command.arg(owner);
        });
        let answer = asked.await?;
        // Gone after a retry: the first try released it, and its answer was lost.
        let done = answer.is("OK") || (answer.is("GONE") && answer.tried > 1);
        if done { Ok(Ok(())) } else { answer.refused().map(Err) }
    }

    async fn begin_payment(
        &self,
        show: Uuid,
        sale: &FencedSelection,
        extension_ms: i64,
    ) -> StoreResult<SeatResult<Timestamp>> {
        let ends = self.begin_payments(show, std::slice::from_ref(sale), extension_ms).await?;
        ends.into_iter().next().ok_or_else(|| unexpected_answer("no answer to a payment"))
    }

    async fn begin_payments(
        &self,
        show: Uuid,
        sales: &[FencedSelection],
        extension_ms: i64,
    ) -> StoreResult<Vec<SeatResult<Timestamp>>> {
        let seats =
            |sale: &FencedSelection| sale.selection.seats.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let asked = self.call(show, &self.scripts.begin_payment, |command| {
            command.arg(extension_ms);
            for sale in sales {
                write_party(command, sale);
                command.arg(seats(sale)).arg(places_text(&sale.selection.places));
            }
        });
        parse_parts(&asked.await?.rest, sales.len(), |code, mut rest| match code {
            b"OK" => Ok(Ok(Timestamp(rest.number()?))),
            other => rest.refusal(other).map(Err),
        })
    }

    async fn end_payment(&self, show: Uuid, sale: &FencedSelection, extension_ms: i64) -> StoreResult<()> {
        let asked = self.call(show, &self.scripts.end_payment, |command| {
            write_party(command, sale);
            command.arg(extension_ms);
        });
        asked.await.map(drop)
    }

    async fn renew(
        &self,
        show: Uuid,
        party: &FencedSelection,
        renewal: &Renewal,
    ) -> StoreResult<SeatResult<StoredHold>> {
        let asked = self.call(show, &self.scripts.renew, |command| {
            write_party(command, party);
            write_id(command, renewal.hold);
            command.arg(&renewal.owner).arg(renewal.until.0).arg(u8::from(renewal.ends_payment));
            match renewal.per_person {
                Some(most) => command.arg(most),
                None => command.arg("-"),
            };
        });
        asked.await?.hold(renewal.hold)
    }

    async fn book(&self, show: Uuid, sale: &FencedSelection) -> StoreResult<()> {
        self.book_all(show, std::slice::from_ref(sale)).await
    }

    async fn book_all(&self, show: Uuid, sales: &[FencedSelection]) -> StoreResult<()> {
        let asked = self.call(show, &self.scripts.book, |command| {
            command.arg(sales.len());
            for sale in sales {
                write_party(command, sale);
                command.arg(sale.selection.seats.len()).arg(sale.selection.places.len());
                write_seats(command, &sale.selection.seats);
                write_places(command, &sale.selection.places);
            }
        });
        asked.await.map(drop)
    }

    async fn free_and_block(&self, show: Uuid, sale: &FencedSelection, kept: &[SeatIndex]) -> StoreResult<()> {
        let asked = self.call(show, &self.scripts.free, |command| {
            command.arg(kept.len());
            write_seats(command, kept);
            write_sale(command, sale);
        });
        asked.await.map(drop)
    }

    async fn block(&self, show: Uuid, seats: &[SeatIndex], blocked: bool) -> StoreResult<SeatResult<()>> {
        let asked = self.call(show, &self.scripts.block, |command| {
            command.arg(u8::from(blocked));
            write_seats(command, seats);
        });
        let answer = asked.await?;
        if answer.is("OK") { Ok(Ok(())) } else { answer.refused().map(Err) }
    }

    async fn withdraw(&self, show: Uuid, seats: &[SeatIndex]) -> StoreResult<SeatResult<Vec<SeatIndex>>> {
        let answer = self.call(show, &self.scripts.withdraw, |command| write_seats(command, seats)).await?;
        if !answer.is("OK") {
            return answer.refused().map(Err);
        }
        let (mut rest, mut left) = (answer.rest(), Vec::new());
        while !rest.0.is_empty() {
            left.push(rest.seat()?);
        }
        Ok(Ok(left))
    }

    async fn release_all(&self, show: Uuid) -> StoreResult<ReleasedAll> {
        let mut sum = ReleasedAll::default();
        loop {
            let paying = sum.paying;
            let asked = self.call(show, &self.scripts.release_all, |command| {
                command.arg(paying).arg(RELEASED_PER_CALL);
            });
            let answer = asked.await?;
            let mut rest = answer.rest();
            sum.released += rest.number()?.unsigned_abs();
            sum.paying += rest.number()?.unsigned_abs();
            if rest.number()? == 0 {
                return Ok(sum);
            }
        }
    }

    async fn copy_hold(
        &self,
        show: Uuid,
        owner: &str,
        held: &StoredHold,
        theirs: Timestamp,
    ) -> StoreResult<SeatResult<()>> {
        let asked = self.call(show, &self.scripts.adopt, |command| {
            write_id(command, held.hold);
            command.arg(owner).arg(held.fence).arg(u8::from(held.paying));
            command.arg(held.expires_at.since(theirs)).arg(held.latest.since(theirs)).arg(held.selection.seats.len());
            write_seats(command, &held.selection.seats);
            write_places(command, &held.selection.places);
        });
        let answer = asked.await?;
        if answer.is("OK") { Ok(Ok(())) } else { answer.refused().map(Err) }
    }

    async fn copy_fences(&self, show: Uuid, fences: &[(Uuid, i64)]) -> StoreResult<()> {
        let asked = self.call(show, &self.scripts.stamp, |command| {
            command.arg(fences.len());
            for (hold, fence) in fences {
                write_id(command, *hold);
                command.arg(*fence);
            }
        });
        asked.await.map(drop)
    }

    async fn sweep(&self, show: Uuid) -> StoreResult<u64> {
        for _ in 0..SWEEPS_PER_CALL {
            let answer = self.call(show, &self.scripts.sweep, |_| {}).await?;
            let mut rest = answer.rest();
            let (left, due) = (rest.number()?.unsigned_abs(), rest.number()?);
            if due == 0 {
                return Ok(left);
            }
        }
        // The next sweep continues.
        Ok(u64::MAX)
    }

    async fn snapshot(&self, show: Uuid) -> StoreResult<MapSnapshot> {
        let keys = Keys::of(&self.prefix, show);
        // Read before the call: other calls may see versions newer than this answer.
        let seen = self.positions.of(show);
        match self.link.read_transaction(&keys.0[0], &snapshot::reads(&keys)).await {
            Ok(values) => {
                if let Some((now, snapshot)) = snapshot::read(show, &values, seen)? {
                    self.set_clock(now.0);
                    self.positions.note(show, snapshot.epoch, snapshot.version);
                    return Ok(snapshot);
                }
            }
            // For example a slot that migrates: the script call follows redirects.
            Err(LinkError::Refused(cause)) => tracing::debug!(%cause, %show, "a map could not be read in one go"),
            Err(cause) => return Err(cause.into()),
        }
        let answer = self.call(show, &self.scripts.snapshot, |_| {}).await?;
        let mut rest = answer.rest();
        let map = Bytes::copy_from_slice(rest.bytes()?);
        let mut areas = Vec::new();
        while !rest.is_empty() {
            areas.push((rest.area()?, rest.count()?));
        }
        areas.sort_unstable();
        Ok(MapSnapshot { epoch: answer.epoch, version: answer.version, map, areas })
    }

    async fn load(&self, show: Uuid, known: &RebuildInput) -> StoreResult<()> {
        let asked = self.call(show, &self.scripts.load, |command| {
            command.arg(&known.map).arg(known.lowest_fence).arg(known.sold.len()).arg(known.areas.len());
            command.arg(known.sold_places.len()).arg(known.bought.len()).arg(u8::from(known.is_past));
            for (seat, fence) in &known.sold {
                command.arg(*seat).arg(*fence);
            }
            for (area, left) in &known.areas {
                command.arg(*area).arg(*left);
            }
            for (fence, places) in &known.sold_places {
                command.arg(*fence).arg(places_text(places));
            }
            for (owner, count) in &known.bought {
                command.arg(owner).arg(*count);
            }
        });
        asked.await.map(drop)
    }

    async fn forget(&self, show: Uuid) -> StoreResult<()> {
        self.positions.forget(show);
        self.call(show, &self.scripts.forget, |_| {}).await?;
        self.positions.forget(show);
        Ok(())
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn ping(&self) -> StoreResult<()> {
        Ok(self.link.ping().await?)
    }
}
