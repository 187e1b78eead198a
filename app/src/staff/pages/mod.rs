//! Pages for people who work in a theatre, a file a room, and the frame around all of them: which theatre, which
//! rooms one may enter.

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

use domain::roles::{Role, Standing, standing};
use leptos::prelude::*;

use crate::say;

/// A room of the staff's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The counter.
    BoxOffice,
    /// Where tickets are looked at.
    Door,
    /// Films, shows, prices and rooms.
    Shows,
    /// What was sold.
    Reports,
    /// What was tried in vain and waits for a person.
    Parked,
    /// What is unusual about how seats are tried for.
    Unusual,
    /// Keys and messages for other systems.
    Systems,
    /// Who works there, and what was done.
    Team,
    /// What is written about the theatre.
    Theatre,
}

impl Section {
    /// All of them, in the order of the navigation.
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

    /// Whom it is for.
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

    /// Where it is in a theatre.
    #[must_use]
    pub fn href(self, theatre: &str) -> String {
        format!("/staff/{theatre}/{}", self.path())
    }

    /// The rooms for whoever has these roles.
    pub fn of(roles: &[Role]) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |section| standing(roles, section.roles()) == Standing::May)
    }
}

/// At which theatre somebody works, as what, and where they are.
#[derive(Clone, Debug)]
pub struct Desk {
    /// Name of the theatre in addresses.
    pub theatre: String,
    /// Its name for people.
    pub name: String,
    /// What they are in it.
    pub roles: Vec<Role>,
    /// The room they are in.
    pub section: Section,
}

/// A page of staff: the theatre, the rooms, and what is in this one.
pub fn frame(desk: &Desk, title: String, content: impl IntoView) -> AnyView {
    let rooms = Section::of(&desk.roles).map(|section| {
        let is_current = (section == desk.section).then_some("page");
        view! { <li><a href=section.href(&desk.theatre) aria-current=is_current data-testid=format!("staff-{}", section.path())>{section.words()}</a></li> }
    });
    view! {
        <div class="staff">
            <nav class="staff-rooms" aria-label=say!("staff.rooms")>
                <a class="staff-theatre" href="/staff"><bdi>{desk.name.clone()}</bdi></a>
                <ul>{rooms.collect_view()}</ul>
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
    fn everybody_sees_the_rooms_they_may_enter_and_no_other() {
        let rooms = |roles: &[Role]| Section::of(roles).collect::<Vec<_>>();
        assert_eq!(rooms(&[]), []);
        assert_eq!(rooms(&[Role::BoxOffice]), [Section::BoxOffice, Section::Door]);
        assert_eq!(rooms(&[Role::Organiser]), [Section::Shows, Section::Reports]);
        assert_eq!(rooms(&[Role::Manager]), Section::ALL);
    }
}
