//! Finds or installs the programs that a machine with Rust alone lacks, or reports the install command.

pub mod chromium;
pub mod node;
pub mod operating;
pub mod packages;
pub mod pgbouncer;
pub mod python;
pub mod wasm;
pub mod wasm_opt;
