//! What we ask of any payment gateway, and nothing about how one is reached.
//!
//! Every call is safe to repeat: the gateway's idempotency keys follow from the booking
//! ([`pay_key`], [`refund_key`]), so a crash between asking and noting the answer costs a second
//! call and never a second charge.

use async_trait::async_trait;
use domain::money::Money;
use domain::time::Timestamp;
use uuid::Uuid;

/// A payment gateway.
#[async_trait]
pub trait Gateway: Send + Sync {
    /// Its name in rows, logs and webhook addresses, for example `simulator`.
    fn name(&self) -> &'static str;

    /// Asks for the money of a booking. Repeating it answers how that one payment stands.
    ///
    /// # Errors
    /// [`GatewayError::Unreachable`]: the charge may have happened, ask [`Gateway::status`] later.
    /// [`GatewayError::Refused`]: there is no such payment and will be none.
    async fn charge(&self, charge: &Charge) -> Result<ChargeAnswer, GatewayError>;

    /// How the payment of a booking stands; `None` when the gateway never heard of it.
    ///
    /// # Errors
    /// [`GatewayError`], as above.
    async fn status(&self, booking: Uuid) -> Result<Option<GatewayPayment>, GatewayError>;

    /// Tells the gateway never to charge this booking.
    ///
    /// # Errors
    /// [`GatewayError`], as above; "charged already" is an answer, not an error.
    async fn void(&self, booking: Uuid) -> Result<VoidAnswer, GatewayError>;

    /// Sends money of a booking back under a [`refund_key`]. One refund a key: repeating it with the same
    /// amount is harmless, with another amount it is refused.
    ///
    /// # Errors
    /// [`GatewayError`]; refused when there is no charge, or all refunds together would be above it.
    async fn refund(&self, booking: Uuid, amount: Money, key: &str) -> Result<(), GatewayError>;
}

/// Key of the one payment of a booking.
#[must_use]
pub fn pay_key(booking: Uuid) -> String {
    format!("pay:{booking}")
}

/// Key of a refund of a booking: number 0 is of all that was left, from 1 of single seats.
#[must_use]
pub fn refund_key(booking: Uuid, number: u32) -> String {
    if number == 0 { format!("refund:{booking}") } else { format!("refund:{booking}:{number}") }
}

/// Everything a gateway needs to ask a payer for money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The booking; the gateway sends it back as the payment's reference.
    pub booking: Uuid,
    /// The booking's name for people, for example `K7QM-2XPA`.
    pub reference: String,
    /// How much.
    pub amount: Money,
    /// What for, one line, shown to the payer.
    pub description: String,
    /// Where the gateway's page sends the payer afterwards, whatever happened there.
    pub return_url: String,
    /// A token that stands for a card: then there is no page, the charge is decided at once.
    pub token: Option<String>,
    /// The gateway's page takes no payment from this instant on.
    pub expires_at: Timestamp,
}

/// The answer to a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeAnswer {
    /// The gateway's own id of the payment.
    pub gateway_ref: String,
    /// How it stands.
    pub status: PaymentStatus,
}

/// How a payment stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentStatus {
    /// Not decided: the payer has not paid yet, or the bank is thinking.
    Pending {
        /// The gateway's page, while it waits for the payer.
        pay_url: Option<String>,
    },
    /// The gateway has the money.
    Succeeded {
        /// How much it took.
        amount: Money,
    },
    /// It did not and will not get the money.
    Failed {
        /// The gateway's reason, a stable word, for example `card_declined`.
        why: String,
    },
    /// Voided before it was charged; it never will be.
    Voided,
}

/// A payment as the gateway knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayPayment {
    /// The gateway's own id.
    pub gateway_ref: String,
    /// How it stands.
    pub status: PaymentStatus,
    /// How much of it went back.
    pub refunded: Money,
}

/// The answer to a void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoidAnswer {
    /// Acknowledged: it will never be charged (also when it had failed already).
    Voided,
    /// Too late, it has the money.
    AlreadyCharged(Money),
    /// The gateway has no such payment. A charge still on its way may yet create it.
    Unknown,
}

/// Why a call to a gateway has no answer we can act on.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// No answer, or none that can be read: we do not know what happened.
    #[error("the gateway gave no usable answer; what happened there is unknown")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A definite no.
    #[error("the gateway refused with {status} {code}: {message}")]
    Refused {
        /// HTTP status, 4xx.
        status: u16,
        /// The gateway's code, for example `amount_invalid`.
        code: String,
        /// The gateway's words, for the log.
        message: String,
    },
}
