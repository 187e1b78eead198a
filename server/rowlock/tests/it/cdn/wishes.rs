//! What the database writes down to be purged, change by change.

use sqlx::{AssertSqlSafe, PgPool};

use crate::world::{World, insert_show};

const HERE: [&str; 2] = ["city-lisbon", "theatre-aurora"];

/// What is wanted since the last look, in order.
async fn wanted(pg: &PgPool) -> Vec<String> {
    let gone = sqlx::query_scalar("DELETE FROM cdn_purges RETURNING tag").fetch_all(pg).await;
    let mut tags: Vec<String> = gone.expect("wishes are read");
    tags.sort_unstable();
    tags
}

async fn does(pg: &PgPool, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
        .execute(pg)
        .await
        .unwrap_or_else(|cause| panic!("{statement}: {cause}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_that_people_see_is_written_down_and_none_that_they_do_not() {
    let world = World::start(0, &[]).await;
    catalogue::cdn::announce(&world.pg).await.expect("it is written down");
    let show = format!("show-{}", world.show);
    let changed: Vec<&str> = [&HERE[..], &["film-tide", "lists", &show]].concat();
    for (statement, tags) in [
        ("UPDATE shows SET prices = '{\"gold\": 900}'", &changed[..]),
        ("UPDATE shows SET sales = 'paused', terms_version = terms_version + 1", &changed),
        ("UPDATE shows SET called_off = true", &changed),
        ("UPDATE shows SET called_off = true", &[]),
        ("UPDATE shows SET blocked = '{1, 2}'", &[]),
        ("UPDATE shows SET called_off = false, sales = 'open'; UPDATE shows SET hold_ms = 60000", &changed),
        ("BEGIN; UPDATE shows SET hold_ms = 61000; UPDATE shows SET hold_ms = 62000; COMMIT", &changed),
        ("BEGIN; UPDATE shows SET hold_ms = 63000; ROLLBACK", &[]),
        ("UPDATE theatres SET name = 'Aurora Nova'", &[HERE[0], "lists", HERE[1]]),
        ("UPDATE theatres SET version = version + 1", &[]),
        ("INSERT INTO theatres VALUES ('foz', 'lisbon', 'Foz', 'Rua 2', 'EUR')", &[HERE[0], "lists", "theatre-foz"]),
        ("UPDATE cities SET name = 'Lisboa'", &[HERE[0], "lists", HERE[1], "theatre-foz"]),
        ("INSERT INTO cities VALUES ('porto', 'Porto', 'PT', 'Europe/Lisbon')", &["city-porto", "lists"]),
        ("UPDATE films SET title = 'Ebb'", &["film-tide", "lists"]),
        ("UPDATE films SET title = 'Ebb'", &[]),
        ("UPDATE screens SET name = 'Screen 2'", &changed),
        ("UPDATE shows SET sales = 'planned'", &changed),
        ("UPDATE shows SET prices = '{\"gold\": 800}'", &[]),
    ] {
        does(&world.pg, statement).await;
        let mut tags = tags.to_vec();
        tags.sort_unstable();
        assert_eq!(wanted(&world.pg).await, tags, "once in a transaction: {statement}");
    }
    insert_show(&world.pg, 300_000, 48 * 3_600).await;
    // Its screen and itself; its own page was there before for nobody.
    let mut once = wanted(&world.pg).await;
    once.dedup();
    assert_eq!(once, ["city-lisbon", "film-tide", "lists", "theatre-aurora"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_cdn_is_told_nothing_is_written_down() {
    let world = World::start(1, &[]).await;
    does(&world.pg, "UPDATE shows SET sales = 'paused'; UPDATE theatres SET name = 'Aurora Nova'").await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges").await, 0);
    // One that told it once, and is gone for long.
    does(&world.pg, "INSERT INTO cdn VALUES (true, now() - interval '1 second')").await;
    does(&world.pg, "UPDATE shows SET sales = 'open'").await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges").await, 0);
    world.end().await;
}
