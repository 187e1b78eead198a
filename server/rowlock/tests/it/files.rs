//! Files of the site: by the version they are of and by their plain names, as browsers ask for them, and as nobody should.

use std::path::PathBuf;

use http::caching::{FOREVER, PRIVATE, REVALIDATED};
use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::World;

pub const OLD: &str = "0123456789abcdef";
pub const NEW: &str = "fedcba9876543210";
const UNKNOWN: &str = "00000000000000ff";
/// What belongs to a module, and fits no other's.
pub const OF_A_MODULE: [&str; 4] =
    ["pkg/show.js", "pkg/show_bg.wasm", "pkg/show-parts/split_rest.wasm", "pkg/overview-worker.js"];
/// What does for any page.
const BY_ITSELF: [&str; 4] = ["pkg/boot.js", "pkg/account.js", "style/main.css", "fonts/figtree-west.woff2"];
/// What nobody is given.
const SECRET: &str = "for nobody's eyes";

/// A site on disk, as `cargo xtask site` builds it; gone with the test.
pub struct Site(PathBuf);

impl Site {
    /// One that kept these versions. Pages are of the last of them; without any it is one for `cargo xtask dev`.
    pub fn of(versions: &[&str]) -> Self {
        let site = Self(std::env::temp_dir().join(format!("rowlock-site-{}", platform::ids::new_id().simple())));
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
        self.0.to_str().expect("a path of ours is text")
    }

