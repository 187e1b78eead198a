//! Reloads open pages, under `cargo xtask dev` only.
//!
//! Every page has the script `account.js`. Its copy in the site gets a few more lines here, which read a file of the
//! site four times a second and reload the page when the file has changed. The product has nothing for this: no
//! setting, no route, no script. Other tasks make the files of the site again, without the lines.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

/// The lines, and what they are appended to.
const SCRIPT: &str = include_str!("reload.js");
const EXTENDED: &str = "pkg/account.js";
/// The file that changes.
const RELOAD_FILE: &str = "pkg/reload.txt";

/// Makes open pages of a site reload. Call it after each build of the site, which may remove the lines.
pub fn reload_pages(site: &Path) -> Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let script = std::fs::read_to_string(site.join(EXTENDED)).context(EXTENDED)?;
    if !script.ends_with(SCRIPT) {
        replace(&site.join(EXTENDED), &(script + SCRIPT))?;
    }
    // Unlike the content that an earlier process wrote.
    let content = format!("{} {}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    replace(&site.join(RELOAD_FILE), &content)
}

/// Writes a file atomically: a server may be reading it.
fn replace(file: &Path, text: &str) -> Result<()> {
    let new = file.with_extension("new");
    std::fs::write(&new, text).with_context(|| format!("cannot write {}", new.display()))?;
    Ok(std::fs::rename(&new, file)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_reload_once_for_each_call_by_a_script_that_is_appended_once() {
        let site = std::env::temp_dir().join(format!("rowlock-reload-{}", std::process::id()));
        std::fs::create_dir_all(site.join("pkg")).expect("created");
        std::fs::write(site.join(EXTENDED), "go();\n").expect("written");
        let read = |file: &str| std::fs::read_to_string(site.join(file)).expect("readable");
        reload_pages(&site).expect("reloaded");
        let first = read(RELOAD_FILE);
        reload_pages(&site).expect("reloaded");
        assert_ne!(read(RELOAD_FILE), first);
        assert_eq!(read(EXTENDED), format!("go();\n{SCRIPT}"));
        std::fs::remove_dir_all(&site).expect("removed");
    }

    #[test]
    fn the_product_does_not_reload_pages_and_every_page_has_the_extended_script() {
        assert!(SCRIPT.contains(RELOAD_FILE));
        let root = crate::paths::Paths::find().expect("the checkout").root;
        let shell = std::fs::read_to_string(root.join("app/src/shell.rs")).expect("readable");
        assert!(shell.contains(EXTENDED), "the document around every page");
        for entry in std::fs::read_dir(root.join("frontend/static")).expect("the scripts") {
            let script = entry.expect("a script").path();
            if script.is_file() {
                let text = std::fs::read_to_string(&script).expect("readable");
                assert!(!text.contains(RELOAD_FILE), "{}", script.display());
            }
        }
    }
}
