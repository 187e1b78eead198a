//! The door: who stands where, who may come in, and who is turned away.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use axum_extra::extract::CookieJar;
use domain::time::{MINUTE_MS, SECOND_MS, Timestamp};
use domain::waiting_room::PASS_MS;
use uuid::Uuid;

use super::limits::{self, Joiner};
use super::room::Room;
use super::store::{self, Entered};
use super::tickets::Pass;
use super::{joining, rebuild, sellers};
use crate::AdmissionState;
use catalogue::Show;
use http::{Code, Problem};
use identity::Visitor;

/// Time to come in after a call, milliseconds. A late visitor comes in as soon as there is room.
pub(super) const CLAIM_MS: i64 = 2 * MINUTE_MS;
/// The same for a ticket whose holder has sent no request since joining, milliseconds: an open page sends one within seconds
/// of the opening.
pub(super) const UNUSED_CLAIM_MS: i64 = 15 * SECOND_MS;
/// Devices one ticket lets in: the one it was on, and one more.
const DEVICES: u32 = 2;
/// A pass is good for so long after its end, milliseconds: what was sent in time may arrive late.
const GRACE_MS: i64 = 10 * SECOND_MS;
/// Whoever was inside sees the map for so long after their pass ends, milliseconds: they may be paying.
const AFTERWARDS_MS: i64 = 15 * MINUTE_MS;
/// How long a browser keeps a ticket, seconds.
const TICKET_LIFE_S: u32 = 7 * 24 * 3_600;
/// When it is worth asking again for whoever has no pass.
const COME_BACK: Duration = Duration::from_secs(10);

/// A program's ticket and pass.
const TICKET_HEADER: &str = "queue-ticket";
const PASS_HEADER: &str = "queue-pass";

/// Where somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// The show has no waiting room, or they are inside, or were until just now: they see the map.
    Inside,
    /// They are in front of it.
    Outside,
}

/// Lets only those take seats who are inside, and whoever sells at the theatre's counter. However many come without a pass,
/// no store is asked but about those who are signed in; of somebody with one, whether they left: their room is another's
/// then.
///
/// # Errors
/// 429 for everybody else, 503 when the store cannot be reached.
pub async fn check_pass(
    state: &AdmissionState,
    show: &Show,
    visitor: &Visitor,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let Some(room) = state.waiting_rooms.of(show.id) else { return Ok(()) };
    let now = state.clock.now();
    let pass = pass_of(state, &room, &visitor.owner, headers).filter(|pass| now < pass.until.plus_ms(GRACE_MS));
    let detail = match pass {
        None => "This show is entered through its waiting room. Your place there is kept; please wait for your turn.",
        // After the end everybody's number is used up, whether they left or not.
        Some(pass) if now < pass.until && store::has_left(state, &room, pass.number).await? => {
            "You left this show. Its waiting room has a new place for you."
        }
        Some(_) => return Ok(()),
    };
    // Boxed: the way to seats leads by here, and hardly anybody on it is asked about.
    if Box::pin(sellers::sells_there(state, show, visitor.account)).await {
        return Ok(());
    }
    Err(Problem::new(Code::WaitingRoom, detail).with_retry_after(COME_BACK))
}

/// Whether somebody sees the map of a show or its waiting room.
#[must_use]
pub fn whereabouts(state: &AdmissionState, show: Uuid, owner: &str, headers: &HeaderMap) -> Whereabouts {
    let Some(room) = state.waiting_rooms.of(show) else { return Whereabouts::Inside };
    let pass = pass_of(state, &room, owner, headers);
    let sees = pass.is_some_and(|pass| state.clock.now() < pass.until.plus_ms(AFTERWARDS_MS));
    if sees { Whereabouts::Inside } else { Whereabouts::Outside }
}

/// What opening the link of a ticket does to a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Brought {
    /// It keeps the ticket from now on, by this cookie.
    Keeps(HeaderValue),
    /// It has another place already, and keeps that: nobody's place is taken away by a link they were sent.
    HasAnother,
    /// It is no ticket of this show.
    Nothing,
}

/// Brings a ticket to a browser with these headers.
#[must_use]
pub fn bring_ticket(state: &AdmissionState, show: Uuid, headers: &HeaderMap, ticket: &str) -> Brought {
    let Some(room) = state.waiting_rooms.of(show) else { return Brought::Nothing };
    let read = |text: &str| state.waiting_rooms.signer.read_ticket(room.id, text);
    let Some(number) = read(ticket) else { return Brought::Nothing };
    let own = brought(headers, TICKET_HEADER, &ticket_cookie(show)).and_then(|text| read(&text));
    if own.is_some_and(|own| own != number) {
        return Brought::HasAnother;
    }
    Brought::Keeps(cookie(state, &ticket_cookie(show), ticket, TICKET_LIFE_S))
}

/// What a request brought along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Papers {
    /// The number of a genuine ticket.
    pub(super) number: Option<u64>,
    /// A genuine pass that is still good.
    pub(super) pass: Option<Pass>,
}

