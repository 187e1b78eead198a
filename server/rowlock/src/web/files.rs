//! Files of the site: by their plain names, revalidated before each use; and by version, cached without limit.
//!
//! A page requests files by version ([`app::site`]). `cargo xtask site` puts every version into its own folder, named by a hash
//! over all files in it, which never change; so a replica that has the folder has exactly these files, and lets caches keep
//! them for a year. During a rolling update a replica is asked for versions that it does not have. Then it serves files that
//! work on any page (a style or an independent script) from its own version, uncacheable; for a file of a module it answers
//! 404, and the page retries (docs/decisions/0054).

use std::path::Path;

use app::WasmModule;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, RANGE, VARY};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use domain::VariantName;
use strum::VariantArray;
use tower_http::services::ServeDir;

use crate::AppState;
use http::caching::{FOREVER, PRIVATE, REVALIDATED};

/// Addresses of files by their plain names.
pub(super) const PLAIN_ROUTES: [&str; 3] = ["/pkg/{*file}", "/fonts/{*file}", "/style/{*file}"];
/// Addresses of files by version.
pub(super) const ROUTE: &str = "/site/{version}/{*file}";
/// Prefix of the addresses of versioned files.
const VERSION_PREFIX: &str = "/site/";
/// Folder of the versions, below the site's root.
const VERSIONS: &str = "versions";
/// File in it with the name of the current version; `xtask/src/versions.rs` writes it.
const CURRENT: &str = "current";
/// Hexadecimal digits of a version's name.
const DIGITS: usize = 16;
/// Folders of a version. Files in other folders are not served.
const FOLDERS: [&str; 3] = ["pkg", "style", "fonts"];
/// Maximum length of a file's path, bytes. File systems refuse names of more than 255, which would be logged as an error.
const MAX_PATH_BYTES: usize = 128;
/// The script of a module that runs as a worker.
const PAINTER: &str = "overview-worker";

/// Request header on which the encoding of a file depends.
pub(super) const VARIES_BY: &str = "accept-encoding";

/// The version of this site; `None` where it may change at any time: it was built by `cargo xtask dev`, or is not there.
#[must_use]
pub fn version(root: &Path) -> Option<String> {
    let versions = root.join(VERSIONS);
    let named = std::fs::read_to_string(versions.join(CURRENT)).ok()?;
    if is_version(&named) && versions.join(&named).is_dir() {
        return Some(named);
    }
    tracing::warn!(site = %root.display(), version = named, "the site's version is missing: pages use plain names");
    None
}

/// Makes pages use the addresses of the current version, if there is one.
pub fn set_site_version(root: &Path) {
    if let Some(version) = version(root) {
        app::site::set_version(&version);
    }
}

/// The files of a folder.
fn folder(folder: &Path) -> ServeDir {
    ServeDir::new(folder).append_index_html_on_directories(false).precompressed_br().precompressed_gzip()
}

/// A file of a version.
pub(super) async fn versioned_file(
    State(state): State<AppState>,
    method: Method,
    uri: Uri,
    mut headers: HeaderMap,
) -> Response {
    let parts = uri.path().strip_prefix(VERSION_PREFIX).and_then(|rest| rest.split_once('/'));
    let Some((version, file)) = parts.filter(|(version, file)| is_version(version) && is_file(file)) else {
        return with_cache_headers(StatusCode::NOT_FOUND.into_response(), PRIVATE);
    };
    let root = &state.config.site_root;
    let exact = read(&root.join(VERSIONS).join(version), file, &method, &headers).await;
    if exact.status() != StatusCode::NOT_FOUND {
        let control = if has_file(&exact) { FOREVER } else { PRIVATE };
        return with_cache_headers(exact, control);
    }
    if belongs_to_a_module(file) {
        return with_cache_headers(exact, PRIVATE);
    }
    // Ranges of two versions of a file must not be combined.
    headers.remove(RANGE);
    with_cache_headers(read(root, file, &method, &headers).await, PRIVATE)
}

