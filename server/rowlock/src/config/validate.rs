//! Checks settings that can be parsed, without contacting another system: addresses, numbers, and secrets, which must be long
//! enough and not from a public example.

use std::fmt;
use std::ops::RangeInclusive;

use super::Config;
use catalogue::{Regions, cdn};
use http::site::check_origin;
use platform::postgres_hosts::PostgresHosts;
use platform::redis_link::Link;

/// Shortest secret, characters.
const MIN_SECRET_CHARS: usize = 32;
/// The value of every secret in `deploy/example.env`; a value that contains it is as public.
const EXAMPLE: &str = "replace-me";
/// Passwords in the addresses that the documentation shows.
const EXAMPLE_PASSWORDS: [&str; 2] = ["password", EXAMPLE];

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

/// A number, if it is set.
type Number = fn(&Config) -> Option<i64>;

/// Numbers, what they are, and what they may be.
pub(super) const LIMITS: [(&str, Number, RangeInclusive<i64>); 16] = [
    ("TRUSTED_PROXIES", |config| whole(config.site.trusted_proxies), 0..=10),
    // Four transactions of the pipeline, four that run by themselves, and some for all other work.
    ("DATABASE_CONNECTIONS", |config| whole(config.database_connections), 10..=1_000),
    ("COMMIT_QUEUE", |config| whole(config.selling.commit_queue), 1..=1_000_000),
    ("COMMIT_GATHER_MS", |config| whole(config.selling.commit_gather_ms), 0..=1_000),
    ("HOLD_MS", |config| config.selling.hold_ms, 100..=86_400_000),
    ("LEAVE_GRACE_MS", |config| Some(config.selling.leave_grace_ms), 0..=600_000),
    ("PUZZLE_HOLDS_PER_S", |config| whole(config.admission.puzzle_holds_per_s), 0..=1_000_000),
    // A thousandth of a second each, and no finer.
    ("HOLDS_PER_VISITOR_MIN", |config| whole(config.admission.holds_per_visitor_min), 0..=60_000),
    ("HOLDS_PER_ADDRESS_MIN", |config| whole(config.admission.holds_per_address_min), 0..=60_000),
    // As many as one server serves at all.
    ("SOCKETS_PER_ADDRESS", |config| whole(config.sockets_per_address), 0..=20_000),
    ("QUEUE_TICKETS_PER_ADDRESS", |config| whole(config.admission.queue_tickets_per_address), 0..=60_000),
    // Visitors are not tracked for longer.
    ("NEVER_BOUGHT_AFTER_MS", |config| Some(config.admission.never_bought_after_ms), 0..=1_200_000),
    ("WAITING_OFFER_MS", |config| Some(config.selling.waiting_offer_ms), 1_000..=86_400_000),
    ("WEBHOOK_DEADLINE_MS", |config| whole(config.webhooks.webhook_deadline_ms), 1..=60_000),
    ("WEBHOOK_FIRST_PAUSE_MS", |config| whole(config.webhooks.webhook_first_pause_ms), 1..=3_600_000),
    ("REHEARSAL_QUIET_MIN", |config| whole(config.rehearsals.rehearsal_quiet_min), 0..=1_440),
];

