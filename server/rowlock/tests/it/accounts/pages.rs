//! Account pages, as a browser without JavaScript uses them.

use super::{form, wait_for_mailed_token, world_with_ann};
use crate::prelude::*;

pub(super) async fn open(browser: &mut Browser, path: &str) -> RawAnswer {
    let request = browser.visitor().request(Method::GET, path);
    read(browser, request).await
}

pub(super) async fn submit(browser: &mut Browser, path: &str, fields: &[(&str, &str)]) -> RawAnswer {
    let visitor = browser.visitor();
    let request = visitor.request(Method::POST, path).header("origin", &visitor.base);
    read(browser, form(request, fields)).await
}

async fn read(browser: &mut Browser, request: reqwest::RequestBuilder) -> RawAnswer {
    let answer = RawAnswer::of(request).await;
    browser.keep(&answer.headers);
    assert_eq!(answer.header("cache-control"), "private, no-store", "account pages are not cached");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_register_and_sign_in_and_return_to_the_requested_page() {
    let world = World::start(1, &[]).await;
    let mut ann = Browser::new(&world);
    let away = open(&mut ann, "/account").await;
    assert_eq!((away.status, away.location()), (StatusCode::SEE_OTHER, "/login?notice=sign-in-first&next=/account"));
    assert_eq!(open(&mut ann, away.location()).await.hidden("next"), "/account");
    let page = open(&mut ann, "/register?next=/search").await;
    let (key, next) = (page.hidden("key"), page.hidden("next"));
    let fields = [
        ("name", "Ann <b>Example</b>"),
        ("email", "ann@example.org"),
        ("password", "short"),
        ("key", &*key),
        ("next", &*next),
    ];
    let refused = submit(&mut ann, "/register", &fields).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.body.contains("role=\"alert\"") && refused.body.contains("value=\"ann@example.org\""));
    assert!(!refused.body.contains("<b>Example") && !refused.body.contains("short\""), "typed text is escaped");
    let key = refused.hidden("key");
    let fields = [
        ("name", "Ann Example"),
        ("email", "ann@example.org"),
        ("password", PASSWORD),
        ("key", &*key),
        ("next", &*next),
    ];
    let made = submit(&mut ann, "/register", &fields).await;
    assert_eq!((made.status, made.location()), (StatusCode::SEE_OTHER, "/search"));
    let own = open(&mut ann, "/account").await;
    assert!(
        own.status == StatusCode::OK && own.body.contains("Ann Example") && own.body.contains("data-testid=\"prove\"")
    );
    let out = submit(&mut ann, "/account/logout", &[]).await;
    assert_eq!((out.status, out.location(), ann.cookie("rowlock_session")), (StatusCode::SEE_OTHER, "/", None));
    let visitor = ann.visitor();
    let request = visitor.client.post(format!("{}/account/logout", visitor.base)).header("origin", &visitor.base);
    let out = read(&mut ann, form(request.header("authorization", "Bearer nothing"), &[])).await;
    assert_eq!(out.status, StatusCode::SEE_OTHER, "an invalid token is no session");
    let fields = [("email", "ann@example.org"), ("password", "not her password"), ("next", "https://evil.example/")];
    let wrong = submit(&mut ann, "/login", &fields).await;
    assert_eq!((wrong.status, wrong.hidden("next")), (StatusCode::UNAUTHORIZED, String::new()));
    let fields = [("email", "ann@example.org"), ("password", PASSWORD), ("next", "//evil.example/")];
    assert_eq!(submit(&mut ann, "/login", &fields).await.location(), "/account", "no redirect to another site");
    // A second registration with her address looks like any other to Eve.
    let mut eve = Browser::new(&world);
    let key = open(&mut eve, "/register").await.hidden("key");
    let fields = [("name", "Eve"), ("email", "ann@example.org"), ("password", "another password"), ("key", &*key)];
    let again = submit(&mut eve, "/register", &fields).await;
    assert_eq!((again.status, again.location()), (StatusCode::SEE_OTHER, "/login?notice=registered"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_behind_mailed_links_change_nothing_until_submitted() {
    let (world, mut ann) = world_with_ann().await;
    let token = wait_for_mailed_token(&world, "Please confirm your address", "ann@example.org").await;
    let mut phone = Browser::new(&world);
    let away = open(&mut phone, &format!("/confirm-email?token={token}")).await;
    assert_eq!(away.location(), format!("/login?notice=sign-in-first&next=/confirm-email?token={token}"));
    let next = open(&mut phone, away.location()).await.hidden("next");
    assert_eq!(next, format!("/confirm-email?token={token}"), "sign-in keeps the next page");
    let page = open(&mut ann, &format!("/confirm-email?token={token}")).await;
    assert_eq!(ann.me().await.1["email_proven"], json!(false), "opening the page does not confirm");
    let fields = [("token", &*page.hidden("token")), ("key", &*page.hidden("key"))];
    assert_eq!(submit(&mut ann, "/confirm-email", &fields).await.location(), "/account?notice=proven");
    assert_eq!(ann.me().await.1["email_proven"], json!(true));

    let key = open(&mut phone, "/reset").await.hidden("key");
    let sent = submit(&mut phone, "/reset", &[("email", "ann@example.org"), ("key", &*key)]).await;
    assert!(sent.status == StatusCode::OK && sent.body.contains("data-testid=\"reset-sent\""));
    let token = wait_for_mailed_token(&world, "A new password", "ann@example.org").await;
    let page = open(&mut phone, &format!("/reset?token={token}")).await;
    let fields = [("token", &*page.hidden("token")), ("key", &*page.hidden("key")), ("password", "another password")];
    assert_eq!(submit(&mut phone, "/reset/new", &fields).await.location(), "/login?notice=password-reset");
    let stale = [("token", &*token), ("key", "another-intent"), ("password", "a third password")];
    assert_eq!(submit(&mut phone, "/reset/new", &stale).await.status, StatusCode::GONE);
    assert_eq!(phone.log_in("ann@example.org", "another password").await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_change_the_password_and_sign_out_everywhere() {
    let (world, mut ann) = world_with_ann().await;
    let mut laptop = Browser::new(&world);
    laptop.log_in("ann@example.org", PASSWORD).await;
    let wrong = submit(&mut ann, "/account/password", &[("current", "not it, no"), ("new", "another password")]).await;
    assert!(wrong.status == StatusCode::UNAUTHORIZED && wrong.body.contains("role=\"alert\""));
    let changed = submit(&mut ann, "/account/password", &[("current", PASSWORD), ("new", "another password")]).await;
    assert_eq!(changed.location(), "/account?notice=password-changed");
    assert_eq!((ann.me().await.0, laptop.me().await.0), (StatusCode::OK, StatusCode::UNAUTHORIZED));
    laptop.log_in("ann@example.org", "another password").await;
    let out = submit(&mut ann, "/account/logout-everywhere", &[]).await;
    assert_eq!((out.status, out.location()), (StatusCode::SEE_OTHER, "/login?notice=signed-out"));
    assert_eq!((ann.me().await.0, laptop.me().await.0), (StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED));
    for path in ["/account/password", "/account/email-link", "/account/logout-everywhere", "/confirm-email"] {
        assert!(submit(&mut ann, path, &[]).await.location().starts_with("/login?notice=sign-in-first"), "{path}");
    }
    assert_eq!(submit(&mut ann, "/login", &[("email", "ann@example.org")]).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(submit(&mut ann, "/register", &[]).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test(flavor = "multi_thread")]
async fn cacheable_pages_do_not_depend_on_the_session() {
    let (world, mut ann) = world_with_ann().await;
    let visitor = ann.visitor();
    for path in ["/", "/search", "/theatres/aurora", "/cities/lisbon"] {
        let get =
            |cookie: String| visitor.client.get(format!("{}{path}", visitor.base)).header("cookie", cookie).send();
        let (signed_in, anonymous) =
            (get(visitor.cookie.clone()).await.expect("a page"), get(String::new()).await.expect("a page"));
        assert!(signed_in.headers()["cache-control"].to_str().expect("text").contains("public"), "{path}");
        assert!(!signed_in.headers().contains_key("set-cookie"));
        assert_eq!(signed_in.text().await.expect("HTML"), anonymous.text().await.expect("HTML"), "{path}");
    }
    // The page of a show is not cached, because it fills in the buyer.
    let show = open(&mut ann, &format!("/shows/{}", world.show)).await;
    assert!(show.body.contains("data-name=\"Ann Example\"") && show.body.contains("data-email=\"ann@example.org\""));
    ann.post("/api/v1/users/logout", Value::Null).await;
    let path = format!("/shows/{}", world.show);
    wait_until("the page shows no account", || {
        let mut browser = ann.clone();
        let path = path.clone();
        async move { !open(&mut browser, &path).await.body.contains("data-email") }
    })
    .await;
}
