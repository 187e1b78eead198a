//! Webhooks of a gateway and their verification.

use axum::body::Bytes;
use axum::http::HeaderMap;

use super::house::{API_KEY, House, PATIENCE, SECRET, Words, money};
use crate::signature::SignatureError;
use crate::{Gateway, NewsKind, PaymentStatus, WebhookRefused, refund_key};
use platform::clock;

pub(super) async fn the_end_of_a_payment_is_told_and_believed(house: House) {
    let declined = NewsKind::Failed { why: Some("card_declined".to_owned()) };
    for (number, (card, expected)) in
        [("paid", NewsKind::Succeeded { amount: money(2_500) }), ("declined", declined)].into_iter().enumerate()
    {
        let known = house.charged(Some(card)).await;
        let news = house.news(number + 1).await.remove(number);
        assert_eq!((news.gateway, news.booking), (house.gateway.name(), known.booking), "{card}");
        assert_eq!((&news.kind, &news.gateway_ref), (&expected, &known.gateway_ref), "{card}");
    }
    let open = house.charged(None).await;
    let PaymentStatus::Pending { pay_url: Some(page) } = house.status(&open).await else { panic!("no page") };
    house.press(&page, "card=another_amount&action=pay").await;
    let news = house.news(3).await.remove(2);
    assert_eq!((news.booking, news.kind), (open.booking, NewsKind::Succeeded { amount: money(2_499) }));
    // The id in the event can be used for status calls as well.
    let known = crate::Known { booking: open.booking, gateway_ref: news.gateway_ref };
    assert_eq!(house.status(&known).await, PaymentStatus::Succeeded { amount: money(2_499) });
}

pub(super) async fn refunds_are_told(house: House) {
    let paid = house.charged(Some("paid")).await;
    house.gateway.refund(&paid, money(1_000), &refund_key(paid.booking, 0), &[]).await.expect("refunded");
    let kinds: Vec<NewsKind> = house.news(2).await.into_iter().map(|news| news.kind).collect();
    // Stripe names the refund; in its own protocol the simulator has one payment and one refund.
    let number = (house.words == Words::Stripes).then_some(0);
    assert!(kinds.contains(&NewsKind::RefundSettled { number }), "{kinds:?}");
    let open = house.charged(None).await;
    house.gateway.void(&open).await.expect("voided");
    assert_eq!(house.news(3).await.pop().map(|news| news.kind), Some(NewsKind::Voided));
}

pub(super) async fn an_order_of_events_that_cannot_be_is_told_as_it_comes(house: House) {
    house.charged(Some("reordered_webhooks")).await;
    let news = house.news(2).await;
    assert!(matches!(news[0].kind, NewsKind::Succeeded { .. }) && matches!(news[1].kind, NewsKind::Failed { .. }));
    assert!(news[1].occurred < news[0].occurred && news[0].event_id != news[1].event_id);
}

fn refusal(gateway: &dyn Gateway, headers: &HeaderMap, body: &[u8]) -> SignatureError {
    match gateway.read_webhook(headers, body, clock::now()) {
        Err(WebhookRefused::Signature(error)) => error,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn only_its_own_signature_of_now_over_these_bytes_is_believed(house: House) {
    house.charged(Some("paid")).await;
    let (headers, body) = house.letters(1).await.remove(0);
    let stranger = house.words.gateway(&house.base, "http://127.0.0.1:9", API_KEY, &["another secret"], PATIENCE);
    assert_eq!(refusal(&*stranger, &headers, &body), SignatureError::Mismatch);
    let careless = house.words.gateway(&house.base, "http://127.0.0.1:9", API_KEY, &[""], PATIENCE);
    assert_eq!(refusal(&*careless, &headers, &body), SignatureError::Mismatch);
    let changed = String::from_utf8_lossy(&body).replace("2500", "9500");
    assert_ne!(changed.as_bytes(), &body[..]);
    assert_eq!(refusal(&*house.gateway, &headers, changed.as_bytes()), SignatureError::Mismatch);
    assert_eq!(refusal(&*house.gateway, &HeaderMap::new(), &body), SignatureError::Missing);
    let stale = house.gateway.read_webhook(&headers, &body, House::later());
    assert!(matches!(stale, Err(WebhookRefused::Signature(SignatureError::Stale))), "{stale:?}");
    // The other gateway's header is none.
    let other = match house.words {
        Words::Own => Words::Stripes,
        Words::Stripes => Words::Own,
    };
    assert_eq!(refusal(&*other.gateway_at(&house.base), &headers, &body), SignatureError::Missing);
}

pub(super) async fn either_of_two_secrets_is_believed(house: House) {
    house.charged(Some("paid")).await;
    let (headers, body) = house.letters(1).await.remove(0);
    for secrets in [["new", SECRET], [SECRET, "old"]] {
        let gateway = house.words.gateway(&house.base, "http://127.0.0.1:9", API_KEY, &secrets, PATIENCE);
        gateway.read_webhook(&headers, &body, clock::now()).expect("believed");
    }
}

pub(super) async fn signed_nonsense_is_malformed(house: House) {
    let header = match house.words {
        Words::Own => "payment-signature",
        Words::Stripes => "stripe-signature",
    };
    let body = Bytes::from_static(b"{\"id\": 7}");
    let signature = ::simulator::webhooks::sign(SECRET, clock::now().0 / 1_000, &body);
    let headers = HeaderMap::from_iter([(header.parse().expect("a name"), signature.parse().expect("a value"))]);
    let refused = house.gateway.read_webhook(&headers, &body, clock::now());
    assert!(matches!(refused, Err(WebhookRefused::Malformed(_))), "{refused:?}");
}