impl Config {
    /// All errors; contacts no other system.
    #[must_use]
    pub fn validate(&self) -> Vec<SettingError> {
        let mut wrong = Vec::new();
        let mut complain = |setting: &str, why: String| wrong.push(SettingError::new(setting, why));
        for (setting, number, allowed) in LIMITS {
            if let Some(number) = number(self)
                && !allowed.contains(&number)
            {
                complain(setting, format!("is {number}; it may be {} to {}", allowed.start(), allowed.end()));
            }
        }
        if let Err(why) = check_origin(&self.site.public_url) {
            complain("PUBLIC_URL", why);
        }
        for (setting, url) in
            [("TERMS_URL", &self.terms_url), ("PRIVACY_URL", &self.privacy_url), ("IMPRINT_URL", &self.imprint_url)]
        {
            if let Some(Err(why)) = url.as_ref().map(|url| self.site.check_page_url(url)) {
                complain(setting, why);
            }
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
}

fn whole(number: impl TryInto<i64>) -> Option<i64> {
    Some(number.try_into().unwrap_or(i64::MAX))
}

/// Checks all secrets. Returns each setting at fault with the reason, to be read after its name; no value is in it.
fn check_secrets(config: &Config) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    for (setting, values) in secrets(config) {
        // A secret that is missing where it is needed is reported elsewhere.
        let is_set = setting == "TOKEN_SECRET" || values.iter().any(|value| !value.is_empty());
        if is_set && let Err(why) = check_secret(&values) {
            wrong.push((setting, why));
        }
    }
    for (setting, address) in addresses(config) {
        // The other system decides how long it has to be.
        if address.and_then(|address| password_of(address)).is_some_and(is_example_password) {
            wrong.push((
                setting,
                "has the password of a public example: give the other system one of your own".to_owned(),
            ));
        }
    }
    wrong
}

fn secrets(config: &Config) -> Vec<(&'static str, Vec<String>)> {
    let one = |value: &Option<String>| value.iter().cloned().collect();
    let mut all = vec![
        ("TOKEN_SECRET", config.token_secret.clone()),
        ("METRICS_TOKEN", one(&config.metrics_token)),
        ("CDN_PURGE_TOKEN", one(&config.catalogue.cdn_purge_token)),
    ];
    all.extend(payments::secrets(&config.payments));
    all
}

/// The settings with an address that may contain a password.
fn addresses(config: &Config) -> [(&'static str, Option<&String>); 6] {
    [
        ("DATABASE_URL", Some(&config.database_url)),
        ("CATALOGUE_DATABASE_URL", config.catalogue_database_url.as_ref()),
        ("REDIS_URL", Some(&config.redis_url)),
        ("SHADOW_REDIS_URL", config.shadow_redis_url.as_ref()),
        ("CDN_PURGE_URL", config.catalogue.cdn_purge_url.as_ref()),
        ("SMTP_URL", config.mail.smtp_url.as_ref()),
    ]
}

fn check_secret(values: &[String]) -> Result<(), String> {
    if values.iter().any(|value| is_example(value)) {
        return Err("is the value of a public example: make one of your own, `openssl rand -hex 32`".to_owned());
    }
    if values.is_empty() || values.iter().any(|value| value.chars().count() < MIN_SECRET_CHARS) {
        return Err(format!("needs {MIN_SECRET_CHARS} characters or more: a shorter one can be guessed"));
    }
    Ok(())
}

fn is_example(value: &str) -> bool {
    value.to_ascii_lowercase().contains(EXAMPLE)
}

fn is_example_password(password: &str) -> bool {
    is_example(password) || EXAMPLE_PASSWORDS.iter().any(|example| password.eq_ignore_ascii_case(example))
}

/// The password in an address; several hosts may follow it.
fn password_of(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    Some(user.split_once(':')?.1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::FromArgMatches as _;

    use super::*;
    use crate::config::settings;

    const GOOD: &str = "0123456789abcdef0123456789abcdef";

    fn of(values: &[&str]) -> Result<(), String> {
        check_secret(&values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_setting_with_a_hidden_value_is_checked() {
        let required = ["--database-url", "postgres:///", "--redis-url", "redis://127.0.0.1/", "--token-secret", GOOD];
        let matches = settings().try_get_matches_from(required).expect("these are required");
        let config = Config::from_arg_matches(&matches).expect("settings");
        let secrets = secrets(&config).into_iter().map(|(setting, _)| setting);
        let checked: BTreeSet<_> = secrets.chain(addresses(&config).map(|(setting, _)| setting)).collect();
        for argument in settings().get_arguments().filter(|argument| argument.is_hide_env_values_set()) {
            let setting = argument.get_env().and_then(|name| name.to_str()).expect("a variable");
            assert!(checked.contains(setting), "{setting} is neither among the secrets nor among the addresses");
        }
    }

    #[test]
    fn a_secret_is_long_and_not_from_an_example() {
        assert_eq!(of(&[GOOD]), Ok(()));
        assert_eq!(of(&[GOOD, &GOOD.to_uppercase()]), Ok(()));
        for short in [&[][..], &[""], &[GOOD, ""], &[&GOOD[1..]], &["a secret, 24 characters."]] {
            assert!(of(short).is_err_and(|why| why.starts_with("needs 32")), "{short:?}");
        }
        for example in ["replace-me", "Replace-Me-Replace-Me-Replace-Me-Replace-Me"] {
            let why = of(&[GOOD, example]).expect_err("an example");
            assert!(why.contains("public example") && !why.contains(example), "{why}");
        }
    }

    #[test]
    fn every_secret_of_the_shipped_example_is_refused() {
        let shipped = include_str!("../../../../deploy/example.env");
        let secrets = shipped.lines().filter_map(|line| line.split_once('=')).filter(|(name, _)| {
            !name.starts_with('#') && ["SECRET", "TOKEN", "KEY", "PASSWORD"].iter().any(|part| name.contains(part))
        });
        let secrets: Vec<_> = secrets.collect();
        assert!(secrets.len() >= 6, "{secrets:?}");
        for (name, value) in secrets {
            assert!(is_example(value) && is_example_password(value), "{name}");
        }
    }

    #[test]
    fn a_password_is_found_in_every_form_of_address() {
        for (address, password) in [
            ("postgres://rowlock:replace-me@pgbouncer:6432/rowlock", Some("replace-me")),
            ("redis://:replace-me@redis:6379/", Some("replace-me")),
            ("redis+cluster://user:p:w@one:6379,two:6379", Some("p:w")),
            ("smtps://user:password@mail.example", Some("password")),
            ("postgres://rowlock@127.0.0.1:5432/rowlock", None),
            ("postgres:///rowlock?host=/run/a:b@c", None),
            ("redis://127.0.0.1:6379/", None),
            ("nowhere", None),
        ] {
            assert_eq!(password_of(address), password, "{address}");
        }
    }
}
