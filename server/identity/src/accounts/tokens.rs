//! Tokens of programs: JWTs with one algorithm and one audience, valid for minutes.
//!
//! A token names its session, and the session is read each time (`sessions`). Signing out, closing the account or
//! changing the password therefore ends its tokens at once, before their expiry.
//!
//! Signatures are HS256, with the HMAC implementation of the rest of the server. The JWT crate's own back-ends support many
//! algorithms; our provider supports one, so a token cannot select another: it is refused before any computation.

use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, new_error};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;

use http::{ApiResult, Code, Problem};

/// Lifetime of a token, milliseconds.
pub(super) const TOKEN_LIFE_MS: i64 = 15 * MINUTE_MS;
/// The `iss` claim.
const ISSUER: &str = "rowlock";
/// The `aud` claim.
const AUDIENCE: &str = "rowlock-api";
/// Minimum length of a secret, bytes (RFC 7518, 3.2: as long as the hash).
const MIN_SECRET_BYTES: usize = 32;
/// Maximum length of a token, bytes; ours have some 350.
const MAX_TOKEN_BYTES: usize = 2_048;

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    /// The account.
    sub: Uuid,
    /// The session.
    sid: Uuid,
    /// Seconds since 1970, as all instants of a token.
    iat: i64,
    exp: i64,
}

/// The session and the account of a valid token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenSubject {
    pub(super) session: Uuid,
    pub(super) account: Uuid,
}

/// Checks that there are secrets of sufficient length.
///
/// # Errors
/// The reason, worded to follow the name of the setting.
fn check_length(secrets: &[String]) -> Result<(), String> {
    if secrets.is_empty() || secrets.iter().any(|secret| secret.len() < MIN_SECRET_BYTES) {
        return Err(format!("needs {MIN_SECRET_BYTES} characters or more: a shorter one could be guessed"));
    }
    Ok(())
}

/// Issues and verifies tokens.
pub(super) struct Tokens {
    signing_key: EncodingKey,
    /// Keys of the current secret and of the one it replaces.
    verifying_keys: Vec<DecodingKey>,
    secret: Vec<u8>,
    rules: Validation,
}

impl Tokens {
    /// Builds the keys: the first secret signs; all of them verify.
    pub(super) fn new(secrets: &[String]) -> anyhow::Result<Self> {
        install_provider();
        let first = secrets.first().map(String::as_bytes).unwrap_or_default();
        check_length(secrets).map_err(|why| anyhow::anyhow!("TOKEN_SECRET {why}"))?;
        let (signing_key, _) = key_pair(first);
        let mut rules = Validation::new(ALGORITHM);
        rules.set_audience(&[AUDIENCE]);
        rules.set_issuer(&[ISSUER]);
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // Checked below, with the clock that all replicas share.
        rules.validate_exp = false;
        let verifying_keys = secrets.iter().map(|secret| key_pair(secret.as_bytes()).1).collect();
        Ok(Self { signing_key, verifying_keys, secret: first.to_vec(), rules })
    }

    pub(super) fn issue(&self, named: TokenSubject, now: Timestamp) -> ApiResult<String> {
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            sub: named.account,
            sid: named.session,
            iat: now.0.div_euclid(SECOND_MS),
            exp: now.plus_ms(TOKEN_LIFE_MS).0.div_euclid(SECOND_MS),
        };
        jsonwebtoken::encode(&Header::new(ALGORITHM), &claims, &self.signing_key)
            .map_err(|cause| Problem::internal(&cause))
    }

    /// Verifies a token and returns its session and account.
    ///
    /// # Errors
    /// 401 when it is invalid, for another audience, or expired.
    pub(super) fn read(&self, token: &str, now: Timestamp) -> ApiResult<TokenSubject> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(invalid());
        }
        let read = |key| jsonwebtoken::decode::<Claims>(token, key, &self.rules).ok();
        let claims = self.verifying_keys.iter().find_map(read).ok_or_else(invalid)?.claims;
        if now.0.div_euclid(SECOND_MS) >= claims.exp {
            return Err(invalid());
        }
        Ok(TokenSubject { session: claims.sid, account: claims.sub })
    }

    /// Returns a keyed digest of a secret, the same on every replica, which identifies duplicate requests. A plain hash
    /// of a password would bypass the cost of Argon2.
    pub(super) fn digest(&self, of: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("any length is a key");
        mac.update(b"request\0");
        mac.update(of);
        hex::encode(mac.finalize().into_bytes())
    }
}

/// Builds the refusal of a token: the same for all defects.
pub(super) fn invalid() -> Problem {
    Problem::new(Code::TokenInvalid, "Sign in again for a new token.")
}

/// The only algorithm.
const ALGORITHM: Algorithm = Algorithm::HS256;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| {
        allowed(*algorithm, key.family())?;
        Ok(Box::new(Hs256(keyed(key.as_bytes())?)))
    },
    verifier_factory: |algorithm, key| {
        allowed(*algorithm, key.family())?;
        Ok(Box::new(Hs256(keyed(key.try_get_as_bytes()?)?)))
    },
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs the provider for the process; repeated calls are harmless.
fn install_provider() {
    let _ = PROVIDER.install_default();
}

