//! Entry: checks passes, reads and sets tickets and passes of requests, and lets visitors join or enter.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use uuid::Uuid;

use super::limits::{self, Joiner};
use super::room::ActiveRoom;
use super::store::{self, EntryOutcome};
use super::tickets::Pass;
use super::{joining, sellers};
use crate::AdmissionState;
use catalogue::Show;
use http::cookies::cookie_value;
use http::{ApiResult, Code, Problem};
use identity::Visitor;

/// Time to enter after a call, milliseconds. A late visitor enters as soon as there is room.
pub(super) const CLAIM_MS: i64 = 2 * MINUTE_MS;
/// The same for a ticket whose holder has sent no request since joining, milliseconds: an open page sends one within
/// seconds of the opening.
pub(super) const UNUSED_CLAIM_MS: i64 = 15 * SECOND_MS;
/// Time for which a pass is accepted after its end, milliseconds: a request sent in time may arrive late.
const PASS_GRACE_MS: i64 = 10 * SECOND_MS;
/// Time for which a visitor sees the map after their pass ends, milliseconds: they may be paying.
const MAP_AFTER_PASS_MS: i64 = 15 * MINUTE_MS;
/// Lifetime of a ticket's cookie, seconds.
const TICKET_LIFE_S: u32 = 7 * 24 * 3_600;
/// `Retry-After` for requests without a pass.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Request headers with the ticket and pass of a program.
const TICKET_HEADER: &str = "queue-ticket";
const PASS_HEADER: &str = "queue-pass";

/// The page that a visitor gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitorPage {
    /// The map: the show has no waiting room, or they are inside or were until recently.
    Map,
    /// The waiting room.
    WaitingRoom,
}

/// Allows attempts at seats with a valid pass, and by sellers at the theatre's counter. Requests without a pass cause
/// no call of a store, except for signed-in accounts. For one with a pass, the lock store is asked if its visitor left:
/// their place inside belongs to another visitor then.
///
/// # Errors
/// 429 without a valid pass, 503 if the store cannot be reached.
pub async fn check_pass(state: &AdmissionState, show: &Show, visitor: &Visitor, headers: &HeaderMap) -> ApiResult<()> {
    let Some(room) = state.waiting_rooms.of(show.id) else { return Ok(()) };
    let now = state.clock.now();
    let detail = match pass_of(state, &room, &visitor.owner, headers) {
        None => {
            "It is not your turn in the waiting room of this show. Seats you hold stay yours until their time runs out."
        }
        Some(pass) if now >= pass.until.plus_ms(PASS_GRACE_MS) => {
            "Your time to choose seats in this show is over. Seats you hold stay yours until their time runs out."
        }
        // After the end of a pass its number is used up anyway, so this cannot be checked. Boxed, as below: every attempt at
        // seats runs through here, and few reach a store.
        Some(pass) if now < pass.until && Box::pin(store::has_left(state, &room, pass.number)).await? => {
            "You left this show. Its waiting room has a new place for you."
        }
        Some(_) => return Ok(()),
    };
    if Box::pin(sellers::is_seller(state, show, visitor.account)).await {
        return Ok(());
    }
    Err(Problem::new(Code::WaitingRoom, detail).with_retry_after(RETRY_AFTER))
}

/// Returns the page that a visitor sees by their pass: the map of a show or its waiting room. The show's page itself
/// handles an explicit request for the waiting room (`?queue`).
#[must_use]
pub fn page_of(state: &AdmissionState, show: Uuid, owner: &str, headers: &HeaderMap) -> VisitorPage {
    let Some(room) = state.waiting_rooms.of(show) else { return VisitorPage::Map };
    let pass = pass_of(state, &room, owner, headers);
    let sees = pass.is_some_and(|pass| state.clock.now() < pass.until.plus_ms(MAP_AFTER_PASS_MS));
    if sees { VisitorPage::Map } else { VisitorPage::WaitingRoom }
}

