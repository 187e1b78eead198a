//! One effect per idempotency key: two servers get the same request at once, and one of them is killed.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use uuid::Uuid;

use crate::checker::{self, Findings};
use crate::http::{self, id_of};
use crate::purchase::PurchaseStep;
use crate::report::{Report, ReportRow};
use crate::world::{Show, World, lock, wait_until};

const WORKERS: u32 = 16;
/// Delay before a retry after a retryable answer or a lost connection.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// Timeout of the retries: longer than a server needs to detect that another one is dead.
const RETRY_TIMEOUT: Duration = Duration::from_secs(40);
/// Timeout for pending effects: another server takes over those of the dead one after a minute.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(150);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The two servers. Once the victim is dead its clients use the survivor.
struct Servers {
    survivor: SocketAddr,
    victim: SocketAddr,
    is_victim_dead: AtomicBool,
}

/// Lets `buyers` people buy a seat each and kills a server when half of them are done.
pub fn one_round(world: &mut World, simulator: SocketAddr, buyers: u32, round: u32, report: &mut Report) -> Result<()> {
    let (surviving, mut killed) =
        (world.server("rowlock-lives", Some(simulator))?, world.server("rowlock-dies", Some(simulator))?);
    let show = world.shows(buyers.next_multiple_of(100), 1)?[0];
    let servers =
        Servers { survivor: surviving.address, victim: killed.address, is_victim_dead: AtomicBool::new(false) };
    let visitors: Vec<String> = (0..buyers).map(|_| world.random.hex()).collect();
    let (next, done) = (AtomicU32::new(0), AtomicU32::new(0));
    let (bought, found) = (Mutex::new(Vec::new()), Mutex::new(Findings::default()));
    let buy_next = || {
        loop {
            let seat = next.fetch_add(1, Ordering::Relaxed);
            let Some(visitor) = visitors.get(seat as usize) else { return };
            match buy(&servers, &show, seat, visitor, &found) {
                Ok(booking) => lock(&bought).push((seat, booking)),
                Err(error) => lock(&found).add(|| format!("the buyer of seat {seat} got no seat: {error:#}")),
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|threads| {
        (0..WORKERS).for_each(|_| drop(threads.spawn(buy_next)));
        while done.load(Ordering::Relaxed) < buyers / 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        servers.is_victim_dead.store(true, Ordering::Relaxed);
        killed.process.kill()
    })?;
    let (bought, mut found) = (std::mem::take(&mut *lock(&bought)), std::mem::take(&mut *lock(&found)));
    check(world, &show, &bought, &mut found)?;
    // One booking per key is expected.
    let bookings = world.count_of_show(&show, "SELECT count(*) FROM bookings WHERE show_id = $1")?;
    let effects = bookings as f64 / bought.len().max(1) as f64;
    report.checked_round(
        ReportRow::of("retries", "one_killed")
            .with("round", round)
            .with("keys", 2 * buyers)
            .figure("effects_per_key", effects),
        &found,
    );
    world.store.delete_show(&show)
}

/// Holds a seat, then books and pays at both servers at once. Returns the booking.
fn buy(servers: &Servers, show: &Show, seat: u32, visitor: &str, found: &Mutex<Findings>) -> Result<Uuid> {
    let request = |step: PurchaseStep| step.request(show.id, seat..seat + 1).bytes(visitor, "");
    let id_in = |body: &[u8]| id_of(body).with_context(|| format!("no id in {}", String::from_utf8_lossy(body)));
    let hold = id_in(&send_until_answered(servers, servers.survivor, &request(PurchaseStep::Hold))?)?;
    let booking = id_in(&send_to_both(servers, &request(PurchaseStep::Book(hold)), found)?)?;
    send_to_both(servers, &request(PurchaseStep::Pay(booking)), found)?;
    Ok(booking)
}

/// Sends a request to both servers at once. Different answers are a violation.
fn send_to_both(servers: &Servers, request: &[u8], found: &Mutex<Findings>) -> Result<Vec<u8>> {
    let (one, other) = std::thread::scope(|threads| {
        let other = threads.spawn(|| send_until_answered(servers, servers.victim, request));
        (send_until_answered(servers, servers.survivor, request), other.join())
    });
    let (one, other) = (one?, other.ok().context("a thread died")??);
    if one != other {
        let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
        lock(found).add(|| format!("one key has two answers: {} and {}", text(&one), text(&other)));
    }
    Ok(one)
}

/// Retries a request with the same key until it is answered; at the survivor once the victim is dead.
fn send_until_answered(servers: &Servers, server: SocketAddr, request: &[u8]) -> Result<Vec<u8>> {
    let began = Instant::now();
    loop {
        let is_dead = server == servers.victim && servers.is_victim_dead.load(Ordering::Relaxed);
        let answer = http::ask(if is_dead { servers.survivor } else { server }, request);
        let last = match answer {
            Ok((200 | 201, body)) => return Ok(body),
            Ok((status @ (409 | 429 | 503), body)) => format!("{status} {}", String::from_utf8_lossy(&body)),
            Ok((status, body)) => bail!("{status} {}", String::from_utf8_lossy(&body)),
            // The connection was lost or refused: the request may have been processed.
            Err(error) => format!("{error:#}"),
        };
        if began.elapsed() > RETRY_TIMEOUT {
            bail!("no answer after {} s; the last was {last}", RETRY_TIMEOUT.as_secs());
        }
        std::thread::sleep(RETRY_DELAY);
    }
}

/// Waits until all effects are done, then compares the purchases with Postgres and the map.
fn check(world: &mut World, show: &Show, bought: &[(u32, Uuid)], found: &mut Findings) -> Result<()> {
    wait_until(SETTLE_TIMEOUT, POLL_INTERVAL, || {
        let confirmed = world.ledger(show)?.confirmed;
        Ok(world.pending_effects()? == 0 && confirmed >= bought.len() as u64)
    })?;
    let stored = world.store.stored(show)?;
    found.join(checker::sale(bought, &world.ledger(show)?, &stored.map));
    Ok(())
}
