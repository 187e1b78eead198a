//! The first layer: completed answers of this process, found without asking any store.
//!
//! It contains only answers: no running and no failed requests. Evicted answers are still in Redis or Postgres. The oldest
//! are evicted first, because most retries come soon. The crate `moka` finds an entry by one key only; here an answer has a
//! key and up to four fingerprints, which are evicted with it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, PoisonError, RwLock};

use domain::time::{MINUTE_MS, Timestamp};

use super::intent::IntentId;
use super::{Answer, Intent};

/// Maximum number of cached answers.
const MAX_ANSWERS: usize = 65_536;
/// Maximum size of the cached answers with their overhead, bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Maximum size of a cached answer, bytes: a longer one would evict many.
const MAX_ANSWER_BYTES: usize = 32 * 1024;
/// Memory per answer besides its body, bytes: two map entries and a place in the queue.
const OVERHEAD_BYTES: usize = 512;
/// Maximum number of fingerprints per answer; retries with other bytes use the slower lookup.
const MAX_FINGERPRINTS: usize = 4;

/// Time for which a merged visitor is remembered, milliseconds: by then all requests that ran during the merge have ended.
const MERGED_FOR_MS: i64 = 5 * MINUTE_MS;

#[derive(Clone, Copy, Debug)]
struct CacheLimits {
    answers: usize,
    bytes: usize,
}

/// A cached answer with its request.
#[derive(Debug)]
pub(super) struct CachedAnswer {
    pub(super) request_hash: [u8; 32],
    pub(super) answer: Answer,
    id: IntentId,
    owner: String,
    until: Timestamp,
}

impl CachedAnswer {
    fn weight(&self) -> usize {
        self.answer.body.len() + OVERHEAD_BYTES
    }
}

#[derive(Debug)]
pub(super) struct ProcessCache {
    limits: CacheLimits,
    inner: RwLock<CacheTables>,
}

#[derive(Debug, Default)]
struct CacheTables {
    by_id: HashMap<IntentId, CachedKey>,
    by_fingerprint: HashMap<[u8; 32], Arc<CachedAnswer>>,
    /// Oldest first. Replaced entries stay in it until they reach the front.
    queue: VecDeque<Arc<CachedAnswer>>,
    bytes: usize,
    /// Visitors who were merged into accounts lately, and until when that is remembered.
    merged: HashMap<String, Timestamp>,
}

#[derive(Debug)]
struct CachedKey {
    kept: Arc<CachedAnswer>,
    fingerprints: Vec<[u8; 32]>,
}

impl Default for ProcessCache {
    fn default() -> Self {
        Self::with_limits(CacheLimits { answers: MAX_ANSWERS, bytes: MAX_BYTES })
    }
}

impl ProcessCache {
    fn with_limits(limits: CacheLimits) -> Self {
        Self { limits, inner: RwLock::default() }
    }

    /// The answer under a key; the caller checks that it belongs to the same request.
    pub(super) fn find(&self, id: &IntentId, now: Timestamp) -> Option<Arc<CachedAnswer>> {
        let inner = self.read();
        inner.by_id.get(id).map(|entry| &entry.kept).filter(|kept| kept.until > now).cloned()
    }

    /// The answer to a request with this fingerprint.
    pub(super) fn find_by_fingerprint(&self, digest: &[u8; 32], now: Timestamp) -> Option<Arc<CachedAnswer>> {
        self.read().by_fingerprint.get(digest).filter(|kept| kept.until > now).cloned()
    }

