//! Writes the arguments of the scripts, and parses their answers.

use domain::seats::{AreaIndex, Places, SeatIndex, SeatState};
use domain::time::Timestamp;
use redis::{Cmd, Value};
use uuid::Uuid;

use crate::seat_locks::{
    FencedSelection, LockAttempt, Refusal, RequestIdentity, SeatResult, Selection, StoreError, StoreResult, StoredHold,
};

/// The answer of a script after its head.
pub(super) struct ScriptAnswer {
    pub(super) code: Vec<u8>,
    pub(super) epoch: u64,
    pub(super) version: u64,
    pub(super) rest: Vec<Value>,
    /// Number of tries: after more than one, the answer may be a replay of the first.
    pub(super) tried: u32,
}

impl ScriptAnswer {
    pub(super) fn rest(&self) -> AnswerFields<'_> {
        AnswerFields(&self.rest)
    }

    pub(super) fn is(&self, code: &str) -> bool {
        self.code == code.as_bytes()
    }

    /// The hold after "OK", or the refusal.
    pub(super) fn hold(&self, hold: Uuid) -> StoreResult<SeatResult<StoredHold>> {
        if self.is("OK") { self.rest().hold(hold).map(Ok) } else { self.refused().map(Err) }
    }

    pub(super) fn refused(&self) -> StoreResult<Refusal> {
        self.rest().refusal(&self.code)
    }
}

/// Reads the fields after the head of an answer from the front.
pub(super) struct AnswerFields<'a>(pub(super) &'a [Value]);

impl<'a> AnswerFields<'a> {
    pub(super) fn value(&mut self) -> StoreResult<&'a Value> {
        let (first, rest) = self.0.split_first().ok_or_else(|| unexpected_answer("an answer that ends too soon"))?;
        self.0 = rest;
        Ok(first)
    }

    pub(super) fn number(&mut self) -> StoreResult<i64> {
        number(self.value()?)
    }

    pub(super) fn seat(&mut self) -> StoreResult<SeatIndex> {
        let value = self.value()?;
        SeatIndex::try_from(number(value)?).map_err(|_| unexpected_answer(value))
    }

    pub(super) fn area(&mut self) -> StoreResult<AreaIndex> {
        let value = self.value()?;
        AreaIndex::try_from(number(value)?).map_err(|_| unexpected_answer(value))
    }

    pub(super) fn count(&mut self) -> StoreResult<u32> {
        let value = self.value()?;
        u32::try_from(number(value)?).map_err(|_| unexpected_answer(value))
    }

    /// Places left in an area, read from its key. The key is below zero when more were sold than there were; callers
    /// get zero then.
    pub(super) fn places_left(&mut self) -> StoreResult<u32> {
        let value = self.value()?;
        u32::try_from(number(value)?.max(0)).map_err(|_| unexpected_answer(value))
    }

    pub(super) fn id(&mut self) -> StoreResult<Uuid> {
        let value = self.value()?;
        std::str::from_utf8(bytes(value)?)
            .ok()
            .and_then(|text| Uuid::parse_str(text).ok())
            .ok_or_else(|| unexpected_answer(value))
    }

    pub(super) fn bytes(&mut self) -> StoreResult<&'a [u8]> {
        bytes(self.value()?)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads what `with_hold` of the prelude wrote; it takes all remaining fields.
    pub(super) fn hold(mut self, hold: Uuid) -> StoreResult<StoredHold> {
        let (expires_at, latest) = (Timestamp(self.number()?), Timestamp(self.number()?));
        let (fence, paying) = (self.number()?, self.number()? == 1);
        let seats = (0..self.count()?).map(|_| self.seat()).collect::<Result<_, _>>()?;
        let mut places = Vec::new();
        while !self.is_empty() {
            places.push(Places { area: self.area()?, count: self.count()? });
        }
        Ok(StoredHold { hold, expires_at, latest, fence, paying, selection: Selection { seats, places } })
    }

    pub(super) fn refusal(mut self, code: &[u8]) -> StoreResult<Refusal> {
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
            other => return Err(unexpected_answer(&String::from_utf8_lossy(other))),
        })
    }

    pub(super) fn state(&mut self) -> StoreResult<SeatState> {
        let value = self.value()?;
        u8::try_from(number(value)?).ok().and_then(SeatState::from_byte).ok_or_else(|| unexpected_answer(value))
    }
}

