//! The interface of payment gateways, without transport.
//!
//! Every call is idempotent: the gateway's idempotency keys are derived from the booking ([`pay_key`], [`refund_key`]), so a
//! crash between the call and recording its answer costs a second call and never a second charge. Every gateway passes the
//! same tests (`contract`).

use async_trait::async_trait;
use axum::http::{HeaderMap, StatusCode};
use domain::money::Money;
use domain::time::Timestamp;
use reqwest::Url;
use uuid::Uuid;

use super::PaymentEvent;
use super::signature::SignatureError;

/// A payment gateway.
#[async_trait]
pub trait Gateway: Send + Sync {
    /// Its name in rows, logs and webhook addresses, for example `simulator`.
    fn name(&self) -> &'static str;

    /// True if a payment token looks like one of this gateway's. It is useless at another.
    fn takes_token(&self, token: &str) -> bool;

    /// The gateway's fingerprint of the card behind a token: the same for every token of that card, and no card number.
    /// `None` without a fingerprint: another kind of instrument, or an unknown token. The call charges nothing.
    ///
    /// # Errors
    /// [`GatewayError`], as below.
    async fn fingerprint(&self, token: &str) -> Result<Option<String>, GatewayError>;

    /// Charges a booking. A retry, also with other details, returns the status of that one payment: a retry that differs
    /// (the show was renamed meanwhile) does not affect the first.
    ///
    /// # Errors
    /// [`GatewayError::NotSent`]: nothing was charged, nor will be by this call.
    /// [`GatewayError::Unreachable`], [`GatewayError::Undecided`]: the charge may have happened; call
    /// [`Gateway::status`] later.
    /// [`GatewayError::Refused`]: there is no such payment and will be none.
    async fn charge(&self, charge: &Charge) -> Result<ChargeAnswer, GatewayError>;

    /// The status of a payment; `None` when the gateway has no such payment (yet).
    ///
    /// # Errors
    /// [`GatewayError`], as above.
    async fn status(&self, payment: &PaymentIds) -> Result<Option<GatewayPayment>, GatewayError>;

    /// Voids a booking's payment: the gateway must never charge it.
    ///
    /// # Errors
    /// [`GatewayError`], as above; "charged already" is an answer, not an error.
    async fn void(&self, payment: &PaymentIds) -> Result<VoidAnswer, GatewayError>;

    /// Refunds money of a booking, once per `key`: a retry with the same amount returns the status of that refund; with
    /// another amount it is refused. A failed refund is sent again only if all failed ones are in `lost`, the gateway's ids
    /// of refunds that a person has acknowledged.
    ///
    /// # Errors
    /// [`GatewayError`]; refused when there is no charge, or the amount is above what is left of it.
    async fn refund(
        &self,
        payment: &PaymentIds,
        amount: Money,
        key: &str,
        lost: &[String],
    ) -> Result<RefundAnswer, GatewayError>;

    /// A page of the gateway's ledger: payments with a charge or refund in the window, with their current status. A payment
    /// that was charged and refunded in it may be listed twice. One that is charged or refunded while pages are read may be
    /// missing; it is in the window of that movement. `after` is `next` of the page before.
    ///
    /// # Errors
    /// [`GatewayError`], as above.
    async fn ledger(&self, window: Window, after: Option<&str>) -> Result<LedgerPage, GatewayError>;

    /// Reads a webhook of this gateway, received at `now`; `None` for one that is irrelevant.
    ///
    /// # Errors
    /// [`WebhookRefused`]. The body is parsed only after the signature over its raw bytes is verified.
    fn read_webhook(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<PaymentEvent>, WebhookRefused>;
}

/// Key of the one payment of a booking.
#[must_use]
pub fn pay_key(booking: Uuid) -> String {
    format!("pay:{booking}")
}

/// Key of a refund of a booking: number 0 refunds everything that is left, numbers from 1 refund single seats.
#[must_use]
pub fn refund_key(booking: Uuid, number: u32) -> String {
    if number == 0 { format!("refund:{booking}") } else { format!("refund:{booking}:{number}") }
}

/// The booking and the number of a refund, by its key.
#[must_use]
pub(super) fn refund_of_key(key: &str) -> Option<(Uuid, u32)> {
    let name = key.strip_prefix("refund:")?;
    let (booking, number) = name.split_once(':').unwrap_or((name, "0"));
    Some((Uuid::parse_str(booking).ok()?, number.parse().ok()?))
}

/// The address of these path segments below the gateway's base. A token is untrusted: its characters stay in one segment.
pub(super) fn path_of(base: &Url, parts: &[&str]) -> Result<Url, GatewayError> {
    let mut url = base.clone();
    let cannot = || GatewayError::unreachable("the gateway's address has no path");
    url.path_segments_mut().map_err(|()| cannot())?.pop_if_empty().extend(parts);
    Ok(url)
}

/// Turns the error of a missing object (404) into `None`.
pub(super) fn none_if_missing<T>(answer: Result<T, GatewayError>) -> Result<Option<T>, GatewayError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(GatewayError::Refused { status: 404, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The ids of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentIds {
    /// The booking.
    pub booking: Uuid,
    /// The gateway's own id, once it is known.
    pub gateway_ref: Option<String>,
}

/// Everything a gateway needs to ask a payer for money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The booking; the gateway sends it back as the payment's reference.
    pub booking: Uuid,
    /// The booking's name for people, for example `K7QM-2XPA`.
    pub reference: String,
    /// The amount.
    pub amount: Money,
    /// Description, one line, shown to the payer.
    pub description: String,
    /// Address to which the gateway's page returns the payer, whatever the outcome.
    pub return_url: String,
    /// Address to which it returns a payer who cancelled.
    pub cancel_url: String,
    /// A token of a card: then there is no page, the charge is decided at once.
    pub token: Option<String>,
    /// The gateway's page takes no payment from this instant on.
    pub expires_at: Timestamp,
}

/// The answer to a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeAnswer {
    /// The gateway's own id of the payment.
    pub gateway_ref: String,
    /// Its status.
    pub status: PaymentStatus,
}

/// The status of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentStatus {
    /// Not decided: the payer has not paid yet, or the bank is still processing.
    Pending {
        /// The gateway's page, while it waits for the payer.
        pay_url: Option<String>,
    },
    /// The gateway has the money.
    Succeeded {
        /// The amount charged.
        amount: Money,
    },
    /// The payment failed finally.
    Failed {
        /// The gateway's reason, a stable word, for example `card_declined`.
        why: String,
    },
    /// Voided before it was charged; it will never be charged.
    Voided,
}

