//! Randomness of the browser: idempotency keys, and jitter.

use uuid::Uuid;

/// A fresh idempotency key, for one intent.
#[expect(clippy::disallowed_methods, reason = "this is the browser's edge, where ids are made")]
pub fn new_key() -> String {
    Uuid::new_v4().to_string()
}

/// A uniform random number below `limit`, for full jitter.
pub fn jitter(limit: u32) -> u32 {
    (js_sys::Math::random() * f64::from(limit)) as u32
}
