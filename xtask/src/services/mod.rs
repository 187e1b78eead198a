//! Private copies of Postgres and Redis, and the folder of data they belong to.
//!
//! `DATABASE_URL` and `REDIS_URL` replace them one by one. Docker is not used: it is rarely there
//! for people who just want to see the thing run.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::places::Places;
use crate::processes::Processes;
use crate::stop::Stop;

pub mod ports;
mod postgres;
mod redis;
pub mod secrets;

use secrets::Secrets;

/// The data of one purpose: "run" keeps it, "test" begins anew each time. Held by one process at a time.
pub struct Folder {
    /// Ports, secrets, logs, Redis' files, the mailbox.
    pub path: PathBuf,
    /// Parent of Postgres' data, see [`Places::postgres`].
    pub postgres: PathBuf,
    /// Passwords.
    pub secrets: Secrets,
    /// Whether data of an earlier run is thrown away.
    pub fresh: bool,
    /// Released by the system when we end, however we end.
    _lock: File,
}

impl Folder {
    /// Opens the folder of a purpose; fails while another process has it. `fresh` throws data of an
    /// earlier run away, never ports and secrets.
    pub fn open(places: &Places, purpose: &str, fresh: bool) -> Result<Self> {
        let path = places.data.join(purpose);
        std::fs::create_dir_all(&path)?;
        let lock = File::create(path.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("`cargo xtask {purpose}` is running in this checkout already; stop that one first")
            }
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the data folder"),
        }
        let secrets = Secrets::open(&path)?;
        let folder = Self { postgres: places.postgres.join(purpose), path, secrets, fresh, _lock: lock };
        folder.prepare(&folder.mailbox())?;
        Ok(folder)
    }

    /// Makes a folder inside this one, empty if data are not kept. Only once nothing of ours uses it.
    fn prepare(&self, inner: &Path) -> Result<()> {
        if self.fresh {
            remove(inner)?;
        }
        std::fs::create_dir_all(inner).with_context(|| format!("cannot make {}", inner.display()))
    }

    /// Where ports are remembered.
    pub fn ports(&self) -> PathBuf {
        self.path.join("ports.json")
    }

    /// Where the demo's mails are written.
    pub fn mailbox(&self) -> PathBuf {
        self.path.join("mailbox")
    }

    /// Where a program's output goes.
    pub fn log(&self, name: &str) -> PathBuf {
        self.path.join("logs").join(format!("{name}.log"))
    }
}

/// Addresses of the two stores.
pub struct Stores {
    /// `DATABASE_URL`.
    pub postgres: String,
    /// `REDIS_URL`.
    pub redis: String,
}

/// The stores people named in the environment, or private copies.
pub fn start(folder: &mut Folder, processes: &mut Processes<'_>, stop: &Stop) -> Result<Stores> {
    let postgres = match named("DATABASE_URL") {
        Some(address) => address,
        None => postgres::start(folder, processes, stop)?,
    };
    let redis = match named("REDIS_URL") {
        Some(address) => address,
        None => redis::start(folder, processes, stop)?,
    };
    Ok(Stores { postgres, redis })
}

/// The program of a private Redis, found or installed: some tests start several of their own.
pub fn redis_program(stop: &Stop) -> Result<PathBuf> {
    redis::program(stop)
}

fn named(variable: &str) -> Option<String> {
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
