//! Static files: by version and by plain name, as browsers request them, and by invalid paths.

use std::path::PathBuf;

use http::caching::{FOREVER, PRIVATE, REVALIDATED};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::prelude::*;

pub const OLD: &str = "0123456789abcdef";
pub const NEW: &str = "fedcba9876543210";
const UNKNOWN: &str = "00000000000000ff";
/// Files of a module, which fit only its own version.
pub const OF_A_MODULE: [&str; 4] =
    ["pkg/show.js", "pkg/show_bg.wasm", "pkg/show-parts/split_rest.wasm", "pkg/overview-worker.js"];
/// Files that fit any page.
const OF_ANY_PAGE: [&str; 4] = ["pkg/boot.js", "pkg/account.js", "style/main.css", "fonts/figtree-west.woff2"];
const SECRET: &str = "never to be served";

/// A site on disk, as `cargo xtask site` builds it. Deleted with the test.
pub struct SiteFolder(PathBuf);

impl SiteFolder {
    /// A site with these versions, whose pages use the last one. Without versions, a site for `cargo xtask dev`.
    pub fn with_versions(versions: &[&str]) -> Self {
        let site = Self(std::env::temp_dir().join(format!("rowlock-site-{}", new_id().simple())));
        for version in versions {
            site.put(&format!("versions/{version}"), version);
        }
        site.put(".", versions.last().unwrap_or(&"none"));
        if let Some(current) = versions.last() {
            site.write("versions/current", current);
        }
        for file in ["secret.txt", ".plain", "pkg/.hidden.js", "versions/secret.js"] {
            site.write(file, SECRET);
        }
        site
    }

    pub fn path(&self) -> &str {
        self.0.to_str().expect("the path is UTF-8")
    }

    fn put(&self, folder: &str, version: &str) {
        for file in OF_A_MODULE.iter().chain(&OF_ANY_PAGE) {
            let (file, text) = (format!("{folder}/{file}"), content(file, version));
            self.write(&file, &text);
            if !file.ends_with("woff2") {
                self.write(&format!("{file}.br"), &format!("br: {text}"));
                self.write(&format!("{file}.gz"), &format!("gzip: {text}"));
            }
        }
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is created");
        std::fs::write(path, text).expect("the file is written");
    }
}

impl Drop for SiteFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn content(file: &str, version: &str) -> String {
    format!("{file} of {version}")
}

/// Status, `Cache-Control`, and body.
fn summary(answer: &RawAnswer) -> (StatusCode, &str, &str) {
    (answer.status, answer.optional_header("cache-control"), &answer.body)
}

