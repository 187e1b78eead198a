//! Attempts in Redis alone: the CPU time of one attempt on Redis' single thread.
//!
//! Every round compares three methods with the same number of attempts in flight: the server's script
//! with many attempts a call, the same script with one attempt a call, and a key per seat with SET NX PX.
//! The last is a common design. It keeps no map, version or limit per person and publishes no changes;
//! it is the cheap lower bound.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use redis::{Cmd, Value};

use super::LocksOptions;
use crate::RunOptions;
use crate::checker::{self, Findings, Grant};
use crate::report::{Report, ReportRow};
use crate::world::{ANSWER_HEAD, HOLD_MS, LockAttempt, Script, Show, World};

/// The baseline that sends one attempt a call.
pub const ONE_PER_CALL: &str = "one_per_call";
/// The baseline that keeps a key per seat.
pub const KEY_PER_SEAT: &str = "key_per_seat";
/// Distance in seats between consecutive attempts.
const STRIDE: u32 = 7_919;

/// A method to send attempts.
#[derive(Clone, Copy)]
enum Method<'a> {
    /// The script, with this many attempts a call.
    Script(&'a Script, usize),
    /// SET NX PX on a key per seat.
    KeyPerSeat,
}

pub fn run(world: &mut World, run: &RunOptions, options: &LocksOptions, report: &mut Report) -> Result<()> {
    eprintln!("  attempts in Redis alone");
    let show = world.loaded_show(options.seats)?;
    world.store.save_show(&show)?;
    let lock = world.store.script("lock")?;
    let many = options.attempts_per_call;
    let methods = [
        ("candidate", Method::Script(&lock, many)),
        (ONE_PER_CALL, Method::Script(&lock, 1)),
        (KEY_PER_SEAT, Method::KeyPerSeat),
    ];
    for round in 1..=run.rounds {
        for (variant, method) in methods {
            let mut found = Findings::default();
            let mut granted = Vec::new();
            for phase in ["granted", "refused"] {
                let attempts = attempts(world, &show);
                let (micros, grants) = measure(world, &show, method, &attempts, many, &mut found)?;
                let expected = if phase == "granted" { attempts.len() } else { 0 };
                if grants.len() != expected {
                    found.add(|| format!("{variant}: {} attempts were granted, not {expected}", grants.len()));
                }
                granted.extend(grants);
                let row =
                    ReportRow::of("locks", variant).with("phase", phase).with("layer", "redis").with("round", round);
                let row = row.with("attempts_per_call", if matches!(method, Method::Script(_, 1)) { 1 } else { many });
                report.round(row.with("attempts", attempts.len()).figure("redis_cpu_us_per_op", micros));
            }
            if matches!(method, Method::Script(..)) {
                found.join(checker::holds(&granted, &BTreeSet::new(), &world.store.stored(&show)?));
            }
            report.findings(&found);
            world.store.restore_show(&show)?;
            delete_seat_keys(world, &show)?;
        }
    }
    Ok(())
}

/// Creates one attempt at every seat, each by a new visitor.
fn attempts(world: &mut World, show: &Show) -> Vec<LockAttempt> {
    let seat = |number: u32| (u64::from(number) * u64::from(STRIDE) % u64::from(show.seats)) as u32;
    let mut attempt = |number| LockAttempt { hold: world.random.id(), owner: world.random.hex(), seat: seat(number) };
    (0..show.seats).map(&mut attempt).collect()
}

/// Sends the attempts. Returns the Redis CPU time per attempt in microseconds, and the grants.
fn measure(
    world: &mut World,
    show: &Show,
    method: Method<'_>,
    attempts: &[LockAttempt],
    in_flight: usize,
    found: &mut Findings,
) -> Result<(f64, Vec<Grant>)> {
    // All calls are encoded before the clock starts, so that Redis never waits for the client.
    let batches: Vec<(Vec<u8>, usize)> = attempts
        .chunks(in_flight)
        .map(|chunk| {
            let calls = calls(world, show, method, chunk);
            let packed = calls.iter().flat_map(Cmd::get_packed_command).collect();
            (packed, calls.len())
        })
        .collect();
    let mut answers = Vec::with_capacity(attempts.len());
    let before = world.store.cpu()?;
    for (packed, count) in &batches {
        answers.extend(world.store.send(packed, *count)?);
    }
    let micros = world.store.cpu()?.micros_since(&before);
    let outcomes: Vec<bool> = answers.iter().map(are_granted).collect::<Result<Vec<_>>>()?.concat();
    if outcomes.len() != attempts.len() {
        found.add(|| format!("{} attempts have {} answers", attempts.len(), outcomes.len()));
    }
    let granted = attempts.iter().zip(outcomes).filter(|(_, granted)| *granted);
    let grants = granted.map(|(attempt, _)| Grant { seat: attempt.seat, hold: attempt.hold }).collect();
    Ok((micros / attempts.len() as f64, grants))
}

fn calls(world: &World, show: &Show, method: Method<'_>, attempts: &[LockAttempt]) -> Vec<Cmd> {
    match method {
        Method::Script(script, many) => {
            attempts.chunks(many).map(|some| world.store.lock_call(script, show, some)).collect()
        }
        Method::KeyPerSeat => {
            let set = |attempt: &LockAttempt| {
                let mut set = redis::cmd("SET");
                set.arg(world.store.seat_key(show, attempt.seat)).arg(&attempt.owner).arg("NX").arg("PX").arg(HOLD_MS);
                set
            };
            attempts.iter().map(set).collect()
        }
    }
}

/// Parses an answer: whether each of its attempts was granted, in order.
fn are_granted(answer: &Value) -> Result<Vec<bool>> {
    match answer {
        // The answers of SET NX.
        Value::Okay => Ok(vec![true]),
        Value::Nil => Ok(vec![false]),
        Value::Array(parts) => parts.iter().skip(ANSWER_HEAD).map(is_granted).collect(),
        other => bail!("Redis answered {other:?}"),
    }
}

fn is_granted(answer: &Value) -> Result<bool> {
    let code = match answer {
        Value::Array(parts) => parts.first(),
        other => Some(other),
    };
    match code {
        Some(Value::BulkString(code)) if code == b"HELD" => Ok(true),
        Some(Value::BulkString(code)) if code == b"TAKEN" => Ok(false),
        other => bail!("an attempt was answered {other:?}"),
    }
}

fn delete_seat_keys(world: &mut World, show: &Show) -> Result<()> {
    let mut pipeline = redis::pipe();
    for seat in 0..show.seats {
        pipeline.cmd("UNLINK").arg(world.store.seat_key(show, seat)).ignore();
    }
    Ok(pipeline.query(world.store.connection())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &str) -> Value {
        Value::BulkString(bytes.as_bytes().to_vec())
    }

    #[test]
    fn each_attempt_of_an_answer_is_read_after_its_head() {
        let head = [text("OK"), Value::Int(1_800_000_000_000), text("1800000000000000"), Value::Int(3), Value::Int(0)];
        let held = Value::Array(vec![text("HELD"), text("1"), text("2"), text("3")]);
        let taken = Value::Array(vec![text("TAKEN"), text("46"), Value::Int(1)]);
        let answer = Value::Array(head.into_iter().chain([held, taken]).collect());
        assert_eq!(are_granted(&answer).expect("an answer of the script"), [true, false]);
        assert!(are_granted(&Value::Int(0)).is_err());
    }
}