    /// Caches an answer that is committed, until its expiry.
    pub(super) fn keep(&self, intent: &Intent, answer: &Answer, until: Timestamp, now: Timestamp) {
        if answer.body.len() > MAX_ANSWER_BYTES || until <= now {
            return;
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        inner.put(intent, answer, until, now);
        inner.shrink(self.limits, now);
    }

    /// Adds another fingerprint of a request whose answer is cached.
    pub(super) fn add_fingerprint(&self, intent: &Intent) {
        let Some(fingerprint) = intent.fingerprint else { return };
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        inner.insert_fingerprint(&intent.id(), &intent.request_hash, fingerprint.digest);
    }

    /// True if the answer to this request is found by its fingerprint: then it was given to the visitor of that cookie, and
    /// that visitor has not been merged into an account since, as far as this process knows.
    pub(super) fn has_fingerprint(&self, intent: &Intent) -> bool {
        let inner = self.read();
        let entry = inner.by_id.get(&intent.id()).filter(|entry| entry.kept.request_hash == intent.request_hash);
        entry.is_some_and(|entry| entry.fingerprints.iter().any(|digest| inner.by_fingerprint.contains_key(digest)))
    }

    /// Removes the fingerprints of visitors who were merged into accounts: their cookies from before may have been copied.
    /// Their answers are still found by key.
    pub(super) fn forget_fingerprints(&self, owners: impl IntoIterator<Item = String>, now: Timestamp) {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let CacheTables { by_fingerprint, merged, .. } = &mut *inner;
        merged.retain(|_, until| *until > now);
        let until = now.plus_ms(MERGED_FOR_MS);
        let new: HashSet<String> =
            owners.into_iter().filter(|owner| merged.insert(owner.clone(), until).is_none()).collect();
        if !new.is_empty() {
            by_fingerprint.retain(|_, kept| !new.contains(&kept.owner));
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, CacheTables> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheTables {
    /// Inserts an answer, unless the key has one for the same request; adds the fingerprint of this request.
    fn put(&mut self, intent: &Intent, answer: &Answer, until: Timestamp, now: Timestamp) {
        let id = intent.id();
        let known = self.by_id.get(&id).filter(|entry| entry.kept.until > now);
        if known.is_none_or(|entry| entry.kept.request_hash != intent.request_hash) {
            let (request_hash, answer) = (intent.request_hash, answer.clone());
            let kept = Arc::new(CachedAnswer { request_hash, answer, id, owner: intent.owner.clone(), until });
            self.bytes += kept.weight();
            self.queue.push_back(Arc::clone(&kept));
            if let Some(old) = self.by_id.insert(id, CachedKey { kept, fingerprints: Vec::new() }) {
                old.fingerprints.iter().for_each(|digest| drop(self.by_fingerprint.remove(digest)));
            }
        }
        if let Some(fingerprint) = intent.fingerprint {
            self.insert_fingerprint(&id, &intent.request_hash, fingerprint.digest);
        }
    }

    fn insert_fingerprint(&mut self, id: &IntentId, request_hash: &[u8; 32], digest: [u8; 32]) {
        let Some(entry) = self.by_id.get_mut(id) else { return };
        if entry.kept.request_hash != *request_hash
            || entry.fingerprints.len() >= MAX_FINGERPRINTS
            || self.merged.contains_key(&entry.kept.owner)
        {
            return;
        }
        if let Entry::Vacant(place) = self.by_fingerprint.entry(digest) {
            place.insert(Arc::clone(&entry.kept));
            entry.fingerprints.push(digest);
        }
    }

    /// Evicts expired entries and the oldest until the limits hold.
    fn shrink(&mut self, limits: CacheLimits, now: Timestamp) {
        while let Some(oldest) = self.queue.front()
            && (self.queue.len() > limits.answers || self.bytes > limits.bytes || oldest.until <= now)
        {
            let Some(gone) = self.queue.pop_front() else { return };
            self.bytes -= gone.weight();
            if let Entry::Occupied(entry) = self.by_id.entry(gone.id)
                && Arc::ptr_eq(&entry.get().kept, &gone)
            {
                entry.remove().fingerprints.iter().for_each(|digest| drop(self.by_fingerprint.remove(digest)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idempotency::IdempotencyKey;
    use axum::http::StatusCode;

    const NOW: Timestamp = Timestamp(1_000);
    const LATER: Timestamp = Timestamp(2_000);

    fn intent(key: &str, body: &str) -> Intent {
        Intent::new("ann", IdempotencyKey { key: key.into(), fingerprint: None }, "POST /", &body)
    }

    fn answer(body: &str) -> Answer {
        Answer::json(StatusCode::CREATED, &body).expect("JSON")
    }

    fn body_of(cache: &ProcessCache, key: &str, now: Timestamp) -> Option<Vec<u8>> {
        cache.find(&intent(key, "").id(), now).map(|kept| kept.answer.body.to_vec())
    }

    #[test]
    fn an_answer_is_found_until_it_expires_and_the_first_one_stays() {
        let cache = ProcessCache::default();
        cache.keep(&intent("k", "b"), &answer("first"), LATER, NOW);
        cache.keep(&intent("k", "b"), &answer("second"), LATER, NOW);
        assert_eq!(body_of(&cache, "k", NOW), Some(b"\"first\"".to_vec()));
        assert_eq!(body_of(&cache, "other", NOW), None);
        assert_eq!(body_of(&cache, "k", LATER), None, "expired");
        cache.keep(&intent("k", "b"), &answer("over"), NOW, NOW);
        cache.keep(&intent("k", "b"), &answer("new"), Timestamp(3_000), LATER);
        assert_eq!(body_of(&cache, "k", LATER), Some(b"\"new\"".to_vec()));
    }

    #[test]
    fn the_oldest_are_evicted_beyond_the_limits() {
        for limits in
            [CacheLimits { answers: 3, bytes: usize::MAX }, CacheLimits { answers: 9, bytes: 3 * (OVERHEAD_BYTES + 3) }]
        {
            let cache = ProcessCache::with_limits(limits);
            for key in ["a", "b", "c", "d", "e"] {
                cache.keep(&intent(key, ""), &answer(key), LATER, NOW);
            }
            assert_eq!(["a", "b", "c"].map(|key| body_of(&cache, key, NOW).is_some()), [false, false, true]);
            let inner = cache.read();
            assert_eq!((inner.queue.len(), inner.by_id.len()), (3, 3));
            assert_eq!(inner.bytes, inner.queue.iter().map(|kept| kept.weight()).sum::<usize>());
        }
    }

    #[test]
    fn fingerprints_of_one_answer_are_limited_and_evicted_with_it() {
        let cache = ProcessCache::with_limits(CacheLimits { answers: 1, bytes: usize::MAX });
        let (first, other) = (intent("k", "b"), intent("k", "another body"));
        cache.keep(&first, &answer("x"), LATER, NOW);
        {
            let mut inner = cache.inner.write().expect("unpoisoned");
            for digest in 0..10 {
                inner.insert_fingerprint(&first.id(), &first.request_hash, [digest; 32]);
            }
            inner.insert_fingerprint(&other.id(), &other.request_hash, [99; 32]);
            assert_eq!(inner.by_fingerprint.len(), MAX_FINGERPRINTS);
        }
        assert!(cache.find_by_fingerprint(&[0; 32], NOW).is_some());
        assert!(cache.find_by_fingerprint(&[0; 32], LATER).is_none(), "expired");
        assert!(cache.find_by_fingerprint(&[99; 32], NOW).is_none(), "of another body");
        cache.keep(&intent("next", ""), &answer("y"), LATER, NOW);
        assert!(cache.find_by_fingerprint(&[0; 32], NOW).is_none());
        assert!(cache.read().by_fingerprint.is_empty());
    }

    #[test]
    fn an_answer_of_a_merged_visitor_is_found_by_key_and_not_by_fingerprint() {
        let cache = ProcessCache::default();
        let hers = intent("k", "b");
        cache.keep(&hers, &answer("x"), LATER, NOW);
        let add = |digest| {
            cache.inner.write().expect("unpoisoned").insert_fingerprint(&hers.id(), &hers.request_hash, digest)
        };
        add([1; 32]);
        cache.forget_fingerprints(["ben".to_owned()], NOW);
        assert!(cache.find_by_fingerprint(&[1; 32], NOW).is_some() && cache.has_fingerprint(&hers), "another's");
        assert!(!cache.has_fingerprint(&intent("k", "another body")));
        cache.forget_fingerprints(["ann".to_owned()], NOW);
        assert!(cache.find_by_fingerprint(&[1; 32], NOW).is_none() && !cache.has_fingerprint(&hers));
        add([2; 32]);
        assert!(cache.find_by_fingerprint(&[2; 32], NOW).is_none(), "a request that ran during the merge");
        assert!(cache.find(&hers.id(), NOW).is_some());
    }

    #[test]
    fn a_long_answer_is_not_cached() {
        let cache = ProcessCache::default();
        cache.keep(&intent("k", ""), &answer(&"x".repeat(MAX_ANSWER_BYTES)), LATER, NOW);
        assert_eq!(body_of(&cache, "k", NOW), None);
    }
}
