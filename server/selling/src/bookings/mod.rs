//! Bookings: from a live hold to a ticket, or to the money back.
//!
//! `domain::booking::step` is the state machine. This module loads a booking, steps it, and writes the move, its
//! event, the claims and the effects in one transaction. Sales write many bookings in one transaction (`commits`); all
//! other moves write one (`moves`). Effects are performed after the commit (`effects`).
//! The browser, the webhook and the reconciler take the same steps. The counter (`counter`) takes them too, with the
//! money already paid.
//!
//! A purchase passes `checkout`, `claims` and `money`. `cancel`, `late`, `exchange` and `relocation` change a booking
//! afterwards; `views` and `mails` report it, and `sold_seats` lists the sold seats for all. Elsewhere: the gateway
//! (`payments`), the lock store (`seat_locks`), the queue of effects (`outbox`).

mod by_mail;
mod cancel;
mod checkout;
mod claims;
mod commits;
mod counter;
mod effects;
mod endpoints;
mod exchange;
mod late;
mod ledger;
mod mail_links;
mod mails;
mod money;
mod moves;
mod parked;
mod places;
mod reconciler;
mod seat_offers;
mod sold_seats;
mod sql;
mod views;

pub use by_mail::{
    OpenedByMail, answer_by_mail, ask_to_cancel, cancel_by_mail, find as find_by_mail, open as open_by_mail,
    open_to_cancel,
};
pub use cancel::{
    CallOffProgress, CounterReturn, ReturnedSeats, StaffCancellation, bookings_with, call_off, call_off_in,
    cancel_booking, cancel_shows_forever, pay_out, take_back, undo_batch, undo_in_full,
    withdraw_forever as withdraw_seats_forever, withdraw_in as withdraw_seats_in,
};
pub use checkout::create::extend_booking;
pub use claims::{Holder, LostClaims, claimed_among, holder_of_seat};
pub use commits::Commits;
pub use counter::{
    CounterLookup, CounterSale, CounterSaleError, CounterSaleResult, close_hold, find_by_id, find_by_reference,
    reopen_hold, sell, show_as_sold,
};
pub use effects::{BookingEffects, EffectError, perform};
pub use endpoints::routes;
pub use exchange::{Exchanged, ExchangedBooking, exchange};
pub use ledger::{
    OpenDifference as LedgerDifference, compare_forever as compare_ledgers_forever, count_open_differences,
    list_open_differences,
};
pub use mail_links::{answer_url, page_url, sign_links_with};
pub use mails::ticket_mails::ticket_sheet;
pub use money::news::{apply_webhook, purge_forever as purge_webhook_events_forever};
pub use moves::Cause;
pub use parked::{Decision, decide_parked, parked_at, parked_counts, retry_parked, retry_parked_mails, settle_parked};
pub use reconciler::{make_payment_due, reconcile_forever};
pub use seat_offers::end_due_seat_offers;
pub use sold_seats::SoldSeatLists;
pub use sql::{BookingRow, find, lock, lock_show_before_mark};
pub use views::summaries::{find_by_person, summaries};
pub use views::view::{TicketFacts, events, find_booking_of_hold, receipt, ticket_facts, view};
