//! The files of the site that are not compiled: scripts of `frontend/static`, style sheets, fonts, pictures.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::bundle::bundle_of;
use crate::minify;
use crate::output::{self, Compression, files_below, has_extension, remove_stale};

/// Sheets of style/ that the page of a live map needs until seats can be taken.
const MAP_SHEETS: [&str; 12] = [
    "00-tokens.css",
    "10-base.css",
    "11-account-mark.css",
    "12-controls.css",
    "13-crumbs.css",
    "28-show.css",
    "30-seat-map.css",
    "31-room.css",
    "32-seats.css",
    "33-shapes.css",
    "34-sections.css",
    "60-languages.css",
];
/// Sheets that it needs afterwards.
const MAP_LATER_SHEETS: [&str; 9] = [
    "01-fonts.css",
    "35-legend.css",
    "35-list.css",
    "35-seat-card.css",
    "36-areas.css",
    "36-party.css",
    "38-waiting-list.css",
    "40-checkout.css",
    "52-paper.css",
];
/// Selects the files of style/ that are in a sheet.
type SheetFilter = fn(&str) -> bool;
/// The served sheets, built from style/*.css in order of name.
const SHEETS: [(&str, SheetFilter); 3] = [
    ("main.css", |_| true),
    ("map.css", |name| MAP_SHEETS.contains(&name)),
    ("map-later.css", |name| MAP_LATER_SHEETS.contains(&name)),
];

/// Builds scripts, style sheets and other files of the checkout `root` into the site.
pub fn build(compression: Compression, root: &Path, site: &Path) -> Result<()> {
    let (static_folder, pkg) = (root.join("frontend/static"), site.join("pkg"));
    let mut written = BTreeSet::new();
    for file in files_below(&static_folder)? {
        let is_script = has_extension(&file, "js");
        let folder: &Path = if is_script { &pkg } else { site };
        let to = folder.join(file.strip_prefix(&static_folder)?);
        if is_script {
            output::write(&to, minify::minify_script(&std::fs::read_to_string(&file)?).as_bytes(), compression)?;
        } else {
            output::copy(&file, &to, compression)?;
        }
        written.insert(to);
    }
    let style = root.join("style");
    let (sheets, others): (Vec<PathBuf>, Vec<PathBuf>) =
        files_below(&style)?.into_iter().partition(|file| has_extension(file, "css"));
    for (name, is_in) in SHEETS {
        let mut all = String::new();
        for sheet in sheets.iter().filter(|sheet| sheet.file_name().is_some_and(|name| is_in(&name.to_string_lossy())))
        {
            all.push_str(&std::fs::read_to_string(sheet)?);
            all.push('\n');
        }
        let to = site.join("style").join(name);
        output::write(&to, minify::minify_style(&all).as_bytes(), compression)?;
        written.insert(to);
    }
    for file in &others {
        let to = site.join("style").join(file.strip_prefix(&style)?);
        output::copy(file, &to, compression)?;
        written.insert(to);
    }
    remove_stale(&pkg, &written, |file| bundle_of(file).is_none())?;
    remove_stale(&site.join("style"), &written, |_| true)?;
    remove_stale(&site.join("fonts"), &written, |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sheets_of_the_map_exist() {
        let style = Path::new(env!("CARGO_MANIFEST_DIR")).join("../style");
        for name in MAP_SHEETS.iter().chain(&MAP_LATER_SHEETS) {
            assert!(style.join(name).exists(), "{name}");
        }
    }
}
