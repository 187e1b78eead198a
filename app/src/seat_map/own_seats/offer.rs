//! Seats and places that a notice offers for one tap.

use std::sync::Arc;

use domain::api::{AreaQuantity, PlaceLine, SeatLine};
use domain::money::Money;
use domain::seats::{SeatIndex, sort_for_display};

use crate::checkout::sum;
use crate::language::{Arg, current, listed, number};
use crate::say;

/// An offer of a notice.
#[derive(Clone, Debug, PartialEq)]
pub struct SeatOffer {
    pub seats: Arc<[SeatIndex]>,
    /// Places without numbers beside them.
    pub places: Arc<[AreaQuantity]>,
    /// Label of the button: names and total price.
    pub words: String,
}

impl SeatOffer {
    /// Offers these seats as an alternative to refused ones.
    pub(super) fn instead(lines: &[SeatLine], total: Money) -> Self {
        let words = say!("map.take_instead", seats = Arg::Ours(&listed(&names_of(lines))), price = total);
        Self { seats: lines.iter().map(|line| line.seat).collect(), places: [].into(), words }
    }

    /// Offers seats and places that the visitor had before. `None` without a total price.
    pub(super) fn again(lines: &[SeatLine], places: &[PlaceLine]) -> Option<Self> {
        let total = sum(lines.iter().map(|line| line.price).chain(places.iter().map(PlaceLine::total)))?;
        let words = places.iter().map(quantity_of);
        let words: Vec<String> = names_of(lines).into_iter().map(str::to_owned).chain(words).collect();
        let names: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(Self {
            seats: lines.iter().map(|line| line.seat).collect(),
            places: places.iter().map(|line| AreaQuantity { area: line.area, quantity: line.quantity }).collect(),
            words: say!("map.take_again", seats = Arg::Ours(&listed(&names)), price = total),
        })
    }
}

pub(super) fn names_of(lines: &[SeatLine]) -> Vec<&str> {
    let mut names: Vec<&str> = lines.iter().map(|line| line.label.as_str()).collect();
    sort_for_display(&mut names, |name| name);
    names
}

/// `2 × Standing floor`: the same within a list in every sentence of every language.
pub fn quantity_of(places: &PlaceLine) -> String {
    format!("{} × {}", number(i64::from(places.quantity), current()), places.label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::money::Currency;

    #[test]
    fn an_offer_of_previous_seats_names_them_with_their_total() {
        let price = Money::new(1_250, Currency::parse("EUR").expect("a code"));
        let line = |seat, label: &str| SeatLine { seat, label: label.to_owned(), category: "Gold".to_owned(), price };
        // A row numbered from the right.
        let offer = SeatOffer::again(&[line(30, "C8"), line(31, "C7")], &[]).expect("there are seats");
        assert_eq!((offer.words.as_str(), &*offer.seats), ("Take C7 and C8 again, €25.00", &[30, 31][..]));
        assert_eq!(SeatOffer::again(&[], &[]), None);
        let floor = PlaceLine { area: 0, label: "Floor".to_owned(), category: "Floor".to_owned(), price, quantity: 2 };
        let offer = SeatOffer::again(&[line(31, "C7")], &[floor]).expect("there are seats");
        assert_eq!(offer.words, "Take C7 and 2 × Floor again, €37.50");
        assert_eq!(&*offer.places, &[AreaQuantity { area: 0, quantity: 2 }]);
    }
}
