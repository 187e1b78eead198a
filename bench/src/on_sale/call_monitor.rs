//! A monitor of the waiting room's counter of called positions, read directly from Redis.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use redis::cmd;
use uuid::Uuid;

use super::crowd::{Admission, Crowd};
use crate::world::{Show, World, lock};

const POLL_INTERVAL: Duration = Duration::from_millis(20);
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// Returns the key of the waiting room's hash in Redis.
pub fn room_key(world: &World, show: &Show) -> Result<String> {
    let asked = sqlx::query_scalar("SELECT id FROM waiting_rooms WHERE show_id = $1").bind(show.id);
    let room: Uuid = world.runtime.block_on(asked.fetch_one(&world.pg))?;
    Ok(world.store.key(show, &format!("queue:{}:room", room.simple())))
}

/// Compares the counter of called positions with the pace and with the admissions of the crowd.
pub struct CallMonitor<'a> {
    pub crowd: &'a Crowd<'a>,
    pub people: u64,
    pub per_second: u32,
    pub room: String,
    /// The Redis servers; one of them is the master.
    pub urls: [String; 2],
    pub is_over: &'a AtomicBool,
}

impl CallMonitor<'_> {
    pub fn run(&self) {
        let crowd = self.crowd;
        let mut first: Option<(Instant, u64)> = None;
        let mut checked = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let asked = Instant::now();
            // The first answering master has the counter.
            let Some(called) = self.urls.iter().find_map(|url| read_called(url, &self.room)) else {
                std::thread::sleep(POLL_INTERVAL);
                continue;
            };
            // A failover may lose increments that were not replicated; positions called before stay called.
            let called = crowd.called.fetch_max(called, Ordering::Relaxed).max(called);
            let (began, from) = *first.get_or_insert((asked, called));
            let pace = f64::from(self.per_second);
            let most = from as f64 + pace * (began.elapsed().as_secs_f64() + 1.0);
            if called as f64 > most + crowd.late.load(Ordering::Relaxed) as f64 && called < self.people {
                crowd.add_violation(|| format!("{called} are called, and the rate allows at most {most:.0}"));
            }
            let admissions: Vec<Admission> = lock(&crowd.admissions).iter().skip(checked).copied().collect();
            for admission in admissions.iter().take_while(|admission| admission.at < asked) {
                checked += 1;
                if admission.place >= called {
                    crowd.add_violation(|| format!("place {} is inside, and {called} are called", admission.place));
                }
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

fn read_called(url: &str, room: &str) -> Option<u64> {
    let client = redis::Client::open(url).ok()?;
    let mut connection = client.get_connection_with_timeout(ANSWER_TIMEOUT).ok()?;
    let role: Vec<redis::Value> = cmd("ROLE").query(&mut connection).ok()?;
    let is_master = matches!(role.first(), Some(redis::Value::BulkString(word)) if word == b"master");
    if !is_master {
        return None;
    }
    cmd("HGET").arg(room).arg("called").query::<Option<u64>>(&mut connection).ok()?
}
