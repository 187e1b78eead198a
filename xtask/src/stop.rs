//! Stop requests by Ctrl-C, SIGTERM or a closed terminal: a flag that every wait loop checks, and the guard
//! that ends the started programs if this process dies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::guard::Guard;

/// Exit status after a second Ctrl-C: the process exits at once, and the guard ends the programs.
const FORCED_EXIT_STATUS: i32 = 130;

/// The stop request and the guard.
pub struct Stop {
    is_requested: Arc<AtomicBool>,
    guard: Mutex<Guard>,
}

impl Stop {
    /// Installs the signal handlers and starts the guard.
    pub fn listen() -> Result<Self> {
        let is_requested = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Order matters: for the first signal the flag is unset here, and it is set below.
            flag::register_conditional_shutdown(signal, FORCED_EXIT_STATUS, Arc::clone(&is_requested))?;
            flag::register(signal, Arc::clone(&is_requested))?;
        }
        Ok(Self { is_requested, guard: Mutex::new(Guard::start()?) })
    }

    /// Returns `true` after a stop request.
    pub fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Relaxed)
    }

    /// Fails after a stop request; for use between two steps.
    pub fn check(&self) -> Result<()> {
        if self.is_requested() {
            bail!("stopped on request");
        }
        Ok(())
    }

    /// Registers a started process group; `stop_signal` ends it gracefully.
    pub fn register(&self, leader: u32, stop_signal: Signal) -> Result<()> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner).register(leader, stop_signal)
    }

    /// Unregisters an ended process group.
    pub fn unregister(&self, leader: u32) -> Result<()> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner).unregister(leader)
    }
}
