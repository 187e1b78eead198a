//! The room is saved as a new version, by the door every file comes in by, and given to a screen where one says so.
//! An answer that never came is asked for again under the same key.

use domain::api::organiser::{LayoutImport, LayoutView, PublishRequest, ScreenRequest, ScreenView};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::editor::Editor;
use super::fields::{choice, wish};
use super::findings::words;
use crate::browser::calls::{self, Failure};
use crate::browser::{go_to, ids};
use crate::language::{Hindrance, problem_for_staff};
use crate::say;
use crate::staff::islands::in_the_way;

/// What stands in the way, and everything that is wrong with the room.
type Trouble = (Hindrance, Vec<String>);

/// Saving in one editor. A bundle of handles: copy it.
#[derive(Clone, Copy)]
struct Saving {
    editor: Editor,
    busy: RwSignal<bool>,
    trouble: RwSignal<Option<Trouble>>,
    /// The screen it is given to; empty for a new one.
    screen: RwSignal<String>,
    name: RwSignal<String>,
    reason: RwSignal<String>,
    /// The room whose answer never came, and under which key it was sent.
    unanswered: StoredValue<Option<(LayoutImport, String)>>,
    /// The same of what gives it to a screen: path and body as text.
    given: StoredValue<Option<(String, String)>>,
}

/// The form.
pub(super) fn form(editor: Editor) -> impl IntoView {
    let text = |text: &str| RwSignal::new(text.to_owned());
    let saving = Saving {
        editor,
        busy: RwSignal::new(false),
        trouble: RwSignal::new(None),
        screen: RwSignal::new(usual_screen(editor)),
        name: text(""),
        reason: text(""),
        unanswered: StoredValue::new(None),
        given: StoredValue::new(None),
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
            {move || saving.trouble.get().map(|(why, findings)| view! {
                <div class="account-trouble" role="alert" data-testid="layout-trouble">
                    <p>{in_the_way(why)}</p>
                    <ul>{findings.into_iter().map(|finding| view! { <li>{finding}</li> }).collect_view()}</ul>
                </div>
            })}
            {move || editor.saved.get().map(|saved| saved_view(editor, saved))}
            <div class="layout-form">
                {choice("give-screen", say!("organiser.screen"), screens, move || saving.screen.get(), move |screen| saving.screen.set(screen))}
                {move || saving.screen.with(String::is_empty).then(|| wish("give-name", say!("organiser.screen_name"), "text", saving.name))}
                {wish("give-reason", say!("organiser.reason"), "text", saving.reason)}
                <button type="button" class="button button-quiet" data-testid="layout-publish" aria-disabled=idle
                    on:click=move |_| saving.publish()>{say!("editor.publish")}</button>
            </div>
        </section>
    }
}

/// The first of the screens, which is one that has this room; an empty room is for a new one.
fn usual_screen(editor: Editor) -> String {
    let is_new = editor.kept.with_value(|kept| kept.rows.is_empty());
    let first = editor.screens.with_value(|screens| screens.first().map(|(id, _)| id.clone()));
    first.filter(|_| !is_new).unwrap_or_default()
}

fn saved_view(editor: Editor, saved: LayoutView) -> impl IntoView {
    let theatre = editor.theatre.get_value();
    let page = format!("/staff/{theatre}/layouts/{}", saved.id);
    let file = format!("/api/v1/theatres/{theatre}/layouts/{}/file", saved.id);
    view! {
        <div class="account-notice" role="status" data-testid="layout-saved" data-layout=saved.id.to_string()>
            <p>{say!("editor.saved", seats = saved.seats, places = saved.places)}</p>
            <p class="layout-ways">
                <a href=page data-testid="layout-page">{say!("organiser.see_room")}</a>
                <a href=format!("{file}?form=seating_plan") download="">{say!("organiser.export_plan")}</a>
                <a href=format!("{file}?form=own") download="">{say!("editor.export_own")}</a>
            </p>
        </div>
    }
}

impl Saving {
    fn save(self) {
        self.act(async move { self.save_room().await.map(drop) });
    }

    /// Saves it, unless this very draft is saved already.
    async fn save_room(self) -> Result<LayoutView, Failure> {
        let editor = self.editor;
        if let Some(saved) = editor.saved.get_untracked().filter(|_| !editor.is_unsaved()) {
            return Ok(saved);
        }
        let draft = editor.now(Clone::clone);
        let wish = LayoutImport { name: draft.name.clone(), mend: false, plan: draft.to_seating_plan() };
        let before = self.unanswered.get_value().filter(|(asked, _)| *asked == wish);
        let key = before.map_or_else(ids::new_key, |(_, key)| key);
        self.unanswered.set_value(Some((wish.clone(), key.clone())));
        let path = format!("/api/v1/theatres/{}/layouts", editor.theatre.get_value());
        let saved = calls::change::<LayoutView>(Method::POST, &path, &key, &wish).await;
        if !matches!(saved, Err(Failure::Unreachable)) {
            self.unanswered.set_value(None);
        }
        let saved = saved?;
        // What was drawn meanwhile is not saved.
        editor.kept.set_value(draft);
        editor.saved.set(Some(saved.clone()));
        Ok(saved)
    }

    /// Saves it, gives it to a screen, and shows the screens.
    fn publish(self) {
        let (reason, name) =
            (self.reason.get_untracked().trim().to_owned(), self.name.get_untracked().trim().to_owned());
        let screen = self.screen.get_untracked();
        if reason.is_empty() || (screen.is_empty() && name.is_empty()) {
            self.trouble.set(Some((say!("editor.say_which").into(), Vec::new())));
            return;
        }
        self.act(async move {
            let layout = self.save_room().await?.id;
            let screens = format!("/api/v1/theatres/{}/screens", self.editor.theatre.get_value());
            if screen.is_empty() {
                let wish = ScreenRequest { name, layout, reason };
                let key = self.key_for(format!("{wish:?}"));
                calls::change::<ScreenView>(Method::POST, &screens, &key, &wish).await?;
            } else {
                let wish = PublishRequest { layout, reason };
                let key = self.key_for(format!("{screen} {wish:?}"));
                calls::change::<ScreenView>(Method::POST, &format!("{screens}/{screen}/layout"), &key, &wish).await?;
            }
            go_to(&format!("/staff/{}/screens?done=true", self.editor.theatre.get_value()));
            Ok(())
        });
    }

    /// The key of an act: the same for the same until it is done, for then the page is left.
    fn key_for(self, wish: String) -> String {
        let before = self.given.get_value().filter(|(asked, _)| *asked == wish);
        let key = before.map_or_else(ids::new_key, |(_, key)| key);
        self.given.set_value(Some((wish, key.clone())));
        key
    }

    fn act(self, work: impl Future<Output = Result<(), Failure>> + 'static) {
        if self.busy.get_untracked() {
            return;
        }
        self.busy.set(true);
        self.trouble.set(None);
        spawn_local(async move {
            if let Err(failure) = work.await {
                self.trouble.set(Some(match &failure {
                    Failure::Unreachable => (say!("common.unreachable").into(), Vec::new()),
                    Failure::Problem(problem) => {
                        (problem_for_staff(problem), problem.findings.iter().map(words).collect())
                    }
                }));
            }
            self.busy.set(false);
        });
    }
}
