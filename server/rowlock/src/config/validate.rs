//! Checks settings that can be parsed, without contacting another system.

use std::fmt;
use std::ops::RangeInclusive;

use super::Config;
use super::secrets::check_secrets;
use catalogue::{Regions, cdn};
use http::site::check_origin;
use platform::postgres_hosts::PostgresHosts;
use platform::redis_link::Link;

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The name of its variable, or its position in the file.
    pub setting: String,
    /// The reason, to be read after the name.
    pub why: String,
}

impl SettingError {
    pub(super) fn new(setting: &str, why: String) -> Self {
        Self { setting: setting.to_owned(), why }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.setting, self.why)
    }
}

/// Numbers and what they may be.
pub(super) const LIMITS: [(&str, RangeInclusive<i64>); 15] = [
    ("TRUSTED_PROXIES", 0..=10),
    // Four transactions of the pipeline, four that run by themselves, and some for all other work.
    ("DATABASE_CONNECTIONS", 10..=1_000),
    ("COMMIT_QUEUE", 1..=1_000_000),
    ("COMMIT_GATHER_MS", 0..=1_000),
    ("HOLD_MS", 100..=86_400_000),
    ("LEAVE_GRACE_MS", 0..=600_000),
    ("PUZZLE_HOLDS_PER_S", 0..=1_000_000),
    // A thousandth of a second each, and no finer.
    ("HOLDS_PER_VISITOR_MIN", 0..=60_000),
    ("HOLDS_PER_ADDRESS_MIN", 0..=60_000),
    // As many as one server serves at all.
    ("SOCKETS_PER_ADDRESS", 0..=20_000),
    ("QUEUE_TICKETS_PER_ADDRESS", 0..=60_000),
    // Visitors are not tracked for longer.
    ("NEVER_BOUGHT_AFTER_MS", 0..=1_200_000),
    ("WAITING_OFFER_MS", 1_000..=86_400_000),
    ("WEBHOOK_DEADLINE_MS", 1..=60_000),
    ("WEBHOOK_FIRST_PAUSE_MS", 1..=3_600_000),
];

impl Config {
    /// All errors; contacts no other system.
    #[must_use]
    pub fn validate(&self) -> Vec<SettingError> {
        let mut wrong = Vec::new();
        let mut complain = |setting: &str, why: String| wrong.push(SettingError::new(setting, why));
        for (setting, allowed) in LIMITS {
            if let Some(number) = self.number(setting)
                && !allowed.contains(&number)
            {
                complain(setting, format!("is {number}; it may be {} to {}", allowed.start(), allowed.end()));
            }
        }
        if let Err(why) = check_origin(&self.site.public_url) {
            complain("PUBLIC_URL", why);
        }
        if let Err((setting, why)) = Regions::of(&self.catalogue, &self.site.public_url) {
            complain(setting, why);
        }
        for (setting, url) in [
            ("DATABASE_URL", Some(&self.database_url)),
            ("CATALOGUE_DATABASE_URL", self.catalogue_database_url.as_ref()),
        ] {
            if let Some(Err(cause)) = url.map(|url| PostgresHosts::parse(url)) {
                complain(setting, cause.to_string());
            }
        }
        let standby = self.catalogue_database_url.as_ref().and_then(|url| PostgresHosts::parse(url).ok());
        if standby.is_some_and(|hosts| hosts.are_several()) {
            complain("CATALOGUE_DATABASE_URL", "names several hosts; a standby is one".to_owned());
        }
        if self.catalogue_database_url.as_ref() == Some(&self.database_url) {
            complain("CATALOGUE_DATABASE_URL", "is DATABASE_URL; a database cannot be its own standby".to_owned());
        }
        for (setting, url) in
            [("REDIS_URL", Some(&self.redis_url)), ("SHADOW_REDIS_URL", self.shadow_redis_url.as_ref())]
        {
            if let Some(Err(cause)) = url.map(|url| Link::can_read(url)) {
                complain(setting, format!("cannot be used: {cause}"));
            }
        }
        if self.shadow_redis_url.as_ref() == Some(&self.redis_url) {
            complain("SHADOW_REDIS_URL", "is REDIS_URL; a store cannot be its own shadow".to_owned());
        }
        for (setting, why) in check_secrets(self) {
            complain(setting, why);
        }
        if self.metrics_token.as_ref().is_some_and(String::is_empty) {
            complain("METRICS_TOKEN", "is empty: leave it out, and there are no metrics".to_owned());
        }
        for (setting, why) in payments::wrong_settings(&self.payments, &self.site.public_url) {
            complain(setting, why);
        }
        for (setting, why) in tickets::wrong_settings(&self.mail) {
            complain(setting, why);
        }
        for (setting, why) in cdn::wrong_settings(&self.catalogue) {
            complain(setting, why);
        }
        wrong
    }

    fn number(&self, setting: &str) -> Option<i64> {
        let of = |number: u64| Some(i64::try_from(number).unwrap_or(i64::MAX));
        match setting {
            "TRUSTED_PROXIES" => of(self.site.trusted_proxies as u64),
            "DATABASE_CONNECTIONS" => of(self.database_connections.into()),
            "COMMIT_QUEUE" => of(self.selling.commit_queue as u64),
            "COMMIT_GATHER_MS" => of(self.selling.commit_gather_ms),
            "HOLD_MS" => self.selling.hold_ms,
            "LEAVE_GRACE_MS" => Some(self.selling.leave_grace_ms),
            "PUZZLE_HOLDS_PER_S" => of(self.admission.puzzle_holds_per_s.into()),
            "HOLDS_PER_VISITOR_MIN" => of(self.admission.holds_per_visitor_min.into()),
            "HOLDS_PER_ADDRESS_MIN" => of(self.admission.holds_per_address_min.into()),
            "SOCKETS_PER_ADDRESS" => of(self.sockets_per_address as u64),
            "QUEUE_TICKETS_PER_ADDRESS" => of(self.admission.queue_tickets_per_address.into()),
            "NEVER_BOUGHT_AFTER_MS" => Some(self.admission.never_bought_after_ms),
            "WAITING_OFFER_MS" => Some(self.selling.waiting_offer_ms),
            "WEBHOOK_DEADLINE_MS" => of(self.webhooks.webhook_deadline_ms),
            "WEBHOOK_FIRST_PAUSE_MS" => of(self.webhooks.webhook_first_pause_ms),
            _ => None,
        }
    }
}
