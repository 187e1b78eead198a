//! The rules by which a gateway's ledger and our books of one payment differ. Pure.

use domain::money::Money;

/// A payment at its gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amounts {
    pub(super) charged: Money,
    pub(super) refunded: Money,
}

/// The place of a booking's money, as seen from one gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Paid here at this gateway.
    Paid,
    /// Charged at this gateway and not paid.
    Unpaid,
    /// It left this gateway, and nothing there is still to be done.
    Left,
    /// It left this gateway, and its void there is still to be acknowledged.
    Leaving,
    /// It never was at this gateway.
    Stranger,
}

/// Our books of one booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Book {
    pub(super) standing: Standing,
    /// It is neither sold nor over: the reconciler asks about it.
    pub(super) is_open: bool,
    /// It is voided at the gateway again, later (`unknown_voids`).
    pub(super) is_checked: bool,
    /// A person has seen to a refund of it, or one came back: it may be with the payer in another way.
    pub(super) by_person: bool,
    /// The sum that was charged.
    pub(super) charged: Money,
    /// The sum of all refunds that were requested, of the bookings that the money moved on to as well…
    pub(super) requested_minor: i64,
    /// …and of those that were settled.
    pub(super) settled_minor: i64,
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The gateway charged a booking that is not here.
    UnknownBooking,
    /// It has money of a booking that is not paid here.
    ChargedUnpaid,
    /// It took another sum.
    ChargedDiffers,
    /// It sent more back than was asked for here.
    RefundedThere,
    /// Here more counts as sent back.
    RefundedHere,
    /// Paid here, and the gateway has no such money.
    MissingThere,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::UnknownBooking,
        Self::ChargedUnpaid,
        Self::ChargedDiffers,
        Self::RefundedThere,
        Self::RefundedHere,
        Self::MissingThere,
    ];

    /// As `ledger_differences.kind` keeps it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownBooking => "unknown_booking",
            Self::ChargedUnpaid => "charged_unpaid",
            Self::ChargedDiffers => "charged_differs",
            Self::RefundedThere => "refunded_there",
            Self::RefundedHere => "refunded_here",
            Self::MissingThere => "missing_there",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// A difference, with the sums on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) kind: Kind,
    pub(super) here: Money,
    pub(super) there: Money,
}

/// The difference about a payment that the gateway has; `None` where both sides agree, or are about to.
pub(super) fn judge(there: Amounts, book: Option<&Book>) -> Option<Difference> {
    let nothing = Money::new(0, there.charged.currency);
    let kept = Money::new(there.charged.minor - there.refunded.minor, there.charged.currency);
    let unpaid = |kind| Difference { kind, here: nothing, there: kept };
    let Some(book) = book else { return (kept.minor > 0).then(|| unpaid(Kind::UnknownBooking)) };
    match book.standing {
        Standing::Leaving => None,
        Standing::Unpaid if book.is_open || book.is_checked => None,
        Standing::Unpaid | Standing::Left | Standing::Stranger => {
            (kept.minor > 0 && !book.is_checked).then(|| unpaid(Kind::ChargedUnpaid))
        }
        Standing::Paid if there.charged != book.charged => {
            Some(Difference { kind: Kind::ChargedDiffers, here: book.charged, there: there.charged })
        }
        Standing::Paid => {
            let back = |minor| Money::new(minor, there.charged.currency);
            if there.refunded.minor > book.requested_minor {
                let here = back(book.requested_minor);
                return Some(Difference { kind: Kind::RefundedThere, here, there: there.refunded });
            }
            let is_short = there.refunded.minor < book.settled_minor && !book.by_person;
            let here = back(book.settled_minor);
            is_short.then_some(Difference { kind: Kind::RefundedHere, here, there: there.refunded })
        }
    }
}

/// The difference about a payment that the gateway does not have.
pub(super) fn missing(book: &Book) -> Option<Difference> {
    let there = Money::new(0, book.charged.currency);
    let is_paid = book.standing == Standing::Paid && book.charged.minor > 0;
    is_paid.then_some(Difference { kind: Kind::MissingThere, here: book.charged, there })
}

#[cfg(test)]
mod tests {
    use domain::money::Currency;

    use super::*;

    fn eur(minor: i64) -> Money {
        Money::new(minor, Currency::parse("EUR").expect("a code"))
    }

    fn there(charged: i64, refunded: i64) -> Amounts {
        Amounts { charged: eur(charged), refunded: eur(refunded) }
    }

    fn book(standing: Standing) -> Book {
        Book {
            standing,
            is_open: false,
            is_checked: false,
            by_person: false,
            charged: eur(2_500),
            requested_minor: 1_000,
            settled_minor: 500,
        }
    }

    fn kind(there: Amounts, book: &Book) -> Option<Kind> {
        judge(there, Some(book)).map(|found| found.kind)
    }

    #[test]
    fn a_payment_that_is_the_same_on_both_sides_does_not_differ() {
        let paid = book(Standing::Paid);
        // A refund is under way: the gateway may have sent it already.
        for refunded in [500, 750, 1_000] {
            assert_eq!(kind(there(2_500, refunded), &paid), None, "{refunded}");
        }
        assert_eq!(kind(there(2_500, 2_500), &book(Standing::Left)), None, "it went back");
        assert_eq!(kind(there(2_500, 0), &book(Standing::Leaving)), None, "it is about to");
        let open = Book { is_open: true, ..book(Standing::Unpaid) };
        assert_eq!(kind(there(2_500, 0), &open), None, "the reconciler asks");
        let checked = Book { is_checked: true, ..book(Standing::Unpaid) };
        assert_eq!(kind(there(2_500, 0), &checked), None, "it is asked about again");
        assert_eq!(judge(there(2_500, 2_500), None), None);
    }

    #[test]
    fn every_difference_has_its_kind_and_its_sums() {
        let paid = book(Standing::Paid);
        assert_eq!(judge(there(2_500, 0), None).map(|found| found.kind), Some(Kind::UnknownBooking));
        for standing in [Standing::Unpaid, Standing::Left, Standing::Stranger] {
            assert_eq!(kind(there(2_500, 0), &book(standing)), Some(Kind::ChargedUnpaid), "{standing:?}");
        }
        for charged in [2_499, 2_501] {
            assert_eq!(kind(there(charged, 500), &paid), Some(Kind::ChargedDiffers), "{charged}");
        }
        let more = judge(there(2_500, 1_001), Some(&paid)).expect("it differs");
        assert_eq!(more, Difference { kind: Kind::RefundedThere, here: eur(1_000), there: eur(1_001) });
        let less = judge(there(2_500, 499), Some(&paid)).expect("it differs");
        assert_eq!(less, Difference { kind: Kind::RefundedHere, here: eur(500), there: eur(499) });
        assert_eq!(kind(there(2_500, 0), &Book { by_person: true, ..paid }), None, "paid back in another way");
        assert_eq!(missing(&paid).map(|found| found.kind), Some(Kind::MissingThere));
        assert_eq!(missing(&book(Standing::Unpaid)), None);
    }

    #[test]
    fn kinds_are_known_by_their_names() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(Kind::parse("another"), None);
    }
}
