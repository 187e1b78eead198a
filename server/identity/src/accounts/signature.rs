//! HS256 for tokens, with the HMAC the rest of the server uses.
//!
//! The crate's own back-ends bring every algorithm there is. We sign with one, and one that is not here cannot be
//! talked into use: a token that names another is refused before anything is computed.

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

/// For the whole process; a second call is harmless.
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
    /// In constant time.
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

/// The two halves of a secret.
pub(super) fn pair(secret: &[u8]) -> (EncodingKey, DecodingKey) {
    (EncodingKey::from_secret(secret), DecodingKey::from_secret(secret))
}
