//! The requests of the crowd, and parsing of the answers.

use anyhow::{Context, Result};
use uuid::Uuid;

use super::client::CrowdAnswer;
use crate::http::text_after;

/// Builds a request with visitor cookie and idempotency key.
pub fn request(method: &str, path: &str, body: &str, visitor: &str, key: &str) -> Vec<u8> {
    request_with_headers(method, path, body, visitor, key, "")
}

/// Builds the same with further headers, each of which ends in CRLF.
pub fn request_with_headers(method: &str, path: &str, body: &str, visitor: &str, key: &str, headers: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: rowlock\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Cookie: rowlock_visitor={visitor}\r\nIdempotency-Key: {key}-{visitor}\r\n{headers}\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Returns the id in an answer.
pub fn id_of(response: &CrowdAnswer) -> Result<Uuid> {
    let id = text_after(&response.body, "id").with_context(|| format!("no id in {}", describe(response)))?;
    Ok(Uuid::parse_str(id)?)
}

/// Describes an answer: status and the start of the body.
pub fn describe(response: &CrowdAnswer) -> String {
    let text: String = String::from_utf8_lossy(&response.body).chars().take(200).collect();
    format!("{} {text}", response.status)
}
