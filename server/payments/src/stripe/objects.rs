//! The parts of Stripe's objects that we use, and what they mean to us.

use std::collections::BTreeMap;

use domain::money::{Currency, Money};
use serde::Deserialize;

use super::{BOOKING, WAY};
use crate::gateway::{GatewayError, GatewayPayment, PaymentStatus};

/// Stripe counts krónur and Ugandan shillings in hundredths although they have none
/// (<https://docs.stripe.com/currencies#special-cases>); all other currencies as we do.
const HUNDREDTHS: [&str; 2] = ["ISK", "UGX"];

/// An amount as Stripe counts it.
pub(super) fn minor_units(amount: Money) -> i64 {
    if HUNDREDTHS.contains(&amount.currency.code()) { amount.minor.saturating_mul(100) } else { amount.minor }
}

/// An amount as we count it.
pub(super) fn money(minor: i64, currency: &str) -> Result<Money, GatewayError> {
    let currency = Currency::parse(&currency.to_ascii_uppercase())
        .ok_or_else(|| GatewayError::unreachable(format!("an amount in the unknown currency {currency:?}")))?;
    Ok(Money::new(if HUNDREDTHS.contains(&currency.code()) { minor / 100 } else { minor }, currency))
}

/// `PaymentMethod`, or its details in a charge: its type, and an object of that name, which has a `fingerprint` if Stripe
/// can identify the card or account. The fingerprint of a wallet may be that of its device number, not of the card.
#[derive(Debug, Deserialize)]
pub(super) struct PaymentMethod {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

impl PaymentMethod {
    /// The fingerprint of the card: equal for all its payment methods of one type.
    pub(super) fn fingerprint(&self) -> Option<String> {
        let found = self.rest.get(&self.kind)?.get("fingerprint")?.as_str()?;
        Some(format!("{}:{found}", self.kind))
    }
}

/// `PaymentIntent`.
#[derive(Debug, Deserialize)]
pub(super) struct PaymentIntent {
    pub(super) id: String,
    status: String,
    #[serde(default)]
    amount_received: i64,
    pub(super) currency: String,
    #[serde(default)]
    pub(super) metadata: BTreeMap<String, String>,
    last_payment_error: Option<ErrorDetail>,
    next_action: Option<NextAction>,
    latest_charge: Option<Expandable<LatestCharge>>,
}

/// An object by its id, or in full where it was expanded.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Expandable<T> {
    Full(T),
    Id(#[expect(dead_code, reason = "says that it is there; its object is asked for where it matters")] String),
}

#[derive(Debug, Deserialize)]
struct LatestCharge {
    #[serde(default)]
    amount_refunded: i64,
    payment_method_details: Option<PaymentMethod>,
}

#[derive(Debug, Deserialize)]
struct NextAction {
    redirect_to_url: Option<RedirectToUrl>,
}

#[derive(Debug, Deserialize)]
struct RedirectToUrl {
    url: Option<String>,
}

impl PaymentIntent {
    pub(super) fn booking(&self) -> Option<&str> {
        self.metadata.get(BOOKING).map(String::as_str)
    }

    /// The way of payment in our metadata.
    pub(super) fn way(&self) -> Option<&str> {
        self.metadata.get(WAY).map(String::as_str)
    }

    /// The reason why the last attempt failed.
    pub(super) fn failure(&self) -> Option<String> {
        let error = self.last_payment_error.as_ref()?;
        Some(error.code.clone().unwrap_or_else(|| error.kind.clone()))
    }

    pub(super) fn received(&self) -> Result<Money, GatewayError> {
        money(self.amount_received, &self.currency)
    }

    /// Its status (<https://docs.stripe.com/payments/paymentintents/lifecycle>).
    pub(super) fn status(&self) -> Result<PaymentStatus, GatewayError> {
        Ok(match self.status.as_str() {
            "succeeded" => PaymentStatus::Succeeded { amount: self.received()? },
            "canceled" => PaymentStatus::Voided,
            // Confirmed with the one method we had, and that one failed.
            "requires_payment_method" if self.last_payment_error.is_some() => {
                PaymentStatus::Failed { why: self.failure().unwrap_or_default() }
            }
            "requires_action" => {
                let redirect = self.next_action.as_ref().and_then(|action| action.redirect_to_url.as_ref());
                PaymentStatus::Pending { pay_url: redirect.and_then(|redirect| redirect.url.clone()) }
            }
            "processing" | "requires_payment_method" | "requires_confirmation" | "requires_capture" => {
                PaymentStatus::Pending { pay_url: None }
            }
            other => {
                return Err(GatewayError::unreachable(format!("an intent of the unknown status {other:?}")));
            }
        })
    }

