//! A small reader of JSON, for whoever downloads the code that reads it.
//!
//! What serde derives is compiled for every type by itself, and was a fifth of what a browser loaded before anybody
//! could take a seat. Here a text becomes a [`Json`] once, and a type is the fields taken from it
//! ([`FromJson`]). It reads what our server writes: whole numbers, objects that name each field once. What it does not
//! know it leaves out, like serde. Proven against serde: what that writes is what this reads (`types`).

mod text;
mod types;

use std::borrow::Cow;

/// Lists and objects inside each other, at most; ours are six deep.
const MOST_DEEP: u32 = 32;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Truth(bool),
    /// A whole number; `None` for one with a fraction, with an exponent, or too large: we have no such.
    Number(Option<i64>),
    /// A text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Self>),
    /// Names and values, in their order.
    Object(Vec<(Cow<'a, str>, Self)>),
}

impl<'a> Json<'a> {
    /// Reads a text; `None` when it is no JSON, or too deep.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        text::parse(text, MOST_DEEP)
    }

    /// The value of a field of an object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Reads a field of an object.
    #[must_use]
    pub fn field<T: FromJson>(&self, name: &str) -> Option<T> {
        match self.get(name) {
            Some(value) => T::from_json(value),
            None => T::left_out(),
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

/// What can be read from JSON.
pub trait FromJson: Sized {
    /// Reads it; `None` when it is something else.
    fn from_json(json: &Json<'_>) -> Option<Self>;

    /// What stands for a field that is not there.
    #[must_use]
    fn left_out() -> Option<Self> {
        None
    }
}

/// Reads a whole answer.
#[must_use]
pub fn read<T: FromJson>(text: &str) -> Option<T> {
    T::from_json(&Json::parse(text)?)
}
