//! A PgBouncer that works in front of Postgres: 1.21 or newer. Debian 12 has an older one, so there it is built from the
//! source package of Debian 13.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::operating::require;
use super::packages::{self, Need};
use crate::command;
use crate::places::{Places, is_root};
use crate::progress::Step;
use crate::stop::Stop;

/// The oldest that keeps prepared statements apart in transaction mode: major, minor.
const OLDEST: (u32, u32) = (1, 21);
/// The release of Debian whose source is built.
const RELEASE: &str = "trixie";
/// The keys that sign that release, on every Debian 12.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

const PGBOUNCER: Need = Need {
    what: "PgBouncer",
    debian: &["pgbouncer"],
    dnf: "pgbouncer",
    pacman: "pgbouncer",
    brew: "pgbouncer",
    otherwise: "Or set PGBOUNCER to the program of one.",
};

const BUILD_TOOLS: Need = Need {
    what: "the compiler and libraries PgBouncer is built with",
    debian: &["gcc", "make", "pkg-config", "libevent-dev", "libssl-dev", "debian-archive-keyring"],
    dnf: "gcc make libevent-devel openssl-devel",
    pacman: "base-devel libevent",
    brew: "libevent openssl",
    otherwise: "Or set PGBOUNCER to a program of 1.21 or newer.",
};

/// The program that `PGBOUNCER` names, the system's if it is new enough, or else one that is built here once. The
/// system's is installed in any case: a test checks that `rowlock check` finds one that is too old.
pub fn find_or_build(places: &Places, stop: &Stop) -> Result<PathBuf> {
    let found = require("PGBOUNCER", "pgbouncer", &PGBOUNCER, stop)?;
    if std::env::var_os("PGBOUNCER").is_some() || version_of(&found)? >= OLDEST {
        return Ok(found);
    }
    // Beside the data of Postgres: it refuses to be run by root, and other users can often not enter the target folder.
    let folder = places.postgres.with_file_name(format!("pgbouncer-{RELEASE}"));
    let program = folder.join("pgbouncer");
    if !command::is_program(&program) {
        ensure!(
            packages::is_debian() && is_root(),
            "PgBouncer is older than {}.{} here. Install a newer one, or set PGBOUNCER to the program of one",
            OLDEST.0,
            OLDEST.1
        );
        packages::install(&BUILD_TOOLS, stop)?;
        let step = Step::start("build PgBouncer");
        let work = folder.join(format!("build-{}", std::process::id()));
        let built = build(&work, &program, stop);
        let _ = std::fs::remove_dir_all(&work);
        built?;
        step.done();
    }
    let version = version_of(&program)?;
    ensure!(version >= OLDEST, "the PgBouncer that was built is {version:?}");
    Ok(program)
}

/// Major and minor, as `pgbouncer --version` begins.
fn version_of(program: &Path) -> Result<(u32, u32)> {
    let said = command::output(Command::new(program).arg("--version"))?;
    read_version(&said).with_context(|| format!("{} prints no version: {said:?}", program.display()))
}

fn read_version(said: &str) -> Option<(u32, u32)> {
    let mut parts = said.lines().next()?.strip_prefix("PgBouncer ")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Downloads the source with apt, which checks its signature, and builds it.
fn build(folder: &Path, program: &Path, stop: &Stop) -> Result<()> {
    let source = folder.join("source");
    for part in ["source", "lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(folder.join(part))?;
    }
    let list = folder.join("sources.list");
    std::fs::write(&list, format!("deb-src [signed-by={KEYS}] {} {RELEASE} main\n", mirror()?))?;
    // Separate lists and sources: the system's stay those of its release.
    let apt = |words: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.current_dir(&source).env("DEBIAN_FRONTEND", "noninteractive");
        for (option, path) in [
            ("Dir::Etc::SourceList", list.clone()),
            ("Dir::Etc::SourceParts", PathBuf::from("/dev/null")),
            ("Dir::State::Lists", folder.join("lists")),
            ("Dir::Cache", folder.join("cache")),
        ] {
            apt.arg("-o").arg(format!("{option}={}", path.display()));
        }
        apt.args(words);
        apt
    };
    command::run_silently(&mut apt(&["update"]), stop)?;
    command::run_silently(&mut apt(&["source", "--download-only", "pgbouncer"]), stop)?;
    let archive = std::fs::read_dir(&source)?.filter_map(|file| Some(file.ok()?.path()));
    let archive = archive.into_iter().find(|path| path.to_string_lossy().ends_with(".orig.tar.gz"));
    let archive = archive.context("the source package of PgBouncer has no archive of its source")?;
    command::run_silently(
        Command::new("tar").args(["--strip-components=1", "-xzf"]).arg(&archive).current_dir(&source),
        stop,
    )?;
    let options = ["--without-cares", "--without-pam", "--without-systemd"];
    command::run_silently(Command::new("./configure").args(options).current_dir(&source), stop)?;
    command::run_silently(Command::new("make").args(["-j2", "pgbouncer"]).current_dir(&source), stop)?;
    // At once or not at all: another checkout may be building as well.
    Ok(std::fs::rename(source.join("pgbouncer"), program)?)
}

/// The mirror of this system's packages.
fn mirror() -> Result<String> {
    let question = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"];
    let mirrors = command::output(Command::new("apt-get").args(question))?;
    mirrors.lines().next().map(str::to_owned).context("apt knows no mirror of Debian")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_first_two_numbers_of_the_first_line() {
        assert_eq!(read_version("PgBouncer 1.24.1\nlibevent 2.1.12-stable\n"), Some((1, 24)));
        assert_eq!(read_version("PgBouncer 1.18.0"), Some((1, 18)));
        assert!(Some((1, 18)) < Some(OLDEST) && Some((1, 24)) >= Some(OLDEST));
        assert_eq!(read_version("pgbouncer: command not found"), None);
    }
}
