//! Pages of theatre staff, one file per section, and the frame around them with the theatre's navigation.

pub mod box_office;
mod door;
mod entrance;
mod fields;
mod form;
pub mod organiser;
pub mod parked;
pub mod reports;
pub mod systems;
pub mod team;
mod theatre;
pub mod unusual;

pub use door::{Door, DoorShows};
pub use entrance::{Entrance, Workplace};
pub use form::{Form, REASON, Refusal};
pub use theatre::{NewTheatre, TheatrePage, theatre_change, theatre_request};

use domain::layout::import::Finding;
use domain::roles::{Permission, Role, check_permission};
use leptos::prelude::*;

use crate::language::Hindrance;
use crate::say;
use crate::staff::islands::in_the_way;

/// A section of the staff pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The box office.
    BoxOffice,
    /// Ticket scanning at the door.
    Door,
    /// Films, shows, prices and rooms.
    Shows,
    /// Sales reports.
    Reports,
    /// Parked effects that wait for a manager.
    Parked,
    /// Unusual patterns of holds.
    Unusual,
    /// API keys and webhooks for other systems.
    Systems,
    /// Staff roles and the audit log.
    Team,
    /// Data of the theatre.
    Theatre,
}

impl Section {
    /// All sections, in the order of the navigation.
    pub const ALL: [Self; 9] = [
        Self::BoxOffice,
        Self::Door,
        Self::Shows,
        Self::Reports,
        Self::Parked,
        Self::Unusual,
        Self::Systems,
        Self::Team,
        Self::Theatre,
    ];

    /// The last part of its address, the roles that may open it, and its name in the navigation.
    const fn describe(self) -> (&'static str, &'static [Role], &'static str) {
        const COUNTER: &[Role] = &[Role::BoxOffice];
        const PROGRAMME: &[Role] = &[Role::Manager, Role::Organiser];
        const MANAGER: &[Role] = &[Role::Manager];
        match self {
            Self::BoxOffice => ("box-office", COUNTER, "staff.box_office"),
            Self::Door => ("door", COUNTER, "staff.door"),
            Self::Shows => ("shows", PROGRAMME, "staff.shows"),
            Self::Reports => ("reports", PROGRAMME, "staff.reports"),
            Self::Parked => ("parked", MANAGER, "staff.parked"),
            Self::Unusual => ("unusual", MANAGER, "staff.unusual"),
            Self::Systems => ("systems", MANAGER, "staff.systems"),
            Self::Team => ("team", MANAGER, "staff.team"),
            Self::Theatre => ("theatre", MANAGER, "theatres.edit"),
        }
    }

    /// The last part of its address.
    #[must_use]
    pub const fn path(self) -> &'static str {
        self.describe().0
    }

    /// The roles that may open it.
    #[must_use]
    pub const fn roles(self) -> &'static [Role] {
        self.describe().1
    }

    fn words(self) -> String {
        say!(self.describe().2)
    }

    /// Its address in a theatre.
    #[must_use]
    pub fn href(self, theatre: &str) -> String {
        format!("/staff/{theatre}/{}", self.path())
    }

    /// The sections open to these roles.
    pub fn of(roles: &[Role]) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |section| check_permission(roles, section.roles()) == Permission::Granted)
    }
}

/// The context of a staff page: theatre, roles, current section, and the outcome of its last form.
#[derive(Clone, Debug)]
pub struct Desk {
    /// Name of the theatre in addresses.
    pub theatre: String,
    /// Its name for people.
    pub name: String,
    /// The account's roles.
    pub roles: Vec<Role>,
    /// The current section.
    pub section: Section,
    /// Idempotency key of the page's forms. Where there are many, each form adds its name.
    pub key: String,
    /// True if a change was just made.
    pub done: bool,
    /// The error of the last attempt.
    pub trouble: Option<Trouble>,
}

/// The error of a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// The error in words.
    pub words: Hindrance,
    /// All findings about a file.
    pub findings: Vec<Finding>,
}

impl Desk {
    /// The error of the last attempt, announced when the page loads.
    fn trouble(&self, test: &'static str) -> Option<AnyView> {
        self.trouble.clone().map(|trouble| trouble_view(trouble.words, test))
    }
}

fn trouble_view(words: Hindrance, test: &'static str) -> AnyView {
    view! { <p class="account-trouble" role="alert" data-testid=test>{in_the_way(words)}</p> }.into_any()
}

/// A staff page: navigation of the theatre, title and content.
pub fn frame(desk: &Desk, title: String, content: impl IntoView) -> AnyView {
    let sections = Section::of(&desk.roles).map(|section| {
        let is_current = (section == desk.section).then_some("page");
        view! { <li><a href=section.href(&desk.theatre) aria-current=is_current data-testid=format!("staff-{}", section.path())>{section.words()}</a></li> }
    });
    view! {
        <div class="staff">
            <nav class="staff-rooms" aria-label=say!("staff.rooms")>
                <a class="staff-theatre" href="/staff"><bdi>{desk.name.clone()}</bdi></a>
                <ul>{sections.collect_view()}</ul>
            </nav>
            <header class="staff-head"><h1><bdi>{title}</bdi></h1></header>
            {content.into_any()}
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_see_only_the_sections_open_to_them() {
        let sections = |roles: &[Role]| Section::of(roles).collect::<Vec<_>>();
        assert_eq!(sections(&[]), []);
        assert_eq!(sections(&[Role::BoxOffice]), [Section::BoxOffice, Section::Door]);
        assert_eq!(sections(&[Role::Organiser]), [Section::Shows, Section::Reports]);
        assert_eq!(sections(&[Role::Manager]), Section::ALL);
    }
}
