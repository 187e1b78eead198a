//! Private Postgres and Redis servers, and their data folder.
//!
//! `DATABASE_URL` and `REDIS_URL` replace them one by one. Docker is not used, because many machines
//! lack it.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::paths::Paths;
use crate::processes::Processes;
use crate::setup::packages;
use crate::stop::Stop;

mod postgres;
mod redis;

pub use redis::redis_program;

/// Random bytes per secret.
const SECRET_BYTES: usize = 24;
/// A file system in memory, on Linux.
const MEMORY_DISK: &str = "/dev/shm";
/// Free space in memory for data that is kept there, bytes: databases of tests take some hundred megabytes.
const MIN_MEMORY_DISK: u64 = 4 << 30;

/// The data folder of one purpose: "run" keeps its data, "test" starts empty. One process at a time holds it.
pub struct DataFolder {
    /// The folder: ports, secrets, logs, Redis' files, the mailbox.
    pub path: PathBuf,
    /// Parent of Postgres' data, see [`Paths::postgres`].
    pub postgres: PathBuf,
    pub secrets: Secrets,
    /// True when data of an earlier run is deleted.
    pub fresh: bool,
    /// True for data that no later run reads: Postgres does not wait for the disk, and its sign-in is quick.
    pub is_throwaway: bool,
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
        let folder =
            Self { postgres: paths.postgres.join(purpose), path, secrets, fresh, is_throwaway: false, _lock: lock };
        folder.prepare(&folder.mailbox())?;
        Ok(folder)
    }

    /// Marks the data as read by no later run. It is in memory if there is enough: the file system of a disk needs
    /// several times as long to copy and drop a database for each test.
    pub fn throwaway(mut self) -> Self {
        self.is_throwaway = true;
        if has_memory_disk() {
            let mut place = DefaultHasher::new();
            self.postgres.hash(&mut place);
            self.postgres = Path::new(MEMORY_DISK).join(format!("rowlock-{:016x}", place.finish()));
        }
        self
    }

    /// Creates a subfolder, empty if `fresh`. No running program may use it.
    fn prepare(&self, inner: &Path) -> Result<()> {
        if self.fresh {
            remove(inner)?;
        }
        std::fs::create_dir_all(inner).with_context(|| format!("cannot create {}", inner.display()))
    }

    fn ports_file(&self) -> PathBuf {
        self.path.join("ports.json")
    }

    /// Returns the ports that were assigned. An unreadable file counts as empty: stable ports are only a convenience.
    fn assigned_ports(&self) -> BTreeMap<String, u16> {
        let read = std::fs::read(self.ports_file()).ok();
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Assigns a port of 127.0.0.1 to `name`: the last one if it is free, else `preferred` if that is free, else any free
    /// one.
    pub fn claim_port(&self, name: &str, preferred: Option<u16>) -> Result<u16> {
        let mut assigned = self.assigned_ports();
        let mut candidates = assigned.get(name).copied().into_iter().chain(preferred);
        let port = match candidates.find(|port| is_free_port(*port)) {
            Some(port) => port,
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port(),
        };
        assigned.insert(name.to_owned(), port);
        std::fs::write(self.ports_file(), serde_json::to_vec_pretty(&assigned)?)?;
        Ok(port)
    }

    pub fn mailbox(&self) -> PathBuf {
        self.path.join("mailbox")
    }

    pub fn log(&self, name: &str) -> PathBuf {
        self.path.join("logs").join(format!("{name}.log"))
    }
}

pub struct Stores {
    pub postgres: String,
    pub redis: String,
}

/// Finds or installs the programs of private stores. Both are reported at once, if they are missing.
pub fn require(stop: &Stop) -> Result<()> {
    packages::require_all(&[
        &|| if variable_value("DATABASE_URL").is_some() { Ok(()) } else { postgres::programs(stop).map(drop) },
        &|| if variable_value("REDIS_URL").is_some() { Ok(()) } else { redis_program(stop).map(drop) },
    ])
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

fn variable_value(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

/// Returns true if the system has a file system in memory with enough space.
fn has_memory_disk() -> bool {
    rustix::fs::statvfs(MEMORY_DISK).is_ok_and(|space| space.f_bavail * space.f_frsize >= MIN_MEMORY_DISK)
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        if self.is_throwaway {
            // What cannot be removed now is removed by the next run.
            let _ = remove(&postgres::data_of(self));
        }
    }
}

/// Removes a folder, if there is one.
pub fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Secrets of private services: generated once, kept in the data folder, readable only by the owner.
pub struct Secrets {
    file: PathBuf,
    known: BTreeMap<String, String>,
}

impl Secrets {
    pub fn open(folder: &Path) -> Result<Self> {
        let file = folder.join("secrets.json");
        let known = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", file.display()))?,
            Err(_) => BTreeMap::new(),
        };
        Ok(Self { file, known })
    }

    pub fn contains(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// Returns a secret, generated if it is new. It is hexadecimal: safe in URLs and files.
    pub fn get(&mut self, name: &str) -> Result<String> {
        if let Some(secret) = self.known.get(name) {
            return Ok(secret.clone());
        }
        let mut bytes = [0_u8; SECRET_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.known.insert(name.to_owned(), secret.clone());
        write_private(&self.file, &serde_json::to_vec_pretty(&self.known)?)?;
        Ok(secret)
    }
}

/// Writes a file that only its owner may read.
fn write_private(file: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(file)?;
    file.write_all(bytes)?;
    Ok(())
}

fn is_free_port(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
