//! Settings: flags, the environment, a file ([`given`]), checked at start ([`Config::wrong`]).
//!
//! Secrets have no defaults, and are shown nowhere.

mod file;
mod given;
mod secrets;
mod wrong;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::bookings::CommitMode;

pub use given::{Refused, given, settings};
pub use wrong::Wrong;
pub(crate) use wrong::is_origin;

/// What `rowlock serve` needs to know.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// Where to listen.
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:3000")]
    pub listen: SocketAddr,
    /// The address people type: decides cookie security, allowed origins and links in mails.
    #[arg(long, env = "PUBLIC_URL", default_value = "http://127.0.0.1:3000")]
    pub public_url: String,
    /// The region this server sells for, where there are several; one of those in `REGIONS`.
    #[arg(long, env = "REGION")]
    pub region: Option<String>,
    /// All regions and the addresses people type there: `eu=https://eu.example.org,us=https://us.example.org`.
    #[arg(long, env = "REGIONS", value_delimiter = ',')]
    pub regions: Vec<String>,
    /// Postgres, `postgres://…`.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: String,
    /// A standby of Postgres that follows `DATABASE_URL` by streaming, `postgres://…`: pages and lists for everybody are
    /// read there, while it is near enough.
    #[arg(long, env = "CATALOGUE_DATABASE_URL", hide_env_values = true)]
    pub catalogue_database_url: Option<String>,
    /// Redis: one server, `redis://[user:password@]host[:6379][/db]`; the master that sentinels name,
    /// `redis+sentinel://[user:password@]host[:26379],host2…/service[?db=0&sentinel_password=…]`; or a
    /// Cluster, `redis+cluster://[user:password@]host[:6379],host2…`. `rediss…` is the same over TLS.
    #[arg(long, env = "REDIS_URL", hide_env_values = true)]
    pub redis_url: String,
    /// Put in front of every Redis key, so that tests can share one Redis.
    #[arg(long, env = "REDIS_PREFIX", default_value = "")]
    pub redis_prefix: String,
    /// A second Redis that is asked everything the first is asked, and whose answers are compared: before
    /// it takes the first one's place, and never for an answer to anybody.
    #[arg(long, env = "SHADOW_REDIS_URL", hide_env_values = true)]
    pub shadow_redis_url: Option<String>,
    /// Signs the tokens of programs, 32 characters or more; two, separated by a comma, while one is being replaced:
    /// the first signs.
    #[arg(long, env = "TOKEN_SECRET", hide_env_values = true, value_delimiter = ',', required = true)]
    pub token_secret: Vec<String>,
    /// Proxies of ours in front, each of which adds whom it was asked by to `X-Forwarded-For`.
    #[arg(long, env = "TRUSTED_PROXIES", default_value_t = 0)]
    pub trusted_proxies: usize,
    /// The browser half, as `cargo xtask site` builds it.
    #[arg(long, env = "SITE_ROOT", default_value = "target/site")]
    pub site_root: PathBuf,
    /// What whoever reads `/metrics` must know, as a bearer token; without it there is no such page.
    #[arg(long, env = "METRICS_TOKEN", hide_env_values = true)]
    pub metrics_token: Option<String>,
    /// Where a CDN in front of us is told what to forget: tags, as JSON, by POST.
    #[arg(long, env = "CDN_PURGE_URL", hide_env_values = true)]
    pub cdn_purge_url: Option<String>,
    /// What it knows us by there, as a bearer token.
    #[arg(long, env = "CDN_PURGE_TOKEN", hide_env_values = true)]
    pub cdn_purge_token: Option<String>,
    /// Connections to Postgres at most.
    #[arg(long, env = "DATABASE_CONNECTIONS", default_value_t = 16)]
    pub database_connections: u32,
    /// How sales are committed: many in a transaction, or each by itself.
    #[arg(long, env = "COMMITS", value_enum, default_value_t = CommitMode::Batched)]
    pub commits: CommitMode,
    /// Sales that may wait to be committed at most; beyond, people are asked to come back.
    #[arg(long, env = "COMMIT_QUEUE", default_value_t = 4_096)]
    pub commit_queue: usize,
    /// How long the first of a transaction waits for others, milliseconds.
    #[arg(long, env = "COMMIT_GATHER_MS", default_value_t = 2)]
    pub commit_gather_ms: u64,
    /// Caps the length of every hold, milliseconds; shows have their own, five minutes by default.
    #[arg(long, env = "HOLD_MS")]
    pub hold_ms: Option<i64>,
    /// How long a hold outlives a closed tab, milliseconds.
    #[arg(long, env = "LEAVE_GRACE_MS", default_value_t = 30_000)]
    pub leave_grace_ms: i64,
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
    /// Live maps that may be open from one address of the network at one server; 0: as many as there is room for.
    #[arg(long, env = "SOCKETS_PER_ADDRESS", default_value_t = 500)]
    pub sockets_per_address: usize,
    /// Tickets of one waiting room that an address of the network takes in a row, all servers together; as many again
    /// are back within twenty minutes. The first sixth costs no puzzle; 0: no limit and no puzzles.
    #[arg(long, env = "QUEUE_TICKETS_PER_ADDRESS", default_value_t = 120)]
    pub queue_tickets_per_address: u32,
    /// Somebody who holds seats again and again is not said to have bought nothing before so long, milliseconds: they may
    /// be about to pay.
    #[arg(long, env = "NEVER_BOUGHT_AFTER_MS", default_value_t = domain::fairness::NEVER_BOUGHT_AFTER_MS)]
    pub never_bought_after_ms: i64,
    /// How long seats are held for the next in a waiting list, milliseconds.
    #[arg(long, env = "WAITING_OFFER_MS", default_value_t = 600_000)]
    pub waiting_offer_ms: i64,
    /// Who takes the money: `simulator`, `stripe`, or both separated by a comma. The first is asked; the second
    /// when the first is down.
    #[arg(long, env = "PAYMENT_GATEWAYS", default_value = "simulator", value_delimiter = ',')]
    pub payment_gateways: Vec<String>,
    /// Lets the payment simulator stand in for a gateway behind an https `PUBLIC_URL`, where people could take it for
    /// one: no money moves. For systems to practise on.
    #[arg(long, env = "ALLOW_SIMULATOR")]
    pub allow_simulator: bool,
    /// Where the payment simulator is.
    #[arg(long, env = "SIMULATOR_URL")]
    pub simulator_url: Option<String>,
    /// Our key there.
    #[arg(long, env = "SIMULATOR_API_KEY", hide_env_values = true)]
    pub simulator_api_key: Option<String>,
    /// Its webhook secret; two, separated by a comma, while one is being replaced.
    #[arg(long, env = "SIMULATOR_WEBHOOK_SECRET", hide_env_values = true, value_delimiter = ',')]
    pub simulator_webhook_secret: Vec<String>,
    /// Where Stripe is.
    #[arg(long, env = "STRIPE_URL", default_value = "https://api.stripe.com")]
    pub stripe_url: String,
    /// Our secret key there, `sk_…` or `rk_…`.
    #[arg(long, env = "STRIPE_SECRET_KEY", hide_env_values = true)]
    pub stripe_secret_key: Option<String>,
    /// The secret of our webhook endpoint there, `whsec_…`; two, separated by a comma, while one is being
    /// replaced.
    #[arg(long, env = "STRIPE_WEBHOOK_SECRET", hide_env_values = true, value_delimiter = ',')]
    pub stripe_webhook_secret: Vec<String>,
    /// Mails are written into this folder…
    #[arg(long, env = "MAILBOX_DIR")]
    pub mailbox_dir: Option<PathBuf>,
    /// …or sent through this server, `smtps://user:password@host`.
    #[arg(long, env = "SMTP_URL", hide_env_values = true)]
    pub smtp_url: Option<String>,
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
    /// Sender of mails.
    #[arg(long, env = "MAIL_FROM", default_value = "Rowlock <tickets@rowlock.example>")]
    pub mail_from: String,
}