    /// Converts the object to a [`GatewayPayment`].
    pub(super) fn payment(self) -> Result<GatewayPayment, GatewayError> {
        let charge = match &self.latest_charge {
            Some(Expandable::Full(charge)) => Some(charge),
            Some(Expandable::Id(_)) | None => None,
        };
        let refunded = charge.map_or(0, |charge| charge.amount_refunded);
        let details = charge.and_then(|charge| charge.payment_method_details.as_ref());
        let instrument = details.and_then(PaymentMethod::fingerprint);
        let (status, refunded) = (self.status()?, money(refunded, &self.currency)?);
        Ok(GatewayPayment { status, refunded, instrument, gateway_ref: self.id })
    }
}

/// Checkout `Session`.
#[derive(Debug, Deserialize)]
pub(super) struct CheckoutSession {
    pub(super) id: String,
    status: Option<String>,
    payment_status: Option<String>,
    url: Option<String>,
    amount_total: Option<i64>,
    currency: Option<String>,
    pub(super) client_reference_id: Option<String>,
    payment_intent: Option<Expandable<Box<PaymentIntent>>>,
}

impl CheckoutSession {
    fn full_intent(&self) -> Option<&PaymentIntent> {
        match &self.payment_intent {
            Some(Expandable::Full(intent)) => Some(&**intent),
            Some(Expandable::Id(_)) | None => None,
        }
    }

    /// Its intent, if it was expanded.
    pub(super) fn into_intent(self) -> Option<PaymentIntent> {
        match self.payment_intent {
            Some(Expandable::Full(intent)) => Some(*intent),
            Some(Expandable::Id(_)) | None => None,
        }
    }

    /// The status of the payment of this page. While the page is open its payer may try one card after another.
    pub(super) fn status(&self) -> Result<PaymentStatus, GatewayError> {
        match (self.status.as_deref(), self.payment_status.as_deref()) {
            (Some("open"), _) => Ok(PaymentStatus::Pending { pay_url: self.url.clone() }),
            (Some("expired"), _) => Ok(PaymentStatus::Voided),
            (Some("complete"), Some("paid")) => {
                let amount = match self.full_intent() {
                    Some(intent) => intent.received()?,
                    None => money(self.amount_total.unwrap_or_default(), self.currency.as_deref().unwrap_or_default())?,
                };
                Ok(PaymentStatus::Succeeded { amount })
            }
            // The bank is processing, or has declined after the page was left.
            (Some("complete"), _) => {
                self.full_intent().map_or(Ok(PaymentStatus::Pending { pay_url: None }), PaymentIntent::status)
            }
            other => Err(GatewayError::unreachable(format!("a session of the unknown status {other:?}"))),
        }
    }

    /// Converts the object to a [`GatewayPayment`].
    pub(super) fn payment(self) -> Result<GatewayPayment, GatewayError> {
        let (status, gateway_ref) = (self.status()?, self.id.clone());
        let currency = self.currency.clone().unwrap_or_default();
        let (refunded, instrument) = match self.into_intent() {
            Some(intent) => {
                let paid = intent.payment()?;
                (paid.refunded, paid.instrument)
            }
            None => (money(0, &currency)?, None),
        };
        Ok(GatewayPayment { gateway_ref, status, refunded, instrument })
    }
}

/// `Refund`.
#[derive(Debug, Deserialize)]
pub(super) struct Refund {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) amount: i64,
    pub(super) failure_reason: Option<String>,
    pub(super) status: Option<String>,
    pub(super) payment_intent: Option<String>,
    #[serde(default)]
    pub(super) metadata: BTreeMap<String, String>,
}

