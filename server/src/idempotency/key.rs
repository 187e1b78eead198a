//! The `Idempotency-Key` header.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::web::{Code, Problem};

/// Longest key, characters.
const MAX_KEY_LENGTH: usize = 255;

/// A client's key: 1 to 255 visible ASCII characters, from `Idempotency-Key` or `X-Idempotency-Key`.
#[derive(Clone, Debug)]
pub struct IdempotencyKey(pub String);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = ["idempotency-key", "x-idempotency-key"].iter().find_map(|name| parts.headers.get(*name))
        else {
            return Err(Problem::new(Code::KeyMissing, "Send an Idempotency-Key, a new one for each new intent."));
        };
        let bytes = value.as_bytes();
        if bytes.is_empty() || bytes.len() > MAX_KEY_LENGTH || !bytes.iter().all(u8::is_ascii_graphic) {
            return Err(Problem::new(
                Code::KeyMalformed,
                "An Idempotency-Key is 1 to 255 visible ASCII characters, for example a UUID.",
            ));
        }
        Ok(Self(String::from_utf8_lossy(bytes).into_owned()))
    }
}
