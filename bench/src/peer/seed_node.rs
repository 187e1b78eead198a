//! The peer `seed-node`: a seat booking server in Node.js (Fastify, ioredis, pg, ws) with a lock key per seat in Redis and
//! a unique seat in Postgres.
//!
//! Its shows have rows of a hundred seats, named `R1-1` and so on; here they are numbered. A show's id is a UUID as text.

use std::io::Write;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::ComparedServer;
use crate::checker::{AVAILABLE, BOOKED, Findings, LOCKED, Ledger, LockState};
use crate::frame::{MapMessage, Protocol};
use crate::http::{self, HttpAnswer, text_after};
use crate::purchase::{Api, PurchaseStep, StepOutcome};
use crate::random::Random;
use crate::world::Show;

const NAME: &str = "seed-node";
const SEATS_PER_ROW: u32 = 100;
/// A map may be as old as the peer's cache allows, one second, and a little more.
const MAP_CACHE: Duration = Duration::from_millis(1_100);
/// Value of a sold seat's key; that of a held seat is the id of the hold.
const SOLD: &str = "booked";

pub struct SeedNode {
    address: SocketAddr,
    processes: [u32; 3],
    redis: redis::Connection,
    pg: PgConnection,
    runtime: Runtime,
    random: Random,
}

impl SeedNode {
    /// Connects to a running peer, which its file `stack.json` describes, and to its stores.
    pub fn open(description: &Path, postgres_port: u16) -> Result<Self> {
        let text = std::fs::read(description).with_context(|| format!("no peer runs: {}", description.display()))?;
        let stack: Value = serde_json::from_slice(&text).with_context(|| description.display().to_string())?;
        ensure!(stack["name"] == NAME, "the benchmarks do not know the API of the peer {}", stack["name"]);
        eprintln!("  peer {NAME}: {} {}", stack["versions"], stack["settings"]);
        let missing = |what: &str| format!("{} has no {what}", description.display());
        let address: Option<SocketAddr> =
            stack["base"].as_str().and_then(|base| base.strip_prefix("http://")?.parse().ok());
        let mut processes = [0; 3];
        for (process, name) in processes.iter_mut().zip(["node", "redis", "postgres"]) {
            let pid = stack["pids"][name].as_u64().and_then(|pid| u32::try_from(pid).ok());
            *process = pid.with_context(|| missing(name))?;
        }
        let redis_port = stack["redisPort"].as_u64().with_context(|| missing("redisPort"))?;
        let redis = redis::Client::open(format!("redis://127.0.0.1:{redis_port}/"))?.get_connection()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let database = format!("postgres://postgres@127.0.0.1:{postgres_port}/seed");
        let pg = runtime.block_on(PgConnection::connect(&database)).context("the peer's Postgres does not answer")?;
        let address = address.with_context(|| missing("base"))?;
        Ok(Self { address, processes, redis, pg, runtime, random: Random::fresh() })
    }

    /// Reads rows of a seat's name and a booking; the query's parameter is the show.
    fn seats_and_bookings(&mut self, show: &Show, query: &'static str) -> Result<Vec<(u32, Uuid)>> {
        let rows = sqlx::query_as::<_, (String, Uuid)>(query).bind(show.id.to_string()).fetch_all(&mut self.pg);
        let numbered = |(name, booking): (String, Uuid)| Some((seat_number(&name)?, booking));
        let numbers: Option<Vec<_>> = self.runtime.block_on(rows)?.into_iter().map(numbered).collect();
        numbers.context("a seat has an unknown name")
    }

    fn count(&mut self, show: &Show, query: &'static str) -> Result<u64> {
        let counted = sqlx::query_scalar::<_, i64>(query).bind(show.id.to_string()).fetch_one(&mut self.pg);
        Ok(self.runtime.block_on(counted)?.unsigned_abs())
    }
}

