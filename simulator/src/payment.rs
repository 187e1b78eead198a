//! A payment and its states, as the API returns them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Status of a payment. `succeeded`, `failed` and `voided` are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waits for the payer on the page; after the expiry it cannot be paid.
    RequiresPayer,
    /// The bank has not decided.
    Pending,
    /// Charged.
    Succeeded,
    /// Not charged, finally.
    Failed,
    /// Voided by the merchant before it was charged.
    Voided,
}

impl Status {
    /// Returns `true` when only refunds can follow.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Voided)
    }
}

/// The API a merchant used for a payment; its events use the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The simulator's own API, `/v1/payments`.
    #[default]
    Own,
    /// Stripe's API, see `crate::stripe`.
    Stripe(StripeTerms),
}

/// Terms of a payment that only Stripe's API has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StripeTerms {
    /// True for a Checkout Session with a page, false for a PaymentIntent.
    pub checkout: bool,
    /// The merchant's metadata, sent with every event.
    pub metadata: BTreeMap<String, String>,
}

/// The body of `POST /v1/payments`. Two requests with one key must be equal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NewPayment {
    /// Amount in minor units, at least 1.
    pub amount_minor: i64,
    /// ISO 4217 code.
    pub currency: String,
    /// The merchant's reference, sent with every event.
    pub reference: String,
    /// Description shown to the payer.
    pub description: String,
    /// URL the payer returns to.
    pub return_url: String,
    /// URL for a payer who cancels; `return_url` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_url: Option<String>,
    /// URL of the webhooks.
    pub webhook_url: String,
    /// Expiry, milliseconds since 1970: the page takes no payment from then on.
    pub expires_at_ms: i64,
    /// Token of a card to charge at once, without a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The API it was requested by.
    #[serde(skip)]
    pub protocol: Protocol,
}

/// Maximum amount, minor units: a million of a currency with two digits.
const MAX_AMOUNT_MINOR: i64 = 100_000_000;
/// Maximum length of a reference, bytes.
const MAX_REFERENCE_BYTES: usize = 200;
/// Maximum length of a description, bytes.
const MAX_DESCRIPTION_BYTES: usize = 1_000;
/// Maximum length of a URL, bytes.
const MAX_URL_BYTES: usize = 2_000;

impl NewPayment {
    /// Validates the request.
    ///
    /// # Errors
    /// The stable code of the first invalid field, with a message.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if !(1..=MAX_AMOUNT_MINOR).contains(&self.amount_minor) {
            return Err(("amount_invalid", "amount_minor must be between 1 and 100000000"));
        }
        if self.currency.len() != 3 || !self.currency.bytes().all(|b| b.is_ascii_uppercase()) {
            return Err(("currency_invalid", "currency must be three capital letters"));
        }
        if self.reference.is_empty() || self.reference.len() > MAX_REFERENCE_BYTES {
            return Err(("reference_invalid", "reference must have 1 to 200 bytes"));
        }
        if self.description.len() > MAX_DESCRIPTION_BYTES {
            return Err(("description_invalid", "description must have at most 1000 bytes"));
        }
        if !is_web_address(&self.return_url) {
            return Err(("return_url_invalid", "return_url must be an http or https address"));
        }
        if self.cancel_url.as_deref().is_some_and(|url| !is_web_address(url)) {
            return Err(("cancel_url_invalid", "cancel_url must be an http or https address"));
        }
        if !is_web_address(&self.webhook_url) {
            return Err(("webhook_url_invalid", "webhook_url must be an http or https address"));
        }
        if self.token.as_deref().is_some_and(|token| crate::cards::by_token(token).is_none()) {
            return Err(("token_unknown", "token names no card"));
        }
        Ok(())
    }
}

#[cfg(test)]
impl NewPayment {
    /// Returns a valid request of 25 euros.
    pub(crate) fn example() -> Self {
        Self {
            amount_minor: 2500,
            currency: "EUR".to_owned(),
            reference: "b1".to_owned(),
            description: String::new(),
            return_url: "http://127.0.0.1/back".to_owned(),
            cancel_url: None,
            webhook_url: "http://127.0.0.1/hook".to_owned(),
            expires_at_ms: 420_000,
            token: None,
            protocol: Protocol::Own,
        }
    }
}

/// Failure code of a payment that the payer cancelled.
pub const CANCELLED_BY_PAYER: &str = "cancelled_by_payer";

