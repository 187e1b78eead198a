//! The schema: the embedded files of `migrations/`, and whether a database has them.

use std::sync::LazyLock;

use anyhow::Context;
use sqlx::SqlStr;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgPool;

/// Version, description and content of each file. `sqlx::migrate!` would list them by itself, but sqlx's macros compile
/// all of sqlx a second time.
const FILES: [(i64, &str, &str); 18] = [
    (1, "shared triggers", include_str!("../../../migrations/0001_shared_triggers.sql")),
    (2, "http", include_str!("../../../migrations/0002_http.sql")),
    (3, "catalogue", include_str!("../../../migrations/0003_catalogue.sql")),
    (4, "identity", include_str!("../../../migrations/0004_identity.sql")),
    (5, "admission", include_str!("../../../migrations/0005_admission.sql")),
    (6, "selling", include_str!("../../../migrations/0006_selling.sql")),
    (7, "tickets", include_str!("../../../migrations/0007_tickets.sql")),
    (8, "backoffice", include_str!("../../../migrations/0008_backoffice.sql")),
    (9, "rehearsals", include_str!("../../../migrations/0009_rehearsals.sql")),
    (10, "standing rooms", include_str!("../../../migrations/0010_standing_rooms.sql")),
    (11, "one rehearsal", include_str!("../../../migrations/0011_one_rehearsal.sql")),
    (12, "categories of layouts", include_str!("../../../migrations/0012_categories_of_layouts.sql")),
    (13, "moves of drafts", include_str!("../../../migrations/0013_moves_of_drafts.sql")),
    (14, "released claims", include_str!("../../../migrations/0014_released_claims.sql")),
    (15, "lost connections", include_str!("../../../migrations/0015_lost_connections.sql")),
    (16, "refusals of gateways", include_str!("../../../migrations/0016_refusals_of_gateways.sql")),
    (17, "contained tax and fee", include_str!("../../../migrations/0017_contained_tax_and_fee.sql")),
    (18, "mailed buyers", include_str!("../../../migrations/0018_mailed_buyers.sql")),
];

/// The schema, step by step.
pub static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    let migrations = FILES.map(|(version, description, sql)| {
        let without_transaction = sql.starts_with("-- no-transaction");
        let sql = SqlStr::from_static(sql);
        Migration::new(version, description.into(), MigrationType::Simple, sql, without_transaction)
    });
    Migrator::with_migrations(migrations.into())
});

/// SQLSTATE of a missing table.
const UNDEFINED_TABLE: &str = "42P01";
/// SQLSTATE of a lock that was not available within its timeout.
const LOCK_NOT_AVAILABLE: &str = "55P03";
/// Bounds the wait of a migration for each lock: every later statement on the table waits behind it, sales included.
const SET_LOCK_TIMEOUT: &str = "SET lock_timeout = '5s'";

/// True if every migration of this server is applied. A schema of a later version fits: migrations only add.
///
/// # Errors
/// When the database does not answer.
pub async fn is_schema_up_to_date(pg: &PgPool) -> sqlx::Result<bool> {
    let known: Vec<i64> = MIGRATOR.iter().map(|migration| migration.version).collect();
    let applied = "SELECT count(*) FROM _sqlx_migrations WHERE success AND version = ANY($1)";
    match sqlx::query_scalar::<_, i64>(applied).bind(&known).fetch_one(pg).await {
        Ok(applied) => Ok(applied == i64::try_from(known.len()).unwrap_or(i64::MAX)),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(UNDEFINED_TABLE) => Ok(false),
        Err(cause) => Err(cause),
    }
}

/// True if the first applied migrations are all of this server's, unchanged. The others are of a later version.
async fn begins_with_our_migrations(pg: &PgPool) -> sqlx::Result<bool> {
    let applied = "SELECT version, checksum FROM _sqlx_migrations ORDER BY version";
    let applied: Vec<(i64, Vec<u8>)> = sqlx::query_as(applied).fetch_all(pg).await?;
    let first = applied.iter().take(FILES.len()).map(|(version, checksum)| (*version, checksum.as_slice()));
    Ok(first.eq(MIGRATOR.iter().map(|migration| (migration.version, &*migration.checksum))))
}

/// Brings the schema up to date. Changes nothing in a schema of a later version, which fits: migrations only add.
///
/// # Errors
/// When a migration fails or gets no lock, an applied one has changed since, or an unknown one is applied that is not
/// later than ours.
pub async fn migrate(pg: &PgPool) -> anyhow::Result<()> {
    // Not returned to the pool: its session has the timeout, and after a failure the lock against other migrations.
    let mut session = pg.acquire().await?.detach();
    // Before the timeout is set: another `rowlock migrate` may take long. `run` takes this lock a second time.
    session.lock().await?;
    sqlx::query(SET_LOCK_TIMEOUT).execute(&mut session).await?;
    let outcome = MIGRATOR.run(&mut session).await;
    if let Err(MigrateError::VersionMissing(unknown)) = outcome
        && begins_with_our_migrations(pg).await?
    {
        tracing::warn!(unknown, "the schema is of a later version: nothing to migrate");
        return Ok(());
    }
    if let Err(MigrateError::ExecuteMigration(sqlx::Error::Database(cause), version)) = &outcome
        && cause.code().as_deref() == Some(LOCK_NOT_AVAILABLE)
    {
        anyhow::bail!(
            "migration {version} changed nothing: another transaction kept a table locked for five seconds. End the dump \
             or the long transaction (SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start), then run \
             `rowlock migrate` again."
        );
    }
    outcome.context("the schema could not be brought up to date")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Everything that sqlx compares or stores of a migration.
    fn facts(migrator: &Migrator) -> Vec<(i64, &str, MigrationType, &[u8], bool)> {
        migrator.iter().map(|it| (it.version, &*it.description, it.migration_type, &*it.checksum, it.no_tx)).collect()
    }

    #[tokio::test]
    async fn every_file_is_embedded_with_the_checksum_that_sqlx_stores() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
        let files = Migrator::new(folder).await.expect("the folder is read");
        assert_eq!(facts(&MIGRATOR), facts(&files));
    }
}
