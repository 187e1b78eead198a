//! Every way a booking can go, played from outside.

use reqwest::StatusCode;

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
    /// The same, but the money comes at the moment the payment is to be called off.
    LateMoney,
    /// Paid, but another has the seats by then.
    SeatsLost,
    /// Paid, but the show has begun by then.
    ShowStarted,
}

impl Saga {
    pub const ALL: [Self; 9] = [
        Self::PaidAtOnce,
        Self::Declined,
        Self::PendingThenPaid,
        Self::PendingThenFailed,
        Self::ExpiredUnpaid,
        Self::ExpiredWhilePending,
        Self::LateMoney,
        Self::SeatsLost,
        Self::ShowStarted,
    ];

    /// How the booking stands in the end, whatever goes wrong in between: its state and its money.
    pub const fn ends(self) -> (&'static str, &'static str) {
        match self {
            Self::PaidAtOnce | Self::PendingThenPaid => ("CONFIRMED", "PAID"),
            Self::Declined | Self::PendingThenFailed => ("CANCELLED", "FAILED"),
            Self::ExpiredUnpaid => ("EXPIRED", "NONE"),
            Self::ExpiredWhilePending => ("EXPIRED", "FAILED"),
            Self::LateMoney => ("EXPIRED", "MOVED"),
            Self::SeatsLost | Self::ShowStarted => ("CANCELLED", "REFUNDED"),
        }
    }

    /// Plays it, from a booking that was just made.
    pub async fn play(self, stage: &Stage, order: &Order) -> Result<(), String> {
        match self {
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
            Self::LateMoney => {
                open_page(stage, order).await?;
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

/// Waits until the gateway's page is open, and everything about it is noted.
async fn open_page(stage: &Stage, order: &Order) -> Result<(), String> {
    pay(order, None).await?;
    loop {
        let booking = order.buyer.booking(order.booking).await?;
        if !booking["pay_url"].is_null() && stage.left_to_do(order).await == 0 {
            return Ok(());
        }
        stage.look_again().await;
    }
}
