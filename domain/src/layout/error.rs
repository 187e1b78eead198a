//! Reasons why a layout is refused. Every message names the position, because a person edits the file.

use crate::seats::MAX_SEATS_PER_SHOW;

/// Maximum number of categories in a room: a seat's category is one byte, and 255 is reserved.
pub const MAX_CATEGORIES: usize = 255;
/// Maximum length of the name of a zone, row, seat or category, characters.
pub const MAX_NAME_CHARS: usize = 120;
/// Maximum distance of a coordinate from the origin, in units of the drawing.
pub const MAX_COORDINATE: f64 = 1_000_000.0;
/// Maximum side of a room, in plan units (20 per seat).
pub const MAX_ROOM_SIDE: f64 = 1_000_000.0;

/// Reason why a layout is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LayoutError {
    /// The text is not the JSON of a seating plan or a sketch.
    #[error("this is neither a seating plan nor a sketch: {0}")]
    Shape(String),
    /// The room has neither seats nor areas.
    #[error("the room has no seats")]
    NoSeats,
    /// The room has more seats than a show can sell.
    #[error("the room has more than {MAX_SEATS_PER_SHOW} seats")]
    TooManySeats,
    /// The room has more categories than fit in a byte.
    #[error("the room has {0} categories; at most {MAX_CATEGORIES} are possible")]
    TooManyCategories(usize),
    /// Two categories have the same name. Prices refer to it, so it must be unique.
    #[error("the category {0:?} is defined twice")]
    DuplicateCategory(String),
    /// A seat has a category that the file does not define.
    #[error("{place} has the undefined category {category:?}")]
    UnknownCategory {
        /// The seat or rows concerned.
        place: String,
        /// The undefined category.
        category: String,
    },
    /// Two seats have the same name.
    #[error("two seats have the name {0:?}")]
    DuplicateName(String),
    /// A seat has no number, so no customer can find it.
    #[error("a seat of row {row:?} has no number")]
    Unnamed {
        /// Its row.
        row: String,
    },
    /// A name is too long.
    #[error("the name {0:?}… is longer than {MAX_NAME_CHARS} characters")]
    NameTooLong(String),
    /// A name contains an invalid character.
    #[error("the name {0:?} contains a character that cannot be stored")]
    Unreadable(String),
    /// A coordinate is out of range.
    #[error("{0} is out of range")]
    OutOfBounds(String),
    /// An area cannot be sold.
    #[error("the area {name:?}: {why}")]
    Area {
        /// Name of the area.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// A line of a sketch cannot be parsed as rows or seats.
    #[error("{text:?} in the sketch: {why}")]
    Sketch {
        /// The text of the line.
        text: String,
        /// The reason.
        why: &'static str,
    },
}
