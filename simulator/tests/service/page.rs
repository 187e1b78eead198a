//! The payer's page: form, payment, redirect to the merchant.

use reqwest::Response;
use simulator::payment::{PaymentView, Status};
use simulator::webhooks::EventKind;

use crate::merchant::{Merchant, RETURN_URL};

fn location(answer: &Response) -> &str {
    assert_eq!(answer.status(), 303);
    answer.headers()["location"].to_str().expect("an address")
}

async fn text(merchant: &Merchant, url: &str) -> String {
    merchant.client.get(url).send().await.expect("an answer").text().await.expect("a page")
}

#[tokio::test]
async fn a_payer_sees_the_bill_pays_and_is_redirected() {
    let merchant = Merchant::new().await;
    let payment = merchant.open("pay:1", None).await;
    assert_eq!(payment.status, Status::RequiresPayer);
    let answer = merchant.client.get(&payment.page_url).send().await.expect("an answer");
    let policy = answer.headers()["content-security-policy"].to_str().expect("a policy").to_owned();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("form-action 'self' http://127.0.0.1:9"),
        "{policy}"
    );
    assert_eq!(answer.headers()["cache-control"], "no-store");
    let page = answer.text().await.expect("a page");
    assert!(page.contains("€25.00") && page.contains("2 seats, C7 and C8") && page.contains("Rialto &lt;Kino&gt;"));

    let answer = merchant.press(&payment.page_url, "card=paid&action=pay").await;
    assert_eq!(location(&answer), RETURN_URL);
    assert_eq!(merchant.events(1).await[0].kind, EventKind::PaymentSucceeded);
    let over = text(&merchant, &payment.page_url).await;
    assert!(over.contains("id=\"outcome\">Paid<") && over.contains(RETURN_URL) && !over.contains("<form"));
}

#[tokio::test]
async fn every_file_of_the_page_is_served() {
    let merchant = Merchant::new().await;
    let payment = merchant.open("pay:1", None).await;
    let (origin, _) = payment.page_url.split_once("/pay/").expect("an address of a page");
    let page = text(&merchant, &payment.page_url).await;
    let mut files: Vec<&str> = page.split("href=\"/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    files.sort_unstable();
    assert_eq!(files, ["pay.css", "pay.svg"], "{page}");
    for (file, kind) in files.into_iter().zip(["text/css; charset=utf-8", "image/svg+xml"]) {
        let answer = merchant.client.get(format!("{origin}/{file}")).send().await.expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (200, &kind.parse().expect("a type"))
        );
        assert!(!answer.bytes().await.expect("a file").is_empty());
    }
}

#[tokio::test]
async fn every_outcome_redirects_to_the_merchant() {
    for (form, status, failure) in [
        ("card=declined&action=pay", Status::Failed, Some("card_declined")),
        ("card=pending_paid&action=pay", Status::Pending, None),
        ("card=paid&action=cancel", Status::Failed, Some("cancelled_by_payer")),
        ("card=paid", Status::Succeeded, None),
    ] {
        let merchant = Merchant::new().await;
        let payment = merchant.open("pay:1", None).await;
        let answer = merchant.press(&payment.page_url, form).await;
        assert_eq!(location(&answer), RETURN_URL, "{form}");
        let now = merchant.look_up("pay:1").await;
        // On a slow machine the payment may have settled before this request.
        let settled = status == Status::Pending && now.status == Status::Succeeded;
        assert!(now.status == status || settled, "{form}: {:?}", now.status);
        assert_eq!(now.failure.as_deref(), failure, "{form}");
    }
}

#[tokio::test]
async fn submitting_twice_charges_once() {
    let merchant = Merchant::new().await;
    let payment = merchant.open("pay:1", None).await;
    for _ in 0..2 {
        let answer = merchant.press(&payment.page_url, "card=paid&action=pay").await;
        assert_eq!(location(&answer), RETURN_URL);
    }
    let answer = merchant.press(&payment.page_url, "card=paid&action=cancel").await;
    assert_eq!(location(&answer), RETURN_URL);
    assert_eq!(merchant.look_up("pay:1").await.status, Status::Succeeded);
    merchant.open("pay:2", Some("tok_declined")).await;
    merchant.events(2).await;
    assert_eq!(merchant.events_now().len(), 2);
}

#[tokio::test]
async fn an_invalid_choice_shows_the_form_again_and_charges_nothing() {
    let merchant = Merchant::new().await;
    let payment = merchant.open("pay:1", None).await;
    for form in ["card=gold&action=pay", "action=pay", "", "%%%"] {
        let answer = merchant.press(&payment.page_url, form).await;
        assert!(answer.status().is_client_error(), "{form}: {}", answer.status());
        assert!(answer.text().await.expect("a page").contains("role=\"alert\""), "{form}");
    }
    assert_eq!(merchant.look_up("pay:1").await.status, Status::RequiresPayer);
}

#[tokio::test]
async fn an_expired_or_voided_payment_shows_its_outcome() {
    let merchant = Merchant::new().await;
    let mut body = merchant.payment(None);
    body["expires_at_ms"] = 1.into();
    let answer = merchant.post("/v1/payments", "late", &body).send().await.expect("an answer");
    let late: PaymentView = answer.json().await.expect("a payment");
    assert!(text(&merchant, &late.page_url).await.contains("Time is over"));
    let answer = merchant.press(&late.page_url, "card=paid&action=pay").await;
    assert_eq!(location(&answer), format!("/pay/{}", late.id));

    let voided = merchant.open("voided", None).await;
    merchant.void(&voided.id).await;
    assert!(text(&merchant, &voided.page_url).await.contains("Nothing to pay"));
    let answer = merchant.press(&voided.page_url, "card=paid&action=pay").await;
    assert_eq!(location(&answer), format!("/pay/{}", voided.id));
    assert_eq!(merchant.look_up("voided").await.status, Status::Voided);

    let unknown = merchant.client.get(format!("{}/pay/pay_nothing", merchant.base)).send().await.expect("an answer");
    assert_eq!(unknown.status(), 404);
}
