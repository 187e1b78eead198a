//! Bookings: from a live hold to a ticket, or to the money back.
//!
//! `domain::booking::step` decides; this room loads, steps, and writes the move, its event, the claims
//! and the effects in one transaction (`moves`; for the moves of a sale `commits`, many bookings in one
//! transaction), then performs the effects (`effects`, many at a time `chores`). Browser, webhook and
//! reconciler all take the same steps; so does the counter (`counter`), which has the money already. What is not here: the gateway (`payments`), the lock store
//! (`seat_locks`), the queue of effects (`outbox`).

mod account_limit;
mod area_claims;
mod asking;
mod cancel;
mod checks;
mod chores;
mod claiming;
mod claims;
mod commits;
mod confirm;
mod counter;
mod create;
mod declines;
mod effects;
mod exchange;
mod holders;
mod http;
mod instruments;
mod keep_longer;
mod late;
mod moves;
mod news;
mod notices;
mod parked;
mod payment_rows;
mod places;
mod reconciler;
mod refunds;
pub mod relocation;
mod selling;
mod sql;
mod steps;
mod story;
mod summaries;
mod ticket_mails;
mod view;

pub use cancel::{
    Batch, TakenBack, Undone, call_off, call_off_in, cancel_booking, pay_out, take_back, undo_batch,
    work_forever as look_after_shows_forever,
};
pub use chores::perform_all;
pub use claiming::Lost;
pub(crate) use claims::{CLAIM_GRACE_MS, alive_since, claim_is_alive};
pub use commits::{CommitMode, Commits};
pub use counter::{
    CounterSale, Found as CounterFound, Sold, Unsold, close_hold, find_by_id, find_by_reference, open_hold_again, sell,
    show_as_sold,
};
pub use effects::{EffectError, perform};
pub use exchange::{Exchanged, Given, exchange};
pub use holders::{Holder, claimed_among, of_seat as holder_of_seat};
pub use http::routes;
pub use keep_longer::keep_longer;
pub use news::payment_news;
pub use parked::{retry_parked, settle_parked};
pub use reconciler::{ask_soon, reconcile_forever};
pub use selling::{Selling, selling};
pub use sql::BookingRow;
pub use summaries::summaries;
pub use view::{TicketFacts, events, of_hold, ticket_facts, view};
