//! The test cards: one for each outcome of a payment.
//!
//! | card (page)          | token (API)             | what happens                                              |
//! |----------------------|-------------------------|-----------------------------------------------------------|
//! | `paid`               | `tok_paid`              | succeeds at once                                          |
//! | `declined`           | `tok_declined`          | fails at once, `card_declined`                            |
//! | `pending_paid`       | `tok_pending_paid`      | pending, then succeeds                                    |
//! | `pending_failed`     | `tok_pending_failed`    | pending, then fails, `bank_declined`                      |
//! | `slow`               | `tok_slow`              | succeeds, but the answer takes the slow time              |
//! | `no_answer_paid`     | `tok_no_answer_paid`    | no answer to the first request; pending, then succeeds    |
//! | `duplicate_webhooks` | `tok_duplicate_webhooks`| succeeds at once, sends the webhook three times           |
//! | `late_webhook`       | `tok_late_webhook`      | succeeds at once, sends the webhook late                  |
//! | `reordered_webhooks` | `tok_reordered_webhooks`| fails, then succeeds, sends the webhooks out of order     |
//! | `another_amount`     | `tok_another_amount`    | succeeds with one minor unit less than requested          |
//!
//! The payment page shows the same table. In Stripe's API (`crate::stripe`) a payment method is `pm_` and the card.
//!
//! A token may name a card number after `@`, and after a full stop a suffix that distinguishes tokens of one card. So
//! `tok_paid@1111.a`, `tok_paid@1111.b` and `tok_declined@1111` are three tokens of one card, and `tok_paid@2222` is a
//! token of another card. Without `@` the number is the ending on the page. `tok_paid@` has no number, so its card is
//! unknown. [`fingerprint`] identifies the card, and a paid payment carries it. Programs may also submit a card name
//! with such a suffix to the page.
//!
//! There are no real card numbers: the page shows invented endings and has no input for numbers.

use sha2::{Digest, Sha256};

/// Length of a fingerprint, hex digits.
const FINGERPRINT_DIGITS: usize = 16;

/// A test card and its behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Value of the page's radio button; the token is `tok_` and this name.
    pub name: &'static str,
    /// Title on the page.
    pub title: &'static str,
    /// Explanation on the page, one sentence.
    pub explanation: &'static str,
    /// Last four digits of the invented number.
    pub ending: &'static str,
    /// The bank's first verdict.
    pub first: BankVerdict,
    /// The bank's verdict after the pending time, if the first one is [`BankVerdict::Pending`].
    pub later: BankVerdict,
    /// Timing of the answer to the request.
    pub answer: AnswerTiming,
    /// Delivery of the webhooks.
    pub webhooks: WebhookDelivery,
}

/// The bank's verdict on a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BankVerdict {
    /// Charged in full.
    Paid,
    /// Charged one minor unit less.
    PaidLess,
    /// Declined, with the reason.
    Declined(&'static str),
    /// Decided later.
    Pending,
}

/// Timing of the answer to a charge request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerTiming {
    /// Immediately.
    Prompt,
    /// After the slow time.
    Slow,
    /// Only after the client's timeout.
    Never,
}

/// Delivery of the webhooks about a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookDelivery {
    /// Each event once.
    Once,
    /// Each event three times.
    Thrice,
    /// Each event once, after the late time.
    Late,
    /// The event of the success before the event of an earlier failure.
    Reordered,
}

const PAID: Card = Card {
    name: "paid",
    title: "Paid at once",
    explanation: "The bank approves the payment.",
    ending: "4242",
    first: BankVerdict::Paid,
    later: BankVerdict::Paid,
    answer: AnswerTiming::Prompt,
    webhooks: WebhookDelivery::Once,
};

