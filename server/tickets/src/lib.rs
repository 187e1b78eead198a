//! Tickets: a code per seat or place, its QR picture, the mails that bring them or say what became of them, a
//! file to print, and an entry for the calendar.
//!
//! A ticket follows from a confirmed booking; whether there is one is the booking machine's
//! business. Scanning is the door's (`door`).

mod account_mail;
pub mod calendar;
pub mod code;
mod code_mail;
pub mod links;
pub mod mail;
pub mod notice;
mod offer_mail;
pub mod pdf;
mod png;
pub mod qr;
mod settings;
mod signing;
mod sql;

pub use account_mail::AccountMail;
pub use code::TicketCode;
pub use code_mail::CodeMail;
pub use mail::{
    Addressee, Attachments, Composed, LEASE_MS as MAIL_LEASE_MS, Letters, MailError, MailLane, Mailer, SEND_WITHIN,
    TicketMail, is_address, wrong_settings,
};
pub use notice::NoticeMail;
pub use offer_mail::OfferMail;
pub use settings::MailSettings;
pub use signing::{Signed, judge};
pub use sql::{Ticket, add_issued, booking_of_code, in_use, issue, issue_places, of_booking, of_bookings, revoke};

/// Says with what codes and addresses are signed: the first secret signs, all of them are believed. A second call
/// changes nothing.
pub fn sign_with(secrets: &[String]) {
    signing::sign_with(secrets);
    links::sign_with(secrets);
}
