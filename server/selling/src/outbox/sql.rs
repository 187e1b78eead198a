//! Queries of `outbox`.

use domain::VariantName;
use domain::booking::Effect;
use domain::money::{Currency, Money};
use domain::time::{SECOND_MS, Timestamp};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use platform::clock::to_utc;
use platform::cte_batch::CteBatch;
use platform::database::BindAll;

/// Head start of the request over the relay for a charge, milliseconds: a buyer waits for it, so the request sends
/// it. Longer than the gateway's deadline.
const CHARGE_HEAD_START_MS: i64 = 15 * SECOND_MS;

/// The columns of an effect besides its name.
struct EffectColumns {
    /// The amount, minor units.
    amount: Option<i64>,
    number: u32,
    /// The head start before the relay takes it, milliseconds.
    wait: i64,
}

impl EffectColumns {
    const fn of(effect: Effect) -> Self {
        let amount = match effect {
            Effect::Refund { amount } | Effect::RefundPart { amount, .. } => Some(amount.minor),
            _ => None,
        };
        let number = match effect {
            Effect::RefundPart { number, .. } | Effect::ReleasePart { number } | Effect::SendNotice { number } => {
                number
            }
            _ => 0,
        };
        let wait = if matches!(effect, Effect::Charge) { CHARGE_HEAD_START_MS } else { 0 };
        Self { amount, number, wait }
    }
}

/// Head start of the replica that commits a sale, milliseconds: it updates the map and mails the tickets itself; the
/// relay does so only after this.
const SELLER_HEAD_START_MS: i64 = 15 * SECOND_MS;

/// Adds the insert of effects of many bookings, in this order, to the statement of their steps. The caller performs
/// charges, map updates and tickets during their head start, and removes them with [`add_removal`].
///
/// # Errors
/// When the values cannot be encoded.
pub fn add_enqueued(cte: &mut CteBatch, effects: &[(Uuid, Effect)], now: Timestamp) -> sqlx::Result<()> {
    let due = |effect: Effect| {
        let is_sellers = matches!(effect, Effect::MarkBooked | Effect::SendTicket);
        let head_start = if is_sellers { SELLER_HEAD_START_MS } else { EffectColumns::of(effect).wait };
        to_utc(now.plus_ms(head_start))
    };
    let statement = "INSERT INTO outbox (booking_id, effect, amount_minor, refund_number, run_after, created_at)
         SELECT todo.*, $6 FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::integer[], $5::timestamptz[]) AS todo";
    cte.add("enqueued", statement, &[])
        .each(effects.iter().map(|(booking, _)| *booking))
        .each(effects.iter().map(|(_, effect)| effect.as_str()))
        .each(effects.iter().map(|(_, effect)| EffectColumns::of(*effect).amount))
        .each(effects.iter().map(|(_, effect)| EffectColumns::of(*effect).number.cast_signed()))
        .each(effects.iter().map(|(_, effect)| due(*effect)))
        .value(to_utc(now))
        .done()
}

/// Enqueues effects in the transaction of their step.
///
/// # Errors
/// When the database fails.
pub async fn enqueue(tx: &mut PgConnection, booking: Uuid, effects: &[Effect], now: Timestamp) -> sqlx::Result<()> {
    for effect in effects {
        let EffectColumns { amount, number, wait } = EffectColumns::of(*effect);
        sqlx::query(
            "INSERT INTO outbox (booking_id, effect, amount_minor, refund_number, run_after, created_at)
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind_all((booking, effect.as_str(), amount, number.cast_signed(), to_utc(now.plus_ms(wait)), to_utc(now)))
        .execute(&mut *tx)
        .await?;
    }
    Ok(())
}

/// Checks for this effect of a booking in the outbox, parked or not.
///
/// # Errors
/// When the database fails.
pub async fn contains_effect(tx: &mut PgConnection, booking: Uuid, effect: Effect) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM outbox WHERE booking_id = $1 AND effect = $2 AND refund_number = $3)",
    )
    .bind_all((booking, effect.as_str(), EffectColumns::of(effect).number.cast_signed()))
    .fetch_one(tx)
    .await
}

/// Parks an effect that failed after it was done. A row that is still in the outbox is parked as it is.
///
/// # Errors
/// When the database fails.
pub async fn park(tx: &mut PgConnection, booking: Uuid, effect: Effect, why: &str, now: Timestamp) -> sqlx::Result<()> {
    let EffectColumns { amount, number, .. } = EffectColumns::of(effect);
    let sql = "UPDATE outbox SET parked_why = $4 WHERE booking_id = $1 AND effect = $2 AND refund_number = $3";
    let parked =
        sqlx::query(sql).bind_all((booking, effect.as_str(), number.cast_signed(), why)).execute(&mut *tx).await?;
    if parked.rows_affected() == 0 {
        sqlx::query(
            "INSERT INTO outbox (booking_id, effect, amount_minor, refund_number, run_after, parked_why, created_at)
             VALUES ($1, $2, $3, $4, $6, $5, $6)",
        )
        .bind_all((booking, effect.as_str(), amount, number.cast_signed(), why, to_utc(now)))
        .execute(tx)
        .await?;
    }
    Ok(())
}

