//! Which gateways the settings name, and what is wrong with those settings.

use std::sync::Arc;

use anyhow::Context;

use super::Gateways;
use crate::config::Config;
use crate::payments::{Gateway, SimulatorGateway, StripeGateway, simulator, stripe};

/// Gateways that can be named: a first and a second.
const MAX_GATEWAYS: usize = 2;

impl Gateways {
    /// Those that the settings name.
    ///
    /// # Errors
    /// When a name is unknown or twice, or a gateway's own settings cannot be used.
    pub fn from_config(config: &Config) -> anyhow::Result<Self> {
        let names = &config.payment_gateways;
        anyhow::ensure!((1..=MAX_GATEWAYS).contains(&names.len()), "PAYMENT_GATEWAYS names one gateway or two");
        let mut gateways: Vec<Arc<dyn Gateway>> = Vec::new();
        for name in names {
            anyhow::ensure!(gateways.iter().all(|known| known.name() != name), "PAYMENT_GATEWAYS names {name} twice");
            gateways.push(match name.as_str() {
                simulator::NAME => Arc::new(SimulatorGateway::from_config(config)?),
                stripe::NAME => Arc::new(StripeGateway::from_config(config)?),
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

/// What is wrong with the settings of gateways, and why: to be read after their names.
#[must_use]
pub fn wrong_settings(config: &Config) -> Vec<(&'static str, String)> {
    const NAMES: &str = "PAYMENT_GATEWAYS";
    let mut wrong = Vec::new();
    let names = &config.payment_gateways;
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
                    ("SIMULATOR_URL", config.simulator_url.as_deref()),
                    ("SIMULATOR_API_KEY", config.simulator_api_key.as_deref()),
                    ("SIMULATOR_WEBHOOK_SECRET", config.simulator_webhook_secret.first().map(String::as_str)),
                ];
                ("SIMULATOR_URL", needed, SimulatorGateway::from_config(config).err())
            }
            stripe::NAME => {
                let needed = vec![
                    ("STRIPE_SECRET_KEY", config.stripe_secret_key.as_deref()),
                    ("STRIPE_WEBHOOK_SECRET", config.stripe_webhook_secret.first().map(String::as_str)),
                ];
                ("STRIPE_URL", needed, StripeGateway::from_config(config).err())
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
    wrong
}
