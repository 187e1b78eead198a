//! Every way a booking can go, played from outside.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::stage::{Order, Stage};

/// A way a booking can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Saga {
    PaidAtOnce,
    Declined,
    PendingThenPaid,
    PendingThenFailed,
    /// Held, checked out, and nobody pays.
    ExpiredUnpaid,
    /// The gateway's page is open, and nobody pays there.
    ExpiredWhilePending,
    /// The same, but the money comes at the moment the payment is to be called off: it pays for another
    /// booking of the same seats.
    LateMoney,
    /// The same, but the buyer wants it back in that case.
    LateMoneyReturned,
    /// Paid, but another has the seats by then.
    SeatsLost,
    /// Paid, but the show has begun by then.
    ShowStarted,
    BuyerCancels,
    /// One seat of two.
    BuyerCancelsPart,
    /// While the gateway's page is open.
    BuyerCancelsUnpaid,
    StaffCancel,
    /// Checked out and paid in one request, with a good card…
    InOneRequest,
    /// …with one that is declined…
    InOneRequestDeclined,
    /// …with one whose bank takes its time…
    InOneRequestPending,
    /// …or on the gateway's page, so late that the buyer wants the money back.
    InOneRequestTooLate,
    /// The first gateway turns the charge away, and the second one takes it.
    AtSecondGateway,
    /// The same, but the first takes the money too, when it is told not to.
    AtBothGateways,
}

impl Saga {
    /// Where there is one gateway.
    pub const WITH_ONE_GATEWAY: [Self; 18] = [
        Self::PaidAtOnce,
        Self::Declined,
        Self::PendingThenPaid,
        Self::PendingThenFailed,
        Self::ExpiredUnpaid,
        Self::ExpiredWhilePending,
        Self::LateMoney,
        Self::SeatsLost,
        Self::ShowStarted,
        Self::LateMoneyReturned,
        Self::BuyerCancels,
        Self::BuyerCancelsPart,
        Self::BuyerCancelsUnpaid,
        Self::StaffCancel,
        Self::InOneRequest,
        Self::InOneRequestDeclined,
        Self::InOneRequestPending,
        Self::InOneRequestTooLate,
    ];

    /// Where there is a second one.
    pub const WITH_TWO_GATEWAYS: [Self; 2] = [Self::AtSecondGateway, Self::AtBothGateways];

    /// How the booking stands in the end, whatever goes wrong in between: its state and its money.
    pub const fn ends(self) -> (&'static str, &'static str) {
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

    /// What the buyer says at checkout about money that comes too late.
    pub const fn if_late(self) -> Option<&'static str> {
        match self {
            Self::LateMoneyReturned | Self::InOneRequestTooLate => Some("refund"),
            _ => None,
        }
    }

    /// Where it is checked out and paid in one request: with which token, if any.
    pub const fn in_one_request(self) -> Option<Option<&'static str>> {
        match self {
            Self::InOneRequest => Some(Some("tok_paid")),
            Self::InOneRequestDeclined => Some(Some("tok_declined")),
            Self::InOneRequestPending => Some(Some("tok_pending_paid")),
            Self::InOneRequestTooLate => Some(None),
            _ => None,
        }
    }

    /// Plays it, from a booking that was just made.
    pub async fn play(self, stage: &Stage, order: &Order) -> Result<(), String> {
        match self {
            Self::InOneRequest | Self::InOneRequestDeclined | Self::InOneRequestPending => Ok(()),
            Self::PaidAtOnce => pay(order, Some("tok_paid")).await,
            Self::Declined => pay(order, Some("tok_declined")).await,
            Self::PendingThenPaid => pay(order, Some("tok_pending_paid")).await,
            Self::PendingThenFailed => pay(order, Some("tok_pending_failed")).await,
            Self::ExpiredUnpaid => {
                stage.time_is_over(order).await;
                Ok(())
            }
            Self::ExpiredWhilePending => {
                open_page(stage, order).await?;
                stage.time_is_over(order).await;
                Ok(())
            }
            Self::LateMoney | Self::LateMoneyReturned | Self::InOneRequestTooLate => {
                match self.in_one_request() {
                    None => open_page(stage, order).await?,
                    Some(_) => page_is_open(stage, order).await?,
                }
                stage.wires.pay_when_voided(order.booking);
                stage.time_is_over(order).await;
                Ok(())
            }
            Self::SeatsLost => {
                open_page(stage, order).await?;
                stage.lose_claims(order).await;
                stage.till.press_pay(order.booking);
                Ok(())
            }
            Self::ShowStarted => {
                open_page(stage, order).await?;
                stage.the_show_begins().await;
                stage.till.press_pay(order.booking);
                Ok(())
            }
            Self::BuyerCancels => {
                is_confirmed(stage, order).await?;
                cancel(order, &json!({})).await
            }
            Self::BuyerCancelsPart => {
                is_confirmed(stage, order).await?;
                cancel(order, &json!({ "seats": [order.seat] })).await
            }
            Self::BuyerCancelsUnpaid => {
                open_page(stage, order).await?;
                cancel(order, &json!({})).await
            }
            Self::StaffCancel => {
                is_confirmed(stage, order).await?;
                let words = ["cancel-booking", &order.reference, "--reason", "The projector is broken."];
                let (well, said) = stage.world.command(&words).await;
                if well { Ok(()) } else { Err(said) }
            }
            Self::AtSecondGateway | Self::AtBothGateways => {
                stage.till.turn_away(order.booking);
                if self == Self::AtBothGateways {
                    stage.wires.pay_when_voided(order.booking);
                }
                pay(order, Some("pm_paid")).await
            }
        }
    }
}

async fn pay(order: &Order, token: Option<&str>) -> Result<(), String> {
    match order.buyer.pay(order.booking, token).await? {
        // Over already, if the first try died with its server and the next has finished it: then its page tells.
        (StatusCode::OK | StatusCode::GONE, _) => Ok(()),
        (status, answer) => Err(format!("paying was answered {status} {answer}")),
    }
}

/// Pays, and waits until it is a ticket and nothing is left to do.
async fn is_confirmed(stage: &Stage, order: &Order) -> Result<(), String> {
    pay(order, Some("tok_paid")).await?;
    stage.stands(order, ("CONFIRMED", "PAID")).await
}

async fn cancel(order: &Order, wish: &Value) -> Result<(), String> {
    let path = format!("/api/v1/bookings/{}/cancel", order.booking);
    match order.buyer.ask(Method::POST, &path, wish).await? {
        // In the wrong state, if the first try died with its server after it was done.
        (StatusCode::OK | StatusCode::CONFLICT | StatusCode::GONE, _) => Ok(()),
        (status, answer) => Err(format!("cancelling was answered {status} {answer}")),
    }
}

/// Pays without a token, and waits until the gateway's page is open and everything about it is noted.
async fn open_page(stage: &Stage, order: &Order) -> Result<(), String> {
    pay(order, None).await?;
    page_is_open(stage, order).await
}

async fn page_is_open(stage: &Stage, order: &Order) -> Result<(), String> {
    loop {
        let booking = order.buyer.booking(order.booking).await?;
        if !booking["pay_url"].is_null() && stage.left_to_do(order).await == 0 {
            return Ok(());
        }
        stage.look_again().await;
    }
}
