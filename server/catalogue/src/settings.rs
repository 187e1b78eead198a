//! Settings of regions and of the CDN in front.

use clap::Args;

/// Settings of regions and of the CDN in front.
#[derive(Clone, Debug, Args)]
pub struct CatalogueSettings {
    /// The region this server sells for, where there are several; one of those in `REGIONS`.
    #[arg(long, env = "REGION")]
    pub region: Option<String>,
    /// All regions and the addresses people type there: `eu=https://eu.example.org,us=https://us.example.org`.
    #[arg(long, env = "REGIONS", value_delimiter = ',')]
    pub regions: Vec<String>,
    /// Address of the CDN's purge API: tags, as JSON, by POST.
    #[arg(long, env = "CDN_PURGE_URL", hide_env_values = true)]
    pub cdn_purge_url: Option<String>,
    /// Bearer token of that API.
    #[arg(long, env = "CDN_PURGE_TOKEN", hide_env_values = true)]
    pub cdn_purge_token: Option<String>,
}
