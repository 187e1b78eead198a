//! Replicas of two versions behind the shipped proxy: files of both versions are served, whichever replica gets the
//! request.

use futures::future::join_all;
use http::caching::{FOREVER, PRIVATE};
use reqwest::StatusCode;
use reqwest::header::CACHE_CONTROL;
use tokio::process::Command;

use super::{RunningProgram, file, is_used, program, proxy};
use crate::ports;
use crate::replicas::Replica;
use crate::static_files::{NEW, OF_A_MODULE, OLD, SiteFolder, content};
use crate::world::{World, wait_until};

/// Requests per file: without the retry at the other replica, some would fail.
const TIMES: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn files_of_both_versions_are_served_during_a_rolling_update() {
    let Some(program) = program("HAPROXY", "haproxy") else { return };
    let world = World::start(0, &[]).await;
    let port = ports::free().port();
    let public = format!("http://127.0.0.1:{port}");
    let sites = [SiteFolder::with_versions(&[OLD]), SiteFolder::with_versions(&[NEW])];
    let replicas = sites.each_ref().map(|site| {
        let settings = [("PUBLIC_URL", public.as_str()), ("TRUSTED_PROXIES", "1"), ("SITE_ROOT", site.path())];
        Replica::new(&world, &settings)
    });
    let control = std::env::temp_dir().join(format!("rowlock-proxy-{port}"));
    let settings = file("haproxy.cfg", &proxy(port, &control, [&replicas[0].url, &replicas[1].url]));
    join_all(replicas.iter().map(Replica::start)).await;
    let _proxy =
        RunningProgram::start(Command::new(program).arg("-db").arg("-f").arg(&settings), &settings, port).await;
    wait_until("both replicas are used", || async { is_used(&control, "one").await && is_used(&control, "two").await })
        .await;

    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let ask = async |version: &str, file: &str| {
        let answer = client.get(format!("{public}/site/{version}/{file}")).send().await.expect("an answer");
        let kept = answer.headers()[CACHE_CONTROL].to_str().expect("text").to_owned();
        (answer.status(), kept, answer.text().await.expect("a body"))
    };
    for _ in 0..TIMES {
        for version in [OLD, NEW] {
            for file in OF_A_MODULE {
                let expected = (StatusCode::OK, FOREVER.to_owned(), content(file, version));
                assert_eq!(ask(version, file).await, expected, "{version}, {file}");
            }
        }
    }
    // A file that no replica has is not retried forever.
    let missing = ask("00000000000000ff", OF_A_MODULE[0]).await;
    assert_eq!(missing, (StatusCode::NOT_FOUND, PRIVATE.to_owned(), String::new()));
    for replica in &replicas {
        replica.kill().await;
    }
    let _ = std::fs::remove_file(&control);
    world.end().await;
}
