//! Islands of people who work in a theatre, a folder a room. They are in a module of their own, which no customer
//! loads; each is called `Staff…`, which is how `frontend/static/boot.js` knows.

pub mod box_office;
pub mod door;
pub mod house_seats;
pub mod organiser;

use leptos::prelude::*;

use crate::language::Hindrance;

/// What stood in the way, in the language of the page; what the API says of it besides is English.
pub(crate) fn in_the_way(hindrance: Hindrance) -> impl IntoView {
    let Hindrance { words, detail } = hindrance;
    view! { {words}{detail.map(|detail| view! { " "<bdi lang="en">{detail}</bdi> })} }
}
