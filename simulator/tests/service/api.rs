//! The merchant API: keys, invalid input, void, refund.

use serde_json::{Value, json};
use simulator::payment::{PaymentView, Status};
use simulator::webhooks::EventKind;

use crate::merchant::Merchant;

async fn error_code(request: reqwest::RequestBuilder) -> (u16, String) {
    let answer = request.send().await.expect("an answer");
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.expect("an error document");
    (status, body["error"]["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_reused_key_returns_the_payment_for_the_same_body_only() {
    let merchant = Merchant::new().await;
    let first = merchant.open("pay:1", None).await;
    assert_eq!(merchant.open("pay:1", None).await, first);
    assert_eq!(merchant.look_up("pay:1").await, first);
    let mut dearer = merchant.payment(None);
    dearer["amount_minor"] = 2600.into();
    let refused = error_code(merchant.post("/v1/payments", "pay:1", &dearer)).await;
    assert_eq!(refused, (422, "key_reused".to_owned()));
}

#[tokio::test]
async fn concurrent_requests_with_one_key_make_one_charge_and_one_event() {
    let merchant = Merchant::new().await;
    let body = merchant.payment(Some("tok_paid"));
    let attempts = (0..50).map(|_| tokio::spawn(merchant.post("/v1/payments", "pay:1", &body).send()));
    let mut ids = Vec::new();
    for attempt in attempts.collect::<Vec<_>>() {
        let answer = attempt.await.expect("joined").expect("an answer");
        let payment: PaymentView = answer.json().await.expect("a payment");
        assert_eq!(payment.status, Status::Succeeded);
        ids.push(payment.id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    merchant.events(1).await;
    // A refund's event arrives after any second event of the charge would have been sent.
    let path = format!("/v1/payments/{}/refunds", ids[0]);
    merchant.post(&path, "refund:1", &json!({ "amount_minor": 1 })).send().await.expect("an answer");
    merchant.events(2).await;
    assert_eq!(merchant.events_now(), [EventKind::PaymentSucceeded, EventKind::RefundSucceeded]);
}

#[tokio::test]
async fn a_request_without_the_key_is_unauthorized() {
    let merchant = Merchant::new().await;
    let url = format!("{}/v1/payments?key=x", merchant.base);
    for request in [merchant.client.get(&url), merchant.client.get(&url).bearer_auth("wrong")] {
        assert_eq!(error_code(request).await, (401, "unauthorized".to_owned()));
    }
}

#[tokio::test]
async fn invalid_input_is_named_and_opens_no_payment() {
    let merchant = Merchant::new().await;
    let cases = [
        ("amount_minor", json!(0), "amount_invalid"),
        ("amount_minor", json!(-1), "amount_invalid"),
        ("amount_minor", json!(i64::MAX), "amount_invalid"),
        ("currency", json!("euro"), "currency_invalid"),
        ("reference", json!(""), "reference_invalid"),
        ("description", json!("x".repeat(2_000)), "description_invalid"),
        ("return_url", json!("javascript:alert(1)"), "return_url_invalid"),
        ("return_url", json!("http://a/\r\nSet-Cookie: x=1"), "return_url_invalid"),
        ("webhook_url", json!("not an address"), "webhook_url_invalid"),
        ("token", json!("tok_nothing"), "token_unknown"),
    ];
    for (field, value, code) in cases {
        let mut body = merchant.payment(None);
        body[field] = value;
        assert_eq!(error_code(merchant.post("/v1/payments", "k", &body)).await, (422, code.to_owned()), "{field}");
    }
    let mut unknown_field = merchant.payment(None);
    unknown_field["extra"] = 1.into();
    assert_eq!(error_code(merchant.post("/v1/payments", "k", &unknown_field)).await.1, "malformed");
    let good = merchant.payment(None);
    assert_eq!(error_code(merchant.post("/v1/payments", "", &good)).await, (400, "key_missing".to_owned()));
    let broken = merchant.post("/v1/payments", "k", &good).body("{");
    assert_eq!(error_code(broken).await, (400, "malformed".to_owned()));
    let large = merchant.post("/v1/payments", "k", &good).body(" ".repeat(20_000));
    assert_eq!(error_code(large).await.0, 413);
    assert_eq!(merchant.get("/v1/payments?key=k").await.status(), 404);
    assert_eq!(merchant.get("/v1/payments").await.status(), 400);
    assert_eq!(merchant.void("pay_unknown").await.status(), 404);
}

#[tokio::test]
async fn a_voided_payment_stays_voided_and_a_charged_one_cannot_be_voided() {
    let merchant = Merchant::new().await;
    let open = merchant.open("pay:1", None).await;
    for _ in 0..2 {
        let answer = merchant.void(&open.id).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.json::<PaymentView>().await.expect("a payment").status, Status::Voided);
    }
    assert_eq!(merchant.events(1).await[0].kind, EventKind::PaymentVoided);
    let charged = merchant.open("pay:2", Some("tok_paid")).await;
    let answer = merchant.void(&charged.id).await;
    assert_eq!(answer.status(), 409);
    let body: Value = answer.json().await.expect("an error");
    assert_eq!(body["error"]["code"], "already_charged");
}

#[tokio::test]
async fn refunds_stay_within_the_charge_and_are_idempotent() {
    let merchant = Merchant::new().await;
    let payment = merchant.open("pay:1", Some("tok_paid")).await;
    let path = format!("/v1/payments/{}/refunds", payment.id);
    for _ in 0..2 {
        let answer =
            merchant.post(&path, "refund:1", &json!({ "amount_minor": 2250 })).send().await.expect("an answer");
        assert_eq!(answer.status(), 201);
        assert_eq!(answer.json::<PaymentView>().await.expect("a payment").refunded_minor, 2250);
    }
    let more = merchant.post(&path, "refund:2", &json!({ "amount_minor": 251 }));
    assert_eq!(error_code(more).await, (422, "above_charge".to_owned()));
    let other = merchant.post(&path, "refund:1", &json!({ "amount_minor": 1 }));
    assert_eq!(error_code(other).await, (422, "key_reused".to_owned()));
    let events = merchant.events(2).await;
    let refund = events.iter().find(|event| event.kind == EventKind::RefundSucceeded).expect("an event of the refund");
    assert_eq!(refund.payment.refunded_minor, 2250);

    let unpaid = merchant.open("pay:2", None).await;
    let path = format!("/v1/payments/{}/refunds", unpaid.id);
    let refused = merchant.post(&path, "refund:3", &json!({ "amount_minor": 1 }));
    assert_eq!(error_code(refused).await, (409, "not_charged".to_owned()));
}

#[tokio::test]
async fn an_expired_payment_is_not_charged_by_token() {
    let merchant = Merchant::new().await;
    let mut body = merchant.payment(Some("tok_paid"));
    body["expires_at_ms"] = 1.into();
    let late: PaymentView =
        merchant.post("/v1/payments", "k", &body).send().await.expect("an answer").json().await.expect("a payment");
    assert_eq!(late.status, Status::RequiresPayer);
    assert_eq!(merchant.void(&late.id).await.status(), 200);
    assert_eq!(merchant.look_up("k").await.status, Status::Voided);
}
