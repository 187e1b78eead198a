//! Money that goes back, and what the ledger remembers of it.

use std::collections::BTreeMap;

use super::{Ledger, Outcome, Refused};
use crate::payment::{Refund, RefundStatus, Status};

/// Most refunds of one payment.
const MAX_REFUNDS: usize = 50;

impl Ledger {
    /// Sends money back, once per `key`.
    ///
    /// # Errors
    /// [`Refused::AboveCharge`], [`Refused::NotCharged`], [`Refused::KeyReused`],
    /// [`Refused::TooManyRefunds`], [`Refused::Unknown`].
    pub fn refund(&self, id: &str, key: &str, amount_minor: i64) -> Result<Outcome, Refused> {
        self.refund_noted(id, key, amount_minor, &BTreeMap::new())
    }

    /// The same, with the merchant's own notes on the refund.
    ///
    /// # Errors
    /// As [`Ledger::refund`].
    pub fn refund_noted(
        &self,
        id: &str,
        key: &str,
        amount_minor: i64,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Outcome, Refused> {
        let mut book = self.book();
        let status = if book.refunds_wait { RefundStatus::Pending } else { RefundStatus::Succeeded };
        let payment = book.payment(id)?;
        match payment.refund_under(key).map(|place| &payment.refunds[place]) {
            Some(earlier) if earlier.amount_minor == amount_minor && earlier.metadata == *metadata => {
                return Ok(Outcome { payment: payment.clone(), changed: false });
            }
            Some(_) => return Err(Refused::KeyReused),
            None if payment.refunds.len() == MAX_REFUNDS => return Err(Refused::TooManyRefunds),
            None => {}
        }
        if payment.status != Status::Succeeded {
            return Err(Refused::NotCharged);
        }
        if amount_minor < 1 || amount_minor > payment.taken_minor - payment.refunded_minor() {
            return Err(Refused::AboveCharge);
        }
        let (key, metadata) = (Some(key.to_owned()), metadata.clone());
        payment.refunds.push(Refund { key, amount_minor, metadata, answered: status, status });
        Ok(Outcome { payment: payment.clone(), changed: true })
    }

    /// Whether refunds asked for from now on are only accepted, and wait for [`Ledger::refund_becomes`].
    pub fn let_refunds_wait(&self, wait: bool) {
        self.book().refunds_wait = wait;
    }

    /// The bank's word on the refund at that place. One that failed did not go back after all.
    ///
    /// # Errors
    /// [`Refused::Unknown`].
    pub fn refund_becomes(&self, id: &str, place: usize, status: RefundStatus) -> Result<Outcome, Refused> {
        let mut book = self.book();
        let payment = book.payment(id)?;
        let refund = payment.refunds.get_mut(place).ok_or(Refused::Unknown)?;
        let changed = refund.status != status;
        refund.status = status;
        Ok(Outcome { payment: payment.clone(), changed })
    }

    /// A day goes by: no key of a refund is known any more. The refunds are.
    pub fn forget_refund_keys(&self) {
        for payment in self.book().payments.values_mut() {
            payment.refunds.iter_mut().for_each(|refund| refund.key = None);
        }
    }
}
