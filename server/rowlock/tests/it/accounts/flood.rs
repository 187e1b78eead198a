//! A flood of logins does not stop holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{Browser, PASSWORD, register_and_log_in};
use crate::world::{World, text, wait_until};

/// Concurrent logins: far more than may queue for a core.
const CONCURRENT_LOGINS: usize = 120;
/// Seats held and released meanwhile.
const HOLDS: u32 = 40;

#[tokio::test(flavor = "multi_thread")]
async fn holds_are_granted_while_logins_are_shed() {
    // Behind a proxy every request has its own address, so the limit per address does not apply.
    let world = World::start(1, &[("TRUSTED_PROXIES", "1")]).await;
    let mut ann = register_and_log_in(&world, "ann@example.org").await;
    let (over, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let flood: Vec<_> = (0..CONCURRENT_LOGINS)
        .map(|number| {
            let (mut eve, over, refused) = (Browser::new(&world), Arc::clone(&over), Arc::clone(&refused));
            tokio::spawn(async move {
                let mut tried = 0_u32;
                while !over.load(Ordering::Relaxed) {
                    let body = json!({ "email": format!("{number}-{tried}@example.org"), "password": PASSWORD });
                    let address = format!("10.{}.{}.{}", number, tried / 250, tried % 250);
                    let header = [("x-forwarded-for", &*address)];
                    let (status, headers, problem) =
                        eve.send_with(Method::POST, "/api/v1/users/login", &body, &header).await;
                    match status {
                        StatusCode::UNAUTHORIZED => {}
                        StatusCode::SERVICE_UNAVAILABLE => {
                            assert_eq!(problem["code"], "overloaded");
                            assert!(headers.contains_key("retry-after"));
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                        other => panic!("a login in a flood is answered {other}: {problem}"),
                    }
                    tried += 1;
                }
            })
        })
        .collect();
    // Guests and signed-in users keep choosing seats.
    let guest = world.visitor();
    let signed_in = ann.visitor();
    for seat in 0..HOLDS {
        for (visitor, seat) in [(&guest, seat), (&signed_in, 100 + seat)] {
            let (status, hold) = visitor.hold(&[seat]).await;
            assert_eq!(status, StatusCode::CREATED, "seat {seat}: {hold}");
            assert_eq!(visitor.release_hold(&hold).await, StatusCode::NO_CONTENT);
        }
    }
    assert_eq!(text(&ann.me().await.1["email"]), "ann@example.org");
    wait_until("the login queue is full and answers 503", || async { refused.load(Ordering::Relaxed) > 0 }).await;
    over.store(true, Ordering::Relaxed);
    for one in flood {
        one.await.expect("every login in the flood got an expected answer");
    }
    // After the flood, logins work again.
    assert_eq!(Browser::new(&world).log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_logins_of_one_address_lock_out_no_other_address() {
    let world = World::start(1, &[("TRUSTED_PROXIES", "1")]).await;
    register_and_log_in(&world, "ann@example.org").await;
    let try_from = async |address: &str, password: &str| {
        let body = json!({ "email": "ann@example.org", "password": password });
        let header = [("x-forwarded-for", address)];
        Browser::new(&world).send_with(Method::POST, "/api/v1/users/login", &body, &header).await
    };
    let mut guesses = 0;
    while try_from("203.0.113.7", "a guess at it").await.0 != StatusCode::TOO_MANY_REQUESTS {
        guesses += 1;
        assert!(guesses < 30, "the limit per address is reached");
    }
    assert_eq!(try_from("203.0.113.7", PASSWORD).await.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(try_from("198.51.100.1", PASSWORD).await.0, StatusCode::OK);
    // Failed logins from many addresses reach the limit per account.
    let mut policy = None;
    for number in 0..40_u32 {
        for _ in 0..9 {
            let (status, headers, _) = try_from(&format!("10.0.0.{number}"), "a guess at it").await;
            if status == StatusCode::TOO_MANY_REQUESTS {
                policy = Some(headers["ratelimit-policy"].clone());
            }
        }
        if policy.is_some() {
            break;
        }
    }
    assert_eq!(policy.expect("360 are more than a hundred"), "\"login-person\";q=100;w=3000");
}

#[tokio::test(flavor = "multi_thread")]
async fn login_limit_per_address_holds_whatever_account_is_tried() {
    let world = World::start(1, &[]).await;
    let tries = (0..100_u32).map(|number| {
        let mut eve = Browser::new(&world);
        async move {
            // Without trusted proxies the header is ignored.
            let header = format!("10.0.0.{number}");
            let body = json!({ "email": format!("{number}@example.org"), "password": "a guess at it" });
            eve.send_with(Method::POST, "/api/v1/users/login", &body, &[("x-forwarded-for", &header)]).await
        }
    });
    let policy = futures::future::join_all(tries).await;
    let refused: Vec<_> = policy.iter().filter(|(status, ..)| *status == StatusCode::TOO_MANY_REQUESTS).collect();
    assert!(!refused.is_empty(), "100 logins exceed the limit of 60");
    assert!(refused.iter().all(|(_, headers, _)| headers["ratelimit-policy"] == "\"login-address\";q=60;w=60"));
    assert_eq!(world.visitor().hold(&[1]).await.0, StatusCode::CREATED);
}
