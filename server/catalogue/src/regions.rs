//! Regions: each is a whole system with its own database, lock store and address, and sells the shows of its theatres
//! (docs/decisions/0051). This module has this server's region and the addresses of the others. A show of another region does
//! not exist here; requests for it are redirected there.

use std::collections::BTreeMap;

use http::site::check_origin;

use crate::CatalogueSettings;

/// Longest name of a region, as the table of theatres has it.
const MAX_NAME: usize = 31;

/// Our own region, and where all are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions {
    own: String,
    /// By name: the address people type, without a slash at its end.
    addresses: BTreeMap<String, String>,
}

impl Regions {
    /// As the settings say; `None` where there are no regions.
    ///
    /// # Errors
    /// The setting that cannot be used, and why not.
    pub fn of(settings: &CatalogueSettings, public_url: &str) -> Result<Option<Self>, (&'static str, String)> {
        let given: Vec<&str> =
            settings.regions.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()).collect();
        let Some(own) = settings.region.as_deref().filter(|own| !own.is_empty()) else {
            return if given.is_empty() {
                Ok(None)
            } else {
                Err(("REGION", "is not set, and REGIONS is: which of them is this?".to_owned()))
            };
        };
        let mut addresses = BTreeMap::new();
        for entry in given {
            let Some((name, address)) = entry.split_once('=') else {
                return Err(("REGIONS", format!("has {entry}; a region is written eu=https://eu.example.org")));
            };
            if !is_name(name) {
                return Err(("REGIONS", format!("has a region {name}; names are small letters, digits and hyphens")));
            }
            check_origin(address).map_err(|why| ("REGIONS", format!("has an address of {name} that {why}")))?;
            if addresses.insert(name.to_owned(), address.trim_end_matches('/').to_owned()).is_some() {
                return Err(("REGIONS", format!("has {name} twice")));
            }
        }
        match addresses.get(own) {
            None => Err(("REGION", format!("is {own}, which REGIONS does not name"))),
            // Else visitors would be sent to and fro.
            Some(address) if *address != public_url.trim_end_matches('/') => {
                Err(("REGIONS", format!("has {address} for {own}, which is this one, and PUBLIC_URL is another")))
            }
            Some(_) => Ok(Some(Self { own: own.to_owned(), addresses })),
        }
    }

    /// The name of our own.
    #[must_use]
    pub fn own(&self) -> &str {
        &self.own
    }

    /// The address of another region; `None` for our own, and for an unknown one.
    #[must_use]
    pub fn address_of_other(&self, region: &str) -> Option<&str> {
        self.addresses.get(region).filter(|_| region != self.own).map(String::as_str)
    }
}

fn is_name(name: &str) -> bool {
    let all_known = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    all_known && !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('-')
}
