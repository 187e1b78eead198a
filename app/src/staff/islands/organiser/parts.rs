//! The room itself besides its rows: name, screen or stage, sections and categories.

use domain::VariantName;
use domain::api::SeatKind;
use domain::layout::editing::{Command, ObjectKey};
use domain::layout::{Focus, FocusKind, FocusSide};
use language::say;
use leptos::prelude::*;
use strum::VariantArray;

use super::editor::Editor;
use super::fields::{choice, number, text};

/// Words for a kind of focus.
pub fn focus_kind(kind: FocusKind) -> String {
    match kind {
        FocusKind::Screen => say!("map.screen"),
        FocusKind::Stage => say!("map.stage"),
        FocusKind::Field => say!("map.field"),
        FocusKind::None => say!("editor.no_focus"),
    }
}

/// The kinds of focus and their words.
pub fn focus_kinds() -> Vec<(String, String)> {
    FocusKind::VARIANTS.iter().map(|kind| (kind.as_str().to_owned(), focus_kind(*kind))).collect()
}

/// The sides of a focus and their words.
pub fn focus_sides() -> Vec<(String, String)> {
    let words = |side| match side {
        FocusSide::Top => say!("editor.side_top"),
        FocusSide::Right => say!("editor.side_right"),
        FocusSide::Bottom => say!("editor.side_bottom"),
        FocusSide::Left => say!("editor.side_left"),
        FocusSide::Round => say!("editor.side_round"),
    };
    FocusSide::VARIANTS.iter().map(|side| (side.as_str().to_owned(), words(*side))).collect()
}

/// Name, and screen, stage or field.
pub(super) fn room(editor: Editor) -> impl IntoView {
    let pitch = editor.pitch();
    let focus = move || editor.draft(|draft| draft.focus);
    let change = move |change: &dyn Fn(&mut Focus)| {
        let mut focus = untrack(focus);
        change(&mut focus);
        editor.apply(&Command::Focus(focus));
    };
    let put = move |kind: FocusKind, side: FocusSide| {
        editor.apply(&Command::Focus(editor.now(|draft| draft.focus_at(kind, side))));
    };
    view! {
        <details class="layout-part">
            <summary data-testid="layout-room-open"><h2>{say!("editor.room")}</h2></summary>
            <div class="layout-form">
                {text("room-name", say!("editor.room_name"), move || editor.draft(|draft| draft.name.clone()),
                    move |name| { editor.apply(&Command::Rename(name)); })}
                {choice("focus-kind", say!("editor.focus"), focus_kinds, move || focus().kind.as_str().to_owned(),
                    move |kind| change(&|focus| focus.kind = kind.parse().unwrap_or_default()))}
                {choice("focus-side", say!("editor.side"), focus_sides, move || focus().side.as_str().to_owned(),
                    move |side| put(untrack(focus).kind, side.parse().unwrap_or_default()))}
                {number("focus-wide", say!("editor.wide"), "0.5", move || focus().width / pitch,
                    move |wide| change(&|focus| focus.width = wide * pitch))}
                {number("focus-x", say!("editor.from_left"), "0.25", move || focus().at[0] / pitch,
                    move |x| change(&|focus| focus.at[0] = x * pitch))}
                {number("focus-y", say!("editor.from_top"), "0.25", move || focus().at[1] / pitch,
                    move |y| change(&|focus| focus.at[1] = y * pitch))}
            </div>
        </details>
    }
}

/// Sections: rename, add, remove.
pub(super) fn sections(editor: Editor) -> impl IntoView {
    let keys =
        Memo::new(move |_| editor.draft(|draft| draft.sections.iter().map(|section| section.key).collect::<Vec<_>>()));
    let added = RwSignal::new(String::new());
    let add = move |_| {
        if editor.apply(&Command::AddSection(added.get_untracked())) {
            added.set(String::new());
        }
    };
    view! {
        <details class="layout-part">
            <summary data-testid="layout-sections-open"><h2>{say!("editor.sections")}</h2></summary>
            <ul class="layout-lines">
                <For each=move || keys.get() key=|key| *key let:key>{section(editor, key)}</For>
            </ul>
            <div class="layout-line">
                <input type="text" maxlength="120" autocomplete="off" aria-label=say!("editor.new_section") prop:value=move || added.get()
                    data-testid="layout-section-name" on:input=move |event| added.set(event_target_value(&event)) />
                <button type="button" class="button button-quiet" data-testid="layout-add-section" on:click=add>{say!("editor.add")}</button>
            </div>
        </details>
    }
}

