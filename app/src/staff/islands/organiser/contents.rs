//! The contents of the drawing as a list, for screen readers and keyboards; and findings about it or about a room file.

use domain::layout::editing::ObjectKey;
use domain::layout::import::{Finding, FindingKind};
use language::say;
use leptos::prelude::*;

use super::editor::Editor;

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
    let passes = move || editor.check_result.with(|check_result| check_result.passes);
    let state = move || if passes() { "passes" } else { "wrong" };
    let lead = move || if passes() { say!("editor.passes") } else { say!("editor.wrong") };
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
    let (said, place) = (finding_words(&finding), finding.place);
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

/// A finding as a sentence.
pub fn finding_words(finding: &Finding) -> String {
    let (place, count) = (&finding.place, finding.count);
    match finding.kind {
        FindingKind::NotAPlan => say!("organiser.finding_not_a_plan", place = place),
        FindingKind::NoSeats => say!("organiser.finding_no_seats"),
        FindingKind::TooManySeats => say!("organiser.finding_too_many_seats"),
        FindingKind::TooManyCategories => say!("organiser.finding_too_many_categories"),
        FindingKind::DuplicateSeat => say!("organiser.finding_duplicate_seat", count = count, place = place),
        FindingKind::Unnumbered => say!("organiser.finding_unnumbered", count = count, place = place),
        FindingKind::UnknownCategory => say!("organiser.finding_unknown_category", count = count, place = place),
        FindingKind::DuplicateCategory => say!("organiser.finding_duplicate_category", place = place),
        FindingKind::NameTooLong => say!("organiser.finding_name_too_long", place = place),
        FindingKind::HiddenCharacters => say!("organiser.finding_hidden_characters", place = place),
        FindingKind::OutOfBounds => say!("organiser.finding_out_of_bounds", place = place),
        FindingKind::DuplicateArea => say!("organiser.finding_duplicate_area", count = count, place = place),
        FindingKind::AreaCapacity => say!("organiser.finding_area_capacity", place = place),
        FindingKind::Refused => say!("organiser.finding_refused", place = place),
        FindingKind::Normalised => say!("organiser.finding_tidied", count = count),
        FindingKind::ZoneRenamed => say!("organiser.finding_zone_renamed", place = place),
        FindingKind::SeatsRenumbered => say!("organiser.finding_seats_renumbered", count = count),
        FindingKind::CategoryAdded => say!("organiser.finding_category_added", place = place),
        FindingKind::RowsReordered => say!("organiser.finding_rows_reordered", count = count),
        FindingKind::RightToLeft => say!("organiser.finding_right_to_left", count = count),
        FindingKind::OddOrEven => say!("organiser.finding_odd_or_even", count = count),
        FindingKind::SamePlace => say!("organiser.finding_same_place", count = count, place = place),
        FindingKind::AreasNotSold => say!("organiser.finding_areas_not_sold", count = count),
    }
}
