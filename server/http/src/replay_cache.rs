//! The replay cache: replays an answer that this process has, before any other layer runs and without calling a store. After
//! an outage thousands of clients retry at once; a retry must not cost as much as the first request.
//!
//! It replays only to the same bytes from the same visitor under the same key ([`Fingerprint`]), with the headers of the
//! full stack. All other requests pass through the full stack; a retry with other bytes finds the same answer there.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use tower::{Service, ServiceExt};

use crate::default_headers::{MIN_COMPRESSED_BYTES, write_default_headers, write_request_id};
use crate::idempotency::{Answer, Fingerprint, metrics, read_key};
use crate::site::is_own_origin;
use crate::{Code, HttpState, Problem, visitor};

/// Deadline of reading a body.
const BODY_DEADLINE: Duration = Duration::from_secs(30);
/// Prefix of the routes with keys.
const API: &str = "/api/v1/";
/// Room for the headers of an answer, so that their list is allocated once.
const USUAL_HEADERS: usize = 16;

/// The middleware in front of the full stack.
pub struct ReplayCache<S>(Arc<ReplayCacheParts<S>>);

struct ReplayCacheParts<S> {
    state: HttpState,
    full_stack: S,
    /// Maximum body length; requests with longer bodies are forwarded unread.
    max_body: usize,
}

impl<S> ReplayCache<S> {
    /// Wraps `full_stack`; reads bodies of up to `max_body` bytes.
    pub fn new(state: HttpState, full_stack: S, max_body: usize) -> Self {
        Self(Arc::new(ReplayCacheParts { state, full_stack, max_body }))
    }
}

impl<S> Clone for ReplayCache<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Service<Request> for ReplayCache<S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match self.0.length_if_candidate(&request) {
            Some(length) => Box::pin(Arc::clone(&self.0).replay_or_forward(request, length)),
            None => Box::pin(self.0.full_stack.clone().oneshot(request)),
        }
    }
}

impl<S> ReplayCacheParts<S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static,
{
    /// The body length of a request that may be a retry: with a key, from a known visitor, not from another site, and
    /// without a `Prefer` header.
    fn length_if_candidate(&self, request: &Request) -> Option<usize> {
        let headers = request.headers();
        let may_be = matches!(*request.method(), Method::POST | Method::PATCH)
            && request.uri().path().starts_with(API)
            && matches!(read_key(headers), Ok(Some(_)))
            && !headers.contains_key("prefer")
            && visitor::plain_secret(headers, self.state.site.is_https()).is_some()
            && is_own_origin(&self.state.site, headers);
        let length = request.body().size_hint().exact().and_then(|length| usize::try_from(length).ok());
        length.filter(|length| may_be && *length <= self.max_body)
    }

    /// Replays the cached answer to a request, or forwards the request to the full stack.
    async fn replay_or_forward(self: Arc<Self>, request: Request, length: usize) -> Result<Response, Infallible> {
        let (mut parts, body) = request.into_parts();
        let body = match tokio::time::timeout(BODY_DEADLINE, read_body(body, length)).await {
            Ok(Some(body)) => body,
            // The client has most likely disconnected.
            Ok(None) | Err(_) => return Ok(Problem::new(Code::Malformed, "The body broke off.").into_response()),
        };
        let began = Instant::now();
        if let Some(fingerprint) = Fingerprint::of(&parts, &body, self.state.site.is_https()) {
            let answer = self.state.idempotency.find_replay(&fingerprint, self.state.clock.now());
            if let Some(answer) = answer.filter(|answer| is_uncompressed(answer, &parts.headers)) {
                let response = self.respond(&parts, &answer);
                metrics::record_replay(began.elapsed());
                return Ok(response);
            }
            parts.extensions.insert(fingerprint);
        }
        let request = Request::from_parts(parts, Body::from(body));
        Box::pin(self.full_stack.clone().oneshot(request)).await
    }

    /// The answer with what the full stack would have added.
    fn respond(&self, parts: &Parts, answer: &Answer) -> Response {
        let mut response = Response::new(Body::from(answer.body().clone()));
        *response.status_mut() = answer.status();
        let headers = response.headers_mut();
        headers.reserve(USUAL_HEADERS);
        answer.write_headers(headers);
        write_default_headers(&self.state, headers, true);
        if answer.body().len() >= usize::from(MIN_COMPRESSED_BYTES) {
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        write_request_id(&parts.headers, headers);
        response
    }
}

/// True if the full stack would send the answer uncompressed.
fn is_uncompressed(answer: &Answer, asked: &HeaderMap) -> bool {
    answer.body().len() < usize::from(MIN_COMPRESSED_BYTES) || !asked.contains_key(header::ACCEPT_ENCODING)
}

/// Reads a body of that length; `None` when the connection broke.
async fn read_body(mut body: Body, length: usize) -> Option<Bytes> {
    let mut read = Bytes::new();
    while read.len() < length {
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await?.ok()?;
        let Ok(data) = frame.into_data() else { continue };
        // Most bodies have only one frame.
        if read.is_empty() {
            read = data;
        } else {
            let mut joined = BytesMut::with_capacity(length);
            joined.extend_from_slice(&read);
            joined.extend_from_slice(&data);
            read = joined.freeze();
        }
    }
    Some(read)
}
