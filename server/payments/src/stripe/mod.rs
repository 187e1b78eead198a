//! Stripe as a [`Gateway`]: PaymentIntents for payment methods that the client already has, Checkout Sessions for its page.
//! See <https://docs.stripe.com/api>; base address and keys come from the environment.
//!
//! A payment is found by its Stripe id (`pi_…`, `cs_…`) once that is recorded, and before by the booking's id in its metadata.
//! Search lags by a minute, so an empty result proves nothing; a void therefore *bars* the charge's idempotency key instead
//! ([`StripeGateway::bar`]).
//!
//! Stripe repeats a key's first answer for a day, whatever happened to the payment since. So a repeated charge may return a
//! stale status; [`Gateway::status`] and webhooks have the current one.

mod ledger;
mod objects;
mod refunds;
mod webhook;

use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use axum::http::HeaderMap;
use clap::Args;
use domain::money::Money;
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::PaymentEvent;
use super::calls::{CallDeadlines, GatewayClient, ParsedAnswer};
use super::gateway::{
    Charge, ChargeAnswer, Gateway, GatewayError, GatewayPayment, LedgerPage, PaymentIds, PaymentStatus, RefundAnswer,
    VoidAnswer, WebhookRefused, Window, none_if_missing, path_of, pay_key,
};
use crate::Adapter;
use objects::{CheckoutSession, ErrorBody, ListPage, PaymentIntent, PaymentMethod, minor_units};
use platform::ids;

/// Its name, also in the address of its webhooks.
const NAME: &str = "stripe";
/// Stripe's own host.
const HOST: &str = "api.stripe.com";
/// Version of Stripe's API that we use, independent of the account's default.
const API_VERSION: &str = "2024-06-20";
/// Time from the end of the booking to the expiry of its Checkout Session, milliseconds. Stripe requires half an hour. We
/// expire the session with the booking; its own expiry is the fallback.
const SESSION_OUTLIVES_BOOKING_MS: i64 = 31 * MINUTE_MS;
/// Maximum number of intents in the search for a booking.
const SEARCH_LIMIT: &str = "10";
/// The type of the error for a key that was used for another request.
const KEY_REUSED: &str = "idempotency_error";
/// Metadata key on all our objects: the booking.
const BOOKING: &str = "booking";
/// …on a refund also its idempotency key, which Stripe itself forgets.
const REFUND: &str = "refund";
/// …and the way of payment: [`BY_TOKEN`], [`ON_PAGE`] or [`BARRED`].
const WAY: &str = "way";
const BY_TOKEN: &str = "token";
const ON_PAGE: &str = "page";
const BARRED: &str = "barred";

/// Settings of Stripe.
#[derive(Clone, Debug, Args)]
pub struct StripeSettings {
    /// Address of Stripe.
    #[arg(long, env = "STRIPE_URL", default_value = "https://api.stripe.com")]
    stripe_url: String,
    /// Our secret key there, `sk_…` or `rk_…`.
    #[arg(long, env = "STRIPE_SECRET_KEY", hide_env_values = true)]
    stripe_secret_key: Option<String>,
    /// The secret of our webhook endpoint there, `whsec_…`; two, separated by a comma, while one is being
    /// replaced.
    #[arg(long, env = "STRIPE_WEBHOOK_SECRET", hide_env_values = true, value_delimiter = ',')]
    stripe_webhook_secret: Vec<String>,
}

/// Its entry among the gateways.
pub(crate) const ADAPTER: Adapter = Adapter {
    name: NAME,
    signature_header: webhook::HEADER,
    address: |settings| ("STRIPE_URL", Some(settings.stripe.stripe_url.as_str())),
    secrets: |settings| {
        let key = settings.stripe.stripe_secret_key.iter().cloned().collect();
        vec![("STRIPE_SECRET_KEY", key), ("STRIPE_WEBHOOK_SECRET", settings.stripe.stripe_webhook_secret.clone())]
    },
    open: |settings, _| Ok(Arc::new(StripeGateway::from_settings(&settings.stripe)?)),
    moves_no_money: |settings| {
        let url = Url::parse(&settings.stripe.stripe_url);
        let is_stripes = url.is_ok_and(|url| url.scheme() == "https" && url.host_str() == Some(HOST));
        (!is_stripes).then(|| ("STRIPE_URL", format!("is not at {HOST}")))
    },
};

