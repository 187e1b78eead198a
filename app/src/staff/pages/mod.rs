//! Pages of theatre staff, one file per section, and the frame around them with the theatre's navigation. A page is a
//! function of its desk and its data; one with more data than fit its arguments is a struct.

pub mod box_office;
mod door;
mod fields;
mod form;
pub mod organiser;
pub mod parked;
pub mod reports;
pub mod systems;
pub mod team;
mod theatre;
pub mod unusual;

pub use door::{Door, door_shows_page};
pub use form::{Form, REASON, Refusal};
pub use theatre::{Entrance, NewTheatre, Workplace, theatre_change, theatre_page, theatre_request};

use domain::layout::import::Finding;
use domain::roles::{Permission, Role, check_permission};
use language::{Moment, StaffError, say};
use leptos::prelude::*;
use strum::VariantArray;

use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page};
use crate::site;
use crate::staff::islands::error_text;

/// A section of the staff pages, in the order of the navigation.
#[expect(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Section {
    BoxOffice,
    Door,
    Shows,
    Rooms,
    Prices,
    Reports,
    Team,
    Systems,
    Parked,
    Unusual,
    Theatre,
}

impl Section {
    /// The last part of its address, the roles that may open it, and its name in the navigation.
    const fn describe(self) -> (&'static str, &'static [Role], &'static str) {
        const COUNTER: &[Role] = &[Role::BoxOffice];
        const PROGRAMME: &[Role] = &[Role::Manager, Role::Organiser];
        const MANAGER: &[Role] = &[Role::Manager];
        match self {
            Self::BoxOffice => ("box-office", COUNTER, "staff.box_office"),
            Self::Door => ("door", COUNTER, "staff.door"),
            Self::Shows => ("shows", PROGRAMME, "staff.shows"),
            Self::Rooms => ("screens", PROGRAMME, "organiser.screens"),
            Self::Prices => ("prices", PROGRAMME, "organiser.prices"),
            Self::Reports => ("reports", PROGRAMME, "staff.reports"),
            Self::Team => ("team", MANAGER, "staff.team"),
            Self::Systems => ("systems", MANAGER, "staff.systems"),
            Self::Parked => ("parked", MANAGER, "staff.parked"),
            Self::Unusual => ("unusual", MANAGER, "staff.unusual"),
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

    /// The message of its group on the entrance. Sections of a group follow each other.
    const fn group(self) -> &'static str {
        match self {
            Self::BoxOffice | Self::Door => "staff.today",
            Self::Shows | Self::Rooms | Self::Prices => "staff.programme",
            Self::Reports | Self::Team | Self::Systems | Self::Parked | Self::Unusual | Self::Theatre => {
                "staff.management"
            }
        }
    }

    /// Its address in a theatre.
    #[must_use]
    pub fn href(self, theatre: &str) -> String {
        format!("/staff/{theatre}/{}", self.path())
    }

    /// The sections open to these roles.
    pub fn of(roles: &[Role]) -> impl Iterator<Item = Self> {
        Self::VARIANTS
            .iter()
            .copied()
            .filter(move |section| check_permission(roles, section.roles()) == Permission::Granted)
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
    pub error: Option<FormError>,
}

/// The error of a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormError {
    /// The error in words.
    pub message: StaffError,
    /// All findings about a file.
    pub findings: Vec<Finding>,
}

impl Desk {
    /// The error of the last attempt, announced when the page loads.
    fn error_view(&self, test: &'static str) -> Option<Markup> {
        self.error.clone().map(|error| staff_error_view(error.message, test))
    }
}

/// A page of staff. Its title and content are made when it is rendered, in the reader's language. They are boxed, so that
/// the server's crate does not compile them again.
struct StaffPage {
    desk: Desk,
    /// Settings of its document besides title and privacy.
    head: Head,
    title: Box<dyn Fn() -> String>,
    content: Box<dyn FnOnce(&Desk) -> Markup>,
}

impl StaffPage {
    fn new(
        desk: Desk,
        head: Head,
        title: impl Fn() -> String + 'static,
        content: impl FnOnce(&Desk) -> Markup + 'static,
    ) -> Self {
        Self { desk, head, title: Box::new(title), content: Box::new(content) }
    }
}

impl Page for StaffPage {
    fn head(&self) -> Head {
        Head { title: (self.title)(), is_private: true, ..self.head.clone() }
    }

