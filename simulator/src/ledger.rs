//! All payments, in memory: this service plays a third party, and a restart may forget its games.
//!
//! Pure of clocks and channels: every method takes the time and answers what changed, under one
//! mutex that is never held across an await. What is told to whom is `charging`'s business.
//!
//! Bounded: the oldest finished payments go first; when nothing is finished, new ones are refused.

mod movements;
mod refunds;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cards::Verdict;
use crate::payment::{Dialect, NewPayment, Payment, Status};

pub use movements::{Line, Movement};

/// Most payments remembered.
pub const MAX_PAYMENTS: usize = 200_000;
/// Payments forgotten at once when the ledger is full: dropping one by one would search every time.
const FORGET_AT_ONCE: usize = 1_000;

/// Why the ledger refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No such payment.
    Unknown,
    /// The key was used for another request.
    KeyReused,
    /// Every payment remembered is still going on.
    Full,
    /// It has been charged: it cannot be voided.
    AlreadyCharged,
    /// Only what was charged can be refunded.
    NotCharged,
    /// More than what is left of the charge.
    AboveCharge,
    /// One payment cannot be refunded in so many pieces.
    TooManyRefunds,
}

/// A payment after a call, and whether this call made it what it is.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// As it stands now.
    pub payment: Payment,
    /// False when the call was a repeat, or came too late to matter.
    pub changed: bool,
}

/// The payments.
pub struct Ledger {
    book: Mutex<Book>,
    capacity: usize,
}

#[derive(Default)]
struct Book {
    payments: HashMap<String, Payment>,
    /// Idempotency key of a payment → its id.
    by_key: HashMap<String, String>,
    /// Id and key in the order of arrival.
    arrivals: VecDeque<(String, String)>,
    /// Refunds asked for from now on are accepted, and on their way for a while.
    refunds_wait: bool,
    movements: movements::Movements,
}