/// Removes an effect of a booking that was performed outside the relay.
///
/// # Errors
/// When the database fails; the effect will be repeated.
pub async fn remove(pg: &PgPool, booking: Uuid, effect: Effect) -> sqlx::Result<()> {
    let sql = "DELETE FROM outbox WHERE booking_id = $1 AND effect = $2";
    sqlx::query(sql).bind_all((booking, effect.as_str())).execute(pg).await.map(drop)
}

/// Records that the buyer's mail of a booking was handed over: retries mail its friend only.
///
/// # Errors
/// When the database fails; retries mail the buyer again.
pub async fn mark_buyer_mailed(pg: &PgPool, booking: Uuid) -> sqlx::Result<()> {
    let sql = "UPDATE outbox SET is_buyer_mailed = true WHERE booking_id = $1 AND effect = 'send_ticket'";
    sqlx::query(sql).bind(booking).execute(pg).await.map(drop)
}

/// Returns true if the buyer's mail of a booking was handed over, and only its friend's is missing.
///
/// # Errors
/// When the database fails.
pub async fn is_buyer_mailed(pg: &PgPool, booking: Uuid) -> sqlx::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM outbox
                             WHERE booking_id = $1 AND effect = 'send_ticket' AND is_buyer_mailed)";
    sqlx::query_scalar(sql).bind(booking).fetch_one(pg).await
}

const DELETE_OF_MANY: &str = "DELETE FROM outbox WHERE booking_id = ANY($1) AND effect = ANY($2)";

/// Removes these effects of many bookings, in the caller's transaction.
///
/// # Errors
/// When the database fails.
pub(super) async fn delete_all(tx: &mut PgConnection, bookings: &[Uuid], effects: &[Effect]) -> sqlx::Result<()> {
    let names: Vec<_> = effects.iter().map(|effect| effect.as_str()).collect();
    sqlx::query(DELETE_OF_MANY).bind(bookings).bind(names).execute(tx).await.map(drop)
}

/// Adds the removal of one effect of many bookings to a statement.
///
/// # Errors
/// When the values cannot be encoded.
pub fn add_removal(cte: &mut CteBatch, bookings: &[Uuid], effect: Effect) -> sqlx::Result<()> {
    cte.add("done", DELETE_OF_MANY, &[]).value(bookings).value([effect.as_str()].as_slice()).done()
}

/// Makes an effect of many bookings due for the relay at once, because it failed outside it.
///
/// # Errors
/// When the database fails; the relay performs them when their head start is over.
pub(super) async fn make_due(
    tx: &mut PgConnection,
    bookings: &[Uuid],
    effect: Effect,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query("UPDATE outbox SET run_after = $3 WHERE booking_id = ANY($1) AND effect = $2 AND attempts = 0 AND run_after > $3")
        .bind_all((bookings, effect.as_str(), to_utc(now)))
        .execute(tx)
        .await?;
    Ok(())
}

#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) id: i64,
    pub(super) booking: Uuid,
    pub(super) effect: Effect,
    pub(super) attempts: i32,
}

#[derive(platform::FromRow)]
pub(super) struct JobRow {
    id: i64,
    booking_id: Uuid,
    effect: String,
    amount_minor: Option<i64>,
    refund_number: i32,
    currency: String,
    attempts: i32,
}

impl Job {
    /// Returns true if the effect only copies the state in Postgres to the lock store.
    pub(super) const fn is_map_update(&self) -> bool {
        matches!(self.effect, Effect::MarkBooked | Effect::ReleaseSeats | Effect::ReleasePart { .. })
    }
}

macro_rules! begin_index_scans {
    () => {
        "BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; \
         SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
    };
}

/// Begins a transaction that uses index scans only. The outbox is empty most of the time, and full of dead rows: a plan
/// for an empty table scans all of them, an index scan none.
pub(super) const BEGIN_INDEX_SCANS: &str = begin_index_scans!();

/// [`BEGIN_INDEX_SCANS`] for removals: its commit does not wait for the disk. If Postgres crashes within that moment,
/// the effect is in the outbox again and is repeated, as after any other crash.
pub(super) const BEGIN_INDEX_SCANS_ASYNC_COMMIT: &str =
    concat!(begin_index_scans!(), "; SET LOCAL synchronous_commit = off");

