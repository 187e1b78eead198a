//! Reading what the scripts answer.

use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use domain::time::Timestamp;
use redis::Value;
use uuid::Uuid;

use super::super::{Attempt, Held, Lot, Refusal, StoreError};

/// What a script answered, behind its head.
pub(super) struct Answer {
    pub(super) code: Vec<u8>,
    pub(super) epoch: u64,
    pub(super) version: u64,
    pub(super) rest: Vec<Value>,
    /// How often it may have been done: the answer may belong to a repeat of what the first try did.
    pub(super) tried: u32,
}

impl Answer {
    pub(super) fn rest(&self) -> Rest<'_> {
        Rest(&self.rest)
    }

    pub(super) fn is(&self, code: &str) -> bool {
        self.code == code.as_bytes()
    }

    /// The hold behind "OK", or why not.
    pub(super) fn hold(&self, hold: Uuid) -> Result<Result<Held, Refusal>, StoreError> {
        if self.is("OK") { self.rest().hold(hold).map(Ok) } else { self.refused().map(Err) }
    }

    pub(super) fn refused(&self) -> Result<Refusal, StoreError> {
        self.rest().refusal(&self.code)
    }
}

/// What follows the head of an answer, read from the front.
pub(super) struct Rest<'a>(pub(super) &'a [Value]);

impl<'a> Rest<'a> {
    pub(super) fn value(&mut self) -> Result<&'a Value, StoreError> {
        let (first, rest) = self.0.split_first().ok_or_else(|| nonsense("an answer that ends too soon"))?;
        self.0 = rest;
        Ok(first)
    }

    pub(super) fn number(&mut self) -> Result<i64, StoreError> {
        number(self.value()?)
    }

    pub(super) fn seat(&mut self) -> Result<SeatIndex, StoreError> {
        let value = self.value()?;
        SeatIndex::try_from(number(value)?).map_err(|_| nonsense(value))
    }

    pub(super) fn area(&mut self) -> Result<AreaIndex, StoreError> {
        let value = self.value()?;
        AreaIndex::try_from(number(value)?).map_err(|_| nonsense(value))
    }

    pub(super) fn count(&mut self) -> Result<u32, StoreError> {
        let value = self.value()?;
        u32::try_from(number(value)?).map_err(|_| nonsense(value))
    }

    /// Places left in an area as the key has them: below zero when more were sold than there were. Outside,
    /// that is none.
    pub(super) fn places_left(&mut self) -> Result<u32, StoreError> {
        let value = self.value()?;
        u32::try_from(number(value)?.max(0)).map_err(|_| nonsense(value))
    }

    pub(super) fn id(&mut self) -> Result<Uuid, StoreError> {
        let value = self.value()?;
        std::str::from_utf8(bytes(value)?)
            .ok()
            .and_then(|text| Uuid::parse_str(text).ok())
            .ok_or_else(|| nonsense(value))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], StoreError> {
        bytes(self.value()?)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What `with_hold` of the prelude wrote; it fills the rest.
    pub(super) fn hold(mut self, hold: Uuid) -> Result<Held, StoreError> {
        let (expires_at, latest) = (Timestamp(self.number()?), Timestamp(self.number()?));
        let (fence, paying) = (self.number()?, self.number()? == 1);
        let seats = (0..self.count()?).map(|_| self.seat()).collect::<Result<_, _>>()?;
        let mut places = Vec::new();
        while !self.is_empty() {
            places.push(Places { area: self.area()?, count: self.count()? });
        }
        Ok(Held { hold, expires_at, latest, fence, paying, lot: Lot { seats, places } })
    }

    /// The refusal of that code.
    pub(super) fn refusal(mut self, code: &[u8]) -> Result<Refusal, StoreError> {
        Ok(match code {
            b"TAKEN" => {
                let mut taken = Vec::new();
                while !self.is_empty() {
                    taken.push((self.seat()?, self.state()?));
                }
                Refusal::Taken(taken)
            }
            b"FULL" => {
                let mut full = Vec::new();
                while !self.is_empty() {
                    full.push((self.area()?, self.count()?));
                }
                Refusal::Full(full)
            }
            b"OTHER" => Refusal::OtherHold(self.id()?),
            b"LIMIT" => Refusal::Limit(self.count()?),
            b"REUSED" => Refusal::Reused,
            b"OUTSIDE" => Refusal::Outside(self.seat()?),
            b"NOAREA" => Refusal::NoArea(self.area()?),
            b"GONE" => Refusal::Gone,
            b"PAYING" => Refusal::Paying,
            b"CHANGED" => Refusal::Changed,
            b"CAPPED" => Refusal::Capped,
            b"LAPSED" => Refusal::Lapsed,
            other => return Err(nonsense(&String::from_utf8_lossy(other))),
        })
    }

    fn state(&mut self) -> Result<SeatState, StoreError> {
        let value = self.value()?;
        u8::try_from(number(value)?).ok().and_then(SeatState::from_byte).ok_or_else(|| nonsense(value))
    }
}

/// Reads an answer that has a part, a code and what follows it, for each of those that were asked about.
pub(super) fn each<T>(
    parts: &[Value],
    asked: usize,
    read: impl Fn(&[u8], Rest<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    if parts.len() != asked {
        return Err(nonsense(parts));
    }
    let one = |part: &Value| {
        let Value::Array(words) = part else { return Err(nonsense(part)) };
        let mut rest = Rest(words);
        let code = rest.bytes()?;
        read(code, rest)
    };
    parts.iter().map(one).collect()
}

/// What became of one attempt of a call.
pub(super) fn of_attempt(answer: &Value, attempt: &Attempt) -> Result<Result<Held, Refusal>, StoreError> {
    let Value::Array(parts) = answer else { return Err(nonsense(answer)) };
    let mut rest = Rest(parts);
    let code = rest.bytes()?;
    if code != b"HELD" {
        return rest.refusal(code).map(Err);
    }
    Ok(Ok(Held {
        hold: attempt.asked.id,
        expires_at: Timestamp(rest.number()?),
        latest: Timestamp(rest.number()?),
        fence: rest.number()?,
        paying: false,
        lot: attempt.lot.clone(),
    }))
}

fn bytes(value: &Value) -> Result<&[u8], StoreError> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.as_bytes()),
        other => Err(nonsense(other)),
    }
}

/// Lua's numbers come as integers, those too long for it as text.
fn number(value: &Value) -> Result<i64, StoreError> {
    match value {
        Value::Int(number) => Ok(*number),
        other => {
            let text = std::str::from_utf8(bytes(other)?).ok();
            text.and_then(|text| text.parse().ok()).ok_or_else(|| nonsense(other))
        }
    }
}

pub(super) fn nonsense<T: std::fmt::Debug + ?Sized>(answer: &T) -> StoreError {
    StoreError::Nonsense(format!("{answer:?}"))
}
