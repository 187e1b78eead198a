//! The form that draws new rows, and the panel of the selected ones. Its fields show the first row's value; a change
//! applies to all.

use std::sync::Arc;

use domain::layout::editing::{
    Command, DraftRow, DrawingPoint, NewRows, Numbering, ObjectKey, ROW_GAP_SEATS, label_after,
};
use language::say;
use leptos::ev::SubmitEvent;
use leptos::prelude::*;

use super::editor::Editor;
use super::fields::{choice, input, number, number_in, text, whole_in};

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
fn orders() -> Vec<(String, String)> {
    let order = |value: &str, words| (value.to_owned(), words);
    vec![
        order("left", say!("editor.order_left")),
        order("right", say!("editor.order_right")),
        order("left-other", say!("editor.order_left_other")),
        order("right-other", say!("editor.order_right_other")),
    ]
}

/// The numbering of an order. "Other" orders use every second number: odd from 1, even from 2.
fn numbering(first: &str, order: &str) -> Numbering {
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

pub(super) fn new_rows(editor: Editor) -> impl IntoView {
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

/// The panel; hidden without a selected row.
pub(super) fn chosen(editor: Editor) -> impl IntoView {
    let rows = Memo::new(move |_| editor.chosen_rows());
    move || {
        let keys = rows.get();
        let first = keys.first().copied()?;
        let only = (keys.len() == 1).then_some(first);
        Some(view! {
            <section class="layout-part" aria-labelledby="layout-rows" data-testid="layout-rows-chosen">
                <h2 id="layout-rows">{say!("editor.rows_chosen", count = keys.len())}</h2>
                {facts(editor, first, StoredValue::new(keys.clone()))}
                {number_form(editor, first, StoredValue::new(keys.clone()))}
                {aisle_form(editor, StoredValue::new(keys.clone()))}
                {only.map(|row| seats(editor, row))}
                {acts(editor, StoredValue::new(keys))}
            </section>
        })
    }
}

/// A value of a row; the default once it was removed.
fn of<T: Default>(editor: Editor, key: ObjectKey, read: impl FnOnce(&DraftRow) -> T) -> T {
    editor.row(key).map(|row: Arc<DraftRow>| read(&row)).unwrap_or_default()
}

fn facts(editor: Editor, first: ObjectKey, keys: StoredValue<Vec<ObjectKey>>) -> impl IntoView {
    let pitch = editor.pitch();
    let place = move |side: usize| of(editor, first, |row| row.at[side]) / pitch;
    let go = move |to: DrawingPoint| {
        let by = [(to[0] - untrack(|| place(0))) * pitch, (to[1] - untrack(|| place(1))) * pitch];
        editor.apply(&Command::Move(keys.get_value(), by));
    };
    let categorise = move |key: String| {
        let category = key_in(&key, &untrack(|| categories(editor)));
        let seats: Vec<usize> = editor.seats.with_untracked(|seats| seats.iter().copied().collect());
        let command = match editor.only_row().filter(|_| !seats.is_empty()) {
            Some(row) => Command::CategoriseSeats(row, seats, category),
            None => Command::Categorise(keys.get_value(), category),
        };
        editor.apply(&command);
    };
    let category = move || {
        let seat = editor.seats.with(|seats| seats.first().copied()).unwrap_or_default();
        of(editor, first, |row| row.seats.get(seat).map(|seat| seat.category.to_string()).unwrap_or_default())
    };
    let turn = move |degrees: f64| {
        let by = degrees - untrack(|| of(editor, first, |row| row.turn));
        editor.apply(&Command::Turn(keys.get_value(), by));
    };
    let assign = move |key: String| {
        let section = key_in(&key, &untrack(|| sections(editor)));
        editor.apply(&Command::Assign(keys.get_value(), section));
    };
    view! {
        <div class="layout-form">
            {text("row-label", say!("editor.row_label"), move || of(editor, first, |row| row.label.clone()),
                move |label| { editor.apply(&Command::Relabel(keys.get_value(), label)); })}
            {number("row-seats", say!("editor.seats_each"), "1", move || of(editor, first, |row| row.seats.len() as f64),
                move |count| { editor.apply(&Command::Resize(keys.get_value(), count.max(0.0) as usize)); })}
            {number("row-bow", say!("editor.bow"), "0.1", move || of(editor, first, |row| row.bow) / pitch,
                move |bow| { editor.apply(&Command::Bend(keys.get_value(), bow * pitch)); })}
            {number("row-turn", say!("editor.turn"), "1", move || of(editor, first, |row| row.turn), turn)}
            {number("row-x", say!("editor.from_left"), "0.25", move || place(0), move |x| go([x, untrack(|| place(1))]))}
            {number("row-y", say!("editor.from_top"), "0.25", move || place(1), move |y| go([untrack(|| place(0)), y]))}
            {choice("row-category", say!("editor.category"), move || categories(editor), category, categorise)}
            {choice("row-section", say!("editor.section"), move || sections(editor),
                move || of(editor, first, |row| row.section.to_string()), assign)}
        </div>
    }
}

fn number_form(editor: Editor, first: ObjectKey, keys: StoredValue<Vec<ObjectKey>>) -> impl IntoView {
    let start =
        untrack(|| of(editor, first, |row| row.from_left().first().map(|seat| row.seats[*seat].number.clone())));
    let (begin, order) = (RwSignal::new(start.unwrap_or_else(|| "1".to_owned())), RwSignal::new("left".to_owned()));
    let act = move |_| {
        let numbering = numbering(&begin.get_untracked(), &order.get_untracked());
        editor.apply(&Command::Number(keys.get_value(), numbering));
    };
    view! {
        <div class="layout-form">
            {input("number-first", say!("editor.first_seat"), "text", begin)}
            {choice("number-order", say!("editor.order"), orders, move || order.get(), move |chosen| order.set(chosen))}
            <button type="button" class="button button-quiet" data-testid="layout-number" on:click=act>{say!("editor.number_seats")}</button>
        </div>
    }
}

fn aisle_form(editor: Editor, keys: StoredValue<Vec<ObjectKey>>) -> impl IntoView {
    let (after, wide) = (RwSignal::new(String::new()), RwSignal::new("1".to_owned()));
    let act = move |_| {
        let wide = number_in(&wide.get_untracked()).unwrap_or_default().max(0.0);
        let after = whole_in(&after.get_untracked()).unwrap_or_default();
        editor.apply(&Command::Space(keys.get_value(), after, (1.0 + wide) * editor.pitch()));
    };
    view! {
        <div class="layout-form">
            {input("aisle-after", say!("editor.aisle_after"), "number", after)}
            {input("aisle-wide", say!("editor.aisle_wide"), "number", wide)}
            <button type="button" class="button button-quiet" data-testid="layout-aisle" on:click=act>{say!("editor.make_aisle")}</button>
        </div>
    }
}

/// The seats of the only selected row, from left to right, with their numbers.
fn seats(editor: Editor, row: ObjectKey) -> impl IntoView {
    let numbers = Memo::new(move |_| {
        of(editor, row, |row| {
            let number = |seat: usize| (seat, row.seats[seat].number.clone(), editor.is_sold(row.seats[seat].origin));
            row.from_left().into_iter().map(number).collect::<Vec<_>>()
        })
    });
    let seat = move |(seat, number, is_sold): (usize, String, bool)| {
        let is_chosen = move || if editor.seats.with(|seats| seats.contains(&seat)) { "true" } else { "false" };
        let shown = if number.is_empty() { "?".to_owned() } else { number.clone() };
        let label = if is_sold { say!("editor.seat_sold", seat = &shown) } else { say!("editor.seat", seat = &shown) };
        view! {
            <li><button type="button" class="layout-seat-key" data-testid="layout-seat" aria-pressed=is_chosen aria-label=label data-sold=is_sold.then_some("")
                on:click=move |_| editor.toggle_seat(seat)>{shown}</button></li>
        }
    };
    let only = Memo::new(move |_| editor.seats.with(|seats| seats.first().copied().filter(|_| seats.len() == 1)));
    let number = move || {
        only.get().map(|seat| {
            text(
                "seat-number",
                say!("editor.seat_number"),
                move || of(editor, row, |row| row.seats.get(seat).map(|seat| seat.number.clone()).unwrap_or_default()),
                move |number| {
                    editor.apply(&Command::SetNumber(row, seat, number));
                },
            )
        })
    };
    let is_idle = move || if editor.seats.with(|seats| seats.is_empty()) { "true" } else { "false" };
    let take_out = move |_| {
        if editor.seats.with_untracked(|seats| !seats.is_empty()) {
            editor.remove_chosen();
        }
    };
    view! {
        <div class="layout-seats" role="group" aria-label=say!("editor.seats_of_row")>
            <ul>{move || numbers.get().into_iter().map(seat).collect_view()}</ul>
            <div class="layout-form">
                {number}
                <button type="button" class="button button-quiet" data-testid="layout-take-out" aria-disabled=is_idle on:click=take_out>
                    {say!("editor.take_out")}
                </button>
            </div>
        </div>
    }
}

fn acts(editor: Editor, keys: StoredValue<Vec<ObjectKey>>) -> impl IntoView {
    let copy = move |_| {
        let (keys, pitch) = (keys.get_value(), editor.pitch());
        let bounds = editor.now(|draft| draft.bounds_of(&keys));
        let Some([_, top, _, bottom]) = bounds else { return };
        let before = editor.now(|draft| draft.rows.len());
        if editor.apply(&Command::Copy(keys, [0.0, bottom - top + ROW_GAP_SEATS * pitch])) {
            let copies: Vec<ObjectKey> =
                editor.now(|draft| draft.rows.iter().skip(before).map(|row| row.key).collect());
            editor.choose(copies);
        }
    };
    view! {
        <div class="layout-acts">
            <button type="button" class="button button-quiet" data-testid="layout-copy" on:click=copy>{say!("editor.copy")}</button>
            <button type="button" class="button button-quiet" data-testid="layout-remove"
                on:click=move |_| { editor.apply(&Command::Remove(keys.get_value())); }>{say!("editor.remove")}</button>
        </div>
    }
}
