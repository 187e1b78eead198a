//! Refunds in the ledger.

use std::collections::BTreeMap;

use super::{Ledger, LedgerError, LedgerOutcome};
use crate::payment::{Refund, RefundStatus, Status};

/// Maximum number of refunds of one payment.
const MAX_REFUNDS: usize = 50;

impl Ledger {
    /// Refunds a payment, once per `key`.
    ///
    /// # Errors
    /// [`LedgerError::AboveCharge`], [`LedgerError::NotCharged`], [`LedgerError::KeyReused`],
    /// [`LedgerError::TooManyRefunds`], [`LedgerError::Unknown`].
    pub fn refund(&self, id: &str, key: &str, amount_minor: i64) -> Result<LedgerOutcome, LedgerError> {
        self.refund_with_metadata(id, key, amount_minor, &BTreeMap::new())
    }

    /// Refunds a payment with the merchant's metadata on the refund.
    ///
    /// # Errors
    /// As [`Ledger::refund`].
    pub fn refund_with_metadata(
        &self,
        id: &str,
        key: &str,
        amount_minor: i64,
        metadata: &BTreeMap<String, String>,
    ) -> Result<LedgerOutcome, LedgerError> {
        let mut state = self.state();
        let status = if state.holds_refunds { RefundStatus::Pending } else { RefundStatus::Succeeded };
        let payment = state.payment(id)?;
        match payment.refund_under(key).map(|index| &payment.refunds[index]) {
            Some(earlier) if earlier.amount_minor == amount_minor && earlier.metadata == *metadata => {
                return Ok(LedgerOutcome { payment: payment.clone(), changed: false });
            }
            Some(_) => return Err(LedgerError::KeyReused),
            None if payment.refunds.len() == MAX_REFUNDS => return Err(LedgerError::TooManyRefunds),
            None => {}
        }
        if payment.status != Status::Succeeded {
            return Err(LedgerError::NotCharged);
        }
        if amount_minor < 1 || amount_minor > payment.taken_minor - payment.refunded_minor() {
            return Err(LedgerError::AboveCharge);
        }
        let (key, metadata) = (Some(key.to_owned()), metadata.clone());
        payment.refunds.push(Refund { key, amount_minor, metadata, answered: status, status });
        Ok(LedgerOutcome { payment: payment.clone(), changed: true })
    }

    /// With `wait`, new refunds stay pending until [`Ledger::set_refund_status`].
    pub fn hold_refunds(&self, wait: bool) {
        self.state().holds_refunds = wait;
    }

    /// Sets the status of the refund at `index`. A failed refund did not reach the payer.
    ///
    /// # Errors
    /// [`LedgerError::Unknown`].
    pub fn set_refund_status(
        &self,
        id: &str,
        index: usize,
        status: RefundStatus,
    ) -> Result<LedgerOutcome, LedgerError> {
        let mut state = self.state();
        let payment = state.payment(id)?;
        let refund = payment.refunds.get_mut(index).ok_or(LedgerError::Unknown)?;
        let changed = refund.status != status;
        refund.status = status;
        Ok(LedgerOutcome { payment: payment.clone(), changed })
    }

    /// Forgets the idempotency keys of all refunds, as after a day. The refunds stay.
    pub fn forget_refund_keys(&self) {
        for payment in self.state().payments.values_mut() {
            payment.refunds.iter_mut().for_each(|refund| refund.key = None);
        }
    }
}