impl Ledger {
    /// An empty ledger for at most `capacity` payments.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { book: Mutex::default(), capacity }
    }

    /// Nothing under the lock can panic half way, so a poisoned lock still guards a whole book.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a payment under `key`, or finds the one that was.
    ///
    /// # Errors
    /// [`Refused::KeyReused`], [`Refused::Full`].
    pub fn open(&self, key: &str, asked: NewPayment, fresh_id: String, now_ms: i64) -> Result<Outcome, Refused> {
        let mut book = self.book();
        if let Some(payment) = book.by_key.get(key).and_then(|id| book.payments.get(id)) {
            if payment.asked != asked {
                return Err(Refused::KeyReused);
            }
            return Ok(Outcome { payment: payment.clone(), changed: false });
        }
        if book.payments.len() >= self.capacity {
            book.forget_finished(now_ms);
            if book.payments.len() >= self.capacity {
                return Err(Refused::Full);
            }
        }
        let payment = Payment {
            id: fresh_id,
            asked,
            status: Status::RequiresPayer,
            failure: None,
            fingerprint: None,
            taken_minor: 0,
            refunds: Vec::new(),
        };
        book.by_key.insert(key.to_owned(), payment.id.clone());
        book.arrivals.push_back((payment.id.clone(), key.to_owned()));
        book.payments.insert(payment.id.clone(), payment.clone());
        Ok(Outcome { payment, changed: true })
    }

    /// A payment by its id.
    ///
    /// # Errors
    /// [`Refused::Unknown`].
    pub fn get(&self, id: &str) -> Result<Payment, Refused> {
        self.book().payments.get(id).cloned().ok_or(Refused::Unknown)
    }

    /// A payment by the key it was opened under.
    ///
    /// # Errors
    /// [`Refused::Unknown`].
    pub fn get_by_key(&self, key: &str) -> Result<Payment, Refused> {
        let book = self.book();
        book.by_key.get(key).and_then(|id| book.payments.get(id)).cloned().ok_or(Refused::Unknown)
    }

    /// The payments with this reference, in no order. Looks at every one: for questions asked rarely.
    #[must_use]
    pub fn with_reference(&self, reference: &str) -> Vec<Payment> {
        self.book().payments.values().filter(|payment| payment.asked.reference == reference).cloned().collect()
    }

    /// Every payment remembered, in no order: for whoever balances the books.
    #[must_use]
    pub fn all(&self) -> Vec<Payment> {
        self.book().payments.values().cloned().collect()
    }

    /// The bank's first word on a payment that waits for its payer. One payer, one word: a second
    /// press on Pay changes nothing, and neither does the first one after the payment's time. It then
    /// goes on waiting, in vain, until the merchant voids it: the time was theirs.
    ///
    /// # Errors
    /// [`Refused::Unknown`].
    pub fn decide(&self, id: &str, verdict: Verdict, now_ms: i64) -> Result<Outcome, Refused> {
        self.rule(id, verdict, |payment| payment.status == Status::RequiresPayer && !payment.is_overdue(now_ms))
    }

    /// Notes the fingerprint of the card that is given to a payment that waits for one.
    ///
    /// # Errors
    /// [`Refused::Unknown`].
    pub fn give_card(&self, id: &str, fingerprint: Option<String>) -> Result<(), Refused> {
        let mut book = self.book();
        let payment = book.payment(id)?;
        if payment.status == Status::RequiresPayer {
            payment.fingerprint = fingerprint;
        }
        Ok(())
    }

    /// The bank's last word on a pending payment, in time or not. Nothing changes when it was voided
    /// meanwhile.
    ///
    /// # Errors
    /// [`Refused::Unknown`].
    pub fn settle(&self, id: &str, verdict: Verdict) -> Result<Outcome, Refused> {
        self.rule(id, verdict, |payment| payment.status == Status::Pending)
    }

    fn rule(&self, id: &str, verdict: Verdict, applies: impl FnOnce(&Payment) -> bool) -> Result<Outcome, Refused> {
        let mut book = self.book();
        let payment = book.payment(id)?;
        let changed = applies(payment);
        if changed {
            (payment.status, payment.failure) = match verdict {
                Verdict::Paid | Verdict::PaidLess => (Status::Succeeded, None),
                Verdict::Declined(why) if payment.may_be_tried_again() => (Status::RequiresPayer, Some(why)),
                Verdict::Declined(why) => (Status::Failed, Some(why)),
                Verdict::Pending => (Status::Pending, None),
            };
            payment.taken_minor = match verdict {
                Verdict::Paid => payment.asked.amount_minor,
                Verdict::PaidLess => (payment.asked.amount_minor - 1).max(1),
                Verdict::Declined(_) | Verdict::Pending => 0,
            };
        }
        Ok(Outcome { payment: payment.clone(), changed })
    }

    /// Never charge this. A payment that failed keeps that state: it will not be charged either.
    ///
    /// # Errors
    /// [`Refused::AlreadyCharged`], [`Refused::Unknown`].
    pub fn void(&self, id: &str) -> Result<Outcome, Refused> {
        let mut book = self.book();
        let payment = book.payment(id)?;
        let changed = match payment.status {
            Status::Succeeded => return Err(Refused::AlreadyCharged),
            // Stripe's word for a failed payment that nobody may try again is "canceled" as well.
            Status::Failed if matches!(payment.asked.dialect, Dialect::Stripe(_)) => true,
            Status::Failed | Status::Voided => false,
            Status::RequiresPayer | Status::Pending => true,
        };
        if changed {
            payment.status = Status::Voided;
        }
        Ok(Outcome { payment: payment.clone(), changed })
    }
}

impl Book {
    fn payment(&mut self, id: &str) -> Result<&mut Payment, Refused> {
        self.payments.get_mut(id).ok_or(Refused::Unknown)
    }

