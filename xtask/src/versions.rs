//! The site as it was built, once more in a folder that is named by what is in it: browsers keep such files for good
//! (docs/decisions/0054).
//!
//!     versions/0123456789abcdef/  pkg/, style/ and fonts/ of one build; nothing in there ever changes
//!     versions/current            which of them pages are of; without it they ask for files by their plain names
//!
//! Previous versions stay for a while: pages of theirs are still open, and ask for what comes later, while a new one
//! is served; and rolling back to one finds it.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use crate::fingerprint;

/// What pages ask for by version. The rest lies at fixed addresses: the icon, and the workers, which care for what lies below.
const FOLDERS: [&str; 3] = ["pkg", "style", "fonts"];
/// Goes into a version's name with its files. To be raised when what the server says of them changes: which types they
/// have, which forms (`server/src/web/files.rs`). Browsers keep that with a file, for as long.
const HEADERS: &str = "headers 1";
/// Previous versions that stay, however old.
const BEFORE: usize = 3;
/// Others stay for so long after they were the current one: which of many builds is deployed, nobody knows here…
const STAY: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// …unless there are more versions than this: who builds all day is not to fill a disk.
const MOST: usize = 12;

/// Makes what was built a version, and the current one.
#[expect(clippy::disallowed_methods, reason = "versions go by the real clock, as their folders do")]
pub fn publish(site: &Path) -> Result<()> {
    publish_at(site, SystemTime::now())
}

fn publish_at(site: &Path, now: SystemTime) -> Result<()> {
    let name = fingerprint::of(site, &FOLDERS, HEADERS)?;
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
    let current = versions.join("current");
    let before = std::fs::read_to_string(&current).ok().map(|before| versions.join(before));
    // Both are in use, however long ago they were built: the previous one was until now.
    for used in before.iter().filter(|before| before.is_dir()).chain([&folder]) {
        let used = File::open(used).with_context(|| format!("cannot open {}", used.display()))?;
        used.set_modified(now).context("cannot note when a version was in use")?;
    }
    let new = versions.join("current.new");
    std::fs::write(&new, &name).with_context(|| format!("cannot write {}", new.display()))?;
    std::fs::rename(&new, current)?;
    forget_old(&versions, &name, now)
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
        // On the disk before the folder has its name: nobody looks again at what is in there, should the power fail.
        File::open(&to)?.sync_all().with_context(|| format!("cannot keep {}", to.display()))?;
    }
    Ok(())
}

fn forget_old(versions: &Path, current: &str, now: SystemTime) -> Result<()> {
    let mut others = Vec::new();
    for entry in std::fs::read_dir(versions)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name() != *current {
            others.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    others.sort();
    for (newer, (used, folder)) in others.iter().rev().enumerate() {
        let is_old = now.duration_since(*used).is_ok_and(|age| age > STAY);
        if newer + 1 >= MOST || (newer >= BEFORE && is_old) {
            std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);
    const DAY: u32 = 24;

    /// A site of the test's own, gone with it.
    struct Site(PathBuf);

    impl Site {
        fn new(test: &str) -> Self {
            Self(std::env::temp_dir().join(format!("rowlock-site-{test}-{}", std::process::id())))
        }

        /// Builds it so many hours after some moment; the name of the version.
        fn build(&self, style: &str, hours: u32) -> String {
            for (file, text) in [("pkg/boot.js", "go();"), ("style/main.css", style), ("fonts/a.woff2", "a")] {
                let path = self.0.join(file);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
                std::fs::write(path, text).expect("it is written");
            }
            let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
            publish_at(&self.0, moment + HOUR * hours).expect("it is published");
            self.read("versions/current")
        }

        fn read(&self, file: &str) -> String {
            std::fs::read_to_string(self.0.join(file)).expect("it is there")
        }

        fn has(&self, version: &str) -> bool {
            self.0.join("versions").join(version).is_dir()
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
        let first = site.build("a{}", 0);
        assert_eq!(site.build("a{}", 0), first, "the same build is the same version");
        let second = site.build("b{}", 0);
        assert_ne!(second, first);
        assert_eq!(site.read(&format!("versions/{first}/style/main.css")), "a{}");
        assert_eq!(site.read(&format!("versions/{second}/style/main.css")), "b{}");
        assert_eq!(site.read(&format!("versions/{second}/pkg/boot.js")), "go();");
        assert_eq!(site.build("a{}", 0), first, "back to the one before");
        assert!(first.len() == 16 && first.bytes().all(|digit| digit.is_ascii_hexdigit()), "{first}");
        withdraw(&site.0).expect("it is withdrawn");
        withdraw(&site.0).expect("there is nothing to withdraw");
        assert!(!site.0.join("versions/current").exists());
    }

    #[test]
    fn a_few_versions_of_before_stay_however_old() {
        let site = Site::new("few");
        let all: Vec<String> =
            (0..6).map(|number| site.build(&format!("a{{order:{number}}}"), number * 100 * DAY)).collect();
        let left: Vec<bool> = all.iter().map(|version| site.has(version)).collect();
        assert_eq!(left, [false, false, true, true, true, true]);
    }

    #[test]
    fn of_many_builds_the_one_that_was_deployed_stays_and_a_disk_stays_bounded() {
        let site = Site::new("many");
        let deployed = site.build("a{}", 0);
        // A month later, five builds until one is deployed.
        let tries: Vec<String> =
            (0..5).map(|number| site.build(&format!("a{{order:{number}}}"), 30 * DAY + number)).collect();
        assert!(site.has(&deployed) && tries.iter().all(|version| site.has(version)));
        site.build("b{}", 60 * DAY);
        assert!(!site.has(&deployed), "nobody used it for a month");
        let all: Vec<String> =
            (0..20).map(|number| site.build(&format!("c{{order:{number}}}"), 60 * DAY + number)).collect();
        let left: Vec<&String> = all.iter().filter(|version| site.has(version)).collect();
        assert_eq!(left, all.iter().skip(20 - MOST).collect::<Vec<_>>());
        assert!(tries.iter().all(|version| !site.has(version)));
    }

    #[test]
    fn a_version_one_went_back_to_is_a_new_one() {
        let site = Site::new("back");
        let first = site.build("a{}", 0);
        for number in 1..5 {
            site.build(&format!("a{{order:{number}}}"), number);
        }
        assert_eq!(site.build("a{}", 30 * DAY), first);
        site.build("b{}", 31 * DAY);
        assert!(site.has(&first));
    }
}
