//! HS256 signatures of tokens, with the HMAC implementation of the rest of the server.
//!
//! The JWT crate's own back-ends support many algorithms. This provider supports one, so a token cannot select another:
//! it is refused before any computation.

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result, new_error};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, EncodingKey};
use sha2::Sha256;

/// The only algorithm.
pub(super) const ALGORITHM: Algorithm = Algorithm::HS256;

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
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

fn allowed(algorithm: Algorithm, family: AlgorithmFamily) -> Result<()> {
    let is_ours = algorithm == ALGORITHM && family == AlgorithmFamily::Hmac;
    if is_ours { Ok(()) } else { Err(new_error(ErrorKind::InvalidAlgorithm)) }
}

fn keyed(secret: &[u8]) -> Result<Hmac<Sha256>> {
    Hmac::new_from_slice(secret).map_err(|_| new_error(ErrorKind::InvalidKeyFormat))
}

struct Hs256(Hmac<Sha256>);

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        let mut mac = self.0.clone();
        mac.update(message);
        Ok(mac.finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    /// Compares in constant time.
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.verify_slice(signature).map_err(|_| Error::new())
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
pub(super) fn pair(secret: &[u8]) -> (EncodingKey, DecodingKey) {
    (EncodingKey::from_secret(secret), DecodingKey::from_secret(secret))
}
