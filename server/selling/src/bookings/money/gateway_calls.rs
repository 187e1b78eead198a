//! Calls the gateway of a booking, and switches a booking to the second gateway (docs/decisions/0008).
//!
//! The rule: a booking leaves a gateway only when no charge request can have reached that gateway. Every charge
//! request is counted in Postgres before it is sent. A request that was never sent, and is the only one counted,
//! switches the booking. The switch is committed, with an effect that voids the payment at the old
//! gateway, before the other gateway is called. An unknown outcome never switches a booking.

use domain::booking::BookingState;
use domain::money::Money;
use uuid::Uuid;

use super::payment_rows::{self, Route};
use super::pending_refunds::{self, FailedRefund};
use super::unknown_voids;
use crate::bookings::effects::EffectError;
use crate::bookings::moves::{self, Cause};
use crate::bookings::sql::{self, BookingRow};
use crate::{SellingState, outbox};
use payments::{
    Charge, ChargeAnswer, GatewayError, GatewayPayment, GuardedGateway, PaymentIds, RefundAnswer, VoidAnswer,
    refund_key,
};
use platform::database::begin_with_lock_timeout;

/// Charges a booking at its gateway, or at the other gateway if no request reached the first.
/// [`payment_rows::count_charge_request`] has counted the request.
pub(crate) async fn charge(state: &SellingState, charge: Charge, route: Route) -> Result<ChargeAnswer, EffectError> {
    let mut route = route;
    // The loop ends, because a booking never returns to a gateway that it left.
    loop {
        let gateway = gateway_named(state, &route.gateway)?;
        let token = state.gateways.token_for(gateway.name(), route.payment_token.clone());
        let answer = gateway.charge(&Charge { token, ..charge.clone() }).await;
        let Err(GatewayError::NotSent(cause)) = answer else { return answer.map_err(Into::into) };
        match switch(state, charge.booking, gateway.name(), &cause.to_string()).await? {
            Some(other) => route = other,
            None => {
                let mut connection = state.pg.acquire().await?;
                payment_rows::uncount_charge_request(&mut connection, charge.booking, gateway.name()).await?;
                return Err(GatewayError::NotSent(cause).into());
            }
        }
    }
}

async fn switch(
    state: &SellingState,
    booking: Uuid,
    from: &'static str,
    why: &str,
) -> Result<Option<Route>, EffectError> {
    let now = state.clock.now();
    // Waits for the lock: a charge that is counted, and neither moved nor taken back, never moves to another gateway.
    let mut tx = state.pg.begin().await?;
    let waits = |row: &BookingRow| row.machine.state == BookingState::PaymentPending && row.machine.expires_at > now;
    let Some(row) = sql::lock(&mut tx, booking).await?.filter(waits) else { return Ok(None) };
    let mut left = payment_rows::gateways_left(&mut tx, booking).await?;
    left.push(from.to_owned());
    let Some(to) = state.gateways.first_choice_except(&left) else { return Ok(None) };
    let moved = payment_rows::switch(&mut tx, booking, (from, to), why, now).await?;
    if moved.is_some() {
        // An event in the history, and a new version: a reader with the old version reads the booking again.
        let reason = format!("{from} did not take the payment; {to} is asked.");
        moves::note(&mut tx, &row, "gateway_changed", Cause::of("system", &reason), now).await?;
        tx.commit().await?;
        outbox::wake(state);
        tracing::warn!(%booking, from, to, why, "booking {booking} is charged at another gateway");
    }
    Ok(moved)
}

pub(crate) async fn status(state: &SellingState, booking: Uuid) -> Result<Option<GatewayPayment>, EffectError> {
    let Some(route) = route(state, booking).await? else { return Ok(None) };
    Ok(gateway_named(state, &route.gateway)?.status(&route.known(booking)).await?)
}

