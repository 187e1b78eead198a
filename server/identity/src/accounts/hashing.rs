//! Hashes and verifies passwords: slow by design, so never more at a time than there are cores.
//!
//! A flood of logins fills the bounded queue and is shed with 503. It blocks no request threads, and memory is bounded
//! (19 MiB per running hash).

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use domain::api::accounts::{MAX_PASSWORD_BYTES, Password};
use tokio::sync::Semaphore;

use http::{ApiResult, Code, Problem};
use platform::ids;

/// Memory of one hash, KiB (OWASP's password storage cheat sheet, Argon2id: 19 MiB, 2 rounds, 1 lane).
const MEMORY_KIB: u32 = 19 * 1024;
/// Passes over the memory.
const ROUNDS: u32 = 2;
/// Degree of parallelism.
const LANES: u32 = 1;
/// Length of the decoy's salt in Base64 without padding: 16 bytes, as [`ids::random_bits`] has.
const SALT_CHARS: usize = 22;
/// Length of the decoy's output: 32 bytes, as Argon2 makes by default.
const OUTPUT_CHARS: usize = 43;
/// Maximum number of waiting requests per core: about one second of work.
const WAITERS_PER_CORE: usize = 16;
/// Maximum wait for a core.
const MAX_WAIT: Duration = Duration::from_secs(3);
/// `Retry-After` of a shed request.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The cores for hashing, their queue, and a decoy hash for unknown addresses.
pub(super) struct Hashing {
    /// One permit for each running or waiting request.
    places: Arc<Semaphore>,
    cores: Arc<Semaphore>,
    decoy: Arc<str>,
}

impl Hashing {
    /// Creates the queue for all cores of the machine.
    pub(super) fn new() -> Self {
        Self::with(std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
    }

    fn with(cores: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(cores * (1 + WAITERS_PER_CORE))),
            cores: Arc::new(Semaphore::new(cores)),
            decoy: decoy().into(),
        }
    }

    /// Checks for a free place in the queue, before the request reads the database.
    ///
    /// # Errors
    /// 503 when the queue is full.
    pub(super) fn check_capacity(&self) -> ApiResult<()> {
        if self.places.available_permits() == 0 { Err(queue_full()) } else { Ok(()) }
    }

    /// Hashes a new password with a random salt, as a PHC string.
    ///
    /// # Errors
    /// 503 when the queue is full.
    pub(super) async fn hash(&self, password: &Password) -> ApiResult<String> {
        let password = password.clone();
        let hashed = self.run(move || hash(password.as_bytes())).await?;
        hashed.map_err(|cause| Problem::internal(&cause))
    }

    /// Returns `true` when `password` matches the stored hash. Without a stored hash it takes equally long and returns
    /// `false`.
    ///
    /// # Errors
    /// 503 when the queue is full; 500 for an invalid stored hash.
    pub(super) async fn verify_password(&self, password: &Password, stored: Option<&str>) -> ApiResult<bool> {
        let is_known = stored.is_some();
        let stored: Arc<str> = stored.map_or_else(|| Arc::clone(&self.decoy), Arc::from);
        let password = password.clone();
        let outcome = self.run(move || verify(password.as_bytes(), &stored)).await?;
        let is_right = outcome.map_err(|cause| Problem::internal(&format!("a stored password hash: {cause}")))?;
        Ok(is_right && is_known)
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> ApiResult<T> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| queue_full())?;
        let core = tokio::time::timeout(MAX_WAIT, Arc::clone(&self.cores).acquire_owned()).await;
        let core = core.map_err(|_| queue_full())?.map_err(|cause| Problem::internal(&cause))?;
        // The client may disconnect: the work continues, and holds its core and its place until it is done.
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop((core, place));
            done
        });
        done.await.map_err(|cause| Problem::internal(&cause))
    }
}

fn queue_full() -> Problem {
    Problem::new(Code::Overloaded, "Many people are signing in at this moment. Please try again in a few seconds.")
        .with_retry_after(RETRY_AFTER)
}

/// Returns a hash that takes as long to verify as any other. Its output is zeros: making a real one would take part of
/// every start.
fn decoy() -> String {
    let (salt, output) = ("A".repeat(SALT_CHARS), "A".repeat(OUTPUT_CHARS));
    format!("$argon2id$v=19$m={MEMORY_KIB},t={ROUNDS},p={LANES}${salt}${output}")
}

fn argon2() -> Result<Argon2<'static>, argon2::Error> {
    let params = Params::new(MEMORY_KIB, ROUNDS, LANES, None)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn hash(password: &[u8]) -> Result<String, String> {
    let argon2 = argon2().map_err(|cause| cause.to_string())?;
    let hashed: Result<PasswordHash, _> = argon2.hash_password_with_salt(password, &ids::random_bits());
    hashed.map(|hash| hash.to_string()).map_err(|cause| cause.to_string())
}

/// Verifies with the parameters stored in the hash.
fn verify(password: &[u8], stored: &str) -> Result<bool, String> {
    if password.len() > MAX_PASSWORD_BYTES {
        return Ok(false);
    }
    let stored = PasswordHash::new(stored).map_err(|cause| cause.to_string())?;
    Ok(argon2().map_err(|cause| cause.to_string())?.verify_password(password, &stored).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream::FuturesUnordered;
    use futures::{FutureExt, StreamExt};

    fn password(text: &str) -> Password {
        Password::new(text.to_owned())
    }

    #[tokio::test]
    async fn a_password_matches_its_salted_hash_and_no_other() {
        let hashing = Hashing::new();
        let (one, other) = (
            hashing.hash(&password("correct horse")).await.expect("hashed"),
            hashing.hash(&password("correct horse")).await.expect("hashed"),
        );
        assert_ne!(one, other);
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
        let parts = |hash: &str| hash.split('$').map(str::len).collect::<Vec<_>>();
        assert_eq!(parts(&hashing.decoy), parts(&one), "the decoy takes as long to verify");
        assert_eq!(hashing.decoy.rsplitn(3, '$').last(), one.rsplitn(3, '$').last());
        assert!(hashing.verify_password(&password("correct horse"), Some(&one)).await.expect("compared"));
        assert!(!hashing.verify_password(&password("correct horsf"), Some(&one)).await.expect("compared"));
        assert!(!hashing.verify_password(&password("correct horse"), None).await.expect("compared"));
        assert!(hashing.verify_password(&password("x"), Some("no hash")).await.is_err());
    }

    #[tokio::test]
    async fn a_full_queue_sheds_requests() {
        let hashing = Hashing::with(1);
        let core = Arc::clone(&hashing.cores).acquire_owned().await.expect("the only one");
        let mut line: FuturesUnordered<_> = (0..=WAITERS_PER_CORE).map(|_| hashing.run(|| true)).collect();
        assert!(line.next().now_or_never().is_none(), "all of them wait");
        let refused = hashing.run(|| true).await.expect_err("no place is left");
        assert_eq!(refused.code(), Code::Overloaded);
        assert!(hashing.check_capacity().is_err());
        drop(core);
        while let Some(done) = line.next().await {
            assert!(done.expect("its turn came"));
        }
        assert!(hashing.run(|| true).await.expect("there are places again"));
    }
}
