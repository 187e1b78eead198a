//! Finds or installs the programs that a machine with Rust alone lacks, or reports the install command.
//!
//! Here are promtool and HAProxy for the tests of deploy/; Node with npm for wasm-opt, Playwright and the linter of the
//! OpenAPI document; Python for schemathesis; a Chromium for the browser tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::paths::{Paths, is_root};
use crate::progress::{ProgressStep, note};
use crate::stop::Stop;
use packages::RequiredPackage;

pub mod packages;
pub mod pgbouncer;
pub mod wasm;

const PROMTOOL: RequiredPackage = RequiredPackage {
    what: "promtool, which comes with Prometheus",
    debian: &["prometheus"],
    dnf: "golang-github-prometheus",
    pacman: "prometheus",
    brew: "prometheus",
    otherwise: "Or set PROMTOOL to a program.",
};

const HAPROXY: RequiredPackage = RequiredPackage {
    what: "HAProxy 2.6 or newer",
    debian: &["haproxy"],
    dnf: "haproxy",
    pacman: "haproxy",
    brew: "haproxy",
    otherwise: "Or set HAPROXY to a program.",
};

/// Finds or installs promtool, which tests the alerts.
pub fn promtool(stop: &Stop) -> Result<PathBuf> {
    packages::require_program("PROMTOOL", "promtool", &PROMTOOL, stop)
}

/// Finds or installs HAProxy, the proxy of the rolling-update tests.
pub fn haproxy(stop: &Stop) -> Result<PathBuf> {
    packages::require_program("HAPROXY", "haproxy", &HAPROXY, stop)
}

/// Minimum version of Node for Playwright.
const MIN_NODE: u32 = 18;

const NODE: RequiredPackage = RequiredPackage {
    what: "Node.js 18 or newer, with npm",
    debian: &["nodejs", "npm"],
    dnf: "nodejs npm",
    pacman: "nodejs npm",
    brew: "node",
    otherwise: "`cargo xtask test --skip-browser --skip-api-contract` does not need it.",
};

/// Finds npm if Node is installed and new enough.
fn npm() -> Option<PathBuf> {
    let node = command::find(&["node"], &[])?;
    let text = command::output(Command::new(node).arg("--version")).ok()?;
    let major: u32 = text.trim().trim_start_matches('v').split('.').next()?.parse().ok()?;
    if major < MIN_NODE { None } else { command::find(&["npm"], &[]) }
}

/// Finds npm, or installs it with Node.
pub fn require_npm(stop: &Stop) -> Result<PathBuf> {
    if let Some(npm) = npm() {
        return Ok(npm);
    }
    packages::install(&NODE, stop)?;
    match npm() {
        Some(npm) => Ok(npm),
        None => bail!("{} is needed; the one of this system is older", NODE.what),
    }
}

/// Runs `npm ci` in a folder unless its lock file is already installed.
pub fn npm_ci(npm: &Path, folder: &Path, stop: &Stop) -> Result<()> {
    let lock = std::fs::read(folder.join("package-lock.json")).context("package-lock.json is missing")?;
    let stamp = folder.join("node_modules/.installed-lock");
    if std::fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let mut command = Command::new(npm);
    command.current_dir(folder).env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1");
    // No telemetry of packages that report their installation.
    command.env("SCARF_ANALYTICS", "false").env("DO_NOT_TRACK", "1");
    command::run_silently(command.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]), stop)?;
    Ok(std::fs::write(&stamp, lock)?)
}

/// The version tested with Chromium.
const BINARYEN: &str = "binaryen@132.0.0";

