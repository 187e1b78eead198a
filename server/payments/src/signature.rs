//! Verifies the signature and age of webhooks. Pure: bytes, secrets and time are arguments.
//!
//! The header is `t=<unix seconds>,v1=<hex>`, the signature HMAC-SHA-256 over `<t>.<raw body>`, as Stripe defines it
//! (<https://docs.stripe.com/webhooks#verify-manually>); our simulator does the same. Only the header's name differs by
//! gateway. The raw bytes are signed, never a re-serialised document. Several secrets and several `v1` are allowed, so that
//! either side can rotate its secret without a gap.

use axum::http::HeaderMap;
use domain::time::{SECOND_MS, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Maximum difference between the signing time and ours, either way, seconds.
pub const TOLERANCE_S: i64 = 300;
/// Maximum length of the header, bytes.
const MAX_HEADER_BYTES: usize = 1024;
/// Most `v1` signatures we try.
const MAX_SIGNATURES: usize = 4;
/// Length of an HMAC-SHA-256, bytes.
const SIGNATURE_BYTES: usize = 32;

/// The reason why a webhook is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// There is no such header.
    #[error("the signature header is missing")]
    Missing,
    /// It cannot be read.
    #[error("the signature header cannot be read")]
    Malformed,
    /// No known secret signed these bytes.
    #[error("the signature does not match the body")]
    Mismatch,
    /// Signed by the gateway, but too long ago or ahead of us: a replay, or a wrong clock.
    #[error("the signature's time is more than {TOLERANCE_S} s away from ours")]
    Stale,
}

/// Verifies a webhook. The age is checked after the signature: only a holder of a secret gets the reason.
///
/// # Errors
/// [`SignatureError`].
pub fn verify(body: &[u8], header: Option<&str>, secrets: &[String], now: Timestamp) -> Result<(), SignatureError> {
    let header = header.ok_or(SignatureError::Missing)?;
    let (signed_at, signatures) = parse(header).ok_or(SignatureError::Malformed)?;
    // An empty secret would accept any signature of an empty key.
    let genuine = secrets.iter().filter(|secret| !secret.is_empty()).any(|secret| {
        let mac = signer(secret, signed_at, body);
        signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
    });
    if !genuine {
        return Err(SignatureError::Mismatch);
    }
    let signed_at_ms = signed_at.saturating_mul(SECOND_MS);
    if now.since(Timestamp(signed_at_ms)).saturating_abs() > TOLERANCE_S * SECOND_MS {
        return Err(SignatureError::Stale);
    }
    Ok(())
}

/// Verifies a webhook whose signature is in the header of that name.
///
/// # Errors
/// [`SignatureError`].
pub fn verify_header(
    headers: &HeaderMap,
    name: &str,
    body: &[u8],
    secrets: &[String],
    now: Timestamp,
) -> Result<(), SignatureError> {
    // A header that is not text counts as malformed.
    let header = headers.get(name).map(|value| value.to_str().unwrap_or_default());
    verify(body, header, secrets, now)
}

