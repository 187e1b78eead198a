//! Tickets: a signed code per seat or place, its QR picture, the PDF, the calendar entry, and all mails.
//!
//! The crate issues and revokes tickets in the caller's transaction (tables `tickets` and `place_tickets`). The booking
//! machine decides when; scanning is in `backoffice` (`door`).
//!
//! It may use `platform` and `domain`.
//!
//! A new kind of mail goes into `plain_mail.rs`, or is a module beside `notice.rs` if it has HTML; [`Mailer`] sends it.
//! A new font goes into `fonts/` and `pdf/fonts.rs`.

pub mod calendar;
pub mod code;
pub mod links;
pub mod mail;
pub mod notice;
pub mod pdf;
mod plain_mail;
pub mod png;
pub mod qr;
mod settings;
mod signing;
mod sql;

pub use code::TicketCode;
pub use mail::{
    Addressee, Attachments, ComposedMails, LEASE_MS as MAIL_LEASE_MS, MailBatch, MailBatchFailure, MailError, MailLane,
    Mailer, SEND_WITHIN, TicketMail, is_address, wrong_settings,
};
pub use notice::NoticeMail;
pub use plain_mail::{AccountMail, CodeMail, OfferMail};
pub use settings::MailSettings;
pub use signing::{Signed, check_signature};
pub use sql::{
    Ticket, add_issued, booking_of_code, has_admissions, issue, issue_places, of_booking, of_bookings, revoke,
};

/// Names of the parts of a total, in mails and files: subtotal, taxes, fees.
const PRICE_PART_NAMES: [&str; 3] = ["Before tax and fees", "Tax", "Fees"];

/// Sets the secrets that sign codes and addresses: the first signs, all verify. A second call changes nothing.
pub fn sign_with(secrets: &[String]) {
    signing::sign_with(secrets);
    links::sign_with(secrets);
}