/// All cards, in the order of the page; the first is preselected.
pub const CARDS: [Card; 10] = [
    PAID,
    Card {
        name: "declined",
        title: "Declined",
        explanation: "The bank declines the payment.",
        ending: "0002",
        first: BankVerdict::Declined("card_declined"),
        ..PAID
    },
    Card {
        name: "pending_paid",
        title: "Pending, then paid",
        explanation: "The bank takes a few seconds, then approves.",
        ending: "3220",
        first: BankVerdict::Pending,
        ..PAID
    },
    Card {
        name: "pending_failed",
        title: "Pending, then fails",
        explanation: "The bank takes a few seconds, then declines.",
        ending: "9235",
        first: BankVerdict::Pending,
        later: BankVerdict::Declined("bank_declined"),
        ..PAID
    },
    Card {
        name: "slow",
        title: "Paid, slow to answer",
        explanation: "The bank approves, but its answer is slow.",
        ending: "5126",
        answer: AnswerTiming::Slow,
        ..PAID
    },
    Card {
        name: "no_answer_paid",
        title: "No answer, then paid",
        explanation: "A program gets no answer, and the payment succeeds anyway.",
        ending: "6090",
        first: BankVerdict::Pending,
        answer: AnswerTiming::Never,
        ..PAID
    },
    Card {
        name: "duplicate_webhooks",
        title: "Paid, three webhooks",
        explanation: "The cinema gets the same message three times.",
        ending: "7726",
        webhooks: WebhookDelivery::Thrice,
        ..PAID
    },
    Card {
        name: "late_webhook",
        title: "Paid, late webhook",
        explanation: "The cinema gets the message much later.",
        ending: "8431",
        webhooks: WebhookDelivery::Late,
        ..PAID
    },
    Card {
        name: "reordered_webhooks",
        title: "Paid at the second try, webhooks out of order",
        explanation: "The cinema gets the success first, then the earlier failure.",
        ending: "5904",
        webhooks: WebhookDelivery::Reordered,
        ..PAID
    },
    Card {
        name: "another_amount",
        title: "Another amount",
        explanation: "The bank takes one cent less. The cinema refunds it.",
        ending: "1209",
        first: BankVerdict::PaidLess,
        ..PAID
    },
];

/// Number of [`CARDS`] that the page shows first; the others are collapsed.
pub const EVERYDAY_CARDS: usize = 4;

/// Finds a card by its name on the page.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Card> {
    CARDS.iter().find(|card| card.name == name)
}

/// Finds the card of an API token.
#[must_use]
pub fn by_token(token: &str) -> Option<&'static Card> {
    by_name(kind_of(token.strip_prefix("tok_")?))
}

/// Finds the card of a payment method of Stripe's API.
#[must_use]
pub fn by_payment_method(method: &str) -> Option<&'static Card> {
    by_name(kind_of(method.strip_prefix("pm_")?))
}

/// Returns the fingerprint of a token's card, equal for all of its tokens; `None` when the card is unknown.
#[must_use]
pub fn fingerprint(token: &str) -> Option<String> {
    let card = by_token(token).or_else(|| by_payment_method(token))?;
    let number = match token.split_once('@') {
        None => card.ending,
        Some((_, number)) => number.split('.').next().filter(|number| !number.is_empty())?,
    };
    let mut name = hex::encode(Sha256::digest(number));
    name.truncate(FINGERPRINT_DIGITS);
    Some(name)
}

/// Strips the number from a card name.
fn kind_of(name: &str) -> &str {
    name.split_once('@').map_or(name, |(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_is_found_by_name_and_token_and_has_a_final_verdict() {
        for card in &CARDS {
            assert_eq!(by_name(card.name), Some(card));
            assert_eq!(by_token(&format!("tok_{}", card.name)), Some(card));
            assert_ne!(card.later, BankVerdict::Pending, "{}", card.name);
        }
        assert_eq!(by_token("paid"), None);
        assert_eq!(by_token("tok_"), None);
        assert_eq!(by_payment_method("tok_paid"), None);
    }

    #[test]
    fn tokens_of_one_card_share_a_fingerprint_and_other_cards_do_not() {
        let one = fingerprint("tok_paid@1111.a");
        assert!(one.as_ref().is_some_and(|name| name.len() == FINGERPRINT_DIGITS && !name.contains("1111")));
        for same in ["tok_paid@1111", "tok_paid@1111.b", "tok_declined@1111", "pm_paid@1111"] {
            assert_eq!(fingerprint(same), one, "{same}");
        }
        for other in ["tok_paid", "tok_paid@2222.a", "tok_slow"] {
            assert!(fingerprint(other).is_some() && fingerprint(other) != one, "{other}");
        }
        for unknown in ["tok_paid@", "tok_paid@.a", "tok_nothing@1111", "paid"] {
            assert_eq!(fingerprint(unknown), None, "{unknown}");
        }
        assert_eq!(by_token("tok_paid@1111.a"), by_token("tok_paid"));
    }

    #[test]
    fn the_module_table_lists_every_card() {
        let rows: Vec<&str> = include_str!("cards.rs").lines().filter(|line| line.starts_with("//! | `")).collect();
        let named = |row: &&str, card: &Card| row.starts_with(&format!("//! | `{}`", card.name));
        assert_eq!(rows.len(), CARDS.len());
        assert!(rows.iter().zip(&CARDS).all(|(row, card)| named(row, card)));
    }
}
