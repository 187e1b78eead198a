//! A show that is moved to another screen: its bookings go with it.
//!
//! An organiser's word marks the show, in one transaction with the row that keeps the progress (`show_moves`). From then
//! on nobody begins to pay for it: a trigger refuses those that do not know yet (`migrations/0063`). Holds are let go,
//! what was only checked out is cancelled, and what is being paid for gets some time to end (`rounds`). Then, in one
//! transaction, every sold place is renumbered along the other room (`carry`), and after it the lock store builds the
//! map anew. If a server dies half way, the row stays open, and any replica goes on (docs/decisions/0042).
//!
//! Who sits where is decided in `domain::relocation`. Those whose places exist there keep them. All others get
//! places that are no worse, which are the booking's own from that moment; its buyer says yes or no (`selling::bookings`), and
//! a buyer who does not answer in time gets the money back. What is not here: which screens are free, and what a
//! category costs there (`organiser`).

mod carry;
mod ground;
mod lines;
mod mails;
mod preview;
mod rounds;
mod sql;

use std::collections::BTreeMap;

use domain::api::moving::{MoveState, MoveView};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

pub use mails::send_forever as send_mails_forever;
pub use preview::preview;
pub use rounds::{round, work_forever};

use http::{Code, Problem};
use platform::clock::from_utc;
use platform::ids;

/// Moves of one show, at most: seats of earlier rooms are kept apart by the number of the move (`migrations/0063`).
pub const MAX_MOVES: i16 = 20;

/// A requested move, checked: the screen is free, and every category has a price.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The show.
    pub show: Uuid,
    /// The screen it is to be on.
    pub screen: String,
    /// The room of that screen.
    pub layout: Uuid,
    /// What a category costs there, minor units.
    pub prices: BTreeMap<String, i64>,
    /// Why, checked already.
    pub reason: String,
}

/// Begins a move, in the transaction of the caller, who has locked the show against other organisers. Tries to lock it
/// against writers of its bookings as well, for a bounded time. Any replica does the rest ([`round`]), and waits for that
/// lock before it moves a booking.
///
/// # Errors
/// 409 when it is over, called off, being moved, moved too often, or buyers of the last move may still answer.
pub async fn begin_in(tx: &mut PgConnection, wish: &Wish, now: Timestamp) -> Result<(), Problem> {
    selling::bookings::lock_show_before_mark(tx, wish.show).await?;
    let show = sql::show(tx, wish.show).await?.ok_or_else(|| Problem::not_found("show"))?;
    let refuse = |words: &str| Err(Problem::new(Code::WrongState, words));
    if show.called_off || from_utc(show.starts_at) <= now {
        return Err(Problem::new(Code::SalesClosed, "This show is over, or will not take place."));
    }
    if show.is_moving {
        return refuse("This show is being moved already. Its page says how far that is.");
    }
    if show.screen_id == wish.screen {
        return refuse("This show is on that screen already.");
    }
    if show.times_moved >= MAX_MOVES {
        return refuse("This show was moved too often. Cancel it, and plan another.");
    }
    if sql::has_open_offers(tx, wish.show).await? {
        return refuse("Buyers may still say whether they take the seats of the last move. Move it again after that.");
    }
    sql::begin(tx, ids::new_id(), wish, &show, now).await?;
    Ok(())
}

/// The last move of a show; `local` writes an instant on the theatre's clocks.
///
/// # Errors
/// When the database fails.
pub async fn last_move(
    tx: &mut PgConnection,
    show: Uuid,
    local: impl Fn(Timestamp) -> String + Send,
) -> Result<Option<MoveView>, Problem> {
    let Some(row) = sql::last(tx, show).await? else { return Ok(None) };
    let count = |number: i32| number.unsigned_abs();
    let state = MoveState::parse(&row.state);
    Ok(Some(MoveView {
        state: state.ok_or_else(|| Problem::internal(&format!("show_moves.state of show {show} is none")))?,
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