    fn put(&self, folder: &str, version: &str) {
        for file in OF_A_MODULE.iter().chain(&BY_ITSELF) {
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
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
        std::fs::write(path, text).expect("it is written");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What is in a file of a version.
pub fn content(file: &str, version: &str) -> String {
    format!("{file} of {version}")
}

struct Given {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Given {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// Status, how it may be kept, and what it is.
    fn is(&self) -> (StatusCode, &str, &str) {
        (self.status, self.header("cache-control"), &self.text)
    }
}

async fn ask_by(method: Method, world: &World, server: usize, path: &str, headers: &[(&'static str, &str)]) -> Given {
    let mut request = world.visitor().client.request(method, format!("{}{path}", world.servers[server].url));
    for (name, value) in headers {
        request = request.header(HeaderName::from_static(name), *value);
    }
    let answer = request.send().await.expect("an answer");
    let (status, headers) = (answer.status(), answer.headers().clone());
    Given { status, headers, text: answer.text().await.expect("a body") }
}

async fn ask(world: &World, server: usize, path: &str, headers: &[(&'static str, &str)]) -> Given {
    ask_by(Method::GET, world, server, path, headers).await
}

async fn page(world: &World, server: usize) -> String {
    let path = format!("/shows/{}", world.show);
    let (status, html) = world.visitor_at(server).raw(Method::GET, &path, Value::Null, "a page").await;
    assert_eq!(status, StatusCode::OK, "{html}");
    html
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_version_are_kept_for_good_in_each_form() {
    let site = Site::of(&[OLD, NEW]);
    let world = World::start(1, &[("SITE_ROOT", site.path())]).await;
    let html = page(&world, 0).await;
    for file in ["pkg/boot.js", "pkg/show.js", "pkg/show_bg.wasm", "pkg/account.js", "style/map.css", "style/main.css"]
    {
        assert!(html.contains(&format!("\"/site/{NEW}/{file}\"")), "{file}: {html}");
    }
    for folder in ["pkg", "style", "fonts"] {
        assert!(!html.contains(&format!("\"/{folder}/")), "{folder}: {html}");
    }
    // Pages of the version before are still open.
    for version in [OLD, NEW] {
        for file in OF_A_MODULE.iter().chain(&BY_ITSELF) {
            let (path, whole) = (format!("/site/{version}/{file}"), content(file, version));
            for form in ["br", "gzip", "identity"] {
                let given = ask(&world, 0, &path, &[("accept-encoding", form)]).await;
                let is_packed = form != "identity" && !file.ends_with("woff2");
                let text = if is_packed { format!("{form}: {whole}") } else { whole.clone() };
                assert_eq!(given.is(), (StatusCode::OK, FOREVER, text.as_str()), "{path}, {form}");
                assert_eq!(given.header("content-encoding"), if is_packed { form } else { "" }, "{path}");
                assert!(given.header("vary").contains("accept-encoding"), "{path}");
                let head = ask_by(Method::HEAD, &world, 0, &path, &[("accept-encoding", form)]).await;
                assert_eq!(head.is(), (StatusCode::OK, FOREVER, ""), "{path}, {form}");
                for name in ["content-encoding", "content-type", "content-length", "last-modified"] {
                    assert_eq!(head.header(name), given.header(name), "{path}, {form}: {name}");
                }
            }
        }
    }
    let path = format!("/site/{NEW}/style/main.css");
    let given = ask(&world, 0, &path, &[]).await;
    assert_eq!(given.header("content-type"), "text/css");
    let again = ask(&world, 0, &path, &[("if-modified-since", given.header("last-modified"))]).await;
    assert_eq!(again.is(), (StatusCode::NOT_MODIFIED, FOREVER, ""));
    let begins = ask(&world, 0, &path, &[("range", "bytes=0-4")]).await;
    assert_eq!(begins.is(), (StatusCode::PARTIAL_CONTENT, FOREVER, "style"));
    let beyond = ask(&world, 0, &path, &[("range", "bytes=9999-")]).await;
    assert_eq!(beyond.is(), (StatusCode::RANGE_NOT_SATISFIABLE, PRIVATE, ""));
    let sent = ask_by(Method::POST, &world, 0, &path, &[]).await;
    assert_eq!(sent.is(), (StatusCode::METHOD_NOT_ALLOWED, PRIVATE, ""));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_of_another_version_gives_what_fits_any_page_and_nobody_keeps_it() {
    let sites = [Site::of(&[OLD]), Site::of(&[NEW])];
    let mut world = World::start(0, &[]).await;
    for site in &sites {
        world.add_server(&[("SITE_ROOT", site.path())]).await;
    }
    for (server, own, others) in [(0, OLD, [NEW, UNKNOWN]), (1, NEW, [OLD, UNKNOWN])] {
        assert!(page(&world, server).await.contains(&format!("\"/site/{own}/pkg/boot.js\"")));
        for version in others {
            for file in BY_ITSELF {
                let path = format!("/site/{version}/{file}");
                let whole = content(file, own);
                let given = ask(&world, server, &path, &[]).await;
                assert_eq!(given.is(), (StatusCode::OK, PRIVATE, whole.as_str()), "{path}");
                // The beginning of one and the end of another would be neither.
                let given = ask(&world, server, &path, &[("range", "bytes=3-")]).await;
                assert_eq!(given.is(), (StatusCode::OK, PRIVATE, whole.as_str()), "{path}");
            }
            for file in OF_A_MODULE.iter().chain(&["pkg/nothing.js", "style/nothing.css"]) {
                let path = format!("/site/{version}/{file}");
                let given = ask(&world, server, &path, &[]).await;
                assert_eq!(given.is(), (StatusCode::NOT_FOUND, PRIVATE, ""), "{path}");
            }
        }
        for file in OF_A_MODULE {
            let given = ask(&world, server, &format!("/site/{own}/{file}"), &[]).await;
            assert_eq!(given.is(), (StatusCode::OK, FOREVER, content(file, own).as_str()));
        }
        let given = ask(&world, server, &format!("/site/{own}/pkg/nothing.js"), &[]).await;
        assert_eq!(given.is(), (StatusCode::NOT_FOUND, PRIVATE, ""));
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_without_a_version_is_asked_about_before_each_use() {
    let (never, lost) = (Site::of(&[]), Site::of(&[NEW]));
    lost.write("versions/current", UNKNOWN);
    let mut world = World::start(0, &[]).await;
    for site in [&never, &lost] {
        world.add_server(&[("SITE_ROOT", site.path())]).await;
    }
    for (server, own) in [(0, "none"), (1, NEW)] {
        let html = page(&world, server).await;
        assert!(html.contains("\"/pkg/boot.js\"") && !html.contains("/site/"), "{html}");
        for file in OF_A_MODULE.iter().chain(&BY_ITSELF) {
            let (path, whole) = (format!("/{file}"), content(file, own));
            let given = ask(&world, server, &path, &[]).await;
            assert_eq!(given.is(), (StatusCode::OK, REVALIDATED, whole.as_str()), "{path}");
            assert!(given.header("vary").contains("accept-encoding"), "{path}");
            let again = ask(&world, server, &path, &[("if-modified-since", given.header("last-modified"))]).await;
            assert_eq!(again.is(), (StatusCode::NOT_MODIFIED, REVALIDATED, ""), "{path}");
        }
        let given = ask(&world, server, "/pkg/nothing.js", &[]).await;
        assert_eq!(given.is(), (StatusCode::NOT_FOUND, PRIVATE, ""));
        // A page that is open since before.
        let given = ask(&world, server, &format!("/site/{OLD}/style/main.css"), &[]).await;
        assert_eq!(given.is(), (StatusCode::OK, PRIVATE, content("style/main.css", own).as_str()));
    }
    world.end().await;
}

/// The answer to a path as it is written: clients tidy up what they ask for.
async fn ask_literally(world: &World, path: &str) -> String {
    let address = world.servers[0].url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("it is answered");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_files_of_versions_is_given_out() {
    let site = Site::of(&[NEW]);
    let world = World::start(1, &[("SITE_ROOT", site.path())]).await;
    let good = ask_literally(&world, &format!("/site/{NEW}/pkg/boot.js")).await;
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
        let answer = ask_literally(&world, path).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        assert!(answer.to_ascii_lowercase().contains("\r\ncache-control: private, no-store\r\n"), "{path}: {answer}");
        assert!(!answer.contains(SECRET) && !answer.contains("boot.js of"), "{path}: {answer}");
    }
    world.end().await;
}
