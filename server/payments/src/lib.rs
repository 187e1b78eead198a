//! Where the money comes from: the [`Gateway`] trait, the gateways behind it ([`simulator`], [`stripe`]),
//! which of them is asked ([`Gateways`]), and signed webhooks.
//!
//! This capability talks to gateways and decides nothing: what a payment means for a booking is the
//! booking machine's business, and where a booking is charged is written down by `bookings`. It keeps no
//! table.

mod calls;
#[cfg(test)]
mod contract;
pub mod gateway;
mod gateways;
mod settings;
pub mod signature;
pub mod simulator;
pub mod stripe;

use domain::money::Money;
use domain::time::Timestamp;
use uuid::Uuid;

pub use calls::Patience;
pub use gateway::{
    Charge, ChargeAnswer, Gateway, GatewayError, GatewayPayment, Known, LedgerEntry, LedgerPage, PaymentStatus,
    RefundAnswer, VoidAnswer, WebhookRefused, Window, refund_key,
};
pub use gateways::{Gateways, GuardedGateway, probe_forever, wrong_settings};
pub use settings::PaymentSettings;
pub use simulator::SimulatorGateway;
pub use stripe::StripeGateway;

/// Something a gateway told us by webhook, its signature already verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentNews {
    /// Which gateway, as [`Gateway::name`] spells it.
    pub gateway: &'static str,
    /// The gateway's own id of the event: applied once, however often it is delivered.
    pub event_id: String,
    /// The booking it is about.
    pub booking: Uuid,
    /// The gateway's own id of the payment.
    pub gateway_ref: Option<String>,
    /// What happened.
    pub kind: NewsKind,
    /// When, on the gateway's clock. For the log; nothing is decided by it.
    pub occurred: Timestamp,
}

/// What happened to a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewsKind {
    /// The gateway has the money.
    Succeeded {
        /// How much it took.
        amount: Money,
    },
    /// Declined, or the payer gave up.
    Failed {
        /// The gateway's reason, a stable word, where it says one.
        why: Option<String>,
    },
    /// It will never be charged.
    Voided,
    /// A refund went through.
    RefundSettled {
        /// Which of the booking, where the gateway says so.
        number: Option<u32>,
    },
    /// A refund did not reach the payer, maybe days after it had been sent: the gateway has the money again.
    RefundFailed {
        /// The gateway's own id of the refund.
        refund: String,
        /// Which of the booking, where the gateway says so.
        number: Option<u32>,
        /// The gateway's reason, a stable word.
        why: String,
    },
}

/// The reason of a payment that its payer called off: no card was declined.
pub const CANCELLED_BY_PAYER: &str = "cancelled_by_payer";
/// The reasons that say that the bank did not let the card pay. What is not among them may be anybody's doing.
pub const DECLINED_BY_BANK: [&str; 4] = ["card_declined", "bank_declined", "expired_card", "incorrect_cvc"];

/// What became of a piece of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NewsOutcome {
    /// The booking moved.
    Applied,
    /// This event was applied before.
    Duplicate,
    /// No booking of ours.
    Unknown,
    /// Nothing to do: the booking is past it, or the kind of event does not matter to us.
    Ignored,
    /// Money at a gateway that the booking had left for another: it goes back from there.
    SentBack,
}

impl NewsOutcome {
    /// As `webhook_events.outcome` keeps it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Duplicate => "duplicate",
            Self::Unknown => "unknown_payment",
            Self::Ignored => "ignored",
            Self::SentBack => "sent_back",
        }
    }
}
