//! A small JSON parser that keeps the WebAssembly bundle small.
//!
//! Code derived by serde is compiled once per type. It was a fifth of the code that a browser loaded before a visitor
//! could take a seat. Here a text is parsed into a [`Json`] once, and each type reads its fields from that
//! ([`FromJson`]). The parser accepts what our server writes: whole numbers, and objects without duplicate fields. Like
//! serde, it ignores unknown fields. Tests in `types` check that it reads what serde writes.

mod text;
mod types;

use std::borrow::Cow;

/// Maximum nesting of lists and objects; the deepest answer has six levels.
const MAX_DEPTH: u32 = 32;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number; `None` for one with a fraction or an exponent, or too large. The server writes no such numbers.
    Number(Option<i64>),
    /// A string.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Self>),
    /// Names and values, in their order.
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl<'a> Json<'a> {
    /// Parses a text; `None` if it is not JSON or nested too deeply.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        text::parse(text, MAX_DEPTH)
    }

    /// Returns the value of an object's field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Reads a field of an object as `T`.
    #[must_use]
    pub fn field<T: FromJson>(&self, name: &str) -> Option<T> {
        match self.get(name) {
            Some(value) => T::from_json(value),
            None => T::missing(),
        }
    }

    /// Returns the text of a string.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

/// A type that can be read from JSON.
pub trait FromJson: Sized {
    /// Converts a value; `None` if it has another type.
    fn from_json(json: &Json<'_>) -> Option<Self>;

    /// Returns the value for a missing field; `None` if the field is required.
    #[must_use]
    fn missing() -> Option<Self> {
        None
    }
}

/// Parses a whole answer as `T`.
#[must_use]
pub fn read<T: FromJson>(text: &str) -> Option<T> {
    T::from_json(&Json::parse(text)?)
}
