//! The in-memory ledger of all payments; a restart loses them.
//!
//! It uses no clock and sends nothing: every method takes the time and returns what changed, under one
//! mutex that is never held across an await. `charging` sends the webhooks.
//!
//! The ledger is bounded: the oldest finished payments are evicted first; when none is finished, new
//! payments are refused.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cards::BankVerdict;
use crate::payment::{NewPayment, Payment, Protocol, Refund, RefundStatus, Status};

/// Maximum number of payments in the ledger.
pub const MAX_PAYMENTS: usize = 200_000;
/// Payments evicted at once when the ledger is full: evicting one by one would search every time.
const EVICTION_BATCH: usize = 1_000;
/// Maximum number of refunds of one payment.
const MAX_REFUNDS: usize = 50;
/// Maximum number of movements; the oldest are evicted first.
const MAX_MOVEMENTS: usize = 2 * MAX_PAYMENTS;

/// The reason why an operation on a payment was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerError {
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
    /// The queue of webhooks is full, so that a change could not be reported.
    QueueFull,
}

pub type LedgerResult<T> = Result<T, LedgerError>;

/// A payment after a call, and whether the call changed it.
#[derive(Clone, Debug)]
pub struct LedgerOutcome {
    pub payment: Payment,
    /// False when the call was a retry, or too late to have an effect.
    pub changed: bool,
}

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
    movements: Movements,
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
    pub fn open(&self, key: &str, request: NewPayment, fresh_id: String, now_ms: i64) -> LedgerResult<LedgerOutcome> {
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
        let payment = Payment::new(fresh_id, request);
        state.by_key.insert(key.to_owned(), payment.id.clone());
        state.arrivals.push_back((payment.id.clone(), key.to_owned()));
        state.payments.insert(payment.id.clone(), payment.clone());
        Ok(LedgerOutcome { payment, changed: true })
    }

    /// Returns a payment by its id.
    pub fn get(&self, id: &str) -> LedgerResult<Payment> {
        self.state().payments.get(id).cloned().ok_or(LedgerError::Unknown)
    }

    /// Returns a payment by the key it was opened under.
    pub fn get_by_key(&self, key: &str) -> LedgerResult<Payment> {
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
    pub fn decide(&self, id: &str, verdict: BankVerdict, now_ms: i64) -> LedgerResult<LedgerOutcome> {
        self.apply_verdict(id, verdict, |payment| {
            payment.status == Status::RequiresPayer && !payment.is_overdue(now_ms)
        })
    }

    /// Sets the card fingerprint of a payment that waits for its payer.
    pub fn set_card(&self, id: &str, fingerprint: Option<String>) -> LedgerResult<()> {
        let mut state = self.state();
        let payment = state.payment(id)?;
        if payment.status == Status::RequiresPayer {
            payment.fingerprint = fingerprint;
        }
        Ok(())
    }

    /// Applies the bank's final verdict to a pending payment, expired or not. A payment voided meanwhile
    /// does not change.
    pub fn settle(&self, id: &str, verdict: BankVerdict) -> LedgerResult<LedgerOutcome> {
        self.apply_verdict(id, verdict, |payment| payment.status == Status::Pending)
    }

    fn apply_verdict(
        &self,
        id: &str,
        verdict: BankVerdict,
        applies: impl FnOnce(&Payment) -> bool,
    ) -> LedgerResult<LedgerOutcome> {
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
    pub fn void(&self, id: &str) -> LedgerResult<LedgerOutcome> {
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

    /// Refunds a payment, once per `key`, with the merchant's metadata on the refund.
    ///
    /// # Errors
    /// [`LedgerError::AboveCharge`], [`LedgerError::NotCharged`], [`LedgerError::KeyReused`],
    /// [`LedgerError::TooManyRefunds`], [`LedgerError::Unknown`].
    pub fn refund(
        &self,
        id: &str,
        key: &str,
        amount_minor: i64,
        metadata: &BTreeMap<String, String>,
    ) -> LedgerResult<LedgerOutcome> {
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
    pub fn set_refund_status(&self, id: &str, index: usize, status: RefundStatus) -> LedgerResult<LedgerOutcome> {
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

    pub fn note_movement(&self, id: &str, movement: Movement, now_ms: i64) {
        self.state().movements.push(id, movement, now_ms);
    }

    /// Returns up to `limit` matching movements of the window after number `after`, the oldest first, and whether there
    /// are more.
    #[must_use]
    pub fn movements_after(
        &self,
        window_ms: &Range<i64>,
        after: Option<u64>,
        limit: usize,
        matches: impl Fn(&MovementRecord) -> bool,
    ) -> (Vec<MovementRecord>, bool) {
        let state = self.state();
        let mut indexes = state.indexes(window_ms);
        if let Some(after) = after {
            let next = usize::try_from((after + 1).saturating_sub(state.movements.evicted)).unwrap_or(usize::MAX);
            indexes.start = indexes.start.max(next).min(indexes.end);
        }
        page(indexes.filter_map(|index| state.record(index)).filter(matches), limit)
    }

    /// Returns the same with the newest first, after the first movement that `is_last` selects.
    #[must_use]
    pub fn movements_before(
        &self,
        window_ms: &Range<i64>,
        is_last: Option<impl Fn(&MovementRecord) -> bool>,
        limit: usize,
        matches: impl Fn(&MovementRecord) -> bool,
    ) -> (Vec<MovementRecord>, bool) {
        let state = self.state();
        let mut entries = state.indexes(window_ms).rev().filter_map(|index| state.record(index)).filter(matches);
        if let Some(is_last) = is_last {
            entries.by_ref().find(is_last);
        }
        page(entries, limit)
    }

    /// Makes every movement older by `by_ms` milliseconds.
    pub fn age_movements(&self, by_ms: i64) {
        self.state().movements.entries.iter_mut().for_each(|(at_ms, ..)| *at_ms -= by_ms);
    }
}

impl LedgerState {
    fn payment(&mut self, id: &str) -> LedgerResult<&mut Payment> {
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

    fn record(&self, index: usize) -> Option<MovementRecord> {
        let (_, id, movement) = self.movements.entries.get(index)?;
        let payment = self.payments.get(id)?.clone();
        Some(MovementRecord { number: self.movements.evicted + index as u64, movement: *movement, payment })
    }

    /// Returns the indexes of the movements in the window.
    fn indexes(&self, window_ms: &Range<i64>) -> Range<usize> {
        let entries = &self.movements.entries;
        let start = entries.partition_point(|(at_ms, ..)| *at_ms < window_ms.start);
        start..entries.partition_point(|(at_ms, ..)| *at_ms < window_ms.end).max(start)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// A payment was charged.
    Charge,
    /// The refund with this index was requested.
    Refund(usize),
}

/// A movement with the current state of its payment.
#[derive(Clone, Debug)]
pub struct MovementRecord {
    /// Sequence number.
    pub number: u64,
    pub movement: Movement,
    pub payment: Payment,
}

/// The movements in order of time.
#[derive(Default)]
struct Movements {
    entries: VecDeque<(i64, String, Movement)>,
    /// Number of evicted movements.
    evicted: u64,
}

impl Movements {
    fn push(&mut self, id: &str, movement: Movement, now_ms: i64) {
        if self.entries.len() == MAX_MOVEMENTS {
            self.entries.pop_front();
            self.evicted += 1;
        }
        // Two requests may read the clock and arrive here in different orders.
        let at_ms = self.entries.back().map_or(now_ms, |(last, ..)| now_ms.max(*last));
        self.entries.push_back((at_ms, id.to_owned(), movement));
    }
}

fn page(mut entries: impl Iterator<Item = MovementRecord>, limit: usize) -> (Vec<MovementRecord>, bool) {
    let listed: Vec<MovementRecord> = entries.by_ref().take(limit).collect();
    let has_more = entries.next().is_some();
    (listed, has_more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payment::StripeTerms;

    const NOW: i64 = 1_000;

    fn new_payment() -> NewPayment {
        NewPayment { expires_at_ms: 5_000, ..NewPayment::example() }
    }

    fn open(ledger: &Ledger, key: &str) -> Payment {
        ledger.open(key, new_payment(), format!("id_{key}"), NOW).expect("room").payment
    }

    fn refund(ledger: &Ledger, id: &str, key: &str, amount_minor: i64) -> LedgerResult<LedgerOutcome> {
        ledger.refund(id, key, amount_minor, &BTreeMap::new())
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
        assert_eq!(refund(&ledger, &id, "r", 1).expect_err("not yet"), LedgerError::NotCharged);
        ledger.decide(&id, BankVerdict::Paid, NOW).expect("known");
        assert!(refund(&ledger, &id, "r1", 2000).expect("covered").changed);
        assert!(!refund(&ledger, &id, "r1", 2000).expect("replayed").changed);
        assert_eq!(refund(&ledger, &id, "r1", 1).expect_err("reused"), LedgerError::KeyReused);
        for too_much in [501, 0, -1, i64::MAX, i64::MIN] {
            assert_eq!(refund(&ledger, &id, "r2", too_much).expect_err("too much"), LedgerError::AboveCharge);
        }
        assert_eq!(refund(&ledger, &id, "r2", 500).expect("the rest").payment.refunded_minor(), 2500);
    }

    #[test]
    fn refunds_are_bounded_by_the_amount_charged() {
        let ledger = Ledger::new(10);
        let id = open(&ledger, "k").id;
        let less = ledger.decide(&id, BankVerdict::PaidLess, NOW).expect("known").payment;
        assert_eq!((less.taken_minor, less.amount_minor()), (2499, 2499));
        assert_eq!(refund(&ledger, &id, "r1", 2500).expect_err("more than there is"), LedgerError::AboveCharge);
        assert!(refund(&ledger, &id, "r2", 2499).expect("all of it").changed);
    }

    #[test]
    fn a_declined_checkout_session_can_be_retried() {
        let ledger = Ledger::new(10);
        let protocol = Protocol::Stripe(StripeTerms { checkout: true, ..StripeTerms::default() });
        let request = NewPayment { protocol, ..new_payment() };
        let id = ledger.open("k", request, "cs_1".to_owned(), NOW).expect("room").payment.id;
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
