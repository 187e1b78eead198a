//! The schema: its comments, `rowlock migrate` of an older, a newer and a broken one, and seat claims, whose partitions by
//! show follow the rules of one table.

use std::path::Path;

use platform::database::BindAll;
use rowlock::migrations::{MIGRATOR, is_schema_up_to_date, migrate};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};

use crate::prelude::*;
use crate::settings::check;
use crate::sql_guards::{assert_second_claims_are_refused, insert_booking};

/// Version of the migration that creates the tables of `backoffice`.
const BACKOFFICE: i64 = 8;
/// Version of a migration that locks `seat_claims`.
const RELEASED_CLAIMS: i64 = 14;

/// A database of a test without servers. Its books are not checked.
pub struct BareDatabase {
    pub pg: PgPool,
    name: String,
}

impl BareDatabase {
    pub async fn create() -> Self {
        let name = format!("rowlock_test_{}", platform::ids::new_id().simple());
        let created = sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin().await).await;
        created.expect("the database is created");
        let pool = PgPoolOptions::new().max_connections(4).connect_with(admin_options().database(&name)).await;
        Self { pg: pool.expect("the new database answers"), name }
    }

    /// Migrates the schema up to a version; returns whether it succeeded. Uses its own connection, as the command does: a
    /// failed migration keeps the migration lock until its connection closes.
    pub async fn migrate_to(&self, version: i64) -> bool {
        let connection = PgConnection::connect_with(&admin_options().database(&self.name)).await;
        let mut connection = connection.expect("the database answers");
        let done = MIGRATOR.run_to(version, &mut connection).await;
        connection.close().await.expect("the connection is closed");
        done.is_ok()
    }

    /// Migrates the schema to the latest version; returns whether it succeeded.
    pub async fn migrate(&self) -> bool {
        self.migrate_to(versions().pop().expect("there are migrations")).await
    }

    pub async fn drop(self) {
        self.pg.close().await;
        let gone = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        sqlx::query(AssertSqlSafe(gone)).execute(&mut admin().await).await.expect("the database is dropped");
    }

    async fn has_table(&self, table: &str) -> bool {
        let found = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(table);
        found.fetch_one(&self.pg).await.expect("the catalog is read")
    }

    async fn is_up_to_date(&self) -> bool {
        is_schema_up_to_date(&self.pg).await.expect("the database answers")
    }
}

fn admin_options() -> PgConnectOptions {
    let url = std::env::var("DATABASE_URL").expect("DATABASE_URL; `cargo xtask test` sets it");
    url.parse().expect("an address")
}

async fn admin() -> PgConnection {
    PgConnection::connect_with(&admin_options()).await.expect("Postgres answers")
}

