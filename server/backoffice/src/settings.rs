//! Settings of webhooks to other systems.

use clap::Args;

/// Settings of webhooks to other systems.
#[derive(Clone, Debug, Args)]
pub struct WebhookSettings {
    /// Timeout of a webhook delivery, milliseconds.
    #[arg(long, env = "WEBHOOK_DEADLINE_MS", default_value_t = 10_000)]
    pub webhook_deadline_ms: u64,
    /// Base of the webhook back-off, milliseconds: the first retry comes within twice this; each further limit doubles.
    #[arg(long, env = "WEBHOOK_FIRST_PAUSE_MS", default_value_t = 5_000)]
    pub webhook_first_pause_ms: u64,
    /// Allows webhooks to private addresses and without TLS. For tests only: in production it exposes the server's own
    /// network to theatre managers.
    #[arg(long, env = "WEBHOOKS_MAY_BE_PRIVATE")]
    pub webhooks_may_be_private: bool,
}
