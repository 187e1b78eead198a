//! What is told about a file.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::layout::LayoutError;
use crate::seats::MAX_SEATS_PER_SHOW;

#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// One thing about a file, with the place and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// Where: a seat, a row, a name; empty where it is about the whole file.
    pub place: String,
    /// How often, or how many seats it is about.
    pub count: u32,
}

/// What can be said about a file: first what stands in the way, then what was done or is worth knowing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// It does not read as a seating plan or a sketch; `place` says why.
    NotAPlan,
    /// No seat in it.
    NoSeats,
    /// More seats than a show can sell.
    TooManySeats,
    /// More categories than there may be.
    TooManyCategories,
    /// Seats of one name.
    DuplicateSeat,
    /// Seats of a row without a number.
    Unnumbered,
    /// Seats of a category that is not defined.
    UnknownCategory,
    /// A category that is defined twice.
    DuplicateCategory,
    /// A name nobody could read.
    NameTooLong,
    /// A name with invisible characters, which are written out in `place`.
    HiddenCharacters,
    /// A seat outside of any room, or without a place.
    OutOfBounds,
    /// Areas without seats of one name.
    DuplicateArea,
    /// An area without seats whose number of places is none.
    AreaCapacity,
    /// Anything else the room refuses; `place` is the sentence.
    Refused,

    /// Values that were written another way and mean the same.
    Tidied,
    /// A zone was renamed, for its seats were called like those of another.
    ZoneRenamed,
    /// Seats that were given another number.
    SeatsRenumbered,
    /// A category that was added.
    CategoryAdded,
    /// Rows whose seats were listed in another order than they stand.
    RowsReordered,
    /// Rows that are numbered from right to left.
    RightToLeft,
    /// Rows with odd numbers only, or even ones.
    OddOrEven,
    /// Seats that lie on another.
    SamePlace,
    /// Drawings in the file that have no capacity: they are kept, shown to nobody, and not sold.
    AreasNotSold,
}

impl FindingKind {
    /// Whether it can be mended without drawing the room anew.
    #[must_use]
    pub const fn can_be_mended(self) -> bool {
        matches!(self, Self::DuplicateSeat | Self::Unnumbered | Self::UnknownCategory | Self::DuplicateCategory)
    }
}

impl Finding {
    /// A finding at a place.
    pub(super) fn new(kind: FindingKind, place: impl Into<String>, count: usize) -> Self {
        Self { kind, place: place.into(), count: u32::try_from(count).unwrap_or(u32::MAX) }
    }

    /// What the room said.
    pub(super) fn of_error(why: &LayoutError) -> Self {
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

/// `1 seat is`, `2 seats are`.
fn are(count: u32, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

impl fmt::Display for Finding {
    /// In a sentence, for the API and for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, place, count } = self;
        match kind {
            FindingKind::NotAPlan => write!(f, "This is neither a seating plan nor a sketch: {place}."),
            FindingKind::NoSeats => write!(f, "The room has no seats."),
            FindingKind::TooManySeats => {
                write!(f, "The room has too many seats; a show sells at most {MAX_SEATS_PER_SHOW}.")
            }
            FindingKind::TooManyCategories => write!(f, "The room has {count} categories; at most 255 are possible."),
            FindingKind::DuplicateSeat => write!(f, "{} called {place:?}.", are(*count, "seat is", "seats are")),
            FindingKind::Unnumbered => {
                let (one, more) = (format!("seat of {place:?} has"), format!("seats of {place:?} have"));
                write!(f, "{} no number.", are(*count, &one, &more))
            }
            FindingKind::UnknownCategory => {
                write!(f, "{} of category {place:?}, which is not defined.", are(*count, "seat is", "seats are"))
            }
            FindingKind::DuplicateCategory => write!(f, "The category {place:?} is defined {count} times."),
            FindingKind::NameTooLong => write!(f, "The name {place:?}… is too long."),
            FindingKind::HiddenCharacters => {
                write!(f, "The name {place:?} has invisible characters; take out what is in brackets.")
            }
            FindingKind::OutOfBounds => write!(f, "{place} lies outside of any room, or has no place."),
            FindingKind::DuplicateArea => write!(f, "{} called {place:?}.", are(*count, "area is", "areas are")),
            FindingKind::AreaCapacity => write!(f, "The area {place:?} has no number of places from 1 to 100,000."),
            FindingKind::Refused => write!(f, "{place}."),
            FindingKind::Tidied => {
                write!(f, "{} tidied: numbers as text, empty keys left out.", are(*count, "value was", "values were"))
            }
            FindingKind::ZoneRenamed => write!(f, "A zone is now called {place:?}, for its seats were another's."),
            FindingKind::SeatsRenumbered => {
                write!(f, "{} given another number.", are(*count, "seat was", "seats were"))
            }
            FindingKind::CategoryAdded => {
                write!(f, "The category {place:?} was added for {}.", are(*count, "seat", "seats"))
            }
            FindingKind::RowsReordered => {
                write!(f, "The seats of {} were put in the order they stand in.", are(*count, "row", "rows"))
            }
            FindingKind::RightToLeft => write!(f, "{} numbered from right to left.", are(*count, "row is", "rows are")),
            FindingKind::OddOrEven => {
                write!(f, "{} odd numbers only, or even ones.", are(*count, "row has", "rows have"))
            }
            FindingKind::SamePlace => {
                write!(f, "{} on another; the first is {place:?}.", are(*count, "seat lies", "seats lie"))
            }
            FindingKind::AreasNotSold => {
                write!(
                    f,
                    "{} no capacity, so nothing is sold there.",
                    are(*count, "area of the drawing has", "areas of the drawing have")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_two_are_two() {
        let says = |kind, count| Finding::new(kind, "Stalls B", count).to_string();
        assert_eq!(says(FindingKind::Unnumbered, 1), "1 seat of \"Stalls B\" has no number.");
        assert_eq!(says(FindingKind::Unnumbered, 2), "2 seats of \"Stalls B\" have no number.");
        assert_eq!(says(FindingKind::RowsReordered, 1), "The seats of 1 row were put in the order they stand in.");
        assert_eq!(says(FindingKind::SamePlace, 1), "1 seat lies on another; the first is \"Stalls B\".");
    }
}
