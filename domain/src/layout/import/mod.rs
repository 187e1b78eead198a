//! A stranger's file on its way to becoming a room: everything that stands in the way is named at once, what means
//! the same is tidied without asking, and what needs a decision is mended where the person says so.
//!
//! Tidied always: letters with two spellings, numbers written as numbers, keys that are `null`, seats listed in another
//! order than they stand, zones of one name whose seats have the same names. Mended on request: seats without a number or with
//! somebody else's, categories that are not defined or are there twice. What is never changed is where seats are,
//! and in which direction they are numbered. A sketch is read as it is, but for the spelling of letters. Invisible
//! characters are refused in names of both: rows that differ by them look the same.

mod finding;
mod plan;
#[cfg(test)]
mod tests;
mod tidy;

use serde_json::Value;

pub use finding::{Finding, FindingKind};

use super::Layout;

/// Findings told of one file. A file with more has one mistake many times.
pub const MAX_FINDINGS: usize = 100;

/// A room that was read, and what is worth knowing about it.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The room.
    pub layout: Layout,
    /// What was changed, and what may surprise.
    pub remarks: Vec<Finding>,
}

/// Reads a file of either form. `name` is the room's where the file has none; `mend` allows changes to what is
/// printed on seats.
///
/// # Errors
/// Everything that is wrong, at least one finding, at most [`MAX_FINDINGS`].
pub fn import(mut file: Value, name: &str, mend: bool) -> Result<Imported, Vec<Finding>> {
    let mut remarks = Vec::new();
    if file.get("sketch").is_none() {
        tidy::plan(&mut file, name, &mut remarks)?;
        let problems = plan::look(&mut file, mend, &mut remarks);
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
    // What is left to refuse is refused by the room itself, one thing at a time.
    let layout = Layout::from_value(file).map_err(|why| vec![Finding::of_error(&why)])?;
    Ok(Imported { layout, remarks: capped(remarks) })
}

fn capped(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.truncate(MAX_FINDINGS);
    findings
}
