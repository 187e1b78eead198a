//! Where things lie: the checkout, what is built, and the data of private services.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folders `cargo xtask` works with, all absolute.
#[derive(Clone, Debug)]
pub struct Places {
    /// The checkout.
    pub root: PathBuf,
    /// What cargo builds: `CARGO_TARGET_DIR` or `target/`.
    pub target: PathBuf,
    /// Data, secrets and logs of what we start; git ignores it.
    pub data: PathBuf,
    /// Parent of Postgres data folders. Postgres runs as another user when we are root, and that user
    /// can often not enter the checkout (`/root` is closed to all others), hence `/var/lib` then.
    pub postgres: PathBuf,
}

impl Places {
    /// Finds them; fails where the checkout cannot be found.
    pub fn find() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest.parent().context("xtask lies in the checkout")?.canonicalize()?;
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => std::env::current_dir()?.join(folder),
            None => root.join("target"),
        };
        let data = root.join(".rowlock");
        let postgres =
            if is_root() { PathBuf::from("/var/lib/rowlock").join(name_of_checkout(&root)) } else { data.clone() };
        Ok(Self { root, target, data, postgres })
    }

    /// The browser half as served.
    pub fn site(&self) -> PathBuf {
        self.target.join("site")
    }

    /// Programs of other people that we need and that are no packages of the system.
    pub fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// A program of ours, built with the dev profile.
    pub fn program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// The same, built with the release profile.
    pub fn release_program(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name)
    }
}

/// Whether we may install packages, and must start Postgres as somebody else.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// One name per checkout, so that two of them on one machine share nothing.
fn name_of_checkout(root: &Path) -> String {
    let mut hash = DefaultHasher::new();
    root.hash(&mut hash);
    format!("{:016x}", hash.finish())
}
