//! Findings about a room file or a draft, in the reader's language.

use domain::layout::import::{Finding, FindingKind};

use crate::say;

/// A finding as a sentence.
#[must_use]
pub fn words(finding: &Finding) -> String {
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
