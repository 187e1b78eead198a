//! What a person decides about an effect that failed too often, written into the booking's story.

use domain::booking::{Effect, Event};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use super::cancel::reason_of;
use super::checkout::create::unmoved;
use super::money::refunds;
use super::moves::{self, Cause, MoveError};
use super::sql::{self, BookingRow};
use super::story;
use crate::outbox;
use crate::web::Problem;

/// Puts a parked effect back to work.
///
/// # Errors
/// 404 when it is not parked (any more), 400 when the reason cannot be used.
pub async fn retry_parked(pg: &PgPool, id: i64, reason: &str, now: Timestamp) -> Result<(), Problem> {
    let reason = reason_of(reason)?;
    let (mut tx, row, effect) = lock_parked(pg, id).await?;
    if !outbox::retry(&mut tx, id, now).await? {
        return Err(Problem::not_found("parked effect"));
    }
    let words = format!("{}: {reason}", outbox::effect_name(effect));
    let cause = Cause { actor: "staff", reason: &words };
    story::note(&mut tx, &row, "effect_retried", cause, now).await.map_err(unmoved)?;
    tx.commit().await?;
    Ok(())
}

/// Takes a parked effect off the list: a person did it in another way. A refund counts as paid back then;
/// late money that found no seats goes back.
///
/// # Errors
/// As [`retry_parked`].
pub async fn settle_parked(pg: &PgPool, id: i64, reason: &str, now: Timestamp) -> Result<(), Problem> {
    let reason = reason_of(reason)?;
    let (mut tx, row, effect) = lock_parked(pg, id).await?;
    if !outbox::settle(&mut tx, id).await? {
        return Err(Problem::not_found("parked effect"));
    }
    let words = format!("{}: {reason}", outbox::effect_name(effect));
    let cause = Cause { actor: "staff", reason: &words };
    let row = story::note(&mut tx, &row, "effect_settled", cause, now).await.map_err(unmoved)?;
    follow(&mut tx, &row, effect, cause, now).await.map_err(unmoved)?;
    tx.commit().await?;
    Ok(())
}

/// What it means for the booking that a person did it.
async fn follow(
    tx: &mut PgConnection,
    row: &BookingRow,
    effect: Effect,
    cause: Cause<'_>,
    now: Timestamp,
) -> Result<(), MoveError> {
    match effect {
        Effect::Refund { amount } => {
            refunds::request(tx, row.id, 0, (amount, 0), now).await?;
            refunds::settle(tx, row, 0, cause, now).await
        }
        Effect::RefundPart { number, .. } => refunds::settle(tx, row, number, cause, now).await,
        Effect::PlaceLate => {
            moves::apply(tx, row, Event::LateMoneyReturned { amount: row.machine.total }, cause, now).await.map(drop)
        }
        _ => Ok(()),
    }
}

/// A parked effect with its booking, locked: the booking first, like every other writer.
async fn lock_parked(pg: &PgPool, id: i64) -> Result<(Transaction<'static, Postgres>, BookingRow, Effect), Problem> {
    let gone = || Problem::not_found("parked effect");
    let mut tx = pg.begin().await?;
    let (booking, effect) = outbox::parked_effect(&mut tx, id).await?.ok_or_else(gone)?;
    let row = sql::lock(&mut tx, booking).await?.ok_or_else(gone)?;
    Ok((tx, row, effect))
}