fn signer(secret: &str, signed_at: i64, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(signed_at.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    mac
}

/// The time and the signatures of a header; `None` unless there is exactly one time and at least one
/// well-formed signature. Other keys are left for later versions.
fn parse(header: &str) -> Option<(i64, Vec<Vec<u8>>)> {
    if header.len() > MAX_HEADER_BYTES {
        return None;
    }
    let mut signed_at = None;
    let mut signatures = Vec::new();
    for part in header.split(',') {
        match part.trim().split_once('=')? {
            ("t", _) if signed_at.is_some() => return None,
            // Digits only: what is signed is the canonical number, so "+5" or "05" may not pass as 5.
            ("t", seconds) => {
                signed_at = seconds.parse::<i64>().ok().filter(|t| *t >= 0 && t.to_string() == seconds);
                signed_at?;
            }
            ("v1", _) if signatures.len() == MAX_SIGNATURES => return None,
            ("v1", signature) => {
                signatures.push(hex::decode(signature).ok().filter(|bytes| bytes.len() == SIGNATURE_BYTES)?);
            }
            _ => {}
        }
    }
    signed_at.filter(|_| !signatures.is_empty()).map(|signed_at| (signed_at, signatures))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000);
    const NOW_S: i64 = NOW.0 / SECOND_MS;
    const BODY: &[u8] = br#"{"id":"evt_1","type":"payment.succeeded"}"#;

    fn sign(secret: &str, signed_at: i64, body: &[u8]) -> String {
        format!("t={signed_at},v1={}", hex::encode(signer(secret, signed_at, body).finalize().into_bytes()))
    }

    fn secrets(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_signature_known_from_elsewhere_is_accepted() {
        // Computed with: printf '1795000000.hello' | openssl dgst -sha256 -hmac secret
        let header = "t=1795000000,v1=5386974c8d502619b331b6c9d13406991398c847eba91e921e6f93a6b6edcca9";
        assert_eq!(verify(b"hello", Some(header), &secrets(&["secret"]), NOW), Ok(()));
    }

    #[test]
    fn either_of_two_active_secrets_is_accepted() {
        for used in ["old", "new"] {
            assert_eq!(verify(BODY, Some(&sign(used, NOW_S, BODY)), &secrets(&["new", "old"]), NOW), Ok(()));
        }
    }

    #[test]
    fn a_header_with_the_signatures_of_two_secrets_is_accepted() {
        let ours = sign("ours", NOW_S, BODY);
        let header = format!("t={NOW_S},v1={},{}", "0".repeat(64), ours.split_once(',').expect("two parts").1);
        assert_eq!(verify(BODY, Some(&header), &secrets(&["ours"]), NOW), Ok(()));
    }

    #[test]
    fn a_webhook_without_the_header_is_unsigned() {
        assert_eq!(verify(BODY, None, &secrets(&["s"]), NOW), Err(SignatureError::Missing));
    }

    #[test]
    fn a_header_that_cannot_be_read_is_malformed_and_never_a_panic() {
        let long = format!("t=1,v1={}", "a".repeat(MAX_HEADER_BYTES));
        let many = format!("t=1{}", format!(",v1={}", "0".repeat(64)).repeat(MAX_SIGNATURES + 1));
        let good = "0".repeat(64);
        let cases = [
            "".to_owned(),
            "garbage".to_owned(),
            "t=1".to_owned(),
            format!("v1={good}"),
            format!("t=,v1={good}"),
            format!("t=+1,v1={good}"),
            format!("t=01,v1={good}"),
            format!("t=-1,v1={good}"),
            format!("t=99999999999999999999,v1={good}"),
            format!("t=1,t=2,v1={good}"),
            "t=1,v1=zz".to_owned(),
            "t=1,v1=".to_owned(),
            "t=1,v1=abcd".to_owned(),
            "t=1,v1=é".to_owned(),
            long,
            many,
        ];
        for header in &cases {
            assert_eq!(verify(BODY, Some(header), &secrets(&["s"]), NOW), Err(SignatureError::Malformed), "{header}");
        }
    }

    #[test]
    fn another_secret_or_a_changed_byte_is_a_mismatch() {
        let header = sign("theirs", NOW_S, BODY);
        assert_eq!(verify(BODY, Some(&header), &secrets(&["ours"]), NOW), Err(SignatureError::Mismatch));
        let header = sign("ours", NOW_S, BODY);
        let changed = String::from_utf8_lossy(BODY).replace("evt_1", "evt_2");
        assert_eq!(verify(changed.as_bytes(), Some(&header), &secrets(&["ours"]), NOW), Err(SignatureError::Mismatch));
    }

    #[test]
    fn moving_the_time_without_signing_again_is_a_mismatch() {
        let header = sign("ours", NOW_S - 10_000, BODY).replace(&(NOW_S - 10_000).to_string(), &NOW_S.to_string());
        assert_eq!(verify(BODY, Some(&header), &secrets(&["ours"]), NOW), Err(SignatureError::Mismatch));
    }

    #[test]
    fn no_secret_and_an_empty_secret_accept_nothing() {
        for none in [secrets(&[]), secrets(&[""])] {
            assert_eq!(verify(BODY, Some(&sign("", NOW_S, BODY)), &none, NOW), Err(SignatureError::Mismatch));
        }
    }

    #[test]
    fn signatures_of_the_past_and_of_the_future_are_stale_beyond_the_tolerance() {
        for (offset, expected) in [
            (-TOLERANCE_S, Ok(())),
            (TOLERANCE_S, Ok(())),
            (-TOLERANCE_S - 1, Err(SignatureError::Stale)),
            (TOLERANCE_S + 1, Err(SignatureError::Stale)),
            (i64::MAX - NOW_S, Err(SignatureError::Stale)),
        ] {
            let header = sign("s", NOW_S + offset, BODY);
            assert_eq!(verify(BODY, Some(&header), &secrets(&["s"]), NOW), expected, "{offset} s");
        }
    }
}
