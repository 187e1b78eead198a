//! Hands an offer over to another device: the signed link of its mail makes a visitor the only owner of the offer and
//! of its hold.
//!
//! The lock store gives the hold another id, fence and owner in one step (`renew.lua`): its seats are never free, and
//! the old id becomes invalid. The entry follows in the transaction that has it locked. After a crash between the two
//! the link is opened again: the same visitor renews to the same id. Only the mail has the key; a copied cookie opens
//! nothing here (decision 31).
//!
//! The entry stays locked during the call to the lock store: the next device, and a visitor who leaves the line, must
//! find the owner that the hold has. That takes twice the deadline of a call at most (`CALL_DEADLINE` in
//! `platform/src/redis_link/retry.rs`, 3 s); others wait for the lock as bounded by [`BEGIN`], and are rate limited
//! ([`join::count_taking`]).

use std::sync::{Arc, OnceLock};

use domain::api::waiting_list::{WaitingState, WaitingView};
use domain::time::{MINUTE_MS, Timestamp};
use uuid::Uuid;

use super::join;
use super::sql::{self, EntryState, ListEntry};
use crate::{SellingState, holds, waiting_list};
use admission::fairness::LimitedCaller;
use catalogue::Show;
use http::{ApiResult, ClientAddress, Code, Problem};
use identity::{Visitor, accounts};
use platform::clock::from_utc;
use platform::signed_token::{Keys, dated_key, read_dated_key};
use seats::seat_locks::{FencedSelection, Renewal, StoredHold, is_offer, offer_id, with_map};

/// The label that the signing key is derived for: no other signature is valid in such a link.
const PURPOSE: &[u8] = b"rowlock offer of a waiting list 1\n";
/// Lifetime of the link after the end of the offer, milliseconds: its page then shows that the offer has ended, and
/// the hold of a declined card ends later than the mail announced.
const READ_FOR_MS: i64 = 24 * 60 * MINUTE_MS;

/// Bounds the wait for each lock: of the entry that another device takes over, and of the visitor, who may be joining
/// the line in another tab. After it the answer is 503, and nothing has changed.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '2s'";

static KEYS: OnceLock<Keys> = OnceLock::new();

/// Sets the secrets that sign links: the first signs, all verify. A second call changes nothing.
pub fn sign_offers_with(secrets: &[String]) {
    let _ = KEYS.set(Keys::derived(secrets, PURPOSE));
}

/// Returns the link to an entry's offer that lasts until `until`.
pub(super) fn url(public_url: &str, entry: Uuid, until: Timestamp) -> String {
    let key = KEYS.get().map(|keys| dated_key(keys, entry, until.plus_ms(READ_FOR_MS))).unwrap_or_default();
    format!("{public_url}/waiting-list/{key}")
}

/// An offer opened by its mail.
pub struct OpenedOffer {
    /// The place in line, with the offer while its seats are held.
    pub place: WaitingView,
    /// Its show.
    pub show: Arc<Show>,
    /// True if the caller is its owner already.
    pub is_own: bool,
}

/// Returns the offer of a link. Reading changes nothing, because mail programs prefetch links.
///
/// # Errors
/// 404 for an invalid key, and for a guest's cookie from before they signed in.
pub async fn open_offer(state: &SellingState, visitor: &Visitor, key: &str) -> ApiResult<OpenedOffer> {
    let id = entry_of(state, visitor, key).await?;
    let entry = sql::find(&mut *state.pg.acquire().await?, id).await?.ok_or_else(not_found)?;
    let show = state.catalogue.find_show(entry.show_id).await?;
    let place = waiting_list::of_entry(&show, &entry, 0, state.clock.now()).ok_or_else(not_found)?;
    Ok(OpenedOffer { place, show, is_own: entry.owner == visitor.owner })
}

