//! Access to a booking without its buyer's cookie: opened by the signed link of a mail, found by reference and
//! e-mail, and cancelled by a link that is mailed on request. The link in the mail about a move also answers its offer of
//! other seats.
//!
//! The answer to a search is always the same: only the mail reveals that a booking was found, and it goes to the
//! booking's address. A background task searches and sends it, so the answer time does not reveal the booking either.

use std::sync::Arc;
use std::time::Duration;

use domain::api::BookingView;
use domain::api::cancelling::CancelRequest;
use domain::api::moving::SeatOfferAnswer;
use domain::time::Timestamp;
use language::{Language, say};
use tokio::sync::Semaphore;

use super::mail_links::{self, Purpose};
use super::sql::{self, BookingRow};
use super::views::view;
use super::{cancel, counter, seat_offers};
use crate::SellingState;
use crate::email_codes::Message;
use catalogue::Show;
use http::idempotency::{IdempotencyKey, Intent};
use http::{ApiResult, ClientAddress, Code, Problem};
use identity::accounts;
use platform::ids;
use platform::rate_limits::{AddressAllowance, Allowance};

/// Rate limits of searches per address, a household, and per network.
const FIND_ADDRESS: AddressAllowance = AddressAllowance::new(("find-address", "find-network"), 10, 60_000);
/// Rate limit of searches per e-mail address and network.
const FIND_PAIR: Allowance = Allowance { name: "find-pair", burst: 4, each_ms: 600_000 };
/// Rate limit of searches per e-mail address, from all networks: as much as four of them, so that no single network
/// keeps a buyer from the booking.
const FIND_PERSON: Allowance = Allowance { name: "find-person", burst: 16, each_ms: 150_000 };
/// Rate limit of cancellation mails per booking.
const CANCEL_BOOKING: Allowance = Allowance { name: "cancel-mail", burst: 3, each_ms: 600_000 };
/// Maximum concurrent mails of this kind on this replica; beyond, every search is answered 503.
const MAX_CONCURRENT_MAILS: usize = 64;
/// Maximum attempts to send a mail.
const MAIL_TRIES: u32 = 3;
/// Maximum pause before a retry, milliseconds, with full jitter.
const PAUSE_MS: u64 = 5_000;

/// Purposes of the keys that open a booking's page.
const OPENING: [Purpose; 2] = [Purpose::Open, Purpose::Answer];

/// Permits for concurrent mails.
static MAILS: Semaphore = Semaphore::const_new(MAX_CONCURRENT_MAILS);

/// A booking that was opened by a key.
pub struct OpenedByMail {
    /// The booking as its buyer sees it.
    pub booking: BookingView,
    /// Its show.
    pub show: Arc<Show>,
    /// Its owner.
    pub owner: String,
    /// True if the key answers the open offer of other seats.
    pub may_answer: bool,
}

/// Opens a booking by the key of a mail.
///
/// # Errors
/// 404 for a key that is forged or expired.
pub async fn open(state: &SellingState, key: &str) -> ApiResult<OpenedByMail> {
    open_with(state, &OPENING, key).await.map(|(_, opened)| opened)
}

/// Opens a booking by the key that cancels it.
///
/// # Errors
/// As [`open`].
pub async fn open_to_cancel(state: &SellingState, key: &str) -> ApiResult<OpenedByMail> {
    open_with(state, &[Purpose::Cancel], key).await.map(|(_, opened)| opened)
}

/// Opens a booking by a key of one of these purposes.
async fn open_with(state: &SellingState, purposes: &[Purpose], key: &str) -> ApiResult<(BookingRow, OpenedByMail)> {
    let not_found = || Problem::not_found("booking");
    let now = state.clock.now();
    let found = purposes
        .iter()
        .find_map(|&purpose| mail_links::booking_of(purpose, key, now).map(|booking| (purpose, booking)));
    let (purpose, id) = found.ok_or_else(not_found)?;
    let row = sql::find(&mut *state.pg.acquire().await?, id).await?.ok_or_else(not_found)?;
    let booking = view::view(state, &row.owner, id).await?.ok_or_else(not_found)?;
    let show = state.catalogue.find_show(row.show_id).await?;
    let (owner, may_answer) = (row.owner.clone(), purpose == Purpose::Answer);
    Ok((row, OpenedByMail { booking, show, owner, may_answer }))
}

/// Mails the booking's link to its buyer, if reference and e-mail match a booking. The answer is the same if not.
///
/// # Errors
/// 400 for an invalid address, 429 above the rate limit, 503 where too many mails wait, each independent of a matching
/// booking.
pub async fn find(
    state: &SellingState,
    address: &ClientAddress,
    (reference, email): (&str, &str),
    language: Language,
) -> ApiResult<()> {
    let email = accounts::normalise_address(accounts::email_of(email)?);
    state.rate_limits.take_from_address(&FIND_ADDRESS, &address.0, &address.network()).await?;
    state.rate_limits.take_per_network((&FIND_PAIR, &FIND_PERSON), &email, &address.network()).await?;
    let permit = MAILS.try_acquire().map_err(|_| overloaded())?;
    let (state, reference, tasks) = (state.clone(), reference.to_owned(), state.tasks.clone());
    tasks.spawn(async move {
        let _permit = permit;
        match find_row(&state, &reference, &email).await {
            Ok(Some(row)) => {
                let now = state.clock.now();
                let url = mail_links::page_url(&state.site.public_url, row.id, now);
                let subject = say!(in language, "mailed.find_subject", reference = &row.reference);
                let lead = say!(in language, "mailed.find_lead");
                send(&state, compose(language, &row, (subject, lead), &url, now)).await;
            }
            Ok(None) => {}
            Err(problem) => tracing::warn!(?problem, "look up a booking by reference and e-mail failed"),
        }
    });
    Ok(())
}

