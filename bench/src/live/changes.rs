//! Changes to a show's seats at a rate: the server's own scripts, one seat a call, so that each is a step
//! of the version and an announcement.
//!
//! Half of the seats are held at any time. Seats take turns: one that changed does not change again
//! before all others did, so that every change is to be seen.

use std::collections::VecDeque;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use redis::{ConnectionLike, Value};

use super::fleet::Board;
use crate::arrivals::{Spacing, schedule};
use crate::random::Random;
use crate::world::{Script, Show, World};

/// The shortest sleep; changes due meanwhile go out together.
const NAP: Duration = Duration::from_millis(1);
/// Neighbouring changes are so many seats apart.
const STRIDE: u64 = 7_919;
/// The code a script answers first when it did what it was asked.
const OK: &[u8] = b"OK";

/// The source of changes of one show, whose holds outlive a run.
pub struct Source {
    lock: Script,
    release: Script,
    show: Show,
    held: VecDeque<(String, String)>,
    next: u64,
}

impl Source {
    /// Nothing held yet.
    pub fn new(world: &mut World, show: Show) -> Result<Self> {
        let (lock, release) = (world.store.script("lock")?, world.store.script("release")?);
        Ok(Self { lock, release, show, held: VecDeque::new(), next: 0 })
    }

    /// Starts changing seats at `rate` a second for `seconds`, timed by the board's clock.
    pub fn start(mut self, world: &World, board: std::sync::Arc<Board>, rate: f64, seconds: f64) -> Result<Running> {
        let mut random = Random::fresh();
        let instants = schedule(Spacing::Poisson, rate, seconds, &mut random);
        let store = world.store.another()?;
        let thread = std::thread::spawn(move || {
            let mut store = store;
            let from = board.now();
            let mut done = 0;
            while done < instants.len() {
                let now = board.now() - from;
                let due = instants[done..].iter().take_while(|instant| **instant <= now).count();
                if due == 0 {
                    std::thread::sleep(NAP);
                    continue;
                }
                let mut packed = Vec::new();
                for instant in &instants[done..done + due] {
                    let (seat, call) = self.next_call(&store, &mut random);
                    // An instant of 0 means never.
                    board.note(seat, (from + instant).max(1));
                    packed.extend_from_slice(&call.get_packed_command());
                }
                for answer in store.connection().req_packed_commands(&packed, 0, due)? {
                    check(&answer)?;
                }
                done += due;
            }
            Ok((self, instants.len() as u64))
        });
        Ok(Running { thread })
    }

    /// Locks the next seat, or releases the one that is held longest once half of them are.
    fn next_call(&mut self, store: &crate::world::Store, random: &mut Random) -> (u32, redis::Cmd) {
        let seats = u64::from(self.show.seats);
        let seat_of = |turn: u64| (turn * STRIDE % seats) as u32;
        if self.held.len() as u64 * 2 >= seats
            && let Some((hold, owner)) = self.held.pop_front()
        {
            let seat = seat_of(self.next - seats / 2);
            let arguments = [hold.as_bytes(), owner.as_bytes()];
            return (seat, store.call(&self.release, &self.show, &arguments));
        }
        let (seat, hold, owner) = (seat_of(self.next), random.id().to_string(), random.hex());
        self.next += 1;
        let call = store.lock_call(&self.lock, &self.show, &[(hold.as_str(), owner.as_str(), seat)]);
        self.held.push_back((hold, owner));
        (seat, call)
    }
}

/// Changes under way.
pub struct Running {
    thread: JoinHandle<Result<(Source, u64)>>,
}

impl Running {
    /// Waits until the last has been made; the source, and how many there were.
    pub fn wait(self) -> Result<(Source, u64)> {
        self.thread.join().map_err(|_| anyhow::anyhow!("the thread that makes changes panicked"))?
    }
}

fn check(answer: &Value) -> Result<()> {
    let Value::Array(parts) = answer else { anyhow::bail!("a script answered {answer:?}") };
    let code = parts.first().context("a script answered nothing")?;
    anyhow::ensure!(*code == Value::BulkString(OK.to_vec()), "a script answered {answer:?}");
    if let Some(Value::Array(attempt)) = parts.get(4) {
        anyhow::ensure!(
            attempt.first() == Some(&Value::BulkString(b"HELD".to_vec())),
            "a lock was answered {attempt:?}"
        );
    }
    Ok(())
}
