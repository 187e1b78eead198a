//! The payment simulator as a [`Gateway`]: its HTTP API from our side.
//!
//! Every call has a deadline and is retried after a temporary failure. All calls are idempotent: charges and refunds by
//! their keys, voids and reads by nature.

use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use axum::http::HeaderMap;
use clap::Args;
use domain::money::{Currency, Money};
use domain::time::Timestamp;
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::calls::{CallDeadlines, GatewayClient, MAX_PAGE_BYTES, ParsedAnswer};
use crate::gateway::{
    Charge, ChargeAnswer, Gateway, GatewayError, GatewayPayment, LedgerEntry, LedgerPage, MAX_LEDGER_ENTRIES,
    PaymentIds, PaymentStatus, RefundAnswer, VoidAnswer, WebhookRefused, Window, none_if_missing, path_of, pay_key,
};
use crate::{Adapter, PaymentEvent, PaymentEventKind, signature};

/// Its name, also in the address of its webhooks.
const NAME: &str = "simulator";

/// Settings of the payment simulator.
#[derive(Clone, Debug, Args)]
pub struct SimulatorSettings {
    /// Address of the payment simulator.
    #[arg(long, env = "SIMULATOR_URL")]
    simulator_url: Option<String>,
    /// Our key there.
    #[arg(long, env = "SIMULATOR_API_KEY", hide_env_values = true)]
    simulator_api_key: Option<String>,
    /// Its webhook secret; two, separated by a comma, while one is being replaced.
    #[arg(long, env = "SIMULATOR_WEBHOOK_SECRET", hide_env_values = true, value_delimiter = ',')]
    simulator_webhook_secret: Vec<String>,
}

/// Its entry among the gateways.
pub(crate) const ADAPTER: Adapter = Adapter {
    name: NAME,
    signature_header: HEADER,
    address: |settings| ("SIMULATOR_URL", settings.simulator.simulator_url.as_deref()),
    secrets: |settings| {
        let key = settings.simulator.simulator_api_key.iter().cloned().collect();
        let webhooks = settings.simulator.simulator_webhook_secret.clone();
        vec![("SIMULATOR_API_KEY", key), ("SIMULATOR_WEBHOOK_SECRET", webhooks)]
    },
    open: |settings, public_url| Ok(Arc::new(SimulatorGateway::from_settings(&settings.simulator, public_url)?)),
    moves_no_money: |_| Some(("PAYMENT_GATEWAYS", "names the payment simulator, where no money moves".to_owned())),
};

/// The client. One per process: it keeps connections open.
#[derive(Clone)]
pub struct SimulatorGateway {
    calls: GatewayClient,
    base: Url,
    api_key: String,
    webhook_url: String,
    webhook_secrets: Vec<String>,
}

#[derive(Serialize)]
struct NewPayment<'a> {
    amount_minor: i64,
    currency: &'a str,
    reference: String,
    description: String,
    return_url: &'a str,
    cancel_url: &'a str,
    webhook_url: &'a str,
    expires_at_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

#[derive(Serialize)]
struct NewRefund {
    amount_minor: i64,
}

#[derive(Debug, Deserialize)]
struct SimulatorPayment {
    id: String,
    reference: String,
    status: String,
    page_url: String,
    amount_minor: i64,
    currency: Currency,
    refunded_minor: i64,
    fingerprint: Option<String>,
    failure: Option<String>,
}

/// The instrument behind a token.
#[derive(Deserialize)]
struct TokenAnswer {
    fingerprint: Option<String>,
}

#[derive(Deserialize)]
struct LedgerAnswer {
    payments: Vec<SimulatorPayment>,
    next: Option<u64>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Deserialize)]
struct ErrorDetail {
    code: String,
    message: String,
}

