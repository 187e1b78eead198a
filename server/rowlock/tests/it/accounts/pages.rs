//! The pages of accounts, as a browser without scripts uses them.

use reqwest::StatusCode;
use serde_json::json;

use super::{Browser, PASSWORD, form, link_mailed, signed_up};
use crate::world::{World, until};

/// A page: status, where it leads, its text.
pub(super) struct Page {
    pub status: StatusCode,
    pub location: String,
    pub text: String,
}

impl Page {
    /// The value of a hidden field.
    pub fn hidden(&self, name: &str) -> String {
        let field =
            self.text.split("<input").find(|field| field.contains(&format!("name=\"{name}\""))).expect("the field");
        let (_, value) = field.split_once("value=\"").expect("its value");
        value.split('"').next().expect("a text").to_owned()
    }
}

pub(super) async fn open(browser: &mut Browser, path: &str) -> Page {
    let visitor = browser.visitor();
    let request = visitor.client.get(format!("{}{path}", visitor.base)).header("cookie", &visitor.cookie);
    read(browser, request).await
}

pub(super) async fn submit(browser: &mut Browser, path: &str, fields: &[(&str, &str)]) -> Page {
    let visitor = browser.visitor();
    let request = visitor.client.post(format!("{}{path}", visitor.base)).header("cookie", &visitor.cookie);
    read(browser, form(request.header("origin", &visitor.base), fields)).await
}

