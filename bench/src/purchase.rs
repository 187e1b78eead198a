//! The steps of a purchase over HTTP, as the crowds of the benchmarks take them.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::ops::Range;

use uuid::Uuid;

/// Payment of a card that is good.
pub const TOKEN: &str = "tok_paid";

/// Who buys.
const BUYER: &str = r#"{"name":"Ann Example","email":"ann@example.org"}"#;

/// What a buyer does next.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Takes the seats.
    Hold,
    /// Checks out.
    Book {
        /// The hold they got.
        hold: Uuid,
    },
    /// Checks out and pays.
    Buy {
        /// The hold they got.
        hold: Uuid,
        /// What it costs, in minor units.
        total: u64,
    },
    /// Pays.
    Pay {
        /// The booking it became.
        booking: Uuid,
    },
    /// The payment takes its time.
    Look {
        /// Likewise.
        booking: Uuid,
    },
}

/// Who wants which seats, and asks whom.
pub struct Purchase<'a> {
    /// The server.
    pub server: SocketAddr,
    /// The show.
    pub show: Uuid,
    /// Seats next to each other.
    pub seats: Range<u32>,
    /// The buyer's cookie.
    pub cookie: &'a str,
}

impl Purchase<'_> {
    /// Writes the request of a step. Its key is the buyer's own and the same for a repeat.
    pub fn write(&self, step: Step, out: &mut Vec<u8>) {
        let Self { server, show, seats, cookie } = self;
        let mut body = String::new();
        let mut text = String::with_capacity(512);
        // Writing to a string cannot fail.
        let key = match step {
            Step::Hold => {
                body.push_str(r#"{"seats":["#);
                for seat in seats.clone() {
                    let comma = if seat == seats.start { "" } else { "," };
                    let _ = write!(body, "{comma}{seat}");
                }
                body.push_str("]}");
                let _ = write!(text, "POST /api/v1/shows/{show}/holds");
                "hold"
            }
            Step::Book { hold } => {
                let _ = write!(body, r#"{{"show":"{show}","hold":"{hold}","buyer":{BUYER}}}"#);
                text.push_str("POST /api/v1/bookings");
                "book"
            }
            Step::Buy { hold, total } => {
                let pay = format!(r#"{{"total_minor":{total},"payment_token":"{TOKEN}"}}"#);
                let _ = write!(body, r#"{{"show":"{show}","hold":"{hold}","buyer":{BUYER},"pay":{pay}}}"#);
                text.push_str("POST /api/v1/bookings");
                "buy"
            }
            Step::Pay { booking } => {
                let _ = write!(body, r#"{{"payment_token":"{TOKEN}"}}"#);
                let _ = write!(text, "POST /api/v1/bookings/{booking}/confirm");
                "pay"
            }
            Step::Look { booking } => {
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
