//! Findings about an imported file.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::layout::LayoutError;
use crate::seats::MAX_SEATS_PER_SHOW;

/// A finding about a file, with its place and count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Finding {
    /// Kind of the finding.
    pub kind: FindingKind,
    /// A seat, row or name; empty if the finding is about the whole file.
    pub place: String,
    /// Number of occurrences or of seats concerned.
    pub count: u32,
}

/// Kinds of findings: first errors, then changes and remarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The file is neither a seating plan nor a sketch; `place` has the reason.
    NotAPlan,
    /// The room has neither seats nor areas for sale.
    NoSeats,
    /// The room has more seats than a show can sell.
    TooManySeats,
    /// The room has too many categories.
    TooManyCategories,
    /// Several seats have the same name.
    DuplicateSeat,
    /// Seats of a row have no number.
    Unnumbered,
    /// Seats have an undefined category.
    UnknownCategory,
    /// A category is defined more than once.
    DuplicateCategory,
    /// A name is too long.
    NameTooLong,
    /// A name contains invisible or control characters, which are written out in `place`.
    HiddenCharacters,
    /// A seat has no position, or one out of range.
    OutOfBounds,
    /// Several areas have the same name.
    DuplicateArea,
    /// The capacity of an area is invalid.
    AreaCapacity,
    /// Any other error of the layout; `place` is the message.
    Refused,

    /// Values in an equivalent notation were normalised.
    #[serde(rename = "tidied")]
    Normalised,
    /// A zone was renamed, because its seats had the same names as those of another zone.
    ZoneRenamed,
    /// Seats got another number.
    SeatsRenumbered,
    /// A category was added.
    CategoryAdded,
    /// Seats of rows were reordered to match their positions.
    RowsReordered,
    /// Rows are numbered from right to left.
    RightToLeft,
    /// Rows have only odd or only even numbers.
    OddOrEven,
    /// Seats have the same position as another seat.
    SamePlace,
    /// Drawings without a capacity are kept, but not shown or sold.
    AreasNotSold,
}

impl FindingKind {
    /// True if an import with `mend` corrects it without a change to the drawing.
    #[must_use]
    pub const fn can_be_mended(self) -> bool {
        matches!(self, Self::DuplicateSeat | Self::Unnumbered | Self::UnknownCategory | Self::DuplicateCategory)
    }
}

impl Finding {
    pub(super) fn new(kind: FindingKind, place: impl Into<String>, count: usize) -> Self {
        Self { kind, place: place.into(), count: u32::try_from(count).unwrap_or(u32::MAX) }
    }

    /// Returns the finding about an error of the layout.
    #[must_use]
    pub fn of_error(why: &LayoutError) -> Self {
        let kind = match why {
            LayoutError::Shape(_) => FindingKind::NotAPlan,
            LayoutError::NoSeats => FindingKind::NoSeats,
            LayoutError::TooManySeats => FindingKind::TooManySeats,
            LayoutError::TooManyCategories(_) => FindingKind::TooManyCategories,
            _ => FindingKind::Refused,
        };
        let place = match why {
            LayoutError::Shape(text) => text.clone(),
            other => other.to_string(),
        };
        Self::new(kind, place, 1)
    }
}

/// Formats a count with its noun and verb: `1 seat is`, `2 seats are`.
fn counted(count: u32, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

impl fmt::Display for Finding {
    /// Writes a sentence for the API and for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, place, count } = self;
        match kind {
            FindingKind::NotAPlan => write!(f, "This is neither a seating plan nor a sketch: {place}."),
            FindingKind::NoSeats => write!(f, "The room has no seats, and no area with a capacity."),
            FindingKind::TooManySeats => {
                write!(f, "The room has too many seats; a show sells at most {MAX_SEATS_PER_SHOW}.")
            }
            FindingKind::TooManyCategories => write!(f, "The room has {count} categories; at most 255 are possible."),
            FindingKind::DuplicateSeat => write!(f, "{} called {place:?}.", counted(*count, "seat is", "seats are")),
            FindingKind::Unnumbered => {
                let (one, more) = (format!("seat of {place:?} has"), format!("seats of {place:?} have"));
                write!(f, "{} no number.", counted(*count, &one, &more))
            }
            FindingKind::UnknownCategory => {
                write!(f, "{} of category {place:?}, which is not defined.", counted(*count, "seat is", "seats are"))
            }
            FindingKind::DuplicateCategory => write!(f, "The category {place:?} is defined {count} times."),
            FindingKind::NameTooLong => write!(f, "The name {place:?}… is too long."),
            FindingKind::HiddenCharacters => {
                write!(f, "The name {place:?} contains invisible characters; remove the ones shown in brackets.")
            }
            FindingKind::OutOfBounds => write!(f, "{place} has no position, or one out of range."),
            FindingKind::DuplicateArea => write!(f, "{} called {place:?}.", counted(*count, "area is", "areas are")),
            FindingKind::AreaCapacity => write!(f, "The area {place:?} needs a capacity from 1 to 100,000."),
            FindingKind::Refused => write!(f, "{place}."),
            FindingKind::Normalised => {
                write!(
                    f,
                    "{} normalised: numbers as text, empty keys omitted.",
                    counted(*count, "value was", "values were")
                )
            }
            FindingKind::ZoneRenamed => {
                write!(f, "A zone was renamed to {place:?}, because its seats had the names of another zone's seats.")
            }
            FindingKind::SeatsRenumbered => {
                write!(f, "{} given another number.", counted(*count, "seat was", "seats were"))
            }
            FindingKind::CategoryAdded => {
                write!(f, "The category {place:?} was added for {}.", counted(*count, "seat", "seats"))
            }
            FindingKind::RowsReordered => {
                write!(f, "The seats of {} were sorted by position.", counted(*count, "row", "rows"))
            }
            FindingKind::RightToLeft => {
                write!(f, "{} numbered from right to left.", counted(*count, "row is", "rows are"))
            }
            FindingKind::OddOrEven => {
                write!(f, "{} only odd or only even numbers.", counted(*count, "row has", "rows have"))
            }
            FindingKind::SamePlace => {
                write!(f, "{} on another seat; the first is {place:?}.", counted(*count, "seat lies", "seats lie"))
            }
            FindingKind::AreasNotSold => {
                write!(
                    f,
                    "{} no capacity, so no places are sold there.",
                    counted(*count, "area of the drawing has", "areas of the drawing have")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_agree_in_number() {
        let says = |kind, count| Finding::new(kind, "Stalls B", count).to_string();
        assert_eq!(says(FindingKind::Unnumbered, 1), "1 seat of \"Stalls B\" has no number.");
        assert_eq!(says(FindingKind::Unnumbered, 2), "2 seats of \"Stalls B\" have no number.");
        assert_eq!(says(FindingKind::RowsReordered, 1), "The seats of 1 row were sorted by position.");
        assert_eq!(says(FindingKind::SamePlace, 1), "1 seat lies on another seat; the first is \"Stalls B\".");
    }
}
