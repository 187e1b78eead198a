//! What is told about the file of a room, in the reader's language.

use domain::layout::import::{Finding, FindingKind};
use leptos::prelude::*;

use crate::say;

/// Findings as a list; nothing for none.
pub(super) fn list(findings: Vec<Finding>) -> Option<impl IntoView> {
    let can_be_mended = findings.iter().any(|finding| finding.kind.can_be_mended());
    let advice = can_be_mended.then(|| view! { <p>{say!("organiser.finding_mend")}</p> });
    (!findings.is_empty()).then(|| {
        let items = findings.into_iter().map(|finding| {
            let kind = serde_json::to_value(finding.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
            view! { <li data-finding=kind>{words(&finding)}</li> }
        });
        view! {
            <ul class="organiser-findings" data-testid="findings">{items.collect_view()}</ul>
            {advice}
        }
    })
}

fn words(finding: &Finding) -> String {
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
        FindingKind::OutOfBounds => say!("organiser.finding_out_of_bounds", place = place),
        FindingKind::Refused => say!("organiser.finding_refused", place = place),
        FindingKind::Tidied => say!("organiser.finding_tidied", count = count),
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
