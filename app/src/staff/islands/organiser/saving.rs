//! Saves the draft as a new layout version, by the same import as a file, and assigns it to a screen. An unanswered
//! request is repeated under the same key.

use domain::api::organiser::{LayoutImport, LayoutView, PublishRequest, ScreenRequest, ScreenView};
use domain::api::systems::NO_REASON;
use language::{StaffError, say};
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::ROOM_DEADLINE_MS;
use super::contents::finding_words;
use super::editor::Editor;
use super::fields::{choice, input};
use crate::browser::calls::{self, Failure};
use crate::browser::{go_to, ids};
use crate::staff::islands::{error_text, failure_words};

/// An error, with the findings about the room.
type SavingError = (StaffError, Vec<String>);

/// The state of saving. A bundle of handles: copy it.
#[derive(Clone, Copy)]
struct SavingState {
    editor: Editor,
    busy: RwSignal<bool>,
    error: RwSignal<Option<SavingError>>,
    /// The screen to assign it to; empty for a new one.
    screen: RwSignal<String>,
    name: RwSignal<String>,
    /// The unanswered import and its key.
    unanswered: StoredValue<Option<(LayoutImport, String)>>,
    /// The last assignment, path and body as text, and its key.
    assignment: StoredValue<Option<(String, String)>>,
}

pub(super) fn form(editor: Editor) -> impl IntoView {
    let saving = SavingState {
        editor,
        busy: RwSignal::new(false),
        error: RwSignal::new(None),
        screen: RwSignal::new(default_screen(editor)),
        name: RwSignal::new(String::new()),
        unanswered: StoredValue::new(None),
        assignment: StoredValue::new(None),
    };
    let idle = move || if saving.busy.get() { "true" } else { "false" };
    let screens = move || {
        let known = editor.screens.get_value().into_iter();
        known.chain([(String::new(), say!("editor.new_screen"))]).collect::<Vec<_>>()
    };
    view! {
        <section class="layout-part layout-saving" aria-labelledby="layout-saving">
            <h2 id="layout-saving">{say!("editor.saving")}</h2>
            <p class="quiet small">{say!("editor.saving_lead")}</p>
            <button type="button" class="button" data-testid="layout-save" aria-disabled=idle on:click=move |_| saving.save()>{say!("editor.save")}</button>
            {move || saving.error.get().map(|(why, findings)| view! {
                <div class="account-trouble" role="alert" data-testid="layout-trouble">
                    <p>{error_text(why)}</p>
                    <ul>{findings.into_iter().map(|finding| view! { <li>{finding}</li> }).collect_view()}</ul>
                </div>
            })}
            {move || editor.saved.get().map(|saved| saved_view(editor, saved))}
            <div class="layout-form">
                {choice("give-screen", say!("organiser.screen"), screens, move || saving.screen.get(), move |screen| saving.screen.set(screen))}
                {move || saving.screen.with(String::is_empty).then(|| input("give-name", say!("organiser.screen_name"), "text", saving.name))}
                <button type="button" class="button button-quiet" data-testid="layout-publish" aria-disabled=idle
                    on:click=move |_| saving.publish()>{say!("editor.publish")}</button>
            </div>
        </section>
    }
}

/// The first screen, which has this room; empty for a new room.
fn default_screen(editor: Editor) -> String {
    let is_new = editor.saved_draft.with_value(|kept| kept.rows.is_empty());
    let first = editor.screens.with_value(|screens| screens.first().map(|(id, _)| id.clone()));
    first.filter(|_| !is_new).unwrap_or_default()
}

