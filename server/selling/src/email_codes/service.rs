//! Requests and verifies codes.

use std::time::Duration;

use axum::http::StatusCode;
use domain::api::email_codes::{EmailCodeRequest, EmailCodeView, EmailProofRequest, EmailProofView};
use domain::time::MINUTE_MS;
use language::Language;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::sql::{self, NewCode, Tried};
use super::{CODE_LIFE_MS, MAX_TRIES, PROVEN_MS, USED_UP};
use crate::SellingState;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ApiResult, ClientAddress, Code, Problem};
use identity::Visitor;
use identity::accounts::{self, normalise_address};
use platform::clock::rfc3339;
use platform::rate_limits::{AddressAllowance, Allowance};
use platform::{housekeeping, ids};

/// Number of different codes.
const CODES: u64 = 1_000_000;
/// Hex digits of a secret that become a number: 64 bits, so many that the remainder by a million is practically
/// uniform.
const HEX_OF_A_NUMBER: usize = 16;

/// Returns the code of that id. It is derived from a secret, so that a resent mail has the same code and no table
/// stores it.
pub(super) fn code_of(state: &SellingState, id: Uuid) -> String {
    let secret = state.accounts.derived_secret(&format!("email code\0{id}"));
    let number = u64::from_str_radix(&secret[..HEX_OF_A_NUMBER], 16).unwrap_or_default();
    format!("{:06}", number % CODES)
}

/// Returns the stored digest of a code of that id.
fn digest(state: &SellingState, id: Uuid, code: &str) -> String {
    state.accounts.derived_secret(&format!("email code as typed\0{id}\0{code}"))
}

/// Requests a code by mail; an earlier code for the same address becomes invalid.
pub(super) async fn ask(
    state: &SellingState,
    show: &Show,
    (visitor, address): (&Visitor, &ClientAddress),
    request: &EmailCodeRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    require_codes(show)?;
    catalogue::sales_open(show, now)?;
    let mail_to = accounts::email_of(&request.email)?;
    let email = normalise_address(mail_to);
    count_code(state, &visitor.owner, &email, address).await?;
    let language = request.language.as_deref().and_then(Language::of_tag).unwrap_or_default();
    let (id, expires_at) = (ids::new_id(), now.plus_ms(CODE_LIFE_MS));
    let code_digest = digest(state, id, &code_of(state, id));
    let new = NewCode { id, owner: &visitor.owner, email: &email, mail_to, language: language.tag(), code_digest };
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    sql::put(&mut tx, &new, expires_at, now).await?;
    let view = EmailCodeView {
        email: mail_to.to_owned(),
        expires_at: rfc3339(expires_at),
        expires_at_ms: expires_at.0,
        tries: u32::from(MAX_TRIES.unsigned_abs()),
    };
    let answer = Answer::json(StatusCode::ACCEPTED, &view)?;
    let answer = intent.commit(tx, answer, now).await?;
    state.email_codes.wake.notify_one();
    Ok(answer)
}

/// Verifies a code. The try is counted before the comparison, in a separate statement: concurrent or
/// cancelled guesses count as tries as well.
pub(super) async fn prove(
    state: &SellingState,
    show: &Show,
    visitor: &Visitor,
    request: &EmailProofRequest,
    intent: &Intent,
) -> ApiResult<Answer> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    require_codes(show)?;
    let email = normalise_address(&request.email);
    let typed = request.code.digits();
    let typed = typed.ok_or_else(|| Problem::new(Code::EmailCodeWrong, "A code has six digits."))?;
    let tried =
        sql::take_try(&state.pg, &visitor.owner, &email, MAX_TRIES, now).await?.ok_or_else(invalid_code_problem)?;
    let expected = digest(state, tried.id, &typed);
    if !bool::from(expected.as_bytes().ct_eq(tried.code_digest.as_bytes())) {
        return Err(wrong_code_problem(&tried));
    }
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    if !sql::set_proven(&mut tx, tried.id, &visitor.owner, USED_UP, now).await? {
        return Err(invalid_code_problem());
    }
    let valid_until = now.plus_ms(PROVEN_MS);
    let view = EmailProofView {
        email: request.email.trim().to_owned(),
        valid_until: rfc3339(valid_until),
        valid_until_ms: valid_until.0,
    };
    let answer = Answer::json(StatusCode::OK, &view)?;
    intent.commit(tx, answer, now).await
}

