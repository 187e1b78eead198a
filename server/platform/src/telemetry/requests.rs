//! The counting of requests.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use metrics::{counter, histogram};

use super::routes::{RouteName, Routes};
use super::{HTTP_DURATION, HTTP_REQUESTS, traces};

/// Counts a request and how long it took until its answer began.
pub async fn count_request(State(routes): State<&'static Routes>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let route = routes.of(request.uri().path());
    request.extensions_mut().insert(RouteName(route));
    let method = name_of(request.method());
    let response = next.run(request).await;
    traces::record_response(method, route, response.status().as_u16());
    counter!(HTTP_REQUESTS, "method" => method, "route" => route, "status" => status_text(response.status()))
        .increment(1);
    histogram!(HTTP_DURATION, "method" => method, "route" => route).record(began.elapsed());
    response
}

/// The method as a label; clients may send any text, so unknown methods share one.
fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn status_text(status: StatusCode) -> String {
    status.as_str().to_owned()
}
