//! Payments: the [`Gateway`] trait, its [`ADAPTERS`], the choice between them ([`Gateways`]), and
//! signed webhooks.
//!
//! The crate calls gateways and decides nothing: the booking machine interprets payments, and `bookings` records the
//! gateway of each booking. It has no tables and no Redis keys, and may use `platform`, `http` and `domain`.
//!
//! A new gateway is a module with a [`Gateway`], its settings and an [`Adapter`], which [`ADAPTERS`] lists; it passes
//! the tests in `contract` (recipe in CONTRIBUTING.md).

mod calls;
#[cfg(test)]
mod contract;
pub mod gateway;
mod gateways;
mod settings;
pub mod signature;
mod simulator;
mod stripe;

use domain::money::Money;
use domain::time::Timestamp;
use strum::IntoStaticStr;
use uuid::Uuid;

pub use calls::CallDeadlines;
pub use gateway::{
    Charge, ChargeAnswer, Gateway, GatewayError, GatewayPayment, LedgerEntry, LedgerPage, PaymentIds, PaymentStatus,
    RefundAnswer, VoidAnswer, WebhookRefused, Window, refund_key,
};
pub use gateways::{ADAPTERS, Adapter, Gateways, GuardedGateway, probe_forever, secrets, wrong_settings};
pub use settings::PaymentSettings;

/// A gateway's webhook event with a verified signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentEvent {
    /// Which gateway, as [`Gateway::name`] spells it.
    pub gateway: &'static str,
    /// The gateway's own id of the event: applied once, however often it is delivered.
    pub event_id: String,
    /// The booking it is about.
    pub booking: Uuid,
    /// The gateway's own id of the payment.
    pub gateway_ref: Option<String>,
    /// The event.
    pub kind: PaymentEventKind,
    /// When, on the gateway's clock. For the log; nothing is decided by it.
    pub occurred: Timestamp,
}

/// An event about a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentEventKind {
    /// The gateway has the money.
    Succeeded {
        /// The amount charged.
        amount: Money,
    },
    /// Declined, or the payer gave up.
    Failed {
        /// The gateway's reason code, if it gives one.
        why: Option<String>,
    },
    /// It will never be charged.
    Voided,
    /// A refund went through.
    RefundSettled {
        /// The number of the refund within the booking, if the gateway gives it.
        number: Option<u32>,
    },
    /// A refund did not reach the payer, maybe days after it had been sent: the gateway has the money again.
    RefundFailed {
        /// The gateway's own id of the refund.
        refund: String,
        /// The number of the refund within the booking, if the gateway gives it.
        number: Option<u32>,
        /// The gateway's reason, a stable word.
        why: String,
    },
}

/// The reason of a payment that its payer called off: no card was declined.
pub const CANCELLED_BY_PAYER: &str = "cancelled_by_payer";
/// Reasons that mean that the bank declined the card. Other failures may have other causes. Gateways translate theirs,
/// so that the buyer's page says so.
pub const DECLINED_BY_BANK: [&str; 4] = ["card_declined", "bank_declined", "expired_card", "incorrect_cvc"];

/// The outcome of applying an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, utoipa::ToSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[schema(as = NewsOutcome)]
#[strum(serialize_all = "snake_case")]
pub enum PaymentEventOutcome {
    /// The booking moved.
    Applied,
    /// This event was applied before.
    Duplicate,
    /// The booking is unknown.
    #[strum(serialize = "unknown_payment")]
    Unknown,
    /// Nothing to do: the booking is past it or in another region, or the kind of event does not matter to us.
    Ignored,
    /// Money at a gateway that the booking had left for another: it goes back from there.
    SentBack,
}
