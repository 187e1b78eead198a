//! The cards: one for every way a payment can go.
//!
//! | card (page)          | token (API)             | what happens                                              |
//! |----------------------|-------------------------|-----------------------------------------------------------|
//! | `paid`               | `tok_paid`              | succeeds at once                                          |
//! | `declined`           | `tok_declined`          | fails at once, `card_declined`                            |
//! | `pending_paid`       | `tok_pending_paid`      | pending, then succeeds                                    |
//! | `pending_failed`     | `tok_pending_failed`    | pending, then fails, `bank_declined`                      |
//! | `slow`               | `tok_slow`              | succeeds, but the answer takes the slow time              |
//! | `no_answer_paid`     | `tok_no_answer_paid`    | never answers the first asker; pending, then succeeds     |
//! | `duplicate_webhooks` | `tok_duplicate_webhooks`| succeeds at once, and says so three times                 |
//! | `late_webhook`       | `tok_late_webhook`      | succeeds at once, and says so long afterwards             |
//! | `reordered_webhooks` | `tok_reordered_webhooks`| fails, then succeeds, and says so in the wrong order      |
//! | `another_amount`     | `tok_another_amount`    | succeeds with one minor unit less than asked for          |
//!
//! The payment page shows the same table. In Stripe's words (`crate::stripe`) a token is `pm_` and the card.
//!
//! A token may say which card of that kind it stands for: behind an `@` the card's number, and behind a full stop what
//! tells it from other tokens of the same card. So `tok_paid@1111.a`, `tok_paid@1111.b` and `tok_declined@1111` are three
//! tokens of one card, `tok_paid@2222` is another card's, and without an `@` it is the card with the ending of the page.
//! Of `tok_paid@`, with no number, the gateway cannot tell whose it is. [`fingerprint`] says so, and so does the payment
//! once it is paid. The page takes a card's name with such an ending as well, from programs.
//!
//! Not here: real card numbers. The page shows the made-up endings, nothing is typed in.

use sha2::{Digest, Sha256};

/// Length of a fingerprint.
const FINGERPRINT_DIGITS: usize = 16;

/// How a payment with a card goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Value of the page's radio button; the token is `tok_` and this.
    pub name: &'static str,
    /// In plain words, for the page.
    pub words: &'static str,
    /// What happens, in a sentence.
    pub explains: &'static str,
    /// Last four digits of the made-up number.
    pub ending: &'static str,
    /// What the bank says first.
    pub first: Verdict,
    /// What it says after the pending time, when it said [`Verdict::Pending`] first.
    pub later: Verdict,
    /// How the asker is answered.
    pub answer: Answer,
    /// How the merchant is told.
    pub telling: Telling,
}

/// What the bank says about a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The money is there.
    Paid,
    /// So it is, but one minor unit is missing.
    PaidLess,
    /// No, for this reason.
    Declined(&'static str),
    /// It will say later.
    Pending,
}

/// How the one who asked for a charge is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// At once.
    Prompt,
    /// After the slow time.
    Slow,
    /// Not until everybody has given up.
    Never,
}

/// How webhooks about a charge are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Each once.
    Once,
    /// Each three times, the same event.
    Thrice,
    /// Each once, after the late time.
    Late,
    /// There was a failure before the success; the merchant hears of the success first.
    Reordered,
}

const PAID: Card = Card {
    name: "paid",
    words: "Paid at once",
    explains: "The bank says yes.",
    ending: "4242",
    first: Verdict::Paid,
    later: Verdict::Paid,
    answer: Answer::Prompt,
    telling: Telling::Once,
};