fn allowed(algorithm: Algorithm, family: AlgorithmFamily) -> jsonwebtoken::errors::Result<()> {
    let is_ours = algorithm == ALGORITHM && family == AlgorithmFamily::Hmac;
    if is_ours { Ok(()) } else { Err(new_error(ErrorKind::InvalidAlgorithm)) }
}

fn keyed(secret: &[u8]) -> jsonwebtoken::errors::Result<Hmac<Sha256>> {
    Hmac::new_from_slice(secret).map_err(|_| new_error(ErrorKind::InvalidKeyFormat))
}

struct Hs256(Hmac<Sha256>);

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        let mut mac = self.0.clone();
        mac.update(message);
        Ok(mac.finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    /// Compares in constant time.
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.verify_slice(signature).map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        ALGORITHM
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        ALGORITHM
    }
}

/// Returns the signing and the verifying key of a secret.
fn key_pair(secret: &[u8]) -> (EncodingKey, DecodingKey) {
    (EncodingKey::from_secret(secret), DecodingKey::from_secret(secret))
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};

    use super::*;

    const SECRET: &str = "a secret of these tests, long enough to be one";
    const NOW: Timestamp = Timestamp(1_795_000_000_000);

    fn tokens(secrets: &[&str]) -> Tokens {
        Tokens::new(&secrets.iter().map(|secret| (*secret).to_owned()).collect::<Vec<_>>()).expect("they can be made")
    }

    fn named() -> TokenSubject {
        TokenSubject { session: Uuid::from_u128(7), account: Uuid::from_u128(8) }
    }

    fn signed(header: &Value, claims: &Value, secret: &str) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key");
        mac.update(message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
    }

    fn claims() -> Value {
        json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": Uuid::from_u128(8), "sid": Uuid::from_u128(7),
            "iat": NOW.0 / 1_000, "exp": NOW.0 / 1_000 + 900 })
    }

    #[test]
    fn a_token_is_valid_until_its_expiry() {
        let tokens = tokens(&[SECRET]);
        let token = tokens.issue(named(), NOW).expect("issued");
        assert_eq!(tokens.read(&token, NOW).expect("read"), named());
        assert!(tokens.read(&token, NOW.plus_ms(TOKEN_LIFE_MS - 1_000)).is_ok());
        let late = tokens.read(&token, NOW.plus_ms(TOKEN_LIFE_MS)).expect_err("too old");
        assert_eq!(late.code(), Code::TokenInvalid);
    }

    #[test]
    fn another_algorithm_secret_audience_or_issuer_is_refused() {
        let tokens = tokens(&[SECRET]);
        let usual = json!({ "alg": "HS256", "typ": "JWT" });
        assert!(tokens.read(&signed(&usual, &claims(), SECRET), NOW).is_ok(), "the forger's hand is good");
        for algorithm in ["none", "None", "HS512", "RS256", "ES256", ""] {
            let token = signed(&json!({ "alg": algorithm, "typ": "JWT" }), &claims(), SECRET);
            assert!(tokens.read(&token, NOW).is_err(), "{algorithm}");
            let (message, _) = token.rsplit_once('.').expect("three parts");
            assert!(tokens.read(&format!("{message}."), NOW).is_err(), "{algorithm}, unsigned");
        }
        assert!(
            tokens.read(&signed(&usual, &claims(), "another secret that is as long as it has to be"), NOW).is_err()
        );
        for (name, value) in [
            ("aud", json!("others")),
            ("iss", json!("others")),
            ("exp", json!("never")),
            ("exp", Value::Null),
            ("aud", Value::Null),
            ("iss", Value::Null),
            ("sid", Value::Null),
            ("sub", json!("nobody")),
        ] {
            let mut odd = claims();
            odd[name] = value.clone();
            assert!(tokens.read(&signed(&usual, &odd, SECRET), NOW).is_err(), "{name} {value}");
        }
        for text in ["", ".", "..", "a.b.c", &"x".repeat(MAX_TOKEN_BYTES + 1)] {
            assert!(tokens.read(text, NOW).is_err());
        }
    }

    #[test]
    fn both_secrets_verify_during_rotation_and_short_ones_are_refused() {
        let next = "the next secret of these tests, as long as it";
        let old = tokens(&[SECRET]).issue(named(), NOW).expect("issued");
        let both = tokens(&[next, SECRET]);
        assert!(both.read(&old, NOW).is_ok());
        let new = both.issue(named(), NOW).expect("issued");
        assert!(tokens(&[SECRET]).read(&new, NOW).is_err() && tokens(&[next]).read(&new, NOW).is_ok());
        assert!(Tokens::new(&["short".to_owned()]).is_err() && Tokens::new(&[]).is_err());
        assert!(Tokens::new(&[SECRET.to_owned(), "short".to_owned()]).is_err());
    }

    #[test]
    fn a_digest_depends_on_the_secret() {
        let next = "the next secret of these tests, as long as it";
        assert_eq!(tokens(&[SECRET]).digest(b"x"), tokens(&[SECRET]).digest(b"x"));
        assert_ne!(tokens(&[SECRET]).digest(b"x"), tokens(&[next]).digest(b"x"));
    }
}
