//! Where somebody works: one theatre or several, and the rooms in each.

use domain::roles::Role;
use leptos::prelude::*;

use super::{NewTheatre, Section};
use crate::say;
use crate::shell::{Head, Page};

/// A theatre somebody works at.
#[derive(Clone, Debug)]
pub struct Workplace {
    /// Name of the theatre in addresses.
    pub theatre: String,
    /// Its name for people.
    pub name: String,
    /// What they are in it.
    pub roles: Vec<Role>,
    /// How much waits there for a manager.
    pub parked: i64,
}

/// The page.
#[derive(Clone, Debug)]
pub struct Entrance {
    /// The theatres, by name.
    pub places: Vec<Workplace>,
    /// For whoever manages all theatres: one more.
    pub new: Option<NewTheatre>,
}

impl Page for Entrance {
    fn head(&self) -> Head {
        Head { title: say!("staff.title"), private: true, ..Head::default() }
    }

    fn view(self) -> AnyView {
        let nobody = self.places.is_empty().then(|| view! { <p class="quiet">{say!("staff.nowhere")}</p> });
        let places = self.places.into_iter().map(|place| {
            let rooms = Section::of(&place.roles).map(|section| {
                let count = (section == Section::Parked && place.parked > 0).then_some(place.parked);
                let words = count.map_or_else(|| section.words(), |count| say!("parked.count", count = count));
                view! {
                    <li><a class="button button-quiet" href=section.href(&place.theatre) data-parked=count>{words}</a></li>
                }
            });
            let rooms = rooms.collect_view();
            view! {
                <section class="card staff-place" data-testid="workplace">
                    <h2><bdi>{place.name}</bdi></h2>
                    <ul>{rooms}</ul>
                </section>
            }
        });
        view! {
            <div class="staff">
                <header class="staff-head"><h1>{say!("staff.title")}</h1></header>
                {nobody}
                {places.collect_view()}
                {self.new.map(NewTheatre::view)}
            </div>
        }
        .into_any()
    }
}
