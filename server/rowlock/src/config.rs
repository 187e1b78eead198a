//! Settings: flags, the environment, a file ([`command_line`]), checked at start ([`Config::validate`]).
//!
//! Secrets have no defaults, and are shown nowhere.

mod command_line;
mod validate;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use admission::AdmissionSettings;
use backoffice::{RehearsalSettings, WebhookSettings};
use catalogue::CatalogueSettings;
use payments::PaymentSettings;
use selling::SellingSettings;
use tickets::MailSettings;

pub use command_line::{CommandLineError, parse_command_line, settings};
pub use validate::SettingError;

/// The settings of `rowlock serve`.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// Address and port to listen on.
    #[arg(long, env = "LISTEN", default_value = "127.0.0.1:3000")]
    pub listen: SocketAddr,
    /// Postgres, `postgres://…`.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: String,
    /// A streaming standby of `DATABASE_URL`, `postgres://…`: public pages and lists are read from it while its lag is
    /// small.
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
    /// A second Redis that gets every call to the first, and whose answers are compared: to test it before it replaces the
    /// first. Its answers are never used.
    #[arg(long, env = "SHADOW_REDIS_URL", hide_env_values = true)]
    pub shadow_redis_url: Option<String>,
    /// Signs the tokens of programs, 32 characters or more; two, separated by a comma, while one is being replaced:
    /// the first signs.
    #[arg(long, env = "TOKEN_SECRET", hide_env_values = true, value_delimiter = ',', required = true)]
    pub token_secret: Vec<String>,
    /// The client, as `cargo xtask site` builds it.
    #[arg(long, env = "SITE_ROOT", default_value = "target/site")]
    pub site_root: PathBuf,
    /// A folder of messages, read after each edit in place of those compiled in. For development.
    #[arg(long, env = "MESSAGES_DIR")]
    pub messages_dir: Option<PathBuf>,
    /// The operator's terms of sale, `https://…`: every page links to them, and the checkout names them.
    #[arg(long, env = "TERMS_URL")]
    pub terms_url: Option<String>,
    /// The operator's privacy policy, `https://…`: every page links to it.
    #[arg(long, env = "PRIVACY_URL")]
    pub privacy_url: Option<String>,
    /// The operator's imprint, `https://…`: every page links to it.
    #[arg(long, env = "IMPRINT_URL")]
    pub imprint_url: Option<String>,
    /// Bearer token for `/metrics`; without it the page does not exist.
    #[arg(long, env = "METRICS_TOKEN", hide_env_values = true)]
    pub metrics_token: Option<String>,
    /// Simulated visitors take part, as in `cargo xtask run`: the pages of shows say so, and `/demo/watched` lists shows
    /// with open live maps. For demonstrations.
    #[arg(long, env = "DEMO_CROWD")]
    pub demo_crowd: bool,
    /// Connections to Postgres at most.
    #[arg(long, env = "DATABASE_CONNECTIONS", default_value_t = 16)]
    pub database_connections: u32,
    /// Live maps that may be open from one address of the network at one server; 0: as many as there is room for.
    #[arg(long, env = "SOCKETS_PER_ADDRESS", default_value_t = 500)]
    pub sockets_per_address: usize,
    /// The way of requests to this server.
    #[command(flatten)]
    pub site: http::SiteSettings,
    /// Regions and the CDN.
    #[command(flatten)]
    pub catalogue: CatalogueSettings,
    /// Limits on attempts for seats.
    #[command(flatten)]
    pub admission: AdmissionSettings,
    /// Holds and their sale.
    #[command(flatten)]
    pub selling: SellingSettings,
    /// Payment gateways.
    #[command(flatten)]
    pub payments: PaymentSettings,
    /// Mails.
    #[command(flatten)]
    pub mail: MailSettings,
    /// Webhooks to other systems.
    #[command(flatten)]
    pub webhooks: WebhookSettings,
    /// Rehearsals.
    #[command(flatten)]
    pub rehearsals: RehearsalSettings,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of the table of settings in docs/operating.md: name, default, limit.
    fn documented() -> Vec<[String; 3]> {
        let documented = include_str!("../../../docs/operating.md");
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
            if let Some((.., allowed)) = validate::LIMITS.iter().find(|(limited, ..)| *limited == name) {
                assert_eq!(row[2], format!("{} to {}", allowed.start(), allowed.end()), "the limit of {name}");
            }
        }
    }
}
