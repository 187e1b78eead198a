//! The request bytes of an attempt: a template per show, filled in per attempt without formatting.

use std::net::SocketAddr;

use uuid::Uuid;

use crate::random::Random;

/// Width of a seat number. JSON allows the leading spaces of a shorter one.
const SEAT_WIDTH: usize = 6;
const HEX_WIDTH: usize = 32;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The bytes of an attempt with blanks for visitor, key and seat, and the offsets of the blanks.
pub struct Template {
    bytes: Vec<u8>,
    visitor: usize,
    key: usize,
    seat: usize,
}

impl Template {
    /// Creates the template of `POST /shows/{show}/holds` for one seat, with visitor cookie and idempotency key.
    pub fn hold(server: SocketAddr, show: Uuid) -> Self {
        let blank = "0".repeat(HEX_WIDTH);
        let body = format!("{{\"seats\":[{}]}}", " ".repeat(SEAT_WIDTH));
        let mut bytes = format!(
            "POST /api/v1/shows/{show}/holds HTTP/1.1\r\nHost: {server}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nCookie: rowlock_visitor=",
            body.len()
        )
        .into_bytes();
        let visitor = bytes.len();
        bytes.extend_from_slice(format!("{blank}\r\nIdempotency-Key: ").as_bytes());
        let key = bytes.len();
        bytes.extend_from_slice(format!("{blank}\r\n\r\n{body}").as_bytes());
        let seat = bytes.len() - SEAT_WIDTH - "]}".len();
        Self { bytes, visitor, key, seat }
    }

    /// Appends the attempt of a new visitor.
    pub fn fill(&self, random: &mut Random, seat: u32, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(&self.bytes);
        let filled = &mut out[from..];
        write_hex(random, &mut filled[self.visitor..self.visitor + HEX_WIDTH]);
        write_hex(random, &mut filled[self.key..self.key + HEX_WIDTH]);
        let mut rest = seat;
        for place in (self.seat..self.seat + SEAT_WIDTH).rev() {
            filled[place] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
    }
}

fn write_hex(random: &mut Random, place: &mut [u8]) {
    for half in place.chunks_mut(HEX_WIDTH / 2) {
        let mut bits = random.bits();
        for byte in half {
            *byte = DIGITS[(bits & 15) as usize];
            bits >>= 4;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_template_requests_the_seat_as_a_new_visitor() {
        let template = Template::hold("127.0.0.1:3000".parse().expect("an address"), Uuid::from_u128(7));
        let mut random = Random::from_seed(1);
        let mut written = |seat| {
            let mut out = Vec::new();
            template.fill(&mut random, seat, &mut out);
            String::from_utf8(out).expect("text")
        };
        let (first, second) = (written(46), written(123_456));
        let (head, body) = first.split_once("\r\n\r\n").expect("a head and a body");
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(body, serde_json::json!({"seats": [46]}));
        assert!(second.ends_with("[123456]}"));
        assert!(head.starts_with("POST /api/v1/shows/00000000-0000-0000-0000-000000000007/holds HTTP/1.1\r\n"));
        let value = |text: &str, name: &str| {
            let from = text.find(name).expect("a header") + name.len();
            text[from..from + HEX_WIDTH].to_owned()
        };
        for name in ["rowlock_visitor=", "Idempotency-Key: "] {
            assert!(value(head, name).bytes().all(|byte| byte.is_ascii_hexdigit()));
            assert_ne!(value(&first, name), value(&second, name));
        }
    }
}
