//! Stripe's ledger: the charges of a window, then its refunds, newest first, each with the current state of its charge.

use domain::time::SECOND_MS;
use reqwest::Method;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::objects::{ListPage, ListedCharge, ListedRefund, money};
use super::{BOOKING, StripeGateway, parse_answer};
use crate::calls::MAX_PAGE_BYTES;
use crate::gateway::{GatewayError, LedgerEntry, LedgerPage, MAX_LEDGER_ENTRIES, Window};

/// The beginning of a page, in one of the two lists. Its text is for this adapter alone.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LedgerCursor {
    /// Behind this charge, or at the first.
    Charges(Option<String>),
    /// Behind this refund, or at the first.
    Refunds(Option<String>),
}

impl LedgerCursor {
    fn parse(text: Option<&str>) -> Result<Self, GatewayError> {
        let Some(text) = text else { return Ok(Self::Charges(None)) };
        let last = |id: &str| Some(id.to_owned()).filter(|id| !id.is_empty());
        match text.split_once(':') {
            Some(("charges", id)) => Ok(Self::Charges(last(id))),
            Some(("refunds", id)) => Ok(Self::Refunds(last(id))),
            _ => Err(GatewayError::refused("no_such_page", "the ledger has no such page")),
        }
    }

    fn text(&self) -> String {
        let (list, id) = match self {
            Self::Charges(id) => ("charges", id),
            Self::Refunds(id) => ("refunds", id),
        };
        format!("{list}:{}", id.as_deref().unwrap_or_default())
    }
}

impl StripeGateway {
    pub(super) async fn ledger_page(&self, window: Window, after: Option<&str>) -> Result<LedgerPage, GatewayError> {
        match LedgerCursor::parse(after)? {
            LedgerCursor::Charges(last) => {
                let page: ListPage<ListedCharge> = self.list("v1/charges", window, last, None).await?;
                let next = page
                    .next(|charge| &charge.id)
                    .map_or(LedgerCursor::Refunds(None), |id| LedgerCursor::Charges(Some(id)));
                let entries = page.data.iter().filter_map(entry).collect::<Result<_, _>>()?;
                Ok(LedgerPage { entries, next: Some(next.text()) })
            }
            LedgerCursor::Refunds(last) => {
                let page: ListPage<ListedRefund> = self.list("v1/refunds", window, last, Some("data.charge")).await?;
                let next = page.next(|refund| &refund.id).map(|id| LedgerCursor::Refunds(Some(id)).text());
                let charges = page.data.iter().filter_map(|refund| refund.charge.as_ref());
                Ok(LedgerPage { entries: charges.filter_map(entry).collect::<Result<_, _>>()?, next })
            }
        }
    }

    async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        window: Window,
        last: Option<String>,
        expand: Option<&str>,
    ) -> Result<ListPage<T>, GatewayError> {
        let mut query = vec![
            ("created[gte]", (window.from.0 / SECOND_MS).to_string()),
            ("created[lt]", (window.until.0 / SECOND_MS).to_string()),
            ("limit", MAX_LEDGER_ENTRIES.to_string()),
        ];
        query.extend(last.map(|last| ("starting_after", last)));
        query.extend(expand.map(|path| ("expand[]", path.to_owned())));
        let query = serde_urlencoded::to_string(query).map_err(GatewayError::unreachable)?;
        let request = self.request(Method::GET, &format!("{path}?{query}"))?;
        self.calls.ask_up_to(MAX_PAGE_BYTES, request, parse_answer).await
    }
}

/// The entry of a charge; `None` for a declined card.
fn entry(charge: &ListedCharge) -> Option<Result<LedgerEntry, GatewayError>> {
    if !charge.paid {
        return None;
    }
    let amounts =
        || Ok((money(charge.amount_captured, &charge.currency)?, money(charge.amount_refunded, &charge.currency)?));
    Some(amounts().map(|(charged, refunded)| LedgerEntry {
        gateway_ref: charge.payment_intent.clone().unwrap_or_else(|| charge.id.clone()),
        booking: charge.metadata.get(BOOKING).and_then(|id| Uuid::parse_str(id).ok()),
        charged,
        refunded,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_found_again_by_its_text() {
        for place in [
            LedgerCursor::Charges(None),
            LedgerCursor::Charges(Some("ch_1".to_owned())),
            LedgerCursor::Refunds(None),
            LedgerCursor::Refunds(Some("re_1".to_owned())),
        ] {
            assert_eq!(LedgerCursor::parse(Some(&place.text())).expect("a place"), place);
        }
        assert_eq!(LedgerCursor::parse(None).expect("a place"), LedgerCursor::Charges(None));
        assert!(LedgerCursor::parse(Some("payouts:")).is_err() && LedgerCursor::parse(Some("")).is_err());
    }
}
