//! Settings of payment gateways.

use clap::Args;

use crate::simulator::SimulatorSettings;
use crate::stripe::StripeSettings;

/// Settings of payment gateways.
#[derive(Clone, Debug, Args)]
pub struct PaymentSettings {
    /// Payment gateways, one or two separated by a comma: `simulator`, `stripe`. The second is used while the first is
    /// down.
    #[arg(long, env = "PAYMENT_GATEWAYS", default_value = "simulator", value_delimiter = ',')]
    pub payment_gateways: Vec<String>,
    /// Lets the payment simulator serve behind an https `PUBLIC_URL`, where people could take it for a gateway: no money
    /// moves. For demonstrations and training.
    #[arg(long, env = "ALLOW_SIMULATOR")]
    pub allow_simulator: bool,
    /// Those of the payment simulator.
    #[command(flatten)]
    pub(crate) simulator: SimulatorSettings,
    /// Those of Stripe.
    #[command(flatten)]
    pub(crate) stripe: StripeSettings,
}
