//! Screens, their rooms, and the import of rooms.

use domain::api::organiser::{LayoutView, ScreenView};
use leptos::prelude::*;

use super::super::Field;
use super::super::fields::reason_field;
use super::{Desk, Preview, Tab, Trouble, choice, field, findings, head, hidden, page, tick};
use crate::language::Arg;
use crate::shell::{Head, Page};
use crate::{say, site};

/// The values of the import form. A file must be chosen again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportForm {
    /// Name of the room.
    pub name: String,
    /// The pasted text.
    pub pasted: String,
    /// True if findings are corrected automatically.
    pub mend: bool,
}

/// The screens of a theatre, and the import of a room.
#[derive(Clone, Debug)]
pub struct Screens {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The screens.
    pub screens: Vec<ScreenView>,
    /// The values of the import form.
    pub form: ImportForm,
    /// Idempotency key of the import.
    pub key: String,
    /// True if a change was just made.
    pub done: bool,
    /// The error of the last attempt.
    pub trouble: Option<Trouble>,
}

impl Page for Screens {
    fn head(&self) -> Head {
        head(say!("organiser.screens"))
    }

    fn view(self) -> AnyView {
        let theatre = self.desk.theatre.clone();
        let screens = self.screens.into_iter().map(|screen| {
            let room = format!("/staff/{theatre}/layouts/{}", screen.layout);
            let house = format!("/staff/{theatre}/screens/{}/house-seats", screen.id);
            let missing = screen.house_seats_gone.join(", ");
            let missing = (!missing.is_empty()).then(|| {
                view! { <span class="account-trouble small" data-testid="screen-gone">{say!("house.gone", seats = Arg::Ours(&missing))}</span> }
            });
            view! {
                <li class="card organiser-screen" data-testid="screen">
                    <strong><bdi>{screen.name}</bdi></strong>
                    <span>{say!("organiser.seats", count = screen.seats)}</span>
                    <span class="quiet small">{say!("organiser.screen_facts", version = screen.version, shows = screen.shows)}</span>
                    <span class="organiser-ways">
                        <a href=room>{say!("organiser.see_room")}</a>
                        <a href=house data-testid="house-seats">{say!("house.count", count = screen.house_seats)}</a>
                    </span>
                    {missing}
                </li>
            }
        });
        let screens = screens.collect_view();
        let content = view! {
            <ul class="organiser-list" data-testid="screens">{screens}</ul>
            <p class="organiser-ways">
                <a class="button" href=format!("/staff/{theatre}/layouts/new") data-testid="draw-room">{say!("editor.draw_room")}</a>
            </p>
            <section class="card organiser-card" aria-labelledby="import">
                <h2 id="import">{say!("organiser.import_title")}</h2>
                <p class="quiet">{say!("organiser.import_lead")}</p>
                <form class="organiser-form" action=format!("/staff/{theatre}/layouts") method="post" data-plan-form>
                    {hidden("key", self.key)}
                    <input r#type="hidden" name="file" value="" data-plan-text />
                    {field("name", "text", say!("organiser.room_name"), self.form.name, false)}
                    <div class="field" hidden data-plan-field>
                        <label for="plan-file">{say!("organiser.plan_file")}</label>
                        <input id="plan-file" r#type="file" accept=".json,application/json" data-plan-file />
                    </div>
                    <div class="field organiser-wide">
                        <label for="pasted">{say!("organiser.plan_pasted")}</label>
                        <textarea id="pasted" name="pasted" rows="4" spellcheck="false" dir="ltr">{self.form.pasted}</textarea>
                    </div>
                    {tick("mend", say!("organiser.mend"), self.form.mend)}
                    <button class="button" r#type="submit" data-testid="import">{say!("organiser.import")}</button>
                </form>
                <script r#type="module" src=site::address("/pkg/plan-file.js")></script>
            </section>
        };
        page(&self.desk, Tab::Screens, say!("organiser.screens"), self.done, self.trouble, content.into_any())
    }
}

/// The values of the forms that assign a room to a screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GiveForm {
    /// Name of a new screen.
    pub name: String,
    /// The typed reason for the new screen.
    pub new_reason: Field,
    /// Slug of an existing screen.
    pub screen: String,
    /// The typed reason for the assignment.
    pub reason: Field,
}

