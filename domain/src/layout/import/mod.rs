//! Import of an uploaded file as a room. All errors are reported at once, equivalent notations are normalised, and
//! errors that need a decision are corrected on request.
//!
//! Always normalised: characters with two encodings, numbers written as numbers, keys that are `null`, seats listed in
//! another order than their positions, and zones of the same name whose seats have the same names. Corrected on
//! request: seats with a missing or duplicate number, and categories that are undefined or defined twice. Positions of
//! seats and the direction of numbering never change. A plan without a focus gets one if its drawings or the numbers of
//! its rows state it; otherwise a person is asked. In a sketch only the encoding of characters is normalised.
//! Invisible characters in names are refused in both formats, because rows that differ only by them look the same, and
//! control characters, because lists have one seat a line (`crate::sold_seats`).

mod finding;
mod focus;
mod plan;
#[cfg(test)]
mod tests;
mod tidy;

use serde_json::Value;

pub use finding::{Finding, FindingKind};
pub(super) use focus::kind_named;

use super::Layout;

/// Maximum number of findings for one file. A file with more has repeated errors.
pub const MAX_FINDINGS: usize = 100;

/// An imported room with remarks.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The room.
    pub layout: Layout,
    /// Changes that the import made, and warnings.
    pub remarks: Vec<Finding>,
}

/// Imports a file of either format. `name` is used if the file has no name; `may_relabel` allows changes to printed names.
///
/// # Errors
/// All errors of the file: at least one finding, at most [`MAX_FINDINGS`].
pub fn import(mut file: Value, name: &str, may_relabel: bool) -> Result<Imported, Vec<Finding>> {
    let mut remarks = Vec::new();
    if file.get("sketch").is_none() {
        tidy::normalise_plan(&mut file, name, &mut remarks)?;
        let problems = plan::validate(&mut file, may_relabel, &mut remarks);
        if !problems.is_empty() {
            return Err(capped(problems));
        }
    } else {
        tidy::compose(&mut file);
        let hidden = plan::hidden_in_texts(&file);
        if !hidden.is_empty() {
            return Err(capped(hidden));
        }
    }
    // The remaining errors are found by the layout itself, one at a time.
    let layout = Layout::from_value(file).map_err(|why| vec![Finding::of_error(&why)])?;
    Ok(Imported { layout: with_found_focus(layout), remarks: capped(remarks) })
}

/// Adds the focus that a plan without one states by its drawings or the numbers of its rows.
fn with_found_focus(layout: Layout) -> Layout {
    if layout.known_focus().is_some() {
        return layout;
    }
    let found = layout.source.draw().ok().and_then(|drawing| {
        let focus = focus::find_focus(&drawing)?;
        layout.refocused(drawing, focus).ok()
    });
    found.unwrap_or(layout)
}

fn capped(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.truncate(MAX_FINDINGS);
    findings
}
