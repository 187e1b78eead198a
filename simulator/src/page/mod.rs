//! The payer's page: `GET /pay/{id}` shows it, `POST /pay/{id}` pays or cancels and redirects to the
//! merchant. It has no scripts; the URL is the payer's only secret.

use axum::Router;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use domain::money::{Currency, Money};
use reqwest::Url;
use serde::Deserialize;
use tokio::time::sleep;

use crate::cards::{self, AnswerTiming, CARDS, Card, EVERYDAY_CARDS};
use crate::charging::Simulator;
use crate::clock;
use crate::ledger::LedgerError;
use crate::payment::{NewPayment, Payment, Status};

const STYLESHEET: &str = include_str!("pay.css");
const ICON: &str = include_str!("icon.svg");

/// Builds the routes of the page.
pub fn routes() -> Router<Simulator> {
    Router::new()
        .route("/pay/{id}", get(show).post(submit))
        .route("/pay.css", get(async || file("text/css; charset=utf-8", STYLESHEET)))
        .route("/pay.svg", get(async || file("image/svg+xml", ICON)))
}

fn file(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "max-age=300")], text)
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
        Err(LedgerError::QueueFull) => {
            show_form_again("Very many people are paying right now. Please try again.", StatusCode::SERVICE_UNAVAILABLE)
        }
        Err(_) => not_found_page(&simulator),
    }
}

fn page_of(
    simulator: &Simulator,
    payment: &Payment,
    now_ms: i64,
    notice: Option<&str>,
    status: StatusCode,
) -> Response {
    let body = render_payment(&simulator.settings.merchant, payment, now_ms, notice);
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
    (StatusCode::NOT_FOUND, headers, Html(render_unknown(&simulator.settings.merchant))).into_response()
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

/// Renders the page of a payment: the form while it waits for its payer, else the outcome. Every external text is passed
/// through [`escape`].
fn render_payment(merchant: &str, payment: &Payment, now_ms: i64, notice: Option<&str>) -> String {
    let (title, words) = match payment.status {
        Status::RequiresPayer if !payment.is_overdue(now_ms) => {
            let declined = payment.failure.map(|_| "That card was declined. Nothing was charged; try another one.");
            return page_frame(merchant, "Pay", &form(payment, now_ms, notice.or(declined)));
        }
        Status::RequiresPayer => ("Time is over", "This payment was not made in time. Nothing was charged."),
        Status::Pending => ("Your bank is still deciding", "You do not need to wait here."),
        Status::Succeeded => ("Paid", "Thank you. This payment is complete."),
        Status::Voided => ("Nothing to pay", "This payment was cancelled. Nothing was charged."),
        Status::Failed => ("Not paid", "This payment did not go through. Nothing was charged."),
    };
    let body = format!(
        "<h1 id=\"outcome\">{title}</h1><p class=\"quiet\">{words}</p>{}<a class=\"button\" id=\"back\" href=\"{}\">Back to {}</a>",
        bill(payment),
        escape(payment.back_url()),
        escape(merchant),
    );
    page_frame(merchant, title, &body)
}

fn render_unknown(merchant: &str) -> String {
    let body =
        "<h1>No such payment</h1><p class=\"quiet\">The address is incomplete, or the payment no longer exists.</p>";
    page_frame(merchant, "No such payment", body)
}

fn form(payment: &Payment, now_ms: i64, notice: Option<&str>) -> String {
    let notice = notice.map(|words| format!("<p class=\"notice\" role=\"alert\">{words}</p>")).unwrap_or_default();
    let everyday: String =
        CARDS[..EVERYDAY_CARDS].iter().enumerate().map(|(at, card)| card_option(card, at == 0)).collect();
    let unusual: String = CARDS[EVERYDAY_CARDS..].iter().map(|card| card_option(card, false)).collect();
    format!(
        r#"{bill}{notice}
<form method="post">
<fieldset><legend>Choose how the bank will answer</legend>
{everyday}
<details><summary>Rarer cases</summary>
{unusual}
</details>
</fieldset>
<p class="time" id="time-left">{left}</p>
<button class="button" id="pay" name="action" value="pay">Pay {amount}</button>
<button class="button plain" id="cancel" name="action" value="cancel" formnovalidate>Cancel and go back</button>
</form>"#,
        bill = bill(payment),
        left = time_left(payment.request.expires_at_ms - now_ms),
        amount = escape(&amount(payment)),
    )
}

fn card_option(card: &Card, first: bool) -> String {
    let checked = if first { " checked" } else { "" };
    format!(
        r#"<label class="card"><input type="radio" name="card" value="{name}" required{checked}><span class="words"><strong>{title}</strong><small>{explanation}</small></span><span class="ending">•••• {ending}</span></label>
"#,
        name = card.name,
        title = card.title,
        explanation = card.explanation,
        ending = card.ending,
    )
}

fn bill(payment: &Payment) -> String {
    format!(
        "<section class=\"bill\" aria-label=\"What you pay for\"><p class=\"amount\" id=\"amount\">{}</p><p id=\"description\"><bdi>{}</bdi></p></section>",
        escape(&amount(payment)),
        escape(&payment.request.description),
    )
}

fn amount(payment: &Payment) -> String {
    match Currency::parse(&payment.request.currency) {
        Some(currency) => Money::new(payment.request.amount_minor, currency).to_string(),
        None => format!("{} {}", payment.request.amount_minor, payment.request.currency),
    }
}

/// Describes the remaining time in words that stay true while the page is read.
fn time_left(remaining_ms: i64) -> String {
    match remaining_ms / 60_000 {
        ..1 => "Less than a minute left to pay".to_owned(),
        1 => "More than a minute left to pay".to_owned(),
        minutes => format!("About {minutes} minutes left to pay"),
    }
}

fn page_frame(merchant: &str, title: &str, body: &str) -> String {
    let merchant = escape(merchant);
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · {merchant}</title>
<link rel="icon" href="/pay.svg" type="image/svg+xml">
<link rel="stylesheet" href="/pay.css">
</head>
<body>
<main>
<header><p class="merchant"><bdi>{merchant}</bdi></p><p class="badge">Practice payments</p></header>
{body}
</main>
<footer>A simulator: no real bank, no real money.</footer>
</body>
</html>
"#
    )
}

fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payment_of(description: &str) -> Payment {
        let request = NewPayment {
            description: description.to_owned(),
            return_url: "https://rowlock.example/?a=1&b=\"2".to_owned(),
            cancel_url: Some("https://rowlock.example/?c=\"2".to_owned()),
            ..NewPayment::example()
        };
        Payment::new("pay_1".to_owned(), request)
    }

    #[test]
    fn the_form_offers_every_card_with_the_first_one_selected() {
        let page = render_payment("Rialto", &payment_of("C7, C8"), 0, None);
        for card in &CARDS {
            assert!(page.contains(&format!("value=\"{}\"", card.name)), "{}", card.name);
            assert!(page.contains(card.title) && page.contains(card.explanation), "{}", card.name);
        }
        assert_eq!(page.matches(" checked>").count(), 1);
        assert!(page.contains("value=\"paid\" required checked"));
        assert!(page.contains("id=\"pay\"") && page.contains("id=\"cancel\"") && page.contains("Pay €25.00"));
        assert!(page.contains("About 7 minutes left"));
        assert!(!page.contains("<script") && !page.contains("style="));
    }

    #[test]
    fn external_texts_are_escaped() {
        let hostile = "</title><script>alert('1')</script><img src=x onerror=\"y\">";
        for status in [Status::RequiresPayer, Status::Failed, Status::Voided, Status::Pending, Status::Succeeded] {
            let page = render_payment(hostile, &Payment { status, ..payment_of(hostile) }, 0, None);
            assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
            assert!(!page.contains("=\"2"), "{page}");
        }
    }

    #[test]
    fn an_ended_payment_shows_its_outcome_and_a_link_back() {
        let page = render_payment("Rialto", &payment_of("C7"), 420_000, None);
        assert!(page.contains("Time is over") && page.contains("id=\"back\"") && !page.contains("<form"));
        // A payer who gave no card returns to the cancel URL.
        assert!(page.contains("/?c="), "{page}");
        let paid = Payment { status: Status::Succeeded, ..payment_of("C7") };
        assert!(render_payment("Rialto", &paid, 0, None).contains("/?a=1"));
    }

    #[test]
    fn the_form_may_redirect_to_the_merchant_only() {
        let policy = |return_url: &str, cancel_url: Option<&str>| {
            let (return_url, cancel_url) = (return_url.to_owned(), cancel_url.map(str::to_owned));
            content_policy(&NewPayment { return_url, cancel_url, ..NewPayment::example() })
        };
        let same_origin = policy("https://rowlock.example/b/7?x=1", Some("https://rowlock.example/b/7"));
        assert!(same_origin.ends_with("form-action 'self' https://rowlock.example"), "{same_origin}");
        assert!(policy("http://127.0.0.1:3000/b", None).ends_with("'self' http://127.0.0.1:3000"));
        assert!(policy("http://[::1]:3000/b", None).ends_with("'self' http:"));
        let two = policy("https://rowlock.example/b", Some("https://other.example/c"));
        assert!(two.ends_with("'self' https://rowlock.example https://other.example"), "{two}");
    }
}