/// The client. One per process: it keeps connections open.
#[derive(Clone)]
pub struct StripeGateway {
    calls: GatewayClient,
    base: Url,
    secret_key: String,
    webhook_secrets: Vec<String>,
}

/// Form fields, names with Stripe's brackets.
type FormFields = Vec<(&'static str, String)>;

impl StripeGateway {
    /// The client the settings ask for.
    ///
    /// # Errors
    /// When one of them is missing or cannot be used.
    fn from_settings(settings: &StripeSettings) -> anyhow::Result<Self> {
        anyhow::ensure!(
            settings.stripe_webhook_secret.iter().any(|secret| !secret.is_empty()),
            "STRIPE_WEBHOOK_SECRET is empty: no webhook could be believed"
        );
        let secret_key = settings.stripe_secret_key.as_deref().filter(|key| !key.is_empty());
        let secret_key = secret_key.context("STRIPE_SECRET_KEY is not set")?;
        let secrets = settings.stripe_webhook_secret.clone();
        Self::new(&settings.stripe_url, secret_key, secrets, CallDeadlines::default()).context("STRIPE_URL")
    }

    /// A client of Stripe at `base_url`, whose webhooks are signed with one of `webhook_secrets`.
    ///
    /// # Errors
    /// When `base_url` is not an address, or TLS cannot be set up.
    pub fn new(
        base_url: &str,
        secret_key: &str,
        webhook_secrets: Vec<String>,
        deadlines: CallDeadlines,
    ) -> anyhow::Result<Self> {
        let base = Url::parse(&format!("{}/", base_url.trim_end_matches('/')))?;
        let calls = GatewayClient::new(NAME, deadlines, false)?;
        Ok(Self { calls, base, secret_key: secret_key.to_owned(), webhook_secrets })
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, GatewayError> {
        let url = self.base.join(path).map_err(GatewayError::unreachable)?;
        let request = self.calls.http().request(method, url).bearer_auth(&self.secret_key);
        Ok(request.header("stripe-version", API_VERSION))
    }

    fn post(&self, path: &str, key: &str, fields: &FormFields) -> Result<RequestBuilder, GatewayError> {
        let body = serde_urlencoded::to_string(fields).map_err(GatewayError::unreachable)?;
        let request = self.request(Method::POST, path)?.header("idempotency-key", key);
        Ok(request.header("content-type", "application/x-www-form-urlencoded").body(body))
    }

    async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, GatewayError> {
        self.calls.ask(request, parse_answer).await
    }

    async fn charge_method(&self, charge: &Charge, method: &str) -> Result<ChargeAnswer, GatewayError> {
        let mut fields = vec![
            ("amount", minor_units(charge.amount).to_string()),
            ("currency", charge.amount.currency.code().to_ascii_lowercase()),
            ("confirm", "true".to_owned()),
            ("payment_method", method.to_owned()),
            ("return_url", charge.return_url.clone()),
            ("description", format!("{} · {}", charge.description, charge.reference)),
        ];
        fields.extend(metadata(charge.booking, BY_TOKEN));
        let request = self.post("v1/payment_intents", &pay_key(charge.booking), &fields)?;
        // 402 is an answer: the bank declined the card.
        let read = |status: StatusCode, headers: &HeaderMap, body: &[u8]| {
            let declined = serde_json::from_slice::<ErrorBody>(body).ok().and_then(|body| body.error.payment_intent);
            match declined {
                Some(intent) if status == StatusCode::PAYMENT_REQUIRED => ParsedAnswer::Answer(*intent),
                _ => parse_answer(status, headers, body),
            }
        };
        let intent: PaymentIntent = self.calls.ask(request, read).await?;
        Ok(ChargeAnswer { status: intent.status()?, gateway_ref: intent.id })
    }

    async fn open_page(&self, charge: &Charge) -> Result<ChargeAnswer, GatewayError> {
        let (booking, currency) = (charge.booking.to_string(), charge.amount.currency.code().to_ascii_lowercase());
        let closes_s = charge.expires_at.plus_ms(SESSION_OUTLIVES_BOOKING_MS).0 / SECOND_MS;
        let mut fields = vec![
            ("mode", "payment".to_owned()),
            // Cards and wallets. Methods that take days to settle would outlive the booking.
            ("payment_method_types[0]", "card".to_owned()),
            ("line_items[0][quantity]", "1".to_owned()),
            ("line_items[0][price_data][currency]", currency),
            ("line_items[0][price_data][unit_amount]", minor_units(charge.amount).to_string()),
            ("line_items[0][price_data][product_data][name]", format!("{} · {}", charge.description, charge.reference)),
            ("success_url", charge.return_url.clone()),
            ("cancel_url", charge.cancel_url.clone()),
            ("client_reference_id", booking.clone()),
            ("expires_at", closes_s.to_string()),
            ("payment_intent_data[metadata][booking]", booking),
            ("payment_intent_data[metadata][way]", ON_PAGE.to_owned()),
        ];
        fields.extend(metadata(charge.booking, ON_PAGE));
        let session: CheckoutSession =
            self.ask(self.post("v1/checkout/sessions", &page_key(charge.booking), &fields)?).await?;
        Ok(ChargeAnswer { status: session.status()?, gateway_ref: session.id })
    }

    async fn session(&self, id: &str) -> Result<Option<CheckoutSession>, GatewayError> {
        let path = format!("v1/checkout/sessions/{id}?expand[]=payment_intent.latest_charge");
        none_if_missing(self.ask(self.request(Method::GET, &path)?).await)
    }

    /// The intent of a payment, if Stripe has it and search finds it.
    async fn intent(&self, payment: &PaymentIds) -> Result<Option<PaymentIntent>, GatewayError> {
        match &payment.gateway_ref {
            Some(id) if is_session(id) => Ok(self.session(id).await?.and_then(CheckoutSession::into_intent)),
            Some(id) => {
                let path = format!("v1/payment_intents/{id}?expand[]=latest_charge");
                none_if_missing(self.ask(self.request(Method::GET, &path)?).await)
            }
            None => self.search(payment.booking).await,
        }
    }

    async fn search(&self, booking: Uuid) -> Result<Option<PaymentIntent>, GatewayError> {
        let query = serde_urlencoded::to_string([
            ("query", format!("metadata['{BOOKING}']:'{booking}'")),
            ("limit", SEARCH_LIMIT.to_owned()),
            ("expand[]", "data.latest_charge".to_owned()),
        ]);
        let query = query.map_err(GatewayError::unreachable)?;
        let found: ListPage<PaymentIntent> =
            self.ask(self.request(Method::GET, &format!("v1/payment_intents/search?{query}"))?).await?;
        Ok(found.data.into_iter().find(|intent| intent.way() != Some(BARRED)))
    }

    async fn void_session(&self, payment: &PaymentIds, id: &str) -> Result<VoidAnswer, GatewayError> {
        let request = self.post(&format!("v1/checkout/sessions/{id}/expire"), &void_key(payment.booking), &vec![])?;
        match self.ask::<CheckoutSession>(request).await {
            Ok(_) => Ok(VoidAnswer::Voided),
            // Not open any more: its status decides.
            Err(GatewayError::Refused { .. }) => match self.session(id).await? {
                None => Ok(VoidAnswer::Unknown),
                Some(session) => void_answer(&session.status()?),
            },
            Err(error) => Err(error),
        }
    }

    async fn void_intent(&self, payment: &PaymentIds, id: &str) -> Result<VoidAnswer, GatewayError> {
        let request = self.post(&format!("v1/payment_intents/{id}/cancel"), &void_key(payment.booking), &vec![])?;
        match self.ask::<PaymentIntent>(request).await {
            Ok(_) => Ok(VoidAnswer::Voided),
            Err(GatewayError::Refused { .. }) => match self.intent(payment).await? {
                None => Ok(VoidAnswer::Unknown),
                Some(intent) => void_answer(&intent.status()?),
            },
            Err(error) => Err(error),
        }
    }

    /// Uses up the idempotency key of a charge that cannot be found: creates an intent under it and cancels it at once. From
    /// then on Stripe refuses the charge itself, however late it arrives. If the key is used already, the charge did arrive,
    /// and search will find it in a minute: until then its status is unknown. (A page whose address was never recorded needs
    /// no bar: it cannot be paid.)
    async fn bar(&self, booking: Uuid) -> Result<VoidAnswer, GatewayError> {
        let mut fields = vec![("amount", "100".to_owned()), ("currency", "eur".to_owned())];
        fields.extend(metadata(booking, BARRED));
        match self.ask::<PaymentIntent>(self.post("v1/payment_intents", &pay_key(booking), &fields)?).await {
            Ok(barred) => {
                let known = PaymentIds { booking, gateway_ref: Some(barred.id.clone()) };
                self.void_intent(&known, &barred.id).await.map(|_| VoidAnswer::Voided)
            }
            Err(GatewayError::Refused { code, .. }) if code == KEY_REUSED => {
                Err(GatewayError::Undecided("a charge of this booking is there and cannot be found yet"))
            }
            Err(error) => Err(error),
        }
    }
}

/// The idempotency key of a booking's payment page. It differs from [`pay_key`], because the requests differ.
fn page_key(booking: Uuid) -> String {
    format!("page:{booking}")
}

/// The idempotency key of a void, new for each call. A void is idempotent anyway; under a fixed key Stripe would repeat its
/// first refusal for a day.
fn void_key(booking: Uuid) -> String {
    format!("void:{booking}:{}", ids::new_id())
}

fn metadata(booking: Uuid, way: &str) -> FormFields {
    vec![("metadata[booking]", booking.to_string()), ("metadata[way]", way.to_owned())]
}

fn is_session(id: &str) -> bool {
    id.starts_with("cs_")
}

/// The answer to a void that Stripe refused, by the status of the payment.
fn void_answer(status: &PaymentStatus) -> Result<VoidAnswer, GatewayError> {
    match status {
        PaymentStatus::Succeeded { amount } => Ok(VoidAnswer::AlreadyCharged(*amount)),
        PaymentStatus::Voided => Ok(VoidAnswer::Voided),
        PaymentStatus::Pending { .. } | PaymentStatus::Failed { .. } => {
            Err(GatewayError::Undecided("the payment cannot be cancelled and is not decided"))
        }
    }
}

/// Parses an answer. 4xx is a refusal, except for timeouts, conflicts of the key and rate limits. `Stripe-Should-Retry`
/// precedes the status.
fn parse_answer<T: DeserializeOwned>(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ParsedAnswer<T> {
    if status.is_success() {
        return ParsedAnswer::of_success(status, body);
    }
    let should_retry = headers.get("stripe-should-retry").and_then(|value| value.to_str().ok());
    let is_temporary =
        matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS);
    let message = format!("Stripe answered {status}");
    match serde_json::from_slice::<ErrorBody>(body) {
        _ if should_retry == Some("true") => ParsedAnswer::Retryable(message),
        _ if !status.is_client_error() && should_retry == Some("false") => ParsedAnswer::Unknown(message),
        _ if !status.is_client_error() || is_temporary => ParsedAnswer::Retryable(message),
        Ok(ErrorBody { error }) => {
            let code = error.code.filter(|_| error.kind != KEY_REUSED).unwrap_or(error.kind);
            ParsedAnswer::Refused { code, message: error.message.unwrap_or_default() }
        }
        Err(_) => ParsedAnswer::refused_unreadably(body),
    }
}

#[async_trait]
impl Gateway for StripeGateway {
    fn name(&self) -> &'static str {
        NAME
    }

    fn takes_token(&self, token: &str) -> bool {
        token.starts_with("pm_")
    }

    async fn fingerprint(&self, token: &str) -> Result<Option<String>, GatewayError> {
        let url = path_of(&self.base, &["v1", "payment_methods", token])?;
        let request = self.calls.http().get(url).bearer_auth(&self.secret_key).header("stripe-version", API_VERSION);
        Ok(none_if_missing(self.ask::<PaymentMethod>(request).await)?.and_then(|method| method.fingerprint()))
    }

    async fn charge(&self, charge: &Charge) -> Result<ChargeAnswer, GatewayError> {
        let answer = match &charge.token {
            Some(method) => self.charge_method(charge, method).await,
            None => self.open_page(charge).await,
        };
        match answer {
            // The key was used with other details: the status of that payment is the answer.
            Err(GatewayError::Refused { code, .. }) if code == KEY_REUSED => {
                let found = self.search(charge.booking).await?;
                let intent = found.ok_or(GatewayError::Undecided("its payment cannot be found yet"))?;
                Ok(ChargeAnswer { status: intent.status()?, gateway_ref: intent.id })
            }
            answer => answer,
        }
    }

    async fn status(&self, payment: &PaymentIds) -> Result<Option<GatewayPayment>, GatewayError> {
        if let Some(id) = payment.gateway_ref.as_deref().filter(|id| is_session(id)) {
            return self.session(id).await?.map(CheckoutSession::payment).transpose();
        }
        self.intent(payment).await?.map(PaymentIntent::payment).transpose()
    }

    async fn void(&self, payment: &PaymentIds) -> Result<VoidAnswer, GatewayError> {
        match payment.gateway_ref.as_deref() {
            Some(id) if is_session(id) => self.void_session(payment, id).await,
            Some(id) => self.void_intent(payment, id).await,
            None => match self.search(payment.booking).await? {
                Some(intent) => {
                    let known = PaymentIds { booking: payment.booking, gateway_ref: Some(intent.id.clone()) };
                    self.void_intent(&known, &intent.id).await
                }
                None => self.bar(payment.booking).await,
            },
        }
    }

    async fn refund(
        &self,
        payment: &PaymentIds,
        amount: Money,
        key: &str,
        lost: &[String],
    ) -> Result<RefundAnswer, GatewayError> {
        let found = self.intent(payment).await?;
        let intent = found.ok_or_else(|| GatewayError::refused("unknown_payment", "there is no payment to refund"))?;
        if !intent.currency.eq_ignore_ascii_case(amount.currency.code()) {
            return Err(GatewayError::refused("currency_differs", "the payment was made in another currency"));
        }
        let refund = self.refund_once(payment, &intent, amount, (key, lost)).await?;
        Ok(match refund.status.as_deref() {
            Some("succeeded") => RefundAnswer::Settled,
            _ if refund.has_failed() => RefundAnswer::Failed { why: refund.why_failed(), refund: refund.id },
            _ => RefundAnswer::Pending,
        })
    }

    async fn ledger(&self, window: Window, after: Option<&str>) -> Result<LedgerPage, GatewayError> {
        self.ledger_page(window, after).await
    }

    fn read_webhook(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<PaymentEvent>, WebhookRefused> {
        webhook::read(headers, body, &self.webhook_secrets, now)
    }
}
