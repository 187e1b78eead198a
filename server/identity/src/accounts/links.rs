//! Links in mails: random, usable once and until they expire; only their hashes are stored.

use domain::VariantName;
use domain::api::accounts::LinkToken;
use domain::time::{MINUTE_MS, Timestamp};
use sha2::{Digest, Sha256};
use sqlx::{PgConnection, PgPool};
use strum::IntoStaticStr;
use uuid::Uuid;

use http::{ApiResult, Code, Problem};
use platform::clock::to_utc;
use platform::database::BindAll;
use platform::ids;

/// Length of a token: 256 bits in hex.
const TOKEN_LENGTH: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Purpose {
    /// A new password.
    Reset,
    /// A proof that the account's owner receives the mail.
    Prove,
}

impl Purpose {
    /// Returns the lifetime, milliseconds: an hour for a password, a day for a proof.
    pub(super) const fn life_ms(self) -> i64 {
        match self {
            Self::Reset => 60 * MINUTE_MS,
            Self::Prove => 24 * 60 * MINUTE_MS,
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Reset => "/reset",
            Self::Prove => "/confirm-email",
        }
    }
}

/// Creates a link for an account; returns its URL.
pub(super) async fn make(
    pg: &PgPool,
    public_url: &str,
    account: Uuid,
    purpose: Purpose,
    now: Timestamp,
) -> sqlx::Result<String> {
    let token = hex::encode([ids::random_bits(), ids::random_bits()].concat());
    insert_link(pg, hash(&token), account, purpose, now).await?;
    Ok(format!("{}{}?token={token}", public_url.trim_end_matches('/'), purpose.path()))
}

/// Returns the stored hash of a token. 410 for a malformed token.
pub(super) fn read(token: &LinkToken) -> ApiResult<[u8; 32]> {
    let is_one = token.0.len() == TOKEN_LENGTH && token.0.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_one { Ok(hash(&token.0)) } else { Err(invalid()) }
}

/// Builds the refusal of a link: the same for a used, an expired and an unknown one.
pub(super) fn invalid() -> Problem {
    Problem::new(Code::LinkInvalid, "The link was used already, or its time is over. Ask for a new mail.")
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Inserts a link before it is mailed.
async fn insert_link(
    pg: &PgPool,
    token_hash: [u8; 32],
    account: Uuid,
    purpose: Purpose,
    now: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO account_links (token_hash, account_id, purpose, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind_all((&token_hash[..], account, purpose.as_str(), to_utc(now), to_utc(now.plus_ms(purpose.life_ms()))))
    .execute(pg)
    .await?;
    Ok(())
}

/// Returns the account of a link that is usable now.
pub(super) async fn account_of_link(
    tx: &mut PgConnection,
    token_hash: [u8; 32],
    purpose: Purpose,
    now: Timestamp,
) -> sqlx::Result<Option<Uuid>> {
    let sql = "SELECT account_id FROM account_links
               WHERE token_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3";
    sqlx::query_scalar(sql).bind_all((&token_hash[..], purpose.as_str(), to_utc(now))).fetch_optional(tx).await
}

/// Redeems a link once and voids the account's other links of its purpose; `false` when it is not usable.
pub(super) async fn redeem_link(
    tx: &mut PgConnection,
    token_hash: [u8; 32],
    account: Uuid,
    purpose: Purpose,
    now: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "UPDATE account_links SET used_at = $4
               WHERE token_hash = $1 AND account_id = $2 AND purpose = $3 AND used_at IS NULL AND expires_at > $4";
    let used =
        sqlx::query(sql).bind_all((&token_hash[..], account, purpose.as_str(), to_utc(now))).execute(&mut *tx).await?;
    if used.rows_affected() != 1 {
        return Ok(false);
    }
    void_links(tx, account, purpose, now).await?;
    Ok(true)
}

/// Voids the unused links of an account with that purpose.
pub(super) async fn void_links(
    tx: &mut PgConnection,
    account: Uuid,
    purpose: Purpose,
    now: Timestamp,
) -> sqlx::Result<()> {
    let sql = "UPDATE account_links SET used_at = $3 WHERE account_id = $1 AND purpose = $2 AND used_at IS NULL";
    sqlx::query(sql).bind_all((account, purpose.as_str(), to_utc(now))).execute(tx).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_token_is_refused_without_a_query() {
        for odd in ["", "abc", &"g".repeat(64), &"0".repeat(65), "\u{0}"] {
            let refused = read(&LinkToken(odd.to_owned())).expect_err("not a token");
            assert_eq!(refused.code(), Code::LinkInvalid, "{odd:?}");
        }
        assert!(read(&LinkToken("0a".repeat(32))).is_ok());
    }
}
