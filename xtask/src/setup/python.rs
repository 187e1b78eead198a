//! Python and virtual environments, for schemathesis.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::packages::{self, RequiredPackage};
use crate::command;
use crate::stop::Stop;

/// Minimum version of Python for schemathesis.
const MIN_VERSION: (u32, u32) = (3, 10);

const NEED: RequiredPackage = RequiredPackage {
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
    numbers.next().zip(numbers.next()).is_some_and(|version: (u32, u32)| version >= MIN_VERSION)
}

/// Installs the packages of `requirements` into the environment `folder`, unless they are installed. Returns the folder
/// of the programs.
pub fn install_locked(requirements: &Path, folder: &Path, stop: &Stop) -> Result<PathBuf> {
    let wanted = std::fs::read(requirements).context("the list of Python packages is missing")?;
    let (stamp, programs) = (folder.join("installed-requirements"), folder.join("bin"));
    if std::fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(programs);
    }
    if python().is_none() {
        packages::install(&NEED, stop)?;
    }
    let Some(python) = python() else { bail!("{} is needed; the one of this system is older", NEED.what) };
    // Remove an incomplete environment of an earlier attempt.
    let _ = std::fs::remove_dir_all(folder);
    command::run_silently(Command::new(python).args(["-m", "venv"]).arg(folder), stop)?;
    let mut install = Command::new(programs.join("python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"]);
    command::run_silently(install.arg(requirements), stop)?;
    std::fs::write(&stamp, wanted)?;
    Ok(programs)
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
