//! The subset of Stripe's API. The server's adapter has its own tests.

use serde_json::Value;

use crate::merchant::{API_KEY, Merchant, RETURN_URL};

async fn ask(merchant: &Merchant, path: &str, key: &str, fields: &str) -> (u16, Value) {
    let request = merchant.client.post(format!("{}{path}", merchant.base)).bearer_auth(API_KEY);
    let request = request.header("content-type", "application/x-www-form-urlencoded").header("idempotency-key", key);
    let answer = request.body(fields.to_owned()).send().await.expect("an answer");
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}

async fn read(merchant: &Merchant, path: &str) -> (u16, Value) {
    let answer = merchant.get(path).await;
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}

const INTENT: &str = "amount=2500&currency=eur&metadata[booking]=b7&confirm=true&payment_method=";
const SESSION: &str = "mode=payment&line_items[0][quantity]=1&line_items[0][price_data][currency]=eur\
     &line_items[0][price_data][unit_amount]=2500&line_items[0][price_data][product_data][name]=C7\
     &payment_intent_data[metadata][booking]=b7&success_url=http://127.0.0.1:9/bookings/7&expires_at=4102444800";

#[tokio::test]
async fn an_intent_is_paid_found_and_refunded_and_a_reused_key_is_refused() {
    let merchant = Merchant::new().await;
    let (status, intent) = ask(&merchant, "/v1/payment_intents", "pay:7", &format!("{INTENT}pm_paid")).await;
    assert_eq!((status, &intent["status"], &intent["amount_received"]), (200, &"succeeded".into(), &2500.into()));
    let (_, again) = ask(&merchant, "/v1/payment_intents", "pay:7", &format!("{INTENT}pm_paid")).await;
    assert_eq!(again, intent);
    let (status, refused) = ask(&merchant, "/v1/payment_intents", "pay:7", "amount=1&currency=eur").await;
    assert_eq!((status, &refused["error"]["type"]), (400, &"idempotency_error".into()));
    let (_, found) = read(&merchant, "/v1/payment_intents/search?query=metadata['booking']:'b7'").await;
    assert_eq!(found["data"][0]["id"], intent["id"]);
    let id = intent["id"].as_str().expect("an id");
    let (_, refund) = ask(&merchant, "/v1/refunds", "r", &format!("payment_intent={id}&amount=2000")).await;
    assert_eq!((&refund["status"], &refund["amount"]), (&"succeeded".into(), &2000.into()));
    let (status, _) = ask(&merchant, "/v1/refunds", "r2", &format!("payment_intent={id}&amount=501")).await;
    assert_eq!(status, 400);
    let noted = format!("payment_intent={id}&amount=500&metadata[refund]=r2");
    let (_, rest) = ask(&merchant, "/v1/refunds", "r3", &noted).await;
    assert_eq!((&rest["status"], &rest["metadata"]["refund"]), (&"succeeded".into(), &"r2".into()));
    let (status, none_left) = ask(&merchant, "/v1/refunds", "r4", &format!("payment_intent={id}")).await;
    assert_eq!((status, &none_left["error"]["code"]), (400, &"charge_already_refunded".into()));
    let (_, refunds) = read(&merchant, &format!("/v1/refunds?payment_intent={id}&limit=1")).await;
    assert_eq!((&refunds["data"][0]["id"], &refunds["has_more"]), (&rest["id"], &true.into()));
    let (_, expanded) = read(&merchant, &format!("/v1/payment_intents/{id}?expand[]=latest_charge")).await;
    assert_eq!(expanded["latest_charge"]["amount_refunded"], 2500);
}

#[tokio::test]
async fn a_declined_card_is_a_402_with_its_intent() {
    let merchant = Merchant::new().await;
    let (status, body) = ask(&merchant, "/v1/payment_intents", "k", &format!("{INTENT}pm_declined")).await;
    let error = &body["error"];
    assert_eq!(
        (status, &error["code"], &error["decline_code"]),
        (402, &"card_declined".into(), &"generic_decline".into())
    );
    assert_eq!(error["payment_intent"]["status"], "requires_payment_method");
}

#[tokio::test]
async fn on_the_page_a_declined_card_can_be_followed_by_another() {
    let merchant = Merchant::new().await;
    let (status, session) = ask(&merchant, "/v1/checkout/sessions", "page:7", SESSION).await;
    assert_eq!(
        (status, &session["status"], &session["payment_intent"]),
        (200, &"open".into(), &Value::Null),
        "{session}"
    );
    let page = session["url"].as_str().expect("an address");
    let declined = merchant.press(page, "card=declined&action=pay").await;
    assert_eq!(declined.headers()["location"], page.strip_prefix(&merchant.base).expect("our page"));
    let shown = merchant.client.get(page).send().await.expect("an answer").text().await.expect("a page");
    assert!(shown.contains("role=\"alert\"") && shown.contains("<form"), "{shown}");
    assert_eq!(merchant.press(page, "action=cancel").await.headers()["location"], RETURN_URL);
    assert_eq!(merchant.press(page, "card=paid&action=pay").await.headers()["location"], RETURN_URL);
    let id = session["id"].as_str().expect("an id");
    let (_, paid) = read(&merchant, &format!("/v1/checkout/sessions/{id}?expand[]=payment_intent")).await;
    assert_eq!((&paid["payment_status"], &paid["payment_intent"]["status"]), (&"paid".into(), &"succeeded".into()));
    let (status, _) = ask(&merchant, &format!("/v1/checkout/sessions/{id}/expire"), "e", "").await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn unsupported_parameters_are_refused_by_name() {
    let merchant = Merchant::new().await;
    for (path, fields, named) in [
        ("/v1/payment_intents", "amount=2500&currency=eur&capture_method=manual", "capture_method"),
        ("/v1/payment_intents", "amount=2500", "currency"),
        ("/v1/payment_intents", "amount=x&currency=eur", "amount"),
        ("/v1/payment_intents", "amount=2500&currency=eur&confirm=true&payment_method=tok_paid", "PaymentMethod"),
        ("/v1/checkout/sessions", "mode=subscription", "payment"),
    ] {
        let (status, body) = ask(&merchant, path, "k", fields).await;
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert!((400..500).contains(&status) && message.contains(named), "{fields}: {status} {body}");
    }
    let (status, _) = read(&merchant, "/v1/payment_intents/pi_nothing").await;
    assert_eq!(status, 404);
}