impl SimulatorGateway {
    /// The client the settings ask for.
    ///
    /// # Errors
    /// When one of them is missing or cannot be used.
    fn from_settings(settings: &SimulatorSettings, public_url: &str) -> anyhow::Result<Self> {
        anyhow::ensure!(
            settings.simulator_webhook_secret.iter().any(|secret| !secret.is_empty()),
            "SIMULATOR_WEBHOOK_SECRET is empty: no webhook could be believed"
        );
        let base_url = settings.simulator_url.as_deref().context("SIMULATOR_URL is not set")?;
        let api_key = settings.simulator_api_key.as_deref().context("SIMULATOR_API_KEY is not set")?;
        let secrets = settings.simulator_webhook_secret.clone();
        Self::new(base_url, api_key, public_url, secrets, CallDeadlines::default()).context("SIMULATOR_URL")
    }

    /// A client of the simulator at `base_url`; its webhooks come back to us under `public_url`, signed with
    /// one of `webhook_secrets`.
    ///
    /// # Errors
    /// When `base_url` is not an address, or TLS cannot be set up.
    pub fn new(
        base_url: &str,
        api_key: &str,
        public_url: &str,
        webhook_secrets: Vec<String>,
        deadlines: CallDeadlines,
    ) -> anyhow::Result<Self> {
        let base = Url::parse(&format!("{}/", base_url.trim_end_matches('/')))?;
        // It runs beside us, also where outside calls must go through a proxy.
        let calls = GatewayClient::new(NAME, deadlines, true)?;
        let webhook_url = format!("{}/api/v1/webhooks/payments/{NAME}", public_url.trim_end_matches('/'));
        Ok(Self { calls, base, api_key: api_key.to_owned(), webhook_url, webhook_secrets })
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, GatewayError> {
        let url = self.base.join(path).map_err(GatewayError::unreachable)?;
        Ok(self.calls.http().request(method, url).bearer_auth(&self.api_key))
    }

    async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, GatewayError> {
        self.calls.ask(request, |status, _, body| parse_answer(status, body)).await
    }

    /// The payment of a booking, found by its key.
    async fn find(&self, payment: &PaymentIds) -> Result<Option<SimulatorPayment>, GatewayError> {
        let path = format!("v1/payments?key={}", pay_key(payment.booking));
        none_if_missing(self.ask(self.request(Method::GET, &path)?).await)
    }
}

/// Parses an answer. 4xx is a refusal, except for timeouts and rate limits; any other error may be retried.
fn parse_answer<T: DeserializeOwned>(status: StatusCode, body: &[u8]) -> ParsedAnswer<T> {
    if status.is_success() {
        return ParsedAnswer::of_success(status, body);
    }
    let is_temporary = status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::REQUEST_TIMEOUT;
    if !status.is_client_error() || is_temporary {
        return ParsedAnswer::Retryable(format!("the gateway answered {status}"));
    }
    match serde_json::from_slice::<ErrorBody>(body) {
        Ok(body) => ParsedAnswer::Refused { code: body.error.code, message: body.error.message },
        Err(_) => ParsedAnswer::refused_unreadably(body),
    }
}

impl SimulatorPayment {
    fn status(&self) -> Result<PaymentStatus, GatewayError> {
        Ok(match self.status.as_str() {
            "requires_payer" => PaymentStatus::Pending { pay_url: Some(self.page_url.clone()) },
            "pending" => PaymentStatus::Pending { pay_url: None },
            "succeeded" => PaymentStatus::Succeeded { amount: Money::new(self.amount_minor, self.currency) },
            "failed" => PaymentStatus::Failed { why: self.failure.clone().unwrap_or_else(|| "unspecified".to_owned()) },
            "voided" => PaymentStatus::Voided,
            other => {
                return Err(GatewayError::unreachable(format!("a payment of the unknown status {other:?}")));
            }
        })
    }
}

#[async_trait]
impl Gateway for SimulatorGateway {
    fn name(&self) -> &'static str {
        NAME
    }

    fn takes_token(&self, token: &str) -> bool {
        token.starts_with("tok_")
    }

    async fn fingerprint(&self, token: &str) -> Result<Option<String>, GatewayError> {
        let url = path_of(&self.base, &["v1", "tokens", token])?;
        let request = self.calls.http().get(url).bearer_auth(&self.api_key);
        Ok(none_if_missing(self.ask::<TokenAnswer>(request).await)?.and_then(|token| token.fingerprint))
    }

