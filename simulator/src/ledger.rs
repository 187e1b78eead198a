//! The in-memory ledger of all payments; a restart loses them.
//!
//! It uses no clock and sends nothing: every method takes the time and returns what changed, under one
//! mutex that is never held across an await. `charging` sends the webhooks.
//!
//! The ledger is bounded: the oldest finished payments are evicted first; when none is finished, new
//! payments are refused.

mod movements;
mod refunds;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cards::BankVerdict;
use crate::payment::{NewPayment, Payment, Protocol, Status};

pub use movements::{Movement, MovementRecord};

/// Maximum number of payments in the ledger.
pub const MAX_PAYMENTS: usize = 200_000;
/// Payments evicted at once when the ledger is full: evicting one by one would search every time.
const EVICTION_BATCH: usize = 1_000;

/// The reason of a refusal by the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerError {
    /// There is no such payment.
    Unknown,
    /// The key was used for another request.
    KeyReused,
    /// The ledger is full of unfinished payments.
    Full,
    /// A charged payment cannot be voided.
    AlreadyCharged,
    /// Only a charged payment can be refunded.
    NotCharged,
    /// The amount is above the rest of the charge.
    AboveCharge,
    /// The payment has the maximum number of refunds.
    TooManyRefunds,
}

/// A payment after a call, and whether the call changed it.
#[derive(Clone, Debug)]
pub struct LedgerOutcome {
    /// The payment after the call.
    pub payment: Payment,
    /// False when the call was a retry, or too late to have an effect.
    pub changed: bool,
}

/// The ledger of payments.
pub struct Ledger {
    state: Mutex<LedgerState>,
    capacity: usize,
}

#[derive(Default)]
struct LedgerState {
    payments: HashMap<String, Payment>,
    /// Idempotency key of a payment → its id.
    by_key: HashMap<String, String>,
    /// Id and key in the order of arrival.
    arrivals: VecDeque<(String, String)>,
    /// New refunds stay pending.
    holds_refunds: bool,
    movements: movements::Movements,
}

impl Ledger {
    /// Creates an empty ledger for at most `capacity` payments.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { state: Mutex::default(), capacity }
    }

    /// Locks the state. No code under the lock can panic half-way, so a poisoned lock still guards a consistent state.
    fn state(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a payment under `key`, or returns the one already opened.
    ///
    /// # Errors
    /// [`LedgerError::KeyReused`], [`LedgerError::Full`].
    pub fn open(
        &self,
        key: &str,
        request: NewPayment,
        fresh_id: String,
        now_ms: i64,
    ) -> Result<LedgerOutcome, LedgerError> {
        let mut state = self.state();
        if let Some(payment) = state.by_key.get(key).and_then(|id| state.payments.get(id)) {
            if payment.request != request {
                return Err(LedgerError::KeyReused);
            }
            return Ok(LedgerOutcome { payment: payment.clone(), changed: false });
        }
        if state.payments.len() >= self.capacity {
            state.evict_finished(now_ms);
            if state.payments.len() >= self.capacity {
                return Err(LedgerError::Full);
            }
        }
        let payment = Payment {
            id: fresh_id,
            request,
            status: Status::RequiresPayer,
            failure: None,
            fingerprint: None,
            taken_minor: 0,
            refunds: Vec::new(),
        };
        state.by_key.insert(key.to_owned(), payment.id.clone());
        state.arrivals.push_back((payment.id.clone(), key.to_owned()));
        state.payments.insert(payment.id.clone(), payment.clone());
        Ok(LedgerOutcome { payment, changed: true })
    }

    /// Returns a payment by its id.
    ///
    /// # Errors
    /// [`LedgerError::Unknown`].
    pub fn get(&self, id: &str) -> Result<Payment, LedgerError> {
        self.state().payments.get(id).cloned().ok_or(LedgerError::Unknown)
    }

    /// Returns a payment by the key it was opened under.
    ///
    /// # Errors
    /// [`LedgerError::Unknown`].
    pub fn get_by_key(&self, key: &str) -> Result<Payment, LedgerError> {
        let state = self.state();
        state.by_key.get(key).and_then(|id| state.payments.get(id)).cloned().ok_or(LedgerError::Unknown)
    }

    /// Returns the payments with this reference, unordered. Scans all payments: for rare queries.
    #[must_use]
    pub fn with_reference(&self, reference: &str) -> Vec<Payment> {
        self.state().payments.values().filter(|payment| payment.request.reference == reference).cloned().collect()
    }

    /// Returns every payment, unordered, for reconciliation.
    #[must_use]
    pub fn all(&self) -> Vec<Payment> {
        self.state().payments.values().cloned().collect()
    }

    /// Applies the bank's first verdict to a payment that waits for its payer. A second verdict changes
    /// nothing, and neither does one after the payment expired. An expired payment keeps waiting until the
    /// merchant voids it, because the merchant set the expiry.
    ///
    /// # Errors
    /// [`LedgerError::Unknown`].
    pub fn decide(&self, id: &str, verdict: BankVerdict, now_ms: i64) -> Result<LedgerOutcome, LedgerError> {
        self.apply_verdict(id, verdict, |payment| {
            payment.status == Status::RequiresPayer && !payment.is_overdue(now_ms)
        })
    }

    /// Sets the card fingerprint of a payment that waits for its payer.
    ///
    /// # Errors
    /// [`LedgerError::Unknown`].
    pub fn set_card(&self, id: &str, fingerprint: Option<String>) -> Result<(), LedgerError> {
        let mut state = self.state();
        let payment = state.payment(id)?;
        if payment.status == Status::RequiresPayer {
            payment.fingerprint = fingerprint;
        }
        Ok(())
    }

    /// Applies the bank's final verdict to a pending payment, expired or not. A payment voided meanwhile
    /// does not change.
    ///
    /// # Errors
    /// [`LedgerError::Unknown`].
    pub fn settle(&self, id: &str, verdict: BankVerdict) -> Result<LedgerOutcome, LedgerError> {
        self.apply_verdict(id, verdict, |payment| payment.status == Status::Pending)
    }

    fn apply_verdict(
        &self,
        id: &str,
        verdict: BankVerdict,
        applies: impl FnOnce(&Payment) -> bool,
    ) -> Result<LedgerOutcome, LedgerError> {
        let mut state = self.state();
        let payment = state.payment(id)?;
        let changed = applies(payment);
        if changed {
            (payment.status, payment.failure) = match verdict {
                BankVerdict::Paid | BankVerdict::PaidLess => (Status::Succeeded, None),
                BankVerdict::Declined(why) if payment.allows_retry() => (Status::RequiresPayer, Some(why)),
                BankVerdict::Declined(why) => (Status::Failed, Some(why)),
                BankVerdict::Pending => (Status::Pending, None),
            };
            payment.taken_minor = match verdict {
                BankVerdict::Paid => payment.request.amount_minor,
                BankVerdict::PaidLess => (payment.request.amount_minor - 1).max(1),
                BankVerdict::Declined(_) | BankVerdict::Pending => 0,
            };
        }
        Ok(LedgerOutcome { payment: payment.clone(), changed })
    }

    /// Voids a payment, so that it is never charged. A failed payment keeps its status.
    ///
    /// # Errors
    /// [`LedgerError::AlreadyCharged`], [`LedgerError::Unknown`].
    pub fn void(&self, id: &str) -> Result<LedgerOutcome, LedgerError> {
        let mut state = self.state();
        let payment = state.payment(id)?;
        let changed = match payment.status {
            Status::Succeeded => return Err(LedgerError::AlreadyCharged),
            // Stripe reports a failed payment without another try as "canceled" as well.
            Status::Failed if matches!(payment.request.protocol, Protocol::Stripe(_)) => true,
            Status::Failed | Status::Voided => false,
            Status::RequiresPayer | Status::Pending => true,
        };
        if changed {
            payment.status = Status::Voided;
        }
        Ok(LedgerOutcome { payment: payment.clone(), changed })
    }
}

