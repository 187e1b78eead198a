//! The payer's page: `GET /pay/{id}` shows it, `POST /pay/{id}` pays or cancels and redirects to the
//! merchant. It has no scripts; the URL is the payer's only secret.

mod html;

use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Router, http::HeaderMap};
use reqwest::Url;
use serde::Deserialize;
use tokio::time::sleep;

use crate::cards::{self, AnswerTiming};
use crate::charging::{ChargingError, Simulator};
use crate::clock;
use crate::payment::{NewPayment, Payment, Status};

const STYLESHEET: &str = include_str!("pay.css");
const ICON: &str = include_str!("icon.svg");

/// Builds the routes of the page.
pub fn routes() -> Router<Simulator> {
    Router::new()
        .route("/pay/{id}", get(show).post(submit))
        .route("/pay.css", get(stylesheet))
        .route("/pay.svg", get(icon))
}

async fn stylesheet() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "max-age=300")], STYLESHEET)
}

async fn icon() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "max-age=300")], ICON)
}

async fn show(State(simulator): State<Simulator>, Path(id): Path<String>) -> Response {
    let now_ms = clock::now_ms();
    match simulator.ledger.get(&id) {
        Ok(payment) => page_of(&simulator, &payment, now_ms, None, StatusCode::OK),
        Err(_) => not_found_page(&simulator),
    }
}

#[derive(Deserialize)]
struct PaymentForm {
    #[serde(default)]
    card: String,
    #[serde(default)]
    action: String,
}

async fn submit(
    State(simulator): State<Simulator>,
    Path(id): Path<String>,
    form: Result<Form<PaymentForm>, FormRejection>,
) -> Response {
    let now_ms = clock::now_ms();
    let Ok(payment) = simulator.ledger.get(&id) else { return not_found_page(&simulator) };
    let show_form_again = |words, status| page_of(&simulator, &payment, now_ms, Some(words), status);
    let Ok(Form(submitted)) = form else {
        return show_form_again("We could not read your choice. Please choose again.", StatusCode::BAD_REQUEST);
    };
    let (outcome, answer) = if submitted.action == "cancel" {
        (simulator.cancel_by_payer(&id), AnswerTiming::Prompt)
    } else if let Some(card) = cards::by_token(&format!("tok_{}", submitted.card)) {
        // A program may name the card number after `@`, as in a token.
        let fingerprint = cards::fingerprint(&format!("tok_{}", submitted.card));
        (simulator.pay(&id, card, fingerprint), card.answer)
    } else {
        return show_form_again("Please choose a card.", StatusCode::UNPROCESSABLE_ENTITY);
    };
    match outcome {
        Ok(outcome) => {
            // The page always answers: only API requests may stay without an answer.
            if outcome.changed && answer == AnswerTiming::Slow {
                sleep(simulator.settings.slow).await;
            }
            // The payment still waits for its payer: it has expired, or another try is possible.
            let open = matches!(outcome.payment.status, Status::Voided | Status::RequiresPayer);
            let left = submitted.action == "cancel" && outcome.payment.allows_retry();
            let next = if open && !left { format!("/pay/{id}") } else { outcome.payment.back_url().to_owned() };
            (private_headers(), Redirect::to(&next)).into_response()
        }
        Err(ChargingError::QueueFull) => {
            show_form_again("Very many people are paying right now. Please try again.", StatusCode::SERVICE_UNAVAILABLE)
        }
        Err(ChargingError::Refused(_)) => not_found_page(&simulator),
    }
}

fn page_of(
    simulator: &Simulator,
    payment: &Payment,
    now_ms: i64,
    notice: Option<&str>,
    status: StatusCode,
) -> Response {
    let body = html::payment(&simulator.settings.merchant, payment, now_ms, notice);
    let mut headers = private_headers();
    let policy = content_policy(&payment.request);
    headers
        .insert(header::CONTENT_SECURITY_POLICY, HeaderValue::try_from(policy).unwrap_or_else(|_| strictest_policy()));
    let remaining_ms = payment.request.expires_at_ms - now_ms;
    if payment.status == Status::RequiresPayer && !payment.is_overdue(now_ms) {
        // The page reloads once, at the expiry, so that no choice is interrupted before it.
        headers.insert(header::REFRESH, HeaderValue::from(remaining_ms / 1_000 + 1));
    }
    (status, headers, Html(body)).into_response()
}

fn not_found_page(simulator: &Simulator) -> Response {
    let mut headers = private_headers();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(BASE_POLICY));
    (StatusCode::NOT_FOUND, headers, Html(html::unknown(&simulator.settings.merchant))).into_response()
}

const BASE_POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'";

fn strictest_policy() -> HeaderValue {
    HeaderValue::from_static("default-src 'none'")
}

/// Builds the content security policy. The form may redirect to the merchant: in Chromium `form-action`
/// applies to redirects as well. A policy cannot name an IPv6 address, so it allows the scheme there.
fn content_policy(request: &NewPayment) -> String {
    let mut sources = vec![source_of(&request.return_url)];
    sources.extend(request.cancel_url.as_deref().map(source_of));
    sources.dedup();
    format!("{BASE_POLICY}; form-action 'self' {}", sources.join(" "))
}

/// Returns the policy source of a URL.
fn source_of(address: &str) -> String {
    match Url::parse(address) {
        Ok(url) if url.host_str().is_some_and(|host| host.starts_with('[')) => format!("{}:", url.scheme()),
        Ok(url) => url.origin().ascii_serialization(),
        Err(_) => String::new(),
    }
}

/// Headers against caching and against leaking the URL of the page.
fn private_headers() -> HeaderMap {
    HeaderMap::from_iter([
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_may_redirect_to_the_merchant_only() {
        let policy = |return_url: &str, cancel_url: Option<&str>| {
            let (return_url, cancel_url) = (return_url.to_owned(), cancel_url.map(str::to_owned));
            content_policy(&NewPayment { return_url, cancel_url, ..html::tests::payment_of("C7").request })
        };
        let same_origin = policy("https://rowlock.example/b/7?x=1", Some("https://rowlock.example/b/7"));
        assert!(same_origin.ends_with("form-action 'self' https://rowlock.example"), "{same_origin}");
        assert!(policy("http://127.0.0.1:3000/b", None).ends_with("'self' http://127.0.0.1:3000"));
        assert!(policy("http://[::1]:3000/b", None).ends_with("'self' http:"));
        let two = policy("https://rowlock.example/b", Some("https://other.example/c"));
        assert!(two.ends_with("'self' https://rowlock.example https://other.example"), "{two}");
    }
}
