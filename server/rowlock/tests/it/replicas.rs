//! Server processes that are killed and restarted at the same address, as a supervisor does; and free ports for the
//! processes that tests start.

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::prelude::*;
use crate::signals::{Signal, send_signal};

/// Time limit for a server's start, on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// A server at a fixed address, whose process changes. Killed when it is dropped.
pub struct Replica {
    pub url: String,
    settings: Vec<(String, String)>,
    log: PathBuf,
    process: Mutex<Option<Child>>,
    client: reqwest::Client,
}

impl Replica {
    /// A replica with the world's settings and these. Not started yet.
    pub fn new(world: &World, settings: &[(&str, &str)]) -> Self {
        let free = free_address();
        let url = format!("http://{free}");
        let mut all = world.settings().to_vec();
        all.extend([("LISTEN".into(), free.to_string()), ("PUBLIC_URL".into(), url.clone())]);
        all.extend(settings.iter().map(|(key, value)| ((*key).into(), (*value).into())));
        let client = reqwest::Client::builder().timeout(Duration::from_secs(5)).no_proxy().build().expect("a client");
        let log = std::env::temp_dir().join(format!("rowlock-server-{}.log", free.port()));
        // An old log of this port is removed.
        let _ = std::fs::remove_file(&log);
        Self { url, settings: all, log, process: Mutex::new(None), client }
    }

    /// Returns the log so far, of all starts.
    pub fn read_log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log is read")
    }

    /// Starts it and waits until it is ready. Restarts it if it exits because a store is down.
    pub async fn start(&self) {
        let serves = async {
            loop {
                {
                    let mut process = self.process.lock().await;
                    let runs = process.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None)));
                    if !runs {
                        *process = Some(self.spawn());
                    }
                }
                let answer = self.client.get(format!("{}/readyz", self.url)).send().await;
                if answer.is_ok_and(|answer| answer.status() == StatusCode::OK) {
                    return;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let in_time = tokio::time::timeout(READY_TIMEOUT, serves).await;
        in_time.unwrap_or_else(|_| panic!("the server does not start; its log is {}", self.log.display()));
    }

    pub async fn kill(&self) {
        if let Some(mut process) = self.process.lock().await.take() {
            process.kill().await.expect("the server can be killed");
        }
    }

    pub async fn stop(&self) {
        let Some(mut process) = self.process.lock().await.take() else { return };
        send_signal(process.id().expect("it runs"), Signal::TERM).expect("the signal is sent");
        let ended = tokio::time::timeout(READY_TIMEOUT, process.wait()).await.expect("it stops after SIGTERM");
        assert!(ended.expect("the process ends").success(), "it exits with success");
    }

    fn spawn(&self) -> Child {
        let log: File = OpenOptions::new().create(true).append(true).open(&self.log).expect("a log");
        Command::new(env!("CARGO_BIN_EXE_rowlock"))
            .arg("serve")
            .envs(self.settings.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("the server starts")
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_file(&self.log);
        }
    }
}

/// Below the kernel's ephemeral ports: a free port stays free until its program listens, however many connections other
/// tests open meanwhile.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// Offset of the next port to try. A second run beside this one starts at another offset.
static NEXT: LazyLock<AtomicU16> =
    LazyLock::new(|| AtomicU16::new(u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or_default()));

/// Returns an address with a free port, and never the same one twice.
pub fn free_address() -> SocketAddr {
    let mut tries = (0..COUNT).map(|_| {
        let offset = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + offset))
    });
    tries.find(|address| TcpListener::bind(address).is_ok()).expect("a port is free")
}
