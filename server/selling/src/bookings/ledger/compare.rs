//! Rules that detect differences between a gateway's ledger and our books of one payment. Pure.

use domain::money::Money;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A payment at its gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amounts {
    pub(super) charged: Money,
    pub(super) refunded: Money,
}

/// The state of a booking's money, as seen from one gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayMoneyState {
    /// Paid at this gateway.
    Paid,
    /// Submitted at this gateway and not paid.
    Unpaid,
    /// It left this gateway, and everything there is settled.
    Left,
    /// It left this gateway, and its void there is not acknowledged yet.
    Leaving,
    /// It never was at this gateway.
    NeverUsed,
}

/// Our books of one booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Book {
    pub(super) standing: GatewayMoneyState,
    /// It is neither sold nor final: the reconciler asks about it.
    pub(super) is_open: bool,
    /// It is scheduled to be voided again (`unknown_voids`).
    pub(super) is_checked: bool,
    /// A person handled a refund of it, or one failed: the payer may have the money by another path.
    pub(super) by_person: bool,
    pub(super) charged: Money,
    /// The sum of all refunds that were requested, including bookings that the money moved to…
    pub(super) requested_minor: i64,
    /// …and of those that were settled.
    pub(super) settled_minor: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum DifferenceKind {
    /// The gateway charged an unknown booking.
    UnknownBooking,
    /// The gateway has money of a booking that is not paid here.
    ChargedUnpaid,
    /// The gateway charged another amount.
    ChargedDiffers,
    /// The gateway refunded more than was requested here.
    RefundedThere,
    /// More refunds are settled here than at the gateway.
    RefundedHere,
    /// Paid here, and the gateway has no such payment.
    MissingThere,
}

/// A difference, with the amounts on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) kind: DifferenceKind,
    pub(super) here: Money,
    pub(super) there: Money,
}

/// Returns the difference of a payment in the gateway's ledger; `None` where both sides agree, or soon will.
pub(super) fn find_difference(there: Amounts, book: Option<&Book>) -> Option<Difference> {
    let nothing = Money::new(0, there.charged.currency);
    let kept = Money::new(there.charged.minor - there.refunded.minor, there.charged.currency);
    let unpaid = |kind| Difference { kind, here: nothing, there: kept };
    let Some(book) = book else { return (kept.minor > 0).then(|| unpaid(DifferenceKind::UnknownBooking)) };
    match book.standing {
        GatewayMoneyState::Leaving => None,
        GatewayMoneyState::Unpaid if book.is_open || book.is_checked => None,
        GatewayMoneyState::Unpaid | GatewayMoneyState::Left | GatewayMoneyState::NeverUsed => {
            (kept.minor > 0 && !book.is_checked).then(|| unpaid(DifferenceKind::ChargedUnpaid))
        }
        GatewayMoneyState::Paid if there.charged != book.charged => {
            Some(Difference { kind: DifferenceKind::ChargedDiffers, here: book.charged, there: there.charged })
        }
        GatewayMoneyState::Paid => {
            let back = |minor| Money::new(minor, there.charged.currency);
            if there.refunded.minor > book.requested_minor {
                let here = back(book.requested_minor);
                return Some(Difference { kind: DifferenceKind::RefundedThere, here, there: there.refunded });
            }
            let is_short = there.refunded.minor < book.settled_minor && !book.by_person;
            let here = back(book.settled_minor);
            is_short.then_some(Difference { kind: DifferenceKind::RefundedHere, here, there: there.refunded })
        }
    }
}

/// Returns the difference of a payment that the gateway does not have.
pub(super) fn missing(book: &Book) -> Option<Difference> {
    let there = Money::new(0, book.charged.currency);
    let is_paid = book.standing == GatewayMoneyState::Paid && book.charged.minor > 0;
    is_paid.then_some(Difference { kind: DifferenceKind::MissingThere, here: book.charged, there })
}

#[cfg(test)]
mod tests {
    use domain::money::Currency;

    use super::*;
    use domain::VariantName;

    fn eur(minor: i64) -> Money {
        Money::new(minor, Currency::parse("EUR").expect("a code"))
    }

    fn there(charged: i64, refunded: i64) -> Amounts {
        Amounts { charged: eur(charged), refunded: eur(refunded) }
    }

    fn book(standing: GatewayMoneyState) -> Book {
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

    fn kind(there: Amounts, book: &Book) -> Option<DifferenceKind> {
        find_difference(there, Some(book)).map(|found| found.kind)
    }

    #[test]
    fn equal_payments_have_no_difference() {
        let paid = book(GatewayMoneyState::Paid);
        // A refund is in progress: the gateway may have sent it already.
        for refunded in [500, 750, 1_000] {
            assert_eq!(kind(there(2_500, refunded), &paid), None, "{refunded}");
        }
        assert_eq!(kind(there(2_500, 2_500), &book(GatewayMoneyState::Left)), None, "it went back");
        assert_eq!(kind(there(2_500, 0), &book(GatewayMoneyState::Leaving)), None, "it is about to");
        let open = Book { is_open: true, ..book(GatewayMoneyState::Unpaid) };
        assert_eq!(kind(there(2_500, 0), &open), None, "the reconciler asks");
        let checked = Book { is_checked: true, ..book(GatewayMoneyState::Unpaid) };
        assert_eq!(kind(there(2_500, 0), &checked), None, "it is asked about again");
        assert_eq!(find_difference(there(2_500, 2_500), None), None);
    }

    #[test]
    fn every_difference_has_its_kind_and_amounts() {
        let paid = book(GatewayMoneyState::Paid);
        assert_eq!(
            find_difference(there(2_500, 0), None).map(|found| found.kind),
            Some(DifferenceKind::UnknownBooking)
        );
        for standing in [GatewayMoneyState::Unpaid, GatewayMoneyState::Left, GatewayMoneyState::NeverUsed] {
            assert_eq!(kind(there(2_500, 0), &book(standing)), Some(DifferenceKind::ChargedUnpaid), "{standing:?}");
        }
        for charged in [2_499, 2_501] {
            assert_eq!(kind(there(charged, 500), &paid), Some(DifferenceKind::ChargedDiffers), "{charged}");
        }
        let more = find_difference(there(2_500, 1_001), Some(&paid)).expect("it differs");
        assert_eq!(more, Difference { kind: DifferenceKind::RefundedThere, here: eur(1_000), there: eur(1_001) });
        let less = find_difference(there(2_500, 499), Some(&paid)).expect("it differs");
        assert_eq!(less, Difference { kind: DifferenceKind::RefundedHere, here: eur(500), there: eur(499) });
        assert_eq!(kind(there(2_500, 0), &Book { by_person: true, ..paid }), None, "paid back in another way");
        assert_eq!(missing(&paid).map(|found| found.kind), Some(DifferenceKind::MissingThere));
        assert_eq!(missing(&book(GatewayMoneyState::Unpaid)), None);
    }

    #[test]
    fn kinds_parse_from_their_names() {
        for &kind in DifferenceKind::VARIANTS {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!("another".parse::<DifferenceKind>().ok(), None);
    }
}
