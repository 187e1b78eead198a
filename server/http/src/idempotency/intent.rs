//! A key with the request it is bound to, and its row in Postgres.

use domain::time::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use uuid::Uuid;

use super::{
    Answer, COMPLETED_LIFE_MS, Fingerprint, IdempotencyKey, KEPT_MS, PENDING_LIFE_MS, key_reused, sql, still_running,
};
use crate::{ApiResult, Problem};

/// The identity of an intent in this process: a hash of its scope, its owner and its key.
pub(super) type IntentId = [u8; 32];

/// A key with the request it is bound to.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Separates keys of one owner: the show, for holds.
    scope: Option<Uuid>,
    pub(super) owner: String,
    pub(super) key: String,
    pub(super) request_hash: [u8; 32],
    /// The fingerprint of the request, if one was taken and its cookie is that of the owner.
    pub(super) fingerprint: Option<Fingerprint>,
}

impl Intent {
    /// Binds `key` to a request. `body` is hashed as parsed, so key order and white space do not count.
    #[must_use]
    pub fn new(owner: &str, key: IdempotencyKey, method_and_path: &str, body: &impl Serialize) -> Self {
        let mut hash = Sha256::new();
        hash.update(method_and_path.as_bytes());
        hash.update([0]);
        // A value that was parsed from JSON can be serialised.
        hash.update(serde_json::to_vec(body).unwrap_or_default());
        // The fingerprint uses a faster cookie parser; where the two disagree, the handler's owner counts.
        let fingerprint = key.fingerprint.filter(|fingerprint| fingerprint.is_of(owner));
        Self { scope: None, owner: owner.to_owned(), key: key.key, request_hash: hash.finalize().into(), fingerprint }
    }

    /// Limits the key to a show: the same key in another show is another intent.
    #[must_use]
    pub const fn in_show(mut self, show: Uuid) -> Self {
        self.scope = Some(show);
        self
    }

    /// The same intent, without the fingerprint of its request.
    pub(super) fn without_fingerprint(&self) -> Self {
        Self { fingerprint: None, ..self.clone() }
    }

    /// Owner and key: the primary key in Postgres.
    #[must_use]
    pub fn name(&self) -> (String, String) {
        (self.owner.clone(), self.key.clone())
    }

    /// The key, for ids that are derived from it.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The first 64 bits of the request's hash, for a store that keeps keys itself.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.request_hash.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }

    pub(super) fn id(&self) -> IntentId {
        id_of(self.scope, &self.owner, &self.key)
    }

    /// The stored answer, if there is one.
    ///
    /// # Errors
    /// 422 when the key belongs to another request, 409 while that one is still running.
    pub async fn replay(&self, pg: &PgPool, now: Timestamp) -> ApiResult<Option<Answer>> {
        // Boxed: the future of connecting takes kilobytes, which every request with a key would carry; few connect here.
        let mut connection = Box::pin(pg.acquire()).await?;
        match sql::find(&mut connection, &self.owner, &self.key, now).await? {
            None => Ok(None),
            Some(row) => self.answer_of(row).map(Some),
        }
    }

    /// The stored answer for a retry that was refused: its first request may have committed after the retry looked it up,
    /// and the refusal may be an effect of that first request.
    ///
    /// # Errors
    /// `refused`, if there is no answer.
    pub async fn unless_answered(&self, pg: &PgPool, now: Timestamp, refused: Problem) -> ApiResult<Answer> {
        self.replay(pg, now).await.ok().flatten().ok_or(refused)
    }

    /// Claims the key inside the caller's transaction. `Some` is the answer to give instead of doing
    /// the work; `None` means: do it, then [`Intent::commit`].
    ///
    /// # Errors
    /// As [`Intent::replay`].
    pub async fn begin(&self, tx: &mut PgConnection, now: Timestamp) -> ApiResult<Option<Answer>> {
        let (until, purge_at) = (now.plus_ms(PENDING_LIFE_MS), now.plus_ms(KEPT_MS));
        if sql::claim(tx, &self.owner, &self.key, &self.request_hash, now, (until, purge_at)).await? {
            return Ok(None);
        }
        match sql::find(tx, &self.owner, &self.key, now).await? {
            Some(row) => self.answer_of(row).map(Some),
            // It expired between the two statements; the client retries.
            None => Err(still_running()),
        }
    }

