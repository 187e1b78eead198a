//! Content fingerprints of a step's inputs. Content, not time, decides whether a step runs, so a fresh
//! clone with an old cache has nothing to do.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Hashes names and contents of these files, and of all files in these folders, together with `more`.
pub fn of(root: &Path, inputs: &[&str], more: &str) -> Result<String> {
    let mut files = BTreeSet::new();
    for input in inputs {
        collect(&root.join(input), &mut files)?;
    }
    let mut hash = DefaultHasher::new();
    more.hash(&mut hash);
    for file in files {
        file.strip_prefix(root).unwrap_or(&file).hash(&mut hash);
        std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?.hash(&mut hash);
    }
    Ok(format!("{:016x}", hash.finish()))
}

/// Returns `true` when the stamp file holds this fingerprint.
pub fn is_done(stamp: &Path, fingerprint: &str) -> bool {
    std::fs::read_to_string(stamp).is_ok_and(|done| done == fingerprint)
}

/// Collects all files below a folder, or the file itself; none if the path does not exist.
pub fn collect(path: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else if path.is_file() {
        files.insert(path.to_owned());
    }
    Ok(())
}
