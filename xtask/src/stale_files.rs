//! Removal of files that earlier builds left in the site. A stale file would enter every later version and its
//! fingerprint: the same source would be a different version on another machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::fingerprint;

/// Removes files of a folder that are neither in `made` nor the compressed form of one that is. Only files for which
/// `is_ours` returns `true`, called with the path below the folder.
pub fn remove_stale(folder: &Path, made: &BTreeSet<PathBuf>, is_ours: impl Fn(&Path) -> bool) -> Result<()> {
    let mut found = BTreeSet::new();
    fingerprint::collect(folder, &mut found)?;
    for file in found {
        let is_packed = file.extension().is_some_and(|ending| ending == "br" || ending == "gz");
        let is_made = made.contains(&file) || (is_packed && made.contains(&file.with_extension("")));
        if !is_made && is_ours(file.strip_prefix(folder)?) {
            std::fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_files_are_removed_and_files_of_others_stay() {
        let folder = std::env::temp_dir().join(format!("rowlock-leftovers-{}", std::process::id()));
        for file in ["a.js", "a.js.br", "old.js", "old.js.gz", "a.js.new", "parts/old.wasm", "others.js"] {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            std::fs::write(path, "").expect("written");
        }
        let made = BTreeSet::from([folder.join("a.js")]);
        remove_stale(&folder, &made, |file| file != Path::new("others.js")).expect("removed");
        let mut left = BTreeSet::new();
        fingerprint::collect(&folder, &mut left).expect("listed");
        assert_eq!(left, BTreeSet::from(["a.js", "a.js.br", "others.js"].map(|file| folder.join(file))));
        std::fs::remove_dir_all(&folder).expect("removed");
        remove_stale(&folder, &made, |_| true).expect("an empty folder");
    }
}