impl Config {
    /// Whether people reach us over TLS: then the cookie is `Secure`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.public_url.starts_with("https://")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of the table of settings in docs/operating.md: name, default, limit.
    fn documented() -> Vec<[String; 3]> {
        let documented = include_str!("../../docs/operating.md");
        let rows = documented.lines().filter(|line| line.starts_with("| `") && line.contains("` | "));
        let cells =
            rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>());
        cells
            .filter_map(|cells| {
                <[String; 4]>::try_from(cells).ok().map(|[name, default, limit, _]| [name, default, limit])
            })
            .collect()
    }

    #[test]
    fn every_setting_is_documented_with_its_default_and_limit() {
        let documented = documented();
        let mut settings = settings().disable_help_flag(true);
        settings.build();
        for arg in settings.get_arguments() {
            let name = arg.get_env().expect("every setting has a variable").to_string_lossy().into_owned();
            assert_eq!(name.to_lowercase(), arg.get_id().as_str(), "files name it as the environment does");
            let row = documented.iter().find(|row| row[0] == format!("`{name}`"));
            let row = row.unwrap_or_else(|| panic!("docs/operating.md has no row for {name}"));
            let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
            let default = match (defaults.is_empty(), arg.is_required_set()) {
                (true, true) => "required".to_owned(),
                (true, false) => "none".to_owned(),
                (false, _) if defaults == [""] => "empty".to_owned(),
                (false, _) => format!("`{}`", defaults.join(",")),
            };
            assert_eq!(row[1], default, "the default of {name}");
            if let Some((_, allowed)) = wrong::LIMITS.iter().find(|(limited, _)| *limited == name) {
                assert_eq!(row[2], format!("{} to {}", allowed.start(), allowed.end()), "the limit of {name}");
            }
        }
    }
}
