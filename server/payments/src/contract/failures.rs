//! Services that are down, hang, or send invalid answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;

use super::setup::{API_KEY, ContractSetup, SECRET, ids_without_gateway_ref, port};
use crate::calls::{MAX_ANSWER_BYTES, MAX_TRIES};
use crate::{CallDeadlines, Gateway, GatewayError};
use platform::ids;

/// A service that gives these answers in turn and then the last one for ever, and counts.
async fn service_that_says(answers: Vec<(StatusCode, &'static str)>) -> (String, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&asked);
    let router = Router::new().fallback(move || {
        let turn = counter.fetch_add(1, Ordering::SeqCst) as usize;
        let answer = answers[turn.min(answers.len() - 1)];
        async move { answer }
    });
    let (listener, base) = port().await;
    tokio::spawn(async move { axum::serve(listener, router).await.expect("serving") });
    (base, asked)
}

async fn charge_error(setup: &ContractSetup, gateway: &dyn Gateway) -> GatewayError {
    gateway.charge(&setup.charge(Some("paid"))).await.expect_err("no usable answer")
}

pub(super) async fn nobody_there_means_it_was_not_asked(setup: ContractSetup) {
    let (listener, base) = port().await;
    drop(listener);
    let error = charge_error(&setup, &*setup.protocol.gateway_at(&base)).await;
    assert!(matches!(error, GatewayError::NotSent(_)), "{error}");
}

pub(super) async fn a_wrong_key_means_it_was_turned_away(setup: ContractSetup) {
    let stranger =
        setup.protocol.gateway(&setup.base, "http://127.0.0.1:9", "wrong key", &[SECRET], CallDeadlines::default());
    let error = charge_error(&setup, &*stranger).await;
    assert!(matches!(error, GatewayError::NotSent(_)), "{error}");
}

pub(super) async fn no_answer_means_we_do_not_know(setup: ContractSetup) {
    // The system accepts connections; nothing reads them.
    let (_listener, base) = port().await;
    let hasty = CallDeadlines { per_attempt: Duration::from_millis(100), in_total: Duration::from_secs(1) };
    let gateway = setup.protocol.gateway(&base, "http://127.0.0.1:9", API_KEY, &[SECRET], hasty);
    let error = charge_error(&setup, &*gateway).await;
    assert!(matches!(error, GatewayError::Unreachable(_)), "{error}");
}

pub(super) async fn passing_failures_are_repeated_a_few_times_and_then_unknown(setup: ContractSetup) {
    for answer in [
        (StatusCode::INTERNAL_SERVER_ERROR, "oops"),
        (StatusCode::SERVICE_UNAVAILABLE, ""),
        (StatusCode::TOO_MANY_REQUESTS, ""),
        (StatusCode::OK, "<html>not what was asked</html>"),
        (StatusCode::FOUND, ""),
    ] {
        let (base, asked) = service_that_says(vec![answer]).await;
        let error = charge_error(&setup, &*setup.protocol.gateway_at(&base)).await;
        assert!(matches!(error, GatewayError::Unreachable(_)), "{answer:?}: {error}");
        assert_eq!(asked.load(Ordering::SeqCst), MAX_TRIES, "{answer:?}");
    }
}

pub(super) async fn a_lost_answer_followed_by_a_closed_door_is_unknown(setup: ContractSetup) {
    let answers = vec![(StatusCode::BAD_GATEWAY, ""), (StatusCode::UNAUTHORIZED, "")];
    let (base, _) = service_that_says(answers).await;
    let error = charge_error(&setup, &*setup.protocol.gateway_at(&base)).await;
    assert!(matches!(error, GatewayError::Unreachable(_)), "the first try may have been heard: {error}");
}

pub(super) async fn a_definite_no_is_asked_once(setup: ContractSetup) {
    let (base, asked) = service_that_says(vec![(StatusCode::UNPROCESSABLE_ENTITY, "go away")]).await;
    let error = charge_error(&setup, &*setup.protocol.gateway_at(&base)).await;
    assert!(matches!(&error, GatewayError::Refused { status: 422, code, .. } if code == "unreadable"), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

pub(super) async fn an_endless_answer_is_not_read_to_its_end(setup: ContractSetup) {
    static LONG: [u8; MAX_ANSWER_BYTES + 1] = [b' '; MAX_ANSWER_BYTES + 1];
    let spaces = std::str::from_utf8(&LONG).expect("spaces");
    let (base, _) = service_that_says(vec![(StatusCode::OK, spaces)]).await;
    let error =
        setup.protocol.gateway_at(&base).status(&ids_without_gateway_ref(ids::new_id())).await.expect_err("too long");
    assert!(matches!(error, GatewayError::Unreachable(_)), "{error}");
}
