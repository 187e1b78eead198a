//! The HTTP requests of a purchase, step by step, and what their answers mean.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;

use uuid::Uuid;

use crate::http::{HttpAnswer, amount_after, id_of, number_after, text_after};

/// Payment token of a card that is approved.
pub const TOKEN: &str = "tok_paid";

/// The buyer in request bodies.
const BUYER: &str = r#"{"name":"Ann Example","email":"ann@example.org"}"#;
const BOOKINGS: &str = "/api/v1/bookings";

/// A request of a visitor with an idempotency key, independent of the server.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub body: String,
    /// Unique among the requests of a visitor, so that a retry has the same key.
    pub key: Cow<'static, str>,
}

impl Request {
    /// Appends the request; each of `more_headers` ends in CRLF.
    pub fn write(&self, visitor: &str, more_headers: &str, out: &mut Vec<u8>) {
        let Self { method, path, body, key } = self;
        // Writing to a buffer cannot fail.
        let _ = write!(
            out,
            "{method} {path} HTTP/1.1\r\nHost: rowlock\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Cookie: rowlock_visitor={visitor}\r\nIdempotency-Key: {key}-{visitor}\r\n{more_headers}\r\n{body}",
            body.len()
        );
    }

    /// Returns the bytes of [`Request::write`].
    pub fn bytes(&self, visitor: &str, more_headers: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        self.write(visitor, more_headers, &mut out);
        out
    }
}

/// A step of a purchase.
#[derive(Clone, Copy, Debug)]
pub enum PurchaseStep {
    Hold,
    /// Checks the hold out.
    Book(Uuid),
    /// Checks the hold out and pays its price, in minor units, in one request.
    Buy(Uuid, u64),
    /// Pays the booking.
    Pay(Uuid),
    /// Polls the booking while the payment is pending.
    Poll(Uuid),
}

/// The meaning of an answer for its step.
pub enum StepOutcome<'a> {
    /// The hold and its price in minor units.
    Held(Uuid, Option<u64>),
    /// The booking, which is not paid.
    Booked(Uuid),
    /// The booking, which is CONFIRMED.
    Sold(Uuid),
    /// The step to send again, or the one that polls the booking, and the reason.
    Retry(PurchaseStep, &'a str),
    /// The problem code of any other answer.
    Unexpected(&'a str),
}

impl PurchaseStep {
    /// Builds the request for adjacent seats of a show.
    pub fn request(self, show: Uuid, seats: Range<u32>) -> Request {
        let (method, path, body, key) = match self {
            Self::Hold => {
                let seats: Vec<String> = seats.map(|seat| seat.to_string()).collect();
                let body = format!(r#"{{"seats":[{}]}}"#, seats.join(","));
                ("POST", format!("/api/v1/shows/{show}/holds"), body, "hold")
            }
            Self::Book(hold) => {
                let body = format!(r#"{{"show":"{show}","hold":"{hold}","buyer":{BUYER}}}"#);
                ("POST", BOOKINGS.to_owned(), body, "book")
            }
            Self::Buy(hold, total) => {
                let pay = format!(r#"{{"total_minor":{total},"payment_token":"{TOKEN}"}}"#);
                let body = format!(r#"{{"show":"{show}","hold":"{hold}","buyer":{BUYER},"pay":{pay}}}"#);
                ("POST", BOOKINGS.to_owned(), body, "buy")
            }
            Self::Pay(booking) => {
                let body = format!(r#"{{"payment_token":"{TOKEN}"}}"#);
                ("POST", format!("{BOOKINGS}/{booking}/confirm"), body, "pay")
            }
            Self::Poll(booking) => ("GET", format!("{BOOKINGS}/{booking}"), String::new(), "look"),
        };
        Request { method, path, body, key: key.into() }
    }

    /// Interprets the answer to this step.
    pub fn outcome<'a>(self, answer: &HttpAnswer<'a>) -> StepOutcome<'a> {
        let (status, code) = (answer.status, text_after(answer.body, "code").unwrap_or("no code"));
        if status == 503 || (status == 409 && code == "still_running") {
            return StepOutcome::Retry(self, code);
        }
        let booking = match (self, status, id_of(answer.body)) {
            (Self::Hold, 201, Some(hold)) => return StepOutcome::Held(hold, amount_after(answer.body, "total")),
            (Self::Book(_), 201, Some(booking)) => return StepOutcome::Booked(booking),
            (Self::Buy(..), 201, Some(booking)) => booking,
            (Self::Pay(booking) | Self::Poll(booking), 200, _) => booking,
            _ => return StepOutcome::Unexpected(code),
        };
        match text_after(answer.body, "state") {
            Some("CONFIRMED") => StepOutcome::Sold(booking),
            Some("PAYMENT_PENDING") => StepOutcome::Retry(Self::Poll(booking), "still pending"),
            _ => StepOutcome::Unexpected(code),
        }
    }

    /// Returns the name for messages.
    pub fn name(self) -> String {
        format!("{self:?}").split('(').next().unwrap_or_default().to_owned()
    }
}

/// The requests of a purchase at a server, and what their answers mean.
pub trait Api {
    /// Appends the request of a step for adjacent seats of a show.
    fn write(&self, step: PurchaseStep, show: Uuid, seats: Range<u32>, visitor: &str, out: &mut Vec<u8>);
    /// Interprets the answer to a step.
    fn outcome<'a>(&self, step: PurchaseStep, answer: &HttpAnswer<'a>) -> StepOutcome<'a>;
    /// Returns the seat that refuses a hold, because another visitor has it.
    fn refused_seat(&self, answer: &HttpAnswer<'_>) -> Option<u32>;
}

/// Rowlock's API, as docs/api.md describes it.
pub struct RowlockApi;

impl Api for RowlockApi {
    fn write(&self, step: PurchaseStep, show: Uuid, seats: Range<u32>, visitor: &str, out: &mut Vec<u8>) {
        step.request(show, seats).write(visitor, "", out);
    }

    fn outcome<'a>(&self, step: PurchaseStep, answer: &HttpAnswer<'a>) -> StepOutcome<'a> {
        step.outcome(answer)
    }

    fn refused_seat(&self, answer: &HttpAnswer<'_>) -> Option<u32> {
        let seat = number_after(answer.body, "seat").filter(|_| matches!(answer.status, 409 | 423))?;
        u32::try_from(seat).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_complete_and_encoded_the_same_each_time() {
        let visitor = "0123456789abcdef0123456789abcdef";
        let request = PurchaseStep::Hold.request(Uuid::from_u128(1), 4..6);
        let text = String::from_utf8(request.bytes(visitor, "Prefer: wait=1\r\n")).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert_eq!(body, r#"{"seats":[4,5]}"#);
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert!(head.ends_with(&format!("Idempotency-Key: hold-{visitor}\r\nPrefer: wait=1")));
        assert_eq!(request.bytes(visitor, ""), request.bytes(visitor, ""));
    }
}
