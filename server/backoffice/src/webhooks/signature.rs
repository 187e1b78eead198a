//! Signs webhook messages, by the scheme that payment gateways use with us (`payments::signature`).
//!
//! `Rowlock-Signature: t=<unix seconds>,v1=<hex>[,v1=<hex>]`, HMAC-SHA-256 over `<t>.<raw body>`. During the rotation
//! of a secret there are two signatures, so that the receiver may switch at any time.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Name of the header.
pub(super) const HEADER: &str = "rowlock-signature";

/// Returns the value of the header.
pub(super) fn sign(body: &[u8], at_s: i64, secrets: &[&str]) -> String {
    let mut header = format!("t={at_s}");
    for secret in secrets {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
        mac.update(at_s.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        header.push_str(",v1=");
        header.push_str(&hex::encode(mac.finalize().into_bytes()));
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_matches_openssl() {
        // Computed with: printf '1795000000.hello' | openssl dgst -sha256 -hmac secret
        let known = "v1=5386974c8d502619b331b6c9d13406991398c847eba91e921e6f93a6b6edcca9";
        assert_eq!(sign(b"hello", 1_795_000_000, &["secret"]), format!("t=1795000000,{known}"));
        let both = sign(b"hello", 1_795_000_000, &["new", "secret"]);
        assert_eq!((both.matches("v1=").count(), both.ends_with(known)), (2, true));
    }
}