/// Returns the replay fingerprint of an entered code: a keyed digest. A plain digest of six digits hides nothing.
pub(super) fn replay_fingerprint(state: &SellingState, request: &EmailProofRequest) -> (String, String) {
    let typed = state.accounts.derived_secret(&format!("email code of a request\0{}", request.code.0));
    (request.email.clone(), typed)
}

/// Refuses shows without codes: otherwise any visitor could have mails sent to any address.
fn require_codes(show: &Show) -> ApiResult<()> {
    if show.email_code {
        return Ok(());
    }
    Err(Problem::new(Code::WrongState, "This show asks for no code: check out as you are."))
}

fn wrong_code_problem(tried: &Tried) -> Problem {
    let left = MAX_TRIES - tried.tries;
    if left <= 0 {
        return invalid_code_problem();
    }
    let detail = format!("This is not the code we mailed last. Look again; tries left: {left}.");
    Problem::new(Code::EmailCodeWrong, detail)
}

/// Builds the refusal of a code: the same for one that does not exist, has expired, or was tried too often.
fn invalid_code_problem() -> Problem {
    let detail = "The code's time is over, or it was tried too often. Ask for another one; your seats stay yours.";
    Problem::new(Code::EmailCodeOver, detail)
}

/// Limit per visitor: 8 codes in the busiest hour.
const VISITOR: Allowance = Allowance { name: "code-visitor", burst: 4, each_ms: 900_000 };
/// Limit per recipient and network, from all visitors there: 12 codes in the busiest hour. More than one visitor's
/// limit, so that one visitor cannot exhaust it; few, so that with five tries each a guesser is right once in 16,000
/// hours, from four networks once in 4,000. Per network, because one household may have many addresses.
const PAIR: Allowance = Allowance { name: "code-pair", burst: 6, each_ms: 600_000 };
/// Limit per recipient, from all networks: as much as four of them, so that no single network keeps a person out, and a
/// mailbox gets at most 48 codes in the busiest hour.
const PERSON: Allowance = Allowance { name: "code-person", burst: 24, each_ms: 150_000 };
/// Limits per address, a household or an office behind one, and per network.
const ADDRESS: AddressAllowance = AddressAllowance::new(("code-address", "code-network"), 60, 10_000);

/// Counts a code for this visitor, recipient (by normalized address) and network address. A visitor above its limit
/// consumes nothing of the shared limits; an address or a network above its limit consumes nothing of the recipient's.
///
/// # Errors
/// 429.
async fn count_code(state: &SellingState, visitor: &str, person: &str, address: &ClientAddress) -> ApiResult<()> {
    state.rate_limits.take(&VISITOR, visitor).await?;
    state.rate_limits.take_from_address(&ADDRESS, &address.0, &address.network()).await?;
    Ok(state.rate_limits.take_per_network((&PAIR, &PERSON), person, &address.network()).await?)
}

/// Refuses a guest who has not verified this address recently. An account with a verified address needs no
/// code, whichever address it buys for.
///
/// # Errors
/// 403 `email_code_wanted`.
pub async fn check(state: &SellingState, show: &Show, visitor: &Visitor, email: &str) -> ApiResult<()> {
    if !show.email_code {
        return Ok(());
    }
    // Boxed: connecting takes kilobytes, which every checkout would carry along, and few shows require codes.
    let mut connection = Box::pin(state.pg.acquire()).await?;
    if let Some(account) = visitor.account
        && accounts::has_proven_address(&mut connection, account).await?
    {
        return Ok(());
    }
    let since = state.clock.now().plus_ms(-PROVEN_MS);
    if sql::is_proven(&mut connection, &visitor.owner, &accounts::normalise_address(email), since).await? {
        return Ok(());
    }
    let detail =
        "This show asks for a code before checkout. We mail it to your address; your seats stay yours meanwhile.";
    Err(Problem::new(Code::EmailCodeWanted, detail))
}

/// Interval of purges.
const PURGE_EVERY: Duration = Duration::from_secs(300);
/// Retention after expiry, milliseconds: longer than an entered code stays valid.
const KEPT_MS: i64 = 24 * 60 * MINUTE_MS;
/// Maximum rows deleted in one statement, so that it holds locks only briefly.
const MAX_AT_ONCE: i64 = 5_000;

/// Runs until the server stops.
pub async fn purge_forever(state: SellingState) {
    let delete = |limit| sql::purge(&state.pg, state.clock.now().plus_ms(-KEPT_MS), limit);
    housekeeping::clear_forever(&state.stop, PURGE_EVERY, "codes before checkout", MAX_AT_ONCE, delete).await;
}
