//! Versions of the site: immutable copies of a build, named by a content hash, which browsers cache without
//! revalidation (docs/decisions/0054).
//!
//!     versions/0123456789abcdef/  pkg/, style/ and fonts/ of one build; never changes
//!     versions/current            name of the version that pages use; without it they use unversioned paths
//!
//! Previous versions are retained: pages of theirs are still open and load further parts while a new version is
//! served, and a rollback needs them.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use crate::fingerprint;

/// Folders that pages load by version. The rest has fixed paths: the icon, and the workers, whose scope is their path.
const FOLDERS: [&str; 3] = ["pkg", "style", "fonts"];
/// Part of a version's hash. Raise it when the server's headers of the files change, such as types and encodings
/// (`server/rowlock/src/web/files.rs`): browsers cache the headers with a file.
const HEADERS: &str = "headers 1";
/// Previous versions that are always retained.
const MIN_PREVIOUS: usize = 3;
/// Retention of other versions after they were current: which build is deployed is unknown here.
const RETENTION: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// Maximum number of versions, so that many builds do not fill the disk.
const MAX_VERSIONS: usize = 12;

/// Publishes the built site as a version and makes it current.
#[expect(clippy::disallowed_methods, reason = "versions go by the real clock, as their folders do")]
pub fn publish(site: &Path) -> Result<()> {
    publish_at(site, SystemTime::now())
}

fn publish_at(site: &Path, now: SystemTime) -> Result<()> {
    let name = fingerprint::of(site, &FOLDERS, HEADERS)?;
    let versions = site.join("versions");
    let folder = versions.join(&name);
    if !folder.is_dir() {
        // Atomic: a server may be reading.
        let staging = versions.join("coming");
        if staging.exists() {
            std::fs::remove_dir_all(&staging)?;
        }
        for part in FOLDERS {
            copy(site, &site.join(part), &staging)?;
        }
        std::fs::rename(&staging, &folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let current = versions.join("current");
    let before = std::fs::read_to_string(&current).ok().map(|before| versions.join(before));
    // Both versions are in use now, however old their files are.
    for used in before.iter().filter(|before| before.is_dir()).chain([&folder]) {
        let used = File::open(used).with_context(|| format!("cannot open {}", used.display()))?;
        used.set_modified(now).context("cannot note when a version was in use")?;
    }
    let new = versions.join("current.new");
    std::fs::write(&new, &name).with_context(|| format!("cannot write {}", new.display()))?;
    std::fs::rename(&new, current)?;
    remove_old(&versions, &name, now)
}

/// Withdraws the current version before the site changes: browsers then revalidate files before each use.
pub fn withdraw(site: &Path) -> Result<()> {
    let current = site.join("versions/current");
    if current.exists() {
        std::fs::remove_file(&current).with_context(|| format!("cannot remove {}", current.display()))?;
    }
    Ok(())
}

/// Copies a folder of the site into a version.
fn copy(site: &Path, folder: &Path, version: &Path) -> Result<()> {
    let mut files = BTreeSet::new();
    fingerprint::collect(folder, &mut files)?;
    for file in &files {
        let to = version.join(file.strip_prefix(site)?);
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::copy(file, &to).with_context(|| format!("cannot write {}", to.display()))?;
        // Sync before the folder gets its name: its content is not verified after a power failure.
        File::open(&to)?.sync_all().with_context(|| format!("cannot keep {}", to.display()))?;
    }
    Ok(())
}

fn remove_old(versions: &Path, current: &str, now: SystemTime) -> Result<()> {
    let mut others = Vec::new();
    for entry in std::fs::read_dir(versions)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name() != *current {
            others.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    others.sort();
    for (newer, (used, folder)) in others.iter().rev().enumerate() {
        let is_old = now.duration_since(*used).is_ok_and(|age| age > RETENTION);
        if newer + 1 >= MAX_VERSIONS || (newer >= MIN_PREVIOUS && is_old) {
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

    /// A temporary site, removed on drop.
    struct TempSite(PathBuf);

    impl TempSite {
        fn new(test: &str) -> Self {
            Self(std::env::temp_dir().join(format!("rowlock-site-{test}-{}", std::process::id())))
        }

        /// Builds and publishes the site at an hour offset. Returns the version's name.
        fn build(&self, style: &str, hours: u32) -> String {
            for (file, text) in [("pkg/boot.js", "go();"), ("style/main.css", style), ("fonts/a.woff2", "a")] {
                let path = self.0.join(file);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
                std::fs::write(path, text).expect("written");
            }
            let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
            publish_at(&self.0, moment + HOUR * hours).expect("published");
            self.read("versions/current")
        }

        fn read(&self, file: &str) -> String {
            std::fs::read_to_string(self.0.join(file)).expect("readable")
        }

        fn has(&self, version: &str) -> bool {
            self.0.join("versions").join(version).is_dir()
        }
    }

    impl Drop for TempSite {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_version_is_named_by_its_content_and_never_changes() {
        let site = TempSite::new("named");
        let first = site.build("a{}", 0);
        assert_eq!(site.build("a{}", 0), first, "the same build is the same version");
        let second = site.build("b{}", 0);
        assert_ne!(second, first);
        assert_eq!(site.read(&format!("versions/{first}/style/main.css")), "a{}");
        assert_eq!(site.read(&format!("versions/{second}/style/main.css")), "b{}");
        assert_eq!(site.read(&format!("versions/{second}/pkg/boot.js")), "go();");
        assert_eq!(site.build("a{}", 0), first, "a rollback");
        assert!(first.len() == 16 && first.bytes().all(|digit| digit.is_ascii_hexdigit()), "{first}");
        withdraw(&site.0).expect("withdrawn");
        withdraw(&site.0).expect("already withdrawn");
        assert!(!site.0.join("versions/current").exists());
    }

    #[test]
    fn the_last_versions_are_retained_at_any_age() {
        let site = TempSite::new("few");
        let all: Vec<String> =
            (0..6).map(|number| site.build(&format!("a{{order:{number}}}"), number * 100 * DAY)).collect();
        let left: Vec<bool> = all.iter().map(|version| site.has(version)).collect();
        assert_eq!(left, [false, false, true, true, true, true]);
    }

    #[test]
    fn versions_are_retained_by_last_use_up_to_a_maximum() {
        let site = TempSite::new("many");
        let deployed = site.build("a{}", 0);
        // A month later, five builds until one is deployed.
        let tries: Vec<String> =
            (0..5).map(|number| site.build(&format!("a{{order:{number}}}"), 30 * DAY + number)).collect();
        assert!(site.has(&deployed) && tries.iter().all(|version| site.has(version)));
        site.build("b{}", 60 * DAY);
        assert!(!site.has(&deployed), "it was not used for a month");
        let all: Vec<String> =
            (0..20).map(|number| site.build(&format!("c{{order:{number}}}"), 60 * DAY + number)).collect();
        let left: Vec<&String> = all.iter().filter(|version| site.has(version)).collect();
        assert_eq!(left, all.iter().skip(20 - MAX_VERSIONS).collect::<Vec<_>>());
        assert!(tries.iter().all(|version| !site.has(version)));
    }

    #[test]
    fn a_rolled_back_version_counts_as_used() {
        let site = TempSite::new("back");
        let first = site.build("a{}", 0);
        for number in 1..5 {
            site.build(&format!("a{{order:{number}}}"), number);
        }
        assert_eq!(site.build("a{}", 30 * DAY), first);
        site.build("b{}", 31 * DAY);
        assert!(site.has(&first));
    }
}