fn saved_view(editor: Editor, saved: LayoutView) -> impl IntoView {
    let theatre = editor.theatre.get_value();
    let page = format!("/staff/{theatre}/layouts/{}", saved.id);
    let file = format!("/api/v1/theatres/{theatre}/layouts/{}/file", saved.id);
    // The other sections of this version: the version that was opened lacks the changes.
    let sections = editor.now(|draft| draft.is_one_section()).then(|| {
        view! { <a href=format!("{page}/edit") data-testid="layout-other-section">{say!("editor.other_section")}</a> }
    });
    view! {
        <div class="account-notice" role="status" data-testid="layout-saved" data-layout=saved.id.to_string()>
            <p>{say!("editor.saved", seats = saved.seats, places = saved.places)}</p>
            <p class="layout-ways">
                {sections}
                <a href=page data-testid="layout-page">{say!("organiser.see_room")}</a>
                <a href=format!("{file}?form=seating_plan") download="">{say!("organiser.export_plan")}</a>
                <a href=format!("{file}?form=own") download="">{say!("editor.export_own")}</a>
            </p>
        </div>
    }
}

impl SavingState {
    fn save(self) {
        self.act(async move { self.save_room().await.map(drop) });
    }

    /// Saves the draft, unless it is already saved.
    async fn save_room(self) -> Result<LayoutView, Failure> {
        let editor = self.editor;
        if let Some(saved) = editor.saved.get_untracked().filter(|_| !editor.is_unsaved()) {
            return Ok(saved);
        }
        let draft = editor.now(Clone::clone);
        let request =
            LayoutImport { name: draft.name.clone(), may_relabel: false, focus: None, plan: draft.to_seating_plan() };
        let before = self.unanswered.get_value().filter(|(earlier, _)| *earlier == request);
        let key = before.map_or_else(ids::new_key, |(_, key)| key);
        self.unanswered.set_value(Some((request.clone(), key.clone())));
        let path = format!("/api/v1/theatres/{}/layouts", editor.theatre.get_value());
        let saved = calls::change_within::<LayoutView>(&path, &key, &request, ROOM_DEADLINE_MS).await;
        if !matches!(saved, Err(Failure::Unreachable)) {
            self.unanswered.set_value(None);
        }
        let saved = saved?;
        // Changes made meanwhile are not saved.
        editor.saved_draft.set_value(draft);
        editor.saved.set(Some(saved.clone()));
        Ok(saved)
    }

    /// Saves the draft, assigns it to a screen, and opens the page of screens.
    fn publish(self) {
        let (reason, name) = (NO_REASON.to_owned(), self.name.get_untracked().trim().to_owned());
        let screen = self.screen.get_untracked();
        if screen.is_empty() && name.is_empty() {
            self.error.set(Some((say!("editor.say_which").into(), Vec::new())));
            return;
        }
        self.act(async move {
            let layout = self.save_room().await?.id;
            let screens = format!("/api/v1/theatres/{}/screens", self.editor.theatre.get_value());
            if screen.is_empty() {
                let request = ScreenRequest { name, layout, reason };
                let key = self.key_for(format!("{request:?}"));
                calls::change::<ScreenView>(&screens, &key, &request).await?;
            } else {
                let request = PublishRequest { layout, reason };
                let key = self.key_for(format!("{screen} {request:?}"));
                calls::change::<ScreenView>(&format!("{screens}/{screen}/layout"), &key, &request).await?;
            }
            go_to(&format!("/staff/{}/screens?done=true", self.editor.theatre.get_value()));
            Ok(())
        });
    }

    /// The key of an assignment, reused until it succeeds and the page is left.
    fn key_for(self, request: String) -> String {
        let before = self.assignment.get_value().filter(|(earlier, _)| *earlier == request);
        let key = before.map_or_else(ids::new_key, |(_, key)| key);
        self.assignment.set_value(Some((request, key.clone())));
        key
    }

    fn act(self, work: impl Future<Output = Result<(), Failure>> + 'static) {
        if self.busy.get_untracked() {
            return;
        }
        self.busy.set(true);
        self.error.set(None);
        spawn_local(async move {
            if let Err(failure) = work.await {
                let findings = match &failure {
                    Failure::Unreachable => Vec::new(),
                    Failure::Problem(problem) => problem.findings.iter().map(finding_words).collect(),
                };
                self.error.set(Some((failure_words(&failure), findings)));
            }
            self.busy.set(false);
        });
    }
}
