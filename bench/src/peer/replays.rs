//! Replays: a purchase is confirmed, then its last request is sent again and again with the same key. Every answer is
//! compared with the first.

use std::time::Duration;

use anyhow::{Result, bail};

use super::{ComparedServer, Meter, RATE, Size, Turn, load_shows};
use crate::http::{self, HttpAnswer};
use crate::purchase::{PurchaseStep, StepOutcome};
use crate::random::Random;
use crate::report::ReportRow;
use crate::retries::{Expected, LoadShape, Replay};
use crate::world::Show;

/// The phase.
pub const REPLAY: &str = "replay";

const CONNECTIONS: usize = 64;
const SEATS: u32 = 100;
/// Seats of the purchase.
const SEATS_EACH: u32 = 4;

pub fn turn(server: &mut dyn ComparedServer, size: &Size) -> Result<Turn> {
    let mut turn = Turn::default();
    let shows = server.create_shows(SEATS, 1)?;
    load_shows(server, &shows)?;
    let confirmed = [buy(server, &shows[0])?];
    turn.found.join(server.settle()?);
    let duration = Some(Duration::from_secs_f64(size.seconds));
    let shape = LoadShape { connections: CONNECTIONS, in_flight: 1, duration };
    let meter = Meter::start(server)?;
    let replay = Replay::run(&[server.address()], &shape, &confirmed)?;
    let row = ReportRow::of("retries", server.name())
        .with("phase", REPLAY)
        .figure(RATE, replay.answers as f64 / replay.took.as_secs_f64())
        .latencies(&replay.latencies);
    turn.rows.push(meter.add_to(row, replay.answers as f64)?);
    turn.found.join(replay.found);
    server.clear(&shows)?;
    Ok(turn)
}

/// Buys the first seats of a show. Returns the confirming request with its answer.
fn buy(server: &dyn ComparedServer, show: &Show) -> Result<Expected> {
    let (api, visitor) = (server.api(), Random::fresh().hex());
    let mut step = PurchaseStep::Hold;
    loop {
        let mut request = Vec::new();
        api.write(step, show.id, 0..SEATS_EACH, &visitor, &mut request);
        let (status, body) = http::ask(server.address(), &request)?;
        let next = match (api.outcome(step, &HttpAnswer { status, body: &body }), step) {
            (StepOutcome::Held(hold, _), _) => Some(PurchaseStep::Book(hold)),
            (StepOutcome::Booked(booking), _) => Some(PurchaseStep::Pay(booking)),
            (StepOutcome::Sold(_), PurchaseStep::Pay(_)) => None,
            _ => bail!("{} is answered with {status}: {}", step.name(), String::from_utf8_lossy(&body)),
        };
        match next {
            Some(next) => step = next,
            None => return Ok(Expected { request, status, body }),
        }
    }
}