impl ComparedServer for SeedNode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn api(&self) -> &'static dyn Api {
        &SeedNodeApi
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    fn processes(&self) -> [u32; 3] {
        self.processes
    }

    fn map_path(&self, show: &Show) -> String {
        format!("/shows/{}/seats", show.id)
    }

    fn live_path(&self, show: &Show) -> String {
        format!("/shows/{}/live", show.id)
    }

    fn live_protocol(&self) -> Protocol {
        Protocol::SeedNode
    }

    fn create_shows(&mut self, seats: u32, count: usize) -> Result<Vec<Show>> {
        ensure!(seats.is_multiple_of(SEATS_PER_ROW), "{seats} seats make no rows of {SEATS_PER_ROW}");
        let mut shows = Vec::new();
        for _ in 0..count {
            let show = Show { id: self.random.id(), seats };
            let body = json!({ "id": show.id, "rows": seats / SEATS_PER_ROW, "perRow": SEATS_PER_ROW }).to_string();
            let mut request = Vec::new();
            post("/shows", &body, &mut request);
            let (status, answer) = http::ask(self.address, &request)?;
            ensure!(status == 201, "a new show is answered with {status}: {}", String::from_utf8_lossy(&answer));
            shows.push(show);
        }
        Ok(shows)
    }

    fn settle(&mut self) -> Result<Findings> {
        std::thread::sleep(MAP_CACHE);
        Ok(Findings::default())
    }

    fn stored(&mut self, show: &Show) -> Result<LockState> {
        let mut read = redis::cmd("MGET");
        (0..show.seats).for_each(|seat| {
            read.arg(format!("seatlock:{}:{}", show.id, seat_name(seat)));
        });
        let values: Vec<Option<String>> = read.query(&mut self.redis)?;
        let ids: Vec<&String> = values.iter().flatten().filter(|value| *value != SOLD).collect();
        let mut texts: Vec<Option<String>> = Vec::new();
        if !ids.is_empty() {
            let mut read = redis::cmd("MGET");
            ids.iter().for_each(|id| {
                read.arg(format!("lock:{id}"));
            });
            texts = read.query(&mut self.redis)?;
        }
        let map = values.iter().map(|value| match value.as_deref() {
            None => AVAILABLE,
            Some(SOLD) => BOOKED,
            Some(_) => LOCKED,
        });
        Ok(LockState {
            map: map.collect(),
            holds: texts.iter().flatten().map(|text| hold(text)).collect::<Result<_>>()?,
        })
    }

    fn ledger(&mut self, show: &Show) -> Result<Ledger> {
        Ok(Ledger {
            sold: self.seats_and_bookings(show, "SELECT seat_id, booking_id FROM booked_seats WHERE show_id = $1")?,
            open_claims: self.count(
                show,
                "SELECT count(*) FROM bookings WHERE show_id = $1 AND status IN ('SEATS_LOCKED', 'PAYMENT_PENDING')",
            )?,
            // It has no tickets: the seats of a confirmed booking stand for them.
            tickets: self.seats_and_bookings(
                show,
                "SELECT unnest(seats), id FROM bookings WHERE show_id = $1 AND status = 'CONFIRMED'",
            )?,
            paid: self.count(show, "SELECT count(payment_ref) FROM bookings WHERE show_id = $1")?,
            confirmed: self.count(show, "SELECT count(*) FROM bookings WHERE show_id = $1 AND status = 'CONFIRMED'")?,
        })
    }

    fn seat_states(&self, show: &Show) -> Result<Vec<u8>> {
        let (_, body) = http::get(self.address, &self.map_path(show))?;
        let map: Value = serde_json::from_slice(&body).context("the peer's map")?;
        let seats = map["seats"].as_array().context("a map without seats")?;
        let states = seats.iter().map(|seat| state(seat["state"].as_str()?));
        states.collect::<Option<_>>().context("a seat has an unknown state")
    }

    fn version(&mut self, _: &Show, changes: u64) -> Result<u64> {
        // A reader counts its messages.
        Ok(changes)
    }

    fn clear(&mut self, _: &[Show]) -> Result<()> {
        // As its `stack.sh flush`: the next phase must not pay for snapshots of this one.
        Ok(redis::cmd("FLUSHALL").query(&mut self.redis)?)
    }
}

