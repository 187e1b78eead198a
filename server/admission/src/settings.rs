//! Settings of admission.

use clap::Args;

/// Settings of admission.
#[derive(Clone, Debug, Args)]
pub struct AdmissionSettings {
    /// Attempts to take seats of one show a second, as one server sees them, above which visitors are asked to solve a
    /// puzzle first, where the show is a flash sale or has a waiting room; 0: they never are.
    #[arg(long, env = "PUZZLE_HOLDS_PER_S", default_value_t = 20)]
    pub puzzle_holds_per_s: u32,
    /// Tries for seats a visitor has in a minute, all servers together: so many at once, then one after another as they
    /// come back; 0: as many as they like.
    #[arg(long, env = "HOLDS_PER_VISITOR_MIN", default_value_t = 60)]
    pub holds_per_visitor_min: u32,
    /// The same for everybody who comes from one address of the network.
    #[arg(long, env = "HOLDS_PER_ADDRESS_MIN", default_value_t = 1_200)]
    pub holds_per_address_min: u32,
    /// Tickets of one waiting room that an address of the network takes in a row, all servers together; as many again
    /// are back within twenty minutes. The first sixth costs no puzzle; 0: no limit and no puzzles.
    #[arg(long, env = "QUEUE_TICKETS_PER_ADDRESS", default_value_t = 120)]
    pub queue_tickets_per_address: u32,
    /// Somebody who holds seats again and again is not said to have bought nothing before so long, milliseconds: they may
    /// be about to pay.
    #[arg(long, env = "NEVER_BOUGHT_AFTER_MS", default_value_t = domain::fairness::NEVER_BOUGHT_AFTER_MS)]
    pub never_bought_after_ms: i64,
}
