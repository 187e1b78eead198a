//! The shipped settings of the proxy and of PgBouncer in `deploy/`, with other addresses.

mod connection_limits;
mod pgbouncer;
mod postgres_outage;
mod redis_outage;
mod rolling;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, Command};

use crate::world::wait_until;

/// Folder of system programs, besides the PATH.
const SBIN: &str = "/usr/sbin";

/// Finds a program: the variable's value, else the system's. `cargo xtask test` sets the variables of available
/// programs.
fn program(variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(variable) {
        return Some(named.into());
    }
    let found = system_program(name);
    if found.is_none() {
        eprintln!("{name} is not installed: skipped outside `cargo xtask test`");
    }
    found
}

fn system_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).chain([PathBuf::from(SBIN)]).map(|folder| folder.join(name));
    found.into_iter().find(|program| program.is_file())
}

/// A shipped settings file, with each line that has one of these beginnings replaced.
fn with_lines_replaced(text: &str, instead: &[(&str, String)]) -> String {
    let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    for (begins, line) in instead {
        let found = lines.iter_mut().find(|known| known.trim_start().starts_with(begins));
        *found.unwrap_or_else(|| panic!("no shipped line begins with {begins:?}")) = line.clone();
    }
    lines.join("\n") + "\n"
}

/// The shipped proxy settings with this port, control socket and these two replicas.
fn proxy(port: u16, control: &Path, replicas: [&str; 2]) -> String {
    let [one, two] = replicas.map(|url| url.trim_start_matches("http://"));
    let shipped = include_str!("../../../../../deploy/haproxy.cfg");
    let shipped = shipped.replace(" one:3000", &format!(" {one}")).replace(" two:3000", &format!(" {two}"));
    with_lines_replaced(
        &shipped,
        &[
            ("maxconn", format!("    maxconn 1000\n    stats socket {} level admin", control.display())),
            ("bind :8080", format!("    bind 127.0.0.1:{port}")),
        ],
    )
}

/// True if the replica passes the proxy's health checks.
async fn is_used(control: &Path, replica: &str) -> bool {
    statistic(control, &format!("replicas,{replica}"), "status").await == "UP"
}

/// A column of the proxy's statistics of a server, such as `status` of `replicas,one`; empty until the proxy answers.
async fn statistic(control: &Path, server: &str, column: &str) -> String {
    let asked = async {
        let mut stream = UnixStream::connect(control).await?;
        stream.write_all(b"show stat\n").await?;
        let mut said = String::new();
        stream.read_to_string(&mut said).await?;
        Ok::<_, std::io::Error>(said)
    };
    let said = asked.await.unwrap_or_default();
    let mut lines = said.lines();
    let place = lines.next().and_then(|names| names.split(',').position(|name| name == column));
    let row = lines.find(|line| line.starts_with(&format!("{server},")));
    let value = place.zip(row).and_then(|(place, row)| row.split(',').nth(place));
    value.unwrap_or_default().to_owned()
}

/// A settings file that is deleted with the test, and the program that reads it.
struct RunningProgram {
    file: PathBuf,
    _process: Child,
}

impl RunningProgram {
    async fn start(command: &mut Command, file: &Path, port: u16) -> Self {
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        wait_until("the program listens", || async { TcpStream::connect(("127.0.0.1", port)).await.is_ok() }).await;
        Self { file: file.to_owned(), _process: process }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("rowlock-{}-{name}", platform::ids::new_id().simple()));
    std::fs::write(&path, text).expect("the file is written");
    path
}
