//! Whether the inputs of a step changed since it was last done: by content, not by time, so that a
//! fresh clone with an old cache has nothing to do.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A hash of these files, and of all files in these folders, with their names; `more` goes in as well.
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

/// Whether `stamp` says that this very fingerprint was done.
pub fn is_done(stamp: &Path, fingerprint: &str) -> bool {
    std::fs::read_to_string(stamp).is_ok_and(|done| done == fingerprint)
}

/// All files below a folder, or the file itself; nothing where nothing is.
pub fn collect(place: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    if place.is_dir() {
        for entry in std::fs::read_dir(place)? {
            collect(&entry?.path(), files)?;
        }
    } else if place.is_file() {
        files.insert(place.to_owned());
    }
    Ok(())
}
