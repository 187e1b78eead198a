//! Every course of a booking, driven by HTTP requests.

use strum::VariantArray;

use super::saga_runner::{SagaOrder, SagaRunner};
use crate::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub enum Saga {
    PaidAtOnce,
    Declined,
    PendingThenPaid,
    PendingThenFailed,
    /// Held, checked out, and not paid.
    ExpiredUnpaid,
    /// The gateway's page is open, and the payer does nothing.
    ExpiredWhilePending,
    /// The same, but the payer pays while the payment is being voided: the money pays for another booking of the same
    /// seats.
    LateMoney,
    /// The same, but the buyer chose a refund for late payments.
    LateMoneyReturned,
    /// Paid, but the seats are sold to another booking by then.
    SeatsLost,
    /// Paid, but the show has begun by then.
    ShowStarted,
    BuyerCancels,
    /// One seat of two.
    BuyerCancelsPart,
    /// While the gateway's page is open.
    BuyerCancelsUnpaid,
    StaffCancel,
    /// Checked out and paid in one request, with a valid card…
    InOneRequest,
    /// …with a declined card…
    InOneRequestDeclined,
    /// …with a card whose bank answers late…
    InOneRequestPending,
    /// …or on the gateway's page, after the deadline, with a refund chosen for late payments.
    InOneRequestTooLate,
    /// The first gateway rejects the charge, and the second one takes it.
    AtSecondGateway,
    /// The same, but the first gateway also charges, after it was voided.
    AtBothGateways,
}

impl Saga {
    pub const WITH_TWO_GATEWAYS: [Self; 2] = [Self::AtSecondGateway, Self::AtBothGateways];

    /// Final state of the booking and of its money, whatever fault occurs.
    pub const fn final_state(self) -> (&'static str, &'static str) {
        match self {
            Self::PaidAtOnce
            | Self::PendingThenPaid
            | Self::BuyerCancelsPart
            | Self::InOneRequest
            | Self::InOneRequestPending
            | Self::AtSecondGateway
            | Self::AtBothGateways => ("CONFIRMED", "PAID"),
            Self::Declined | Self::PendingThenFailed | Self::BuyerCancelsUnpaid | Self::InOneRequestDeclined => {
                ("CANCELLED", "FAILED")
            }
            Self::ExpiredUnpaid => ("EXPIRED", "NONE"),
            Self::ExpiredWhilePending => ("EXPIRED", "FAILED"),
            Self::LateMoney => ("EXPIRED", "MOVED"),
            Self::LateMoneyReturned | Self::InOneRequestTooLate => ("EXPIRED", "REFUNDED"),
            Self::SeatsLost | Self::ShowStarted | Self::BuyerCancels | Self::StaffCancel => ("CANCELLED", "REFUNDED"),
        }
    }

    pub const fn if_late(self) -> Option<&'static str> {
        match self {
            Self::LateMoneyReturned | Self::InOneRequestTooLate => Some("refund"),
            _ => None,
        }
    }

    /// Token of a combined request; `None` for two requests.
    pub const fn in_one_request(self) -> Option<Option<&'static str>> {
        match self {
            Self::InOneRequest => Some(Some("tok_paid")),
            Self::InOneRequestDeclined => Some(Some("tok_declined")),
            Self::InOneRequestPending => Some(Some("tok_pending_paid")),
            Self::InOneRequestTooLate => Some(None),
            _ => None,
        }
    }

    pub async fn run(self, runner: &SagaRunner, order: &SagaOrder) -> Result<(), String> {
        match self {
            Self::InOneRequest | Self::InOneRequestDeclined | Self::InOneRequestPending => Ok(()),
            Self::PaidAtOnce => pay(order, Some("tok_paid")).await,
            Self::Declined => pay(order, Some("tok_declined")).await,
            Self::PendingThenPaid => pay(order, Some("tok_pending_paid")).await,
            Self::PendingThenFailed => pay(order, Some("tok_pending_failed")).await,
            Self::ExpiredUnpaid => {
                runner.expire_booking(order).await;
                Ok(())
            }
            Self::ExpiredWhilePending => {
                open_page(runner, order).await?;
                runner.expire_booking(order).await;
                Ok(())
            }
            Self::LateMoney | Self::LateMoneyReturned | Self::InOneRequestTooLate => {
                match self.in_one_request() {
                    None => open_page(runner, order).await?,
                    Some(_) => wait_until_page_is_open(runner, order).await?,
                }
                runner.injector.pay_when_voided(order.booking);
                runner.expire_booking(order).await;
                Ok(())
            }
            Self::SeatsLost => {
                open_page(runner, order).await?;
                runner.lose_claims(order).await;
                runner.gateway.press_pay(order.booking);
                Ok(())
            }
            Self::ShowStarted => {
                open_page(runner, order).await?;
                runner.begin_show().await;
                runner.gateway.press_pay(order.booking);
                Ok(())
            }
            Self::BuyerCancels => {
                pay_and_wait_until_confirmed(runner, order).await?;
                cancel(order, &json!({})).await
            }
            Self::BuyerCancelsPart => {
                pay_and_wait_until_confirmed(runner, order).await?;
                cancel(order, &json!({ "seats": [order.seat] })).await
            }
            Self::BuyerCancelsUnpaid => {
                open_page(runner, order).await?;
                cancel(order, &json!({})).await
            }
            Self::StaffCancel => {
                pay_and_wait_until_confirmed(runner, order).await?;
                let words = ["cancel-booking", &order.reference, "--reason", "The projector is broken."];
                let (well, said) = runner.world.command(&words).await;
                if well { Ok(()) } else { Err(said) }
            }
            Self::AtSecondGateway | Self::AtBothGateways => {
                runner.gateway.reject_charge(order.booking);
                if self == Self::AtBothGateways {
                    runner.injector.pay_when_voided(order.booking);
                }
                pay(order, Some("pm_paid")).await
            }
        }
    }
}

async fn pay(order: &SagaOrder, token: Option<&str>) -> Result<(), String> {
    match order.buyer.pay(order.booking, token).await? {
        // Finished already, if the first attempt died with its server and the next server finished it.
        (StatusCode::OK | StatusCode::GONE, _) => Ok(()),
        (status, answer) => Err(format!("paying was answered {status} {answer}")),
    }
}

async fn pay_and_wait_until_confirmed(runner: &SagaRunner, order: &SagaOrder) -> Result<(), String> {
    pay(order, Some("tok_paid")).await?;
    runner.wait_for_state(order, ("CONFIRMED", "PAID")).await
}

async fn cancel(order: &SagaOrder, request_body: &Value) -> Result<(), String> {
    let path = format!("/api/v1/bookings/{}/cancel", order.booking);
    match order.buyer.send_with_retries(Method::POST, &path, request_body).await? {
        // A conflict, if the first attempt died with its server after the cancellation.
        (StatusCode::OK | StatusCode::CONFLICT | StatusCode::GONE, _) => Ok(()),
        (status, answer) => Err(format!("cancelling was answered {status} {answer}")),
    }
}

/// Pays without a token, and waits until the gateway's page is open and recorded.
async fn open_page(runner: &SagaRunner, order: &SagaOrder) -> Result<(), String> {
    pay(order, None).await?;
    wait_until_page_is_open(runner, order).await
}

async fn wait_until_page_is_open(runner: &SagaRunner, order: &SagaOrder) -> Result<(), String> {
    loop {
        let booking = order.buyer.booking(order.booking).await?;
        if !booking["pay_url"].is_null() && runner.pending_effects(order).await == 0 {
            return Ok(());
        }
        runner.pause().await;
    }
}
