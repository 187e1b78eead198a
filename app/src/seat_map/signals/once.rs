//! Lists that never change after they were drawn: seats, rows, sections.
//!
//! Most of a list's code is for becoming another list; these have none of it. What is drawn instead of
//! them, another section or the list twin, is drawn afresh.

use leptos::prelude::*;
use leptos::tachys::view::iterators::StaticVec;

/// Collects views into a list that is drawn once.
pub(in crate::seat_map) trait DrawnOnce: Iterator<Item: IntoView> + Sized {
    /// The list.
    fn drawn_once(self) -> StaticVec<Self::Item> {
        self.collect::<Vec<_>>().into()
    }
}

impl<I: Iterator<Item: IntoView>> DrawnOnce for I {}
