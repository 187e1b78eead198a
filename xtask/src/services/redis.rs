//! A private Redis server: found or installed, on a private port, with an append-only file synced every
//! second, without eviction: evicting a key would lose a seat lock, so a full Redis refuses writes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::{DataFolder, is_free_port, write_private};
use crate::command;
use crate::processes::{Output, Processes};
use crate::progress::ProgressStep;
use crate::setup::packages::{self, RequiredPackage};
use crate::stop::Stop;

/// Minimum version: scripts and sharded channels need it.
const MIN_VERSION: u32 = 7;
/// Timeout of the start; loading a large append-only file takes long.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

const NEED: RequiredPackage = RequiredPackage {
    what: "Redis 7 or newer",
    debian: &["redis-server"],
    dnf: "redis",
    pacman: "redis",
    brew: "redis",
    otherwise: "Or set REDIS_URL to one that runs already.",
};

pub fn start(folder: &mut DataFolder, processes: &mut Processes<'_>, stop: &Stop) -> Result<String> {
    let program = redis_program(stop)?;
    let step = ProgressStep::quiet("Redis answers");
    let password = folder.secrets.get("redis")?;
    let data = folder.path.join("redis");
    end_leftover(folder, &password)?;
    folder.prepare(&data)?;
    let port = folder.claim_port("redis", None)?;
    let settings = folder.path.join("redis.conf");
    write_private(&settings, configuration(port, &data, &password).as_bytes())?;
    let output = Output::File(folder.path.join("logs/redis.log"));
    processes.start("redis", Command::new(program).arg(&settings), Signal::TERM, output)?;
    processes.wait_until("Redis", READY_TIMEOUT, || {
        send_commands(port, &format!("AUTH {password}\r\nPING\r\n")).is_some_and(|answer| answer.contains("+PONG"))
    })?;
    step.done();
    Ok(format!("redis://:{password}@127.0.0.1:{port}/"))
}

/// Builds the configuration. With the default minimum of 64 MB a rush of holds would rewrite the append-only
/// file every few seconds, in a child process that takes a core.
fn configuration(port: u16, data: &Path, password: &str) -> String {
    format!(
        "bind 127.0.0.1\nport {port}\nrequirepass {password}\ndir \"{}\"\n\
         appendonly yes\nappendfsync everysec\nauto-aof-rewrite-min-size 512mb\n\
         maxmemory-policy noeviction\nsave \"\"\n",
        data.display()
    )
}

/// Stops a Redis of an earlier run, which would share files with the next one. It is identified by
/// accepting the password on the last assigned port.
fn end_leftover(folder: &DataFolder, password: &str) -> Result<()> {
    let last = folder.assigned_ports().get("redis").copied();
    let Some(port) = last.filter(|port| !is_free_port(*port)) else { return Ok(()) };
    if !send_commands(port, &format!("AUTH {password}\r\n")).is_some_and(|answer| answer.starts_with("+OK")) {
        return Ok(());
    }
    let step = ProgressStep::start("stop a Redis left over from an earlier run");
    // The answer to SHUTDOWN is a closed connection.
    send_commands(port, &format!("AUTH {password}\r\nSHUTDOWN\r\n"));
    let began = Instant::now();
    while !is_free_port(port) {
        if began.elapsed() > READY_TIMEOUT {
            bail!("a Redis of an earlier run on port {port} does not stop");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    step.done();
    Ok(())
}

/// Sends inline commands to Redis and returns the answers; `None` without a connection.
fn send_commands(port: u16, commands: &str) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).ok()?;
    stream.write_all(commands.as_bytes()).ok()?;
    stream.write_all(b"QUIT\r\n").ok()?;
    let mut answer = String::new();
    // A timeout or a reset ends the answer; the caller judges the received part.
    let _ = stream.read_to_string(&mut answer);
    Some(answer)
}

/// Finds or installs `redis-server`, which is also the program of a sentinel. Some tests start further servers.
pub fn redis_program(stop: &Stop) -> Result<PathBuf> {
    let folders = ["/opt/homebrew/bin", "/usr/local/bin"].map(PathBuf::from);
    if command::find(&["redis-server"], &folders).is_none() {
        packages::install(&NEED, stop)?;
    }
    let program = command::find(&["redis-server"], &folders).context("redis-server is installed but not found")?;
    let text = command::output(Command::new(&program).arg("--version"))?;
    let version = text.split("v=").nth(1).unwrap_or_default();
    let major: u32 = version.split('.').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    if major < MIN_VERSION {
        bail!("{} is needed, but {} says: {}", NEED.what, program.display(), text.trim());
    }
    Ok(program)
}
