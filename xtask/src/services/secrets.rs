//! Secrets of private services: generated once, kept in the data folder, readable only by the owner.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Random bytes per secret.
const SECRET_BYTES: usize = 24;

/// The secrets of a data folder.
pub struct Secrets {
    file: PathBuf,
    known: BTreeMap<String, String>,
}

impl Secrets {
    /// Reads the existing secrets.
    pub fn open(folder: &Path) -> Result<Self> {
        let file = folder.join("secrets.json");
        let known = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", file.display()))?,
            Err(_) => BTreeMap::new(),
        };
        Ok(Self { file, known })
    }

    /// Returns `true` when the secret exists.
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
pub fn write_private(file: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(file)?;
    file.write_all(bytes)?;
    Ok(())
}