impl Refund {
    /// True if the money has returned to us, or never left.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.status.as_deref(), Some("failed" | "canceled"))
    }

    /// Stripe's reason; a cancelled refund has its status as the reason.
    pub(super) fn why_failed(&self) -> String {
        self.failure_reason.clone().or_else(|| self.status.clone()).unwrap_or_default()
    }
}

/// `Charge`, as a list has it.
#[derive(Debug, Deserialize)]
pub(super) struct ListedCharge {
    pub(super) id: String,
    #[serde(default)]
    pub(super) paid: bool,
    #[serde(default)]
    pub(super) amount_captured: i64,
    #[serde(default)]
    pub(super) amount_refunded: i64,
    pub(super) currency: String,
    pub(super) payment_intent: Option<String>,
    /// Of its intent, copied when it was charged.
    #[serde(default)]
    pub(super) metadata: BTreeMap<String, String>,
}

/// `Refund` with its charge in full.
#[derive(Debug, Deserialize)]
pub(super) struct ListedRefund {
    pub(super) id: String,
    pub(super) charge: Option<ListedCharge>,
}

/// A page of a list, the newest first, or of a search.
#[derive(Debug, Deserialize)]
pub(super) struct ListPage<T> {
    pub(super) data: Vec<T>,
    #[serde(default)]
    pub(super) has_more: bool,
}

impl<T> ListPage<T> {
    /// Id of the last object of this page, after which the next page begins; `None` on the last page.
    pub(super) fn next(&self, id: impl Fn(&T) -> &String) -> Option<String> {
        self.data.last().filter(|_| self.has_more).map(|last| id(last).clone())
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ErrorBody {
    pub(super) error: ErrorDetail,
}

/// The error. `card_error` contains its intent.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorDetail {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    pub(super) payment_intent: Option<Box<PaymentIntent>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(status: &str, more: &str) -> PaymentIntent {
        let text =
            format!(r#"{{"id": "pi_1", "status": "{status}", "currency": "eur", "amount_received": 1250{more}}}"#);
        serde_json::from_str(&text).expect("an intent")
    }

    #[test]
    fn every_status_of_an_intent_is_mapped() {
        let declined = r#", "last_payment_error": {"type": "card_error", "code": "card_declined"}"#;
        let redirect =
            r#", "next_action": {"type": "redirect_to_url", "redirect_to_url": {"url": "https://bank/3ds"}}"#;
        let pending = |url: Option<&str>| PaymentStatus::Pending { pay_url: url.map(str::to_owned) };
        let eur = |minor| Money::new(minor, Currency::parse("EUR").expect("a code"));
        for (intent, expected) in [
            (intent("succeeded", ""), PaymentStatus::Succeeded { amount: eur(1250) }),
            (intent("canceled", ""), PaymentStatus::Voided),
            (intent("requires_payment_method", declined), PaymentStatus::Failed { why: "card_declined".to_owned() }),
            (intent("requires_payment_method", ""), pending(None)),
            (intent("requires_action", redirect), pending(Some("https://bank/3ds"))),
            (intent("processing", ""), pending(None)),
        ] {
            assert_eq!(intent.status().expect("known"), expected);
        }
        assert!(matches!(intent("dreaming", "").status(), Err(GatewayError::Unreachable(_))));
    }

    #[test]
    fn amounts_are_minor_units_and_some_are_special() {
        let currency = |code| Currency::parse(code).expect("a code");
        for (code, ours, theirs) in
            [("EUR", 1250, 1250), ("JPY", 1250, 1250), ("KWD", 1250, 1250), ("ISK", 1250, 125_000), ("UGX", 5, 500)]
        {
            let amount = Money::new(ours, currency(code));
            assert_eq!(minor_units(amount), theirs, "{code}");
            assert_eq!(money(theirs, &code.to_ascii_lowercase()).expect("known"), amount, "{code}");
        }
        assert!(money(1, "euro").is_err());
        // What Stripe counts whole (<https://docs.stripe.com/currencies#zero-decimal>) has no smaller unit with us.
        for code in "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF".split(' ') {
            assert_eq!(currency(code).minor_digits(), 0, "{code}");
        }
    }
}
