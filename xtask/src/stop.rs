//! Ctrl-C, SIGTERM and a closed terminal: one flag that everything which waits looks at, and the guard
//! that ends what we started should we not live to do it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::guard::Guard;

/// Exit status after a second Ctrl-C: we leave at once, and the guard ends what is left.
const IMPATIENT: i32 = 130;

/// Set once somebody asked us to end.
pub struct Stop {
    asked: Arc<AtomicBool>,
    guard: Mutex<Guard>,
}

impl Stop {
    /// Listens from now on.
    pub fn listen() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Order matters: the first signal finds the flag unset here and sets it below.
            flag::register_conditional_shutdown(signal, IMPATIENT, Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self { asked, guard: Mutex::new(Guard::start()?) })
    }

    /// Whether to end now.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Fails when asked to end; for the places between two steps.
    pub fn check(&self) -> Result<()> {
        if self.asked() {
            bail!("stopped on request");
        }
        Ok(())
    }

    /// A process group of ours began; `polite` is the signal that ends it in good order.
    pub fn began(&self, leader: u32, polite: Signal) -> Result<()> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner).began(leader, polite)
    }

    /// A process group of ours has ended.
    pub fn ended(&self, leader: u32) -> Result<()> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner).ended(leader)
    }
}
