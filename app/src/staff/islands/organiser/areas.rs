//! Areas without numbered seats: the form for a new one, and the panel of the selected one.

use domain::layout::editing::{Command, DraftArea, ObjectKey, Outline};
use language::say;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;

use super::editor::Editor;
use super::fields::{choice, input, number, number_in, text, whole_in};
use super::rows::{categories, key_in, sections, shown};

/// Initial width and depth of an area, in seats.
const SIZE_SEATS: [f64; 2] = [10.0, 4.0];

pub(super) fn new_area(editor: Editor) -> impl IntoView {
    let (name, capacity) = (RwSignal::new(String::new()), RwSignal::new("100".to_owned()));
    let category = RwSignal::new(String::new());
    let draw = move |event: SubmitEvent| {
        event.prevent_default();
        let pitch = editor.pitch();
        let size = SIZE_SEATS.map(|side| side * pitch);
        let [x, y] = editor.now(|draft| draft.next_place());
        let command = Command::AddArea(
            editor.now(|draft| draft.sections.first().map(|section| section.key).unwrap_or_default()),
            name.get_untracked(),
            key_in(&category.get_untracked(), &untrack(|| categories(editor))),
            places_in(&capacity.get_untracked()),
            [x, y + size[1] / 2.0],
            size,
        );
        if editor.apply(&command) {
            editor.choose(editor.now(|draft| draft.areas.last().map(|area| area.key)));
            name.set(String::new());
        }
    };
    view! {
        <details class="layout-part">
            <summary data-testid="layout-area-open"><h2>{say!("editor.new_area")}</h2></summary>
            <form class="layout-form" data-testid="layout-new-area" novalidate on:submit=draw>
                {input("new-area", say!("editor.area_name"), "text", name)}
                {input("new-capacity", say!("editor.capacity"), "number", capacity)}
                {choice("new-area-category", say!("editor.category"), move || categories(editor),
                    move || shown(&category.get(), &categories(editor)),
                    move |key| category.set(key))}
                <button type="submit" class="button" data-testid="layout-draw-area">{say!("editor.draw_area")}</button>
            </form>
        </details>
    }
}

/// A number of people. Invalid text becomes 0, which is refused.
fn places_in(text: &str) -> u32 {
    whole_in(text).and_then(|count| u32::try_from(count).ok()).unwrap_or_default()
}

/// The panel of the selected area; hidden unless exactly one is selected.
pub(super) fn chosen(editor: Editor) -> impl IntoView {
    let only = Memo::new(move |_| match *editor.chosen_areas() {
        [only] => Some(only),
        _ => None,
    });
    move || {
        let key = only.get()?;
        Some(view! {
            <section class="layout-part" aria-labelledby="layout-area" data-testid="layout-area-chosen">
                <h2 id="layout-area">{say!("editor.area_chosen")}</h2>
                {facts(editor, key)}
                {form(editor, key)}
                <div class="layout-acts">
                    <button type="button" class="button button-quiet" data-testid="layout-remove-area"
                        on:click=move |_| { editor.apply(&Command::Remove(vec![key])); }>{say!("editor.remove")}</button>
                </div>
            </section>
        })
    }
}

fn of<T: Default>(editor: Editor, key: ObjectKey, read: impl FnOnce(&DraftArea) -> T) -> T {
    editor.area(key).map(|area| read(&area)).unwrap_or_default()
}

/// Changes the current state of an area.
fn change(editor: Editor, key: ObjectKey, change: impl FnOnce(&mut DraftArea)) {
    if let Some(area) = editor.now(|draft| draft.area(key).cloned()) {
        let mut changed = DraftArea::clone(&area);
        change(&mut changed);
        editor.apply(&Command::ChangeArea(key, changed.name, changed.capacity, changed.outline));
    }
}

