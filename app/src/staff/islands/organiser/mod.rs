//! The layout editor of organisers: rows, areas, sections and categories, edited by pointer, finger or keyboard, with
//! findings shown while editing. [`domain::layout::editing`] decides which changes are possible. A saved draft goes
//! through the same import as a file.
//!
//! Mounted, not hydrated: the server renders only a place for it.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and does not document it")]

mod areas;
mod board;
mod contents;
mod editor;
mod fields;
mod input;
mod markup;
mod parts;
mod rows;
mod saving;

use domain::layout::editing::{Draft, DraftError};
use language::{StaffError, say};
use leptos::html::Div;
use leptos::mount::mount_to;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;
use wasm_bindgen::JsCast;

pub use self::contents::finding_words;
use self::editor::Editor;
pub use self::parts::{focus_kind, focus_kinds, focus_sides};
use crate::browser::{calls, events};
use crate::staff::islands::{error_text, failure_words};

/// Groups of messages the island uses. Its page carries them.
pub const WORDS: &[&str] = &["editor", "organiser", "map", "problem", "staff_problem", "common"];
/// Deadline of a call with a whole room, milliseconds: 50,000 seats are several megabytes. The server's is the same.
const ROOM_DEADLINE_MS: u32 = 30_000;

/// The layout editor.
#[island]
pub fn StaffLayoutEditor(
    theatre: String,
    /// The room to start with; `None` for an empty one.
    layout: Option<Uuid>,
    /// The section to edit, by its index; `None` for the whole room.
    section: Option<usize>,
    /// Screens that can get the layout: id and name.
    screens: Vec<(String, String)>,
    /// Seats to edit that are sold in upcoming shows, by their index in the room.
    sold: Vec<u32>,
) -> impl IntoView {
    let place = NodeRef::<Div>::new();
    Effect::new(move |_| {
        let Some(place) = place.get() else { return };
        let (theatre, screens, sold) = (theatre.clone(), screens.clone(), sold.clone());
        spawn_local(async move {
            let drawn = match layout {
                None => Ok(Draft::new(&say!("editor.new_name"), &say!("editor.first_category"))),
                Some(layout) => read(&theatre, layout, section).await,
            };
            place.set_inner_html("");
            let place = (*place).clone().unchecked_into();
            match drawn {
                Ok(draft) => mount_to(place, move || parts(Editor::new(theatre, screens, sold, draft))).forget(),
                Err(why) => {
                    mount_to(place, move || view! { <p class="account-trouble" role="alert">{error_text(why)}</p> })
                        .forget()
                }
            }
        });
    });
    view! {
        <div class="layout-editor" data-testid="layout-editor" node_ref=place>
            <p class="quiet">{say!("common.one_moment")}</p>
        </div>
    }
}

/// Loads the room, or a section of it, as a draft.
async fn read(theatre: &str, layout: Uuid, section: Option<usize>) -> Result<Draft, StaffError> {
    let path = format!("/api/v1/theatres/{theatre}/layouts/{layout}/file?form=seating_plan");
    let plan = calls::get_within(&path, ROOM_DEADLINE_MS).await.map_err(|failure| failure_words(&failure))?;
    let read = match section {
        None => Draft::read(plan),
        Some(section) => Draft::read_section(plan, section),
    };
    read.map_err(|why| match why {
        DraftError::NotAPlan(why) => say!("organiser.finding_not_a_plan", place = &why).into(),
        DraftError::TooLarge(seats) => too_large(seats).into(),
    })
}

/// Why a room cannot be edited.
pub fn too_large(seats: usize) -> String {
    let most = domain::layout::editing::MAX_EDITED_SEATS;
    say!("editor.too_large", seats = seats, most = most)
}

fn parts(editor: Editor) -> impl IntoView {
    // The browser asks before leaving with unsaved changes.
    events::on_window("beforeunload", move |event| {
        if editor.is_unsaved() {
            event.prevent_default();
        }
    });
    editor.check_after_changes();
    view! {
        <div class="layout-desk" on:keydown=move |event| input::on_key(editor, &event)>
            <div class="layout-stage">
                {board::board(editor)}
                <p class="layout-refused" role="alert" data-testid="layout-refused">{move || editor.refused.get()}</p>
                {contents::findings(editor)}
            </div>
            <aside class="layout-panel" aria-label=say!("editor.panel")>
                {rows::new_rows(editor)}
                {contents::list(editor)}
                {rows::chosen(editor)}
                {areas::chosen(editor)}
                {areas::new_area(editor)}
                {parts::sections(editor)}
                {parts::categories(editor)}
                {parts::room(editor)}
                {saving::form(editor)}
            </aside>
        </div>
        <p class="visually-hidden" role="status" data-testid="layout-spoken">{move || editor.announcement.get()}</p>
    }
}