/// All cards, in the order of the page; the first is preselected.
pub const CARDS: [Card; 10] = [
    PAID,
    Card {
        name: "declined",
        words: "Declined",
        explains: "The bank says no.",
        ending: "0002",
        first: Verdict::Declined("card_declined"),
        ..PAID
    },
    Card {
        name: "pending_paid",
        words: "Pending, then paid",
        explains: "The bank takes a few seconds, then says yes.",
        ending: "3220",
        first: Verdict::Pending,
        ..PAID
    },
    Card {
        name: "pending_failed",
        words: "Pending, then fails",
        explains: "The bank takes a few seconds, then says no.",
        ending: "9235",
        first: Verdict::Pending,
        later: Verdict::Declined("bank_declined"),
        ..PAID
    },
    Card {
        name: "slow",
        words: "Paid, slow to answer",
        explains: "Yes, but the answer takes its time.",
        ending: "5126",
        answer: Answer::Slow,
        ..PAID
    },
    Card {
        name: "no_answer_paid",
        words: "No answer, then paid",
        explains: "A program gets no answer; the payment goes through all the same.",
        ending: "6090",
        first: Verdict::Pending,
        answer: Answer::Never,
        ..PAID
    },
    Card {
        name: "duplicate_webhooks",
        words: "Paid, told three times",
        explains: "The cinema gets the same message three times.",
        ending: "7726",
        telling: Telling::Thrice,
        ..PAID
    },
    Card {
        name: "late_webhook",
        words: "Paid, told late",
        explains: "The cinema's message comes long afterwards.",
        ending: "8431",
        telling: Telling::Late,
        ..PAID
    },
    Card {
        name: "reordered_webhooks",
        words: "Paid at the second try, told in the wrong order",
        explains: "The cinema hears that it was paid, and then that an earlier try failed.",
        ending: "5904",
        telling: Telling::Reordered,
        ..PAID
    },
    Card {
        name: "another_amount",
        words: "Another amount",
        explains: "The bank takes a cent less than asked for. The cinema sends it back.",
        ending: "1209",
        first: Verdict::PaidLess,
        ..PAID
    },
];

/// How many of [`CARDS`] the page shows at first; the others unfold.
pub const EVERYDAY_CARDS: usize = 4;

/// The card of this name on the page.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Card> {
    CARDS.iter().find(|card| card.name == name)
}

/// The card this token of the API stands for.
#[must_use]
pub fn by_token(token: &str) -> Option<&'static Card> {
    by_name(kind_of(token.strip_prefix("tok_")?))
}

/// The card this payment method of Stripe's API stands for.
#[must_use]
pub fn by_payment_method(method: &str) -> Option<&'static Card> {
    by_name(kind_of(method.strip_prefix("pm_")?))
}

/// What tells a token's card from all others, the same for all of its tokens; `None` where nobody can tell.
#[must_use]
pub fn fingerprint(token: &str) -> Option<String> {
    let card = by_token(token).or_else(|| by_payment_method(token))?;
    let number = match token.split_once('@') {
        None => card.ending,
        Some((_, behind)) => behind.split('.').next().filter(|number| !number.is_empty())?,
    };
    let mut name = hex::encode(Sha256::digest(number));
    name.truncate(FINGERPRINT_DIGITS);
    Some(name)
}

/// The name of a card without what says which one of them it is.
fn kind_of(name: &str) -> &str {
    name.split_once('@').map_or(name, |(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_is_found_by_its_name_and_its_token_and_ends_somewhere() {
        for card in &CARDS {
            assert_eq!(by_name(card.name), Some(card));
            assert_eq!(by_token(&format!("tok_{}", card.name)), Some(card));
            assert_ne!(card.later, Verdict::Pending, "{}", card.name);
        }
        assert_eq!(by_token("paid"), None);
        assert_eq!(by_token("tok_"), None);
        assert_eq!(by_payment_method("tok_paid"), None);
    }

    #[test]
    fn two_tokens_can_be_of_one_card_and_two_cards_behave_alike() {
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
    fn the_table_above_has_every_card() {
        let rows: Vec<&str> = include_str!("cards.rs").lines().filter(|line| line.starts_with("//! | `")).collect();
        let named = |row: &&str, card: &Card| row.starts_with(&format!("//! | `{}`", card.name));
        assert_eq!(rows.len(), CARDS.len());
        assert!(rows.iter().zip(&CARDS).all(|(row, card)| named(row, card)));
    }
}
