//! Settings of payment gateways.

use clap::Args;

/// Settings of payment gateways.
#[derive(Clone, Debug, Args)]
pub struct PaymentSettings {
    /// Payment gateways: `simulator`, `stripe`, or both separated by a comma. The second is used while the first is
    /// down.
    #[arg(long, env = "PAYMENT_GATEWAYS", default_value = "simulator", value_delimiter = ',')]
    pub payment_gateways: Vec<String>,
    /// Lets the payment simulator serve behind an https `PUBLIC_URL`, where people could take it for a gateway: no money
    /// moves. For demonstrations and training.
    #[arg(long, env = "ALLOW_SIMULATOR")]
    pub allow_simulator: bool,
    /// Address of the payment simulator.
    #[arg(long, env = "SIMULATOR_URL")]
    pub simulator_url: Option<String>,
    /// Our key there.
    #[arg(long, env = "SIMULATOR_API_KEY", hide_env_values = true)]
    pub simulator_api_key: Option<String>,
    /// Its webhook secret; two, separated by a comma, while one is being replaced.
    #[arg(long, env = "SIMULATOR_WEBHOOK_SECRET", hide_env_values = true, value_delimiter = ',')]
    pub simulator_webhook_secret: Vec<String>,
    /// Address of Stripe.
    #[arg(long, env = "STRIPE_URL", default_value = "https://api.stripe.com")]
    pub stripe_url: String,
    /// Our secret key there, `sk_…` or `rk_…`.
    #[arg(long, env = "STRIPE_SECRET_KEY", hide_env_values = true)]
    pub stripe_secret_key: Option<String>,
    /// The secret of our webhook endpoint there, `whsec_…`; two, separated by a comma, while one is being
    /// replaced.
    #[arg(long, env = "STRIPE_WEBHOOK_SECRET", hide_env_values = true, value_delimiter = ',')]
    pub stripe_webhook_secret: Vec<String>,
}
