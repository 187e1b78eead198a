//! A private Redis: found or installed, on a port of its own, durable to the second, never evicting.
//! Evicting a key would forget a seat lock, so a full Redis refuses instead.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::{Folder, ports};
use crate::command;
use crate::processes::{Output, Processes};
use crate::progress::Step;
use crate::setup::packages::{self, Need};
use crate::stop::Stop;

/// The oldest Redis whose scripting and sharded channels we use.
const OLDEST: u32 = 7;
/// Until a fresh one answers; a big append-only file takes its time.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// One question to it.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

const NEED: Need = Need {
    what: "Redis 7 or newer",
    debian: &["redis-server"],
    dnf: "redis",
    pacman: "redis",
    brew: "redis",
    otherwise: "Or set REDIS_URL to one that runs already.",
};

/// Starts it and returns its address.
pub fn start(folder: &mut Folder, processes: &mut Processes<'_>, stop: &Stop) -> Result<String> {
    let program = program(stop)?;
    let step = Step::quiet("Redis answers");
    let password = folder.secrets.get("redis")?;
    let data = folder.path.join("redis");
    end_leftover(folder, &password)?;
    folder.prepare(&data)?;
    let port = ports::claim(&folder.ports(), "redis", None)?;
    let settings = folder.path.join("redis.conf");
    super::secrets::write_private(&settings, configuration(port, &data, &password).as_bytes())?;
    let output = Output::File(folder.path.join("logs/redis.log"));
    processes.start("redis", Command::new(program).arg(&settings), Signal::TERM, output)?;
    processes.wait_until("Redis", READY_WITHIN, || {
        ask(port, &format!("AUTH {password}\r\nPING\r\n")).is_some_and(|answer| answer.contains("+PONG"))
    })?;
    step.done();
    Ok(format!("redis://:{password}@127.0.0.1:{port}/"))
}

/// At its default, 64 MB, a rush of holds would have the append-only file rewritten every few seconds, by a
/// child process that takes a core while people wait.
fn configuration(port: u16, data: &Path, password: &str) -> String {
    format!(
        "bind 127.0.0.1\nport {port}\nrequirepass {password}\ndir \"{}\"\n\
         appendonly yes\nappendfsync everysec\nauto-aof-rewrite-min-size 512mb\n\
         maxmemory-policy noeviction\nsave \"\"\n",
        data.display()
    )
}

/// A Redis of ours that survived us would share its files with the next one. Our password on the
/// remembered port is the proof that it is ours.
fn end_leftover(folder: &Folder, password: &str) -> Result<()> {
    let Some(port) = ports::remembered(&folder.ports(), "redis").filter(|port| !ports::is_free(*port)) else {
        return Ok(());
    };
    if !ask(port, &format!("AUTH {password}\r\n")).is_some_and(|answer| answer.starts_with("+OK")) {
        return Ok(());
    }
    let step = Step::start("stop a Redis left over from an earlier run");
    // It answers by closing the connection.
    ask(port, &format!("AUTH {password}\r\nSHUTDOWN\r\n"));
    let began = Instant::now();
    while !ports::is_free(port) {
        if began.elapsed() > READY_WITHIN {
            bail!("a Redis of an earlier run on port {port} does not stop");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    step.done();
    Ok(())
}

/// Sends commands in Redis' inline form and returns what came back, `None` if nobody is there.
fn ask(port: u16, commands: &str) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN).ok()?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
    stream.write_all(commands.as_bytes()).ok()?;
    stream.write_all(b"QUIT\r\n").ok()?;
    let mut answer = String::new();
    // A time limit or a reset ends the answer; what came is judged by the caller.
    let _ = stream.read_to_string(&mut answer);
    Some(answer)
}

/// Where `redis-server` is; a sentinel is the same program told to be one.
pub(super) fn program(stop: &Stop) -> Result<PathBuf> {
    let folders = ["/opt/homebrew/bin", "/usr/local/bin"].map(PathBuf::from);
    if command::find(&["redis-server"], &folders).is_none() {
        packages::install(&NEED, stop)?;
    }
    let program = command::find(&["redis-server"], &folders).context("redis-server is installed but not found")?;
    let said = command::output(Command::new(&program).arg("--version"))?;
    let version = said.split("v=").nth(1).unwrap_or_default();
    let major: u32 = version.split('.').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    if major < OLDEST {
        bail!("{} is needed, but {} says: {}", NEED.what, program.display(), said.trim());
    }
    Ok(program)
}
