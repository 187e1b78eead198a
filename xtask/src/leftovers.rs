//! What earlier builds left in the site. A file that is not made any more would be in every version from then on, and in
//! its name: the same source would be another version on another machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::fingerprint;

/// Removes from a folder what was not made just now, nor is the packed form of something that was. Only what `is_ours`
/// says, asked with the path below the folder.
pub fn remove(folder: &Path, made: &BTreeSet<PathBuf>, is_ours: impl Fn(&Path) -> bool) -> Result<()> {
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
    fn what_is_not_made_any_more_goes_and_what_is_others_stays() {
        let folder = std::env::temp_dir().join(format!("rowlock-leftovers-{}", std::process::id()));
        for file in ["a.js", "a.js.br", "old.js", "old.js.gz", "a.js.new", "parts/old.wasm", "others.js"] {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            std::fs::write(path, "").expect("it is written");
        }
        let made = BTreeSet::from([folder.join("a.js")]);
        remove(&folder, &made, |file| file != Path::new("others.js")).expect("they are removed");
        let mut left = BTreeSet::new();
        fingerprint::collect(&folder, &mut left).expect("what is left");
        assert_eq!(left, BTreeSet::from(["a.js", "a.js.br", "others.js"].map(|file| folder.join(file))));
        std::fs::remove_dir_all(&folder).expect("it is removed");
        remove(&folder, &made, |_| true).expect("nothing is there");
    }
}
