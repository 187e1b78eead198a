//! Tickets: a code per seat, its QR picture, the mail that brings them, and an entry for the calendar.
//!
//! A ticket follows from a confirmed booking; whether there is one is the booking machine's
//! business. Scanning at the door is the box office's.

pub mod calendar;
pub mod code;
pub mod mail;
pub mod qr;
mod sql;

pub use code::TicketCode;
pub use mail::{MailError, Mailer, TicketMail, is_address};
pub use sql::{Ticket, issue, issue_all, of_booking};
