//! Settings of webhooks to other systems.

use clap::Args;

/// Settings of webhooks to other systems.
#[derive(Clone, Debug, Args)]
pub struct WebhookSettings {
    /// How long another system may take to answer a webhook, milliseconds.
    #[arg(long, env = "WEBHOOK_DEADLINE_MS", default_value_t = 10_000)]
    pub webhook_deadline_ms: u64,
    /// The second try of a webhook comes within twice this, each further one within twice the one before, milliseconds.
    #[arg(long, env = "WEBHOOK_FIRST_PAUSE_MS", default_value_t = 5_000)]
    pub webhook_first_pause_ms: u64,
    /// Lets webhooks go to addresses that are not on the public internet, and without TLS: for tests, never where
    /// managers of theatres are not to see our own network.
    #[arg(long, env = "WEBHOOKS_MAY_BE_PRIVATE")]
    pub webhooks_may_be_private: bool,
}
