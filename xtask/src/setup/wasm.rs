//! A Rust that compiles for the browser.
//!
//! Three ways, in this order: the target is there; rustup fetches it; Debian's `rustc-web`. The last
//! needs a linker, taken from the machine's own Rust. Where the standard library's source is at hand it is
//! compiled along: a panic then is a trap without words, and the words, with all the code that forms them,
//! are not sent to anybody.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::packages::{self, Need};
use crate::command;
use crate::places::Places;
use crate::progress::Step;
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

/// The first Rust that knows the panic strategy `immediate-abort`, as the second number of its version.
const IMMEDIATE_ABORT_SINCE: u32 = 92;
/// Compiles std for size, without backtraces.
const OWN_STD: [&str; 2] = ["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"];

/// Keeps what the linker knew of who refers to whom: without it the module cannot be taken apart.
const RELOCATIONS: &str = "-Clink-args=--emit-relocs";

/// How the browser half is compiled.
#[derive(Clone, Debug)]
pub struct Toolchain {
    rust: Rust,
    /// Whether std is compiled along.
    own_std: bool,
}

#[derive(Clone, Debug)]
enum Rust {
    /// The Rust at hand has the target.
    Ours,
    /// Debian's, which has no std for the browser but its source; with this linker.
    Debian(PathBuf),
}

/// What one asks of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// As few bytes as can be.
    Lean,
    /// Panics that say what and where.
    Talkative,
}

impl Toolchain {
    /// Finds or installs one.
    pub fn require(places: &Places, stop: &Stop) -> Result<Self> {
        let choice = std::env::var(CHOICE).unwrap_or_default();
        let sysroot = PathBuf::from(command::output(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
        if choice != "debian" {
            let there = sysroot.join("lib/rustlib").join(TARGET).join("lib").exists();
            if there || add_by_rustup(places, &["target", "add", TARGET], choice.is_empty(), stop)? {
                let source = sysroot.join("lib/rustlib/src/rust/library/std");
                let own_std = source.exists() || add_by_rustup(places, &["component", "add", "rust-src"], true, stop)?;
                return Ok(Self { rust: Rust::Ours, own_std });
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
        Ok(Self { rust: Rust::Debian(linker(&sysroot)?), own_std: true })
    }

    /// A few words for fingerprints and messages.
    pub fn name(&self) -> &'static str {
        match (&self.rust, self.own_std) {
            (Rust::Ours, true) => "rustup, std of our own",
            (Rust::Ours, false) => "rustup",
            (Rust::Debian(_), _) => "debian",
        }
    }

    /// What the compiler says of itself.
    pub fn about(&self) -> Result<String> {
        let rustc = match self.rust {
            Rust::Ours => "rustc",
            Rust::Debian(_) => "/usr/bin/rustc",
        };
        command::output(Command::new(rustc).arg("-vV"))
    }

    /// `cargo <verb> -p frontend --target …`, to be completed.
    pub fn cargo(&self, verb: &str, wish: Wish, places: &Places) -> Result<Command> {
        let mut command = match self.rust {
            Rust::Ours => Command::new("cargo"),
            Rust::Debian(_) => Command::new("/usr/bin/cargo"),
        };
        command.arg(verb);
        self.complete(&mut command, wish, places)?;
        Ok(command)
    }

    /// `cargo clippy` for the browser half, of the same Rust as compiles it.
    pub fn clippy(&self, places: &Places, stop: &Stop) -> Result<Command> {
        if matches!(self.rust, Rust::Ours) {
            return self.cargo("clippy", Wish::Lean, places);
        }
        let program = Path::new("/usr/bin/cargo-clippy");
        if !command::is_program(program) {
            packages::install(&NEED_CLIPPY, stop)?;
        }
        // Called by its path: `cargo clippy` would find the one of the other Rust first.
        let mut command = Command::new(program);
        command.arg("clippy").env("CARGO", "/usr/bin/cargo");
        self.complete(&mut command, Wish::Lean, places)?;
        Ok(command)
    }

    fn complete(&self, command: &mut Command, wish: Wish, places: &Places) -> Result<()> {
        command.current_dir(&places.root);
        command
            .args(["--package", "frontend", "--target", TARGET, "--target-dir"])
            .arg(places.target.join("wasm-build"));
        if let Rust::Debian(linker) = &self.rust {
            // The cargo that started us names its own tools to its children.
            for variable in ["RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
                command.env_remove(variable);
            }
            command.env("RUSTC", "/usr/bin/rustc").env("RUSTDOC", "/usr/bin/rustdoc");
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        let mut flags = vec![RELOCATIONS.to_owned()];
        if self.own_std {
            // Compiling std is not a stable feature of cargo yet; nor are the flags below of rustc.
            command.args(OWN_STD).env("RUSTC_BOOTSTRAP", "1");
            if wish == Wish::Lean {
                flags.push(lean_flags(&self.about()?));
            }
        }
        command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags.join(" "));
        Ok(())
    }
}

/// Flags that leave out what only helps whoever looks for a bug, for the compiler that describes itself so.
fn lean_flags(about: &str) -> String {
    let release = about.lines().find_map(|line| line.strip_prefix("release: "));
    let minor = release.and_then(|release| release.split('.').nth(1)).and_then(|minor| minor.parse::<u32>().ok());
    let abort = if minor >= Some(IMMEDIATE_ABORT_SINCE) { "-Zunstable-options -Cpanic=immediate-abort " } else { "" };
    format!("{abort}-Zlocation-detail=none -Zfmt-debug=none")
}

/// Asks rustup for something that is missing; whether it is there now. A refusal is remembered per Rust
/// version where there is another way, so that later starts do not wait for a network that is not there.
fn add_by_rustup(places: &Places, what: &[&str; 3], may_do_without: bool, stop: &Stop) -> Result<bool> {
    let Some(rustup) = command::find(&["rustup"], &[]) else {
        return Ok(false);
    };
    let memory = places.tools().join(format!("rustup-cannot-add-{}", what[2]));
    let version = command::output(Command::new("rustc").arg("-vV"))?;
    let refused = std::fs::read_to_string(&memory).is_ok_and(|known| known == version);
    // The source of std can always be done without; the target only where Debian has it.
    if refused && may_do_without && (what[0] == "component" || packages::is_debian()) {
        return Ok(false);
    }
    let step = Step::start(format!("rustup {}", what.join(" ")));
    let result = command::run_silently(Command::new(rustup).args(what), stop);
    stop.check()?;
    match result {
        Ok(()) => {
            step.done();
            Ok(true)
        }
        Err(_) => {
            step.done_with("not available");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_rust_that_knows_it_is_told_to_abort_at_once() {
        assert!(lean_flags("rustc 1.96.0\nrelease: 1.96.0\nhost: x").contains("immediate-abort"));
        assert!(!lean_flags("rustc 1.90.0\nrelease: 1.90.0\nhost: x").contains("immediate-abort"));
        assert!(!lean_flags("garbage").contains("immediate-abort"));
    }
}