fn facts(editor: Editor, key: ObjectKey) -> impl IntoView {
    let pitch = editor.pitch();
    let place = move |side: usize| of(editor, key, |area| area.at[side]) / pitch;
    let go = move |side: usize, to: f64| {
        let mut by = [0.0, 0.0];
        by[side] = (to - untrack(|| place(side))) * pitch;
        editor.apply(&Command::Move(vec![key], by));
    };
    let categorise = move |chosen: String| {
        let category = key_in(&chosen, &untrack(|| categories(editor)));
        editor.apply(&Command::Categorise(vec![key], category));
    };
    let assign = move |chosen: String| {
        let section = key_in(&chosen, &untrack(|| sections(editor)));
        editor.apply(&Command::Assign(vec![key], section));
    };
    view! {
        <div class="layout-form">
            {text("area-name", say!("editor.area_name"), move || of(editor, key, |area| area.name.clone()),
                move |name| change(editor, key, |area| area.name = name))}
            {number("area-capacity", say!("editor.capacity"), "1", move || of(editor, key, |area| f64::from(area.capacity)),
                move |places| change(editor, key, |area| area.capacity = places.clamp(0.0, f64::from(u32::MAX)) as u32))}
            {number("area-x", say!("editor.from_left"), "0.25", move || place(0), move |x| go(0, x))}
            {number("area-y", say!("editor.from_top"), "0.25", move || place(1), move |y| go(1, y))}
            {choice("area-category", say!("editor.category"), move || categories(editor),
                move || of(editor, key, |area| area.category.to_string()), categorise)}
            {choice("area-section", say!("editor.section"), move || sections(editor),
                move || of(editor, key, |area| area.section.to_string()), assign)}
        </div>
    }
}

/// Width and depth of a rectangle, or the corners of a polygon.
fn form(editor: Editor, key: ObjectKey) -> impl IntoView {
    let corners = Memo::new(move |_| {
        editor.area(key).and_then(|area| match &area.outline {
            Outline::Rectangle(_) => None,
            Outline::Polygon(corners) => Some(corners.len()),
        })
    });
    move || match corners.get() {
        None => rectangle(editor, key).into_any(),
        Some(count) => polygon(editor, key, count).into_any(),
    }
}

fn rectangle(editor: Editor, key: ObjectKey) -> impl IntoView {
    let pitch = editor.pitch();
    let size = move |side: usize| {
        of(editor, key, |area| match area.outline {
            Outline::Rectangle(size) => size[side] / pitch,
            Outline::Polygon(_) => 0.0,
        })
    };
    let resize = move |side: usize, to: f64| {
        change(editor, key, |area| {
            if let Outline::Rectangle(size) = &mut area.outline {
                size[side] = to * pitch;
            }
        });
    };
    let free = move |_| change(editor, key, |area| area.outline = Outline::Polygon(area.outline.corners()));
    view! {
        <div class="layout-form">
            {number("area-wide", say!("editor.wide"), "0.5", move || size(0), move |wide| resize(0, wide))}
            {number("area-deep", say!("editor.deep"), "0.5", move || size(1), move |deep| resize(1, deep))}
            <button type="button" class="button button-quiet" data-testid="layout-corners" on:click=free>{say!("editor.free_corners")}</button>
        </div>
    }
}

/// The corners, relative to the middle of the area: right and down, in seats.
fn polygon(editor: Editor, key: ObjectKey, count: usize) -> impl IntoView {
    let pitch = editor.pitch();
    let corner = move |number: usize| {
        let at = move |side: usize| {
            of(editor, key, |area| {
                area.outline.corners().get(number).map(|corner| corner[side] / pitch).unwrap_or_default()
            })
        };
        let field = move |side: usize, label: String| {
            let written = move || super::fields::decimal(at(side));
            let set = move |event: leptos::ev::Event| {
                let Some(to) = number_in(&event_target_value(&event)) else { return };
                let mut by = [0.0, 0.0];
                by[side] = (to - untrack(|| at(side))) * pitch;
                change(editor, key, |area| area.outline = area.outline.with_corner(number, by));
            };
            view! { <input type="number" step="0.25" aria-label=label prop:value=written on:change=set /> }
        };
        let drop = move |_| {
            change(editor, key, |area| {
                let mut corners = area.outline.corners();
                corners.remove(number);
                area.outline = Outline::Polygon(corners);
            });
        };
        let name = number + 1;
        view! {
            <li class="layout-corner-line">
                <span aria-hidden="true">{name}</span>
                {field(0, say!("editor.corner_x", number = name))}
                {field(1, say!("editor.corner_y", number = name))}
                <button type="button" class="layout-link" aria-label=say!("editor.drop_corner", number = name) on:click=drop>"×"</button>
            </li>
        }
    };
    // Halfway from the last corner to the first.
    let add = move |_| {
        change(editor, key, |area| {
            let mut corners = area.outline.corners();
            if let (Some([x, y]), Some([to_x, to_y])) = (corners.last().copied(), corners.first().copied()) {
                corners.push([f64::midpoint(x, to_x), f64::midpoint(y, to_y)]);
            }
            area.outline = Outline::Polygon(corners);
        });
    };
    view! {
        <ol class="layout-corners" data-testid="layout-corner-list">{(0..count).map(corner).collect_view()}</ol>
        <button type="button" class="button button-quiet" data-testid="layout-add-corner" on:click=add>{say!("editor.add_corner")}</button>
    }
}
