//! The entrance for staff: their theatres, and the sections they may open in each.

use domain::roles::Role;
use leptos::prelude::*;

use super::{NewTheatre, Section};
use crate::say;
use crate::shell::{Head, Page};

/// A theatre where the account works.
#[derive(Clone, Debug)]
pub struct Workplace {
    /// Name of the theatre in addresses.
    pub theatre: String,
    /// Its name for people.
    pub name: String,
    /// The account's roles there.
    pub roles: Vec<Role>,
    /// Number of parked effects that wait for a manager.
    pub parked: i64,
}

/// The page.
#[derive(Clone, Debug)]
pub struct Entrance {
    /// The theatres, by name.
    pub places: Vec<Workplace>,
    /// For accounts that manage all theatres: the form of a new one.
    pub new: Option<NewTheatre>,
}

impl Page for Entrance {
    fn head(&self) -> Head {
        Head { title: say!("staff.title"), is_private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let none = self.places.is_empty().then(|| view! { <p class="quiet">{say!("staff.nowhere")}</p> });
        let places = self.places.into_iter().map(|place| {
            let sections = Section::of(&place.roles).map(|section| {
                let count = (section == Section::Parked && place.parked > 0).then_some(place.parked);
                let words = count.map_or_else(|| section.words(), |count| say!("parked.count", count = count));
                view! {
                    <li><a class="button button-quiet" href=section.href(&place.theatre) data-parked=count>{words}</a></li>
                }
            });
            let sections = sections.collect_view();
            view! {
                <section class="card staff-place" data-testid="workplace">
                    <h2><bdi>{place.name}</bdi></h2>
                    <ul>{sections}</ul>
                </section>
            }
        });
        view! {
            <div class="staff">
                <header class="staff-head"><h1>{say!("staff.title")}</h1></header>
                {none}
                {places.collect_view()}
                {self.new.map(NewTheatre::view)}
            </div>
        }
        .into_any()
    }
}
