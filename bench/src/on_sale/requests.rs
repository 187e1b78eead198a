//! What the crowd sends, and what it reads of the answers.

use anyhow::{Context, Result};
use uuid::Uuid;

use super::client::Told;
use crate::http::text_after;

/// A request with a key of its visitor's.
pub fn anywhere(method: &str, path: &str, body: &str, visitor: &str, key: &str) -> Vec<u8> {
    request(method, path, body, visitor, key, "")
}

/// The same with further headers, which end in CRLF each.
pub fn request(method: &str, path: &str, body: &str, visitor: &str, key: &str, headers: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: rowlock\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Cookie: rowlock_visitor={visitor}\r\nIdempotency-Key: {key}-{visitor}\r\n{headers}\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The id an answer tells.
pub fn id_of(told: &Told) -> Result<Uuid> {
    let id = text_after(&told.body, "id").with_context(|| format!("no id in {}", words(told)))?;
    Ok(Uuid::parse_str(id)?)
}

/// An answer for people.
pub fn words(told: &Told) -> String {
    let text: String = String::from_utf8_lossy(&told.body).chars().take(200).collect();
    format!("{} {text}", told.status)
}
