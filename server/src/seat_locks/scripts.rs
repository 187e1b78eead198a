//! The Lua scripts, one per file, each behind the shared prelude.

use redis::Script;

macro_rules! script {
    ($name:literal) => {
        Script::new(concat!(include_str!("lua/prelude.lua"), "\n", include_str!(concat!("lua/", $name, ".lua"))))
    };
}

/// All scripts, hashed once.
pub(super) struct Scripts {
    pub(super) lock: Script,
    pub(super) change: Script,
    pub(super) mine: Script,
    pub(super) leave: Script,
    pub(super) release: Script,
    pub(super) extend: Script,
    pub(super) unextend: Script,
    pub(super) book: Script,
    pub(super) free: Script,
    pub(super) sweep: Script,
    pub(super) snapshot: Script,
    pub(super) load: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            lock: script!("lock"),
            change: script!("change"),
            mine: script!("mine"),
            leave: script!("leave"),
            release: script!("release"),
            extend: script!("extend"),
            unextend: script!("unextend"),
            book: script!("book"),
            free: script!("free"),
            sweep: script!("sweep"),
            snapshot: script!("snapshot"),
            load: script!("load"),
        }
    }
}
