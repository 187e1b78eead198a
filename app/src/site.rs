//! Addresses of the site's files: modules, scripts, styles, fonts.
//!
//! An address contains the version of the site: `/site/0123456789abcdef/pkg/boot.js`. Files refer to each other
//! relatively, so all have the same version. A site without a version, as built by `cargo xtask dev`, has plain
//! addresses: `/pkg/boot.js`. `browser::file` does the same in the browser.

use std::sync::OnceLock;

static VERSION: OnceLock<String> = OnceLock::new();

/// Sets the version for all pages. Only the first call of a process has an effect.
pub fn set_version(version: &str) {
    let _ = VERSION.set(version.to_owned());
}

/// The address of a file, given as if at the root: `/pkg/boot.js`.
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
    fn an_address_contains_the_version_if_there_is_one() {
        assert_eq!(address_in(Some("0123456789abcdef"), "/pkg/boot.js"), "/site/0123456789abcdef/pkg/boot.js");
        assert_eq!(address_in(None, "/style/main.css"), "/style/main.css");
    }
}
