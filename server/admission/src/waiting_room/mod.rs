//! The waiting room of a show, where it is switched on: two million people at the door cost a counter.
//!
//! Joining is one step of a counter in Redis, shared by all who come at the same moment ([`joining`]), and a signed
//! ticket with the number ([`tickets`]); nobody has a row. The key of the draw is made when the room is switched on and
//! its hash published; at opening the counter says how many are drawn, that is written down once, and only then is
//! the key told and anybody let in (`domain::waiting_room::draw`). Every replica calls the next places four times a
//! second ([`rounds`], `lua/admit.lua`): Redis' clock and one script decide, so that none leads and nobody is called
//! twice. Tickets are limited for each address, and cost puzzles where many are taken from one ([`limits`]); an unused
//! ticket ([`used_tickets`]) keeps a place inside for seconds only. A visitor who comes in has a signed pass;
//! `POST …/holds` looks nothing up about those without one ([`check_pass`]), except whether an account sells at the counter:
//! buyers who are served there wait in no room ([`sellers`]).
//!
//! Redis may forget everything. Tickets carry their numbers, the draw stands in Postgres, and numbers are given out
//! only below a mark that was written there before, in blocks (`waiting_rooms.reserved`): a room that is built again
//! ([`rebuild`]) goes on behind the mark. What is lost is who left and who was inside; the latter are counted as inside
//! until their passes are over. Numbers between the last that was given out and the mark stay nobody's (`gaps`): their
//! places are passed over, and whoever has one of them all the same comes late.

mod demand;
mod endpoints;
mod entry;
mod joining;
mod limits;
mod overview;
mod rebuild;
mod room;
mod rounds;
mod sellers;
mod sql;
mod store;
mod switch;
mod tickets;
mod used_tickets;
mod view;

pub use endpoints::routes;
pub use entry::{Brought, Whereabouts, bring_ticket, check_pass, whereabouts};
pub use overview::{Overview, overview};
pub use room::{Room, Rooms};
pub use rounds::serve_forever;
pub use switch::{Refused, set_up, show_at, switch};
