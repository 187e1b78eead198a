//! The door's own counter, read from Redis beside the servers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use redis::cmd;
use uuid::Uuid;

use super::crowd::{Admission, Crowd, lock};
use crate::world::{Show, World};

/// How often it is read.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest wait for an answer.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

/// The key of the room's hash in Redis.
pub fn room_of(world: &World, show: &Show) -> Result<String> {
    let asked = sqlx::query_scalar("SELECT id FROM waiting_rooms WHERE show_id = $1").bind(show.id);
    let room: Uuid = world.runtime.block_on(asked.fetch_one(&world.pg))?;
    Ok(world.store.key(show, &format!("queue:{}:room", room.simple())))
}

/// Watches the door's own counter in Redis, and compares it with who says that they are in.
pub struct Watch<'a> {
    pub crowd: &'a Crowd<'a>,
    /// Everybody in line.
    pub people: u64,
    /// People let in a second at most.
    pub per_second: u32,
    /// The key of the room's hash.
    pub room: String,
    /// Those who may be the master.
    pub urls: [String; 2],
    pub is_over: &'a AtomicBool,
}

impl Watch<'_> {
    /// Looks until it is over.
    pub fn called(&self) {
        let crowd = self.crowd;
        let mut first: Option<(Instant, u64)> = None;
        let mut looked_at = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let asked = Instant::now();
            // The first that answers and is a master has the counter.
            let Some(called) = self.urls.iter().find_map(|url| counter(url, &self.room)) else {
                std::thread::sleep(LOOK_EVERY);
                continue;
            };
            // A failover may set it back by what the replica had not heard; who was called then was called.
            let called = crowd.called.fetch_max(called, Ordering::Relaxed).max(called);
            let (began, from) = *first.get_or_insert((asked, called));
            let pace = f64::from(self.per_second);
            let most = from as f64 + pace * (began.elapsed().as_secs_f64() + 1.0);
            if called as f64 > most + crowd.late.load(Ordering::Relaxed) as f64 && called < self.people {
                crowd.complain(|| format!("{called} are called, and by the pace at most {most:.0}"));
            }
            let heard: Vec<Admission> = lock(&crowd.admissions).iter().skip(looked_at).copied().collect();
            for admission in heard.iter().take_while(|admission| admission.at < asked) {
                looked_at += 1;
                if admission.place >= called {
                    crowd.complain(|| format!("place {} is inside, and {called} are called", admission.place));
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

fn counter(url: &str, room: &str) -> Option<u64> {
    let client = redis::Client::open(url).ok()?;
    let mut connection = client.get_connection_with_timeout(ANSWER_WITHIN).ok()?;
    let role: Vec<redis::Value> = cmd("ROLE").query(&mut connection).ok()?;
    let is_master = matches!(role.first(), Some(redis::Value::BulkString(word)) if word == b"master");
    if !is_master {
        return None;
    }
    cmd("HGET").arg(room).arg("called").query::<Option<u64>>(&mut connection).ok()?
}
