//! Servers behind PgBouncer in transaction mode: each transaction may have another connection.

use std::path::PathBuf;

use futures::future::join_all;
use reqwest::Url;
use tokio::process::Command;

use super::{Running, file, free_port, program, shipped};
use crate::postgres_process::system_user;
use crate::world::World;

const SETTINGS: &str = include_str!("../../../../deploy/pgbouncer.ini");
/// The oldest that keeps prepared statements apart in transaction mode.
const OLDEST: (u32, u32) = (1, 21);
/// Connections to Postgres that all servers share: far fewer than they think they have.
const SHARED: u32 = 2;

/// The program, if there is one that is new enough.
async fn new_enough() -> Option<PathBuf> {
    let program = program("PGBOUNCER", "pgbouncer")?;
    let said = Command::new(&program).arg("--version").output().await.expect("it tells its version").stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    let version = said.lines().next().and_then(|line| line.strip_prefix("PgBouncer "));
    let mut parts = version.unwrap_or_default().split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    let version = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if version < OLDEST {
        eprintln!("this PgBouncer is too old: {said}");
        return None;
    }
    Some(program)
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_sell_although_every_transaction_may_have_another_connection() {
    let Some(program) = new_enough().await else { return };
    let mut world = World::start(0, &[]).await;
    let direct = Url::parse(world.setting("DATABASE_URL")).expect("an address");
    let (port, name) = (free_port(), direct.path().trim_start_matches('/'));
    let target = format!(
        "rowlock = host={} port={} dbname={name} user={} password='{}'",
        direct.host_str().expect("a host"),
        direct.port().unwrap_or(5432),
        direct.username(),
        direct.password().unwrap_or_default()
    );
    let text = shipped(
        SETTINGS,
        &[
            ("rowlock =", target),
            ("listen_addr", "listen_addr = 127.0.0.1\nunix_socket_dir =".to_owned()),
            ("listen_port", format!("listen_port = {port}")),
            ("auth_type", "auth_type = any".to_owned()),
            ("auth_file", String::new()),
            ("default_pool_size", format!("default_pool_size = {SHARED}")),
        ],
    );
    let file = file("pgbouncer.ini", &text);
    let mut command = Command::new(program);
    command.arg(&file);
    // It refuses to be run by root.
    if let Some((user, group)) = system_user().await {
        command.uid(user).gid(group);
    }
    let _pooler = Running::start(&mut command, &file, port).await;
    let pooled = format!("postgres://rowlock@127.0.0.1:{port}/rowlock");
    for _ in 0..2 {
        world.add_server(&[("DATABASE_URL", &pooled)]).await;
    }
    let buyers: Vec<_> = (0..12).map(|at| world.visitor_at(at % 2)).collect();
    let sales = buyers.iter().zip(0..).map(|(buyer, seat)| async move { buyer.bought(&[seat], "tok_paid").await });
    for paid in join_all(sales).await {
        assert_eq!(paid["state"], "CONFIRMED", "{paid}");
    }
    assert_eq!(world.count("SELECT count(*) FROM bookings WHERE state = 'CONFIRMED'").await, 12);
    // By now statements are prepared, on connections that were others' meanwhile.
    let again = buyers.iter().zip(20..).map(|(buyer, seat)| async move { buyer.bought(&[seat], "tok_paid").await });
    for paid in join_all(again).await {
        assert_eq!(paid["state"], "CONFIRMED", "{paid}");
    }
    world.end().await;
}