async fn read(browser: &mut Browser, request: reqwest::RequestBuilder) -> Page {
    let answer = request.send().await.expect("the server answers");
    browser.keep(answer.headers());
    assert_eq!(answer.headers()["cache-control"], "private, no-store", "nobody keeps these pages");
    let location = answer.headers().get("location").map(|to| to.to_str().expect("text").to_owned());
    Page { status: answer.status(), location: location.unwrap_or_default(), text: answer.text().await.expect("HTML") }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_registers_and_signs_in_by_forms_alone_and_goes_on_where_one_was() {
    let world = World::start(1, &[]).await;
    let mut ann = Browser::new(&world);
    let away = open(&mut ann, "/account").await;
    assert_eq!((away.status, &*away.location), (StatusCode::SEE_OTHER, "/login?notice=sign-in-first&next=/account"));
    assert_eq!(open(&mut ann, &away.location).await.hidden("next"), "/account");
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
    assert!(refused.text.contains("role=\"alert\"") && refused.text.contains("value=\"ann@example.org\""));
    assert!(!refused.text.contains("<b>Example") && !refused.text.contains("short\""), "what was typed is text");
    let key = refused.hidden("key");
    let fields = [
        ("name", "Ann Example"),
        ("email", "ann@example.org"),
        ("password", PASSWORD),
        ("key", &*key),
        ("next", &*next),
    ];
    let made = submit(&mut ann, "/register", &fields).await;
    assert_eq!((made.status, &*made.location), (StatusCode::SEE_OTHER, "/search"));
    let own = open(&mut ann, "/account").await;
    assert!(
        own.status == StatusCode::OK && own.text.contains("Ann Example") && own.text.contains("data-testid=\"prove\"")
    );
    let out = submit(&mut ann, "/account/logout", &[]).await;
    assert_eq!((out.status, &*out.location, ann.cookie("rowlock_session")), (StatusCode::SEE_OTHER, "/", None));
    let visitor = ann.visitor();
    let request = visitor.client.post(format!("{}/account/logout", visitor.base)).header("origin", &visitor.base);
    let out = read(&mut ann, form(request.header("authorization", "Bearer nothing"), &[])).await;
    assert_eq!(out.status, StatusCode::SEE_OTHER, "a token that opens nothing is nobody's session");
    let fields = [("email", "ann@example.org"), ("password", "not her password"), ("next", "https://evil.example/")];
    let wrong = submit(&mut ann, "/login", &fields).await;
    assert_eq!((wrong.status, wrong.hidden("next")), (StatusCode::UNAUTHORIZED, String::new()));
    let fields = [("email", "ann@example.org"), ("password", PASSWORD), ("next", "//evil.example/")];
    assert_eq!(submit(&mut ann, "/login", &fields).await.location, "/account", "never to another site");
    // Her address once more, from somebody else: the way on is that of any new account.
    let mut eve = Browser::new(&world);
    let key = open(&mut eve, "/register").await.hidden("key");
    let fields = [("name", "Eve"), ("email", "ann@example.org"), ("password", "another password"), ("key", &*key)];
    let again = submit(&mut eve, "/register", &fields).await;
    assert_eq!((again.status, &*again.location), (StatusCode::SEE_OTHER, "/login?notice=registered"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mails_lead_to_pages_that_do_nothing_until_they_are_pressed() {
    let world = World::start(1, &[]).await;
    let mut ann = signed_up(&world, "ann@example.org").await;
    let token = link_mailed(&world, "Please confirm your address", "ann@example.org").await;
    let mut phone = Browser::new(&world);
    let away = open(&mut phone, &format!("/confirm-email?token={token}")).await;
    assert_eq!(away.location, format!("/login?notice=sign-in-first&next=/confirm-email?token={token}"));
    let next = open(&mut phone, &away.location).await.hidden("next");
    assert_eq!(next, format!("/confirm-email?token={token}"), "the way on is not lost");
    let page = open(&mut ann, &format!("/confirm-email?token={token}")).await;
    assert_eq!(ann.me().await.1["email_proven"], json!(false), "looking is not confirming");
    let fields = [("token", &*page.hidden("token")), ("key", &*page.hidden("key"))];
    assert_eq!(submit(&mut ann, "/confirm-email", &fields).await.location, "/account?notice=proven");
    assert_eq!(ann.me().await.1["email_proven"], json!(true));

    let key = open(&mut phone, "/reset").await.hidden("key");
    let sent = submit(&mut phone, "/reset", &[("email", "ann@example.org"), ("key", &*key)]).await;
    assert!(sent.status == StatusCode::OK && sent.text.contains("data-testid=\"reset-sent\""));
    let token = link_mailed(&world, "A new password", "ann@example.org").await;
    let page = open(&mut phone, &format!("/reset?token={token}")).await;
    let fields = [("token", &*page.hidden("token")), ("key", &*page.hidden("key")), ("password", "another password")];
    assert_eq!(submit(&mut phone, "/reset/new", &fields).await.location, "/login?notice=password-reset");
    let stale = [("token", &*token), ("key", "another-intent"), ("password", "a third password")];
    assert_eq!(submit(&mut phone, "/reset/new", &stale).await.status, StatusCode::GONE);
    assert_eq!(phone.log_in("ann@example.org", "another password").await.0, StatusCode::OK);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_changes_the_password_and_signs_out_everywhere_by_forms() {
    let world = World::start(1, &[]).await;
    let mut ann = signed_up(&world, "ann@example.org").await;
    let mut laptop = Browser::new(&world);
    laptop.log_in("ann@example.org", PASSWORD).await;
    let wrong = submit(&mut ann, "/account/password", &[("current", "not it, no"), ("new", "another password")]).await;
    assert!(wrong.status == StatusCode::UNAUTHORIZED && wrong.text.contains("role=\"alert\""));
    let changed = submit(&mut ann, "/account/password", &[("current", PASSWORD), ("new", "another password")]).await;
    assert_eq!(changed.location, "/account?notice=password-changed");
    assert_eq!((ann.me().await.0, laptop.me().await.0), (StatusCode::OK, StatusCode::UNAUTHORIZED));
    laptop.log_in("ann@example.org", "another password").await;
    let out = submit(&mut ann, "/account/logout-everywhere", &[]).await;
    assert_eq!((out.status, &*out.location), (StatusCode::SEE_OTHER, "/login?notice=signed-out"));
    assert_eq!((ann.me().await.0, laptop.me().await.0), (StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED));
    for path in ["/account/password", "/account/email-link", "/account/logout-everywhere", "/confirm-email"] {
        assert!(submit(&mut ann, path, &[]).await.location.starts_with("/login?notice=sign-in-first"), "{path}");
    }
    assert_eq!(submit(&mut ann, "/login", &[("email", "ann@example.org")]).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(submit(&mut ann, "/register", &[]).await.status, StatusCode::BAD_REQUEST);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_caches_keep_say_nothing_of_whoever_asked_for_them() {
    let world = World::start(1, &[]).await;
    let mut ann = signed_up(&world, "ann@example.org").await;
    let visitor = ann.visitor();
    for path in ["/", "/search", "/theatres/aurora", "/cities/lisbon"] {
        let get =
            |cookie: String| visitor.client.get(format!("{}{path}", visitor.base)).header("cookie", cookie).send();
        let (hers, nobodys) =
            (get(visitor.cookie.clone()).await.expect("a page"), get(String::new()).await.expect("a page"));
        assert!(hers.headers()["cache-control"].to_str().expect("text").contains("public"), "{path}");
        assert!(!hers.headers().contains_key("set-cookie"));
        assert_eq!(hers.text().await.expect("HTML"), nobodys.text().await.expect("HTML"), "{path}");
    }
    // The page of a show is nobody's to keep: it fills in who buys.
    let show = open(&mut ann, &format!("/shows/{}", world.show)).await;
    assert!(show.text.contains("data-name=\"Ann Example\"") && show.text.contains("data-email=\"ann@example.org\""));
    ann.post("/api/v1/users/logout", serde_json::Value::Null).await;
    let path = format!("/shows/{}", world.show);
    until("it is a guest's", || {
        let mut browser = ann.clone();
        let path = path.clone();
        async move { !open(&mut browser, &path).await.text.contains("data-email") }
    })
    .await;
    world.end().await;
}