/// Parses an answer of one part per item asked for: a code and its fields.
pub(super) fn parse_parts<T>(
    parts: &[Value],
    asked: usize,
    read: impl Fn(&[u8], AnswerFields<'_>) -> StoreResult<T>,
) -> StoreResult<Vec<T>> {
    if parts.len() != asked {
        return Err(unexpected_answer(parts));
    }
    let one = |part: &Value| {
        let Value::Array(words) = part else { return Err(unexpected_answer(part)) };
        let mut rest = AnswerFields(words);
        let code = rest.bytes()?;
        read(code, rest)
    };
    parts.iter().map(one).collect()
}

/// Parses the answer to one attempt of a call.
pub(super) fn parse_attempt(answer: &Value, attempt: &LockAttempt) -> StoreResult<SeatResult<StoredHold>> {
    let Value::Array(parts) = answer else { return Err(unexpected_answer(answer)) };
    let mut rest = AnswerFields(parts);
    let code = rest.bytes()?;
    if code != b"HELD" {
        return rest.refusal(code).map(Err);
    }
    Ok(Ok(StoredHold {
        hold: attempt.asked.id,
        expires_at: Timestamp(rest.number()?),
        latest: Timestamp(rest.number()?),
        fence: rest.number()?,
        paying: false,
        selection: attempt.selection.clone(),
    }))
}

fn bytes(value: &Value) -> StoreResult<&[u8]> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.as_bytes()),
        other => Err(unexpected_answer(other)),
    }
}

/// Parses a number: Redis returns Lua's numbers as integers, and the scripts return long ones as text.
fn number(value: &Value) -> StoreResult<i64> {
    match value {
        Value::Int(number) => Ok(*number),
        other => {
            let text = std::str::from_utf8(bytes(other)?).ok();
            text.and_then(|text| text.parse().ok()).ok_or_else(|| unexpected_answer(other))
        }
    }
}

pub(super) fn unexpected_answer<T: std::fmt::Debug + ?Sized>(answer: &T) -> StoreError {
    StoreError::UnexpectedAnswer(format!("{answer:?}"))
}

pub(super) fn write_asked(command: &mut Cmd, asked: RequestIdentity) {
    write_id(command, asked.id);
    command.arg(format!("{:016x}", asked.digest));
}

pub(super) fn write_id(command: &mut Cmd, id: Uuid) {
    command.arg(id.simple().encode_lower(&mut Uuid::encode_buffer()) as &str);
}

pub(super) fn write_seats(command: &mut Cmd, seats: &[SeatIndex]) {
    for seat in seats {
        command.arg(*seat);
    }
}

pub(super) fn write_places(command: &mut Cmd, places: &[Places]) {
    for place in places {
        command.arg(place.area).arg(place.count);
    }
}

pub(super) fn write_party(command: &mut Cmd, sale: &FencedSelection) {
    write_id(command, sale.hold);
    command.arg(&sale.owner).arg(sale.fence);
}

pub(super) fn write_sale(command: &mut Cmd, sale: &FencedSelection) {
    write_party(command, sale);
    command.arg(sale.selection.seats.len());
    write_seats(command, &sale.selection.seats);
    write_places(command, &sale.selection.places);
}

/// Formats places as the scripts do: "3=2,7=1".
pub(super) fn places_text(places: &[Places]) -> String {
    places.iter().map(|place| format!("{}={}", place.area, place.count)).collect::<Vec<_>>().join(",")
}
