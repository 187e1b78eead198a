//! Which gateways the settings name, and what is wrong with those settings.

use std::sync::Arc;

use anyhow::Context;
use reqwest::Url;

use super::Gateways;
use crate::{Gateway, PaymentSettings, SimulatorGateway, StripeGateway, simulator, stripe};

/// Gateways that can be named: a first and a second.
const MAX_GATEWAYS: usize = 2;
/// The setting that names them.
const NAMES: &str = "PAYMENT_GATEWAYS";

impl Gateways {
    /// Those that the settings name.
    ///
    /// # Errors
    /// When a name is unknown or twice, or a gateway's own settings cannot be used.
    pub fn from_settings(settings: &PaymentSettings, public_url: &str) -> anyhow::Result<Self> {
        let names = &settings.payment_gateways;
        anyhow::ensure!((1..=MAX_GATEWAYS).contains(&names.len()), "PAYMENT_GATEWAYS names one gateway or two");
        let mut gateways: Vec<Arc<dyn Gateway>> = Vec::new();
        for name in names {
            anyhow::ensure!(gateways.iter().all(|known| known.name() != name), "PAYMENT_GATEWAYS names {name} twice");
            gateways.push(match name.as_str() {
                simulator::NAME => Arc::new(SimulatorGateway::from_settings(settings, public_url)?),
                stripe::NAME => Arc::new(StripeGateway::from_settings(settings)?),
                other => {
                    let known = [simulator::NAME, stripe::NAME].join(", ");
                    return Err(anyhow::anyhow!("{other:?} is no gateway; there are {known}"))
                        .context("PAYMENT_GATEWAYS");
                }
            });
        }
        Ok(Self::new(gateways))
    }
}

/// Stripe's own host.
const STRIPE_HOST: &str = "api.stripe.com";

/// The setting that has a simulator take payments behind https, and the reason against it, to be read after its name. A
/// simulator takes no money: every ticket it pays for is free.
fn simulator_behind_https(settings: &PaymentSettings, public_url: &str) -> Option<(&'static str, String)> {
    let is_https = Url::parse(public_url).is_ok_and(|url| url.scheme() == "https");
    if !is_https || settings.allow_simulator {
        return None;
    }
    let named = |name: &str| settings.payment_gateways.iter().any(|gateway| gateway == name);
    let practise = "set ALLOW_SIMULATOR=true if this system is only to practise on";
    if named(simulator::NAME) {
        let why = format!("names the payment simulator, where no money moves, and PUBLIC_URL is https: {practise}");
        return Some((NAMES, why));
    }
    let is_stripes = Url::parse(&settings.stripe_url)
        .is_ok_and(|url| url.scheme() == "https" && url.host_str() == Some(STRIPE_HOST));
    let why = || format!("is not at {STRIPE_HOST}, and PUBLIC_URL is https: {practise}");
    (named(stripe::NAME) && !is_stripes).then(|| ("STRIPE_URL", why()))
}

/// Checks the settings of gateways. Returns each invalid setting with the reason, to be read after its name.
#[must_use]
pub fn wrong_settings(settings: &PaymentSettings, public_url: &str) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let names = &settings.payment_gateways;
    if !(1..=MAX_GATEWAYS).contains(&names.len()) {
        wrong.push((NAMES, "names one gateway or two".to_owned()));
    }
    for (place, name) in names.iter().enumerate() {
        if names[..place].contains(name) {
            wrong.push((NAMES, format!("names {name} twice")));
            continue;
        }
        let (url, needed, made) = match name.as_str() {
            simulator::NAME => {
                let needed = vec![
                    ("SIMULATOR_URL", settings.simulator_url.as_deref()),
                    ("SIMULATOR_API_KEY", settings.simulator_api_key.as_deref()),
                    ("SIMULATOR_WEBHOOK_SECRET", settings.simulator_webhook_secret.first().map(String::as_str)),
                ];
                ("SIMULATOR_URL", needed, SimulatorGateway::from_settings(settings, public_url).err())
            }
            stripe::NAME => {
                let needed = vec![
                    ("STRIPE_SECRET_KEY", settings.stripe_secret_key.as_deref()),
                    ("STRIPE_WEBHOOK_SECRET", settings.stripe_webhook_secret.first().map(String::as_str)),
                ];
                ("STRIPE_URL", needed, StripeGateway::from_settings(settings).err())
            }
            other => {
                let known = [simulator::NAME, stripe::NAME].join(", ");
                wrong.push((NAMES, format!("names {other:?}, which is no gateway; there are {known}")));
                continue;
            }
        };
        let before = wrong.len();
        let missing = needed.into_iter().filter(|(_, value)| value.is_none_or(str::is_empty));
        wrong.extend(missing.map(|(setting, _)| (setting, format!("is not set, and {name} needs it"))));
        if let Some(cause) = made.filter(|_| wrong.len() == before) {
            wrong.push((url, format!("cannot be used: {cause:#}")));
        }
    }
    wrong.extend(simulator_behind_https(settings, public_url));
    wrong
}
