//! What is shipped besides the server works with it: the proxy's and PgBouncer's settings, as they are in `deploy/`, only
//! with other addresses.

mod pooled;
mod redis_away;
mod rolling;
mod versions;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, Command};

use crate::world::until;

/// Where programs for those who serve are, besides the PATH.
const SBIN: &str = "/usr/sbin";

/// A program: what the variable names, else what is found. `cargo xtask test` names those it can have.
fn program(variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(variable) {
        return Some(named.into());
    }
    let found = system_program(name);
    if found.is_none() {
        eprintln!("{name} is not here: this is left to `cargo xtask test`");
    }
    found
}

/// The system's own, if it has one.
fn system_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).chain([PathBuf::from(SBIN)]).map(|folder| folder.join(name));
    found.into_iter().find(|program| program.is_file())
}

/// A file of settings as it is shipped, each line that begins so replaced.
fn shipped(text: &str, instead: &[(&str, String)]) -> String {
    let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    for (begins, line) in instead {
        let found = lines.iter_mut().find(|known| known.trim_start().starts_with(begins));
        *found.unwrap_or_else(|| panic!("nothing that is shipped begins with {begins:?}")) = line.clone();
    }
    lines.join("\n") + "\n"
}

/// The proxy as it is shipped, listening on this port, in front of these two replicas, and controlled by that socket.
fn proxy(port: u16, control: &Path, replicas: [&str; 2]) -> String {
    let [one, two] = replicas.map(|url| url.trim_start_matches("http://"));
    shipped(
        include_str!("../../../../../deploy/haproxy.cfg"),
        &[
            ("maxconn", format!("    maxconn 1000\n    stats socket {} level admin", control.display())),
            ("bind :8080", format!("    bind 127.0.0.1:{port}")),
            ("server one", format!("    server one {one}")),
            ("server two", format!("    server two {two}")),
            ("server files-one", format!("    server files-one {one} track replicas/one")),
            ("server files-two", format!("    server files-two {two} track replicas/two")),
        ],
    )
}

/// Whether the proxy sends visitors to this replica.
async fn is_used(control: &Path, replica: &str) -> bool {
    let asked = async {
        let mut stream = UnixStream::connect(control).await?;
        stream.write_all(b"show stat\n").await?;
        let mut said = String::new();
        stream.read_to_string(&mut said).await?;
        Ok::<_, std::io::Error>(said)
    };
    let said = asked.await.unwrap_or_default();
    said.lines().any(|line| line.starts_with(&format!("replicas,{replica},")) && line.contains(",UP,"))
}

/// A file that goes with the test, and the program that reads it.
struct Running {
    file: PathBuf,
    _process: Child,
}

impl Running {
    /// Starts it and waits until it listens.
    async fn start(command: &mut Command, file: &Path, port: u16) -> Self {
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        until("it listens", || async { TcpStream::connect(("127.0.0.1", port)).await.is_ok() }).await;
        Self { file: file.to_owned(), _process: process }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("rowlock-{}-{name}", platform::ids::new_id().simple()));
    std::fs::write(&path, text).expect("it is written");
    path
}
