//! Islands of theatre staff, one module per section. They are in their own WebAssembly module, which customers never
//! load. Each is named `Staff…`, which `frontend/static/boot.js` relies on.

pub mod box_office;
pub mod calendar;
pub mod door;
pub mod house_seats;
pub mod organiser;

use language::{StaffError, problem_for_staff, say};
use leptos::prelude::*;

use crate::browser::calls::Failure;

/// An error in the language of the page, with the API's English detail.
pub(crate) fn error_text(error: StaffError) -> impl IntoView {
    let StaffError { words, detail } = error;
    view! { {words}{detail.map(|detail| view! { " "<bdi lang="en">{detail}</bdi> })} }
}

/// The error of a failed call, for staff.
fn failure_words(failure: &Failure) -> StaffError {
    match failure {
        Failure::Unreachable => say!("common.unreachable").into(),
        Failure::Problem(problem) => problem_for_staff(problem),
    }
}
