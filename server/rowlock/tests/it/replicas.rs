//! Server processes that are killed and started again at the address they had, as a supervisor does.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use reqwest::StatusCode;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::world::World;

/// How long a server may take until it serves, on a machine that does much else.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How often it is asked.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// One server, whichever process it is just now. Killed when it goes out of scope.
pub struct Replica {
    pub url: String,
    settings: Vec<(String, String)>,
    log: PathBuf,
    process: Mutex<Option<Child>>,
    client: reqwest::Client,
}

impl Replica {
    /// One with the world's settings and these; not started yet.
    pub fn new(world: &World, settings: &[(&str, &str)]) -> Self {
        let free = crate::ports::free();
        let url = format!("http://{free}");
        let mut all = world.settings().to_vec();
        all.extend([("LISTEN".into(), free.to_string()), ("PUBLIC_URL".into(), url.clone())]);
        all.extend(settings.iter().map(|(key, value)| ((*key).into(), (*value).into())));
        let client = reqwest::Client::builder().timeout(Duration::from_secs(5)).no_proxy().build().expect("a client");
        let log = std::env::temp_dir().join(format!("rowlock-server-{}.log", free.port()));
        // What it says is for whoever looks into a failure; an older one of this port is no concern of ours.
        let _ = std::fs::remove_file(&log);
        Self { url, settings: all, log, process: Mutex::new(None), client }
    }

    /// Starts it and waits until it serves. One that gave up because a store was away is started again.
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
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let in_time = tokio::time::timeout(READY_WITHIN, serves).await;
        in_time.unwrap_or_else(|_| panic!("the server does not come up; it says in {}", self.log.display()));
    }

    /// Kills it as a crash does.
    pub async fn kill(&self) {
        if let Some(mut process) = self.process.lock().await.take() {
            process.kill().await.expect("the server can be killed");
        }
    }

    /// Stops it as operators do, and waits until it has ended.
    pub async fn stop(&self) {
        let Some(mut process) = self.process.lock().await.take() else { return };
        let id = process.id().expect("it runs").to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().await.expect("kill runs");
        assert!(asked.success(), "it is asked to stop");
        let ended = tokio::time::timeout(READY_WITHIN, process.wait()).await.expect("it stops when asked to");
        assert!(ended.expect("it can be waited for").success(), "it stops in order");
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
