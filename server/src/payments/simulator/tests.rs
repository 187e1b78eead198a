//! The client against the simulator itself, and against servers that misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use domain::time::Timestamp;
use tokio::net::TcpListener;

use super::super::gateway::refund_key;
use super::*;

/// How long the simulator's bank thinks in these tests.
const PENDING: Duration = Duration::from_millis(200);
/// How long a test waits for something to come true.
const DEADLINE: Duration = Duration::from_secs(20);

fn money(minor: i64) -> Money {
    Money::new(minor, Currency::parse("EUR").expect("a code"))
}

fn gateway(base: &str) -> SimulatorGateway {
    SimulatorGateway::new(base, "key", "http://127.0.0.1:9").expect("a client")
}

async fn simulator() -> SimulatorGateway {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let simulator = ::simulator::Simulator::new(::simulator::Settings {
        api_key: "key".to_owned(),
        webhook_secret: "secret".to_owned(),
        public_url: base.clone(),
        merchant: "Rialto".to_owned(),
        pending: PENDING,
        slow: PENDING,
        no_answer: DEADLINE,
        late: PENDING,
        backoff_base: PENDING,
    })
    .expect("a simulator");
    tokio::spawn(::simulator::serve(listener, simulator, std::future::pending()));
    gateway(&base)
}

/// A server that answers every request in the same way, and counts them.
async fn server_that_says(status: StatusCode, body: &'static str) -> (SimulatorGateway, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&asked);
    let router = Router::new().fallback(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        async move { (status, body) }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await.expect("serving") });
    (gateway(&base), asked)
}

fn charge(token: Option<&str>) -> Charge {
    Charge {
        booking: ids::new_id(),
        reference: "K7QM-2XPA".to_owned(),
        amount: money(2500),
        description: "ليلى <b>👩‍👩‍👧</b>\r\n".to_owned(),
        return_url: "http://127.0.0.1:9/bookings/7".to_owned(),
        token: token.map(str::to_owned),
        expires_at: Timestamp(4_102_444_800_000),
    }
}

async fn status(gateway: &SimulatorGateway, booking: Uuid) -> PaymentStatus {
    gateway.status(booking).await.expect("an answer").expect("a payment").status
}

#[tokio::test]
async fn a_charge_without_a_token_leads_to_the_gateways_page() {
    let gateway = simulator().await;
    let charge = charge(None);
    let first = gateway.charge(&charge).await.expect("opened");
    let PaymentStatus::Pending { pay_url: Some(page) } = &first.status else { panic!("{first:?}") };
    assert!(page.starts_with("http://127.0.0.1:") && page.ends_with(&first.gateway_ref), "{page}");
    assert_eq!(gateway.charge(&charge).await.expect("repeated"), first);
}

