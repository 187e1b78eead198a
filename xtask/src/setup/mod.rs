//! What a machine with Rust and nothing else still lacks: found, installed, or named.

pub mod chromium;
pub mod node;
pub mod operating;
pub mod packages;
pub mod pgbouncer;
pub mod python;
pub mod wasm;
pub mod wasm_opt;
