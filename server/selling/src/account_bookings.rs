//! The ownership of bookings by accounts: bookings of the account's visitors, and of guests who gave its verified
//! address.
//!
//! A booking belongs to the account its buyer signs in to, else to the one that has verified the buyer's address, and
//! never to two. Two queries here implement the rule; they read owner and creation time of a booking, and leave the
//! rest to `bookings`.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::api::accounts::{BookingPage, PageQuery};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::{SellingState, bookings};
use http::{ApiQuery, ApiResult, Code, Problem};
use identity::Visitor;
use identity::accounts::{SignedIn, is_own_visitor};
use platform::database::BindAll;

/// Bookings per page.
const PER_PAGE: usize = 20;
/// The latest creation time: the year 9999, milliseconds.
const LATEST_MS: i64 = 253_402_300_799_999;

/// The routes of an account's bookings, under `/api/v1`.
pub fn routes() -> OpenApiRouter<SellingState> {
    OpenApiRouter::new().routes(routes!(own_bookings))
}

/// Your bookings, newest first: signed in, or as a guest with a verified address.
///
/// Your bookings, newest first, 20 at a time; next page with `?after=` and the response's `next`; `came_back` marks
/// a refund that failed and waits for a person.
#[utoipa::path(get, path = "/users/me/bookings", tag = "accounts", params(PageQuery),
    responses((status = 200, body = BookingPage)))]
async fn own_bookings(
    State(state): State<SellingState>,
    SignedIn(session): SignedIn,
    ApiQuery(query): ApiQuery<PageQuery>,
) -> ApiResult<Json<BookingPage>> {
    page(&state, session.account, query.after.as_deref()).await.map(Json)
}

/// Returns the visitor under which the caller may access a booking: the visitor who made it, if it belongs to the
/// caller's account, else the caller's own, under which a booking of another owner is not found.
///
/// # Errors
/// 404 for a guest whose visitor was merged into an account ([`is_own_visitor`]); or when the database fails.
pub async fn owner_for(state: &SellingState, visitor: &Visitor, booking: Uuid) -> ApiResult<String> {
    let Some(account) = visitor.account else {
        let is_theirs = is_own_visitor(state, visitor).await?;
        return if is_theirs { Ok(visitor.owner.clone()) } else { Err(Problem::not_found("booking")) };
    };
    let owner: Option<String> = sqlx::query_scalar(
        r#"SELECT booking.owner
           FROM bookings booking
           LEFT JOIN account_visitors theirs ON theirs.owner = booking.owner
           JOIN accounts account ON account.id = $1 AND account.closed_at IS NULL
           WHERE booking.id = $2
             AND (theirs.account_id = account.id
                  OR (theirs.account_id IS NULL AND account.email_proven_at IS NOT NULL
                      AND lower(booking.buyer_email COLLATE "C") = lower(account.email COLLATE "C")))"#,
    )
    .bind_all((account, booking))
    .fetch_optional(&state.pg)
    .await?;
    Ok(owner.unwrap_or_else(|| visitor.owner.clone()))
}

/// Returns a page of an account's bookings, newest first. Bookings that ended unpaid are left out.
///
/// # Errors
/// 400 for an invalid `after`, or when the database fails.
pub async fn page(state: &SellingState, account: Uuid, after: Option<&str>) -> ApiResult<BookingPage> {
    let (before, id) = match after.filter(|after| !after.is_empty()) {
        Some(after) => read_cursor(after).ok_or_else(invalid_cursor)?,
        None => (DateTime::<Utc>::from_timestamp_millis(LATEST_MS).unwrap_or_default(), Uuid::max()),
    };
    let found: Vec<(Uuid, DateTime<Utc>)> = sqlx::query_as(
        r#"SELECT id, created_at FROM (
               SELECT booking.id, booking.created_at, booking.state, booking.money
               FROM account_visitors theirs JOIN bookings booking ON booking.owner = theirs.owner
               WHERE theirs.account_id = $1
               UNION
               SELECT booking.id, booking.created_at, booking.state, booking.money
               FROM accounts account
               JOIN bookings booking ON lower(booking.buyer_email COLLATE "C") = lower(account.email COLLATE "C")
               WHERE account.id = $1 AND account.email_proven_at IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM account_visitors other WHERE other.owner = booking.owner)
           ) AS mine
           WHERE (created_at, id) < ($2, $3)
             AND NOT (money IN ('NONE', 'FAILED') AND state IN ('CREATED', 'EXPIRED', 'CANCELLED'))
           ORDER BY created_at DESC, id DESC LIMIT $4"#,
    )
    .bind_all((account, before, id, PER_PAGE as i64 + 1))
    .fetch_all(&state.pg)
    .await?;
    let is_more = found.len() > PER_PAGE;
    let shown = &found[..found.len().min(PER_PAGE)];
    let next = shown.last().filter(|_| is_more).map(|(id, at)| cursor(*at, *id));
    let ids: Vec<Uuid> = shown.iter().map(|(id, _)| *id).collect();
    Ok(BookingPage { bookings: bookings::summaries(state, &ids).await?, next })
}

/// Returns the cursor behind this booking. Its time is in microseconds, as in Postgres: rounding
/// would repeat or skip a booking.
fn cursor(at: DateTime<Utc>, id: Uuid) -> String {
    format!("{}.{id}", at.timestamp_micros())
}

fn read_cursor(text: &str) -> Option<(DateTime<Utc>, Uuid)> {
    let (micros, id) = text.split_once('.')?;
    // Chrono's range is larger than that of Postgres, and no booking was made there.
    let micros = micros.parse::<i64>().ok().filter(|micros| (0..=LATEST_MS * 1_000).contains(micros))?;
    Some((DateTime::from_timestamp_micros(micros)?, Uuid::parse_str(id).ok()?))
}

fn invalid_cursor() -> Problem {
    Problem::new(Code::Malformed, "`after` is the `next` of a page before.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_round_trips_and_malformed_cursors_are_rejected() {
        let at = DateTime::from_timestamp_micros(1_795_000_000_123_456).expect("an instant");
        let id = Uuid::from_u128(7);
        assert_eq!(read_cursor(&cursor(at, id)), Some((at, id)));
        for odd in ["", ".", "x.y", "1", "1."] {
            assert_eq!(read_cursor(odd), None, "{odd}");
        }
        for micros in ["9223372036854775807", "-8000000000000000000", "-1", "253402300799999001"] {
            assert_eq!(read_cursor(&format!("{micros}.{id}")), None, "{micros}");
        }
    }
}