#[tokio::test]
async fn tokens_are_decided_at_once_or_later() {
    let gateway = simulator().await;
    let paid = gateway.charge(&charge(Some("tok_paid"))).await.expect("an answer").status;
    assert_eq!(paid, PaymentStatus::Succeeded { amount: money(2500) });
    let declined = gateway.charge(&charge(Some("tok_declined"))).await.expect("an answer").status;
    assert_eq!(declined, PaymentStatus::Failed { why: "card_declined".to_owned() });
    let pending = charge(Some("tok_pending_paid"));
    let answer = gateway.charge(&pending).await.expect("an answer");
    assert_eq!(answer.status, PaymentStatus::Pending { pay_url: None });
    let settled = async {
        while status(&gateway, pending.booking).await != paid {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, settled).await.expect("settled in time");
}

#[tokio::test]
async fn void_says_voided_charged_or_unknown() {
    let gateway = simulator().await;
    assert_eq!(gateway.void(ids::new_id()).await.expect("an answer"), VoidAnswer::Unknown);
    assert_eq!(gateway.status(ids::new_id()).await.expect("an answer"), None);
    for token in [None, Some("tok_declined")] {
        let open = charge(token);
        gateway.charge(&open).await.expect("opened");
        for _ in 0..2 {
            assert_eq!(gateway.void(open.booking).await.expect("an answer"), VoidAnswer::Voided);
        }
    }
    let paid = charge(Some("tok_paid"));
    gateway.charge(&paid).await.expect("paid");
    assert_eq!(gateway.void(paid.booking).await.expect("an answer"), VoidAnswer::AlreadyCharged(money(2500)));
}

#[tokio::test]
async fn a_voided_payment_charged_again_stays_voided() {
    let gateway = simulator().await;
    let open = charge(None);
    gateway.charge(&open).await.expect("opened");
    gateway.void(open.booking).await.expect("voided");
    assert_eq!(gateway.charge(&open).await.expect("an answer").status, PaymentStatus::Voided);
}

#[tokio::test]
async fn a_refund_repeats_harmlessly_and_never_exceeds_the_charge() {
    let gateway = simulator().await;
    let paid = charge(Some("tok_paid"));
    gateway.charge(&paid).await.expect("paid");
    let (whole, part) = (refund_key(paid.booking, 0), refund_key(paid.booking, 1));
    let too_much = gateway.refund(paid.booking, money(2501), &whole).await.expect_err("too much");
    assert!(
        matches!(&too_much, GatewayError::Refused { status: 422, code, .. } if code == "above_charge"),
        "{too_much}"
    );
    for _ in 0..2 {
        gateway.refund(paid.booking, money(1000), &part).await.expect("refunded in part");
        gateway.refund(paid.booking, money(1250), &whole).await.expect("refunded");
    }
    let payment = gateway.status(paid.booking).await.expect("an answer").expect("a payment");
    assert_eq!(payment.refunded, money(2250));
    let above = gateway.refund(paid.booking, money(251), &refund_key(paid.booking, 2)).await.expect_err("too much");
    assert!(matches!(&above, GatewayError::Refused { code, .. } if code == "above_charge"), "{above}");
    let other = gateway.refund(paid.booking, money(1), &whole).await.expect_err("the same key, another amount");
    assert!(matches!(&other, GatewayError::Refused { code, .. } if code == "key_reused"), "{other}");
    let unknown = gateway.refund(ids::new_id(), money(1), &whole).await.expect_err("nothing to refund");
    assert!(matches!(&unknown, GatewayError::Refused { code, .. } if code == "unknown_payment"), "{unknown}");
}

#[tokio::test]
async fn a_changed_charge_under_the_same_booking_is_refused_and_not_repeated() {
    let gateway = simulator().await;
    let open = charge(None);
    gateway.charge(&open).await.expect("opened");
    let changed = gateway.charge(&Charge { amount: money(1), ..open }).await.expect_err("refused");
    assert!(matches!(&changed, GatewayError::Refused { status: 422, code, .. } if code == "key_reused"), "{changed}");
}

#[tokio::test]
async fn a_gateway_that_is_down_is_unreachable_and_we_do_not_know() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let error = gateway(&base).charge(&charge(None)).await.expect_err("nobody there");
    assert!(matches!(error, GatewayError::Unreachable(_)), "{error}");
}

#[tokio::test]
async fn passing_failures_are_repeated_a_few_times_and_then_unknown() {
    for (says, body) in [
        (StatusCode::INTERNAL_SERVER_ERROR, "oops"),
        (StatusCode::SERVICE_UNAVAILABLE, ""),
        (StatusCode::TOO_MANY_REQUESTS, ""),
        (StatusCode::OK, "<html>not what was asked</html>"),
        (StatusCode::FOUND, ""),
    ] {
        let (gateway, asked) = server_that_says(says, body).await;
        let error = gateway.charge(&charge(None)).await.expect_err("no usable answer");
        assert!(matches!(error, GatewayError::Unreachable(_)), "{says}: {error}");
        assert_eq!(asked.load(Ordering::SeqCst), MAX_ATTEMPTS, "{says}");
    }
}

#[tokio::test]
async fn a_definite_no_is_asked_once() {
    let (gateway, asked) = server_that_says(StatusCode::FORBIDDEN, "go away").await;
    let error = gateway.charge(&charge(None)).await.expect_err("refused");
    assert!(matches!(&error, GatewayError::Refused { status: 403, code, .. } if code == "unreadable"), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    static LONG: [u8; MAX_ANSWER_BYTES + 1] = [b' '; MAX_ANSWER_BYTES + 1];
    let (gateway, _) = server_that_says(StatusCode::OK, std::str::from_utf8(&LONG).expect("spaces")).await;
    let error = gateway.status(ids::new_id()).await.expect_err("too long");
    assert!(matches!(error, GatewayError::Unreachable(_)), "{error}");
}
