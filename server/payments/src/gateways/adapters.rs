//! The gateways that `PAYMENT_GATEWAYS` can name, with everything that the rest of the code knows of one.

use std::sync::Arc;

use crate::{Gateway, PaymentSettings, simulator, stripe};

/// A setting with secrets, and the secrets.
pub type SecretSetting = (&'static str, Vec<String>);

/// A gateway that can be configured.
pub struct Adapter {
    /// Its name in settings, rows, logs and webhook addresses.
    pub name: &'static str,
    /// Header with the signature of its webhooks.
    pub signature_header: &'static str,
    /// The setting with its address, and the address.
    pub(crate) address: fn(&PaymentSettings) -> (&'static str, Option<&str>),
    /// The settings with its secrets, all of them required, and the secrets.
    pub(crate) secrets: fn(&PaymentSettings) -> Vec<SecretSetting>,
    /// Opens the gateway. The second argument is the server's public URL.
    pub(crate) open: fn(&PaymentSettings, &str) -> anyhow::Result<Arc<dyn Gateway>>,
    /// The setting by which no money moves, and the reason to be read after its name; `None` if money moves.
    pub(crate) moves_no_money: fn(&PaymentSettings) -> Option<(&'static str, String)>,
}

/// All adapters.
pub static ADAPTERS: [Adapter; 2] = [simulator::ADAPTER, stripe::ADAPTER];

impl Adapter {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        ADAPTERS.iter().find(|adapter| adapter.name == name)
    }

    /// The names of all adapters, for error messages.
    pub(crate) fn names() -> String {
        ADAPTERS.iter().map(|adapter| adapter.name).collect::<Vec<_>>().join(", ")
    }
}

/// The settings with secrets of gateways, configured or not, and the secrets.
#[must_use]
pub fn secrets(settings: &PaymentSettings) -> Vec<SecretSetting> {
    ADAPTERS.iter().flat_map(|adapter| (adapter.secrets)(settings)).collect()
}
