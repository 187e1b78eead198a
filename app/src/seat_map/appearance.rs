//! The appearance of a seat to one visitor.

use domain::seats::SeatState;
use strum::VariantArray;

use crate::say;

#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum SeatAppearance {
    /// Free.
    Available,
    /// In another visitor's hold.
    Locked,
    /// Sold.
    Booked,
    /// Not for sale.
    Blocked,
    /// Held by this visitor.
    Mine,
    /// Tapped by this visitor, not granted yet.
    Asked,
}

impl SeatAppearance {
    /// The `data-state` attribute. A requested seat is painted as the visitor's own at once.
    pub const fn state(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Locked => "locked",
            Self::Booked => "booked",
            Self::Blocked => "blocked",
            Self::Mine | Self::Asked => "mine",
        }
    }

    /// The end of the seat's name for a screen reader.
    pub fn in_words(self) -> String {
        say!(match self {
            Self::Available => "map.state_available",
            Self::Locked => "map.state_locked",
            Self::Booked => "map.state_booked",
            Self::Blocked => "map.state_blocked",
            Self::Mine => "map.state_mine",
            Self::Asked => "map.state_asked",
        })
    }

    /// Returns true if the seat can no longer be taken. A locked seat may become free at any moment, and a press
    /// explains that, so it is not disabled.
    pub const fn is_out_of_reach(self) -> bool {
        matches!(self, Self::Booked | Self::Blocked)
    }

    /// Returns true if a tap takes or releases the seat. Taps on other seats only show an explanation.
    pub const fn can_be_tapped(self) -> bool {
        matches!(self, Self::Available | Self::Mine | Self::Asked)
    }
}

impl From<SeatState> for SeatAppearance {
    fn from(state: SeatState) -> Self {
        match state {
            SeatState::Available => Self::Available,
            SeatState::Locked => Self::Locked,
            SeatState::Booked => Self::Booked,
            SeatState::Blocked => Self::Blocked,
        }
    }
}