pub(super) fn papers(state: &AdmissionState, room: &Room, owner: &str, headers: &HeaderMap) -> Papers {
    let ticket = brought(headers, TICKET_HEADER, &ticket_cookie(room.show));
    let number = ticket.and_then(|ticket| state.waiting_rooms.signer.read_ticket(room.id, &ticket));
    let pass = pass_of(state, room, owner, headers).filter(|pass| state.clock.now() < pass.until);
    Papers { number: number.or(pass.map(|pass| pass.number)), pass }
}

fn pass_of(state: &AdmissionState, room: &Room, owner: &str, headers: &HeaderMap) -> Option<Pass> {
    let pass = brought(headers, PASS_HEADER, &pass_cookie(room.show))?;
    state.waiting_rooms.signer.read_pass(room.id, owner, &pass)
}

/// Whether a program sends what it takes for a ticket.
pub(super) fn sends_ticket(headers: &HeaderMap) -> bool {
    headers.contains_key(TICKET_HEADER)
}

/// What a header says, or a cookie.
fn brought(headers: &HeaderMap, header: &str, cookie: &str) -> Option<String> {
    if let Some(value) = headers.get(header) {
        return value.to_str().ok().map(str::to_owned);
    }
    CookieJar::from_headers(headers).get(cookie).map(|cookie| cookie.value().to_owned())
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

/// What became of coming to the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// They have this number, and wait.
    Joined(u64),
    /// They came with this number.
    With(u64, Entered),
}

/// Somebody comes to the door: without a ticket they get one, with one they go in if it is their turn.
///
/// # Errors
/// 503 when a store cannot be reached or too many come; for a new ticket as [`limits::count`] says.
pub(super) async fn come(
    state: &AdmissionState,
    room: &Arc<Room>,
    joiner: Joiner<'_>,
    papers: Papers,
) -> Result<Came, Problem> {
    let Some(number) = papers.number else {
        return number_of(state, room, joiner).await.map(Came::Joined);
    };
    room.used_tickets.note(number);
    let owner = joiner.owner;
    if let Some(pass) = papers.pass {
        return Ok(Came::With(number, Entered::Inside(pass.until)));
    }
    let Some(place) = room.place_of(number) else { return Ok(Came::With(number, Entered::NotYet)) };
    // Most who ask are far from being called: that is known here.
    if !room.queue().has_called(place) {
        return Ok(Came::With(number, Entered::NotYet));
    }
    let limit = room.inside_limit();
    let ask = || store::enter(state, room, (number, place), owner, PASS_MS, limit, DEVICES);
    let entered = match ask().await? {
        Some(entered) => entered,
        None => {
            rebuild::rebuild(state, room).await?;
            ask().await?.unwrap_or(Entered::NotYet)
        }
    };
    Ok(Came::With(number, entered))
}

/// The number of a visitor: the same each time they ask, also while the first request is running; another when they
/// gave that one back.
async fn number_of(state: &AdmissionState, room: &Arc<Room>, joiner: Joiner<'_>) -> Result<u64, Problem> {
    let (joins, asked) = (&state.waiting_rooms.joins, (room.id, joiner.owner.to_owned()));
    let join = async || {
        let joined = joins.entry(asked.clone()).or_try_insert_with(new_number(state, room, joiner)).await;
        joined.map_err(|problem| (*problem).clone())
    };
    let joined = join().await?;
    if joined.is_fresh() || !store::has_left(state, room, *joined.value()).await? {
        return Ok(joined.into_value());
    }
    joins.invalidate(&asked).await;
    Ok(join().await?.into_value())
}

/// A new number, counted for the address it goes to.
async fn new_number(state: &AdmissionState, room: &Arc<Room>, joiner: Joiner<'_>) -> Result<u64, Problem> {
    let counted = limits::count(state, room, joiner).await?;
    match joining::take_number(state, room).await {
        Ok(number) => Ok(number),
        Err(problem) => {
            counted.give_back(state).await;
            Err(problem)
        }
    }
}

/// Somebody leaves for good.
pub(super) async fn leave(state: &AdmissionState, room: &Room, number: u64) -> Result<(), Problem> {
    // A room that was lost has forgotten who left; nobody waits for those who do not come.
    store::leave(state, room, number, room.place_of(number)).await?;
    Ok(())
}

/// What a browser keeps from now on: the ticket, and the pass until its end.
pub(super) fn keep(
    state: &AdmissionState,
    room: &Room,
    headers: &mut HeaderMap,
    ticket: Option<&str>,
    pass: Option<(&str, Timestamp)>,
) {
    if let Some(ticket) = ticket {
        headers.append(header::SET_COOKIE, cookie(state, &ticket_cookie(room.show), ticket, TICKET_LIFE_S));
    }
    if let Some((pass, until)) = pass {
        let life_s = (until.since(state.clock.now()) + AFTERWARDS_MS).max(0) / SECOND_MS;
        let life_s = u32::try_from(life_s).unwrap_or(0);
        headers.append(header::SET_COOKIE, cookie(state, &pass_cookie(room.show), pass, life_s));
    }
}

/// A browser forgets ticket and pass.
pub(super) fn forget(state: &AdmissionState, room: &Room, headers: &mut HeaderMap) {
    for name in [ticket_cookie(room.show), pass_cookie(room.show)] {
        headers.append(header::SET_COOKIE, cookie(state, &name, "", 0));
    }
}
