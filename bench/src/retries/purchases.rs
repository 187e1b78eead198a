//! Purchases whose requests are replayed later.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use uuid::Uuid;

use crate::http;
use crate::http::text_after;
use crate::random::Random;
use crate::world::{Show, World};

/// Payment token of a card that is approved.
const TOKEN: &str = "tok_paid";

/// A request with an idempotency key, independent of the server.
#[derive(Clone, Debug)]
pub struct Request {
    path: String,
    body: String,
    visitor: String,
    key: String,
}

impl Request {
    /// Creates the request that holds seats.
    pub fn hold(show: Uuid, seats: &[u32], visitor: &str) -> Self {
        let seats = seats.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        Self::new(format!("/api/v1/shows/{show}/holds"), format!(r#"{{"seats":[{seats}]}}"#), visitor, "hold")
    }

    /// Creates the request that checks out.
    pub fn book(show: Uuid, hold: Uuid, visitor: &str) -> Self {
        let buyer = r#"{"name":"Ann Example","email":"ann@example.org"}"#;
        let body = format!(r#"{{"show":"{show}","hold":"{hold}","buyer":{buyer}}}"#);
        Self::new("/api/v1/bookings".into(), body, visitor, "book")
    }

    /// Creates the request that pays.
    pub fn pay(booking: Uuid, visitor: &str) -> Self {
        let body = format!(r#"{{"payment_token":"{TOKEN}"}}"#);
        Self::new(format!("/api/v1/bookings/{booking}/confirm"), body, visitor, "pay")
    }

    fn new(path: String, body: String, visitor: &str, step: &str) -> Self {
        Self { path, body, visitor: visitor.to_owned(), key: format!("{step}-{visitor}") }
    }

    /// Encodes the request; each of `more_headers` ends in CRLF.
    pub fn bytes(&self, more_headers: &str) -> Vec<u8> {
        format!(
            "POST {} HTTP/1.1\r\nHost: rowlock\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Cookie: rowlock_visitor={}\r\nIdempotency-Key: {}\r\n{more_headers}\r\n{}",
            self.path,
            self.body.len(),
            self.visitor,
            self.key,
            self.body
        )
        .into_bytes()
    }
}

/// A request and its first answer.
#[derive(Clone, Debug)]
pub struct AnsweredRequest {
    /// The request.
    pub request: Request,
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Hold, booking and payment of one buyer.
#[derive(Clone, Debug)]
pub struct Purchase {
    /// The requests in this order.
    pub requests: [AnsweredRequest; 3],
}

/// Buys `seats_each` seats for each of `buyers` people, alternating between the servers.
pub fn make_purchases(
    world: &mut World,
    servers: &[SocketAddr],
    buyers: u32,
    seats_each: u32,
) -> Result<Vec<Purchase>> {
    // A room has rows of a hundred seats.
    let show = world.shows((buyers * seats_each).next_multiple_of(100), 1)?[0];
    (0..buyers)
        .map(|buyer| {
            let server = servers[buyer as usize % servers.len()];
            let seats: Vec<u32> = (buyer * seats_each..(buyer + 1) * seats_each).collect();
            buy(server, &show, &seats, &mut world.random)
        })
        .collect()
}

fn buy(server: SocketAddr, show: &Show, seats: &[u32], random: &mut Random) -> Result<Purchase> {
    let visitor = random.hex();
    let hold = send_first(server, Request::hold(show.id, seats, &visitor), 201)?;
    let booking = send_first(server, Request::book(show.id, id_of(&hold.body)?, &visitor), 201)?;
    let payment = send_first(server, Request::pay(id_of(&booking.body)?, &visitor), 200)?;
    Ok(Purchase { requests: [hold, booking, payment] })
}

fn send_first(server: SocketAddr, request: Request, expected: u16) -> Result<AnsweredRequest> {
    let (status, body) = http::ask(server, &request.bytes(""))?;
    ensure!(status == expected, "{} is answered with {status}: {}", request.path, String::from_utf8_lossy(&body));
    Ok(AnsweredRequest { request, status, body })
}

/// Returns the id in an answer.
pub fn id_of(body: &[u8]) -> Result<Uuid> {
    let id = text_after(body, "id").and_then(|id| Uuid::parse_str(id).ok());
    id.ok_or_else(|| anyhow::anyhow!("no id in {}", String::from_utf8_lossy(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_complete_and_encoded_the_same_each_time() {
        let visitor = "0123456789abcdef0123456789abcdef";
        let request = Request::hold(Uuid::from_u128(1), &[4, 5], visitor);
        let text = String::from_utf8(request.bytes("Prefer: wait=1\r\n")).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert_eq!(body, r#"{"seats":[4,5]}"#);
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert!(head.ends_with(&format!("Idempotency-Key: hold-{visitor}\r\nPrefer: wait=1")));
        assert_eq!(request.bytes(""), request.bytes(""));
    }
}
