//! Requests and verifies codes.

use app::language::Language;
use axum::http::StatusCode;
use domain::api::email_codes::{EmailCodeRequest, EmailCodeView, EmailProofRequest, EmailProofView};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::sql::{self, NewCode, Tried};
use super::{CODE_LIFE_MS, MAX_TRIES, PROVEN_MS, USED_UP, limits};
use crate::SellingState;
use catalogue::Show;
use http::idempotency::{Answer, Intent};
use http::{ClientAddress, Code, Problem};
use identity::Visitor;
use identity::accounts::{self, normalise_address};
use platform::clock::rfc3339;
use platform::ids;

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
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    wanted_at(show)?;
    catalogue::sales_open(show, now)?;
    let mail_to = accounts::email_of(&request.email)?;
    let email = normalise_address(mail_to);
    limits::count(state, &visitor.owner, &email, address).await?;
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
) -> Result<Answer, Problem> {
    let now = state.clock.now();
    if let Some(answer) = intent.replay(&state.pg, now).await? {
        return Ok(answer);
    }
    wanted_at(show)?;
    let email = normalise_address(&request.email);
    let typed = request.code.digits();
    let typed = typed.ok_or_else(|| Problem::new(Code::EmailCodeWrong, "A code has six digits."))?;
    let tried = sql::take_try(&state.pg, &visitor.owner, &email, MAX_TRIES, now).await?.ok_or_else(over)?;
    let expected = digest(state, tried.id, &typed);
    if !bool::from(expected.as_bytes().ct_eq(tried.code_digest.as_bytes())) {
        return Err(wrong_code_problem(&tried));
    }
    let mut tx = state.pg.begin().await?;
    if let Some(answer) = intent.begin(&mut tx, now).await? {
        return Ok(answer);
    }
    if !sql::set_proven(&mut tx, tried.id, &visitor.owner, USED_UP, now).await? {
        return Err(over());
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

/// Refuses shows without codes: otherwise anyone could have mails sent to any address.
fn wanted_at(show: &Show) -> Result<(), Problem> {
    if show.email_code {
        return Ok(());
    }
    Err(Problem::new(Code::WrongState, "This show asks for no code: check out as you are."))
}

fn wrong_code_problem(tried: &Tried) -> Problem {
    let left = MAX_TRIES - tried.tries;
    if left <= 0 {
        return over();
    }
    let detail = format!("This is not the code we mailed last. Look again; tries left: {left}.");
    Problem::new(Code::EmailCodeWrong, detail)
}

/// The same answer for a code that does not exist, has expired, or was tried too often.
fn over() -> Problem {
    let detail = "The code's time is over, or it was tried too often. Ask for another one; your seats stay yours.";
    Problem::new(Code::EmailCodeOver, detail)
}
