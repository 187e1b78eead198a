//! The site as it was built, once more in a folder that is named by what is in it: browsers keep such files for good
//! (docs/decisions/0054).
//!
//!     versions/0123456789abcdef/  pkg/, style/ and fonts/ of one build; nothing in there ever changes
//!     versions/current            which of them pages are of; without it they ask for files by their plain names
//!
//! A few versions of before stay: pages of theirs are still open, and ask for what comes later, while a new one is served.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use crate::fingerprint;

/// What pages ask for by version. The rest lies at fixed addresses: the icon, and the workers, which care for what lies below.
const FOLDERS: [&str; 3] = ["pkg", "style", "fonts"];
/// Versions of before that stay.
const BEFORE: usize = 3;

/// Makes what was built a version, and the current one.
pub fn publish(site: &Path) -> Result<()> {
    let name = fingerprint::of(site, &FOLDERS, "")?;
    let versions = site.join("versions");
    let folder = versions.join(&name);
    if !folder.is_dir() {
        // Whole or not at all: a server may be looking.
        let coming = versions.join("coming");
        if coming.exists() {
            std::fs::remove_dir_all(&coming)?;
        }
        for part in FOLDERS {
            copy(site, &site.join(part), &coming)?;
        }
        std::fs::rename(&coming, &folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let new = versions.join("current.new");
    std::fs::write(&new, &name).with_context(|| format!("cannot write {}", new.display()))?;
    std::fs::rename(&new, versions.join("current"))?;
    forget_old(&versions, &name)
}

/// From now on the site may change at any time, so whoever serves it next has files asked about before each use.
pub fn withdraw(site: &Path) -> Result<()> {
    let current = site.join("versions/current");
    if current.exists() {
        std::fs::remove_file(&current).with_context(|| format!("cannot remove {}", current.display()))?;
    }
    Ok(())
}

/// Copies what is in a folder of the site to where it lies in the version.
fn copy(site: &Path, folder: &Path, version: &Path) -> Result<()> {
    let mut files = BTreeSet::new();
    fingerprint::collect(folder, &mut files)?;
    for file in &files {
        let to = version.join(file.strip_prefix(site)?);
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::copy(file, &to).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

fn forget_old(versions: &Path, current: &str) -> Result<()> {
    let mut others = Vec::new();
    for entry in std::fs::read_dir(versions)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name() != *current {
            others.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    others.sort();
    for (_, folder) in others.iter().rev().skip(BEFORE) {
        std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A site of the test's own, gone with it.
    struct Site(PathBuf);

    impl Site {
        fn new(test: &str) -> Self {
            Self(std::env::temp_dir().join(format!("rowlock-site-{test}-{}", std::process::id())))
        }

        fn build(&self, style: &str) -> String {
            for (file, text) in [("pkg/boot.js", "go();"), ("style/main.css", style), ("fonts/a.woff2", "a")] {
                let path = self.0.join(file);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
                std::fs::write(path, text).expect("it is written");
            }
            publish(&self.0).expect("it is published");
            self.read("versions/current")
        }

        fn read(&self, file: &str) -> String {
            std::fs::read_to_string(self.0.join(file)).expect("it is there")
        }
    }

    impl Drop for Site {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_version_is_named_by_what_is_in_it_and_never_changes() {
        let site = Site::new("named");
        let first = site.build("a{}");
        assert_eq!(site.build("a{}"), first, "the same build is the same version");
        let second = site.build("b{}");
        assert_ne!(second, first);
        assert_eq!(site.read(&format!("versions/{first}/style/main.css")), "a{}");
        assert_eq!(site.read(&format!("versions/{second}/style/main.css")), "b{}");
        assert_eq!(site.read(&format!("versions/{second}/pkg/boot.js")), "go();");
        assert_eq!(site.build("a{}"), first, "back to the one before");
        assert!(first.len() == 16 && first.bytes().all(|digit| digit.is_ascii_hexdigit()), "{first}");
        withdraw(&site.0).expect("it is withdrawn");
        withdraw(&site.0).expect("there is nothing to withdraw");
        assert!(!site.0.join("versions/current").exists());
    }

    #[test]
    fn a_few_versions_of_before_stay() {
        let site = Site::new("few");
        let all: Vec<String> = (0..BEFORE + 3).map(|number| site.build(&format!("a{{order:{number}}}"))).collect();
        let left = |name: &&String| site.0.join("versions").join(name).is_dir();
        assert_eq!(all.iter().filter(left).count(), BEFORE + 1);
        assert!(left(&all.last().expect("versions")), "the current one");
    }
}