/// Finds wasm-opt, which shrinks the client to a third, or installs it in the target folder with npm: Debian's version
/// (108) produces modules that Chromium rejects. `None`, with a printed note, when that fails.
pub fn wasm_opt(paths: &Paths, stop: &Stop) -> Result<Option<PathBuf>> {
    let folder = paths.tools().join(BINARYEN);
    let program = folder.join("node_modules/.bin/wasm-opt");
    if command::is_program(&program) {
        return Ok(Some(program));
    }
    let Some(npm) = npm() else {
        note("no Node here: the client stays three times as large, but works");
        return Ok(None);
    };
    let step = ProgressStep::start("install wasm-opt");
    std::fs::create_dir_all(&folder)?;
    let mut install = Command::new(npm);
    install.args(["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]).arg(&folder);
    if let Err(error) = command::run_silently(install.arg(BINARYEN), stop) {
        stop.check()?;
        drop(step);
        note(&format!("wasm-opt cannot be installed, the client stays three times as large: {error:#}"));
        return Ok(None);
    }
    step.done();
    Ok(Some(program))
}

/// Minimum version of Python for schemathesis.
const MIN_PYTHON: (u32, u32) = (3, 10);

const PYTHON: RequiredPackage = RequiredPackage {
    what: "Python 3.10 or newer, with venv and pip",
    debian: &["python3", "python3-venv"],
    dnf: "python3 python3-pip",
    pacman: "python",
    brew: "python@3.12",
    otherwise: "`cargo xtask test --skip-api-contract` does not need it.",
};

/// Finds a Python that is new enough and can create environments.
fn python() -> Option<PathBuf> {
    let python = command::find(&["python3"], &[])?;
    // Debian ships venv without ensurepip, which is in python3-venv.
    let text =
        command::output(Command::new(&python).args(["-c", "import ensurepip, sys; print(*sys.version_info[:2])"]));
    is_new_enough(&text.ok()?).then_some(python)
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split_whitespace().map_while(|number| number.parse().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version: (u32, u32)| version >= MIN_PYTHON)
}

/// Finds Python, or installs it.
pub fn require_python(stop: &Stop) -> Result<PathBuf> {
    if python().is_none() {
        packages::install(&PYTHON, stop)?;
    }
    python().with_context(|| format!("{} is needed; the one of this system is older", PYTHON.what))
}

/// Installs the packages of `requirements` into the environment `folder`, unless they are installed. Returns the folder
/// of the programs.
pub fn pip_install(requirements: &Path, folder: &Path, stop: &Stop) -> Result<PathBuf> {
    let wanted = std::fs::read(requirements).context("the list of Python packages is missing")?;
    let (stamp, programs) = (folder.join("installed-requirements"), folder.join("bin"));
    if std::fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(programs);
    }
    let python = require_python(stop)?;
    // Remove an incomplete environment of an earlier attempt.
    let _ = std::fs::remove_dir_all(folder);
    command::run_silently(Command::new(python).args(["-m", "venv"]).arg(folder), stop)?;
    let mut install = Command::new(programs.join("python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"]);
    command::run_silently(install.arg(requirements), stop)?;
    std::fs::write(&stamp, wanted)?;
    Ok(programs)
}

/// Names of Chromium's program, the preferred one first: the headless shell draws the same pages with less work.
const CHROMIUM_NAMES: [&str; 6] =
    ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

const CHROMIUM: RequiredPackage = RequiredPackage {
    what: "Chromium",
    debian: &["chromium-headless-shell"],
    dnf: "chromium",
    pacman: "chromium",
    brew: "--cask chromium",
    otherwise: "Or set CHROMIUM to a program; or `cargo xtask test --skip-browser`.",
};

/// Installs the locked Playwright of `end2end`, with all other packages of the browser tests.
pub fn install_playwright(end2end: &Path, stop: &Stop) -> Result<()> {
    let npm = require_npm(stop)?;
    let step = ProgressStep::quiet("install Playwright");
    npm_ci(&npm, end2end, stop)?;
    step.done();
    Ok(())
}

/// Installs Playwright. Returns the Chromium program; `None` means Playwright's own download.
pub fn chromium_with_playwright(end2end: &Path, stop: &Stop) -> Result<Option<PathBuf>> {
    install_playwright(end2end, stop)?;
    if let Some(program) = require_chromium(stop)? {
        return Ok(Some(program));
    }
    let step = ProgressStep::start("download Playwright's Chromium");
    let mut download = Command::new("npx");
    download.current_dir(end2end).args(["--no-install", "playwright", "install", "--only-shell", "chromium"]);
    if packages::has_apt() && is_root() {
        // Chromium's libraries, which a new Ubuntu lacks.
        download.arg("--with-deps");
    }
    let downloaded = command::run_silently(&mut download, stop);
    if downloaded.is_err() && !packages::has_apt() {
        packages::install(&CHROMIUM, stop)?;
    }
    downloaded?;
    step.done();
    Ok(None)
}

/// Finds Chromium, or installs it on Debian. `None` elsewhere, where Playwright downloads one: Ubuntu's package is a snap,
/// which a container cannot run.
pub fn require_chromium(stop: &Stop) -> Result<Option<PathBuf>> {
    if let Some(program) = std::env::var_os("CHROMIUM") {
        return Ok(Some(PathBuf::from(program)));
    }
    if find_chromium().is_none() && packages::is_debian() {
        packages::install(&CHROMIUM, stop)?;
    }
    Ok(find_chromium())
}

fn find_chromium() -> Option<PathBuf> {
    let apps = [
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    ];
    command::find(&CHROMIUM_NAMES, &[])
        .or_else(|| apps.map(PathBuf::from).into_iter().find(|app| command::is_program(app)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_python_is_not_used() {
        for (version, usable) in
            [("3 11\n", true), ("3 10", true), ("3 9", false), ("2 7", false), ("4 0", true), ("", false)]
        {
            assert_eq!(is_new_enough(version), usable, "{version:?}");
        }
    }
}
