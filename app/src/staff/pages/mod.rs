//! Pages of theatre staff, one file per section, and the frame around them with the theatre's navigation.

pub mod box_office;
mod door;
mod entrance;
mod fields;
pub mod organiser;
pub mod parked;
pub mod reports;
pub mod systems;
pub mod team;
mod theatre;
pub mod unusual;

pub use door::{Door, DoorShows};
pub use entrance::{Entrance, Workplace};
pub use fields::{Field, Refusal};
pub use theatre::{NewTheatre, NewTheatreForm, TheatrePage};

use domain::roles::{Permission, Role, check_permission};
use leptos::prelude::*;

use crate::say;

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

    /// The last part of its address.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::BoxOffice => "box-office",
            Self::Door => "door",
            Self::Shows => "shows",
            Self::Reports => "reports",
            Self::Parked => "parked",
            Self::Unusual => "unusual",
            Self::Systems => "systems",
            Self::Team => "team",
            Self::Theatre => "theatre",
        }
    }

    /// The roles that may open it.
    #[must_use]
    pub const fn roles(self) -> &'static [Role] {
        match self {
            Self::BoxOffice | Self::Door => &[Role::BoxOffice],
            Self::Shows | Self::Reports => &[Role::Manager, Role::Organiser],
            Self::Parked | Self::Unusual | Self::Systems | Self::Team | Self::Theatre => &[Role::Manager],
        }
    }

    fn words(self) -> String {
        match self {
            Self::BoxOffice => say!("staff.box_office"),
            Self::Door => say!("staff.door"),
            Self::Shows => say!("staff.shows"),
            Self::Reports => say!("staff.reports"),
            Self::Parked => say!("staff.parked"),
            Self::Unusual => say!("staff.unusual"),
            Self::Systems => say!("staff.systems"),
            Self::Team => say!("staff.team"),
            Self::Theatre => say!("theatres.edit"),
        }
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

/// The context of a staff page: theatre, roles and current section.
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
