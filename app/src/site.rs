//! Where the files of the site are that pages ask for: modules, scripts, styles, fonts.
//!
//! Their addresses name the version of the site they are of, and so what is in them: `/site/0123456789abcdef/pkg/boot.js`.
//! All begin alike, so files find each other by where they lie beside each other. A site without a version, as
//! `cargo xtask dev` builds it, has plain addresses: `/pkg/boot.js`. In the browser `browser::file` knows the same.

use std::sync::OnceLock;

static VERSION: OnceLock<String> = OnceLock::new();

/// Pages are of this version from now on. A process has one: another word is not heard.
pub fn is_of(version: &str) {
    let _ = VERSION.set(version.to_owned());
}

/// The address of a file, given as if it lay at the root: `/pkg/boot.js`.
#[must_use]
pub fn address(file: &str) -> String {
    address_in(VERSION.get().map(String::as_str), file)
}

fn address_in(version: Option<&str>, file: &str) -> String {
    version.map_or_else(|| file.to_owned(), |version| format!("/site/{version}{file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_under_its_version_and_without_one_under_its_name() {
        assert_eq!(address_in(Some("0123456789abcdef"), "/pkg/boot.js"), "/site/0123456789abcdef/pkg/boot.js");
        assert_eq!(address_in(None, "/style/main.css"), "/style/main.css");
    }
}
