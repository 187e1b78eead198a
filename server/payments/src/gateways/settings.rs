//! Which gateways the settings name, and what is wrong with those settings.

use std::sync::Arc;

use anyhow::Context;
use reqwest::Url;

use super::Gateways;
use super::adapters::Adapter;
use crate::{Gateway, PaymentSettings};

/// Gateways that can be named: a first and a second.
const MAX_GATEWAYS: usize = 2;
/// The setting that names them.
const NAMES: &str = "PAYMENT_GATEWAYS";

impl Gateways {
    /// The gateways that the settings name.
    ///
    /// # Errors
    /// When a name is unknown or twice, or a gateway's own settings cannot be used.
    pub fn from_settings(settings: &PaymentSettings, public_url: &str) -> anyhow::Result<Self> {
        let names = &settings.payment_gateways;
        anyhow::ensure!((1..=MAX_GATEWAYS).contains(&names.len()), "PAYMENT_GATEWAYS names one gateway or two");
        let mut gateways: Vec<Arc<dyn Gateway>> = Vec::new();
        for name in names {
            anyhow::ensure!(gateways.iter().all(|known| known.name() != name), "PAYMENT_GATEWAYS names {name} twice");
            let adapter = Adapter::named(name);
            let adapter = adapter.with_context(|| format!("{name:?} is no gateway; there are {}", Adapter::names()));
            gateways.push((adapter.context("PAYMENT_GATEWAYS")?.open)(settings, public_url)?);
        }
        Ok(Self::new(gateways))
    }
}

/// The setting that has a simulator take payments behind https, and the reason against it, to be read after its name. A
/// simulator takes no money: every ticket it pays for is free.
fn simulator_behind_https(settings: &PaymentSettings, public_url: &str) -> Option<(&'static str, String)> {
    let is_https = Url::parse(public_url).is_ok_and(|url| url.scheme() == "https");
    if !is_https || settings.allow_simulator {
        return None;
    }
    let mut named = settings.payment_gateways.iter().filter_map(|name| Adapter::named(name));
    let (setting, why) = named.find_map(|adapter| (adapter.moves_no_money)(settings))?;
    let practise = "set ALLOW_SIMULATOR=true if this system is only to practise on";
    Some((setting, format!("{why}, and PUBLIC_URL is https: {practise}")))
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
        let Some(adapter) = Adapter::named(name) else {
            wrong.push((NAMES, format!("names {name:?}, which is no gateway; there are {}", Adapter::names())));
            continue;
        };
        let (address, value) = (adapter.address)(settings);
        let secrets = (adapter.secrets)(settings);
        let first = secrets.iter().map(|(setting, values)| (*setting, values.first().map(String::as_str)));
        let needed = std::iter::once((address, value)).chain(first);
        let made = (adapter.open)(settings, public_url).err();
        let before = wrong.len();
        let missing = needed.filter(|(_, value)| value.is_none_or(str::is_empty));
        wrong.extend(missing.map(|(setting, _)| (setting, format!("is not set, and {name} needs it"))));
        if let Some(cause) = made.filter(|_| wrong.len() == before) {
            wrong.push((address, format!("cannot be used: {cause:#}")));
        }
    }
    wrong.extend(simulator_behind_https(settings, public_url));
    wrong
}
