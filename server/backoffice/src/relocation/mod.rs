//! Moves a show to another screen together with its bookings.
//!
//! An organiser's request marks the show, in one transaction with the row that holds the progress (`show_moves`). From
//! then on no payment for the show begins: a trigger refuses those of replicas with stale data (`refuse_called_off`).
//! Holds are released, unpaid checkouts cancelled, and running payments get some time to end (`rounds`). Then one
//! transaction renumbers every sold place for the new layout (`carry`), and the lock store rebuilds the map. After a
//! crash the row stays open, and any replica continues (docs/decisions/0042).
//!
//! `domain::relocation` decides the new places. Bookings whose places exist in the new layout keep them. The others get
//! places that are no worse; these are reserved for them at once. Their buyers accept or decline (`selling::bookings`),
//! and a buyer who does not answer in time is refunded. Elsewhere: free screens and the prices of categories
//! (`organiser`).

mod carry;
mod mails;
mod placement;
mod preview;
mod rounds;
mod sql;

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use domain::api::moving::MoveView;
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

pub use mails::send_forever as send_mails_forever;
pub(crate) use placement::LayoutPair;
pub use preview::preview;
pub use rounds::{round, work_forever};
pub(crate) use sql::lock_against_bookings;

use http::{ApiResult, Code, Problem};
use platform::clock::from_utc;
use platform::ids;

/// Maximum number of moves per show: returned seats of earlier layouts are numbered by move. The moves without bookings
/// ([`move_at_once`]) count as one. A check of `shows.times_moved` repeats it.
pub const MAX_MOVES: i16 = 20;

/// A requested move, validated: the screen is free, and every category has a price.
#[derive(Clone, Debug)]
pub struct RequestedMove {
    /// The show.
    pub show: Uuid,
    /// The new screen.
    pub screen: String,
    /// The layout of that screen.
    pub layout: Uuid,
    /// Prices by category there, minor units.
    pub prices: BTreeMap<String, i64>,
    /// The reason, validated.
    pub reason: String,
}

/// The new start of a show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewStart {
    /// The start.
    pub at: DateTime<Utc>,
    /// Its day in the theatre's time zone.
    pub day: NaiveDate,
}

/// Moves a show without bookings to another screen and start, in the transaction of the caller, who has locked it against
/// writers of its bookings. Any replica rebuilds its map ([`round`]).
///
/// # Errors
/// As [`begin_in`]; 409 while an effect of an earlier sale is pending.
pub(crate) async fn move_at_once(
    tx: &mut PgConnection,
    requested: &RequestedMove,
    rooms: &LayoutPair,
    start: NewStart,
    now: Timestamp,
) -> ApiResult<()> {
    let id = begin_in(tx, requested, now).await?;
    match carry::carry_in(tx, id, rooms, Some(start), now).await? {
        carry::MoveAttempt::Done => Ok(()),
        carry::MoveAttempt::NotYet => {
            let detail = "An earlier sale of this show is still being settled. Please try again in a minute.";
            Err(Problem::new(Code::WrongState, detail))
        }
        left => Err(Problem::internal(&format!("the move of show {} without bookings is {left:?}", requested.show))),
    }
}

/// Begins a move in the transaction of the caller, who has locked the show against other organisers. Tries, for a
/// bounded time, to lock it against writers of its bookings as well. Any replica does the rest ([`round`]), and waits
/// for that lock before it moves a booking. Returns the id of the move.
///
/// # Errors
/// 409 when the show has begun, was called off, is being moved, was moved too often, or has unanswered offers of the
/// last move.
pub async fn begin_in(tx: &mut PgConnection, requested: &RequestedMove, now: Timestamp) -> ApiResult<Uuid> {
    selling::bookings::lock_show_before_mark(tx, requested.show).await?;
    let show = sql::show(tx, requested.show).await?.ok_or_else(|| Problem::not_found("show"))?;
    let refuse = |words: &str| Err(Problem::new(Code::WrongState, words));
    if show.called_off || from_utc(show.starts_at) <= now {
        return Err(Problem::new(Code::SalesClosed, "This show is over, or will not take place."));
    }
    if show.is_moving {
        return refuse("This show is being moved already. Its page says how far that is.");
    }
    if show.screen_id == requested.screen {
        return refuse("This show is on that screen already.");
    }
    if show.times_moved >= MAX_MOVES {
        return refuse("This show was moved too often. Cancel it, and plan another.");
    }
    if sql::has_open_offers(tx, requested.show).await? {
        return refuse("Buyers may still say whether they take the seats of the last move. Move it again after that.");
    }
    let id = ids::new_id();
    sql::begin(tx, id, requested, &show, now).await?;
    Ok(id)
}

/// Returns the last move of a show; `local` formats an instant in the theatre's time zone.
pub async fn last_move(
    tx: &mut PgConnection,
    show: Uuid,
    local: impl Fn(Timestamp) -> String + Send,
) -> ApiResult<Option<MoveView>> {
    let Some(row) = sql::last(tx, show).await? else { return Ok(None) };
    let count = |number: i32| number.unsigned_abs();
    Ok(Some(MoveView {
        state: row.state.parse().map_err(|_| Problem::internal(&format!("show_moves.state of show {show} is none")))?,
        from: row.from_name,
        to: row.to_name,
        reason: row.reason,
        same: count(row.same),
        offered: count(row.offered),
        unanswered: u32::try_from(row.unanswered).unwrap_or(u32::MAX),
        refunded: count(row.refunded),
        answer_until: row.answer_until.filter(|_| row.offered > 0).map(|until| local(from_utc(until))),
    }))
}
