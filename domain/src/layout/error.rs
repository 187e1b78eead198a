//! Why a drawing of a room is refused. Every message names the place, because a person edits the file.

use crate::seats::MAX_SEATS_PER_SHOW;

/// The most categories a room may have: a seat's category is one byte, and 255 stays free.
pub const MAX_CATEGORIES: usize = 255;
/// The longest name of a zone, row, seat or category, in characters.
pub const MAX_NAME_CHARS: usize = 120;
/// How far from the origin anything may lie, in the units of the drawing.
pub const MAX_COORDINATE: f64 = 1_000_000.0;
/// The largest side of a room, in plan units (20 to a seat).
pub const MAX_ROOM_SIDE: f64 = 1_000_000.0;

/// Why a layout is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LayoutError {
    /// Not the JSON of a seating plan or a sketch.
    #[error("this is neither a seating plan nor a sketch: {0}")]
    Shape(String),
    /// A room without seats.
    #[error("the room has no seats")]
    NoSeats,
    /// More seats than a show can sell.
    #[error("the room has more than {MAX_SEATS_PER_SHOW} seats")]
    TooManySeats,
    /// More categories than fit in a byte.
    #[error("the room has {0} categories; at most {MAX_CATEGORIES} are possible")]
    TooManyCategories(usize),
    /// Prices go by the category's name, so it must be unique.
    #[error("the category {0:?} is there twice")]
    DuplicateCategory(String),
    /// A seat of a category that the file does not define.
    #[error("{place} is of category {category:?}, which is not among the categories")]
    UnknownCategory {
        /// The seat or the rows meant.
        place: String,
        /// The name that was not found.
        category: String,
    },
    /// Two seats that people could not tell apart.
    #[error("two seats are called {0:?}")]
    DuplicateName(String),
    /// A seat that nobody could be sent to.
    #[error("a seat of row {row:?} has no number")]
    Unnamed {
        /// The row it is in.
        row: String,
    },
    /// A name nobody could read.
    #[error("the name {0:?}… is longer than {MAX_NAME_CHARS} characters")]
    NameTooLong(String),
    /// A name with a character that is none.
    #[error("the name {0:?} has a character in it that nobody can read or store")]
    Unreadable(String),
    /// A coordinate that is no place in a room.
    #[error("{0} lies outside of any room")]
    OutOfBounds(String),
    /// An area that cannot be sold.
    #[error("the area {name:?}: {why}")]
    Area {
        /// What it is called.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A line of a sketch that does not read as rows or seats.
    #[error("{text:?} in the sketch: {why}")]
    Sketch {
        /// The text as written.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
}
