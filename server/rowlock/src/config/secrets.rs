//! Checks the secrets among the settings: long enough, and none from a public example.

use super::Config;

/// Shortest secret, characters.
const MIN_SECRET_CHARS: usize = 32;
/// The value of every secret in `deploy/example.env`; a value that contains it is as public.
const EXAMPLE: &str = "replace-me";
/// Passwords in the addresses that the documentation shows.
const EXAMPLE_PASSWORDS: [&str; 2] = ["password", EXAMPLE];

/// Checks all secrets. Returns each setting at fault with the reason, to be read after its name; no value is in it.
pub(super) fn check_secrets(config: &Config) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    for (setting, values) in secrets(config) {
        // A secret that is missing where it is needed is reported elsewhere.
        let is_set = setting == "TOKEN_SECRET" || values.iter().any(|value| !value.is_empty());
        if is_set && let Err(why) = check(&values) {
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

/// The settings that are secrets.
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

fn check(values: &[String]) -> Result<(), String> {
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
        check(&values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
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
