//! Purges that database triggers record for each change.

use sqlx::{AssertSqlSafe, PgPool};

use crate::world::{World, insert_show};

const PLACE_TAGS: [&str; 2] = ["city-lisbon", "theatre-aurora"];

/// Tags recorded since the last call, sorted.
async fn take_purges(pg: &PgPool) -> Vec<String> {
    let gone = sqlx::query_scalar("DELETE FROM cdn_purges RETURNING tag").fetch_all(pg).await;
    let mut tags: Vec<String> = gone.expect("purges are read");
    tags.sort_unstable();
    tags
}

async fn execute(pg: &PgPool, statement: &str) {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
        .execute(pg)
        .await
        .unwrap_or_else(|cause| panic!("{statement}: {cause}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn visible_changes_record_their_tags_and_invisible_ones_record_none() {
    let world = World::start(0, &[]).await;
    catalogue::cdn::announce(&world.pg).await.expect("the CDN is announced");
    let show = format!("show-{}", world.show);
    let changed: Vec<&str> = [&PLACE_TAGS[..], &["film-tide", "lists", &show]].concat();
    for (statement, tags) in [
        ("UPDATE shows SET prices = '{\"gold\": 900}'", &changed[..]),
        ("UPDATE shows SET sales = 'paused', terms_version = terms_version + 1", &changed),
        ("UPDATE shows SET called_off = true", &changed),
        ("UPDATE shows SET called_off = true", &[]),
        ("UPDATE shows SET blocked = '{1, 2}'", &[]),
        ("UPDATE shows SET called_off = false, sales = 'open'; UPDATE shows SET hold_ms = 60000", &changed),
        ("BEGIN; UPDATE shows SET hold_ms = 61000; UPDATE shows SET hold_ms = 62000; COMMIT", &changed),
        ("BEGIN; UPDATE shows SET hold_ms = 63000; ROLLBACK", &[]),
        ("UPDATE theatres SET name = 'Aurora Nova'", &[PLACE_TAGS[0], "lists", PLACE_TAGS[1]]),
        ("UPDATE theatres SET version = version + 1", &[]),
        (
            "INSERT INTO theatres VALUES ('foz', 'lisbon', 'Foz', 'Rua 2', 'EUR')",
            &[PLACE_TAGS[0], "lists", "theatre-foz"],
        ),
        ("UPDATE cities SET name = 'Lisboa'", &[PLACE_TAGS[0], "lists", PLACE_TAGS[1], "theatre-foz"]),
        ("INSERT INTO cities VALUES ('porto', 'Porto', 'PT', 'Europe/Lisbon')", &["city-porto", "lists"]),
        ("UPDATE films SET title = 'Ebb'", &["film-tide", "lists"]),
        ("UPDATE films SET title = 'Ebb'", &[]),
        ("UPDATE screens SET name = 'Screen 2'", &changed),
        ("UPDATE shows SET sales = 'planned'", &changed),
        ("UPDATE shows SET prices = '{\"gold\": 800}'", &[]),
    ] {
        execute(&world.pg, statement).await;
        let mut tags = tags.to_vec();
        tags.sort_unstable();
        assert_eq!(take_purges(&world.pg).await, tags, "once per transaction: {statement}");
    }
    insert_show(&world.pg, 300_000, 48 * 3_600).await;
    // Its screen and the show itself; its own page did not exist before.
    let mut once = take_purges(&world.pg).await;
    once.dedup();
    assert_eq!(once, ["city-lisbon", "film-tide", "lists", "theatre-aurora"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_cdn_no_purge_is_recorded() {
    let world = World::start(1, &[]).await;
    execute(&world.pg, "UPDATE shows SET sales = 'paused'; UPDATE theatres SET name = 'Aurora Nova'").await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges").await, 0);
    // A CDN that was announced long ago and has expired.
    execute(&world.pg, "INSERT INTO cdn VALUES (true, now() - interval '1 second')").await;
    execute(&world.pg, "UPDATE shows SET sales = 'open'").await;
    assert_eq!(world.count("SELECT count(*) FROM cdn_purges").await, 0);
}