/// Makes the caller the owner of the offer. Returns the show, where its hold can be checked out.
///
/// # Errors
/// 404 as [`open_offer`]; 409 while it is being paid for, or where the caller holds other seats of the show or waits
/// for it; 410 when it has ended; 429 above the seat limit or the rate limit; 503 where another take-over keeps the
/// locks.
pub async fn take_offer(
    state: &SellingState,
    visitor: &Visitor,
    address: &ClientAddress,
    key: &str,
) -> ApiResult<Uuid> {
    let id = entry_of(state, visitor, key).await?;
    join::count_taking(state, id).await?;
    let found = sql::find(&mut *state.pg.acquire().await?, id).await?.ok_or_else(not_found)?;
    let show = state.catalogue.find_show(found.show_id).await?;
    // A change of a hold like any other.
    LimitedCaller::new(show.id, visitor, address).count_change(state, &show).await?;
    // Loads the map now: building it takes another connection, which no transaction waits for.
    with_map(state, &show, || state.locks.hold_of(show.id, &found.owner)).await?;
    let now = state.clock.now();
    let mut tx = state.pg.begin_with(BEGIN).await?;
    sql::lock(&mut tx, id).await?;
    let entry = sql::find(&mut tx, id).await?.ok_or_else(not_found)?;
    if entry.owner == visitor.owner {
        return Ok(show.id);
    }
    let hold = entry.offer_hold.filter(|_| entry.state == EntryState::Offered).ok_or_else(over)?;
    if entry.offer_until.is_none_or(|until| from_utc(until) <= now) {
        return Err(over());
    }
    // Joining takes the same lock: two entries of one visitor would violate the index after the hold is renewed.
    sql::lock_joins_of(&mut tx, &visitor.owner).await?;
    if sql::is_in_line(&mut tx, show.id, &visitor.owner).await? {
        let detail = "You wait for this show in this browser as well. Leave that line first, then open the link again.";
        return Err(Problem::new(Code::AlreadyWaiting, detail));
    }
    let held = renew(state, &show, (&entry, hold), visitor).await?;
    if !sql::hand_over(&mut tx, &entry, held.hold, &visitor.owner, now).await? {
        return Err(Problem::internal(&"an entry of the waiting list moved under its lock"));
    }
    tx.commit().await?;
    Ok(show.id)
}

async fn entry_of(state: &SellingState, visitor: &Visitor, key: &str) -> ApiResult<Uuid> {
    let keys = KEYS.get().ok_or_else(not_found)?;
    let entry = read_dated_key(keys, key, state.clock.now()).ok_or_else(not_found)?;
    if accounts::is_own_visitor(state, visitor).await? { Ok(entry) } else { Err(not_found()) }
}

/// Renews the hold for the caller. If the map is lost meanwhile, the caller must retry.
async fn renew(
    state: &SellingState,
    show: &Show,
    (entry, hold): (&ListEntry, Uuid),
    visitor: &Visitor,
) -> ApiResult<StoredHold> {
    let next = offer_id(&["waiting list", &hold.to_string(), &visitor.owner]);
    let theirs = match state.locks.hold_of(show.id, &entry.owner).await? {
        Some(held) if held.hold == hold => held,
        // The entry already names the hold that the effect of a declined payment will create from this one.
        Some(held) if is_offer(held.hold) => return Err(not_yet()),
        _ => {
            // Renewed before, and the entry was not updated.
            let ours = state.locks.hold_of(show.id, &visitor.owner).await?;
            return ours.filter(|held| held.hold == next).ok_or_else(over);
        }
    };
    let party = FencedSelection { hold, owner: entry.owner.clone(), fence: theirs.fence, selection: theirs.selection };
    let renewal = Renewal {
        hold: next,
        owner: visitor.owner.clone(),
        until: theirs.expires_at,
        ends_payment: false,
        per_person: Some(show.per_person),
    };
    let renewed = state.locks.renew(show.id, &party, &renewal).await?;
    renewed.map_err(|refusal| holds::refusal_problem(show, &refusal))
}

impl OpenedOffer {
    /// True if it can be taken here.
    #[must_use]
    pub fn can_be_taken(&self) -> bool {
        self.place.state == WaitingState::Offered
    }
}

fn not_found() -> Problem {
    Problem::not_found("offer")
}

fn not_yet() -> Problem {
    let detail = "A payment for these seats was declined a moment ago. Please try again in a moment.";
    Problem::new(Code::StillRunning, detail)
}

fn over() -> Problem {
    Problem::new(Code::HoldExpired, "The time for this offer is over, and its seats went to the next in line.")
}
