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
    /// The refund of that key: the existing one, or a new one if there is none, or only such that are `lost`. A failed one
    /// that is not acknowledged is returned.
    pub(super) async fn send_back(
        &self,
        payment: &PaymentIds,
        intent: &PaymentIntent,
        amount: Money,
        (key, lost): (&str, &[String]),
    ) -> Result<Refund, GatewayError> {
        let (alive, failed) = self.refunds_under(&intent.id, key).await?;
        if let Some(refund) = alive {
            return of_this_amount(refund, amount);
        }
        // Stripe would repeat its answer about the one that failed.
        let asked_under = if failed.is_empty() { key.to_owned() } else { format!("{key}:after:{}", failed.len()) };
        if let Some(unseen) = failed.into_iter().find(|refund| !lost.contains(&refund.id)) {
            return Ok(unseen);
        }
        let fields = vec![
            ("payment_intent", intent.id.clone()),
            ("amount", minor_units(amount).to_string()),
            ("metadata[booking]", payment.booking.to_string()),
            ("metadata[refund]", key.to_owned()),
        ];
        match self.ask(self.post("v1/refunds", &asked_under, &fields)?).await {
            // A concurrent call was faster: its refund exists now.
            Err(GatewayError::Refused { status, code, message }) if code == ALREADY_REFUNDED || code == KEY_REUSED => {
                let (alive, _) = self.refunds_under(&intent.id, key).await?;
                let refund = alive.ok_or(GatewayError::Refused { status, code, message })?;
                of_this_amount(refund, amount)
            }
            answer => answer,
        }
    }

    /// The refund of that key which reached the payer or may yet, and those that did not.
    async fn refunds_under(&self, intent: &str, key: &str) -> Result<(Option<Refund>, Vec<Refund>), GatewayError> {
        let query = serde_urlencoded::to_string([("payment_intent", intent), ("limit", &MAX_REFUNDS.to_string())]);
        let query = query.map_err(GatewayError::unreachable)?;
        let known: ListPage<Refund> = self.ask(self.request(Method::GET, &format!("v1/refunds?{query}"))?).await?;
        let ours =
            known.data.into_iter().filter(|refund| refund.metadata.get(REFUND).is_some_and(|under| under == key));
        let (failed, mut alive): (Vec<Refund>, Vec<Refund>) = ours.partition(Refund::has_failed);
        if alive.is_empty() && known.has_more {
            return Err(GatewayError::refused("too_many_refunds", "there are more refunds than are looked through"));
        }
        Ok((alive.pop(), failed))
    }
}

/// A key is for one amount.
fn of_this_amount(refund: Refund, amount: Money) -> Result<Refund, GatewayError> {
    if refund.amount != minor_units(amount) {
        return Err(GatewayError::refused(KEY_REUSED, "this refund was made of another amount"));
    }
    Ok(refund)
}
