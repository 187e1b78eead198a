//! Settings of admission.

use clap::Args;

/// Settings of admission.
#[derive(Clone, Debug, Args)]
pub struct AdmissionSettings {
    /// Attempts at seats of one show per second, as seen by one server, above which visitors must solve a puzzle first,
    /// if the show is a flash sale or has a waiting room; 0: no puzzles.
    #[arg(long, env = "PUZZLE_HOLDS_PER_S", default_value_t = 20)]
    pub puzzle_holds_per_s: u32,
    /// Attempts at seats of a visitor per minute, at all servers together: so many in a burst, refilled evenly; 0: no
    /// limit.
    #[arg(long, env = "HOLDS_PER_VISITOR_MIN", default_value_t = 60)]
    pub holds_per_visitor_min: u32,
    /// Attempts at seats of one network address per minute, likewise.
    #[arg(long, env = "HOLDS_PER_ADDRESS_MIN", default_value_t = 1_200)]
    pub holds_per_address_min: u32,
    /// Tickets of one waiting room that a network address may take in a burst, at all servers together; refilled within
    /// twenty minutes. The first sixth costs no puzzle; 0: no limit and no puzzles.
    #[arg(long, env = "QUEUE_TICKETS_PER_ADDRESS", default_value_t = 120)]
    pub queue_tickets_per_address: u32,
    /// Time from the first attempt before a visitor with many holds is flagged as buying nothing, milliseconds: a
    /// payment may be in progress.
    #[arg(long, env = "NEVER_BOUGHT_AFTER_MS", default_value_t = domain::fairness::NEVER_BOUGHT_AFTER_MS)]
    pub never_bought_after_ms: i64,
}
