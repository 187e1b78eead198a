//! Postgres hangs behind the shipped proxy: no replica is ready, and the proxy uses all of them. Holds of known shows and
//! files continue.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::sync::watch;

use super::{RunningProgram, file, is_used, program, proxy, statistic};
use crate::postgres_process::open_proxy;
use crate::prelude::*;
use crate::redis_process::try_hold;
use crate::replicas::{Replica, free_address};
use crate::static_files::{NEW, OF_A_MODULE, SiteFolder};

const NAMES: [&str; 2] = ["one", "two"];
const CHUNK_BYTES: usize = 16 * 1024;

/// Forwards until one side closes. While Postgres is frozen, nothing passes and connections stay open.
async fn pass(client: TcpStream, postgres: TcpStream, is_frozen: watch::Receiver<bool>) -> std::io::Result<()> {
    let (from_client, to_client) = client.into_split();
    let (from_postgres, to_postgres) = postgres.into_split();
    tokio::select! {
        ended = forward(from_client, to_postgres, is_frozen.clone()) => ended,
        ended = forward(from_postgres, to_client, is_frozen) => ended,
    }
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut is_frozen: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut chunk).await?;
        // An error means that the test is over.
        if read == 0 || is_frozen.wait_for(|is_frozen| !is_frozen).await.is_err() {
            return Ok(());
        }
        to.write_all(&chunk[..read]).await?;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_postgres_leaves_holds_and_files_to_all_replicas() {
    let Some(program) = program("HAPROXY", "haproxy") else { return };
    let world = World::start(1, &[]).await;
    let (freeze, is_frozen) = watch::channel(false);
    let database = open_proxy(world.database_url(), move |client, postgres| pass(client, postgres, is_frozen.clone()));
    let (database, site, port) = (database.await, SiteFolder::with_versions(&[NEW]), free_address().port());
    let public = format!("http://127.0.0.1:{port}");
    let replicas = NAMES.map(|_| {
        let settings = [
            ("DATABASE_URL", database.as_str()),
            ("SITE_ROOT", site.path()),
            ("PUBLIC_URL", public.as_str()),
            ("TRUSTED_PROXIES", "1"),
        ];
        Replica::new(&world, &settings)
    });
    let control = std::env::temp_dir().join(format!("rowlock-proxy-{port}"));
    let settings = file("haproxy.cfg", &proxy(port, &control, [&replicas[0].url, &replicas[1].url]));
    join_all(replicas.iter().map(Replica::start)).await;
    let _proxy =
        RunningProgram::start(Command::new(program).arg("-db").arg("-f").arg(&settings), &settings, port).await;
    let are_used = || async { is_used(&control, NAMES[0]).await && is_used(&control, NAMES[1]).await };
    wait_until("both replicas are used", are_used).await;
    // Each replica knows the show from now on.
    for (replica, seat) in replicas.iter().zip([1, 2]) {
        let visitor = Visitor { base: replica.url.clone(), ..world.visitor() };
        expect_answer(visitor.hold(&[seat]).await, StatusCode::CREATED);
    }

    freeze.send_replace(true);
    for server in NAMES.map(|name| format!("replicas,{name}")) {
        let is_down = || async { statistic(&control, &server, "status").await == "DOWN" };
        wait_until("the proxy marks the replica down", is_down).await;
        // The replica answers before the proxy's timeout, because its question to Postgres has a shorter deadline.
        let answers = || async { statistic(&control, &server, "check_code").await == "503" };
        wait_until("the proxy reads the replica's answer", answers).await;
    }
    // Several, so that the proxy sends some to each replica.
    for seat in 3..9 {
        let guest = Visitor { base: public.clone(), ..world.visitor() };
        let held = try_hold(&guest, &[seat], "while-frozen").await;
        assert_eq!(held.status, StatusCode::CREATED, "{held:?}");
        expect_answer(guest.page(&format!("/site/{NEW}/{}", OF_A_MODULE[0])).await, StatusCode::OK);
    }

    freeze.send_replace(false);
    wait_until("both replicas are used again", are_used).await;
    for replica in &replicas {
        replica.kill().await;
    }
    let _ = std::fs::remove_file(&control);
    world.end().await;
}