/// Returns `true` for an absolute http or https URL that is safe in a `Location` header.
fn is_web_address(text: &str) -> bool {
    text.len() <= MAX_URL_BYTES
        && text.bytes().all(|b| b.is_ascii_graphic())
        && reqwest::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// A payment.
#[derive(Clone, Debug)]
pub struct Payment {
    /// The id, also the secret in the URL of the page.
    pub id: String,
    /// The request.
    pub request: NewPayment,
    /// The status.
    pub status: Status,
    /// Failure code of the payment, or of the last try when the payer may retry.
    pub failure: Option<&'static str>,
    /// Fingerprint of the last card; `None` for a card without one.
    pub fingerprint: Option<String>,
    /// Amount charged, minor units; 0 until it succeeded.
    pub taken_minor: i64,
    /// The refunds, in order of request.
    pub refunds: Vec<Refund>,
}

/// Status of a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefundStatus {
    /// Accepted, not yet transferred.
    Pending,
    /// Transferred to the payer.
    Succeeded,
    /// Not transferred: the merchant keeps the money.
    Failed,
}

/// A refund.
#[derive(Clone, Debug)]
pub struct Refund {
    /// The idempotency key, until it is forgotten.
    pub key: Option<String>,
    /// Amount in minor units.
    pub amount_minor: i64,
    /// The merchant's metadata on the refund.
    pub metadata: BTreeMap<String, String>,
    /// Status in the first answer, and in the answer to a retry.
    pub answered: RefundStatus,
    /// The current status.
    pub status: RefundStatus,
}

/// A payment as `GET /v1/payments/{id}` returns it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentView {
    /// The id.
    pub id: String,
    /// The merchant's reference.
    pub reference: String,
    /// The status.
    pub status: Status,
    /// URL of the payment page.
    pub page_url: String,
    /// Amount in minor units: requested, or charged once it succeeded.
    pub amount_minor: i64,
    /// ISO 4217 code.
    pub currency: String,
    /// Amount refunded, minor units.
    pub refunded_minor: i64,
    /// Fingerprint of the card that paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Stable failure code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Payment {
    /// Creates a payment that waits for its payer.
    #[must_use]
    pub fn new(id: String, request: NewPayment) -> Self {
        let status = Status::RequiresPayer;
        Self { id, request, status, failure: None, fingerprint: None, taken_minor: 0, refunds: Vec::new() }
    }

    /// Returns `true` after the expiry: the page takes no payment any more.
    #[must_use]
    pub fn is_overdue(&self, now_ms: i64) -> bool {
        now_ms >= self.request.expires_at_ms
    }

    /// Returns the amount in minor units: charged, or requested while it is not charged.
    #[must_use]
    pub fn amount_minor(&self) -> i64 {
        if self.status == Status::Succeeded { self.taken_minor } else { self.request.amount_minor }
    }

    /// Returns `true` when the payer may retry after a failure, as on Stripe's page.
    #[must_use]
    pub fn allows_retry(&self) -> bool {
        matches!(&self.request.protocol, Protocol::Stripe(terms) if terms.checkout)
    }

    /// Returns the URL back to the merchant: `cancel_url` for a payer who gave no card, else `return_url`.
    #[must_use]
    pub fn back_url(&self) -> &str {
        let was_cancelled =
            matches!(self.status, Status::RequiresPayer | Status::Voided) || self.failure == Some(CANCELLED_BY_PAYER);
        let request = &self.request;
        request.cancel_url.as_deref().filter(|_| was_cancelled).unwrap_or(&request.return_url)
    }

    /// Returns the sum of all refunds that did not fail, minor units; never above the charge.
    #[must_use]
    pub fn refunded_minor(&self) -> i64 {
        let counted = self.refunds.iter().filter(|refund| refund.status != RefundStatus::Failed);
        counted.map(|refund| refund.amount_minor).sum()
    }

    /// Returns the index of the refund requested under this key.
    #[must_use]
    pub fn refund_under(&self, key: &str) -> Option<usize> {
        self.refunds.iter().position(|refund| refund.key.as_deref() == Some(key))
    }

    /// Converts the payment for the API; `public_url` is the base URL of the pages.
    #[must_use]
    pub fn view(&self, public_url: &str) -> PaymentView {
        PaymentView {
            id: self.id.clone(),
            reference: self.request.reference.clone(),
            status: self.status,
            page_url: format!("{public_url}/pay/{}", self.id),
            amount_minor: self.amount_minor(),
            currency: self.request.currency.clone(),
            refunded_minor: self.refunded_minor(),
            fingerprint: self.fingerprint.clone().filter(|_| self.status == Status::Succeeded),
            failure: self.failure.map(str::to_owned),
        }
    }
}