fn section(editor: Editor, key: ObjectKey) -> impl IntoView {
    let name = move || editor.draft(|draft| draft.section_name(key).to_owned());
    let rename = move |event: leptos::ev::Event| {
        let written = event_target_value(&event);
        editor.apply(&Command::RenameSection(key, written));
        event_target::<web_sys::HtmlInputElement>(&event).set_value(&untrack(name));
    };
    view! {
        <li class="layout-line">
            <input type="text" maxlength="120" autocomplete="off" aria-label=say!("editor.section_name") prop:value=name on:change=rename />
            <button type="button" class="button button-quiet" aria-label=move || say!("editor.remove_section", name = &name())
                on:click=move |_| { editor.apply(&Command::RemoveSection(key)); }>{say!("editor.remove")}</button>
        </li>
    }
}

fn kind_chosen(event: &leptos::ev::Event) -> SeatKind {
    event_target_value(event).parse().unwrap_or_default()
}

fn kind_options(chosen: SeatKind) -> impl IntoView {
    let option = |&kind: &SeatKind| {
        view! { <option value=kind.as_str() selected=kind == chosen>{say!(kind.texts().in_editor)}</option> }
    };
    SeatKind::VARIANTS.iter().map(option).collect_view()
}

/// Categories: rename, change kind, add, remove.
pub(super) fn categories(editor: Editor) -> impl IntoView {
    let keys = Memo::new(move |_| {
        editor.draft(|draft| draft.categories.iter().map(|category| category.key).collect::<Vec<_>>())
    });
    let (name, kind) = (RwSignal::new(String::new()), RwSignal::new(SeatKind::default()));
    let add = move |_| {
        if editor.apply(&Command::AddCategory(name.get_untracked(), kind.get_untracked())) {
            name.set(String::new());
        }
    };
    view! {
        <details class="layout-part">
            <summary data-testid="layout-categories-open"><h2>{say!("editor.categories")}</h2></summary>
            <p class="quiet small">{say!("editor.categories_lead")}</p>
            <ul class="layout-lines">
                <For each=move || keys.get() key=|key| *key let:key>{category(editor, key)}</For>
            </ul>
            <div class="layout-line">
                <input type="text" maxlength="120" autocomplete="off" aria-label=say!("editor.new_category") prop:value=move || name.get()
                    data-testid="layout-category-name" on:input=move |event| name.set(event_target_value(&event)) />
                <select aria-label=say!("editor.kind") data-testid="layout-category-kind"
                    on:change=move |event| kind.set(kind_chosen(&event))>{kind_options(SeatKind::default())}</select>
                <button type="button" class="button button-quiet" data-testid="layout-add-category" on:click=add>{say!("editor.add")}</button>
            </div>
        </details>
    }
}

fn category(editor: Editor, key: ObjectKey) -> impl IntoView {
    let known = move || {
        editor.draft(|draft| {
            let found = draft.categories.iter().find(|category| category.key == key);
            found.map(|found| (found.category.label().to_owned(), found.category.kind)).unwrap_or_default()
        })
    };
    let colour = move || {
        format!("layout-colour cat-{}", editor.draft(|draft| draft.category_index(key)) % super::markup::COLOURS)
    };
    let rename = move |event: leptos::ev::Event| {
        editor.apply(&Command::ChangeCategory(key, event_target_value(&event), untrack(known).1));
        event_target::<web_sys::HtmlInputElement>(&event).set_value(&untrack(known).0);
    };
    let change_kind = move |event: leptos::ev::Event| {
        editor.apply(&Command::ChangeCategory(key, untrack(known).0, kind_chosen(&event)));
    };
    let value = move || known().1.as_str();
    view! {
        <li class="layout-line">
            <span class=colour aria-hidden="true"></span>
            <input type="text" maxlength="120" autocomplete="off" aria-label=say!("editor.category_name") prop:value=move || known().0
                on:change=rename />
            <select aria-label=move || say!("editor.kind_of", name = &known().0) prop:value=value on:change=change_kind>
                {kind_options(untrack(known).1)}
            </select>
            <button type="button" class="button button-quiet" aria-label=move || say!("editor.remove_category", name = &known().0)
                on:click=move |_| { editor.apply(&Command::RemoveCategory(key)); }>{say!("editor.remove")}</button>
        </li>
    }
}
