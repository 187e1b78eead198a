//! Webhooks of a gateway and their verification.

use axum::body::Bytes;
use axum::http::HeaderMap;

use super::setup::{API_KEY, CALL_DEADLINES, ContractSetup, Protocol, SECRET, money};
use crate::signature::SignatureError;
use crate::{Gateway, PaymentEventKind, PaymentStatus, WebhookRefused, refund_key};
use platform::clock;

pub(super) async fn a_payment_outcome_is_sent_as_a_signed_webhook(setup: ContractSetup) {
    let declined = PaymentEventKind::Failed { why: Some("card_declined".to_owned()) };
    for (number, (card, expected)) in
        [("paid", PaymentEventKind::Succeeded { amount: money(2_500) }), ("declined", declined)].into_iter().enumerate()
    {
        let known = setup.charged(Some(card)).await;
        let news = setup.received_events(number + 1).await.remove(number);
        assert_eq!((news.gateway, news.booking), (setup.gateway.name(), known.booking), "{card}");
        assert_eq!((&news.kind, &news.gateway_ref), (&expected, &known.gateway_ref), "{card}");
    }
    let open = setup.charged(None).await;
    let PaymentStatus::Pending { pay_url: Some(page) } = setup.status(&open).await else { panic!("no page") };
    setup.submit_form(&page, "card=another_amount&action=pay").await;
    let news = setup.received_events(3).await.remove(2);
    assert_eq!((news.booking, news.kind), (open.booking, PaymentEventKind::Succeeded { amount: money(2_499) }));
    // The id in the event can be used for status calls as well.
    let known = crate::PaymentIds { booking: open.booking, gateway_ref: news.gateway_ref };
    assert_eq!(setup.status(&known).await, PaymentStatus::Succeeded { amount: money(2_499) });
}

pub(super) async fn refunds_and_voids_are_sent_as_webhooks(setup: ContractSetup) {
    let paid = setup.charged(Some("paid")).await;
    setup.gateway.refund(&paid, money(1_000), &refund_key(paid.booking, 0), &[]).await.expect("refunded");
    let kinds: Vec<PaymentEventKind> = setup.received_events(2).await.into_iter().map(|news| news.kind).collect();
    // Stripe names the refund; in its own protocol the simulator has one payment and one refund.
    let number = (setup.protocol == Protocol::Stripe).then_some(0);
    assert!(kinds.contains(&PaymentEventKind::RefundSettled { number }), "{kinds:?}");
    let open = setup.charged(None).await;
    setup.gateway.void(&open).await.expect("voided");
    assert_eq!(setup.received_events(3).await.pop().map(|news| news.kind), Some(PaymentEventKind::Voided));
}

pub(super) async fn reordered_webhooks_keep_their_event_times(setup: ContractSetup) {
    setup.charged(Some("reordered_webhooks")).await;
    let news = setup.received_events(2).await;
    assert!(
        matches!(news[0].kind, PaymentEventKind::Succeeded { .. })
            && matches!(news[1].kind, PaymentEventKind::Failed { .. })
    );
    assert!(news[1].occurred < news[0].occurred && news[0].event_id != news[1].event_id);
}

fn refusal(gateway: &dyn Gateway, headers: &HeaderMap, body: &[u8]) -> SignatureError {
    match gateway.read_webhook(headers, body, clock::now()) {
        Err(WebhookRefused::Signature(error)) => error,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn a_webhook_with_a_wrong_missing_or_stale_signature_is_refused(setup: ContractSetup) {
    setup.charged(Some("paid")).await;
    let (headers, body) = setup.received_webhooks(1).await.remove(0);
    let other_secret =
        setup.protocol.gateway(&setup.base, "http://127.0.0.1:9", API_KEY, &["another secret"], CALL_DEADLINES);
    assert_eq!(refusal(&*other_secret, &headers, &body), SignatureError::Mismatch);
    let empty_secret = setup.protocol.gateway(&setup.base, "http://127.0.0.1:9", API_KEY, &[""], CALL_DEADLINES);
    assert_eq!(refusal(&*empty_secret, &headers, &body), SignatureError::Mismatch);
    let changed = String::from_utf8_lossy(&body).replace("2500", "9500");
    assert_ne!(changed.as_bytes(), &body[..]);
    assert_eq!(refusal(&*setup.gateway, &headers, changed.as_bytes()), SignatureError::Mismatch);
    assert_eq!(refusal(&*setup.gateway, &HeaderMap::new(), &body), SignatureError::Missing);
    let stale = setup.gateway.read_webhook(&headers, &body, ContractSetup::later());
    assert!(matches!(stale, Err(WebhookRefused::Signature(SignatureError::Stale))), "{stale:?}");
    // The signature header of the other gateway does not count.
    let other = match setup.protocol {
        Protocol::Own => Protocol::Stripe,
        Protocol::Stripe => Protocol::Own,
    };
    assert_eq!(refusal(&*other.gateway_at(&setup.base), &headers, &body), SignatureError::Missing);
}

pub(super) async fn a_signature_with_either_active_secret_is_accepted(setup: ContractSetup) {
    setup.charged(Some("paid")).await;
    let (headers, body) = setup.received_webhooks(1).await.remove(0);
    for secrets in [["new", SECRET], [SECRET, "old"]] {
        let gateway = setup.protocol.gateway(&setup.base, "http://127.0.0.1:9", API_KEY, &secrets, CALL_DEADLINES);
        gateway.read_webhook(&headers, &body, clock::now()).expect("a valid signature");
    }
}

pub(super) async fn a_signed_body_that_is_no_event_is_malformed(setup: ContractSetup) {
    let header = match setup.protocol {
        Protocol::Own => "payment-signature",
        Protocol::Stripe => "stripe-signature",
    };
    let body = Bytes::from_static(b"{\"id\": 7}");
    let signature = ::simulator::webhooks::sign(SECRET, clock::now().0 / 1_000, &body);
    let headers = HeaderMap::from_iter([(header.parse().expect("a name"), signature.parse().expect("a value"))]);
    let refused = setup.gateway.read_webhook(&headers, &body, clock::now());
    assert!(matches!(refused, Err(WebhookRefused::Malformed(_))), "{refused:?}");
}