    fn view(self) -> Markup {
        let content = (self.content)(&self.desk);
        frame(&self.desk, (self.title)(), content)
    }
}

/// A page with this message as its title, and without an island.
fn page(desk: Desk, title: &'static str, content: impl FnOnce(&Desk) -> Markup + 'static) -> impl Page {
    StaffPage::new(desk, Head::default(), move || say!(title), content)
}

/// A table that scrolls where it is too wide, also by keyboard. Each column has the message of its heading, empty for none,
/// and whether it holds words. On a phone the cells of a table with words are below each other, with their `data-label`.
fn wide_table(caption: String, columns: &[(&'static str, bool)], rows: impl IntoView) -> Markup {
    let has_words = columns.iter().any(|&(_, is_words)| is_words);
    let class = if has_words { "reports-table reports-stacked" } else { "reports-table" };
    let columns = columns.iter().map(|&(message, is_words)| match message {
        "" => view! { <td></td> }.into_markup(),
        _ => view! { <th scope="col" class=is_words.then_some("reports-words")>{say!(message)}</th> }.into_markup(),
    });
    let columns = columns.collect_view();
    let label = caption.clone();
    view! {
        <div class="reports-scroll" tabindex="0" role="group" aria-label=label>
            <table class=class>
                <caption class="visually-hidden">{caption}</caption>
                <thead><tr>{columns}</tr></thead>
                <tbody>{rows.into_markup()}</tbody>
            </table>
        </div>
    }
    .into_markup()
}

/// A local time in the reader's format.
fn when(local: &str) -> String {
    Moment::parse(local).map_or_else(|| local.to_owned(), |moment| moment.in_words(language::current()))
}

/// A time in the reader's format, in UTC: of machines, or of shows of several halls and days.
fn when_utc(at: &str) -> String {
    Moment::parse(at).map_or_else(|| at.to_owned(), |moment| format!("{} UTC", moment.in_words(language::current())))
}

fn staff_error_view(error: StaffError, test: &'static str) -> Markup {
    view! { <p class="account-trouble" role="alert" data-testid=test>{error_text(error)}</p> }.into_markup()
}

/// A staff page: navigation of the theatre, title and content.
fn frame(desk: &Desk, title: String, content: Markup) -> Markup {
    let sections = Section::of(&desk.roles).map(|section| {
        let is_current = (section == desk.section).then_some("page");
        view! { <li><a href=section.href(&desk.theatre) aria-current=is_current data-testid=format!("staff-{}", section.path())>{section.words()}</a></li> }
    });
    let shown_once = desk.done.then(|| {
        view! { <script r#type="module" src=site::address("/pkg/shown-once.js")></script> }
    });
    view! {
        <div class="staff">
            {shown_once}
            <nav class="staff-sections" aria-label=say!("staff.sections")>
                <a class="staff-theatre" href="/staff"><bdi>{desk.name.clone()}</bdi></a>
                <ul>{sections.collect_view()}</ul>
            </nav>
            <header class="staff-head"><h1><bdi>{title}</bdi></h1></header>
            {content}
        </div>
    }
    .into_markup()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render;

    #[test]
    fn only_a_page_that_says_what_was_done_forgets_it_for_a_reload() {
        let forgets = |done| {
            let desk = Desk {
                theatre: "aurora".to_owned(),
                name: "Aurora".to_owned(),
                roles: vec![Role::Manager],
                section: Section::Team,
                key: String::new(),
                done,
                error: None,
            };
            render(page(desk, "team.title", |_| say!("team.lead").into_markup())).contains("/pkg/shown-once.js")
        };
        assert!(forgets(true) && !forgets(false));
    }

    #[test]
    fn roles_see_only_the_sections_open_to_them() {
        let sections = |roles: &[Role]| Section::of(roles).collect::<Vec<_>>();
        assert_eq!(sections(&[]), []);
        assert_eq!(sections(&[Role::BoxOffice]), [Section::BoxOffice, Section::Door]);
        assert_eq!(sections(&[Role::Organiser]), [Section::Shows, Section::Rooms, Section::Prices, Section::Reports]);
        assert_eq!(sections(&[Role::Manager]), Section::VARIANTS);
    }
}
