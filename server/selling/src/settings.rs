//! Settings of the sale.

use clap::Args;

/// Settings of the sale.
#[derive(Clone, Debug, Args)]
pub struct SellingSettings {
    /// Maximum sales that wait to be committed; beyond, buyers are asked to retry.
    #[arg(long, env = "COMMIT_QUEUE", default_value_t = 4_096)]
    pub commit_queue: usize,
    /// Time the first sale of a transaction waits for others, milliseconds.
    #[arg(long, env = "COMMIT_GATHER_MS", default_value_t = 2)]
    pub commit_gather_ms: u64,
    /// Caps the length of every hold, milliseconds; shows have their own, five minutes by default.
    #[arg(long, env = "HOLD_MS")]
    pub hold_ms: Option<i64>,
    /// Time a hold continues after its tab was closed, milliseconds.
    #[arg(long, env = "LEAVE_GRACE_MS", default_value_t = 30_000)]
    pub leave_grace_ms: i64,
    /// Length of an offer to the next in a waiting list, milliseconds.
    #[arg(long, env = "WAITING_OFFER_MS", default_value_t = 600_000)]
    pub waiting_offer_ms: i64,
}
