//! Where the money comes from: the [`Gateway`] trait, the simulator behind it, and signed webhooks.
//!
//! This capability talks to gateways and decides nothing: what a payment means for a booking is the
//! booking machine's business. It keeps no table either; `payments` rows are written with the
//! booking's step, in the same transaction.

pub mod gateway;
pub mod http;
pub mod signature;
pub mod simulator;

use domain::money::Money;
use domain::time::Timestamp;
use uuid::Uuid;

pub use gateway::{Charge, ChargeAnswer, Gateway, GatewayError, GatewayPayment, PaymentStatus, VoidAnswer, refund_key};
pub use http::routes;
pub use simulator::SimulatorGateway;

/// Something a gateway told us by webhook, its signature already verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentNews {
    /// Which gateway, as [`Gateway::name`] spells it.
    pub gateway: &'static str,
    /// The gateway's own id of the event: applied once, however often it is delivered.
    pub event_id: String,
    /// The booking it is about.
    pub booking: Uuid,
    /// What happened.
    pub kind: NewsKind,
    /// When, on the gateway's clock. For the log; nothing is decided by it.
    pub occurred: Timestamp,
}

/// What happened to a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewsKind {
    /// The gateway has the money.
    Succeeded {
        /// How much it took.
        amount: Money,
    },
    /// Declined, or the payer gave up.
    Failed,
    /// It will never be charged.
    Voided,
    /// The refund went through.
    RefundSettled,
}

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
}
