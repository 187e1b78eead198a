//! A source of seat changes at a rate. It calls the server's scripts with one seat a call, so each change
//! increments the version and is announced.
//!
//! Half of the seats are held at any time. A seat changes again only after all others did, so that a
//! merged delta hides no change.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result};
use redis::Value;

use super::fleet::SharedState;
use crate::arrivals::{Spacing, schedule};
use crate::random::Random;
use crate::world::{LockAttempt, Script, Show, Store};

/// Sleep while no change is due; changes that fall due meanwhile are sent together.
const SLEEP: Duration = Duration::from_millis(1);
/// Distance in seats between consecutive changes.
const STRIDE: u64 = 7_919;
/// First element of a script's successful answer.
const OK: &[u8] = b"OK";
/// Index of the first attempt in an answer, after code, clock, epoch, version and expired holds.
const FIRST_ATTEMPT: usize = 5;

pub struct ChangeSource {
    lock: Script,
    release: Script,
    show: Show,
    /// Hold and owner of the held seats, in order.
    held: VecDeque<(String, String)>,
    next: u64,
}

impl ChangeSource {
    pub fn new(store: &mut Store, show: Show) -> Result<Self> {
        let (lock, release) = (store.script("lock")?, store.script("release")?);
        Ok(Self { lock, release, show, held: VecDeque::new(), next: 0 })
    }

    /// Changes seats at `rate` a second for `seconds`, by the clock of the shared state. Returns the number of changes.
    pub fn run(mut self, store: &mut Store, state: &SharedState, rate: f64, seconds: f64) -> Result<u64> {
        let mut random = Random::fresh();
        let instants = schedule(Spacing::Poisson, rate, seconds, &mut random);
        let from = state.now();
        let mut done = 0;
        while done < instants.len() {
            let now = state.now() - from;
            let due = instants[done..].iter().take_while(|instant| **instant <= now).count();
            if due == 0 {
                std::thread::sleep(SLEEP);
                continue;
            }
            let mut packed = Vec::new();
            for instant in &instants[done..done + due] {
                let (seat, call) = self.next_call(store, &mut random);
                // 0 means that the seat has not changed.
                state.set_due(seat, (from + instant).max(1));
                packed.extend_from_slice(&call.get_packed_command());
            }
            store.send(&packed, due)?.iter().try_for_each(check)?;
            done += due;
        }
        Ok(instants.len() as u64)
    }

    /// Locks the next seat, or releases the longest held one when half of the seats are held.
    fn next_call(&mut self, store: &Store, random: &mut Random) -> (u32, redis::Cmd) {
        let seats = u64::from(self.show.seats);
        let seat_of = |turn: u64| (turn * STRIDE % seats) as u32;
        if self.held.len() as u64 * 2 >= seats
            && let Some((hold, owner)) = self.held.pop_front()
        {
            let seat = seat_of(self.next - seats / 2);
            let arguments = [hold.as_bytes(), owner.as_bytes()];
            return (seat, store.call(&self.release, &self.show, &arguments));
        }
        let attempt = LockAttempt { seat: seat_of(self.next), hold: random.id(), owner: random.hex() };
        self.next += 1;
        let call = store.lock_call(&self.lock, &self.show, std::slice::from_ref(&attempt));
        self.held.push_back((attempt.hold.to_string(), attempt.owner));
        (attempt.seat, call)
    }
}

fn check(answer: &Value) -> Result<()> {
    let Value::Array(parts) = answer else { anyhow::bail!("a script answered {answer:?}") };
    let code = parts.first().context("a script answered nothing")?;
    anyhow::ensure!(*code == Value::BulkString(OK.to_vec()), "a script answered {answer:?}");
    if let Some(Value::Array(attempt)) = parts.get(FIRST_ATTEMPT) {
        anyhow::ensure!(
            attempt.first() == Some(&Value::BulkString(b"HELD".to_vec())),
            "a lock was answered {attempt:?}"
        );
    }
    Ok(())
}
