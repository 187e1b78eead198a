//! The folders of a checkout: sources, build output, and data of private services.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folders `cargo xtask` works with; all paths are absolute.
#[derive(Clone, Debug)]
pub struct Paths {
    pub root: PathBuf,
    /// Build output of cargo: `CARGO_TARGET_DIR` or `target/`.
    pub target: PathBuf,
    /// Data, secrets and logs of started programs; git ignores it.
    pub data: PathBuf,
    /// Parent of the Postgres data folders. For root, Postgres runs as another user who often cannot enter
    /// the checkout (`/root` is closed to others), so the folders are below `/var/lib` then.
    pub postgres: PathBuf,
}

impl Paths {
    /// Finds the folders; fails when the checkout is not found.
    pub fn find() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest.parent().context("xtask has no parent folder")?.canonicalize()?;
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => std::env::current_dir()?.join(folder),
            None => root.join("target"),
        };
        let data = root.join(".rowlock");
        let postgres =
            if is_root() { PathBuf::from("/var/lib/rowlock").join(name_of_checkout(&root)) } else { data.clone() };
        Ok(Self { root, target, data, postgres })
    }

    pub fn site(&self) -> PathBuf {
        self.target.join("site")
    }

    /// Returns the folder of third-party programs that are no system packages.
    pub fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// Returns a program built with the dev profile.
    pub fn program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// Returns a program built with the benchmark profile.
    pub fn benchmark_program(&self, name: &str) -> PathBuf {
        self.target.join("benchmark").join(name)
    }
}

/// Returns `true` for root, who may install packages and must start Postgres as another user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns a name unique to the checkout, so that two checkouts on one machine share nothing.
fn name_of_checkout(root: &Path) -> String {
    let mut hash = DefaultHasher::new();
    root.hash(&mut hash);
    format!("{:016x}", hash.finish())
}
