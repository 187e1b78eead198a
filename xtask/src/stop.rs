//! Ctrl-C, SIGTERM and a closed terminal: one flag that everything which waits looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit status after a second Ctrl-C: we leave at once, and the guard ends what is left.
const IMPATIENT: i32 = 130;

/// Set once somebody asked us to end.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens from now on.
    pub fn listen() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Order matters: the first signal finds the flag unset here and sets it below.
            flag::register_conditional_shutdown(signal, IMPATIENT, Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self(asked))
    }

    /// Whether to end now.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails when asked to end; for the places between two steps.
    pub fn check(&self) -> Result<()> {
        if self.asked() {
            bail!("stopped on request");
        }
        Ok(())
    }
}
