//! What a seat looks like to this visitor.

use domain::seats::SeatState;

use crate::say;

/// What a seat looks like to this visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Anyone may take it.
    Available,
    /// In somebody else's hold.
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

impl Look {
    /// The `data-state` attribute. A seat asked for is painted as one's own at once.
    #[must_use]
    pub const fn state(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Locked => "locked",
            Self::Booked => "booked",
            Self::Blocked => "blocked",
            Self::Mine | Self::Asked => "mine",
        }
    }

    /// The drawing, by the id of its symbol.
    #[must_use]
    pub const fn glyph(self) -> &'static str {
        match self {
            Self::Available => "#glyph-available",
            Self::Locked => "#glyph-locked",
            Self::Booked => "#glyph-booked",
            Self::Blocked => "#glyph-blocked",
            Self::Mine => "#glyph-mine",
            Self::Asked => "#glyph-asked",
        }
    }

    /// The end of the seat's name for a screen reader.
    #[must_use]
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

    /// Whether nobody can take it any more. A seat in somebody's hold may come back at any moment, and
    /// pressing it tells so: it is not disabled.
    #[must_use]
    pub const fn is_out_of_reach(self) -> bool {
        matches!(self, Self::Booked | Self::Blocked)
    }

    /// Whether a tap takes the seat or lets it go; any other is only explained.
    #[must_use]
    pub const fn can_be_tapped(self) -> bool {
        matches!(self, Self::Available | Self::Mine | Self::Asked)
    }
}

impl From<SeatState> for Look {
    fn from(state: SeatState) -> Self {
        match state {
            SeatState::Available => Self::Available,
            SeatState::Locked => Self::Locked,
            SeatState::Booked => Self::Booked,
            SeatState::Blocked => Self::Blocked,
        }
    }
}
