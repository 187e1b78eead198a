//! Refunds through Stripe, once per key.
//!
//! Stripe forgets a key after a day, and a person may retry a refund after weeks. So every refund carries its key in its
//! metadata, and before a refund is created those of its payment are searched.

use domain::money::Money;
use reqwest::Method;

use super::objects::{ListPage, PaymentIntent, Refund, minor_units};
use super::{KEY_REUSED, REFUND, StripeGateway};
use crate::gateway::{GatewayError, PaymentIds};

/// Refunds of one payment that are searched: more than a booking has seats, and within the size limit of an answer.
const MAX_REFUNDS: usize = 50;
/// The code for a charge that is fully refunded.
const ALREADY_REFUNDED: &str = "charge_already_refunded";

impl StripeGateway {
    /// Refunds money, once per key. Returns the existing refund under `key`, also a failed one that is not in `lost`;
    /// creates one if there is none, or if all have failed and are in `lost`.
    pub(super) async fn refund_once(
        &self,
        payment: &PaymentIds,
        intent: &PaymentIntent,
        amount: Money,
        (key, lost): (&str, &[String]),
    ) -> Result<Refund, GatewayError> {
        let (active, failed) = self.refunds_under(&intent.id, key).await?;
        if let Some(refund) = active {
            return require_amount(refund, amount);
        }
        // Under the same idempotency key Stripe would return the failed refund again.
        let request_key = if failed.is_empty() { key.to_owned() } else { format!("{key}:after:{}", failed.len()) };
        if let Some(unacknowledged) = failed.into_iter().find(|refund| !lost.contains(&refund.id)) {
            return Ok(unacknowledged);
        }
        let fields = vec![
            ("payment_intent", intent.id.clone()),
            ("amount", minor_units(amount).to_string()),
            ("metadata[booking]", payment.booking.to_string()),
            ("metadata[refund]", key.to_owned()),
        ];
        match self.ask(self.post("v1/refunds", &request_key, &fields)?).await {
            // A concurrent call was faster: its refund exists now.
            Err(GatewayError::Refused { status, code, message }) if code == ALREADY_REFUNDED || code == KEY_REUSED => {
                let (active, _) = self.refunds_under(&intent.id, key).await?;
                let refund = active.ok_or(GatewayError::Refused { status, code, message })?;
                require_amount(refund, amount)
            }
            answer => answer,
        }
    }

    /// The settled or pending refund under a key, and the failed ones.
    async fn refunds_under(&self, intent: &str, key: &str) -> Result<(Option<Refund>, Vec<Refund>), GatewayError> {
        let query = serde_urlencoded::to_string([("payment_intent", intent), ("limit", &MAX_REFUNDS.to_string())]);
        let query = query.map_err(GatewayError::unreachable)?;
        let known: ListPage<Refund> = self.ask(self.request(Method::GET, &format!("v1/refunds?{query}"))?).await?;
        let ours =
            known.data.into_iter().filter(|refund| refund.metadata.get(REFUND).is_some_and(|under| under == key));
        let (failed, mut active): (Vec<Refund>, Vec<Refund>) = ours.partition(Refund::has_failed);
        if active.is_empty() && known.has_more {
            return Err(GatewayError::refused("too_many_refunds", "there are more refunds than are looked through"));
        }
        Ok((active.pop(), failed))
    }
}

/// Refuses a refund of another amount: a key is for one amount.
fn require_amount(refund: Refund, amount: Money) -> Result<Refund, GatewayError> {
    if refund.amount != minor_units(amount) {
        return Err(GatewayError::refused(KEY_REUSED, "this refund was made of another amount"));
    }
    Ok(refund)
}
