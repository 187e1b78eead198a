//! Screens, their rooms with drawings, the import of rooms, and the layout editor's page.

use std::fmt::Write;

use domain::VariantName;
use domain::api::organiser::{LayoutView, ScreenView};
use domain::api::{PlanView, ShapeView};
use domain::layout::editing::MAX_EDITED_SEATS;
use domain::layout::import::Finding;
use domain::layout::{FocusChoice, FocusKind, FocusSide};
use domain::wire::Dot;
use language::{Arg, say};
use leptos::prelude::*;
use uuid::Uuid;

use super::fields::{Field, choice, hidden};
use super::{Desk, Form, titled_page, untabbed_page};
use crate::markup::{IntoMarkup, Markup};
use crate::shell::{Head, Page};
use crate::site;
use crate::staff::islands::organiser::{
    StaffLayoutEditor, WORDS, finding_words, focus_kind, focus_kinds, focus_sides, too_large,
};

const ROOM_NAME: Field = Field::text("name", "organiser.room_name");
/// Findings are corrected automatically.
const MEND: Field = Field::tick("mend", "organiser.mend");
const SCREEN_NAME: Field = Field::text("name", "organiser.screen_name").required();
/// The name of the form that makes a screen of a room.
pub const NEW_SCREEN: &str = "new";
/// The name of the form that gives a room to a screen.
pub const PUBLISH: &str = "publish";
const COLOURS: usize = 8;
/// Distance of a row's letter from its first seat, plan units.
const LETTER_DISTANCE: i32 = 20;
/// The name of the focus is as wide as this many letters of the focus.
const FOCUS_LETTERS: i32 = 12;
/// Smallest letter of that name, plan units.
const SMALLEST_FOCUS_LETTER: i32 = 12;
/// Characters of a seat number that fit into a dot at the normal size.
const MAX_NUMBER_CHARS: usize = 3;

