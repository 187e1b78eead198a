//! Parses Stripe's requests: form fields, nested by brackets (`metadata[booking]`).

use std::collections::BTreeMap;

use axum::extract::{Form, FromRequest, Request};

use super::{StripeError, bad_request, invalid};
use crate::cards::{self, Card};
use crate::payment::{NewPayment, Protocol, StripeTerms};

/// Names and values in order.
type Pairs = Vec<(String, String)>;

/// Expiry of a PaymentIntent, which waits until it is cancelled: 2100-01-01, milliseconds since 1970.
const NEVER_MS: i64 = 4_102_444_800_000;
/// Placeholder for URLs that a payment of Stripe's API does not have.
const UNUSED_URL: &str = "http://stripe.invalid/";

/// The unread fields of a request.
pub(super) struct FormFields {
    rest: Pairs,
    /// Paths of objects to return in full instead of by id.
    pub expand: Vec<String>,
}

/// Parses the fields of a body, or those of the query of a GET request.
impl<S: Send + Sync> FromRequest<S> for FormFields {
    type Rejection = StripeError;

    async fn from_request(request: Request, state: &S) -> Result<Self, StripeError> {
        let Form(pairs) = Form::<Pairs>::from_request(request, state)
            .await
            .map_err(|rejection| invalid(rejection.status(), &rejection.body_text()))?;
        let (expand, rest): (Pairs, Pairs) = pairs.into_iter().partition(|(name, _)| name.starts_with("expand["));
        Ok(Self { rest, expand: expand.into_iter().map(|(_, path)| path).collect() })
    }
}

impl FormFields {
    /// Removes and returns a field.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let at = self.rest.iter().position(|(key, _)| key == name)?;
        Some(self.rest.swap_remove(at).1)
    }

    /// Removes and returns a required field.
    pub fn required(&mut self, name: &str) -> Result<String, StripeError> {
        self.take(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| bad_request(&format!("Missing required param: {name}.")))
    }

    /// Removes and returns an integer.
    pub fn number(&mut self, name: &str) -> Result<Option<i64>, StripeError> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let number = text.parse().map_err(|_| bad_request(&format!("Invalid integer: {name}")))?;
        Ok(Some(number))
    }

    /// Removes and returns all fields `name[…]` by the key in the brackets.
    pub fn metadata(&mut self, name: &str) -> BTreeMap<String, String> {
        let start = format!("{name}[");
        let (inside, rest): (Pairs, Pairs) =
            std::mem::take(&mut self.rest).into_iter().partition(|(key, _)| key.starts_with(&start));
        self.rest = rest;
        let bare = |key: String| key[start.len()..].trim_end_matches(']').to_owned();
        inside.into_iter().map(|(key, value)| (bare(key), value)).collect()
    }

    /// Removes `name[]` and `name[0]`, `name[1]`…
    pub fn drop_list(&mut self, name: &str) {
        self.metadata(name);
    }

    /// Rejects fields that are left over.
    pub fn none_left(&self) -> Result<(), StripeError> {
        self.rest.first().map_or(Ok(()), |(name, _)| Err(StripeError::unknown(name)))
    }
}

fn currency(fields: &mut FormFields, name: &str) -> Result<String, StripeError> {
    let code = fields.required(name)?;
    if code.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Ok(code.to_ascii_uppercase());
    }
    Err(bad_request("Currencies are three lowercase letters."))
}

/// A card and its payment method id.
pub type CardMethod = (&'static Card, String);

/// Parses a new PaymentIntent, and the card that pays for it if it is confirmed at once.
pub fn intent(fields: &mut FormFields) -> Result<(NewPayment, Option<CardMethod>), StripeError> {
    let metadata = fields.metadata("metadata");
    fields.metadata("automatic_payment_methods");
    let confirm = fields.take("confirm").as_deref() == Some("true");
    let method = fields.take("payment_method");
    let card = match (&method, confirm) {
        (Some(method), true) => {
            let card = cards::by_payment_method(method).ok_or_else(|| StripeError::missing("PaymentMethod", method))?;
            Some((card, method.clone()))
        }
        (None, true) => return Err(bad_request("You cannot confirm without a payment method.")),
        (_, false) => None,
    };
    let request = NewPayment {
        amount_minor: fields.number("amount")?.unwrap_or_default(),
        currency: currency(fields, "currency")?,
        reference: reference(&metadata, None),
        description: fields.take("description").unwrap_or_default(),
        return_url: fields.take("return_url").unwrap_or_else(|| UNUSED_URL.to_owned()),
        cancel_url: None,
        webhook_url: UNUSED_URL.to_owned(),
        expires_at_ms: NEVER_MS,
        token: card.as_ref().map(|(card, _)| format!("tok_{}", card.name)),
        protocol: Protocol::Stripe(StripeTerms { checkout: false, metadata }),
    };
    Ok((request, card))
}

/// Parses a new Checkout Session with one line item.
pub fn session(fields: &mut FormFields) -> Result<NewPayment, StripeError> {
    if fields.required("mode")? != "payment" {
        return Err(bad_request("Only mode 'payment' is supported."));
    }
    let line = "line_items[0]";
    if fields.required(&format!("{line}[quantity]"))? != "1" {
        return Err(bad_request("Only one line with quantity 1 is supported."));
    }
    if fields.take("payment_method_types[0]").is_some_and(|kind| kind != "card") {
        return Err(bad_request("Only payment_method_types 'card' is supported."));
    }
    // The session's metadata is not stored: events of its payment carry the metadata of the intent.
    fields.metadata("metadata");
    let metadata = fields.metadata("payment_intent_data[metadata]");
    let client_reference = fields.take("client_reference_id");
    Ok(NewPayment {
        amount_minor: fields.number(&format!("{line}[price_data][unit_amount]"))?.unwrap_or_default(),
        currency: currency(fields, &format!("{line}[price_data][currency]"))?,
        reference: reference(&metadata, client_reference),
        description: fields.required(&format!("{line}[price_data][product_data][name]"))?,
        return_url: fields.required("success_url")?,
        cancel_url: fields.take("cancel_url"),
        webhook_url: UNUSED_URL.to_owned(),
        expires_at_ms: fields.number("expires_at")?.map_or(NEVER_MS, |seconds| seconds.saturating_mul(1_000)),
        token: None,
        protocol: Protocol::Stripe(StripeTerms { checkout: true, metadata }),
    })
}

fn reference(metadata: &BTreeMap<String, String>, other: Option<String>) -> String {
    metadata.get("booking").cloned().or(other).unwrap_or_else(|| "none".to_owned())
}

/// Parses `metadata['key']:'value'`, the only supported form of query.
pub fn metadata_query(query: &str) -> Result<(String, String), StripeError> {
    let parts = query.strip_prefix("metadata['").and_then(|rest| rest.strip_suffix('\''));
    let parts = parts.and_then(|rest| rest.split_once("']:'"));
    match parts {
        Some((key, value)) if !key.contains('\'') && !value.contains('\'') => Ok((key.to_owned(), value.to_owned())),
        _ => Err(bad_request("Only metadata['key']:'value' is supported.")),
    }
}
