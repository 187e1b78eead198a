//! PgBouncer 1.21 or newer. Debian 12 has an older one, so it is built from the source package of Debian 13 there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::packages::{self, RequiredPackage};
use crate::command;
use crate::paths::{Paths, is_root};
use crate::progress::ProgressStep;
use crate::stop::Stop;

/// Minimum version (major, minor): the first with prepared statements in transaction mode.
const MIN_VERSION: (u32, u32) = (1, 21);
/// Debian release of the source package.
const RELEASE: &str = "trixie";
/// Keyring that verifies that release; part of Debian 12.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

const PGBOUNCER: RequiredPackage = RequiredPackage {
    what: "PgBouncer",
    debian: &["pgbouncer"],
    dnf: "pgbouncer",
    pacman: "pgbouncer",
    brew: "pgbouncer",
    otherwise: "Or set PGBOUNCER to a program.",
};

const BUILD_TOOLS: RequiredPackage = RequiredPackage {
    what: "the tools and libraries that PgBouncer is built with",
    debian: &["make", "pkg-config", "libevent-dev", "libssl-dev", "debian-archive-keyring"],
    dnf: "gcc make libevent-devel openssl-devel",
    pacman: "base-devel libevent",
    brew: "libevent openssl",
    otherwise: "Or set PGBOUNCER to a program of 1.21 or newer.",
};

/// Returns the program of `PGBOUNCER`, or the system's if it is new enough, or builds one. The system's package is
/// installed in any case: a test checks that `rowlock check` reports one that is too old.
pub fn find_or_build(paths: &Paths, stop: &Stop) -> Result<PathBuf> {
    let found = packages::require_program("PGBOUNCER", "pgbouncer", &PGBOUNCER, stop)?;
    if std::env::var_os("PGBOUNCER").is_some() || version_of(&found)? >= MIN_VERSION {
        return Ok(found);
    }
    let name = format!("pgbouncer-{RELEASE}");
    // Next to the Postgres data of root: PgBouncer refuses to run as root, and other users often cannot enter the target
    // folder.
    let folder = if is_root() { paths.postgres.with_file_name(name) } else { paths.tools().join(name) };
    let program = folder.join("pgbouncer");
    if !command::is_program(&program) {
        ensure!(
            packages::is_debian(),
            "PgBouncer is older than {}.{} here. Install a newer one, or set PGBOUNCER to its program",
            MIN_VERSION.0,
            MIN_VERSION.1
        );
        if !has_build_tools() {
            packages::install(&BUILD_TOOLS, stop)?;
        }
        let step = ProgressStep::start("build PgBouncer");
        let work = folder.join(format!("build-{}", std::process::id()));
        let built = build(&work, &program, stop);
        let _ = std::fs::remove_dir_all(&work);
        built?;
        step.done();
    }
    let version = version_of(&program)?;
    ensure!(version >= MIN_VERSION, "the PgBouncer that was built is {version:?}");
    Ok(program)
}

/// Returns `true` if [`BUILD_TOOLS`] are installed. Rust has a C compiler already, as its linker.
fn has_build_tools() -> bool {
    let mut libraries = Command::new("pkg-config");
    command::find(&["make"], &[]).is_some()
        && command::output(libraries.args(["--exists", "libevent", "openssl"])).is_ok()
        && Path::new(KEYS).exists()
}

fn version_of(program: &Path) -> Result<(u32, u32)> {
    let text = command::output(Command::new(program).arg("--version"))?;
    read_version(&text).with_context(|| format!("{} prints no version: {text:?}", program.display()))
}

fn read_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.lines().next()?.strip_prefix("PgBouncer ")?.split('.');
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
    // Separate lists and sources, so that the system's keep their release.
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
    // Atomic: another checkout may build at the same time.
    Ok(std::fs::rename(source.join("pgbouncer"), program)?)
}

/// Returns the Debian mirror of this system.
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
        assert!(Some((1, 18)) < Some(MIN_VERSION) && Some((1, 24)) >= Some(MIN_VERSION));
        assert_eq!(read_version("pgbouncer: command not found"), None);
    }
}
