//! The contents of the drawing as a list, for screen readers and keyboards, and the findings about it.

use domain::layout::editing::ObjectKey;
use domain::layout::import::Finding;
use leptos::prelude::*;

use super::editor::Editor;
use super::findings::words;
use crate::say;

/// A line of the list.
#[derive(Clone, Debug, PartialEq)]
struct ContentsLine {
    key: ObjectKey,
    words: String,
}

/// Rows and areas, section by section. A press selects; with multiple selection it adds.
pub(super) fn list(editor: Editor) -> impl IntoView {
    let lines = Memo::new(move |_| lines_of(editor));
    view! {
        <section class="layout-part" aria-labelledby="layout-things">
            <h2 id="layout-things">{say!("editor.things")}</h2>
            <p class="quiet" hidden=move || !lines.get().is_empty()>{say!("editor.nothing")}</p>
            <ul class="layout-things" data-moves="" data-testid="layout-things">
                <For each=move || lines.get() key=|line| (line.key, line.words.clone()) let:line>
                    {line_view(editor, line)}
                </For>
            </ul>
        </section>
    }
}

fn lines_of(editor: Editor) -> Vec<ContentsLine> {
    editor.draft(|draft| {
        let mut lines = Vec::with_capacity(draft.rows.len() + draft.areas.len());
        for section in &draft.sections {
            for row in draft.rows.iter().filter(|row| row.section == section.key) {
                let words = say!("editor.row_line", row = &draft.row_name(row), seats = row.seats.len());
                lines.push(ContentsLine { key: row.key, words });
            }
            for area in draft.areas.iter().filter(|area| area.section == section.key) {
                let words = say!("editor.area_words", name = &area.name, places = area.capacity);
                lines.push(ContentsLine { key: area.key, words });
            }
        }
        lines
    })
}

fn line_view(editor: Editor, line: ContentsLine) -> impl IntoView {
    let key = line.key;
    let is_chosen = move || if editor.chosen.with(|chosen| chosen.contains(&key)) { "true" } else { "false" };
    let press = move |event: leptos::ev::MouseEvent| {
        if event.shift_key() || event.ctrl_key() || event.meta_key() || editor.several.get_untracked() {
            editor.toggle(key);
        } else {
            editor.choose([key]);
        }
    };
    view! {
        <li><button type="button" class="layout-thing" data-testid="layout-thing" aria-pressed=is_chosen on:click=press>{line.words}</button></li>
    }
}

/// Errors and warnings. A finding with a place has a button that selects it.
pub(super) fn findings(editor: Editor) -> impl IntoView {
    let state = move || if editor.check_result.with(|check_result| check_result.passes) { "passes" } else { "wrong" };
    let lead = move || {
        if editor.check_result.with(|check_result| check_result.passes) {
            say!("editor.passes")
        } else {
            say!("editor.wrong")
        }
    };
    let gone = move || match editor.missing_sold_seats() {
        0 => None,
        count => {
            let words = say!("editor.sold_gone", count = count);
            Some(view! { <p class="layout-sold" data-testid="layout-sold-gone">{words}</p> })
        }
    };
    view! {
        <section class="layout-mistakes" role="status" data-testid="layout-mistakes" data-state=state>
            <p><strong>{lead}</strong></p>
            <ul>{move || editor.check_result.get().findings.into_iter().map(|finding| finding_view(editor, finding)).collect_view()}</ul>
            {gone}
        </section>
    }
}

fn finding_view(editor: Editor, finding: Finding) -> impl IntoView {
    let kind = serde_json::to_value(finding.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
    let (said, place) = (words(&finding), finding.place);
    let rows = editor.now(|draft| draft.rows_called(&place));
    let show = (!rows.is_empty()).then(|| {
        let label = say!("editor.show_it", place = &place);
        let rows = rows.clone();
        view! {
            <button type="button" class="layout-link" data-testid="layout-show" aria-label=label on:click=move |_| editor.choose(rows.clone())>
                {say!("editor.show")}
            </button>
        }
    });
    view! { <li data-finding=kind>{said}" "{show}</li> }
}
