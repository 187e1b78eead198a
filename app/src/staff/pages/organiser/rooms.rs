//! Screens, their rooms, and the import of rooms.

use domain::api::organiser::{LayoutView, ScreenView};
use leptos::prelude::*;

use super::fields::{Field, choice, hidden};
use super::{Desk, Form, Preview, Tab, findings, head, page};
use crate::language::Arg;
use crate::shell::{Head, Page};
use crate::{say, site};

const ROOM_NAME: Field = Field::text("name", "organiser.room_name");
/// Findings are corrected automatically.
const MEND: Field = Field::tick("mend", "organiser.mend");
const SCREEN_NAME: Field = Field::text("name", "organiser.screen_name").required();
const WHY_NEW: Field = Field::reason("new-reason", "organiser.reason");
const WHY_OTHER: Field = Field::reason("give-reason", "organiser.reason");
/// The name of the form that makes a screen of a room.
pub const NEW_SCREEN: &str = "new";
/// The name of the form that gives a room to a screen.
pub const PUBLISH: &str = "publish";

/// The screens of a theatre, and the import of a room.
#[derive(Clone, Debug)]
pub struct Screens {
    /// Theatre, roles and section.
    pub desk: Desk,
    /// The screens.
    pub screens: Vec<ScreenView>,
    /// The refused import, or an empty form. A file must be chosen again.
    pub form: Form,
}

impl Page for Screens {
    fn head(&self) -> Head {
        head(say!("organiser.screens"))
    }

    fn view(self) -> AnyView {
        let (theatre, form) = (self.desk.theatre.clone(), self.form);
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
                    {hidden("key", &self.desk.key)}
                    <input r#type="hidden" name="file" value="" data-plan-text />
                    {ROOM_NAME.view(&form)}
                    <div class="field" hidden data-plan-field>
                        <label for="plan-file">{say!("organiser.plan_file")}</label>
                        <input id="plan-file" r#type="file" accept=".json,application/json" data-plan-file />
                    </div>
                    <div class="field organiser-wide">
                        <label for="pasted">{say!("organiser.plan_pasted")}</label>
                        <textarea id="pasted" name="pasted" rows="4" spellcheck="false" dir="ltr">{form.text("pasted")}</textarea>
                    </div>
                    {MEND.view(&form)}
                    <button class="button" r#type="submit" data-testid="import">{say!("organiser.import")}</button>
                </form>
                <script r#type="module" src=site::address("/pkg/plan-file.js")></script>
            </section>
        };
        page(&self.desk, Tab::Screens, say!("organiser.screens"), content.into_any())
    }
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
    /// The refused form, named [`NEW_SCREEN`] or [`PUBLISH`].
    pub form: Form,
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
            {self.is_own.then(|| assign_forms(&self.desk, &id.to_string(), self.screens, &self.form))}
        };
        page(&self.desk, Tab::Screens, layout.name, content.into_any())
    }
}

/// Forms that assign the room to a new or an existing screen.
fn assign_forms(desk: &Desk, layout: &str, screens: Vec<ScreenView>, form: &Form) -> impl IntoView + use<> {
    let Desk { theatre, key, .. } = desk;
    let (new_screen, publish) = (form.only(NEW_SCREEN), form.only(PUBLISH));
    let (new, other) = (format!("/staff/{theatre}/screens"), format!("/staff/{theatre}/screens/layout"));
    let known: Vec<(String, String)> = screens.into_iter().map(|screen| (screen.id, screen.name)).collect();
    let existing = (!known.is_empty()).then(|| {
        view! {
            <section class="card organiser-card" aria-labelledby="give-other">
                <h2 id="give-other">{say!("organiser.give_title")}</h2>
                <p class="quiet">{say!("organiser.give_lead")}</p>
                <form class="organiser-form" action=other method="post">
                    {hidden("key", key)}
                    {hidden("layout", layout)}
                    {choice(&publish, "screen", say!("organiser.screen"), known)}
                    {WHY_OTHER.view(&publish)}
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
                    {hidden("key", key)}
                    {hidden("layout", layout)}
                    {SCREEN_NAME.view(&new_screen)}
                    {WHY_NEW.view(&new_screen)}
                    <button class="button" r#type="submit" data-testid="new-screen">{say!("organiser.new_screen")}</button>
                </form>
            </section>
            {existing}
        </div>
    }
}