    /// Stores the answer beside the effect and commits both: the counterpart of [`Intent::begin`].
    ///
    /// # Errors
    /// As [`Intent::complete`], or when the commit fails; either way nothing is known to have been written.
    pub async fn commit(&self, mut tx: Transaction<'_, Postgres>, answer: Answer, now: Timestamp) -> ApiResult<Answer> {
        self.complete(&mut tx, &answer, now).await?;
        tx.commit().await?;
        Ok(answer)
    }

    /// Stores the answer in the caller's transaction, for callers with more to do before the commit; others use
    /// [`Intent::commit`].
    ///
    /// # Errors
    /// When the database fails; `RowNotFound` when another replica took the claim over because it considered this one dead:
    /// then that replica has answered, and its answer counts.
    pub async fn complete(&self, tx: &mut PgConnection, answer: &Answer, now: Timestamp) -> sqlx::Result<()> {
        let until = now.plus_ms(COMPLETED_LIFE_MS);
        let (status, body) = (answer.status.as_u16().cast_signed(), &answer.body);
        let stored = sql::complete(tx, &self.owner, &self.key, &self.request_hash, (status, body), until).await?;
        if stored { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
    }

    /// The answer in a row of this key.
    ///
    /// # Errors
    /// As [`Intent::replay`].
    pub(super) fn answer_of(&self, row: sql::KeyRow) -> ApiResult<Answer> {
        if row.request_hash != self.request_hash {
            return Err(key_reused());
        }
        row.answer()?.ok_or_else(still_running)
    }
}

/// The identity of an intent.
pub(super) fn id_of(scope: Option<Uuid>, owner: &str, key: &str) -> IntentId {
    let mut hash = Sha256::new();
    hash.update(scope.unwrap_or(Uuid::nil()).as_bytes());
    hash.update((owner.len() as u32).to_le_bytes());
    hash.update(owner.as_bytes());
    hash.update(key.as_bytes());
    hash.finalize().into()
}

impl sql::KeyRow {
    /// The answer in this row; `None` while the request is running.
    ///
    /// # Errors
    /// When its status is invalid.
    pub(super) fn answer(self) -> ApiResult<Option<Answer>> {
        let (Some(status), Some(body)) = (self.status, self.body) else { return Ok(None) };
        let until = platform::clock::from_utc(self.expires_at);
        Answer::stored(status.cast_unsigned(), body.into(), until).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::api::BookingRequest;

    fn intent(owner: &str, key: &str, path: &str, body: &str) -> Intent {
        let body: BookingRequest = serde_json::from_str(body).expect("a booking request");
        Intent::new(owner, IdempotencyKey { key: key.into(), fingerprint: None }, path, &body)
    }

    const BODY: &str = r#"{"show":"00000000-0000-0000-0000-000000000001","hold":"00000000-0000-0000-0000-000000000002",
        "buyer":{"name":"Ann","email":"a@b.cd"}}"#;

    #[test]
    fn key_order_white_space_escapes_and_nulls_do_not_matter_and_values_do() {
        let first = intent("ann", "k", "POST /bookings", BODY).request_hash;
        let shuffled = r#" {"buyer" : {"email":"a@b.cd", "name":"\u0041nn"}, "holder": null,
            "hold":"00000000-0000-0000-0000-000000000002","show":"00000000-0000-0000-0000-000000000001"}"#;
        assert_eq!(intent("ann", "k", "POST /bookings", shuffled).request_hash, first);
        assert_ne!(intent("ann", "k", "POST /bookings", &BODY.replace("Ann", "Bob")).request_hash, first);
        assert_ne!(intent("ann", "k", "POST /other", BODY).request_hash, first);
    }

    #[test]
    fn the_same_key_of_another_owner_or_show_is_another_intent() {
        let one = |owner, key| intent(owner, key, "POST /bookings", BODY);
        let first = one("ann", "k").id();
        assert_eq!(one("ann", "k").id(), first);
        assert_ne!(one("bob", "k").id(), first);
        assert_ne!(one("ann", "k2").id(), first);
        assert_ne!(one("annk", "").id(), first);
        assert_ne!(one("ann", "k").in_show(Uuid::from_u128(1)).id(), first);
    }
}
