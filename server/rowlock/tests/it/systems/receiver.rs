//! A webhook endpoint: an HTTP server that records requests and answers as the test configures it.

use std::collections::VecDeque;
use std::sync::Mutex;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use hmac::{Hmac, KeyInit, Mac};

use crate::prelude::*;
use crate::telemetry::serve;

#[derive(Clone, Copy, Debug)]
pub enum ReceiverReply {
    Status(u16),
    /// A redirect to another path of the same server.
    Redirect,
    Silence,
}

#[derive(Clone, Debug)]
pub struct Delivery {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Delivery {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().expect("text")
    }

    /// Number of signatures made with this secret over the received body and time.
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
    deliveries: Arc<Mutex<Vec<Delivery>>>,
    replies: Arc<Mutex<VecDeque<ReceiverReply>>>,
    usual: Arc<Mutex<Option<u16>>>,
    base: String,
}

impl Receiver {
    pub async fn start() -> Self {
        let receiver = Self::default();
        let base = serve(Router::new().fallback(receive).with_state(receiver.clone())).await;
        Self { base, ..receiver }
    }

    pub fn url(&self) -> String {
        format!("{}/hooks", self.base)
    }

    /// Gives these answers in turn, then 204.
    pub fn reply_with(&self, replies: &[ReceiverReply]) {
        self.replies.lock().expect("no panic").extend(replies);
    }

    pub fn always_reply(&self, status: u16) {
        *self.usual.lock().expect("no panic") = Some(status);
    }

    pub fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries.lock().expect("no panic").clone()
    }

    pub async fn wait_for_deliveries(&self, times: usize) -> Vec<Delivery> {
        wait_until(&format!("{times} deliveries have arrived"), || async { self.deliveries().len() >= times }).await;
        self.deliveries()
    }
}

async fn receive(State(receiver): State<Receiver>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    receiver.deliveries.lock().expect("no panic").push(Delivery { path: uri.path().to_owned(), headers, body });
    let reply = receiver.replies.lock().expect("no panic").pop_front();
    let usual = receiver.usual.lock().expect("no panic").unwrap_or(204);
    match reply.unwrap_or(ReceiverReply::Status(usual)) {
        ReceiverReply::Status(status) => StatusCode::from_u16(status).expect("a status").into_response(),
        ReceiverReply::Redirect => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/elsewhere")]).into_response(),
        ReceiverReply::Silence => std::future::pending().await,
    }
}