/// The possible effect of a ticket's link in a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketImport {
    /// The browser has no ticket. This cookie stores the ticket once the visitor confirms: a stranger may have sent the
    /// link.
    Possible(HeaderValue),
    /// The browser has a ticket and keeps it: a link sent by others must not replace a place.
    HasTicket,
    /// The ticket is not valid for this show.
    Invalid,
}

/// Checks if a ticket can be transferred to the browser with these headers.
#[must_use]
pub fn check_ticket_import(state: &AdmissionState, show: Uuid, headers: &HeaderMap, ticket: &str) -> TicketImport {
    let Some(room) = state.waiting_rooms.of(show) else { return TicketImport::Invalid };
    let read = |text: &str| state.waiting_rooms.signer.read_ticket(room.id, text);
    if read(ticket).is_none() {
        return TicketImport::Invalid;
    }
    let own = header_or_cookie(headers, TICKET_HEADER, &ticket_cookie(show)).and_then(|text| read(&text));
    if own.is_some() {
        return TicketImport::HasTicket;
    }
    TicketImport::Possible(cookie(state, &ticket_cookie(show), ticket, TICKET_LIFE_S))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Credentials {
    /// The number of a valid ticket.
    pub(super) number: Option<u64>,
    /// A valid pass that has not ended.
    pub(super) pass: Option<Pass>,
}

pub(super) fn read_credentials(
    state: &AdmissionState,
    room: &ActiveRoom,
    owner: &str,
    headers: &HeaderMap,
) -> Credentials {
    let ticket = header_or_cookie(headers, TICKET_HEADER, &ticket_cookie(room.show));
    let number = ticket.and_then(|ticket| state.waiting_rooms.signer.read_ticket(room.id, &ticket));
    let pass = pass_of(state, room, owner, headers).filter(|pass| state.clock.now() < pass.until);
    Credentials { number: number.or(pass.map(|pass| pass.number)), pass }
}

fn pass_of(state: &AdmissionState, room: &ActiveRoom, owner: &str, headers: &HeaderMap) -> Option<Pass> {
    let pass = header_or_cookie(headers, PASS_HEADER, &pass_cookie(room.show))?;
    state.waiting_rooms.signer.read_pass(room.id, owner, &pass)
}

/// True if a request has the header for a ticket.
pub(super) fn has_ticket_header(headers: &HeaderMap) -> bool {
    headers.contains_key(TICKET_HEADER)
}

/// The value of a header, or else of a cookie.
fn header_or_cookie(headers: &HeaderMap, header: &str, cookie: &str) -> Option<String> {
    if let Some(value) = headers.get(header) {
        return value.to_str().ok().map(str::to_owned);
    }
    cookie_value(headers, cookie).map(str::to_owned)
}

fn ticket_cookie(show: Uuid) -> String {
    format!("rowlock_queue_{}", show.simple())
}

fn pass_cookie(show: Uuid) -> String {
    format!("rowlock_pass_{}", show.simple())
}

fn cookie(state: &AdmissionState, name: &str, value: &str, life_s: u32) -> HeaderValue {
    let secure = if state.site.is_https() { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::try_from(text).expect("names and values are letters, digits and hyphens")
}

/// The result of [`join_or_enter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JoinOutcome {
    /// A new number was given out, which waits.
    Joined(u64),
    /// The request had this number; the result of its attempt to enter.
    HasTicket(u64, EntryOutcome),
}

/// Joins without a ticket; enters with one whose place was called.
///
/// # Errors
/// 503 if a store cannot be reached or is overloaded; for a new ticket as [`limits::count`] returns.
pub(super) async fn join_or_enter(
    state: &AdmissionState,
    room: &Arc<ActiveRoom>,
    joiner: Joiner<'_>,
    credentials: Credentials,
) -> ApiResult<JoinOutcome> {
    let Some(number) = credentials.number else {
        return number_for_visitor(state, room, joiner).await.map(JoinOutcome::Joined);
    };
    room.used_tickets.note(number);
    let owner = joiner.owner;
    // The pass keeps its number: with that of another ticket, a visitor who gives the first one back would stay inside.
    if let Some(pass) = credentials.pass {
        return Ok(JoinOutcome::HasTicket(pass.number, EntryOutcome::Inside(pass.until)));
    }
    let Some(place) = room.place_of(number) else { return Ok(JoinOutcome::HasTicket(number, EntryOutcome::NotYet)) };
    // Most requests have a place far from being called, which is known without a call of Redis.
    if !room.queue().has_called(place) {
        return Ok(JoinOutcome::HasTicket(number, EntryOutcome::NotYet));
    }
    let limit = room.inside_limit();
    let ask = || store::enter(state, room, (number, place), owner, limit);
    let entered = match ask().await? {
        Some(entered) => entered,
        None => {
            store::rebuild(state, room).await?;
            ask().await?.unwrap_or(EntryOutcome::NotYet)
        }
    };
    Ok(JoinOutcome::HasTicket(number, entered))
}

/// The number of a visitor: the same for each request, also while the first one is running; a new one after it was
/// given back, or was used up by other devices.
async fn number_for_visitor(state: &AdmissionState, room: &Arc<ActiveRoom>, joiner: Joiner<'_>) -> ApiResult<u64> {
    let (joins, asked) = (&state.waiting_rooms.joins, (room.id, joiner.owner.to_owned()));
    let join = async || {
        let joined = joins.entry(asked.clone()).or_try_insert_with(new_number(state, room, joiner)).await;
        joined.map_err(|problem| (*problem).clone())
    };
    let joined = join().await?;
    if joined.is_fresh() || !store::is_used_up(state, room, *joined.value(), joiner.owner).await? {
        return Ok(joined.into_value());
    }
    joins.invalidate(&asked).await;
    Ok(join().await?.into_value())
}

/// Takes a new number, which counts for its address.
async fn new_number(state: &AdmissionState, room: &Arc<ActiveRoom>, joiner: Joiner<'_>) -> ApiResult<u64> {
    let counted = limits::count(state, room, joiner).await?;
    match joining::take_number(state, room).await {
        Ok(number) => Ok(number),
        Err(problem) => {
            counted.give_back(state).await;
            Err(problem)
        }
    }
}

/// Gives a number back; it cannot be used again.
pub(super) async fn leave(state: &AdmissionState, room: &ActiveRoom, number: u64) -> ApiResult<()> {
    // A lost room has forgotten who left; the calls of those places end unanswered.
    store::leave(state, room, number, room.place_of(number)).await?;
    Ok(())
}

/// Sets the cookies of ticket and pass; that of the pass lives as long as its visitor sees the map.
pub(super) fn set_cookies(
    state: &AdmissionState,
    room: &ActiveRoom,
    headers: &mut HeaderMap,
    ticket: Option<&str>,
    pass: Option<(&str, Timestamp)>,
) {
    if let Some(ticket) = ticket {
        headers.append(header::SET_COOKIE, cookie(state, &ticket_cookie(room.show), ticket, TICKET_LIFE_S));
    }
    if let Some((pass, until)) = pass {
        let life_s = (until.since(state.clock.now()) + MAP_AFTER_PASS_MS).max(0) / SECOND_MS;
        let life_s = u32::try_from(life_s).unwrap_or(0);
        headers.append(header::SET_COOKIE, cookie(state, &pass_cookie(room.show), pass, life_s));
    }
}

pub(super) fn clear_cookies(state: &AdmissionState, room: &ActiveRoom, headers: &mut HeaderMap) {
    clear_ticket(state, room, headers);
    headers.append(header::SET_COOKIE, cookie(state, &pass_cookie(room.show), "", 0));
}

pub(super) fn clear_ticket(state: &AdmissionState, room: &ActiveRoom, headers: &mut HeaderMap) {
    headers.append(header::SET_COOKIE, cookie(state, &ticket_cookie(room.show), "", 0));
}
