//! Renders the page of a payment as HTML. Every external text is passed through [`escape`].

use domain::money::{Currency, Money};

use crate::cards::{CARDS, Card, EVERYDAY_CARDS};
use crate::payment::{Payment, Status};

/// Renders the page of a payment: the form while it waits for its payer, else the outcome.
pub fn payment(merchant: &str, payment: &Payment, now_ms: i64, notice: Option<&str>) -> String {
    match payment.status {
        Status::RequiresPayer if payment.is_overdue(now_ms) => {
            outcome_page(merchant, payment, "Time is over", "This payment was not made in time. Nothing was charged.")
        }
        Status::RequiresPayer => {
            let declined = payment.failure.map(|_| "That card was declined. Nothing was charged; try another one.");
            page_frame(merchant, "Pay", &form(payment, now_ms, notice.or(declined)))
        }
        Status::Pending => {
            outcome_page(merchant, payment, "Your bank is still deciding", "You do not need to wait here.")
        }
        Status::Succeeded => outcome_page(merchant, payment, "Paid", "Thank you. This payment is complete."),
        Status::Voided => {
            outcome_page(merchant, payment, "Nothing to pay", "This payment was cancelled. Nothing was charged.")
        }
        Status::Failed => {
            outcome_page(merchant, payment, "Not paid", "This payment did not go through. Nothing was charged.")
        }
    }
}

/// Renders the page for an unknown payment id.
pub fn unknown(merchant: &str) -> String {
    let body =
        "<h1>No such payment</h1><p class=\"quiet\">The address is incomplete, or the payment no longer exists.</p>";
    page_frame(merchant, "No such payment", body)
}

fn outcome_page(merchant: &str, payment: &Payment, title: &str, words: &str) -> String {
    let body = format!(
        "<h1 id=\"outcome\">{title}</h1><p class=\"quiet\">{words}</p>{}<a class=\"button\" id=\"back\" href=\"{}\">Back to {}</a>",
        bill(payment),
        escape(payment.back_url()),
        escape(merchant),
    );
    page_frame(merchant, title, &body)
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
pub(super) mod tests {
    use super::*;
    use crate::payment::{NewPayment, Protocol};

    pub(in crate::page) fn payment_of(description: &str) -> Payment {
        Payment {
            id: "pay_1".to_owned(),
            request: NewPayment {
                amount_minor: 2500,
                currency: "EUR".to_owned(),
                reference: "b".to_owned(),
                description: description.to_owned(),
                return_url: "https://rowlock.example/?a=1&b=\"2".to_owned(),
                cancel_url: Some("https://rowlock.example/?c=\"2".to_owned()),
                webhook_url: "https://rowlock.example/hook".to_owned(),
                expires_at_ms: 420_000,
                token: None,
                protocol: Protocol::Own,
            },
            status: Status::RequiresPayer,
            failure: None,
            fingerprint: None,
            taken_minor: 0,
            refunds: Vec::new(),
        }
    }

    #[test]
    fn the_form_offers_every_card_with_the_first_one_selected() {
        let page = payment("Rialto", &payment_of("C7, C8"), 0, None);
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
            let page = payment(hostile, &Payment { status, ..payment_of(hostile) }, 0, None);
            assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
            assert!(!page.contains("=\"2"), "{page}");
        }
    }

    #[test]
    fn an_ended_payment_shows_its_outcome_and_a_link_back() {
        let page = payment("Rialto", &payment_of("C7"), 420_000, None);
        assert!(page.contains("Time is over") && page.contains("id=\"back\"") && !page.contains("<form"));
        // A payer who gave no card returns to the cancel URL.
        assert!(page.contains("/?c="), "{page}");
        let paid = Payment { status: Status::Succeeded, ..payment_of("C7") };
        assert!(payment("Rialto", &paid, 0, None).contains("/?a=1"));
    }
}
