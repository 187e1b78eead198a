//! Another system: a real HTTP server that writes down what it is told, and answers as a test wants it to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;

use crate::world::until;

/// How it answers once.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    Status(u16),
    /// To another path of the same server.
    Redirect,
    /// Never.
    Silence,
}

/// What it was told once.
#[derive(Clone, Debug)]
pub struct Told {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Told {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().expect("text")
    }

    /// How many of the signatures are made with this secret, over these bytes and this time.
    pub fn signed_with(&self, secret: &str) -> usize {
        let header = self.header("rowlock-signature");
        let (time, signatures) = header.split_once(',').expect("a time and signatures");
        let at = time.strip_prefix("t=").expect("a time");
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).expect("any length is a key");
        mac.update(format!("{at}.").as_bytes());
        mac.update(&self.body);
        let expected = format!("v1={}", hex::encode(mac.finalize().into_bytes()));
        signatures.split(',').filter(|signature| **signature == expected).count()
    }

    pub fn signatures(&self) -> usize {
        self.header("rowlock-signature").matches("v1=").count()
    }
}

#[derive(Clone, Default)]
pub struct Receiver {
    told: Arc<Mutex<Vec<Told>>>,
    manners: Arc<Mutex<VecDeque<Manner>>>,
    usual: Arc<Mutex<Option<u16>>>,
    base: String,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let receiver = Self { base, ..Self::default() };
        let app = Router::new().fallback(hear).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        receiver
    }

    pub fn url(&self) -> String {
        format!("{}/hooks", self.base)
    }

    /// Answers like this, one after another, and with 204 then.
    pub fn answers(&self, manners: &[Manner]) {
        self.manners.lock().expect("no panic").extend(manners);
    }

    /// Answers like this from now on.
    pub fn always(&self, status: u16) {
        *self.usual.lock().expect("no panic") = Some(status);
    }

    pub fn told(&self) -> Vec<Told> {
        self.told.lock().expect("no panic").clone()
    }

    /// Waits until it was told so often, and returns all of it.
    pub async fn hears(&self, times: usize) -> Vec<Told> {
        until(&format!("it was told {times} times"), || async { self.told().len() >= times }).await;
        self.told()
    }
}

async fn hear(State(receiver): State<Receiver>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    receiver.told.lock().expect("no panic").push(Told { path: uri.path().to_owned(), headers, body });
    let manner = receiver.manners.lock().expect("no panic").pop_front();
    let usual = receiver.usual.lock().expect("no panic").unwrap_or(204);
    match manner.unwrap_or(Manner::Status(usual)) {
        Manner::Status(status) => StatusCode::from_u16(status).expect("a status").into_response(),
        Manner::Redirect => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/elsewhere")]).into_response(),
        Manner::Silence => std::future::pending().await,
    }
}