async fn request_file(method: Method, world: &World, server: usize, path: &str, headers: &[(&str, &str)]) -> RawAnswer {
    let request = world.visitor().client.request(method, format!("{}{path}", world.servers[server].url));
    RawAnswer::of(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
}

async fn get_file(world: &World, server: usize, path: &str, headers: &[(&str, &str)]) -> RawAnswer {
    request_file(Method::GET, world, server, path, headers).await
}

async fn page(world: &World, server: usize) -> String {
    let path = format!("/shows/{}", world.show);
    expect_answer(world.visitor_at(server).raw(Method::GET, &path, Value::Null, "a page").await, StatusCode::OK)
}

#[tokio::test(flavor = "multi_thread")]
async fn versioned_files_are_immutable_in_every_encoding() {
    let site = SiteFolder::with_versions(&[OLD, NEW]);
    let world = World::start(1, &[("SITE_ROOT", site.path())]).await;
    let html = page(&world, 0).await;
    for file in ["pkg/boot.js", "pkg/show.js", "pkg/show_bg.wasm", "pkg/account.js", "style/map.css", "style/main.css"]
    {
        assert!(html.contains(&format!("\"/site/{NEW}/{file}\"")), "{file}: {html}");
    }
    for folder in ["pkg", "style", "fonts"] {
        assert!(!html.contains(&format!("\"/{folder}/")), "{folder}: {html}");
    }
    // Pages of the previous version are still open.
    for version in [OLD, NEW] {
        for file in OF_A_MODULE.iter().chain(&OF_ANY_PAGE) {
            let (path, whole) = (format!("/site/{version}/{file}"), content(file, version));
            for form in ["br", "gzip", "identity"] {
                let answer = get_file(&world, 0, &path, &[("accept-encoding", form)]).await;
                let is_packed = form != "identity" && !file.ends_with("woff2");
                let text = if is_packed { format!("{form}: {whole}") } else { whole.clone() };
                assert_eq!(summary(&answer), (StatusCode::OK, FOREVER, text.as_str()), "{path}, {form}");
                assert_eq!(answer.optional_header("content-encoding"), if is_packed { form } else { "" }, "{path}");
                assert!(answer.header("vary").contains("accept-encoding"), "{path}");
                let head = request_file(Method::HEAD, &world, 0, &path, &[("accept-encoding", form)]).await;
                assert_eq!(summary(&head), (StatusCode::OK, FOREVER, ""), "{path}, {form}");
                for name in ["content-encoding", "content-type", "content-length", "last-modified"] {
                    assert_eq!(head.optional_header(name), answer.optional_header(name), "{path}, {form}: {name}");
                }
            }
        }
    }
    let path = format!("/site/{NEW}/style/main.css");
    let answer = get_file(&world, 0, &path, &[]).await;
    assert_eq!(answer.header("content-type"), "text/css");
    let again = get_file(&world, 0, &path, &[("if-modified-since", answer.header("last-modified"))]).await;
    assert_eq!(summary(&again), (StatusCode::NOT_MODIFIED, FOREVER, ""));
    let begins = get_file(&world, 0, &path, &[("range", "bytes=0-4")]).await;
    assert_eq!(summary(&begins), (StatusCode::PARTIAL_CONTENT, FOREVER, "style"));
    let beyond = get_file(&world, 0, &path, &[("range", "bytes=9999-")]).await;
    assert_eq!(summary(&beyond), (StatusCode::RANGE_NOT_SATISFIABLE, PRIVATE, ""));
    let sent = request_file(Method::POST, &world, 0, &path, &[]).await;
    assert_eq!(summary(&sent), (StatusCode::METHOD_NOT_ALLOWED, PRIVATE, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn replica_of_another_version_serves_shared_files_uncached() {
    let sites = [SiteFolder::with_versions(&[OLD]), SiteFolder::with_versions(&[NEW])];
    let mut world = World::start(0, &[]).await;
    for site in &sites {
        world.add_server(&[("SITE_ROOT", site.path())]).await;
    }
    for (server, own, others) in [(0, OLD, [NEW, UNKNOWN]), (1, NEW, [OLD, UNKNOWN])] {
        assert!(page(&world, server).await.contains(&format!("\"/site/{own}/pkg/boot.js\"")));
        for version in others {
            for file in OF_ANY_PAGE {
                let path = format!("/site/{version}/{file}");
                let whole = content(file, own);
                let answer = get_file(&world, server, &path, &[]).await;
                assert_eq!(summary(&answer), (StatusCode::OK, PRIVATE, whole.as_str()), "{path}");
                // A range could combine two versions, so the whole file is sent.
                let answer = get_file(&world, server, &path, &[("range", "bytes=3-")]).await;
                assert_eq!(summary(&answer), (StatusCode::OK, PRIVATE, whole.as_str()), "{path}");
            }
            for file in OF_A_MODULE.iter().chain(&["pkg/nothing.js", "style/nothing.css"]) {
                let path = format!("/site/{version}/{file}");
                let answer = get_file(&world, server, &path, &[]).await;
                assert_eq!(summary(&answer), (StatusCode::NOT_FOUND, PRIVATE, ""), "{path}");
            }
        }
        for file in OF_A_MODULE {
            let answer = get_file(&world, server, &format!("/site/{own}/{file}"), &[]).await;
            assert_eq!(summary(&answer), (StatusCode::OK, FOREVER, content(file, own).as_str()));
        }
        let answer = get_file(&world, server, &format!("/site/{own}/pkg/nothing.js"), &[]).await;
        assert_eq!(summary(&answer), (StatusCode::NOT_FOUND, PRIVATE, ""));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_an_unversioned_site_are_revalidated() {
    let (never, lost) = (SiteFolder::with_versions(&[]), SiteFolder::with_versions(&[NEW]));
    lost.write("versions/current", UNKNOWN);
    let mut world = World::start(0, &[]).await;
    for site in [&never, &lost] {
        world.add_server(&[("SITE_ROOT", site.path())]).await;
    }
    for (server, own) in [(0, "none"), (1, NEW)] {
        let html = page(&world, server).await;
        assert!(html.contains("\"/pkg/boot.js\"") && !html.contains("/site/"), "{html}");
        for file in OF_A_MODULE.iter().chain(&OF_ANY_PAGE) {
            let (path, whole) = (format!("/{file}"), content(file, own));
            let answer = get_file(&world, server, &path, &[]).await;
            assert_eq!(summary(&answer), (StatusCode::OK, REVALIDATED, whole.as_str()), "{path}");
            assert!(answer.header("vary").contains("accept-encoding"), "{path}");
            let again = get_file(&world, server, &path, &[("if-modified-since", answer.header("last-modified"))]).await;
            assert_eq!(summary(&again), (StatusCode::NOT_MODIFIED, REVALIDATED, ""), "{path}");
        }
        let answer = get_file(&world, server, "/pkg/nothing.js", &[]).await;
        assert_eq!(summary(&answer), (StatusCode::NOT_FOUND, PRIVATE, ""));
        // A page that was opened before.
        let answer = get_file(&world, server, &format!("/site/{OLD}/style/main.css"), &[]).await;
        assert_eq!(summary(&answer), (StatusCode::OK, PRIVATE, content("style/main.css", own).as_str()));
    }
}

/// Requests a path verbatim, because clients normalise paths.
async fn request_verbatim(world: &World, path: &str) -> String {
    let address = world.servers[0].url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("the answer is read");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_files_of_versions_are_served() {
    let site = SiteFolder::with_versions(&[NEW]);
    let world = World::start(1, &[("SITE_ROOT", site.path())]).await;
    let good = request_verbatim(&world, &format!("/site/{NEW}/pkg/boot.js")).await;
    assert!(good.starts_with("HTTP/1.1 200") && good.contains(&content("pkg/boot.js", NEW)), "{good}");
    let long = format!("/pkg/{}.js", "long".repeat(64));
    let of_version = [
        "",
        long.as_str(),
        "/",
        "/pkg",
        "/pkg/",
        "/pkg/show-parts",
        "/pkg/show-parts/",
        "/secret.txt",
        "/../secret.js",
        "/../../secret.txt",
        "/pkg/../../../secret.txt",
        "/pkg/../pkg/boot.js",
        "/pkg/./boot.js",
        "/pkg//boot.js",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/pkg/%2e%2e/%2e%2e/%2e%2e/secret.txt",
        "/pkg/..%2f..%2f..%2fsecret.txt",
        "/pkg/%252e%252e/secret.txt",
        "/pkg/..%5c..%5csecret.txt",
        "/pkg/.hidden.js",
        "/pkg/%2ehidden.js",
        "/pkg/boot.js%00",
        "/pkg/boot%2ejs",
        "/versions/current",
    ];
    let elsewhere = [
        "/site",
        "/site/",
        "/site//pkg/boot.js",
        "/site/current",
        "/site/../versions/current",
        "/site/../pkg/secret.txt",
        "/site/%2e%2e/secret.txt",
        "/site/..%2fversions/pkg/boot.js",
        "/site/versions/pkg/boot.js",
        "/versions/current",
        "/site/FEDCBA9876543210/pkg/boot.js",
        "/site/fedcba987654321/pkg/boot.js",
        "/pkg/../secret.txt",
        "/pkg/%2e%2e/secret.txt",
        "/pkg/..%2fsecret.txt",
        "/pkg/..%2f.plain",
        "/pkg/.hidden.js",
        "/pkg//boot.js",
        "/style/%00",
        long.as_str(),
    ];
    let of_version = of_version.map(|path| format!("/site/{NEW}{path}"));
    for path in of_version.iter().map(String::as_str).chain(elsewhere) {
        let answer = request_verbatim(&world, path).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        assert!(answer.to_ascii_lowercase().contains("\r\ncache-control: private, no-store\r\n"), "{path}: {answer}");
        assert!(!answer.contains(SECRET) && !answer.contains("boot.js of"), "{path}: {answer}");
    }
}