/// A room: drawing, facts, and its assignment to a screen.
#[derive(Clone, Debug)]
pub struct RoomPage {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// Its facts.
    pub layout: LayoutView,
    /// Its drawing.
    pub preview: Preview,
    /// Screens it may be assigned to; none for a room that was not imported here.
    pub screens: Vec<ScreenView>,
    /// True if it may be assigned to a screen.
    pub is_own: bool,
    /// The values of the forms.
    pub form: GiveForm,
    /// Idempotency key of the next action.
    pub key: String,
    /// The error of the last attempt.
    pub trouble: Option<Trouble>,
}

impl Page for RoomPage {
    fn head(&self) -> Head {
        head(self.layout.name.clone())
    }

    fn view(self) -> AnyView {
        let (theatre, layout) = (self.desk.theatre.clone(), self.layout);
        let facts = say!("organiser.room_facts", seats = layout.seats, rows = layout.rows, sections = layout.sections);
        let categories = layout.categories.into_iter().enumerate().map(|(number, category)| {
            view! {
                <li class=format!("cat-{}", number % 8)>
                    <span class="preview-mark" aria-hidden="true"></span>
                    <bdi>{category.label}</bdi>" "<span class="quiet">{say!("organiser.seats", count = category.seats)}</span>
                </li>
            }
        });
        let categories = categories.collect_view();
        let file = format!("/api/v1/theatres/{theatre}/layouts/{}/file", layout.id);
        let (remarks, id) = (findings::list(layout.remarks), layout.id);
        let edit = format!("/staff/{theatre}/layouts/{id}/edit");
        let content = view! {
            <p>{facts}</p>
            {remarks}
            {self.preview.view()}
            <ul class="preview-legend">{categories}</ul>
            <p class="organiser-ways">
                <a class="button button-quiet" href=edit data-testid="edit-room">{say!("editor.edit_room")}</a>
                <a class="button button-quiet" href=format!("{file}?form=seating_plan") download>{say!("organiser.export_plan")}</a>
                <a class="button button-quiet" href=format!("{file}?form=own") download>{say!("organiser.export_own")}</a>
            </p>
            {self.is_own.then(|| assign_forms(&theatre, id.to_string(), self.screens, self.form, self.key))}
        };
        page(&self.desk, Tab::Screens, layout.name, false, self.trouble, content.into_any())
    }
}

/// Forms that assign the room to a new or an existing screen.
fn assign_forms(
    theatre: &str,
    layout: String,
    screens: Vec<ScreenView>,
    form: GiveForm,
    key: String,
) -> impl IntoView + use<> {
    let GiveForm { name, new_reason, screen, reason } = form;
    let (new, other) = (format!("/staff/{theatre}/screens"), format!("/staff/{theatre}/screens/layout"));
    let known: Vec<(String, String)> = screens.into_iter().map(|screen| (screen.id, screen.name)).collect();
    let existing = (!known.is_empty()).then(|| {
        view! {
            <section class="card organiser-card" aria-labelledby="give-other">
                <h2 id="give-other">{say!("organiser.give_title")}</h2>
                <p class="quiet">{say!("organiser.give_lead")}</p>
                <form class="organiser-form" action=other method="post">
                    {hidden("key", key.clone())}
                    {hidden("layout", layout.clone())}
                    {choice("screen", say!("organiser.screen"), known, &screen)}
                    {reason_field("give-reason", say!("organiser.reason"), reason, true)}
                    <button class="button button-quiet" r#type="submit" data-testid="publish">{say!("organiser.give")}</button>
                </form>
            </section>
        }
    });
    view! {
        <div class="organiser-cards">
            <section class="card organiser-card" aria-labelledby="give-new">
                <h2 id="give-new">{say!("organiser.new_screen_title")}</h2>
                <form class="organiser-form" action=new method="post">
                    {hidden("key", key.clone())}
                    {hidden("layout", layout.clone())}
                    {field("name", "text", say!("organiser.screen_name"), name, true)}
                    {reason_field("new-reason", say!("organiser.reason"), new_reason, true)}
                    <button class="button" r#type="submit" data-testid="new-screen">{say!("organiser.new_screen")}</button>
                </form>
            </section>
            {existing}
        </div>
    }
}
