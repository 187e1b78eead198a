//! The HTTP requests of a purchase, step by step.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::ops::Range;

use uuid::Uuid;

/// Payment token of a card that is approved.
pub const TOKEN: &str = "tok_paid";

/// The buyer in request bodies.
const BUYER: &str = r#"{"name":"Ann Example","email":"ann@example.org"}"#;

/// A step of a purchase.
#[derive(Clone, Copy, Debug)]
pub enum PurchaseStep {
    /// Holds the seats.
    Hold,
    /// Checks out.
    Book {
        /// The hold of the seats.
        hold: Uuid,
    },
    /// Checks out and pays in one request.
    Buy {
        /// The hold of the seats.
        hold: Uuid,
        /// The price, in minor units.
        total: u64,
    },
    /// Pays.
    Pay {
        /// The booking to pay.
        booking: Uuid,
    },
    /// Polls the booking while the payment is pending.
    Poll {
        /// The booking to poll.
        booking: Uuid,
    },
}

/// A buyer's seats and the server that sells them.
pub struct Purchase<'a> {
    /// The server.
    pub server: SocketAddr,
    /// The show.
    pub show: Uuid,
    /// Adjacent seats.
    pub seats: Range<u32>,
    /// The buyer's visitor cookie.
    pub cookie: &'a str,
}

impl Purchase<'_> {
    /// Writes the request of a step. Its idempotency key is unique per buyer and step, so a retry has the same key.
    pub fn write(&self, step: PurchaseStep, out: &mut Vec<u8>) {
        let Self { server, show, seats, cookie } = self;
        let mut body = String::new();
        let mut text = String::with_capacity(512);
        // Writing to a string cannot fail.
        let key = match step {
            PurchaseStep::Hold => {
                body.push_str(r#"{"seats":["#);
                for seat in seats.clone() {
                    let comma = if seat == seats.start { "" } else { "," };
                    let _ = write!(body, "{comma}{seat}");
                }
                body.push_str("]}");
                let _ = write!(text, "POST /api/v1/shows/{show}/holds");
                "hold"
            }
            PurchaseStep::Book { hold } => {
                let _ = write!(body, r#"{{"show":"{show}","hold":"{hold}","buyer":{BUYER}}}"#);
                text.push_str("POST /api/v1/bookings");
                "book"
            }
            PurchaseStep::Buy { hold, total } => {
                let pay = format!(r#"{{"total_minor":{total},"payment_token":"{TOKEN}"}}"#);
                let _ = write!(body, r#"{{"show":"{show}","hold":"{hold}","buyer":{BUYER},"pay":{pay}}}"#);
                text.push_str("POST /api/v1/bookings");
                "buy"
            }
            PurchaseStep::Pay { booking } => {
                let _ = write!(body, r#"{{"payment_token":"{TOKEN}"}}"#);
                let _ = write!(text, "POST /api/v1/bookings/{booking}/confirm");
                "pay"
            }
            PurchaseStep::Poll { booking } => {
                let _ = write!(text, "GET /api/v1/bookings/{booking}");
                "look"
            }
        };
        let _ = write!(
            text,
            " HTTP/1.1\r\nHost: {server}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Cookie: rowlock_visitor={cookie}\r\nIdempotency-Key: {key}-{cookie}\r\n\r\n{body}",
            body.len(),
        );
        out.extend_from_slice(text.as_bytes());
    }
}