impl LedgerState {
    fn payment(&mut self, id: &str) -> Result<&mut Payment, LedgerError> {
        self.payments.get_mut(id).ok_or(LedgerError::Unknown)
    }

    fn evict_finished(&mut self, now_ms: i64) {
        let mut unfinished = VecDeque::new();
        let mut evicted = 0;
        while let Some((id, key)) = self.arrivals.pop_front() {
            let has_expired = |p: &Payment| p.status == Status::RequiresPayer && p.is_overdue(now_ms);
            let finished = self.payment(&id).is_ok_and(|p| p.status.is_final() || has_expired(p));
            if finished && evicted < EVICTION_BATCH {
                evicted += 1;
                self.payments.remove(&id);
                self.by_key.remove(&key);
            } else {
                unfinished.push_back((id, key));
            }
        }
        self.arrivals = unfinished;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payment::StripeTerms;

    const NOW: i64 = 1_000;

    fn new_payment() -> NewPayment {
        NewPayment {
            amount_minor: 2500,
            currency: "EUR".to_owned(),
            reference: "b1".to_owned(),
            description: String::new(),
            return_url: "http://127.0.0.1/back".to_owned(),
            cancel_url: None,
            webhook_url: "http://127.0.0.1/hook".to_owned(),
            expires_at_ms: 5_000,
            token: None,
            protocol: Protocol::Own,
        }
    }

    fn open(ledger: &Ledger, key: &str) -> Payment {
        ledger.open(key, new_payment(), format!("id_{key}"), NOW).expect("room").payment
    }

    #[test]
    fn one_key_is_one_payment_and_another_request_is_refused() {
        let ledger = Ledger::new(10);
        let first = open(&ledger, "k");
        let again = ledger.open("k", new_payment(), "another".to_owned(), NOW).expect("the same");
        assert_eq!((again.payment.id, again.changed), (first.id, false));
        let dearer = NewPayment { amount_minor: 2501, ..new_payment() };
        assert_eq!(ledger.open("k", dearer, "x".to_owned(), NOW).expect_err("reused"), LedgerError::KeyReused);
    }

    #[test]
    fn a_payment_is_decided_once() {
        let ledger = Ledger::new(10);
        let id = open(&ledger, "k").id;
        assert!(ledger.decide(&id, BankVerdict::Paid, NOW).expect("known").changed);
        let second = ledger.decide(&id, BankVerdict::Declined("card_declined"), NOW).expect("known");
        assert_eq!((second.changed, second.payment.status), (false, Status::Succeeded));
    }

    #[test]
    fn a_voided_payment_is_never_charged_and_a_charged_one_never_voided() {
        let ledger = Ledger::new(10);
        let id = open(&ledger, "pending").id;
        ledger.decide(&id, BankVerdict::Pending, NOW).expect("known");
        assert!(ledger.void(&id).expect("in time").changed);
        assert!(!ledger.void(&id).expect("again").changed);
        let late = ledger.settle(&id, BankVerdict::Paid).expect("known");
        assert_eq!((late.changed, late.payment.status), (false, Status::Voided));

        let id = open(&ledger, "paid").id;
        ledger.decide(&id, BankVerdict::Paid, NOW).expect("known");
        assert_eq!(ledger.void(&id).expect_err("too late"), LedgerError::AlreadyCharged);
    }

    #[test]
    fn an_expired_payment_is_not_charged_but_a_pending_one_settles() {
        let ledger = Ledger::new(10);
        let id = open(&ledger, "k").id;
        let late = ledger.decide(&id, BankVerdict::Paid, 5_000).expect("known");
        assert_eq!((late.changed, late.payment.status), (false, Status::RequiresPayer));
        assert_eq!(ledger.void(&id).expect("known").payment.status, Status::Voided);
        let id = open(&ledger, "p").id;
        ledger.decide(&id, BankVerdict::Pending, 4_999).expect("known");
        assert!(ledger.settle(&id, BankVerdict::Paid).expect("known").changed);
    }

    #[test]
    fn refunds_stay_within_the_charge_and_are_once_per_key() {
        let ledger = Ledger::new(10);
        let id = open(&ledger, "k").id;
        assert_eq!(ledger.refund(&id, "r", 1).expect_err("not yet"), LedgerError::NotCharged);
        ledger.decide(&id, BankVerdict::Paid, NOW).expect("known");
        assert!(ledger.refund(&id, "r1", 2000).expect("covered").changed);
        assert!(!ledger.refund(&id, "r1", 2000).expect("replayed").changed);
        assert_eq!(ledger.refund(&id, "r1", 1).expect_err("reused"), LedgerError::KeyReused);
        for too_much in [501, 0, -1, i64::MAX, i64::MIN] {
            assert_eq!(ledger.refund(&id, "r2", too_much).expect_err("too much"), LedgerError::AboveCharge);
        }
        assert_eq!(ledger.refund(&id, "r2", 500).expect("the rest").payment.refunded_minor(), 2500);
    }

    #[test]
    fn refunds_are_bounded_by_the_amount_charged() {
        let ledger = Ledger::new(10);
        let id = open(&ledger, "k").id;
        let less = ledger.decide(&id, BankVerdict::PaidLess, NOW).expect("known").payment;
        assert_eq!((less.taken_minor, less.amount_minor()), (2499, 2499));
        assert_eq!(ledger.refund(&id, "r1", 2500).expect_err("more than there is"), LedgerError::AboveCharge);
        assert!(ledger.refund(&id, "r2", 2499).expect("all of it").changed);
    }

    #[test]
    fn a_declined_checkout_session_can_be_retried() {
        let ledger = Ledger::new(10);
        let protocol = Protocol::Stripe(StripeTerms { checkout: true, ..StripeTerms::default() });
        let id = ledger
            .open("k", NewPayment { protocol, ..new_payment() }, "cs_1".to_owned(), NOW)
            .expect("room")
            .payment
            .id;
        let declined = ledger.decide(&id, BankVerdict::Declined("card_declined"), NOW).expect("known");
        assert_eq!((declined.changed, declined.payment.status), (true, Status::RequiresPayer));
        assert_eq!(declined.payment.failure, Some("card_declined"));
        assert_eq!(ledger.decide(&id, BankVerdict::Paid, NOW).expect("known").payment.status, Status::Succeeded);
    }

    #[test]
    fn a_full_ledger_evicts_finished_payments_or_refuses_new_ones() {
        let ledger = Ledger::new(2);
        let (first, second) = (open(&ledger, "a").id, open(&ledger, "b").id);
        assert_eq!(ledger.open("c", new_payment(), "c".to_owned(), NOW).expect_err("full"), LedgerError::Full);
        ledger.decide(&first, BankVerdict::Paid, NOW).expect("known");
        open(&ledger, "c");
        assert_eq!(ledger.get(&first).expect_err("forgotten"), LedgerError::Unknown);
        assert!(ledger.get(&second).is_ok());
        // Both other payments have expired by then.
        ledger.open("d", new_payment(), "d".to_owned(), 5_000).expect("room again");
    }
}
