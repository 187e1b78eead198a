//! Lists that never change after they are drawn: seats, rows, sections.
//!
//! Most of a list's code turns it into another list. These lists do without. Another section or the list view is drawn
//! from scratch.

use leptos::prelude::*;
use leptos::tachys::view::iterators::StaticVec;

/// Collects views into a list that is drawn once.
pub(in crate::seat_map) trait DrawnOnce: Iterator<Item: IntoView> + Sized {
    /// Collects the views.
    fn drawn_once(self) -> StaticVec<Self::Item> {
        self.collect::<Vec<_>>().into()
    }
}

impl<I: Iterator<Item: IntoView>> DrawnOnce for I {}
