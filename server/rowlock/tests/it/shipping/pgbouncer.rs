//! Servers behind PgBouncer in transaction mode: each transaction may use another connection.

use std::path::{Path, PathBuf};

use reqwest::Url;
use tokio::process::Command;

use super::{RunningProgram, file, program, system_program, with_lines_replaced};
use crate::postgres_process::system_user;
use crate::prelude::*;
use crate::replicas::free_address;

const SETTINGS: &str = include_str!("../../../../../deploy/pgbouncer.ini");
/// The oldest version that supports prepared statements in transaction mode.
const OLDEST: (u32, u32) = (1, 21);
/// Connections to Postgres that all servers share: far fewer than their pools have.
const SHARED: u32 = 2;

/// The PgBouncer program. A configured one that is too old fails the test instead of skipping it.
async fn pooler() -> Option<(PathBuf, (u32, u32))> {
    let program = program("PGBOUNCER", "pgbouncer")?;
    let version = version_of(&program).await;
    if version < OLDEST && std::env::var_os("PGBOUNCER").is_none() {
        eprintln!("pgbouncer is too old: skipped outside `cargo xtask test`");
        return None;
    }
    assert!(version >= OLDEST, "PGBOUNCER is {version:?}; it must be {OLDEST:?} or newer, see docs/operating.md");
    Some((program, version))
}

async fn version_of(program: &Path) -> (u32, u32) {
    let said = Command::new(program).arg("--version").output().await.expect("it prints its version").stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    let version = said.lines().next().and_then(|line| line.strip_prefix("PgBouncer "));
    let mut parts = version.unwrap_or_default().split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// Starts PgBouncer in front of the world's database. Returns it with its URL.
async fn start_pooler(world: &World, program: PathBuf, version: (u32, u32)) -> (RunningProgram, String) {
    let direct = Url::parse(world.setting("DATABASE_URL")).expect("an address");
    let (port, name) = (free_address().port(), direct.path().trim_start_matches('/'));
    // Omitted if absent: newer versions refuse an empty password.
    let password = direct.password().map(|password| format!(" password='{password}'")).unwrap_or_default();
    let target = format!(
        "rowlock = host={} port={} dbname={name} user={}{password}",
        direct.host_str().expect("a host"),
        direct.port().unwrap_or(5432),
        direct.username(),
    );
    let mut instead = vec![
        ("rowlock =", target),
        ("listen_addr", "listen_addr = 127.0.0.1\nunix_socket_dir =".to_owned()),
        ("listen_port", format!("listen_port = {port}")),
        ("auth_type", "auth_type = any".to_owned()),
        ("auth_file", String::new()),
        ("default_pool_size", format!("default_pool_size = {SHARED}")),
    ];
    if version < OLDEST {
        instead.push(("max_prepared_statements", String::new()));
    }
    let file = file("pgbouncer.ini", &with_lines_replaced(SETTINGS, &instead));
    let mut command = Command::new(program);
    command.arg(&file);
    // PgBouncer refuses to run as root.
    if let Some((user, group)) = system_user().await {
        command.uid(user).gid(group);
    }
    let running = RunningProgram::start(&mut command, &file, port).await;
    (running, format!("postgres://rowlock@127.0.0.1:{port}/rowlock"))
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_sell_behind_transaction_pooling() {
    let Some((program, version)) = pooler().await else { return };
    let mut world = World::start(0, &[]).await;
    let (_pooler, pooled) = start_pooler(&world, program, version).await;
    assert!(!is_found_too_old(&world, &pooled).await, "{version:?}");
    for _ in 0..2 {
        world.add_server(&[("DATABASE_URL", &pooled)]).await;
    }
    let buyers: Vec<_> = (0..12).map(|at| world.visitor_at(at % 2)).collect();
    // The second time statements are prepared, on connections that other servers used meanwhile.
    for first in [0, 20] {
        let sales = buyers.iter().zip(first..);
        let sales = sales.map(|(buyer, seat)| async move {
            // The map shows a sale a moment after the answer.
            wait_until("the hold has ended", || async { !buyer.has_hold().await }).await;
            buyer.buy_seats(&[seat], "tok_paid").await
        });
        for paid in join_all(sales).await {
            assert_eq!(paid["state"], "CONFIRMED", "{paid}");
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, 24);
    world.end().await;
}

/// An old version loses sales, and `rowlock check` reports it.
async fn is_found_too_old(world: &World, pooled: &str) -> bool {
    let check = ["check", "--database-url", pooled, "--public-url", "http://127.0.0.1:9"];
    let (_, found) = world.command(&check).await;
    found.contains("mixes prepared statements up")
}

/// Debian 12 has an old version, beside the one that `cargo xtask test` builds.
#[tokio::test(flavor = "multi_thread")]
async fn outdated_pooler_is_reported_by_the_check() {
    let Some(program) = system_program("pgbouncer") else { return };
    let version = version_of(&program).await;
    if version >= OLDEST {
        return;
    }
    let world = World::start(0, &[]).await;
    let (_pooler, pooled) = start_pooler(&world, program, version).await;
    assert!(is_found_too_old(&world, &pooled).await, "{version:?}");
    world.end().await;
}