/// A payment at the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayPayment {
    /// The gateway's own id.
    pub gateway_ref: String,
    /// Its status.
    pub status: PaymentStatus,
    /// The amount refunded.
    pub refunded: Money,
    /// Fingerprint of the instrument, see [`Gateway::fingerprint`]; `None` before the payment or without one.
    pub instrument: Option<String>,
}

/// Maximum number of payments on a page of a ledger.
pub const MAX_LEDGER_ENTRIES: usize = 100;

/// A span of time on the gateway's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first instant, a whole second.
    pub from: Timestamp,
    /// The first instant after it, a whole second.
    pub until: Timestamp,
}

/// A payment in a gateway's ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The gateway's own id of the payment.
    pub gateway_ref: String,
    /// The booking it was charged for; `None` for a payment of another system that shares the account.
    pub booking: Option<Uuid>,
    /// The sum that was charged.
    pub charged: Money,
    /// The sum of its refunds, settled or pending.
    pub refunded: Money,
}

/// A page of a gateway's ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerPage {
    /// Up to [`MAX_LEDGER_ENTRIES`].
    pub entries: Vec<LedgerEntry>,
    /// The beginning of the next page, for `after`; `None` on the last page.
    pub next: Option<String>,
}

/// The answer to a refund.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefundAnswer {
    /// Sent: the payer has the money, according to the gateway.
    Settled,
    /// Accepted, and not sent yet. It may fail.
    Pending,
    /// Could not be sent; the gateway has the money again.
    Failed {
        /// The gateway's own id of the refund.
        refund: String,
        /// Its reason.
        why: String,
    },
}

/// The answer to a void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoidAnswer {
    /// Acknowledged: it will never be charged (also when it had failed already).
    Voided,
    /// The payment was charged before the void.
    AlreadyCharged(Money),
    /// The gateway has no such payment. A charge in flight may still create it.
    Unknown,
}

/// The reason why a webhook is refused.
#[derive(Debug, thiserror::Error)]
pub enum WebhookRefused {
    /// The signature is missing, wrong or stale.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The signature is valid, but the body is not an event of the gateway.
    #[error("{0}")]
    Malformed(String),
    /// The payment has no booking id.
    #[error("the payment's reference is not a booking of ours")]
    UnknownPayment,
}

/// The failure of a call to a gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The gateway did not take the request: it was not sent (no listener, breaker open, all connections busy), or it was
    /// rejected unread (401, 403). Nothing happened.
    #[error("the gateway was not asked: {0}")]
    NotSent(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No answer, or none that can be read: the outcome is unknown.
    #[error("the gateway gave no usable answer; what happened there is unknown")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The gateway answered, and has not decided about the payment yet. A later call may have an outcome.
    #[error("the gateway has not decided yet: {0}")]
    Undecided(&'static str),
    /// The gateway refused the call finally.
    #[error("the gateway refused with {status} {code}: {message}")]
    Refused {
        /// HTTP status, 4xx.
        status: u16,
        /// The gateway's code, for example `amount_invalid`.
        code: String,
        /// The gateway's message, for the log.
        message: String,
    },
}

impl GatewayError {
    /// An error of a call without a usable answer.
    pub(super) fn unreachable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unreachable(cause.into())
    }

    /// An error of a call that was not sent.
    pub(super) fn not_sent(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::NotSent(cause.into())
    }

    /// A refusal that we decide without the gateway.
    pub(super) fn refused(code: &str, message: &str) -> Self {
        let (code, message) = (code.to_owned(), message.to_owned());
        Self::Refused { status: StatusCode::UNPROCESSABLE_ENTITY.as_u16(), code, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refund_is_known_by_its_key() {
        let booking = Uuid::from_u128(7);
        for number in [0, 1, 12] {
            assert_eq!(refund_of_key(&refund_key(booking, number)), Some((booking, number)));
        }
        for other in ["", "refund:", "refund:7", "refund:7:1", &pay_key(booking), &format!("refund:{booking}:x")] {
            assert_eq!(refund_of_key(other), None, "{other}");
        }
    }

    #[test]
    fn a_token_with_odd_characters_is_rejected() {
        let base = Url::parse("http://127.0.0.1:9/gateway/").expect("an address");
        let path = |token| path_of(&base, &["v1", "tokens", token]).expect("an address").to_string();
        assert_eq!(path("tok_paid@1111.a"), "http://127.0.0.1:9/gateway/v1/tokens/tok_paid@1111.a");
        for odd in ["tok_/../../payments", "tok_?a=b", "tok_#c", "tok_%2e%2e"] {
            let path = path(odd);
            let rest = path.strip_prefix("http://127.0.0.1:9/gateway/v1/tokens/").expect("below tokens");
            assert!(!rest.contains(['/', '?', '#']), "{path}");
        }
    }
}