fn versions() -> Vec<i64> {
    let mut versions: Vec<i64> = MIGRATOR.iter().map(|migration| migration.version).collect();
    versions.sort_unstable();
    versions
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_has_a_comment_and_every_amount_and_duration_a_unit() {
    let world = World::start(0, &[]).await;
    let sql = "SELECT relname::text FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
           AND relname <> '_sqlx_migrations' AND coalesce(obj_description(oid, 'pg_class'), '') = ''
         ORDER BY relname";
    let without_comment: Vec<String> = world.values(sqlx::query_scalar(sql)).await;
    assert_eq!(without_comment, [""; 0], "COMMENT ON TABLE is missing");
    let without_unit: Vec<String> = world.values(sqlx::query_scalar(
        r"SELECT format('%s.%s', relname, attname) FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
          WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
            AND CASE WHEN attname LIKE '%\_minor' THEN coalesce(col_description(attrelid, attnum), '') !~* '\mminor units\M'
                     WHEN attname LIKE '%\_ms' THEN coalesce(col_description(attrelid, attnum), '') !~ '\mms\M'
                     ELSE false END
          ORDER BY 1",
    )).await;
    assert_eq!(without_unit, [""; 0], "COMMENT ON COLUMN names no unit");
}

#[tokio::test(flavor = "multi_thread")]
async fn schema_of_an_older_version_is_migrated_and_keeps_its_rows() {
    let database = BareDatabase::create().await;
    assert!(!database.is_up_to_date().await, "an empty database has no schema");
    let versions = versions();
    assert!(database.migrate_to(versions[versions.len() - 2]).await, "the schema of the version before");
    assert!(!database.is_up_to_date().await, "the latest migration is missing");
    let row = "INSERT INTO cities (id, name, country, time_zone) VALUES ('lisbon', 'Lisbon', 'PT', 'Europe/Lisbon')";
    sqlx::query(row).execute(&database.pg).await.expect("the city is written");
    for _ in 0..2 {
        assert!(database.migrate().await, "the schema is brought up to date, and a repetition changes nothing");
        assert!(database.is_up_to_date().await);
        let cities: i64 =
            sqlx::query_scalar("SELECT count(*) FROM cities").fetch_one(&database.pg).await.expect("a count");
        assert_eq!(cities, 1);
    }
    database.drop().await;
}

/// A lock on the table of migrations makes no replica unready.
#[tokio::test(flavor = "multi_thread")]
async fn readiness_reads_the_schema_until_it_is_up_to_date() {
    let world = World::start(1, &[]).await;
    let mut locking = world.pg.begin().await.expect("a transaction");
    let lock = "LOCK TABLE _sqlx_migrations IN ACCESS EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *locking).await.expect("the table is locked");
    expect_answer(world.visitor().get("/readyz").await, StatusCode::OK);
    locking.rollback().await.expect("it ends");
}

/// A migration of a later version, which the server does not know.
const LATER: &str = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                     VALUES (9999, 'of a later version', true, '\\x00', 0)";

#[tokio::test(flavor = "multi_thread")]
async fn schema_of_a_later_version_serves_and_needs_no_migration() {
    let world = World::start(1, &[]).await;
    world.execute(LATER).await;
    assert!(is_schema_up_to_date(&world.pg).await.expect("the database answers"));
    expect_answer(world.visitor().get("/readyz").await, StatusCode::OK);
    let (good, report) = check(&world, &["--public-url", &world.servers[0].url]).await;
    assert!(good && report.to_string().contains("has 1 migrations this program does not know"), "{report:#}");
    let applied = "SELECT count(*) FROM _sqlx_migrations";
    let before = world.count(applied).await;
    let (succeeded, output) = world.command(&["migrate"]).await;
    assert!(succeeded && output.contains("the schema is of a later version") && output.contains("9999"), "{output}");
    assert_eq!(world.count(applied).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn schema_of_a_later_version_with_other_earlier_migrations_is_refused() {
    let world = World::start(0, &[]).await;
    world.execute(LATER).await;
    for (difference, change, undo) in [
        (
            "an applied migration has changed",
            "UPDATE _sqlx_migrations SET checksum = checksum || '\\x00' WHERE version = 1",
            "UPDATE _sqlx_migrations SET checksum = substr(checksum, 1, length(checksum) - 1) WHERE version = 1",
        ),
        (
            "a migration is missing",
            "UPDATE _sqlx_migrations SET version = 10001 WHERE version = 1",
            "UPDATE _sqlx_migrations SET version = 1 WHERE version = 10001",
        ),
        (
            "an unknown migration is an earlier one",
            "UPDATE _sqlx_migrations SET version = 0 WHERE version = 9999",
            "UPDATE _sqlx_migrations SET version = 9999 WHERE version = 0",
        ),
    ] {
        world.execute(change).await;
        let (succeeded, output) = world.command(&["migrate"]).await;
        assert!(!succeeded && output.contains("could not be brought up to date"), "{difference}: {output}");
        world.execute(undo).await;
    }
    let (succeeded, output) = world.command(&["migrate"]).await;
    assert!(succeeded, "without these differences: {output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_migration_changes_nothing_and_a_retry_succeeds() {
    let database = BareDatabase::create().await;
    assert!(database.migrate_to(BACKOFFICE - 1).await, "the schema before");
    // The migration creates house_seats first and webhook_deliveries last.
    let in_the_way = "CREATE TABLE webhook_deliveries (id bigint)";
    sqlx::query(in_the_way).execute(&database.pg).await.expect("the table is created");
    assert!(!database.migrate_to(BACKOFFICE).await, "the migration fails");
    assert!(!database.has_table("house_seats").await, "the migration is one transaction");
    assert!(!database.is_up_to_date().await);
    sqlx::query("DROP TABLE webhook_deliveries").execute(&database.pg).await.expect("the table is dropped");
    assert!(database.migrate().await, "the next attempt succeeds");
    assert!(database.has_table("house_seats").await && database.is_up_to_date().await);
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_that_gets_no_lock_fails_with_advice_and_a_retry_succeeds() {
    let database = BareDatabase::create().await;
    assert!(database.migrate_to(RELEASED_CLAIMS - 1).await, "the schema before");
    let mut other = database.pg.begin().await.expect("a transaction");
    let lock = sqlx::query("LOCK TABLE seat_claims IN ACCESS EXCLUSIVE MODE").execute(&mut *other).await;
    lock.expect("the table is locked");
    let refused = tokio::time::timeout(TEST_TIMEOUT, migrate(&database.pg)).await.expect("the migration ends");
    let advice = refused.expect_err("the migration fails").to_string();
    assert!(advice.contains("migration 14 changed nothing") && advice.contains("pg_stat_activity"), "{advice}");
    other.rollback().await.expect("the lock is released");
    migrate(&database.pg).await.expect("the next attempt succeeds");
    assert!(database.is_up_to_date().await);
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_of_a_migrated_database_may_idle_in_a_transaction_for_thirty_seconds() {
    let database = BareDatabase::create().await;
    assert!(database.migrate().await, "the schema is created");
    let session = PgConnection::connect_with(&admin_options().database(&database.name)).await;
    let shown = sqlx::query_scalar("SHOW idle_in_transaction_session_timeout");
    let timeout: String = shown.fetch_one(&mut session.expect("the database answers")).await.expect("the setting");
    assert_eq!(timeout, "30s");
    database.drop().await;
}

const PARTITIONS: usize = 4;

/// The claim statement of `bookings::commits`.
const CLAIM: &str = "
    INSERT INTO seat_claims (show_id, seat_no, booking_id, fence, state, expires_at)
    SELECT wish.show_id, wish.seat_no, wish.booking_id, wish.fence, 'claimed', now() + interval '1 day'
    FROM unnest($1::uuid[], $2::integer[], $3::uuid[], $4::bigint[]) AS wish (show_id, seat_no, booking_id, fence)
    ON CONFLICT (show_id, seat_no) DO UPDATE
    SET booking_id = EXCLUDED.booking_id, fence = EXCLUDED.fence, state = 'claimed', expires_at = EXCLUDED.expires_at
    WHERE (seat_claims.state = 'released' OR seat_claims.fence < EXCLUDED.fence)
      AND NOT (seat_claims.state = 'sold' OR (seat_claims.state = 'claimed' AND seat_claims.expires_at > now()))
    RETURNING seat_no";

/// Claims these seats for a booking with this fence. Returns the claimed seats, sorted.
async fn claim(connection: &mut PgConnection, show: Uuid, seats: &[i32], booking: Uuid, fence: i64) -> Vec<i32> {
    let mut got: Vec<i32> = sqlx::query_scalar(CLAIM)
        .bind_all((vec![show; seats.len()], seats, vec![booking; seats.len()], vec![fence; seats.len()]))
        .fetch_all(connection)
        .await
        .expect("the claim statement runs");
    got.sort_unstable();
    got
}

async fn partitions_with_claims(pg: &PgPool) -> usize {
    let parts = "SELECT DISTINCT tableoid::regclass::text FROM seat_claims";
    sqlx::query_scalar::<_, String>(parts).fetch_all(pg).await.expect("claims are read").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_every_partition_keep_the_rules_of_one_table() {
    let database = BareDatabase::create().await;
    assert!(database.migrate().await, "the schema is created");
    let pg = &database.pg;
    let mut connection = pg.acquire().await.expect("a connection");
    let first = insert_show(pg, 300_000, 3_600).await;
    let booking = insert_booking(pg, first, "CONFIRMED").await;
    let mut shows = vec![first];
    // Ids are random, so each show falls into any of the partitions.
    while partitions_with_claims(pg).await < PARTITIONS {
        let show = insert_show(pg, 300_000, 3_600).await;
        let fence = i64::try_from(shows.len()).expect("a few shows");
        assert_eq!(claim(&mut connection, show, &[3, 4, 5], booking, fence).await, [3, 4, 5]);
        shows.push(show);
        assert!(shows.len() < 200, "some partitions get no claims");
    }
    assert_eq!(claim(&mut connection, first, &[3, 4, 5], booking, 1).await, [3, 4, 5]);
    for statement in [
        "UPDATE seat_claims SET state = 'sold' WHERE seat_no = 3",
        "UPDATE seat_claims SET state = 'released' WHERE seat_no = 4",
        "UPDATE seat_claims SET expires_at = now() - interval '1 hour' WHERE seat_no = 5",
    ] {
        let written = sqlx::query(statement).execute(pg).await.expect("the claims are written");
        assert_eq!(usize::try_from(written.rows_affected()).ok(), Some(shows.len()), "{statement}");
    }
    // Sold, released and expired: the released seat can be claimed with any fence, the expired one with a higher fence.
    for (show, fence) in shows.iter().zip(0..) {
        let fence = i64::max(fence, 1);
        assert_eq!(claim(&mut connection, *show, &[3, 4, 5], booking, fence).await, [4]);
        assert_eq!(claim(&mut connection, *show, &[3, 4, 5, 6], booking, fence + 1).await, [5, 6]);
        // Sold and claimed: no fence is high enough.
        assert_eq!(claim(&mut connection, *show, &[3, 4, 5, 6], booking, fence + 2).await, [0_i32; 0]);
        assert_second_claims_are_refused(pg, *show).await;
    }
    drop(connection);
    let other_room = "UPDATE shows SET layout_id =
                      (SELECT layout.id FROM layouts layout WHERE layout.id <> shows.layout_id LIMIT 1)";
    for (refused, code, why) in [
        ("UPDATE seat_claims SET state = 'lost'", CHECK_VIOLATION, "seat_claims_state_check"),
        ("UPDATE seat_claims SET booking_id = NULL", NOT_NULL_VIOLATION, "booking_id"),
        // A show keeps its layout once a seat is claimed.
        (other_room, CHECK_VIOLATION, "it keeps its room"),
    ] {
        assert_refused(refused, sqlx::query(refused).execute(pg).await, code, why);
    }
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_cover_all_shows_and_have_room_for_the_row_versions_of_a_sale() {
    let database = BareDatabase::create().await;
    assert!(database.migrate().await, "the schema is created");
    let bounds: Vec<(String, bool)> = sqlx::query_as(
        "SELECT pg_get_expr(part.relpartbound, part.oid), coalesce(part.reloptions @> ARRAY['fillfactor=45'], false)
         FROM pg_inherits JOIN pg_class part ON part.oid = inhrelid
         WHERE inhparent = 'seat_claims'::regclass ORDER BY part.relname",
    )
    .fetch_all(&database.pg)
    .await
    .expect("partitions are listed");
    let expected: Vec<(String, bool)> = (0..PARTITIONS)
        .map(|remainder| (format!("FOR VALUES WITH (modulus {PARTITIONS}, remainder {remainder})"), true))
        .collect();
    assert_eq!(bounds, expected);
    database.drop().await;
}

/// Partitions that a plan executes, of those it lists.
async fn partitions_read(tx: &mut PgConnection, statement: &str) -> usize {
    let explain = format!("EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) {statement}");
    let plan: Vec<String> =
        sqlx::query_scalar(AssertSqlSafe(explain)).fetch_all(tx).await.expect("the plan is returned");
    let scans = plan.iter().filter(|line| line.contains("Scan") && line.contains(" on seat_claims_"));
    let mut read: Vec<&str> = scans
        .filter(|line| !line.contains("never executed"))
        .filter_map(|line| line.split(" on ").nth(1)?.split_whitespace().next())
        .collect();
    read.sort_unstable();
    read.dedup();
    assert!(!read.is_empty(), "the plan reads claims: {plan:#?}");
    read.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn sale_reads_only_the_partition_of_its_show() {
    let world = World::start(0, &[]).await;
    let (show, booking) = (world.show, insert_booking(&world.pg, world.show, "CONFIRMED").await);
    let mut tx = world.pg.begin().await.expect("a transaction");
    assert_eq!(claim(&mut tx, show, &[0, 1], booking, 1).await, [0, 1]);
    let sell = format!(
        "UPDATE seat_claims claim SET state = 'sold'
         FROM unnest('{{{show},{show}}}'::uuid[], '{{0,1}}'::integer[], '{{{booking},{booking}}}'::uuid[], '{{1,1}}'::bigint[])
              AS own (show_id, seat_no, booking_id, fence)
         WHERE claim.show_id = own.show_id AND claim.seat_no = own.seat_no
           AND claim.booking_id = own.booking_id AND claim.fence = own.fence AND claim.state = 'claimed'
         RETURNING claim.show_id, claim.seat_no"
    );
    let release = format!(
        "WITH own AS (SELECT seat_no FROM seat_claims
                      WHERE show_id = '{show}' AND seat_no = ANY('{{0,1}}') AND booking_id = '{booking}' AND fence = 1
                        AND state IN ('claimed', 'sold')
                      ORDER BY seat_no FOR UPDATE)
         UPDATE seat_claims claim SET state = 'released' FROM own
         WHERE claim.show_id = '{show}' AND claim.seat_no = own.seat_no"
    );
    let left = "SELECT (SELECT count(*) FROM seat_claims WHERE show_id = show.id AND state = 'sold') FROM shows show";
    let report = format!(
        "SELECT claim.seat_no, count(*) AS times FROM unnest('{{{show}}}'::uuid[]) AS show (id)
         CROSS JOIN LATERAL (SELECT seat_no FROM seat_claims WHERE show_id = show.id AND state = 'sold' OFFSET 0) claim
         GROUP BY claim.seat_no"
    );
    // As the pipeline sets it for a batch.
    for setting in ["enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin"] {
        let off = format!("SET LOCAL {setting} = off");
        sqlx::query(AssertSqlSafe(off)).execute(&mut *tx).await.expect("the setting is changed");
    }
    for statement in [sell.as_str(), left, report.as_str(), release.as_str()] {
        assert_eq!(partitions_read(&mut tx, statement).await, 1, "{statement}");
    }
    let without_show = "SELECT * FROM seat_claims WHERE seat_no = 0";
    assert_eq!(partitions_read(&mut tx, without_show).await, PARTITIONS, "it reads all partitions");
    tx.rollback().await.expect("it ends");
}

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).expect("text")));
        }
    }
}

#[test]
fn every_statement_about_claims_names_the_show() {
    /// The show must be named within this many bytes after the table's name.
    const NEAR: usize = 260;
    let mut found = Vec::new();
    for member in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).expect("the server's crates") {
        sources(&member.expect("a crate").path().join("src"), &mut found);
    }
    let mut statements = 0;
    for (path, text) in &found {
        for verb in ["FROM seat_claims", "JOIN seat_claims", "INTO seat_claims", "UPDATE seat_claims"] {
            for (at, _) in text.match_indices(verb) {
                statements += 1;
                let near = text[at..].char_indices().take_while(|(place, _)| *place < NEAR).last();
                let end = at + near.map_or(0, |(place, letter)| place + letter.len_utf8());
                let statement = text[at..end].split('"').next().unwrap_or_default();
                assert!(statement.contains("show_id"), "{path}: {statement}");
            }
        }
    }
    assert!(statements >= 15, "too few statements were found: {statements}");
}