/// Leases due effects of these kinds until `lease_until`; only the first open one of each booking. A notice waits for
/// nothing and blocks nothing: cancellations are announced while a gateway is unavailable. A refund waits for other
/// payment effects, but not for the map, and a ticket does not wait for the map either: an unavailable lock store
/// delays neither refunds nor tickets. A ticket blocks nothing: an unavailable mail server delays neither refunds nor
/// returned seats.
pub(super) async fn take(
    pg: &PgPool,
    kinds: &[&str],
    now: Timestamp,
    lease_until: Timestamp,
    limit: i64,
) -> sqlx::Result<Vec<Job>> {
    let mut tx = pg.begin_with(BEGIN_INDEX_SCANS).await?;
    let rows: Vec<JobRow> = sqlx::query_as(
        "UPDATE outbox job SET attempts = job.attempts + 1, run_after = $2
         FROM (SELECT due.booking_id, due.id, booking.currency
               FROM outbox due JOIN bookings booking ON booking.id = due.booking_id
               WHERE due.parked_why IS NULL AND due.run_after <= $1 AND due.effect = ANY($4)
                 AND (due.effect IN ('send_notice', 'void_left')
                      OR NOT EXISTS (SELECT 1 FROM outbox earlier
                                     WHERE earlier.booking_id = due.booking_id AND earlier.id < due.id
                                       AND earlier.parked_why IS NULL
                                       AND earlier.effect NOT IN ('send_ticket', 'send_notice', 'void_left')
                                       AND (due.effect NOT IN ('refund', 'refund_part')
                                            OR earlier.effect NOT IN ('mark_booked', 'release_seats', 'release_part'))
                                       AND (due.effect <> 'send_ticket' OR earlier.effect <> 'mark_booked')))
               ORDER BY due.run_after LIMIT $3
               FOR UPDATE OF due SKIP LOCKED) taken
         WHERE job.booking_id = taken.booking_id AND job.id = taken.id
         RETURNING job.id, job.booking_id, job.effect, job.amount_minor, job.refund_number, taken.currency,
                   job.attempts",
    )
    .bind_all((to_utc(now), to_utc(lease_until), limit, kinds))
    .fetch_all(&mut *tx)
    .await?;
    tx.commit().await?;
    rows.into_iter().map(parse_job).collect()
}

/// Parses a stored effect; a corrupt value is an error that names its column.
pub(super) fn parse_job(row: JobRow) -> sqlx::Result<Job> {
    let corrupt = |what: &str| sqlx::Error::Decode(format!("outbox({}).{what} cannot be", row.id).into());
    let number = || u32::try_from(row.refund_number).map_err(|_| corrupt("refund_number"));
    let amount = || {
        let minor = row.amount_minor.ok_or_else(|| corrupt("amount_minor"))?;
        let currency = Currency::parse(&row.currency).ok_or_else(|| corrupt("currency"))?;
        Ok::<_, sqlx::Error>(Money::new(minor, currency))
    };
    let effect = match row.effect.as_str() {
        "charge" => Effect::Charge,
        "void_payment" => Effect::VoidPayment,
        "mark_booked" => Effect::MarkBooked,
        "release_seats" => Effect::ReleaseSeats,
        "release_part" => Effect::ReleasePart { number: number()? },
        "send_ticket" => Effect::SendTicket,
        "void_left" => Effect::VoidLeft,
        "send_notice" => Effect::SendNotice { number: number()? },
        "place_late" => Effect::PlaceLate,
        "refund" => Effect::Refund { amount: amount()? },
        "refund_part" => Effect::RefundPart { number: number()?, amount: amount()? },
        _ => return Err(corrupt("effect")),
    };
    Ok(Job { id: row.id, booking: row.booking_id, effect, attempts: row.attempts })
}

/// Deletes completed effects. One that was parked meanwhile has failed after completion, and stays parked.
pub(super) async fn delete(pg: &PgPool, jobs: &[&Job]) -> sqlx::Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let mut tx = pg.begin_with(BEGIN_INDEX_SCANS).await?;
    sqlx::query(
        "DELETE FROM outbox job USING unnest($1::uuid[], $2::bigint[]) AS done (booking_id, id)
         WHERE job.booking_id = done.booking_id AND job.id = done.id AND job.parked_why IS NULL",
    )
    .bind(jobs.iter().map(|job| job.booking).collect::<Vec<_>>())
    .bind(jobs.iter().map(|job| job.id).collect::<Vec<_>>())
    .execute(&mut *tx)
    .await?;
    tx.commit().await
}

pub(super) async fn postpone(pg: &PgPool, job: &Job, at: Timestamp) -> sqlx::Result<()> {
    let sql = "UPDATE outbox SET run_after = $3 WHERE booking_id = $1 AND id = $2";
    sqlx::query(sql).bind_all((job.booking, job.id, to_utc(at))).execute(pg).await.map(drop)
}

pub(super) async fn park_job(pg: &PgPool, job: &Job, why: &str) -> sqlx::Result<()> {
    let sql = "UPDATE outbox SET parked_why = $3 WHERE booking_id = $1 AND id = $2";
    sqlx::query(sql).bind_all((job.booking, job.id, why)).execute(pg).await.map(drop)
}