/// Voids the payment of a booking at its gateway. An unknown payment is voided again later: a charge may still be in
/// transit.
pub(crate) async fn void(state: &SellingState, booking: Uuid) -> Result<VoidAnswer, EffectError> {
    let Some(route) = route(state, booking).await? else { return Ok(VoidAnswer::Unknown) };
    let answer = gateway_named(state, &route.gateway)?.void(&route.known(booking)).await?;
    if answer == VoidAnswer::Unknown {
        unknown_voids::schedule(state, booking, &route.gateway).await?;
    }
    Ok(answer)
}

/// Voids the payment at the gateway of that name, which may be one that the booking left. The flag is true if the
/// booking is charged there now.
pub(crate) async fn void_at(
    state: &SellingState,
    booking: Uuid,
    name: &str,
) -> Result<(VoidAnswer, bool), EffectError> {
    let current = route(state, booking).await?.filter(|route| route.gateway == name);
    let is_current = current.is_some();
    let known = current.map_or(PaymentIds { booking, gateway_ref: None }, |route| route.known(booking));
    Ok((gateway_named(state, name)?.void(&known).await?, is_current))
}

/// Sends a refund of a booking through the gateway that charged it, maybe for another booking. Returns the gateway
/// and its answer.
pub(crate) async fn refund(
    state: &SellingState,
    (booking, number): (Uuid, u32),
    charged: Uuid,
    amount: Money,
) -> Result<(String, RefundAnswer), EffectError> {
    let route = route(state, charged).await?.ok_or(EffectError::NoBooking(charged))?;
    let lost =
        pending_refunds::failed_attempts(&mut *state.pg.acquire().await?, &route.gateway, booking, number).await?;
    let gateway = gateway_named(state, &route.gateway)?;
    let answer = gateway.refund(&route.known(charged), amount, &refund_key(booking, number), &lost).await?;
    Ok((route.gateway, answer))
}

/// Voids or refunds a booking's payments at all gateways that it left.
pub(crate) async fn void_left(state: &SellingState, booking: Uuid) -> Result<(), EffectError> {
    let mut connection = state.pg.acquire().await?;
    let unsettled = payment_rows::unsettled_gateways(&mut connection, booking).await?;
    drop(connection);
    for name in unsettled {
        let gateway = gateway_named(state, &name)?;
        let known = PaymentIds { booking, gateway_ref: None };
        let settled_as = match gateway.void(&known).await? {
            VoidAnswer::Voided => "voided",
            VoidAnswer::Unknown => {
                unknown_voids::schedule(state, booking, &name).await?;
                "never_asked"
            }
            VoidAnswer::AlreadyCharged(amount) => {
                tracing::error!(%booking, gateway = name, "a gateway that booking {booking} had left has charged it; it is refunded");
                let lost = pending_refunds::failed_attempts(&mut *state.pg.acquire().await?, &name, booking, 0).await?;
                // A pending refund that fails is reported by webhook, and parked then.
                match gateway.refund(&known, amount, &refund_key(booking, 0), &lost).await? {
                    RefundAnswer::Settled | RefundAnswer::Pending => "refunded",
                    RefundAnswer::Failed { refund, why } => {
                        let lost = FailedRefund { gateway: &name, refund: &refund, number: 0, why: &why };
                        pending_refunds::record_failure_at_left(state, booking, &lost).await?;
                        continue;
                    }
                }
            }
        };
        let mut tx = begin_with_lock_timeout(&state.pg).await?;
        payment_rows::settle_left(&mut tx, booking, &name, settled_as, state.clock.now()).await?;
        tx.commit().await?;
    }
    Ok(())
}

async fn route(state: &SellingState, booking: Uuid) -> Result<Option<Route>, EffectError> {
    let mut connection = state.pg.acquire().await?;
    Ok(payment_rows::route(&mut connection, booking).await?)
}

fn gateway_named<'a>(state: &'a SellingState, name: &str) -> Result<&'a GuardedGateway, EffectError> {
    let missing = || GatewayError::Unreachable(format!("PAYMENT_GATEWAYS does not name {name} any more").into());
    state.gateways.find(name).ok_or_else(|| missing().into())
}
