//! Sales of four seats: the buyers of `sale`, at both servers.

use std::time::Duration;

use anyhow::Result;

use super::attempts::{SHOW_SEATS, TIMEOUT};
use super::{ComparedServer, Meter, RATE, Size, Turn, load_shows};
use crate::checker::{self, Findings};
use crate::http::{self, LoadLimits};
use crate::report::ReportRow;
use crate::sale::Buyers;
use crate::world::Show;

/// The phases: hold, booking and confirmation each in a request, and as the page of a show does it, which books and pays in
/// one request. The peer needs three requests in both.
pub const IN_THREE_REQUESTS: &str = "three_requests";
pub const AS_THE_PAGE: &str = "as_the_page";

pub fn turn(server: &mut dyn ComparedServer, size: &Size) -> Result<Turn> {
    let mut turn = Turn::default();
    for (phase, in_one_request) in [(IN_THREE_REQUESTS, false), (AS_THE_PAGE, true)] {
        let shows = server.create_shows(SHOW_SEATS, size.shows)?;
        load_shows(server, &shows)?;
        let mut buyers = Buyers::new(server.api(), &shows, Duration::from_secs_f64(size.seconds), in_one_request);
        let meter = Meter::start(server)?;
        let limits = LoadLimits { connections: size.connections, timeout: TIMEOUT };
        http::run(&[server.address()], &limits, &mut buyers)?;
        turn.found.join(server.settle()?);
        let sales = buyers.sales() as f64;
        let row = ReportRow::of("sale", server.name())
            .with("phase", phase)
            .with("sales", buyers.sales())
            .figure(RATE, sales / (buyers.last_sale as f64 / 1e9).max(1e-3))
            .latencies(&buyers.purchases)
            .with("errors", buyers.errors.count());
        turn.rows.push(meter.add_to(row, sales)?);
        buyers.errors.lines().iter().for_each(|line| eprintln!("        {}: {line}", server.name()));
        turn.found.join(check(server, &shows, &buyers)?);
        server.clear(&shows)?;
    }
    Ok(turn)
}

/// Compares the confirmed purchases with Postgres, Redis and the server's map.
fn check(server: &mut dyn ComparedServer, shows: &[Show], buyers: &Buyers<'_>) -> Result<Findings> {
    let mut found = Findings::default();
    for (place, show) in shows.iter().enumerate() {
        let stored = server.stored(show)?;
        found.join(checker::sale(&buyers.bought(place), &server.ledger(show)?, &stored.map));
        found.join(checker::view(server.name(), &server.seat_states(show)?, &stored.map));
        if !stored.holds.is_empty() {
            found.add(|| format!("{} holds are left after all purchases", stored.holds.len()));
        }
    }
    if buyers.unfinished() > 0 {
        found.add(|| format!("{} buyers have no final answer", buyers.unfinished()));
    }
    Ok(found)
}
