//! Accounts: browsers with all their cookies, and programs with tokens.

mod belongings;
mod pages;
mod passwords;
mod sign_in;
mod staff;

use std::collections::BTreeMap;

use reqwest::header::HeaderMap;

use crate::prelude::*;

pub const PASSWORD: &str = "correct horse battery";

#[derive(Clone)]
pub struct Browser {
    visitor: Visitor,
    cookies: BTreeMap<String, String>,
}

pub type FullAnswer = (StatusCode, HeaderMap, Value);

impl Browser {
    pub fn new(world: &World) -> Self {
        Self::at(world, 0)
    }

    pub fn at(world: &World, server: usize) -> Self {
        Self { visitor: Visitor { cookie: String::new(), ..world.visitor_at(server) }, cookies: BTreeMap::new() }
    }

    pub fn moved_to(&self, world: &World, server: usize) -> Self {
        let base = world.servers[server].url.clone();
        Self { visitor: Visitor { base, ..self.visitor.clone() }, cookies: self.cookies.clone() }
    }

    pub fn visitor(&self) -> Visitor {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Visitor { cookie: cookies.join("; "), ..self.visitor.clone() }
    }

    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.get(name).map(String::as_str)
    }

    pub fn put_cookie(&mut self, name: &str, value: &str) {
        self.cookies.insert(name.to_owned(), value.to_owned());
    }

    /// Sends a request with these headers and stores the cookies of the answer.
    pub async fn send_with(
        &mut self,
        method: Method,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> FullAnswer {
        let mut request = self.visitor().request(method, path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = RawAnswer::of(if body.is_null() { request } else { request.json(body) }).await;
        self.keep(&answer.headers);
        let body = if answer.body.is_empty() { Value::Null } else { answer.json() };
        (answer.status, answer.headers, body)
    }

    pub async fn send(&mut self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        let key = new_id().to_string();
        let (status, _, body) = self.send_with(method, path, &body, &[("idempotency-key", &key)]).await;
        (status, body)
    }

    pub async fn post(&mut self, path: &str, body: Value) -> (StatusCode, Value) {
        self.send(Method::POST, path, body).await
    }

    pub async fn get(&mut self, path: &str) -> (StatusCode, Value) {
        self.send(Method::GET, path, Value::Null).await
    }

    pub async fn page(&self, path: &str) -> (StatusCode, String) {
        self.visitor().page(path).await
    }

    fn keep(&mut self, headers: &HeaderMap) {
        for cookie in headers.get_all("set-cookie") {
            let cookie = cookie.to_str().expect("text");
            let (pair, rest) = cookie.split_once(';').expect("attributes");
            let (name, value) = pair.split_once('=').expect("a pair");
            if rest.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    pub async fn register(&mut self, email: &str, password: &str) -> (StatusCode, Value) {
        self.post("/api/v1/users/register", json!({ "name": "Ann Example", "email": email, "password": password }))
            .await
    }

    pub async fn log_in(&mut self, email: &str, password: &str) -> (StatusCode, Value) {
        self.post("/api/v1/users/login", json!({ "email": email, "password": password })).await
    }

    pub async fn token(&mut self, email: &str) -> String {
        let body = json!({ "email": email, "password": PASSWORD, "token": true });
        let answer = expect_answer(self.post("/api/v1/users/login", body).await, StatusCode::OK);
        text(&answer["token"]).to_owned()
    }

    pub async fn me(&mut self) -> (StatusCode, Value) {
        self.get("/api/v1/users/me").await
    }

    pub async fn bookings(&mut self) -> Vec<Value> {
        let page = expect_answer(self.get("/api/v1/users/me/bookings").await, StatusCode::OK);
        page["bookings"].as_array().expect("a list").clone()
    }
}

pub fn form(request: reqwest::RequestBuilder, fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let coded = reqwest::Url::parse_with_params("http://form/", fields).expect("fields of a form");
    let kind = ("content-type", "application/x-www-form-urlencoded");
    request.header(kind.0, kind.1).body(coded.query().unwrap_or_default().to_owned())
}

async fn world_with_ann() -> (World, Browser) {
    let world = World::start(1, &[]).await;
    let ann = register_and_log_in(&world, "ann@example.org").await;
    (world, ann)
}

pub async fn register_and_log_in(world: &World, email: &str) -> Browser {
    let mut browser = Browser::new(world);
    expect_answer(browser.register(email, PASSWORD).await, StatusCode::CREATED);
    expect_answer(browser.log_in(email, PASSWORD).await, StatusCode::OK);
    browser
}

/// A guest who has an account and has not signed in, and a browser with a copy of the guest's cookie.
pub async fn guest_with_copied_cookie(world: &World) -> (Browser, Browser) {
    register_and_log_in(world, "ann@example.org").await;
    let mut phone = Browser::new(world);
    phone.put_cookie("rowlock_visitor", &new_id().simple().to_string());
    (phone.clone(), phone)
}

/// Mails with this subject. Decodes quoted-printable as far as links need it.
pub fn mails_about(world: &World, subject: &str) -> Vec<String> {
    let mails = world.mails().into_iter().map(|mail| mail.replace("=\r\n", "").replace("=3D", "="));
    mails.filter(|mail| mail.contains(&format!("Subject: {subject}"))).collect()
}

/// Registers an account, signs in, and proves the address with the mailed link.
pub async fn register_proven(world: &World, email: &str) -> Browser {
    let mut browser = register_and_log_in(world, email).await;
    let token = wait_for_mailed_token(world, "Please confirm your address", email).await;
    expect_answer(browser.post("/api/v1/users/me/email/proof", json!({ "token": token })).await, StatusCode::OK);
    browser
}

/// Waits for a mail with this subject to this address, and returns the token of its link.
pub async fn wait_for_mailed_token(world: &World, subject: &str, email: &str) -> String {
    let found = || mails_about(world, subject).into_iter().find(|mail| mail.contains(email));
    wait_until(&format!("{subject:?} is mailed to {email}"), || async { found().is_some() }).await;
    let mail = found().expect("the mail was found");
    let (_, rest) = mail.split_once("?token=").expect("a link");
    rest.chars().take_while(char::is_ascii_hexdigit).collect()
}

pub async fn grant(world: &World, email: &str, theatre: &str, role: &str) {
    let granted = "INSERT INTO staff_grants (account_id, theatre_id, role, granted_at)
                   SELECT id, $2, $3, now() FROM accounts WHERE email = $1";
    let rows = world.run(sqlx::query(granted).bind(email).bind(theatre).bind(role)).await;
    assert_eq!(rows, 1, "{email} has an account");
}

pub async fn another_theatre(world: &World) {
    let theatre = "INSERT INTO theatres VALUES ('rialto', 'lisbon', 'Rialto', 'Rua 2', 'EUR')";
    world.execute(theatre).await;
}
