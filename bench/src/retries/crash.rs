//! One effect per key: two servers are asked to do the same at once, and one of them is killed meanwhile.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use uuid::Uuid;

use super::purchases::{Request, id_of};
use crate::checker::{self, Findings};
use crate::http;
use crate::report::{Report, Row};
use crate::world::{Show, World};

/// People who buy at the same time.
const SIDE_BY_SIDE: u32 = 16;
/// Whoever is put off, or loses the connection, asks again after this…
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// …for so long: more than a server needs to learn that another is dead.
const PATIENCE: Duration = Duration::from_secs(40);
/// Effects the dead server had begun are somebody else's after a minute.
const QUIET_WITHIN: Duration = Duration::from_secs(150);
/// How often it is looked whether they are done.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The two servers: whoever finds the second dead goes to the first.
struct Pair {
    lives: SocketAddr,
    dies: SocketAddr,
    dead: AtomicBool,
}

/// So many people buy a seat each; when half of them have, a server is killed.
pub fn one_round(world: &mut World, simulator: SocketAddr, buyers: u32, round: u32, report: &mut Report) -> Result<()> {
    let (survivor, mut victim) =
        (world.server("rowlock-lives", Some(simulator))?, world.server("rowlock-dies", Some(simulator))?);
    let show = world.shows(buyers.next_multiple_of(100), 1)?[0];
    let pair = Pair { lives: survivor.address, dies: victim.address, dead: AtomicBool::new(false) };
    let visitors: Vec<String> = (0..buyers).map(|_| world.random.hex()).collect();
    let (next, done) = (AtomicU32::new(0), AtomicU32::new(0));
    let (bought, found) = (Mutex::new(Vec::new()), Mutex::new(Findings::default()));
    let work = || {
        loop {
            let seat = next.fetch_add(1, Ordering::Relaxed);
            let Some(visitor) = visitors.get(seat as usize) else { return };
            match buy(&pair, &show, seat, visitor, &found) {
                Ok(booking) => lock(&bought).push((seat, booking)),
                Err(error) => lock(&found).add(|| format!("the buyer of seat {seat} was left alone: {error:#}")),
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|threads| {
        (0..SIDE_BY_SIDE).for_each(|_| drop(threads.spawn(work)));
        while done.load(Ordering::Relaxed) < buyers / 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        pair.dead.store(true, Ordering::Relaxed);
        victim.process.kill()
    })?;
    let (bought, mut found) = (take(bought), take(found));
    check(world, &show, &bought, &mut found)?;
    let effects = count(world, &show)? as f64 / bought.len().max(1) as f64;
    report.findings(&found);
    report.round(
        Row::of("retries", "one_killed")
            .with("round", round)
            .with("keys", 2 * buyers)
            .figure("effects_per_key", effects)
            .with("violations", found.count()),
    );
    world.store.forget(&show)
}

/// Holds a seat, then books and pays at both servers at once. The booking.
fn buy(pair: &Pair, show: &Show, seat: u32, visitor: &str, found: &Mutex<Findings>) -> Result<Uuid> {
    let hold = until_answered(pair, pair.lives, &Request::hold(show.id, &[seat], visitor))?;
    let booking = twice(pair, &Request::book(show.id, id_of(&hold)?, visitor), found)?;
    let booking = id_of(&booking)?;
    twice(pair, &Request::pay(booking, visitor), found)?;
    Ok(booking)
}

/// The same at both at once: the same answer from both.
fn twice(pair: &Pair, request: &Request, found: &Mutex<Findings>) -> Result<Vec<u8>> {
    let (one, other) = std::thread::scope(|threads| {
        let other = threads.spawn(|| until_answered(pair, pair.dies, request));
        (until_answered(pair, pair.lives, request), other.join())
    });
    let (one, other) = (one?, other.ok().context("a thread died")??);
    if one != other {
        let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
        lock(found).add(|| format!("one key has two answers: {} and {}", text(&one), text(&other)));
    }
    Ok(one)
}

/// Asks with the same key until there is an answer, at the other server once this one is dead.
fn until_answered(pair: &Pair, server: SocketAddr, request: &Request) -> Result<Vec<u8>> {
    let (began, bytes) = (Instant::now(), request.bytes(""));
    loop {
        let is_gone = server == pair.dies && pair.dead.load(Ordering::Relaxed);
        let said = http::ask(if is_gone { pair.lives } else { server }, &bytes);
        let last = match said {
            Ok((200 | 201, body)) => return Ok(body),
            Ok((status @ (409 | 429 | 503), body)) => format!("{status} {}", String::from_utf8_lossy(&body)),
            Ok((status, body)) => bail!("{status} {}", String::from_utf8_lossy(&body)),
            // Cut off, or nobody there: it may have been done.
            Err(error) => format!("{error:#}"),
        };
        if began.elapsed() > PATIENCE {
            bail!("no answer after {} s; the last was {last}", PATIENCE.as_secs());
        }
        std::thread::sleep(AGAIN_AFTER);
    }
}

/// What everyone was told, against Postgres and the map, once all effects are done.
fn check(world: &mut World, show: &Show, bought: &[(u32, Uuid)], found: &mut Findings) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < QUIET_WITHIN {
        let confirmed = world.ledger(show)?.confirmed;
        if world.open_effects()? == 0 && confirmed >= bought.len() as u64 {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let stored = world.store.stored(show)?;
    found.join(checker::sale(bought, &world.ledger(show)?, &stored.map));
    Ok(())
}

/// Bookings of a show: as many as there were keys that make one.
fn count(world: &World, show: &Show) -> Result<i64> {
    let counted = sqlx::query_scalar("SELECT count(*) FROM bookings WHERE show_id = $1").bind(show.id);
    Ok(world.runtime.block_on(counted.fetch_one(&world.pg))?)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn take<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}
