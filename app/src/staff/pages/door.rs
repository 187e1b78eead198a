//! The door pages: the choice of a show, and the ticket scanner, which is an island.

use domain::api::door::DoorShow;
use language::{Arg, say};
use leptos::prelude::*;
use uuid::Uuid;

use super::{Desk, frame, page, when};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, OfflinePage, Page, WasmModule};
use crate::staff::islands::door::{StaffDoor, WORDS};

/// The shows whose doors are open, in order of their start.
pub fn door_shows_page(desk: Desk, shows: Vec<DoorShow>) -> impl Page {
    page(desk, "door.choose", move |desk| {
        let theatre = &desk.theatre;
        let none = shows.is_empty().then(|| view! { <p class="quiet">{say!("door.no_shows")}</p> });
        let shows = shows.into_iter().map(|show| {
            let came = say!("door.came", admitted = show.counts.admitted, sold = show.counts.sold);
            let conflicts = (show.counts.conflicts > 0).then(|| {
                view! { <span class="field-error">{say!("door.conflicts_count", count = show.counts.conflicts)}</span> }
            });
            view! {
                <li>
                    <a class="card door-show" href=format!("/staff/{theatre}/door/{}", show.id) data-testid="door-show" data-show=show.id.to_string()>
                        <span class="door-show-what"><strong><bdi>{show.film}</bdi></strong><span class="quiet"><bdi>{show.screen}</bdi></span></span>
                        <time datetime=show.starts_local.clone()>{when(&show.starts_local)}</time>
                        <span class="door-show-came"><span>{came}</span>{conflicts}</span>
                    </a>
                </li>
            }
        });
        view! {
            {none}
            <ul class="door-shows">{shows.collect_view()}</ul>
        }
        .into_markup()
    })
}

/// The door of a show.
#[derive(Clone, Debug)]
pub struct Door {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The show.
    pub show: Uuid,
    /// Its film.
    pub film: String,
    /// Its screen.
    pub screen: String,
    /// Start, local: `2026-11-21T20:15:00`.
    pub starts_local: String,
}

impl Page for Door {
    fn head(&self) -> Head {
        Head {
            title: say!("door.title", film = &self.film, time = Arg::Ours(&when(&self.starts_local))),
            has_island: true,
            words: WORDS,
            module: WasmModule::Staff,
            is_private: true,
            offline: Some(OfflinePage::Door),
            ..Head::default()
        }
    }

    fn view(self) -> Markup {
        let back = format!("/staff/{}/door", self.desk.theatre);
        let content = view! {
            <p class="door-of">
                <bdi>{self.screen}</bdi>
                <time datetime=self.starts_local.clone()>{when(&self.starts_local)}</time>
                <a href=back>{say!("door.another_show")}</a>
            </p>
            // Filled in by the script that stores the page for offline use.
            <p class="door-kept" id="door-kept" role="status" data-testid="door-kept" data-words=say!("door.kept")></p>
            <StaffDoor theatre=self.desk.theatre.clone() show=self.show />
            <noscript><p class="no-script">{say!("door.no_script")}</p></noscript>
        };
        frame(&self.desk, self.film.clone(), content.into_markup())
    }
}