struct SeedNodeApi;

impl Api for SeedNodeApi {
    fn write(&self, step: PurchaseStep, show: Uuid, seats: Range<u32>, visitor: &str, out: &mut Vec<u8>) {
        match step {
            PurchaseStep::Hold => {
                let names: Vec<String> = seats.map(|seat| format!(r#""{}""#, seat_name(seat))).collect();
                let seats = names.join(",");
                let body = format!(r#"{{"seats":[{seats}],"user":"{visitor}","idempotencyKey":"hold"}}"#);
                post(&format!("/shows/{show}/holds"), &body, out);
            }
            // It has no request that books and pays.
            PurchaseStep::Book(hold) | PurchaseStep::Buy(hold, _) => {
                let body = format!(r#"{{"holdId":"{hold}","idempotencyKey":"book-{visitor}"}}"#);
                post("/bookings", &body, out);
            }
            PurchaseStep::Pay(booking) | PurchaseStep::Poll(booking) => {
                let body = format!(r#"{{"idempotencyKey":"pay-{visitor}"}}"#);
                post(&format!("/bookings/{booking}/confirm"), &body, out);
            }
        }
    }

    fn outcome<'a>(&self, step: PurchaseStep, answer: &HttpAnswer<'a>) -> StepOutcome<'a> {
        let id = |name: &str| Uuid::parse_str(text_after(answer.body, name)?).ok();
        let is_confirmed = text_after(answer.body, "status") == Some("CONFIRMED");
        let expected = match (step, answer.status) {
            (PurchaseStep::Hold, 201) => id("holdId").map(|hold| StepOutcome::Held(hold, None)),
            (PurchaseStep::Book(_) | PurchaseStep::Buy(..), 201) => id("bookingId").map(StepOutcome::Booked),
            (PurchaseStep::Pay(_) | PurchaseStep::Poll(_), 200) if is_confirmed => {
                id("bookingId").map(StepOutcome::Sold)
            }
            _ => None,
        };
        expected.unwrap_or_else(|| StepOutcome::Unexpected(text_after(answer.body, "error").unwrap_or("no error")))
    }

    fn refused_seat(&self, answer: &HttpAnswer<'_>) -> Option<u32> {
        seat_number(text_after(answer.body, "seat").filter(|_| answer.status == 409)?)
    }
}

/// Appends a request with a JSON body.
fn post(path: &str, body: &str, out: &mut Vec<u8>) {
    // Writing to a buffer cannot fail.
    let _ = write!(
        out,
        "POST {path} HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
}

fn seat_name(seat: u32) -> String {
    format!("R{}-{}", seat / SEATS_PER_ROW + 1, seat % SEATS_PER_ROW + 1)
}

fn seat_number(name: &str) -> Option<u32> {
    let (row, place) = name.strip_prefix('R')?.split_once('-')?;
    let (row, place): (u32, u32) = (row.parse().ok()?, place.parse().ok()?);
    let place = place.checked_sub(1).filter(|place| *place < SEATS_PER_ROW)?;
    row.checked_sub(1)?.checked_mul(SEATS_PER_ROW)?.checked_add(place)
}

fn state(name: &str) -> Option<u8> {
    match name {
        "available" => Some(AVAILABLE),
        "held" => Some(LOCKED),
        "booked" => Some(BOOKED),
        _ => None,
    }
}

/// Parses the record of a hold: its id and seats.
fn hold(text: &str) -> Result<(Uuid, Vec<u32>)> {
    let record: Value = serde_json::from_str(text)?;
    let id = record["holdId"].as_str().and_then(|id| Uuid::parse_str(id).ok());
    let seats = numbers(&record["seats"]);
    id.zip(seats).with_context(|| format!("a hold reads {text:?}"))
}

fn numbers(seats: &Value) -> Option<Vec<u32>> {
    seats.as_array()?.iter().map(|seat| seat_number(seat.as_str()?)).collect()
}

/// Parses a message of the live map; `None` when it is malformed.
pub fn read_event(bytes: &[u8]) -> Option<MapMessage> {
    let event: Value = serde_json::from_slice(bytes).ok()?;
    let state = state(event["state"].as_str()?)?;
    Some(MapMessage::Event { changes: numbers(&event["seats"])?.into_iter().map(|seat| (seat, state)).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_named_by_row_and_place() {
        for (seat, name) in [(0, "R1-1"), (99, "R1-100"), (100, "R2-1"), (49_999, "R500-100")] {
            assert_eq!(seat_name(seat), name);
            assert_eq!(seat_number(name), Some(seat));
        }
        for wrong in ["R0-1", "R1-0", "R1-101", "1-1", "R1"] {
            assert_eq!(seat_number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_purchase_takes_three_requests_and_each_answer_leads_to_the_next() {
        let (show, id) = (Uuid::from_u128(1), Uuid::from_u128(9));
        let answers = [
            (
                PurchaseStep::Hold,
                "/shows/00000000-0000-0000-0000-000000000001/holds",
                201,
                format!(r#"{{"holdId":"{id}"}}"#),
            ),
            (PurchaseStep::Book(id), "/bookings", 201, format!(r#"{{"bookingId":"{id}","status":"SEATS_LOCKED"}}"#)),
            (PurchaseStep::Pay(id), "/confirm", 200, format!(r#"{{"bookingId":"{id}","status":"CONFIRMED"}}"#)),
        ];
        for (step, path, status, body) in answers {
            let mut request = Vec::new();
            SeedNodeApi.write(step, show, 99..101, "ab", &mut request);
            let text = String::from_utf8(request).expect("text");
            assert!(text.contains(&format!("{path} HTTP/1.1\r\n")), "{text}");
            let (_, sent) = text.split_once("\r\n\r\n").expect("a body");
            let sent: Value = serde_json::from_str(sent).expect("JSON");
            match (step, SeedNodeApi.outcome(step, &HttpAnswer { status, body: body.as_bytes() })) {
                (PurchaseStep::Hold, StepOutcome::Held(hold, None)) => {
                    assert_eq!((hold, &sent["seats"]), (id, &json!(["R1-100", "R2-1"])));
                }
                (PurchaseStep::Book(_), StepOutcome::Booked(booking)) => {
                    assert_eq!((booking, &sent["holdId"]), (id, &json!(id)))
                }
                (PurchaseStep::Pay(_), StepOutcome::Sold(booking)) => assert_eq!(booking, id),
                _ => panic!("{} leads nowhere", step.name()),
            }
        }
    }

    #[test]
    fn a_refusal_names_its_seat_and_other_answers_are_unexpected() {
        let taken = HttpAnswer { status: 409, body: br#"{"error":"SEAT_TAKEN","seat":"R2-1"}"# };
        assert_eq!(SeedNodeApi.refused_seat(&taken), Some(100));
        assert!(matches!(SeedNodeApi.outcome(PurchaseStep::Hold, &taken), StepOutcome::Unexpected("SEAT_TAKEN")));
        let unknown = HttpAnswer { status: 400, body: br#"{"error":"UNKNOWN_SEAT","seat":"R2-1"}"# };
        assert_eq!(SeedNodeApi.refused_seat(&unknown), None);
    }

    #[test]
    fn events_and_records_are_parsed() {
        let event = br#"{"showId":"x","seats":["R1-1","R2-1"],"state":"held","at":1}"#;
        assert_eq!(read_event(event), Some(MapMessage::Event { changes: vec![(0, LOCKED), (100, LOCKED)] }));
        assert_eq!(read_event(br#"{"seats":["R1-1"],"state":"gone"}"#), None);
        let id = Uuid::from_u128(9);
        let record = format!(r#"{{"holdId":"{id}","showId":"x","seats":["R1-2"],"user":"u","expiresAt":1}}"#);
        assert_eq!(hold(&record).expect("a record"), (id, vec![1]));
        assert!(hold("{}").is_err());
    }
}