/// The page of a theatre's screens, with the import of a room. A file of a refused import must be chosen again.
pub fn screens_page(desk: Desk, screens: Vec<ScreenView>, form: Form) -> impl Page {
    untabbed_page(desk, "organiser.screens", move |desk| {
        let theatre = &desk.theatre;
        let screens = screens.into_iter().map(|screen| {
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
        view! {
            <ul class="organiser-list" data-testid="screens">{screens}</ul>
            <p class="organiser-ways">
                <a class="button" href=format!("/staff/{theatre}/layouts/new") data-testid="draw-room">{say!("editor.draw_room")}</a>
            </p>
            <section class="card organiser-card" aria-labelledby="import">
                <h2 id="import">{say!("organiser.import_title")}</h2>
                <p class="quiet">{say!("organiser.import_lead")}</p>
                <form class="organiser-form" action=format!("/staff/{theatre}/screens/import") method="post" data-plan-form>
                    {hidden("key", &desk.key)}
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
        }
        .into_markup()
    })
}

/// The page of a room: drawing, facts, and if `is_own` its assignment to one of `screens`. A refused form is named
/// [`NEW_SCREEN`] or [`PUBLISH`].
pub fn room_page(
    desk: Desk,
    layout: LayoutView,
    mut preview: Preview,
    screens: Vec<ScreenView>,
    is_own: bool,
    form: Form,
) -> impl Page {
    let title = layout.name.clone();
    let content = move |desk: &Desk| {
        let theatre = &desk.theatre;
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
        let focus = layout.focus;
        if focus.is_none() {
            // Nothing is drawn where nothing is known.
            preview.plan.focus = FocusKind::None.as_str().to_owned();
        }
        let file = format!("/api/v1/theatres/{theatre}/layouts/{}/file", layout.id);
        let (remarks, id) = (findings_list(layout.remarks), layout.id);
        let edit = format!("/staff/{theatre}/layouts/{id}/edit");
        view! {
            <p>{facts}</p>
            {remarks}
            {preview.view()}
            <ul class="preview-legend">{categories}</ul>
            <p class="organiser-ways">
                <a class="button button-quiet" href=edit data-testid="edit-room">{say!("editor.edit_room")}</a>
                <a class="button button-quiet" href=format!("{file}?form=seating_plan") download>{say!("organiser.export_plan")}</a>
                <a class="button button-quiet" href=format!("{file}?form=own") download>{say!("organiser.export_own")}</a>
            </p>
            {is_own.then(|| focus_form(desk, &id.to_string(), focus))}
            {(is_own && focus.is_some()).then(|| assign_forms(desk, &id.to_string(), screens, &form))}
        }
        .into_markup()
    };
    titled_page(desk, None, Head::default(), move || title.clone(), content)
}

/// The question where the audience looks, as long as nothing answers it; afterwards a form to change the answer. Sides are
/// those of the drawing above.
fn focus_form(desk: &Desk, layout: &str, focus: Option<FocusChoice>) -> impl IntoView + use<> {
    let Desk { theatre, key, .. } = desk;
    let action = format!("/staff/{theatre}/layouts/{layout}/focus");
    let (title, lead) = if focus.is_some() {
        (say!("organiser.focus_change_title"), say!("organiser.focus_change_lead"))
    } else {
        (say!("organiser.focus_title"), say!("organiser.focus_lead"))
    };
    let class = if focus.is_some() { "button button-quiet" } else { "button" };
    // In the drawing a focus is at the top or in the middle.
    let side = focus.map(|focus| focus.side).filter(|side| *side == FocusSide::Round).unwrap_or_default();
    let kind = focus.map(|focus| focus.kind).unwrap_or_default();
    let form = Form::new([("kind", kind.as_str()), ("side", side.as_str())]);
    view! {
        <section class="card organiser-card" aria-labelledby="room-focus" data-testid="room-focus">
            <h2 id="room-focus">{title}</h2>
            <p class="quiet">{lead}</p>
            <form class="organiser-form" action=action method="post">
                {hidden("key", key)}
                {choice(&form, "kind", say!("editor.focus"), focus_kinds())}
                {choice(&form, "side", say!("editor.side"), focus_sides())}
                <button class=class r#type="submit" data-testid="set-focus">{say!("organiser.focus_set")}</button>
            </form>
        </section>
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
                    <button class="button" r#type="submit" data-testid="new-screen">{say!("organiser.new_screen")}</button>
                </form>
            </section>
            {existing}
        </div>
    }
}

/// Findings as a list; `None` without any.
pub(super) fn findings_list(findings: Vec<Finding>) -> Option<impl IntoView> {
    let can_be_mended = findings.iter().any(|finding| finding.kind.can_be_mended());
    let advice = can_be_mended.then(|| view! { <p>{say!("organiser.finding_mend")}</p> });
    (!findings.is_empty()).then(|| {
        let items = findings.into_iter().map(|finding| {
            let kind = serde_json::to_value(finding.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
            view! { <li data-finding=kind>{finding_words(&finding)}</li> }
        });
        view! {
            <ul class="organiser-findings" data-testid="findings">{items.collect_view()}</ul>
            {advice}
        }
    })
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
    /// Name and number of seats of each section, in plan order.
    pub sections: Vec<(String, usize)>,
    /// The section to edit, by its index, in a room that is too large to be edited at once.
    pub section: Option<usize>,
    /// Seats to edit that are sold in upcoming shows, by index.
    pub sold: Vec<u32>,
}

impl DrawnRoom {
    /// Number of seats to edit at once.
    fn seats(&self) -> usize {
        self.section.map_or(self.preview.dots.len(), |section| self.sections[section].1)
    }

    fn is_too_large(&self) -> bool {
        self.seats() > MAX_EDITED_SEATS
    }

    /// The sections with links to those that can be edited, or the reason why there are none.
    fn choose_section(&self, theatre: &str) -> Markup {
        let seats = self.seats();
        if self.section.is_some() || self.sections.iter().all(|(_, seats)| *seats > MAX_EDITED_SEATS) {
            return view! { <p class="account-notice" role="status" data-testid="layout-too-large">{too_large(seats)}</p> }
                .into_markup();
        }
        let lines = self.sections.iter().enumerate().map(|(number, (name, seats))| {
            let name = section_name(number, name);
            let href = format!("/staff/{theatre}/layouts/{}/edit?section={number}", self.id);
            let name = if *seats > MAX_EDITED_SEATS {
                view! { <bdi>{name}</bdi> }.into_markup()
            } else {
                view! { <a href=href><bdi>{name}</bdi></a> }.into_markup()
            };
            view! { <li data-testid="room-section">{name}" "<span class="quiet small">{say!("organiser.seats", count = *seats)}</span></li> }
        });
        let lines = lines.collect_view();
        view! {
            <p>{say!("editor.choose_section", seats = seats, most = MAX_EDITED_SEATS)}</p>
            <ul class="layout-sections">{lines}</ul>
        }
        .into_markup()
    }
}

fn section_name(number: usize, name: &str) -> String {
    match name.trim() {
        "" => say!("editor.section_number", number = number + 1),
        name => name.to_owned(),
    }
}

/// The page of the layout editor, which starts with a room or an empty one. `screens` can get the layout, id and name;
/// those with this room first. A room too large for the editor is shown with its sections, to edit one of them; a section
/// too large for it is read-only.
pub fn drawing_board_page(desk: Desk, room: Option<DrawnRoom>, screens: Vec<(String, String)>) -> impl Page {
    let is_drawn = !room.as_ref().is_some_and(DrawnRoom::is_too_large);
    let head = Head { has_island: is_drawn, words: if is_drawn { WORDS } else { &[] }, ..Head::default() };
    let named = room.as_ref().map(|room| {
        let section = room.section.map(|number| (number, room.sections[number].0.clone()));
        (room.name.clone(), section)
    });
    let title = move || match &named {
        None => say!("editor.title_new"),
        Some((name, None)) => say!("editor.title", name = name),
        Some((name, Some((number, section)))) => {
            say!("editor.title", name = &format!("{name} · {}", section_name(*number, section)))
        }
    };
    let content = move |desk: &Desk| {
        let theatre = desk.theatre.clone();
        let back = room.as_ref().map_or_else(
            || (format!("/staff/{theatre}/screens"), say!("organiser.screens")),
            |room| {
                let page = format!("/staff/{theatre}/layouts/{}", room.id);
                match room.section {
                    Some(_) => (format!("{page}/edit"), say!("editor.sections")),
                    None => (page, say!("organiser.see_room")),
                }
            },
        );
        let content = match room {
            Some(room) if !is_drawn => {
                let sections = room.choose_section(&theatre);
                view! {
                    <div class="layout-desk">
                        {room.preview.view()}
                        <div>{sections}</div>
                    </div>
                }
                .into_markup()
            }
            room => {
                let section = room.as_ref().and_then(|room| room.section);
                let (layout, sold) = room.map(|room| (room.id, room.sold)).unzip();
                view! {
                    <StaffLayoutEditor theatre=theatre layout=layout section=section screens=screens sold=sold.unwrap_or_default() />
                    <noscript><p class="no-script">{say!("editor.no_script")}</p></noscript>
                }
                .into_markup()
            }
        };
        view! {
            <p class="crumbs"><a href=back.0 data-testid="back">{back.1}</a></p>
            {content}
        }
        .into_markup()
    };
    titled_page(desk, None, head, title, content)
}

/// A drawing of a room. One path per category keeps an arena's page small; rows and numbers are shown if there is space.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Its sections, and its rows if it is small.
    pub plan: PlanView,
    /// The positions of its seats.
    pub dots: Vec<Dot>,
}

impl Preview {
    fn view(self) -> impl IntoView {
        let Self { plan, dots } = self;
        let paths = paths(&dots).into_iter().enumerate().filter(|(_, path)| !path.is_empty());
        let paths =
            paths.map(|(colour, path)| view! { <path class=format!("preview-seats cat-{colour}") d=path></path> });
        let (focus, shapes) = (focus_view(&plan), plan.shapes.iter().map(shape_view).collect_view());
        let names = plan.sections.iter().filter(|_| plan.overview).map(|section| {
            let [left, top, right, bottom] = section.bounds;
            let name = [section.name.as_str(), section.part.as_str()].join(" ").trim().to_owned();
            let size = ((right - left) / 6).clamp(24, plan.width / 30 + 24);
            view! { <text class="preview-section" x=i32::midpoint(left, right) y=i32::midpoint(top, bottom) font-size=size>{name}</text> }
        });
        let names = names.collect_view();
        let rows = plan.sections.iter().flat_map(|section| &section.rows).map(|row| {
            let (at_x, at_y) = (row.x.first().copied().unwrap_or(0), row.y.first().copied().unwrap_or(0));
            let next = row.x.get(1).copied().unwrap_or(at_x + 1);
            let letter = if next >= at_x { at_x - LETTER_DISTANCE } else { at_x + LETTER_DISTANCE };
            let seats = row.numbers.iter().zip(row.x.iter().zip(&row.y)).map(|(number, (x, y))| {
                let is_long = number.chars().count() > MAX_NUMBER_CHARS;
                view! { <text class="preview-number" class:preview-number-long=is_long x=*x y=*y>{number.clone()}</text> }
            });
            view! {
                <text class="preview-row" x=letter y=at_y>{row.label.clone()}</text>
                {seats.collect_view()}
            }
        });
        let rows = rows.collect_view();
        let label = say!("organiser.preview", seats = plan.seat_count);
        view! {
            <figure class="preview" data-testid="preview">
                <svg role="img" aria-label=label viewBox=format!("0 0 {} {}", plan.width, plan.height)>
                    {shapes}
                    {focus}
                    {paths.collect_view()}
                    {rows}
                    {names}
                </svg>
            </figure>
        }
    }
}

/// The screen, stage or field with its name; `None` in a room without one.
fn focus_view(plan: &PlanView) -> Option<impl IntoView + use<>> {
    let kind = plan.focus.parse::<FocusKind>().ok().filter(|kind| *kind != FocusKind::None)?;
    let ([x, y, width], half) = (plan.focus_at, plan.focus_depth / 2);
    let (left, right) = (x - width / 2, x + width / 2);
    let outline = if plan.is_round {
        format!("M{left} {}H{right}V{}H{left}Z", y - half, y + half)
    } else {
        format!("M{left} {y}Q{x} {} {right} {y}", y - 20)
    };
    let size = (width / FOCUS_LETTERS).clamp(SMALLEST_FOCUS_LETTER, 2 * half.max(SMALLEST_FOCUS_LETTER));
    Some(view! {
        <path class="preview-focus" d=outline></path>
        <text class="preview-section" x=x y=y font-size=size>{focus_kind(kind)}</text>
    })
}

/// A table, a bar or a text.
fn shape_view(shape: &ShapeView) -> impl IntoView + use<> {
    let points: Vec<String> = shape.corners.iter().map(ToString::to_string).collect();
    let [x, y] = shape.at;
    view! {
        <polygon class="preview-shape" points=points.join(" ")></polygon>
        <text class="preview-row" x=x y=y>{shape.text.clone()}</text>
    }
}

/// A path per colour: each dot is a line of zero length with round ends.
fn paths(dots: &[Dot]) -> Vec<String> {
    let mut paths = vec![String::new(); COLOURS];
    for dot in dots {
        // Writing to a string never fails.
        let _ = write!(paths[usize::from(dot.category) % COLOURS], "M{} {}h0", dot.x, dot.y);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seat_is_a_dot_in_the_path_of_its_category() {
        let dot = |x, category| Dot { x, y: 7, category };
        let paths = paths(&[dot(10, 0), dot(30, 9), dot(50, 1)]);
        assert_eq!((paths[0].as_str(), paths[1].as_str()), ("M10 7h0", "M30 7h0M50 7h0"));
        assert!(paths[2..].iter().all(String::is_empty));
    }
}
