//! Access to Redis for the checker and the script benchmarks: keys, scripts, CPU time.
//!
//! Key names and scripts are read from the server's Lua folder at run time, because they are under test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use redis::{Connection, ConnectionLike, Value, cmd};
use uuid::Uuid;

use super::Show;
use crate::checker::LockState;
use crate::cpu::Cpu;

const SCAN_BATCH: usize = 500;

/// A connection to Redis, with key names and process id.
pub struct Store {
    connection: Connection,
    prefix: String,
    folder: PathBuf,
    /// Names of a show's keys, in the order of the scripts' KEYS.
    names: Vec<String>,
    pid: u32,
}

/// Duration of holds that a benchmark takes directly in Redis, milliseconds: longer than a round.
pub const HOLD_MS: &str = "600000";
/// Maximum lifetime of such a hold with extensions, milliseconds.
const LIFE_MS: &str = "900000";
/// Number of fields at the head of every script's answer: code, clock, epoch, version, expired holds. The answers to the
/// attempts of a call follow.
pub const ANSWER_HEAD: usize = 5;
/// Seat limit per person and show.
const PER_PERSON: &str = "10";

/// An attempt to hold one seat.
pub struct LockAttempt {
    pub hold: Uuid,
    pub owner: String,
    pub seat: u32,
}

/// A loaded script of the server.
#[derive(Clone, Debug)]
pub struct Script {
    sha: String,
}

impl Store {
    /// Connects and finds the Redis process.
    pub fn open(url: &str, prefix: &str, folder: &Path) -> Result<Self> {
        let client = redis::Client::open(url).context("REDIS_URL")?;
        let mut connection = client.get_connection().context("Redis does not answer")?;
        let info: String = cmd("INFO").arg("server").query(&mut connection)?;
        let pid = info.lines().find_map(|line| line.strip_prefix("process_id:")?.trim().parse().ok());
        let pid = pid.context("Redis does not report its process id")?;
        Cpu::of_threads(pid).context("Redis runs on another machine: its CPU time cannot be read")?;
        let prelude = std::fs::read_to_string(folder.join("prelude.lua"))
            .with_context(|| format!("the server's scripts are not in {}", folder.display()))?;
        let names = declared_keys(&prelude);
        anyhow::ensure!(names.first().is_some_and(|name| name == "map"), "prelude.lua declares no known keys");
        Ok(Self { connection, prefix: prefix.to_owned(), folder: folder.to_owned(), names, pid })
    }

