//! The waiting room of a show, if it is switched on. Two million waiting visitors cost one counter in Redis.
//!
//! Joining increments a counter in Redis, once for all requests of the same moment ([`joining`]), and returns a signed
//! ticket with the number ([`tickets`]); a visitor has no row. The key of the draw is created when the room is switched
//! on, and its hash is published. At opening the counter fixes how many are drawn; that number is recorded once, and
//! only then the key is published and the first place called (`domain::waiting_room::draw`). Every replica calls the
//! next places four times a second ([`rounds`], `lua/admit.lua`): Redis' clock and one script decide, so there is no
//! leader and no double call. Tickets are limited per address, and many from one address cost puzzles ([`limits`]); an
//! unused ticket ([`used_tickets`]) reserves a place inside only for seconds. A visitor who enters gets a signed pass.
//! `POST …/holds` reads no store for requests without one ([`check_pass`]), except to check if the account sells at the
//! counter: customers at the counter do not wait ([`sellers`]).
//!
//! Redis may lose everything. Tickets contain their numbers, the draw is in Postgres, and numbers are given out only
//! below a mark that was written there before, in blocks (`waiting_rooms.reserved`): a rebuilt room
//! ([`store::rebuild`]) continues after the mark. Lost are only the numbers given back and those inside; the latter are
//! counted as inside until their passes end. Numbers between the last one given out and the mark become a gap (`gaps`): their places are
//! skipped, and a holder of one of them enters late.

mod endpoints;
mod entry;
mod joining;
mod limits;
mod room;
mod rounds;
mod sellers;
mod sql;
mod store;
mod switch;
mod tickets;
mod used_tickets;

pub use endpoints::routes;
pub use entry::{TicketImport, VisitorPage, check_pass, check_ticket_import, page_of};
pub use room::{ActiveRoom, Rooms};
pub use rounds::serve_forever;
pub use switch::{
    Overview, SwitchError, apply_request, delete_of_rehearsal, open_for_rehearsal, opening_of, opens_between, overview,
    show_at, switch,
};
