//! The layout editor's page. A room too large for it is shown read-only.

use domain::layout::editing::MAX_EDITED_SEATS;
use leptos::prelude::*;
use uuid::Uuid;

use super::{Desk, Preview, Tab, page};
use crate::say;
use crate::shell::{Head, Page, WasmModule};
use crate::staff::islands::organiser::{StaffLayoutEditor, WORDS, too_large};

/// The page of the layout editor.
#[derive(Clone, Debug)]
pub struct DrawingBoard {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The room to start with; `None` for an empty one.
    pub room: Option<DrawnRoom>,
    /// Screens that can get the layout, id and name; those with this room first.
    pub screens: Vec<(String, String)>,
}

/// A stored room.
#[derive(Clone, Debug)]
pub struct DrawnRoom {
    /// The room.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its preview.
    pub preview: Preview,
    /// Seats sold in upcoming shows, by index.
    pub sold: Vec<u32>,
}

impl DrawnRoom {
    fn seats(&self) -> usize {
        self.preview.dots.len()
    }

    fn is_too_large(&self) -> bool {
        self.seats() > MAX_EDITED_SEATS
    }
}

impl DrawingBoard {
    fn title(&self) -> String {
        self.room.as_ref().map_or_else(|| say!("editor.title_new"), |room| say!("editor.title", name = &room.name))
    }

    fn is_drawn(&self) -> bool {
        !self.room.as_ref().is_some_and(DrawnRoom::is_too_large)
    }
}

impl Page for DrawingBoard {
    fn head(&self) -> Head {
        Head {
            title: self.title(),
            has_island: self.is_drawn(),
            words: if self.is_drawn() { WORDS } else { &[] },
            module: WasmModule::Staff,
            is_private: true,
            ..Head::default()
        }
    }

    fn view(self) -> AnyView {
        let (title, is_drawn) = (self.title(), self.is_drawn());
        let Self { desk, room, screens } = self;
        let theatre = desk.theatre.clone();
        let back = room.as_ref().map_or_else(
            || (format!("/staff/{theatre}/screens"), say!("organiser.screens")),
            |room| (format!("/staff/{theatre}/layouts/{}", room.id), say!("organiser.see_room")),
        );
        let content = match room {
            Some(room) if !is_drawn => view! {
                <p class="account-notice" role="status" data-testid="layout-too-large">{too_large(room.seats())}</p>
                {room.preview.view()}
            }
            .into_any(),
            room => {
                let (layout, sold) = room.map(|room| (room.id, room.sold)).unzip();
                view! {
                    <StaffLayoutEditor theatre=theatre layout=layout screens=screens sold=sold.unwrap_or_default() />
                    <noscript><p class="no-script">{say!("editor.no_script")}</p></noscript>
                }
                .into_any()
            }
        };
        let content = view! {
            <p class="crumbs"><a href=back.0 data-testid="back">{back.1}</a></p>
            {content}
        };
        page(&desk, Tab::Screens, title, false, None, content.into_any())
    }
}
