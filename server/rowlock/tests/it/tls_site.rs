//! A site served over TLS: cookies, headers, and requests from pages without TLS.

use crate::prelude::*;

/// Settings of such a server; TLS ends at the proxy.
const TLS: [(&str, &str); 2] = [("PUBLIC_URL", "https://seats.example"), ("ALLOW_SIMULATOR", "true")];

fn cookie_names(answer: &reqwest::Response) -> Vec<String> {
    let cookies = answer.headers().get_all("set-cookie").iter();
    cookies.map(|cookie| cookie.to_str().expect("text").split('=').next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_cookies_have_the_host_prefix_and_plain_names_are_ignored() {
    let mut world = World::start(1, &[]).await;
    let tls = world.add_server(&TLS).await;
    register_and_log_in(&world, "ann@example.org").await;
    for (server, prefix) in [(0, ""), (tls, "__Host-")] {
        let guest = world.visitor_at(server);
        let path = format!("{}/api/v1/shows/{}/hold", guest.base, world.show);
        let first = guest.client.get(&path).send().await.expect("an answer");
        assert_eq!(cookie_names(&first), [format!("{prefix}rowlock_visitor")]);
        let secret = guest.cookie.split_once('=').expect("a pair").1;
        for (name, is_ours) in [("rowlock_visitor", prefix.is_empty()), ("__Host-rowlock_visitor", !prefix.is_empty())]
        {
            let cookie = format!("{name}={secret}");
            let answer = guest.client.get(&path).header("cookie", cookie).send().await.expect("an answer");
            assert_eq!(cookie_names(&answer).is_empty(), is_ours, "{name} at {server}");
        }
        let visitor = Visitor { cookie: format!("{prefix}{}", guest.cookie), ..guest.clone() };
        let hold = expect_answer(visitor.hold(&[server as u32]).await, StatusCode::CREATED);
        assert_eq!(visitor.current_hold().await["id"], hold["id"]);
        let mut browser = Browser::at(&world, server);
        assert_eq!(browser.log_in("ann@example.org", PASSWORD).await.0, StatusCode::OK);
        let session = browser.cookie(&format!("{prefix}rowlock_session")).expect("a session").to_owned();
        assert!(browser.me().await.0 == StatusCode::OK);
        // The same secret under the other name is ignored.
        let mut other = Browser::at(&world, server);
        other.put_cookie(if prefix.is_empty() { "__Host-rowlock_session" } else { "rowlock_session" }, &session);
        assert_eq!(other.me().await.0, StatusCode::UNAUTHORIZED, "{server}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_from_a_page_without_tls_is_refused_and_answers_have_hsts() {
    let mut world = World::start(1, &[]).await;
    let tls = world.add_server(&TLS).await;
    for (server, own, foreign) in [(0, "http", "https"), (tls, "https", "http")] {
        let visitor = world.visitor_at(server);
        let host = visitor.base.trim_start_matches("http://");
        let path = format!("{}/api/v1/shows/{}/holds", visitor.base, world.show);
        let sent = |scheme: &str, key: &'static str| {
            let request = visitor.client.request(Method::POST, &path).header("origin", format!("{scheme}://{host}"));
            request.header("idempotency-key", key).json(&json!({ "seats": [server] })).send()
        };
        let refused = sent(foreign, "foreign").await.expect("an answer");
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{foreign} at {own}");
        assert_eq!(sent(own, "own").await.expect("an answer").status(), StatusCode::CREATED, "{own}");
        for path in ["/", "/api/v1/cities", "/favicon.svg", "/nowhere"] {
            let answer = visitor.client.get(format!("{}{path}", visitor.base)).send().await.expect("an answer");
            let policy = answer.headers().get("strict-transport-security").map(|policy| policy.to_str().expect("text"));
            assert_eq!(policy, (own == "https").then_some("max-age=31536000"), "{path} at {own}");
        }
    }
}
