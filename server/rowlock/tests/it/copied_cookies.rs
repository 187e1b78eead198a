//! A copy of a guest's cookie from before they signed in gets no replay of the guest's answers.

use crate::idempotency::{RawAnswer, post};
use crate::prelude::*;

const BOOKINGS: &str = "/api/v1/bookings";

async fn replay(browser: &Browser, world: &World, server: usize, body: &str) -> RawAnswer {
    post(&browser.moved_to(world, server).visitor(), BOOKINGS, "hers", body, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_guest_cookie_gets_no_replay_from_any_server() {
    let mut world = World::start(2, &[]).await;
    register_and_log_in(&world, "ann@example.org").await;
    let mut phone = Browser::new(&world);
    phone.put_cookie("rowlock_visitor", &new_id().simple().to_string());
    let mut copy = Browser::new(&world);
    copy.put_cookie("rowlock_visitor", phone.cookie("rowlock_visitor").expect("a guest"));
    let (status, hold) = phone.visitor().hold(&[1]).await;
    assert_eq!(status, StatusCode::CREATED, "{hold}");
    let order = phone.visitor().purchase_body(&hold, Some("tok_paid"));
    let bytes = order.to_string();
    let in_other_words = serde_json::to_string_pretty(&order).expect("JSON");
    let bought = replay(&phone, &world, 0, &bytes).await;
    assert_eq!((bought.status, text(&bought.json()["state"])), (StatusCode::CREATED, "CONFIRMED"));
    // Before she signs in, both browsers are the same visitor, and both servers cache the answer.
    for server in [0, 1, 1] {
        assert_eq!(replay(&copy, &world, server, &bytes).await.status_and_body(), bought.status_and_body());
    }

    assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    let (copied, here) = (&copy, &world);
    let is_refused = async |server: usize, body: &str| {
        let answer = replay(copied, here, server, body).await;
        assert!(
            answer.status == StatusCode::NOT_FOUND || answer.status_and_body() == bought.status_and_body(),
            "{answer:?}"
        );
        answer.status == StatusCode::NOT_FOUND
    };
    assert!(is_refused(0, &bytes).await, "at once at the server of the login");
    wait_until("the other server sees the login", || is_refused(1, &bytes)).await;
    // No request in between restores the replay.
    for server in [0, 1, 0, 1] {
        assert!(is_refused(server, &in_other_words).await && is_refused(server, &bytes).await, "{server}");
    }
    // A server without a cached copy reads the answer from the stores, and refuses it as well.
    let fresh = world.add_server(&[]).await;
    for _ in 0..2 {
        assert_eq!(replay(&copy, &world, fresh, &bytes).await.status, StatusCode::NOT_FOUND);
    }
    for server in [0, 1, fresh] {
        let answer = replay(&phone, &world, server, &bytes).await;
        assert_eq!(answer.status_and_body(), bought.status_and_body(), "{server}");
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_guest_cookie_gets_no_replay_of_a_payment_or_cancellation() {
    let world = World::start(1, &[]).await;
    register_and_log_in(&world, "ann@example.org").await;
    let mut phone = Browser::new(&world);
    phone.put_cookie("rowlock_visitor", &new_id().simple().to_string());
    let mut copy = Browser::new(&world);
    copy.put_cookie("rowlock_visitor", phone.cookie("rowlock_visitor").expect("a guest"));
    let (_, booking) = phone.visitor().check_out(&[1, 2]).await;
    let of = |step: &str| format!("{BOOKINGS}/{}/{step}", text(&booking["id"]));
    let steps: [(String, Value); 2] =
        [(of("confirm"), json!({ "payment_token": "tok_paid" })), (of("cancel"), json!({ "seats": [2] }))];
    for (path, body) in &steps {
        let (status, answer) = phone.visitor().call_with_key(Method::POST, path, body.clone(), "hers").await;
        let key = if status == StatusCode::UNPROCESSABLE_ENTITY { "hers-too" } else { "hers" };
        let (status, answer) = match key {
            "hers" => (status, answer),
            _ => phone.visitor().call_with_key(Method::POST, path, body.clone(), key).await,
        };
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        let replayed = copy.visitor().call_with_key(Method::POST, path, body.clone(), key).await;
        assert_eq!(replayed, (status, answer), "{path}");
    }
    assert_eq!(phone.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
    for (path, body) in &steps {
        for key in ["hers", "hers-too"] {
            let (status, answer) = copy.visitor().call_with_key(Method::POST, path, body.clone(), key).await;
            let is_reused = status == StatusCode::UNPROCESSABLE_ENTITY;
            assert!(status == StatusCode::NOT_FOUND || is_reused, "{path}, {key}: {status} {answer}");
        }
    }
}
