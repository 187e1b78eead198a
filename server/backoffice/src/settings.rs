//! Settings of rehearsals, and of webhooks to other systems.

use clap::Args;
use domain::time::MINUTE_MS;

/// Settings of rehearsals.
#[derive(Clone, Debug, Args)]
pub struct RehearsalSettings {
    /// Minutes before and after the opening of a show's waiting room in which no rehearsal may start; 0: none.
    #[arg(long, env = "REHEARSAL_QUIET_MIN", default_value_t = 60)]
    pub rehearsal_quiet_min: u32,
}

impl RehearsalSettings {
    /// The same time in milliseconds.
    #[must_use]
    pub fn quiet_ms(&self) -> i64 {
        i64::from(self.rehearsal_quiet_min) * MINUTE_MS
    }
}

/// Settings of webhooks to other systems.
#[derive(Clone, Debug, Args)]
pub struct WebhookSettings {
    /// Timeout of a webhook delivery, milliseconds.
    #[arg(long, env = "WEBHOOK_DEADLINE_MS", default_value_t = 10_000)]
    pub webhook_deadline_ms: u64,
    /// Base of the webhook back-off, milliseconds: the first retry comes within this; each further limit doubles.
    #[arg(long, env = "WEBHOOK_FIRST_PAUSE_MS", default_value_t = 5_000)]
    pub webhook_first_pause_ms: u64,
    /// Allows webhooks to private addresses and without TLS. For tests only: in production it exposes the server's own
    /// network to theatre managers.
    #[arg(long, env = "WEBHOOKS_MAY_BE_PRIVATE")]
    pub webhooks_may_be_private: bool,
}