    async fn charge(&self, charge: &Charge) -> Result<ChargeAnswer, GatewayError> {
        let body = NewPayment {
            amount_minor: charge.amount.minor,
            currency: charge.amount.currency.code(),
            reference: charge.booking.to_string(),
            description: format!("{} · {}", charge.description, charge.reference),
            return_url: &charge.return_url,
            cancel_url: &charge.cancel_url,
            webhook_url: &self.webhook_url,
            expires_at_ms: charge.expires_at.0,
            token: charge.token.as_deref(),
        };
        let request = self.request(Method::POST, "v1/payments")?;
        let asked =
            self.ask::<SimulatorPayment>(request.header("idempotency-key", pay_key(charge.booking)).json(&body)).await;
        let payment = match asked {
            Err(GatewayError::Refused { code, .. }) if code == "key_reused" => {
                let known = PaymentIds { booking: charge.booking, gateway_ref: None };
                self.find(&known).await?.ok_or_else(|| GatewayError::unreachable("the payment of this key is gone"))?
            }
            answered => answered?,
        };
        Ok(ChargeAnswer { status: payment.status()?, gateway_ref: payment.id })
    }

    async fn status(&self, payment: &PaymentIds) -> Result<Option<GatewayPayment>, GatewayError> {
        let Some(payment) = self.find(payment).await? else { return Ok(None) };
        Ok(Some(GatewayPayment {
            status: payment.status()?,
            refunded: Money::new(payment.refunded_minor, payment.currency),
            instrument: payment.fingerprint,
            gateway_ref: payment.id,
        }))
    }

    async fn void(&self, payment: &PaymentIds) -> Result<VoidAnswer, GatewayError> {
        let Some(payment) = self.find(payment).await? else { return Ok(VoidAnswer::Unknown) };
        let path = format!("v1/payments/{}", payment.id);
        match self.ask::<SimulatorPayment>(self.request(Method::POST, &format!("{path}/void"))?).await {
            Ok(_) => Ok(VoidAnswer::Voided),
            Err(GatewayError::Refused { status: 409, code, .. }) if code == "already_charged" => {
                // The charged amount, not the one requested.
                let charged: SimulatorPayment = self.ask(self.request(Method::GET, &path)?).await?;
                Ok(VoidAnswer::AlreadyCharged(Money::new(charged.amount_minor, charged.currency)))
            }
            Err(error) => Err(error),
        }
    }

    async fn refund(
        &self,
        payment: &PaymentIds,
        amount: Money,
        key: &str,
        _lost: &[String],
    ) -> Result<RefundAnswer, GatewayError> {
        let found = self.find(payment).await?;
        let payment = found.ok_or_else(|| GatewayError::refused("unknown_payment", "there is no payment to refund"))?;
        if payment.currency != amount.currency {
            return Err(GatewayError::refused("currency_differs", "the payment was made in another currency"));
        }
        let request = self.request(Method::POST, &format!("v1/payments/{}/refunds", payment.id))?;
        let body = NewRefund { amount_minor: amount.minor };
        self.ask(request.header("idempotency-key", key).json(&body))
            .await
            .map(|_: SimulatorPayment| RefundAnswer::Settled)
    }

    async fn ledger(&self, window: Window, after: Option<&str>) -> Result<LedgerPage, GatewayError> {
        let mut query = vec![
            ("from_ms", window.from.0.to_string()),
            ("until_ms", window.until.0.to_string()),
            ("limit", MAX_LEDGER_ENTRIES.to_string()),
        ];
        query.extend(after.map(|after| ("after", after.to_owned())));
        let query = serde_urlencoded::to_string(query).map_err(GatewayError::unreachable)?;
        let request = self.request(Method::GET, &format!("v1/ledger?{query}"))?;
        let page: LedgerAnswer =
            self.calls.ask_up_to(MAX_PAGE_BYTES, request, |status, _, body| parse_answer(status, body)).await?;
        let entry = |payment: SimulatorPayment| {
            let is_charged = payment.status == "succeeded";
            LedgerEntry {
                booking: Uuid::parse_str(&payment.reference).ok(),
                charged: Money::new(if is_charged { payment.amount_minor } else { 0 }, payment.currency),
                refunded: Money::new(payment.refunded_minor, payment.currency),
                gateway_ref: payment.id,
            }
        };
        let entries = page.payments.into_iter().map(entry).collect();
        Ok(LedgerPage { entries, next: page.next.map(|next| next.to_string()) })
    }

