//! The form that draws new rows.

use domain::layout::editing::{Command, NewRows, Numbering, ObjectKey, ROW_GAP_SEATS, label_after};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;

use super::editor::Editor;
use super::fields::{choice, input, number_in, whole_in};
use crate::say;

/// The values of the form. A bundle of handles: copy it.
#[derive(Clone, Copy)]
struct NewRowsForm {
    section: RwSignal<String>,
    category: RwSignal<String>,
    rows: RwSignal<String>,
    seats: RwSignal<String>,
    label: RwSignal<String>,
    first: RwSignal<String>,
    order: RwSignal<String>,
    aisles: RwSignal<String>,
    bow: RwSignal<String>,
    turn: RwSignal<String>,
}

/// The numbering orders: value and words.
pub(super) fn orders() -> Vec<(String, String)> {
    let order = |value: &str, words| (value.to_owned(), words);
    vec![
        order("left", say!("editor.order_left")),
        order("right", say!("editor.order_right")),
        order("left-other", say!("editor.order_left_other")),
        order("right-other", say!("editor.order_right_other")),
    ]
}

/// The numbering of an order. "Other" orders use every second number: odd from 1, even from 2.
pub(super) fn numbering(first: &str, order: &str) -> Numbering {
    let step = if order.ends_with("other") { 2 } else { 1 };
    Numbering { first: first.to_owned(), step, from_right: order.starts_with("right") }
}

/// Sections to choose from.
pub(super) fn sections(editor: Editor) -> Vec<(String, String)> {
    editor.draft(|draft| {
        let name = |(number, name): (usize, &str)| match name.trim() {
            "" => say!("editor.section_number", number = number + 1),
            name => name.to_owned(),
        };
        let keys = draft.sections.iter().map(|section| section.key.to_string());
        let names = draft.sections.iter().map(|section| section.name.as_str()).enumerate().map(name);
        keys.zip(names).collect()
    })
}

/// Categories to choose from.
pub(super) fn categories(editor: Editor) -> Vec<(String, String)> {
    editor.draft(|draft| {
        let known =
            |known: &domain::layout::editing::DraftCategory| (known.key.to_string(), known.category.label().to_owned());
        draft.categories.iter().map(known).collect()
    })
}

/// The key of an option, or of the first one if it is gone.
pub(super) fn key_in(value: &str, options: &[(String, String)]) -> ObjectKey {
    let is_there = options.iter().any(|(key, _)| key == value);
    let value = if is_there { value } else { options.first().map_or("", |(key, _)| key) };
    value.parse().unwrap_or_default()
}

/// The option that a select shows.
pub(super) fn shown(value: &str, options: &[(String, String)]) -> String {
    if options.is_empty() { String::new() } else { key_in(value, options).to_string() }
}

/// The form.
pub(super) fn form(editor: Editor) -> impl IntoView {
    let text = |text: &str| RwSignal::new(text.to_owned());
    let form = NewRowsForm {
        section: text(""),
        category: text(""),
        rows: text("1"),
        seats: text("10"),
        label: text(
            &editor.now(|draft| draft.rows.last().and_then(|row| label_after(&row.label, 1))).unwrap_or("A".into()),
        ),
        first: text("1"),
        order: text("left"),
        aisles: text(""),
        bow: text("0"),
        turn: text("0"),
    };
    view! {
        <details class="layout-part" open>
            <summary><h2>{say!("editor.new_rows")}</h2></summary>
            <form class="layout-form" data-testid="layout-new-rows" novalidate on:submit=move |event: SubmitEvent| {
                event.prevent_default();
                draw(editor, form);
            }>
                {input("new-rows", say!("editor.rows"), "number", form.rows)}
                {input("new-seats", say!("editor.seats_each"), "number", form.seats)}
                {input("new-label", say!("editor.first_row"), "text", form.label)}
                {input("new-first", say!("editor.first_seat"), "text", form.first)}
                {choice("new-order", say!("editor.order"), orders, move || form.order.get(), move |order| form.order.set(order))}
                {input("new-aisles", say!("editor.aisles"), "text", form.aisles)}
                {input("new-bow", say!("editor.bow"), "number", form.bow)}
                {input("new-turn", say!("editor.turn"), "number", form.turn)}
                {choice("new-category", say!("editor.category"), move || categories(editor),
                    move || shown(&form.category.get(), &categories(editor)),
                    move |key| form.category.set(key))}
                {choice("new-section", say!("editor.section"), move || sections(editor),
                    move || shown(&form.section.get(), &sections(editor)),
                    move |key| form.section.set(key))}
                <button type="submit" class="button" data-testid="layout-draw">{say!("editor.draw_rows")}</button>
            </form>
        </details>
    }
}

/// Draws and selects the rows, and continues with the next letter.
fn draw(editor: Editor, form: NewRowsForm) {
    let pitch = editor.pitch();
    let read = |signal: RwSignal<String>| signal.get_untracked();
    let length = |signal| number_in(&read(signal)).unwrap_or_default();
    let aisles = read(form.aisles);
    let rows = NewRows {
        section: key_in(&read(form.section), &untrack(|| sections(editor))),
        category: key_in(&read(form.category), &untrack(|| categories(editor))),
        at: editor.now(|draft| draft.next_place()),
        turn: length(form.turn),
        bow: length(form.bow) * pitch,
        // Invalid numbers become 0, which is refused with the limits.
        rows: whole_in(&read(form.rows)).unwrap_or_default(),
        seats: whole_in(&read(form.seats)).unwrap_or_default(),
        label: read(form.label),
        numbering: numbering(&read(form.first), &read(form.order)),
        gap: ROW_GAP_SEATS * pitch,
        aisles: aisles.split([',', ' ', ';']).filter_map(whole_in).collect(),
    };
    let before = editor.now(|draft| draft.rows.len());
    if editor.apply(&Command::AddRows(rows)) {
        let (drawn, last) = editor.now(|draft| {
            let drawn: Vec<ObjectKey> = draft.rows.iter().skip(before).map(|row| row.key).collect();
            (drawn, draft.rows.last().map(|row| row.label.clone()).unwrap_or_default())
        });
        editor.choose(drawn);
        form.label.set(label_after(&last, 1).unwrap_or_default());
    }
}
