//! The drawing board of organisers: a room as rows, areas, sections and categories, drawn by pointer, finger or
//! keyboard, with every mistake named while one draws. What can be done is decided by
//! [`domain::layout::editing`]; what is drawn goes in by the same door as a file.
//!
//! Mounted, not hydrated: the server renders a place for it.

#![allow(missing_docs, reason = "the island macro makes a struct for the props and gives it no words")]

mod areas;
mod board;
mod editor;
mod fields;
mod findings;
mod hands;
mod keys;
mod markup;
mod new_rows;
mod parts;
mod pinching;
mod rows;
mod saving;
mod things;

use domain::layout::editing::{Draft, Unreadable};
use leptos::html::Div;
use leptos::mount::mount_to;
use leptos::prelude::*;
use leptos::task::spawn_local;
use uuid::Uuid;
use wasm_bindgen::JsCast;

use self::editor::Editor;
pub use self::findings::words;
use crate::browser::calls::{self, Failure};
use crate::browser::events;
use crate::language::{Hindrance, problem_for_staff};
use crate::say;
use crate::staff::islands::in_the_way;

/// Groups of messages the island uses; its page carries them.
pub const WORDS: &[&str] = &["editor", "organiser", "map", "problem", "common"];

/// The drawing board.
#[island]
pub fn StaffLayoutEditor(
    /// The theatre.
    theatre: String,
    /// The room to begin with; an empty one without.
    layout: Option<Uuid>,
    /// Screens that may be given the room: id and name.
    screens: Vec<(String, String)>,
    /// Seats of that room that are sold in shows to come, by index.
    sold: Vec<u32>,
) -> impl IntoView {
    let place = NodeRef::<Div>::new();
    Effect::new(move |_| {
        let Some(place) = place.get() else { return };
        let (theatre, screens, sold) = (theatre.clone(), screens.clone(), sold.clone());
        spawn_local(async move {
            let drawn = match layout {
                None => Ok(Draft::new(&say!("editor.new_name"), &say!("editor.first_category"))),
                Some(layout) => read(&theatre, layout).await,
            };
            place.set_inner_html("");
            let place = (*place).clone().unchecked_into();
            match drawn {
                Ok(draft) => mount_to(place, move || parts(Editor::new(theatre, screens, sold, draft))).forget(),
                Err(why) => {
                    mount_to(place, move || view! { <p class="account-trouble" role="alert">{in_the_way(why)}</p> })
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

/// The room as a draft, or why there is none.
async fn read(theatre: &str, layout: Uuid) -> Result<Draft, Hindrance> {
    let path = format!("/api/v1/theatres/{theatre}/layouts/{layout}/file?form=seating_plan");
    let plan = calls::get(&path).await.map_err(|failure| match &failure {
        Failure::Unreachable => say!("common.unreachable").into(),
        Failure::Problem(problem) => problem_for_staff(problem),
    })?;
    Draft::read(plan).map_err(|why| match why {
        Unreadable::NotAPlan(why) => say!("organiser.finding_not_a_plan", place = &why).into(),
        Unreadable::TooLarge(seats) => too_large(seats).into(),
    })
}

/// Why a room is only looked at.
#[must_use]
pub fn too_large(seats: usize) -> String {
    let most = domain::layout::editing::MAX_EDITED_SEATS;
    say!("editor.too_large", seats = seats, most = most)
}

fn parts(editor: Editor) -> impl IntoView {
    // Whoever leaves with something unsaved is asked by the browser.
    events::on_window("beforeunload", move |event| {
        if editor.is_unsaved() {
            event.prevent_default();
        }
    });
    editor.look_after_changes();
    view! {
        <div class="layout-desk" on:keydown=move |event| keys::pressed(editor, &event)>
            <div class="layout-stage">
                {board::board(editor)}
                <p class="layout-refused" role="alert" data-testid="layout-refused">{move || editor.refused.get()}</p>
                {things::mistakes(editor)}
            </div>
            <aside class="layout-panel" aria-label=say!("editor.panel")>
                {new_rows::form(editor)}
                {things::list(editor)}
                {rows::chosen(editor)}
                {areas::chosen(editor)}
                {areas::new_area(editor)}
                {parts::sections(editor)}
                {parts::categories(editor)}
                {parts::room(editor)}
                {saving::form(editor)}
            </aside>
        </div>
        <p class="visually-hidden" role="status" data-testid="layout-spoken">{move || editor.spoken.get()}</p>
    }
}
