//! The Rust toolchain of the client (WebAssembly).
//!
//! The options, in order: the installed target, the target added by rustup, Debian's `rustc-web`. The last
//! needs a linker, taken from the installed Rust. When the source of std is available, a build for delivery compiles
//! it as well: a panic is then a trap without a message, and the code of panic messages is not sent to browsers. With
//! Debian's Rust every build compiles it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::packages::{self, RequiredPackage};
use crate::command;
use crate::paths::Paths;
use crate::progress::ProgressStep;
use crate::stop::Stop;

pub const TARGET: &str = "wasm32-unknown-unknown";
/// Environment variable that selects `rustup` or `debian`.
const CHOICE: &str = "ROWLOCK_WASM_TOOLCHAIN";

const NEED: RequiredPackage = RequiredPackage {
    what: "a Rust that compiles for the browser",
    debian: &["rustc-web", "cargo-web", "rust-web-src"],
    dnf: "rust-std-static-wasm32-unknown-unknown",
    pacman: "rust-wasm",
    brew: "rustup",
    otherwise: "With rustup and a connection, `rustup target add wasm32-unknown-unknown` is enough.",
};
/// The linter of Debian's Rust, needed only by `cargo xtask ci`.
const NEED_CLIPPY: RequiredPackage =
    RequiredPackage { what: "clippy for rustc-web", debian: &["rust-web-clippy"], ..NEED };

/// Minor version of the first Rust with the panic strategy `immediate-abort`.
const IMMEDIATE_ABORT_SINCE: u32 = 92;
/// Flags that compile std for size, without backtraces.
const BUILD_STD: [&str; 2] = ["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"];

/// Keeps relocations in the module: splitting it needs them.
const RELOCATIONS: &str = "-Clink-args=--emit-relocs";

/// The toolchain of the client.
#[derive(Clone, Debug)]
pub struct Toolchain {
    rust: Rust,
    /// True when std can be compiled as well.
    has_std_source: bool,
}

#[derive(Clone, Debug)]
enum Rust {
    /// The installed Rust has the target.
    Installed,
    /// Debian's Rust, which has std for the target only as source; with this linker.
    Debian(PathBuf),
}

/// Optimisation goal of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    SmallSize,
    QuickBuild,
    /// Panics with message and location.
    PanicMessages,
}

