//! Private Postgres and Redis servers, and their data folder.
//!
//! `DATABASE_URL` and `REDIS_URL` replace them one by one. Docker is not used, because many machines
//! lack it.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::paths::Paths;
use crate::processes::Processes;
use crate::stop::Stop;

pub mod ports;
mod postgres;
mod redis;
pub mod secrets;

use secrets::Secrets;

/// The data folder of one purpose: "run" keeps its data, "test" starts empty. One process at a time holds it.
pub struct DataFolder {
    /// The folder: ports, secrets, logs, Redis' files, the mailbox.
    pub path: PathBuf,
    /// Parent of Postgres' data, see [`Paths::postgres`].
    pub postgres: PathBuf,
    /// The secrets.
    pub secrets: Secrets,
    /// True when data of an earlier run is deleted.
    pub fresh: bool,
    /// The system releases the lock when the process ends.
    _lock: File,
}

impl DataFolder {
    /// Opens the folder of a purpose; fails while another process holds it. `fresh` deletes data of an
    /// earlier run, but never ports and secrets.
    pub fn open(paths: &Paths, purpose: &str, fresh: bool) -> Result<Self> {
        let path = paths.data.join(purpose);
        std::fs::create_dir_all(&path)?;
        let lock = File::create(path.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("`cargo xtask {purpose}` is running in this checkout already; stop it first")
            }
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the data folder"),
        }
        let secrets = Secrets::open(&path)?;
        let folder = Self { postgres: paths.postgres.join(purpose), path, secrets, fresh, _lock: lock };
        folder.prepare(&folder.mailbox())?;
        Ok(folder)
    }

    /// Creates a subfolder, empty if `fresh`. No running program may use it.
    fn prepare(&self, inner: &Path) -> Result<()> {
        if self.fresh {
            remove(inner)?;
        }
        std::fs::create_dir_all(inner).with_context(|| format!("cannot create {}", inner.display()))
    }

    /// Returns the file of assigned ports.
    pub fn ports(&self) -> PathBuf {
        self.path.join("ports.json")
    }

    /// Returns the folder of the demo's mails.
    pub fn mailbox(&self) -> PathBuf {
        self.path.join("mailbox")
    }

    /// Returns the log file of a program.
    pub fn log(&self, name: &str) -> PathBuf {
        self.path.join("logs").join(format!("{name}.log"))
    }
}

/// URLs of the two stores.
pub struct Stores {
    /// `DATABASE_URL`.
    pub postgres: String,
    /// `REDIS_URL`.
    pub redis: String,
}

/// Returns the stores of the environment variables, or starts private ones.
pub fn start(folder: &mut DataFolder, processes: &mut Processes<'_>, stop: &Stop) -> Result<Stores> {
    let postgres = match variable_value("DATABASE_URL") {
        Some(address) => address,
        None => postgres::start(folder, processes, stop)?,
    };
    let redis = match variable_value("REDIS_URL") {
        Some(address) => address,
        None => redis::start(folder, processes, stop)?,
    };
    Ok(Stores { postgres, redis })
}

/// Finds or installs the Redis program; some tests start further servers.
pub fn redis_program(stop: &Stop) -> Result<PathBuf> {
    redis::program(stop)
}

fn variable_value(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
