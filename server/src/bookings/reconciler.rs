//! Finds bookings that nobody finished and finishes them: any replica, no leader. Two that meet at one
//! booking queue up at its row, and the second finds it moved.

use std::time::Duration;

use domain::booking::{BookingState, Event};
use domain::time::SECOND_MS;
use futures::StreamExt;
use uuid::Uuid;

use super::asking;
use super::effects::{self, EffectError};
use super::moves::Cause;
use super::sql;
use crate::payments::PaymentStatus;
use crate::{AppState, outbox};

/// How often due bookings are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A pending payment that was not heard of for this long is asked about; a third of what M7 allows.
const ASK_AFTER_MS: i64 = 20 * SECOND_MS;
/// Bookings looked at side by side; half of the usual connections.
const SIDE_BY_SIDE: usize = 8;
/// Bookings looked at in one round.
const MAX_PER_ROUND: i64 = 100;

/// Runs until the server stops.
pub async fn reconcile_forever(state: AppState) {
    let mut round = tokio::time::interval(LOOK_EVERY);
    round.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = state.stop.cancelled() => return,
            _ = round.tick() => {}
        }
        if let Err(cause) = one_round(&state).await {
            tracing::warn!(%cause, "the reconciler could not look for due bookings");
        }
    }
}

async fn one_round(state: &AppState) -> Result<(), sqlx::Error> {
    let now = state.locks.now();
    let mut connection = state.pg.acquire().await?;
    let due = sql::due(&mut connection, now, now.plus_ms(-ASK_AFTER_MS), MAX_PER_ROUND).await?;
    drop(connection);
    // Side by side: one slow answer of a gateway must not keep the others waiting.
    futures::stream::iter(due)
        .for_each_concurrent(SIDE_BY_SIDE, async |booking| {
            if let Err(cause) = settle(state, booking).await {
                tracing::warn!(%booking, %cause, "booking {booking} could not be settled yet");
            }
        })
        .await;
    Ok(())
}

async fn settle(state: &AppState, booking: Uuid) -> Result<(), EffectError> {
    let mut connection = state.pg.acquire().await?;
    let Some(row) = sql::find(&mut connection, booking).await? else { return Ok(()) };
    if row.machine.state != BookingState::PaymentPending {
        drop(connection);
        return time_out(state, booking).await;
    }
    // Noted first: while the gateway is away, each booking asks once in a while, not once a round.
    sql::touch_payment(&mut connection, booking, state.locks.now()).await?;
    drop(connection);
    match asking::status(state, booking).await? {
        Some(payment) if !matches!(payment.status, PaymentStatus::Pending { .. }) => {
            effects::learn(state, booking, &payment.status, Some(&payment.gateway_ref), "reconciler").await
        }
        _ if row.machine.expires_at <= state.locks.now() => time_out(state, booking).await,
        _ => Ok(()),
    }
}

async fn time_out(state: &AppState, booking: Uuid) -> Result<(), EffectError> {
    let now = state.locks.now();
    let mut tx = state.pg.begin().await?;
    let row = sql::lock(&mut tx, booking).await?.ok_or(EffectError::NoBooking(booking))?;
    let cause = Cause { actor: "reconciler", reason: "Its time was over." };
    effects::move_by_gateway(state, &mut tx, &row, Event::TimedOut, cause, now).await?;
    tx.commit().await?;
    outbox::wake(state);
    Ok(())
}