    /// Opens the same store at another Redis, after a failover.
    pub fn at(&self, url: &str) -> Result<Self> {
        Self::open(url, &self.prefix, &self.folder)
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the process id of Redis.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    pub fn cpu(&self) -> Result<Cpu> {
        Cpu::of_threads(self.pid)
    }

    pub const fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub fn key(&self, show: &Show, name: &str) -> String {
        format!("{}{{show:{}}}:{name}", self.prefix, show.id)
    }

    /// Returns the key of a seat in the baselines with a key per seat.
    pub fn seat_key(&self, show: &Show, seat: u32) -> String {
        self.key(show, &format!("seat:{seat}"))
    }

    /// Loads a script of the server, prefixed with the prelude.
    pub fn script(&mut self, name: &str) -> Result<Script> {
        let read =
            |name: &str| std::fs::read_to_string(self.folder.join(name)).with_context(|| format!("no script {name}"));
        let text = format!("{}\n{}", read("prelude.lua")?, read(&format!("{name}.lua"))?);
        let sha = cmd("SCRIPT").arg("LOAD").arg(text).query(&mut self.connection)?;
        Ok(Script { sha })
    }

    /// Builds a script call for a show; `arguments` follow the common ones.
    pub fn call(&self, script: &Script, show: &Show, arguments: &[&[u8]]) -> redis::Cmd {
        let mut call = cmd("EVALSHA");
        call.arg(&script.sha).arg(self.names.len());
        self.names.iter().for_each(|name| {
            call.arg(self.key(show, name));
        });
        // Common arguments: channel of changes, publish command, and no known epoch or version.
        call.arg(self.key(show, "changes")).arg("PUBLISH").arg(0).arg(0);
        arguments.iter().for_each(|argument| {
            call.arg(*argument);
        });
        call
    }

    /// Builds a call of `lock.lua`, whose header documents the arguments.
    pub fn lock_call(&self, script: &Script, show: &Show, attempts: &[LockAttempt]) -> redis::Cmd {
        let [limit, length, life] = [PER_PERSON, HOLD_MS, LIFE_MS].map(str::to_owned);
        let mut arguments = vec![limit, length, life, attempts.len().to_string()];
        for LockAttempt { hold, owner, seat } in attempts {
            // No house seats, one seat, no areas. Any hex serves as the digest of the request.
            let [no, one, none] = ["0", "1", "0"].map(str::to_owned);
            let (id, digest) = (hold.to_string(), hold.simple().to_string());
            arguments.extend([id, digest, owner.clone(), no, one, none, seat.to_string()]);
        }
        let arguments: Vec<&[u8]> = arguments.iter().map(String::as_bytes).collect();
        self.call(script, show, &arguments)
    }

    /// Sends packed commands in one write and waits for all `count` answers.
    pub fn send(&mut self, packed: &[u8], count: usize) -> Result<Vec<Value>> {
        Ok(self.connection.req_packed_commands(packed, 0, count)?)
    }

    /// Copies a show's keys, for [`Self::restore_show`].
    pub fn save_show(&mut self, show: &Show) -> Result<()> {
        for name in self.names.clone() {
            let key = self.key(show, &name);
            cmd("COPY").arg(&key).arg(format!("{key}:kept")).arg("REPLACE").query::<i64>(&mut self.connection)?;
        }
        Ok(())
    }

    pub fn restore_show(&mut self, show: &Show) -> Result<()> {
        for name in self.names.clone() {
            let key = self.key(show, &name);
            let kept =
                cmd("COPY").arg(format!("{key}:kept")).arg(&key).arg("REPLACE").query::<i64>(&mut self.connection)?;
            if kept == 0 {
                cmd("DEL").arg(&key).query::<i64>(&mut self.connection)?;
            }
        }
        Ok(())
    }

    pub fn version(&mut self, show: &Show) -> Result<u64> {
        Ok(cmd("GET").arg(self.key(show, "version")).query(&mut self.connection)?)
    }

    pub fn stored(&mut self, show: &Show) -> Result<LockState> {
        let map = cmd("GET").arg(self.key(show, "map")).query(&mut self.connection)?;
        let texts: BTreeMap<String, String> =
            cmd("HGETALL").arg(self.key(show, "holds")).query(&mut self.connection)?;
        let mut holds = BTreeMap::new();
        for (id, text) in texts {
            let id = Uuid::parse_str(&id).with_context(|| format!("a hold is called {id:?}"))?;
            holds.insert(id, seats_of_hold(&text).with_context(|| format!("the hold {id} reads {text:?}"))?);
        }
        Ok(LockState { map, holds })
    }

    /// Deletes all keys of a show, copies included.
    pub fn delete_show(&mut self, show: &Show) -> Result<()> {
        for name in self.names.clone() {
            let key = self.key(show, &name);
            cmd("UNLINK").arg(&key).arg(format!("{key}:kept")).query::<i64>(&mut self.connection)?;
        }
        Ok(())
    }

    pub fn delete_all(&mut self) -> Result<()> {
        let pattern = format!("{}*", self.prefix);
        let mut cursor = 0_u64;
        loop {
            let (next, keys): (u64, Vec<String>) = cmd("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(&pattern)
                .arg("COUNT")
                .arg(SCAN_BATCH)
                .query(&mut self.connection)?;
            if !keys.is_empty() {
                cmd("UNLINK").arg(keys).query::<i64>(&mut self.connection)?;
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }
}

/// Parses the keys a prelude declares: lines like `--   1 map      string, …`, the numbers in one column.
fn declared_keys(prelude: &str) -> Vec<String> {
    const COLUMN_ENDS: usize = "--   1".len();
    let declared = prelude.lines().filter_map(|line| {
        let (number, rest) = line.split_at_checked(COLUMN_ENDS)?;
        number.strip_prefix("--")?.trim_start().parse::<usize>().ok()?;
        rest.split_whitespace().next().map(str::to_owned)
    });
    declared.collect()
}

/// Parses the seats of a hold: comma-separated numbers in field `FIELD` of its text.
fn seats_of_hold(text: &str) -> Option<Vec<u32>> {
    const FIELD: usize = 6;
    text.split(':').nth(FIELD)?.split(',').map(|seat| seat.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_a_head_as_long_as_that_of_the_scripts() {
        let prelude = include_str!("../../../server/seats/src/seat_locks/lua/prelude.lua");
        assert!(prelude.contains(&format!("\nlocal HEAD = {ANSWER_HEAD}\n")), "another length than {ANSWER_HEAD}");
        let (_, said) = prelude.split_once("local function say(code)\n  return { ").expect("the head is built");
        let (fields, _) = said.split_once(" }").expect("its end");
        assert_eq!(fields.split(", ").count(), ANSWER_HEAD, "{fields}");
    }

    #[test]
    fn declared_keys_and_holds_are_parsed() {
        let prelude = "-- KEYS, the same:\n--   1 map      string\n--   2 holds    hash, id -> \"a:b\"\n\
                       --              3 more\n--  10 due      set\n-- ARGV: 1 channel\nlocal x";
        assert_eq!(declared_keys(prelude), ["map", "holds", "due"]);
        assert_eq!(seats_of_hold("1:2:3:4:0:owner:4,5:"), Some(vec![4, 5]));
        assert_eq!(seats_of_hold("1:2:3:4:0:owner"), None);
    }
}
