//! Services that are down, hang, or send invalid answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;

use super::setup::{API_KEY, ContractSetup, SECRET, ids_without_gateway_ref, port};
use crate::calls::{MAX_ANSWER_BYTES, MAX_ATTEMPTS};
use crate::{CallDeadlines, Gateway, GatewayError};
use platform::ids;

/// Starts a service that gives these answers in turn and then repeats the last. Returns its address and request count.
async fn serve_answers(answers: Vec<(StatusCode, &'static str)>) -> (String, Arc<AtomicU32>) {
    let requests = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&requests);
    let router = Router::new().fallback(move || {
        let turn = counter.fetch_add(1, Ordering::SeqCst) as usize;
        let answer = answers[turn.min(answers.len() - 1)];
        async move { answer }
    });
    let (listener, base) = port().await;
    tokio::spawn(async move { axum::serve(listener, router).await.expect("serving") });
    (base, requests)
}

async fn charge_error(setup: &ContractSetup, gateway: &dyn Gateway) -> GatewayError {
    gateway.charge(&setup.charge(Some("paid"))).await.expect_err("no usable answer")
}

pub(super) async fn a_refused_connection_returns_not_sent(setup: ContractSetup) {
    let (listener, base) = port().await;
    drop(listener);
    let error = charge_error(&setup, &*setup.protocol.gateway_at(&base)).await;
    assert!(matches!(error, GatewayError::NotSent(_)), "{error}");
}

pub(super) async fn a_wrong_api_key_returns_not_sent(setup: ContractSetup) {
    let gateway =
        setup.protocol.gateway(&setup.base, "http://127.0.0.1:9", "wrong key", &[SECRET], CallDeadlines::default());
    let error = charge_error(&setup, &*gateway).await;
    assert!(matches!(error, GatewayError::NotSent(_)), "{error}");
}

pub(super) async fn a_timeout_returns_unreachable(setup: ContractSetup) {
    // The system accepts connections; nothing reads them.
    let (_listener, base) = port().await;
    let deadlines = CallDeadlines { per_attempt: Duration::from_millis(100), in_total: Duration::from_secs(1) };
    let gateway = setup.protocol.gateway(&base, "http://127.0.0.1:9", API_KEY, &[SECRET], deadlines);
    let error = charge_error(&setup, &*gateway).await;
    assert!(matches!(error, GatewayError::Unreachable(_)), "{error}");
}

pub(super) async fn temporary_failures_are_retried_and_then_return_unreachable(setup: ContractSetup) {
    for answer in [
        (StatusCode::INTERNAL_SERVER_ERROR, "oops"),
        (StatusCode::SERVICE_UNAVAILABLE, ""),
        (StatusCode::TOO_MANY_REQUESTS, ""),
        (StatusCode::OK, "<html>not what was asked</html>"),
        (StatusCode::FOUND, ""),
    ] {
        let (base, requests) = serve_answers(vec![answer]).await;
        let error = charge_error(&setup, &*setup.protocol.gateway_at(&base)).await;
        assert!(matches!(error, GatewayError::Unreachable(_)), "{answer:?}: {error}");
        assert_eq!(requests.load(Ordering::SeqCst), MAX_ATTEMPTS, "{answer:?}");
    }
}

pub(super) async fn a_lost_answer_followed_by_unauthorized_returns_unreachable(setup: ContractSetup) {
    let answers = vec![(StatusCode::BAD_GATEWAY, ""), (StatusCode::UNAUTHORIZED, "")];
    let (base, _) = serve_answers(answers).await;
    let error = charge_error(&setup, &*setup.protocol.gateway_at(&base)).await;
    assert!(matches!(error, GatewayError::Unreachable(_)), "the first attempt may have taken effect: {error}");
}

pub(super) async fn a_refusal_is_not_retried(setup: ContractSetup) {
    let (base, requests) = serve_answers(vec![(StatusCode::UNPROCESSABLE_ENTITY, "go away")]).await;
    let error = charge_error(&setup, &*setup.protocol.gateway_at(&base)).await;
    assert!(matches!(&error, GatewayError::Refused { status: 422, code, .. } if code == "unreadable"), "{error}");
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

/// `selling` counts this status as a declined card, whatever the code.
pub(super) async fn a_payment_required_answer_is_a_refusal(setup: ContractSetup) {
    let of_card = r#"{"error":{"type":"card_error","code":"limit_reached","message":"Use another card."}}"#;
    for body in [of_card, "go away"] {
        let (base, requests) = serve_answers(vec![(StatusCode::PAYMENT_REQUIRED, body)]).await;
        let error = charge_error(&setup, &*setup.protocol.gateway_at(&base)).await;
        assert!(matches!(&error, GatewayError::Refused { status: 402, .. }), "{body}: {error}");
        assert_eq!(requests.load(Ordering::SeqCst), 1, "{body}");
    }
}

pub(super) async fn an_answer_above_the_size_limit_returns_unreachable(setup: ContractSetup) {
    static LONG: [u8; MAX_ANSWER_BYTES + 1] = [b' '; MAX_ANSWER_BYTES + 1];
    let spaces = std::str::from_utf8(&LONG).expect("spaces");
    let (base, _) = serve_answers(vec![(StatusCode::OK, spaces)]).await;
    let error =
        setup.protocol.gateway_at(&base).status(&ids_without_gateway_ref(ids::new_id())).await.expect_err("too long");
    assert!(matches!(error, GatewayError::Unreachable(_)), "{error}");
}
