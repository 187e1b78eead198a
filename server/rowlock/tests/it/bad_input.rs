//! Invalid input on every route: the documented problem, never a 500, and no change. Invalid, stale, repeated, reordered
//! and unrelated webhooks: the documented answer, a stored event, and no duplicate effect.

use crate::mailed_links::assert_mails_link_without_cookie;
use crate::prelude::*;

/// Sends raw bytes and asserts this problem, in its own media type.
async fn assert_refused(visitor: &Visitor, method: Method, path: &str, body: &str, expected: (u16, &str)) {
    let request = visitor.request(method.clone(), path).header("idempotency-key", new_id().to_string());
    let answer = RawAnswer::of(request.header("content-type", "application/json").body(body.to_owned())).await;
    assert_eq!(answer.header("content-type"), "application/problem+json", "{method} {path} {body}");
    assert_eq!(answer.header("content-security-policy"), "default-src 'none'; frame-ancestors 'none'");
    let (status, problem) = (answer.status.as_u16(), answer.json());
    assert_eq!((status, text(&problem["code"])), expected, "{method} {path} {body}: {problem}");
    assert_eq!(problem["status"], status);
    assert!(!text(&problem["detail"]).is_empty() && !text(&problem["title"]).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_holds_are_refused() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let holds = format!("/api/v1/shows/{}/holds", world.show);
    let seats = |list: &str| format!("{{\"seats\": {list}}}");
    let cases = [
        ("{", (400, "malformed")),
        ("[1]", (400, "malformed")),
        ("[]", (400, "seat_count")),
        ("{}", (400, "seat_count")),
        ("{\"seats\": [1], \"more\": 1}", (400, "malformed")),
        (&*seats("[-1]"), (400, "malformed")),
        (&*seats("[1.5]"), (400, "malformed")),
        (&*seats("[\"C7\"]"), (400, "malformed")),
        (&*seats("[99999999999]"), (400, "malformed")),
        (&*seats("[]"), (400, "seat_count")),
        (&*seats("[0,1,2,3,4,5,6,7,8,9,10]"), (400, "seat_count")),
        (&*seats("[4, 4]"), (400, "seat_twice")),
        (&*seats("[300]"), (400, "unknown_seat")),
        (&*seats("[4294967295]"), (400, "unknown_seat")),
    ];
    for (body, expected) in cases {
        assert_refused(&ann, Method::POST, &holds, body, expected).await;
    }
    let big = seats(&format!("[{}]", "1,".repeat(20_000) + "1"));
    assert_refused(&ann, Method::POST, &holds, &big, (413, "too_large")).await;
    let nowhere = format!("/api/v1/shows/{}/holds", platform::ids::derived_id(&["no show"]));
    assert_refused(&ann, Method::POST, &nowhere, &seats("[1]"), (404, "not_found")).await;
    assert_refused(&ann, Method::POST, "/api/v1/shows/C7/holds", &seats("[1]"), (404, "not_found")).await;
    assert_refused(&ann, Method::PUT, &holds, "{}", (405, "method_not_allowed")).await;
    assert_refused(&ann, Method::GET, "/api/v1/nothing", "", (404, "not_found")).await;
    let (_, hold) = ann.hold(&[1]).await;
    let own = format!("{holds}/{}", text(&hold["id"]));
    assert_refused(&ann, Method::PATCH, &own, "{\"add\": [2, 2]}", (400, "seat_twice")).await;
    assert_refused(&ann, Method::PATCH, &own, "{\"add\": [900]}", (400, "unknown_seat")).await;
    let eve = world.visitor();
    assert_refused(&eve, Method::PATCH, &own, "{\"add\": [2]}", (410, "hold_expired")).await;
    assert_eq!(eve.release_hold(&hold).await, StatusCode::NO_CONTENT, "not her hold");
    assert_eq!(ann.seat_states().await.matches('1').count(), 1, "no seat changed");
    assert!(ann.has_hold().await, "the owner keeps the hold");
}

#[tokio::test(flavor = "multi_thread")]
async fn idempotency_keys_are_required_and_validated() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let id = platform::ids::derived_id(&["no booking"]);
    let doors = [
        (Method::POST, format!("/api/v1/shows/{}/holds", world.show), json!({ "seats": [1] })),
        (Method::PATCH, format!("/api/v1/shows/{}/holds/{id}", world.show), json!({ "add": [1] })),
        (
            Method::POST,
            "/api/v1/bookings".into(),
            json!({ "show": world.show, "hold": id, "buyer": { "name": "A", "email": "a@b.cd" } }),
        ),
        (Method::POST, format!("/api/v1/bookings/{id}/confirm"), json!({})),
    ];
    for (method, path, body) in doors {
        for (key, code) in [(None, "key_missing"), (Some(""), "key_malformed"), (Some("a b"), "key_malformed")] {
            let mut request = ann.client.request(method.clone(), format!("{}{path}", ann.base)).json(&body);
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            let (status, problem) = RawAnswer::of(request).await.into_json();
            assert_eq!((status, text(&problem["code"])), (StatusCode::BAD_REQUEST, code), "{path} {key:?}");
        }
        let (status, _) = ann.raw(method, &path, body, &"k".repeat(256)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
    }
    let url = format!("{}/api/v1/shows/{}/holds", ann.base, world.show);
    let request = ann.client.post(url).header("x-idempotency-key", "alias").json(&json!({ "seats": [1] }));
    assert_eq!(request.send().await.expect("the server answers").status(), StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_are_stored_verbatim_or_refused_and_reused_keys_conflict() {
    let world = World::start(1, &[]).await;
    for (place, name) in
        ["José «Ñ» Ünïcödé", "مريم אבג", "🎬👩‍👩‍👧", "<script>alert(1)</script>", "'; DROP TABLE bookings; --"]
            .into_iter()
            .enumerate()
    {
        let visitor = world.visitor();
        let (_, hold) = visitor.hold(&[place as u32]).await;
        let body =
            json!({ "show": world.show, "hold": hold["id"], "buyer": { "name": name, "email": "a@example.org" } });
        let (status, booking) = visitor.call_with_key(Method::POST, "/api/v1/bookings", body, "checkout").await;
        assert_eq!((status, text(&booking["buyer"]["name"])), (StatusCode::CREATED, name));
        let other =
            json!({ "show": world.show, "hold": hold["id"], "buyer": { "name": "Other", "email": "a@example.org" } });
        let (status, problem) = visitor.call_with_key(Method::POST, "/api/v1/bookings", other, "checkout").await;
        assert_eq!((status, text(&problem["code"])), (StatusCode::UNPROCESSABLE_ENTITY, "key_reused"));
        let page = visitor.page(&format!("/bookings/{}", text(&booking["id"]))).await;
        assert!(!expect_answer(page, StatusCode::OK).contains("<script>alert"), "{name}");
    }
    let visitor = world.visitor();
    let (_, hold) = visitor.hold(&[50]).await;
    let long = "x".repeat(121);
    for (name, email) in
        [("", "a@b.cd"), ("a\nb", "a@b.cd"), (&*long, "a@b.cd"), ("A", "a"), ("A", "a@b.cd\r\nBcc: x@y.z")]
    {
        let body = json!({ "show": world.show, "hold": hold["id"], "buyer": { "name": name, "email": email } });
        assert_refused(&visitor, Method::POST, "/api/v1/bookings", &body.to_string(), (400, "person_invalid")).await;
    }
    let null = json!({ "show": world.show, "hold": hold["id"], "buyer": { "name": "a\u{0}b", "email": "a@b.cd" } });
    assert_refused(&visitor, Method::POST, "/api/v1/bookings", &null.to_string(), (400, "person_invalid")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsigned_stale_and_foreign_webhooks_change_nothing() {
    let (_world, ann) = World::with_visitor(1, &[]).await;
    let (_, booking) = ann.check_out(&[1]).await;
    let (_, pending) = ann.pay(&booking, None).await;
    let event = |reference: &Value| {
        json!({ "id": "evt_1", "type": "payment.succeeded", "created_ms": 0,
            "payment": { "id": "p", "reference": reference, "amount_minor": 1250, "currency": "EUR", "status": "succeeded", "refunded_minor": 0 } })
        .to_string()
    };
    let now_s = platform::clock::now().0 / 1_000;
    let body = event(&booking["id"]);
    let unknown = event(&json!(new_id()));
    let cases = [
        (None, body.as_str(), (401, "webhook_unsigned")),
        (Some("nonsense".to_owned()), &body, (401, "webhook_unsigned")),
        (Some(World::sign(&body, now_s - 301)), &body, (401, "webhook_stale")),
        (Some(World::sign(&body, now_s + 3_600)), &body, (401, "webhook_stale")),
        (Some(World::sign("another body", now_s)), &body, (401, "webhook_signature_mismatch")),
        (Some(World::sign(&unknown, now_s)), &unknown, (404, "unknown_payment")),
        (Some(World::sign("{", now_s)), "{", (400, "malformed")),
    ];
    for (signature, body, expected) in cases {
        let mut request =
            ann.client.post(format!("{}/api/v1/webhooks/payments/simulator", ann.base)).body(body.to_owned());
        if let Some(signature) = &signature {
            request = request.header("payment-signature", signature);
        }
        let (status, problem) = RawAnswer::of(request).await.into_json();
        assert_eq!((status.as_u16(), text(&problem["code"])), expected, "{signature:?} {body}");
    }
    assert_eq!(ann.booking(&booking).await["state"], pending["state"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sales_close_five_minutes_before_the_start_and_cross_site_requests_change_nothing() {
    let world = World::start(1, &[]).await;
    let soon = insert_show(&world.pg, 300_000, 4 * 60).await;
    let ann = world.visitor().at_show(soon);
    expect_problem(ann.hold(&[1]).await, StatusCode::CONFLICT, "sales_closed");
    for (header, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
        let url = format!("{}/api/v1/shows/{}/holds", ann.base, world.show);
        let request =
            ann.client.post(url).header(header, value).header("idempotency-key", "k").json(&json!({ "seats": [1] }));
        let answer = request.send().await.expect("the server answers");
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{header}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_searches_answer_invalid_parameters_without_errors() {
    let (_world, ann) = World::with_visitor(1, &[]).await;
    for (path, status) in [
        ("/api/v1/shows?date=yesterday", 400),
        ("/api/v1/theatres/aurora/shows?date=2026-99-99", 400),
        ("/api/v1/theatres/nowhere/shows", 404),
        ("/shows/C7", 404),
        ("/bookings/C7", 404),
        ("/cities/%F0%9F%8E%AC", 404),
        ("/theatres/aurora?date=%00", 400),
        ("/search?q=%27%3B%3Cscript%3E", 200),
        ("/nothing/here", 404),
    ] {
        let answer = ann.client.get(format!("{}{path}", ann.base)).send().await.expect("the server answers");
        assert_eq!(answer.status().as_u16(), status, "{path}");
        assert!(!answer.text().await.expect("text").contains("<script>"), "{path}");
    }
}

/// The previous webhook secret, which [`SECRET`] replaces.
const PREVIOUS_SECRET: &str = "the secret before that one; 32 bytes or more";

/// The books' finding about a payment that only the test's webhook reports: its gateway has charged nothing.
const WEBHOOK_ONLY: &str = "CONFIRMED; 0 were taken and 0 given back";

fn success(id: &str, booking: &Value, minor: i64) -> String {
    json!({
        "id": id, "type": "payment.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": minor, "currency": "EUR" },
    })
    .to_string()
}

fn now_s() -> i64 {
    platform::clock::now().0 / 1_000
}

/// Delivers a body with a signature header to this gateway's route.
async fn deliver(visitor: &Visitor, gateway: &str, body: &str, signature: (&str, &str)) -> (u16, Value) {
    let url = format!("{}/api/v1/webhooks/payments/{gateway}", visitor.base);
    let request = visitor.client.post(url).header("content-type", "application/json").body(body.to_owned());
    let answer = request.header(signature.0, signature.1).send().await.expect("the server answers");
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}

async fn deliver_signed(visitor: &Visitor, body: &str) -> (u16, Value) {
    deliver(visitor, "simulator", body, ("payment-signature", &World::sign(body, now_s()))).await
}

async fn outcomes(world: &World, event_id: &str) -> Vec<String> {
    world.values(sqlx::query_scalar("SELECT outcome FROM webhook_events WHERE event_id = $1").bind(event_id)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_without_a_valid_current_signature_are_refused_and_not_stored() {
    let both = format!("{SECRET},{PREVIOUS_SECRET}");
    let (world, ann) = World::with_visitor(1, &[("SIMULATOR_WEBHOOK_SECRET", both.as_str())]).await;
    let booking = ann.check_out(&[1]).await.1;
    ann.pay(&booking, None).await;
    let body = success("evt_1", &booking, PRICE);
    let good = World::sign(&body, now_s());
    let other_secret = simulator::webhooks::sign("a foreign secret", now_s(), body.as_bytes());
    let old = World::sign(&body, now_s() - 301);
    for (gateway, header, signature, expected) in [
        ("simulator", "payment-signature", &*other_secret, (401, "webhook_signature_mismatch")),
        ("simulator", "payment-signature", &old, (401, "webhook_stale")),
        ("simulator", "payment-signature", "t=1,v1=zz", (401, "webhook_unsigned")),
        ("simulator", "stripe-signature", &good, (401, "webhook_unsigned")),
        ("stripe", "stripe-signature", &good, (404, "not_found")),
        ("no-gateway", "payment-signature", &good, (404, "not_found")),
    ] {
        let (status, problem) = deliver(&ann, gateway, &body, (header, signature)).await;
        assert_eq!((status, text(&problem["code"])), expected, "{gateway} {signature}");
    }
    assert_eq!(world.count("SELECT count(*) FROM webhook_events").await, 0);
    assert_eq!(text(&ann.booking(&booking).await["state"]), "PAYMENT_PENDING");
    // The previous secret is accepted until it is removed.
    let before = simulator::webhooks::sign(PREVIOUS_SECRET, now_s(), body.as_bytes());
    let (status, answer) = deliver(&ann, "simulator", &body, ("payment-signature", &before)).await;
    assert_eq!((status, answer), (200, json!({ "outcome": "applied" })));
    world.end_with_known_findings(&[WEBHOOK_ONLY]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn event_of_an_unknown_payment_is_stored_and_refused_each_time() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let unknown = json!({ "id": new_id() });
    // A booking without a payment is treated as unknown.
    let unpaid = ann.check_out(&[1]).await.1;
    for (id, booking) in [("evt_unknown", &unknown), ("evt_unpaid", &unpaid)] {
        for _ in 0..2 {
            let (status, problem) = deliver_signed(&ann, &success(id, booking, PRICE)).await;
            assert_eq!((status, text(&problem["code"])), (404, "unknown_payment"));
        }
        assert_eq!(outcomes(&world, id).await, ["unknown_payment"]);
    }
    assert_eq!(text(&ann.booking(&unpaid).await["state"]), "SEATS_LOCKED");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_delivered_a_hundred_times_concurrently_is_applied_once() {
    let (world, ann) = World::with_visitor(2, &[]).await;
    let at_other = ann.moved_to(&world, 1);
    let booking = ann.check_out(&[1]).await.1;
    ann.pay(&booking, None).await;
    let body = success("evt_100", &booking, PRICE);
    let all = (0..100).map(|number| deliver_signed(if number % 2 == 0 { &ann } else { &at_other }, &body));
    let answers = join_all(all).await;
    let count = |outcome: &str| {
        answers.iter().filter(|(status, answer)| *status == 200 && answer["outcome"] == outcome).count()
    };
    assert_eq!((count("applied"), count("duplicate")), (1, 99), "{answers:?}");
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'payment_succeeded'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 1);
    assert_eq!(outcomes(&world, "evt_100").await, ["applied"]);
    world.end_with_known_findings(&[WEBHOOK_ONLY]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payment_of_another_amount_is_refunded_and_the_event_names_both_sums() {
    let world = World::start(1, &[]).await;
    for (token, seat) in [(Some("tok_another_amount"), 1), (None, 2)] {
        let ann = world.visitor();
        let booking = ann.check_out(&[seat]).await.1;
        let (_, answer) = ann.pay(&booking, token).await;
        if token.is_none() {
            let page = ann.post_form(text(&answer["pay_url"]), "card=another_amount&action=pay").await;
            assert_eq!(page.status(), StatusCode::SEE_OTHER);
        }
        ann.wait_for_booking(&booking, "CANCELLED").await;
        wait_until("the money is refunded", || async { ann.booking(&booking).await["money"] == "REFUNDED" }).await;
        ann.wait_for_seat(seat as usize, '0').await;
        let (_, events) = ann.get(&format!("/api/v1/bookings/{}/events", text(&booking["id"]))).await;
        let reason = "The gateway took €12.49 where €12.50 was agreed; it goes back.";
        let lines = events.as_array().expect("a list");
        assert!(lines.iter().any(|line| line["reason"] == reason), "{events}");
    }
    wait_until("both buyers get a mail", || async {
        world.mails().iter().filter(|mail| mail.contains("Subject: Your payment was not the agreed amount")).count()
            == 2
    })
    .await;
    assert_mails_link_without_cookie(&world);
    assert!(!world.mails().iter().any(|mail| mail.contains("too late")), "{:?}", world.mails());
    assert_eq!(world.count("SELECT count(*) FROM tickets").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn reordered_events_undo_nothing() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let booking = ann.check_out(&[1]).await.1;
    expect_state(ann.pay(&booking, Some("tok_reordered_webhooks")).await, StatusCode::OK, "CONFIRMED");
    world.wait_for_count("both events are noted", "SELECT count(*) FROM webhook_events", 2).await;
    // The success may arrive before the charge's answer. A failure after it is ignored either way.
    assert!(world.count("SELECT count(*) FROM webhook_events WHERE outcome = 'ignored'").await >= 1);
    assert_eq!(world.count("SELECT count(*) FROM booking_events WHERE event = 'payment_failed'").await, 0);
    let seen = ann.booking(&booking).await;
    assert_eq!((&seen["state"], &seen["money"]), (&json!("CONFIRMED"), &json!("PAID")));
    // An event of a refund that was never requested is ignored.
    let event = json!({ "id": "evt_refund", "type": "refund.succeeded", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": PRICE, "currency": "EUR" } });
    assert_eq!(deliver_signed(&ann, &event.to_string()).await, (200, json!({ "outcome": "ignored" })));
    assert_eq!(text(&ann.booking(&booking).await["money"]), "PAID");
    // The other order: failed, then paid. That booking stays cancelled. Its seat is still free, so the money pays for a
    // new booking.
    let bob = world.visitor();
    let booking = bob.check_out(&[2]).await.1;
    bob.pay(&booking, None).await;
    let failed = json!({ "id": "evt_failed", "type": "payment.failed", "created_ms": 0,
        "payment": { "id": "p", "reference": booking["id"], "amount_minor": PRICE, "currency": "EUR" } });
    assert_eq!(deliver_signed(&bob, &failed.to_string()).await, (200, json!({ "outcome": "applied" })));
    let paid = success("evt_then", &booking, PRICE);
    assert_eq!(deliver_signed(&bob, &paid).await, (200, json!({ "outcome": "applied" })));
    wait_until("the money is moved", || async { bob.booking(&booking).await["money"] == "MOVED" }).await;
    assert_eq!(bob.booking(&booking).await["state"], "CANCELLED");
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, 2);
    world.end_with_known_findings(&[WEBHOOK_ONLY]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_above_the_charge_is_refused_and_parked() {
    let (world, ann) = World::with_visitor(1, &[]).await;
    let booking = ann.check_out(&[1]).await.1;
    assert_eq!(ann.pay(&booking, Some("tok_paid")).await.1["state"], "CONFIRMED");
    world.wait_for_empty_outbox().await;
    let wrong = "INSERT INTO outbox (booking_id, effect, amount_minor, run_after, created_at)
                 VALUES ($1::uuid, 'refund', $2, now(), now())";
    world.run(sqlx::query(wrong).bind(text(&booking["id"])).bind(PRICE + 1)).await;
    let query = "SELECT count(*) FROM outbox WHERE attempts = 1 AND parked_why LIKE '%above_charge%'";
    world.wait_for_count("the refund is parked at the first refusal", query, 1).await;
    assert_eq!(text(&ann.booking(&booking).await["money"]), "PAID");
}