impl Toolchain {
    pub fn require(paths: &Paths, stop: &Stop) -> Result<Self> {
        let choice = std::env::var(CHOICE).unwrap_or_default();
        let sysroot = PathBuf::from(command::output(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
        if choice != "debian" {
            let there = sysroot.join("lib/rustlib").join(TARGET).join("lib").exists();
            if there || add_by_rustup(paths, &["target", "add", TARGET], choice.is_empty(), stop)? {
                let source = sysroot.join("lib/rustlib/src/rust/library/std");
                let has_std_source =
                    source.exists() || add_by_rustup(paths, &["component", "add", "rust-src"], true, stop)?;
                return Ok(Self { rust: Rust::Installed, has_std_source });
            }
        }
        if choice == "rustup" {
            bail!("{CHOICE}=rustup, but rustup cannot add {TARGET}");
        }
        let source = Path::new("/usr/lib/rustlib/src/rust/library/std");
        let there = ["/usr/bin/rustc", "/usr/bin/cargo"].iter().all(|program| command::is_program(Path::new(program)));
        if !there || !source.exists() {
            if packages::has_apt() && !packages::is_debian() {
                bail!("rustup cannot add {TARGET}, and only Debian has a package for it. {}", NEED.otherwise);
            }
            packages::install(&NEED, stop)?;
        }
        Ok(Self { rust: Rust::Debian(linker(&sysroot)?), has_std_source: true })
    }

    /// Returns a short name for fingerprints and messages.
    pub fn name(&self) -> &'static str {
        match (&self.rust, self.has_std_source) {
            (Rust::Installed, true) => "rustup, std of our own",
            (Rust::Installed, false) => "rustup",
            (Rust::Debian(_), _) => "debian",
        }
    }

    pub fn about(&self) -> Result<String> {
        let rustc = match self.rust {
            Rust::Installed => "rustc",
            Rust::Debian(_) => "/usr/bin/rustc",
        };
        command::output(Command::new(rustc).arg("-vV"))
    }

    /// Creates `cargo <verb> -p frontend --target …`; the caller adds arguments.
    pub fn cargo(&self, verb: &str, goal: Goal, paths: &Paths) -> Result<Command> {
        let mut command = match self.rust {
            Rust::Installed => Command::new("cargo"),
            Rust::Debian(_) => Command::new("/usr/bin/cargo"),
        };
        command.arg(verb);
        self.complete(&mut command, goal, paths)?;
        Ok(command)
    }

    /// Creates `cargo clippy` for the client, of the Rust that compiles it.
    pub fn clippy(&self, paths: &Paths, stop: &Stop) -> Result<Command> {
        if matches!(self.rust, Rust::Installed) {
            return self.cargo("clippy", Goal::SmallSize, paths);
        }
        let program = Path::new("/usr/bin/cargo-clippy");
        if !command::is_program(program) {
            packages::install(&NEED_CLIPPY, stop)?;
        }
        // Called by path: `cargo clippy` would find the other Rust's clippy first.
        let mut command = Command::new(program);
        command.arg("clippy").env("CARGO", "/usr/bin/cargo");
        self.complete(&mut command, Goal::SmallSize, paths)?;
        Ok(command)
    }

    fn complete(&self, command: &mut Command, goal: Goal, paths: &Paths) -> Result<()> {
        command.current_dir(&paths.root);
        command
            .args(["--package", "frontend", "--target", TARGET, "--target-dir"])
            .arg(paths.target.join("wasm-build"));
        if let Rust::Debian(linker) = &self.rust {
            // The parent cargo sets these variables to its own tools.
            for variable in ["RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
                command.env_remove(variable);
            }
            command.env("RUSTC", "/usr/bin/rustc").env("RUSTDOC", "/usr/bin/rustdoc");
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        let mut flags = vec![RELOCATIONS.to_owned()];
        let builds_std = match self.rust {
            Rust::Installed => self.has_std_source && goal == Goal::SmallSize,
            Rust::Debian(_) => true,
        };
        if builds_std {
            // Compiling std is unstable in cargo, and the flags below are unstable in rustc.
            command.args(BUILD_STD).env("RUSTC_BOOTSTRAP", "1");
            // Without messages of panics there is less to compile.
            if goal != Goal::PanicMessages {
                flags.push(small_size_flags(&self.about()?));
            }
        }
        command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags.join(" "));
        Ok(())
    }
}

/// Returns flags that omit debugging aids, for the compiler with this version text.
fn small_size_flags(about: &str) -> String {
    let release = about.lines().find_map(|line| line.strip_prefix("release: "));
    let minor = release.and_then(|release| release.split('.').nth(1)).and_then(|minor| minor.parse::<u32>().ok());
    let abort = if minor >= Some(IMMEDIATE_ABORT_SINCE) { "-Zunstable-options -Cpanic=immediate-abort " } else { "" };
    format!("{abort}-Zlocation-detail=none -Zfmt-debug=none")
}

/// Adds a target or component with rustup. Returns `true` on success. A failure is cached per Rust version
/// when there is an alternative, so that later starts do not wait for a missing network.
fn add_by_rustup(paths: &Paths, arguments: &[&str; 3], is_optional: bool, stop: &Stop) -> Result<bool> {
    let Some(rustup) = command::find(&["rustup"], &[]) else {
        return Ok(false);
    };
    let cached_failure = paths.tools().join(format!("rustup-cannot-add-{}", arguments[2]));
    let version = command::output(Command::new("rustc").arg("-vV"))?;
    let refused = std::fs::read_to_string(&cached_failure).is_ok_and(|known| known == version);
    // The source of std is optional; the target has an alternative only on Debian.
    if refused && is_optional && (arguments[0] == "component" || packages::is_debian()) {
        return Ok(false);
    }
    let step = ProgressStep::start(format!("rustup {}", arguments.join(" ")));
    let result = command::run_silently(Command::new(rustup).args(arguments), stop);
    stop.check()?;
    match result {
        Ok(()) => {
            step.done();
            Ok(true)
        }
        Err(_) => {
            step.done_with("not available");
            std::fs::create_dir_all(paths.tools())?;
            std::fs::write(cached_failure, version)?;
            Ok(false)
        }
    }
}

/// Finds LLVM's linker: that of the rustup toolchain, or the system's.
fn linker(sysroot: &Path) -> Result<PathBuf> {
    let about = command::output(Command::new("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc prints no host")?;
    let inside = sysroot.join("lib/rustlib").join(host).join("bin/rust-lld");
    if command::is_program(&inside) {
        return Ok(inside);
    }
    command::find(&["rust-lld", "wasm-ld"], &[])
        .context("a linker for WebAssembly is missing: install the package lld and start again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediate_abort_is_set_only_for_a_rust_that_supports_it() {
        assert!(small_size_flags("rustc 1.96.0\nrelease: 1.96.0\nhost: x").contains("immediate-abort"));
        assert!(!small_size_flags("rustc 1.90.0\nrelease: 1.90.0\nhost: x").contains("immediate-abort"));
        assert!(!small_size_flags("garbage").contains("immediate-abort"));
    }
}
