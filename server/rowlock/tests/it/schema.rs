//! The schema: its comments, and `rowlock migrate` of an older, a newer and a broken one.

use rowlock::start::{MIGRATOR, is_schema_up_to_date};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};

use crate::check_command::check;
use crate::world::World;

/// Version of the migration that creates the tables of `backoffice`.
const BACKOFFICE: i64 = 8;

/// A database of a test without servers. Its books are not checked.
pub struct BareDatabase {
    /// Connections to it.
    pub pg: PgPool,
    name: String,
}

impl BareDatabase {
    /// Creates a database without a schema.
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

    /// Drops the database.
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

/// Versions of all migrations, ascending.
fn versions() -> Vec<i64> {
    let mut versions: Vec<i64> = MIGRATOR.iter().map(|migration| migration.version).collect();
    versions.sort_unstable();
    versions
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_has_a_comment_and_every_amount_and_duration_a_unit() {
    let world = World::start(0, &[]).await;
    let without_comment: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
           AND relname <> '_sqlx_migrations' AND coalesce(obj_description(oid, 'pg_class'), '') = ''
         ORDER BY relname",
    )
    .fetch_all(&world.pg)
    .await
    .expect("tables are listed");
    assert_eq!(without_comment, [""; 0], "COMMENT ON TABLE is missing");
    let without_unit: Vec<String> = sqlx::query_scalar(
        r"SELECT format('%s.%s', relname, attname) FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
          WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
            AND CASE WHEN attname LIKE '%\_minor' THEN coalesce(col_description(attrelid, attnum), '') !~* '\mminor units\M'
                     WHEN attname LIKE '%\_ms' THEN coalesce(col_description(attrelid, attnum), '') !~ '\mms\M'
                     ELSE false END
          ORDER BY 1",
    )
    .fetch_all(&world.pg)
    .await
    .expect("columns are listed");
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

#[tokio::test(flavor = "multi_thread")]
async fn schema_of_a_later_version_serves_and_is_not_migrated() {
    let world = World::start(1, &[]).await;
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (9999, 'of a later version', true, '\\x00', 0)";
    sqlx::query(later).execute(&world.pg).await.expect("a later version has migrated the schema");
    assert!(is_schema_up_to_date(&world.pg).await.expect("the database answers"));
    let ready =
        world.visitor().client.get(format!("{}/readyz", world.servers[0].url)).send().await.expect("a response");
    assert!(ready.status().is_success(), "{ready:?}");
    let (good, report) = check(&world, &["--public-url", &world.servers[0].url]).await;
    assert!(good && report.to_string().contains("has 1 migrations this program does not know"), "{report:#}");
    let (is_migrated, output) = world.command(&["migrate"]).await;
    assert!(!is_migrated && output.contains("9999"), "{output}");
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