    fn forget_finished(&mut self, now_ms: i64) {
        let mut unfinished = VecDeque::new();
        let mut forgotten = 0;
        while let Some((id, key)) = self.arrivals.pop_front() {
            let waits_in_vain = |p: &Payment| p.status == Status::RequiresPayer && p.is_overdue(now_ms);
            let finished = self.payment(&id).is_ok_and(|p| p.status.is_final() || waits_in_vain(p));
            if finished && forgotten < FORGET_AT_ONCE {
                forgotten += 1;
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

    fn asked() -> NewPayment {
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
            dialect: Dialect::Own,
        }
    }

    fn open(ledger: &Ledger, key: &str) -> Payment {
        ledger.open(key, asked(), format!("id_{key}"), NOW).expect("room").payment
    }

    #[test]
    fn one_key_is_one_payment_and_only_for_one_request() {
        let ledger = Ledger::new(10);
        let first = open(&ledger, "k");
        let again = ledger.open("k", asked(), "another".to_owned(), NOW).expect("the same");
        assert_eq!((again.payment.id, again.changed), (first.id, false));
        let dearer = NewPayment { amount_minor: 2501, ..asked() };
        assert_eq!(ledger.open("k", dearer, "x".to_owned(), NOW).expect_err("reused"), Refused::KeyReused);
    }

    #[test]
    fn a_payment_is_decided_once() {
        let ledger = Ledger::new(10);
        let id = open(&ledger, "k").id;
        assert!(ledger.decide(&id, Verdict::Paid, NOW).expect("known").changed);
        let second = ledger.decide(&id, Verdict::Declined("card_declined"), NOW).expect("known");
        assert_eq!((second.changed, second.payment.status), (false, Status::Succeeded));
    }

    #[test]
    fn a_voided_payment_is_never_charged_and_a_charged_one_never_voided() {
        let ledger = Ledger::new(10);
        let id = open(&ledger, "pending").id;
        ledger.decide(&id, Verdict::Pending, NOW).expect("known");
        assert!(ledger.void(&id).expect("in time").changed);
        assert!(!ledger.void(&id).expect("again").changed);
        let late = ledger.settle(&id, Verdict::Paid).expect("known");
        assert_eq!((late.changed, late.payment.status), (false, Status::Voided));

        let id = open(&ledger, "paid").id;
        ledger.decide(&id, Verdict::Paid, NOW).expect("known");
        assert_eq!(ledger.void(&id).expect_err("too late"), Refused::AlreadyCharged);
    }

    #[test]
    fn nobody_pays_after_the_time_but_a_pending_payment_still_settles() {
        let ledger = Ledger::new(10);
        let id = open(&ledger, "k").id;
        let late = ledger.decide(&id, Verdict::Paid, 5_000).expect("known");
        assert_eq!((late.changed, late.payment.status), (false, Status::RequiresPayer));
        assert_eq!(ledger.void(&id).expect("known").payment.status, Status::Voided);
        let id = open(&ledger, "p").id;
        ledger.decide(&id, Verdict::Pending, 4_999).expect("known");
        assert!(ledger.settle(&id, Verdict::Paid).expect("known").changed);
    }

    #[test]
    fn refunds_never_exceed_the_charge_and_happen_once_per_key() {
        let ledger = Ledger::new(10);
        let id = open(&ledger, "k").id;
        assert_eq!(ledger.refund(&id, "r", 1).expect_err("not yet"), Refused::NotCharged);
        ledger.decide(&id, Verdict::Paid, NOW).expect("known");
        assert!(ledger.refund(&id, "r1", 2000).expect("covered").changed);
        assert!(!ledger.refund(&id, "r1", 2000).expect("replayed").changed);
        assert_eq!(ledger.refund(&id, "r1", 1).expect_err("reused"), Refused::KeyReused);
        for too_much in [501, 0, -1, i64::MAX, i64::MIN] {
            assert_eq!(ledger.refund(&id, "r2", too_much).expect_err("too much"), Refused::AboveCharge);
        }
        assert_eq!(ledger.refund(&id, "r2", 500).expect("the rest").payment.refunded_minor(), 2500);
    }

    #[test]
    fn what_goes_back_is_bounded_by_what_was_taken() {
        let ledger = Ledger::new(10);
        let id = open(&ledger, "k").id;
        let less = ledger.decide(&id, Verdict::PaidLess, NOW).expect("known").payment;
        assert_eq!((less.taken_minor, less.amount_minor()), (2499, 2499));
        assert_eq!(ledger.refund(&id, "r1", 2500).expect_err("more than there is"), Refused::AboveCharge);
        assert!(ledger.refund(&id, "r2", 2499).expect("all of it").changed);
    }

    #[test]
    fn on_stripes_page_a_payer_may_try_again() {
        let ledger = Ledger::new(10);
        let dialect = Dialect::Stripe(StripeTerms { checkout: true, ..StripeTerms::default() });
        let id = ledger.open("k", NewPayment { dialect, ..asked() }, "cs_1".to_owned(), NOW).expect("room").payment.id;
        let declined = ledger.decide(&id, Verdict::Declined("card_declined"), NOW).expect("known");
        assert_eq!((declined.changed, declined.payment.status), (true, Status::RequiresPayer));
        assert_eq!(declined.payment.failure, Some("card_declined"));
        assert_eq!(ledger.decide(&id, Verdict::Paid, NOW).expect("known").payment.status, Status::Succeeded);
    }

    #[test]
    fn a_full_ledger_forgets_the_finished_and_refuses_when_nothing_is() {
        let ledger = Ledger::new(2);
        let (first, second) = (open(&ledger, "a").id, open(&ledger, "b").id);
        assert_eq!(ledger.open("c", asked(), "c".to_owned(), NOW).expect_err("full"), Refused::Full);
        ledger.decide(&first, Verdict::Paid, NOW).expect("known");
        open(&ledger, "c");
        assert_eq!(ledger.get(&first).expect_err("forgotten"), Refused::Unknown);
        assert!(ledger.get(&second).is_ok());
        // Both others wait for payers who come too late.
        ledger.open("d", asked(), "d".to_owned(), 5_000).expect("room again");
    }
}