    fn read_webhook(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<PaymentEvent>, WebhookRefused> {
        read_webhook(headers, body, &self.webhook_secrets, now)
    }
}

/// Name of the signature's header.
const HEADER: &str = "payment-signature";

/// The part of the event that we use.
#[derive(Deserialize)]
struct SimulatorEvent {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    created_ms: i64,
    payment: EventPayment,
}

#[derive(Deserialize)]
struct EventPayment {
    id: String,
    /// The booking's id, as we gave it with the charge.
    reference: String,
    amount_minor: i64,
    currency: String,
    #[serde(default)]
    failure: Option<String>,
}

fn read_webhook(
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[String],
    now: Timestamp,
) -> Result<Option<PaymentEvent>, WebhookRefused> {
    signature::verify_header(headers, HEADER, body, secrets, now)?;
    let event: SimulatorEvent =
        serde_json::from_slice(body).map_err(|cause| WebhookRefused::Malformed(cause.to_string()))?;
    parse_event(event)
}

/// The event in our words; `None` for a kind that does not concern us.
fn parse_event(event: SimulatorEvent) -> Result<Option<PaymentEvent>, WebhookRefused> {
    let kind = match event.kind.as_str() {
        "payment.succeeded" => {
            let currency = Currency::parse(&event.payment.currency).ok_or_else(|| {
                WebhookRefused::Malformed("the payment's currency is not an ISO 4217 code".to_owned())
            })?;
            PaymentEventKind::Succeeded { amount: Money::new(event.payment.amount_minor, currency) }
        }
        "payment.failed" => PaymentEventKind::Failed { why: event.payment.failure },
        "payment.voided" => PaymentEventKind::Voided,
        "refund.succeeded" => PaymentEventKind::RefundSettled { number: None },
        _ => return Ok(None),
    };
    let booking = Uuid::parse_str(&event.payment.reference).map_err(|_| WebhookRefused::UnknownPayment)?;
    Ok(Some(PaymentEvent {
        gateway: NAME,
        event_id: event.id,
        booking,
        gateway_ref: Some(event.payment.id),
        kind,
        occurred: Timestamp(event.created_ms),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOKING: &str = "0190d1b2-0000-4000-8000-000000000001";

    fn event(kind: &str, reference: &str, currency: &str) -> SimulatorEvent {
        let payment = EventPayment {
            id: "pay_1".to_owned(),
            reference: reference.to_owned(),
            amount_minor: 1250,
            currency: currency.to_owned(),
            failure: Some("card_declined".to_owned()),
        };
        SimulatorEvent { id: "evt_1".to_owned(), kind: kind.to_owned(), created_ms: 7, payment }
    }

    #[test]
    fn a_success_carries_the_amount_and_the_booking() {
        let news = parse_event(event("payment.succeeded", BOOKING, "EUR")).expect("readable").expect("of interest");
        assert_eq!(news.booking.to_string(), BOOKING);
        let amount = Money::new(1250, Currency::parse("EUR").expect("a code"));
        assert_eq!(news.kind, PaymentEventKind::Succeeded { amount });
        assert_eq!((news.event_id.as_str(), news.occurred), ("evt_1", Timestamp(7)));
    }

    #[test]
    fn an_event_of_another_kind_is_ignored_and_not_refused() {
        assert_eq!(parse_event(event("dispute.opened", BOOKING, "EUR")).expect("readable"), None);
    }

    #[test]
    fn a_reference_that_is_no_booking_is_an_unknown_payment() {
        let refused = parse_event(event("payment.failed", "'; DROP TABLE bookings; --", "EUR"));
        assert!(matches!(refused, Err(WebhookRefused::UnknownPayment)), "{refused:?}");
    }

    #[test]
    fn a_currency_that_is_none_is_malformed() {
        let refused = parse_event(event("payment.succeeded", BOOKING, "euro"));
        assert!(matches!(refused, Err(WebhookRefused::Malformed(_))), "{refused:?}");
    }
}