/// A file by its plain name.
pub(super) async fn plain_file(
    State(state): State<AppState>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let Some(file) = uri.path().strip_prefix('/').filter(|file| is_file(file)) else {
        return with_cache_headers(StatusCode::NOT_FOUND.into_response(), PRIVATE);
    };
    let answer = read(&state.config.site_root, file, &method, &headers).await;
    let control = if has_file(&answer) { REVALIDATED } else { PRIVATE };
    with_cache_headers(answer, control)
}

/// The file of this name in a folder.
async fn read(from: &Path, file: &str, method: &Method, headers: &HeaderMap) -> Response {
    let Ok(uri) = Uri::try_from(format!("/{file}")) else { return StatusCode::NOT_FOUND.into_response() };
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers.clone();
    match folder(from).try_call(request).await {
        Ok(answer) => answer.map(Body::new),
        Err(cause) => {
            tracing::error!(%cause, file, "read a file of the site failed");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Returns true for an answer with the file, and for 304 Not Modified.
fn has_file(answer: &Response) -> bool {
    answer.status().is_success() || answer.status() == StatusCode::NOT_MODIFIED
}

/// Adds `Vary` and this `Cache-Control` to an answer.
fn with_cache_headers(mut answer: Response, control: &'static str) -> Response {
    let headers = answer.headers_mut();
    headers.insert(VARY, HeaderValue::from_static(VARIES_BY));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(control));
    answer
}

fn is_version(name: &str) -> bool {
    name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// True if this can be the name of a file. Names of ours need no escaping, and none begins with a dot: hidden files and paths
/// that lead elsewhere are refused.
fn is_file(path: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_sign);
    path.len() <= MAX_PATH_BYTES
        && path.split_once('/').is_some_and(|(folder, rest)| FOLDERS.contains(&folder) && rest.split('/').all(is_name))
}

/// True if the file works only beside the other files of its module: they call each other by numbers and short names, which
/// differ by version. The painting worker is one of them: its messages are private to the module
/// (`app::seat_map::large_rooms::offscreen`), and may change with any version. The server defines the puzzles that
/// `puzzle-worker.js` solves, the same for all versions (docs/api.md), so any version of it works.
fn belongs_to_a_module(file: &str) -> bool {
    let Some(file) = file.strip_prefix("pkg/") else { return false };
    let script = file.strip_suffix(".js").filter(|script| !script.contains('/'));
    script.is_none_or(|script| script == PAINTER || WasmModule::VARIANTS.iter().any(|half| half.as_str() == script))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_or_outside_path_is_no_file_of_a_version() {
        for file in ["pkg/boot.js", "pkg/show_bg.wasm", "pkg/show-parts/split_rest.wasm", "fonts/figtree-OFL.txt"] {
            assert!(is_file(file), "{file}");
        }
        for path in [
            "pkg",
            "pkg/",
            "/pkg/boot.js",
            "pkg//boot.js",
            "pkg/../pkg/boot.js",
            "pkg/./boot.js",
            "pkg/.hidden",
            "pkg/%2e%2e/x",
            "pkg/a%00",
            "pkg/a b",
            "pkg\\boot.js",
            "versions/current",
            ".plain",
            "favicon.svg",
            "",
        ] {
            assert!(!is_file(path), "{path}");
        }
        for path in [format!("pkg/{}.js", "long".repeat(64)), format!("pkg/{}boot.js", "parts/".repeat(1_000))] {
            assert!(!is_file(&path), "{path}");
        }
        assert!(is_version("0123456789abcdef"));
        for name in ["0123456789ABCDEF", "0123456789abcde", "0123456789abcdef0", "..", "current", ""] {
            assert!(!is_version(name), "{name}");
        }
    }

    #[test]
    fn a_module_has_all_its_files_and_an_independent_file_is_alone() {
        for file in [
            "pkg/show.js",
            "pkg/staff.js",
            "pkg/pages_bg.wasm",
            "pkg/show-parts/load.js",
            "pkg/staff-parts/parts.json",
            "pkg/overview-worker.js",
        ] {
            assert!(belongs_to_a_module(file), "{file}");
        }
        for file in [
            "pkg/boot.js",
            "pkg/account.js",
            "pkg/keep-door.js",
            "pkg/puzzle-worker.js",
            "style/main.css",
            "fonts/figtree-west.woff2",
        ] {
            assert!(!belongs_to_a_module(file), "{file}");
        }
    }
}