/// Returns the booking of that reference, if its buyer has this address.
async fn find_row(state: &SellingState, reference: &str, email: &str) -> ApiResult<Option<BookingRow>> {
    let mut connection = state.pg.acquire().await?;
    let row = counter::row_of_reference(&mut connection, reference).await?;
    Ok(row.filter(|row| !row.buyer.1.is_empty() && accounts::normalise_address(&row.buyer.1) == email))
}

/// Mails the cancellation link to a booking's buyer, for a visitor who has opened it by `key`.
///
/// # Errors
/// 404 as [`open`]; 409 where there is nothing to cancel; 429 above the rate limit; 503 where too many mails wait.
pub async fn ask_to_cancel(state: &SellingState, key: &str, language: Language) -> ApiResult<()> {
    let (row, OpenedByMail { booking, .. }) = open_with(state, &OPENING, key).await?;
    if booking.cancel_until_ms.is_none() {
        return Err(Problem::new(Code::TooLateToCancel, "This booking cannot be cancelled any more."));
    }
    state.rate_limits.take(&CANCEL_BOOKING, &row.id.to_string()).await?;
    let permit = MAILS.try_acquire().map_err(|_| overloaded())?;
    let now = state.clock.now();
    let url = mail_links::cancel_url(&state.site.public_url, row.id, now);
    let subject = say!(in language, "mailed.cancel_subject", reference = &row.reference);
    let message = compose(language, &row, (subject, say!(in language, "mailed.cancel_lead")), &url, now);
    let (state, tasks) = (state.clone(), state.tasks.clone());
    tasks.spawn(async move {
        let _permit = permit;
        send(&state, message).await;
    });
    Ok(())
}

/// Cancels all of a booking by the key of a mail, on its buyer's terms. Returns the key of the booking's page. A repeat
/// changes nothing.
///
/// # Errors
/// 404 for an invalid or expired key; otherwise as cancelling with the buyer's own cookie.
pub async fn cancel_by_mail(state: &SellingState, key: &str) -> ApiResult<String> {
    let (row, _) = open_with(state, &[Purpose::Cancel], key).await?;
    let request = CancelRequest::default();
    // One key, one intent: a second press of the button is a replay.
    let named = IdempotencyKey::of_form(&format!("by-mail-{key}"))?;
    let intent = Intent::new(&row.owner, named, &format!("form /bookings/cancel {}", row.id), &request);
    cancel::cancel_own(state, &row.owner, row.id, &request, &intent).await?;
    Ok(mail_links::key(Purpose::Open, row.id, state.clock.now()))
}

/// Answers the open offer of other seats by the key of the mail about the move. `form_key` is the idempotency key of the
/// form.
///
/// # Errors
/// 404 for an invalid or expired key, and for a key that only opens the booking; otherwise as answering with the buyer's
/// own cookie.
pub async fn answer_by_mail(state: &SellingState, key: &str, form_key: &str, take: bool) -> ApiResult<()> {
    let (row, _) = open_with(state, &[Purpose::Answer], key).await?;
    let request = SeatOfferAnswer { take };
    let named = IdempotencyKey::of_form(form_key)?;
    let intent = Intent::new(&row.owner, named, &format!("form /bookings/seat-offer {}", row.id), &request);
    seat_offers::answer(state, &row.owner, row.id, &request, &intent).await.map(drop)
}

fn overloaded() -> Problem {
    Problem::new(Code::Overloaded, "Very many people ask for mails right now. Please try again in a moment.")
}

fn compose(
    language: Language,
    row: &BookingRow,
    (subject, lead): (String, String),
    url: &str,
    at: Timestamp,
) -> Message {
    let text = format!("{lead}\n\n{url}\n\n{}\n", say!(in language, "mailed.not_you"));
    Message { id: ids::new_id(), to: row.buyer.1.clone(), subject, text, at }
}

async fn send(state: &SellingState, message: Message) {
    for number in 1..=MAIL_TRIES {
        match state.email_codes.carrier().send(&message).await {
            Ok(()) => return,
            Err(not_sent) => {
                tracing::warn!(carrier = not_sent.carrier, cause = %not_sent.cause, number, "mail the address of a booking failed");
            }
        }
        if number < MAIL_TRIES {
            tokio::time::sleep(Duration::from_millis(ids::jitter(PAUSE_MS))).await;
        }
    }
}
