//! A payment and its states, as the API shows them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where a payment stands. `succeeded`, `failed` and `voided` are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waits for the payer on the page, after its time in vain.
    RequiresPayer,
    /// The bank is thinking.
    Pending,
    /// We have the money.
    Succeeded,
    /// We do not and never will have it.
    Failed,
    /// The merchant called it off before it was charged.
    Voided,
}

impl Status {
    /// Whether nothing follows but refunds.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Voided)
    }
}

/// Whose words a merchant used: it hears of its payment in the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Our own, `/v1/payments`.
    #[default]
    Own,
    /// Stripe's, see [`crate::stripe`].
    Stripe(StripeTerms),
}

/// What only Stripe's words can say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StripeTerms {
    /// A Checkout Session with a page, or else a PaymentIntent by itself.
    pub checkout: bool,
    /// The merchant's own notes, sent back with every event.
    pub metadata: BTreeMap<String, String>,
}

/// What a merchant asks for: the body of `POST /v1/payments`. Two requests with one key must be equal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NewPayment {
    /// How much, minor units, at least 1.
    pub amount_minor: i64,
    /// ISO 4217 code.
    pub currency: String,
    /// The merchant's own name for it, sent back with every event.
    pub reference: String,
    /// What for, shown to the payer.
    pub description: String,
    /// Where the payer goes afterwards.
    pub return_url: String,
    /// Where the payer goes who gives up; the same when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_url: Option<String>,
    /// Where events go.
    pub webhook_url: String,
    /// The page takes no payment from this instant on, milliseconds since 1970.
    pub expires_at_ms: i64,
    /// A card's token: charge it at once, without a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The words it was asked in.
    #[serde(skip)]
    pub dialect: Dialect,
}

/// Most that can be charged at once, minor units: a million of a currency with two digits.
const MAX_AMOUNT_MINOR: i64 = 100_000_000;
/// Longest reference, bytes.
const MAX_REFERENCE_BYTES: usize = 200;
/// Longest description, bytes.
const MAX_DESCRIPTION_BYTES: usize = 1_000;
/// Longest address, bytes.
const MAX_URL_BYTES: usize = 2_000;

impl NewPayment {
    /// Whether we can work with it.
    ///
    /// # Errors
    /// The stable name of the first field that is wrong, with what is wrong.
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
            return Err(("token_unknown", "token stands for no card"));
        }
        Ok(())
    }
}

/// Why a payment failed whose payer gave up.
pub const GAVE_UP: &str = "cancelled_by_payer";

/// Strictly what goes into a `Location` header as it stands.
fn is_web_address(text: &str) -> bool {
    text.len() <= MAX_URL_BYTES
        && text.bytes().all(|b| b.is_ascii_graphic())
        && reqwest::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// A payment.
#[derive(Clone, Debug)]
pub struct Payment {
    /// Its id, also the secret in the page's address.
    pub id: String,
    /// What was asked for.
    pub asked: NewPayment,
    /// Where it stands.
    pub status: Status,
    /// Why it failed, or why the payer's last try did, where they may try again.
    pub failure: Option<&'static str>,
    /// Fingerprint of the card that was given last; `None` for a card without one.
    pub fingerprint: Option<String>,
    /// What the bank took, minor units; nothing until it succeeded.
    pub taken_minor: i64,
    /// What went back, in the order it was asked for.
    pub refunds: Vec<Refund>,
}

/// How a refund stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefundStatus {
    /// Accepted, and on its way.
    Pending,
    /// It reached the payer.
    Succeeded,
    /// It did not: the merchant has the money.
    Failed,
}

/// Money that went back.
#[derive(Clone, Debug)]
pub struct Refund {
    /// Its idempotency key, as long as that is known.
    pub key: Option<String>,
    /// How much, minor units.
    pub amount_minor: i64,
    /// The merchant's own notes on it.
    pub metadata: BTreeMap<String, String>,
    /// What the merchant was answered first, and is whenever it repeats the key.
    pub answered: RefundStatus,
    /// How it stands now.
    pub status: RefundStatus,
}

/// A payment as `GET /v1/payments/{id}` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentView {
    /// Its id.
    pub id: String,
    /// The merchant's name for it.
    pub reference: String,
    /// Where it stands.
    pub status: Status,
    /// Our page, where the payer pays.
    pub page_url: String,
    /// How much, minor units: what was asked for, and once it succeeded what was taken.
    pub amount_minor: i64,
    /// ISO 4217 code.
    pub currency: String,
    /// How much went back.
    pub refunded_minor: i64,
    /// Fingerprint of the card that paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Why it failed, a stable word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Payment {
    /// Whether its time is over: then the page takes no payment any more.
    #[must_use]
    pub fn is_overdue(&self, now_ms: i64) -> bool {
        now_ms >= self.asked.expires_at_ms
    }

    /// How much it is about, minor units: what was taken, or what was asked for while nothing was.
    #[must_use]
    pub fn amount_minor(&self) -> i64 {
        if self.status == Status::Succeeded { self.taken_minor } else { self.asked.amount_minor }
    }

    /// Whether the payer may try again after a failure, as on Stripe's page.
    #[must_use]
    pub fn may_be_tried_again(&self) -> bool {
        matches!(&self.asked.dialect, Dialect::Stripe(terms) if terms.checkout)
    }

    /// The way back to the merchant: for whoever gave a card, whatever came of it, or else for whoever gave up.
    #[must_use]
    pub fn way_back(&self) -> &str {
        let gave_up = matches!(self.status, Status::RequiresPayer | Status::Voided) || self.failure == Some(GAVE_UP);
        let asked = &self.asked;
        asked.cancel_url.as_deref().filter(|_| gave_up).unwrap_or(&asked.return_url)
    }

    /// How much went back in all, minor units; never above the charge.
    #[must_use]
    pub fn refunded_minor(&self) -> i64 {
        let back = self.refunds.iter().filter(|refund| refund.status != RefundStatus::Failed);
        back.map(|refund| refund.amount_minor).sum()
    }

    /// The place of the refund that was asked for under this key.
    #[must_use]
    pub fn refund_under(&self, key: &str) -> Option<usize> {
        self.refunds.iter().position(|refund| refund.key.as_deref() == Some(key))
    }

    /// As the API shows it; `public_url` is where our pages are.
    #[must_use]
    pub fn view(&self, public_url: &str) -> PaymentView {
        PaymentView {
            id: self.id.clone(),
            reference: self.asked.reference.clone(),
            status: self.status,
            page_url: format!("{public_url}/pay/{}", self.id),
            amount_minor: self.amount_minor(),
            currency: self.asked.currency.clone(),
            refunded_minor: self.refunded_minor(),
            fingerprint: self.fingerprint.clone().filter(|_| self.status == Status::Succeeded),
            failure: self.failure.map(str::to_owned),
        }
    }
}
