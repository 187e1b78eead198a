//! A Rust that compiles for the browser.
//!
//! Three ways, in this order: the target is there; rustup fetches it; Debian's `rustc-web`, which
//! builds the standard library itself. The last needs a linker, taken from the machine's own Rust.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::packages::{self, Need};
use crate::command;
use crate::places::Places;
use crate::progress::{Step, note};
use crate::stop::Stop;

/// What we compile for.
pub const TARGET: &str = "wasm32-unknown-unknown";
/// Chooses a way by hand: `rustup` or `debian`.
const CHOICE: &str = "ROWLOCK_WASM_TOOLCHAIN";

const NEED: Need = Need {
    what: "a Rust that compiles for the browser",
    debian: &["rustc-web", "cargo-web", "rust-web-src"],
    dnf: "rust-std-static-wasm32-unknown-unknown",
    pacman: "rust-wasm",
    brew: "rustup",
    otherwise: "With rustup and a connection, `rustup target add wasm32-unknown-unknown` is enough.",
};
/// Its linter, for `cargo xtask ci` alone.
const NEED_CLIPPY: Need = Need { what: "clippy for rustc-web", debian: &["rust-web-clippy"], ..NEED };

/// How the browser half is compiled.
#[derive(Clone, Debug)]
pub enum Toolchain {
    /// The Rust at hand has the target.
    Ours,
    /// Debian's, building std; with this linker.
    Debian(PathBuf),
}

impl Toolchain {
    /// Finds or installs one.
    pub fn require(places: &Places, stop: &Stop) -> Result<Self> {
        let choice = std::env::var(CHOICE).unwrap_or_default();
        let sysroot = PathBuf::from(command::output(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
        if choice != "debian" {
            if sysroot.join("lib/rustlib").join(TARGET).join("lib").exists() {
                return Ok(Self::Ours);
            }
            if add_by_rustup(places, &choice, stop)? {
                return Ok(Self::Ours);
            }
        }
        if choice == "rustup" {
            bail!("{CHOICE}=rustup, but rustup cannot add {TARGET}");
        }
        let source = Path::new("/usr/lib/rustlib/src/rust/library/std");
        let there = ["/usr/bin/rustc", "/usr/bin/cargo"].iter().all(|program| command::is_program(Path::new(program)));
        if !there || !source.exists() {
            packages::install(&NEED, stop)?;
        }
        Ok(Self::Debian(linker(&sysroot)?))
    }

    /// One word for fingerprints and messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ours => "rustup",
            Self::Debian(_) => "debian",
        }
    }

    /// `cargo <verb> -p frontend --target …`, to be completed.
    pub fn cargo(&self, verb: &str, places: &Places) -> Command {
        let mut command = match self {
            Self::Ours => Command::new("cargo"),
            Self::Debian(_) => Command::new("/usr/bin/cargo"),
        };
        command.arg(verb);
        self.complete(&mut command, places);
        command
    }

    /// `cargo clippy` for the browser half, of the same Rust as compiles it.
    pub fn clippy(&self, places: &Places, stop: &Stop) -> Result<Command> {
        if matches!(self, Self::Ours) {
            return Ok(self.cargo("clippy", places));
        }
        let program = Path::new("/usr/bin/cargo-clippy");
        if !command::is_program(program) {
            packages::install(&NEED_CLIPPY, stop)?;
        }
        // Called by its path: `cargo clippy` would find the one of the other Rust first.
        let mut command = Command::new(program);
        command.arg("clippy").env("CARGO", "/usr/bin/cargo");
        self.complete(&mut command, places);
        Ok(command)
    }

    fn complete(&self, command: &mut Command, places: &Places) {
        command.current_dir(&places.root);
        command
            .args(["--package", "frontend", "--target", TARGET, "--target-dir"])
            .arg(places.target.join("wasm-build"));
        if let Self::Debian(linker) = self {
            // The cargo that started us names its own tools to its children.
            for variable in ["RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
                command.env_remove(variable);
            }
            command.arg("-Zbuild-std=std,panic_abort");
            command.env("RUSTC", "/usr/bin/rustc").env("RUSTDOC", "/usr/bin/rustdoc").env("RUSTC_BOOTSTRAP", "1");
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
    }
}

/// Whether rustup has the target now. A refusal is remembered per Rust version where Debian's way is
/// open, so that later starts do not wait for a network that is not there.
fn add_by_rustup(places: &Places, choice: &str, stop: &Stop) -> Result<bool> {
    let Some(rustup) = command::find(&["rustup"], &[]) else {
        return Ok(false);
    };
    let memory = places.tools().join("rustup-cannot-add-wasm");
    let version = command::output(Command::new("rustc").arg("-vV"))?;
    let refused = std::fs::read_to_string(&memory).is_ok_and(|known| known == version);
    if refused && choice.is_empty() && packages::is_debian() {
        return Ok(false);
    }
    let step = Step::start(format!("rustup target add {TARGET}"));
    let result = command::run_silently(Command::new(rustup).args(["target", "add", TARGET]), stop);
    stop.check()?;
    match result {
        Ok(()) => {
            step.done();
            Ok(true)
        }
        Err(_) => {
            step.done_with("not to be had");
            note("trying the packages of Debian instead");
            std::fs::create_dir_all(places.tools())?;
            std::fs::write(memory, version)?;
            Ok(false)
        }
    }
}

/// LLVM's linker: the one inside a rustup toolchain, or the system's.
fn linker(sysroot: &Path) -> Result<PathBuf> {
    let about = command::output(Command::new("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names its host")?;
    let inside = sysroot.join("lib/rustlib").join(host).join("bin/rust-lld");
    if command::is_program(&inside) {
        return Ok(inside);
    }
    command::find(&["rust-lld", "wasm-ld"], &[])
        .context("a linker for WebAssembly is missing: install the package lld and start again")
}
