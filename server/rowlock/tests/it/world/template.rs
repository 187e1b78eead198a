//! A database with the schema, from which the databases of tests are copied. Migrating each of them would take longer.
//!
//! In a database server of your own (`DATABASE_URL`) it stays, one for each schema. To drop one, set its `IS_TEMPLATE` to
//! false first.

use std::hash::{DefaultHasher, Hasher};

use rowlock::migrations::{MIGRATOR, migrate};
use sqlx::{AssertSqlSafe, PgConnection};

use super::url_of;

/// Key of the advisory lock that is held while the template is created.
const CREATION_LOCK: i64 = 0x7465_6d70_6c61_7465;

/// Creates a database with the schema.
pub async fn copy_of_template(admin_url: &str, admin: &mut PgConnection, database: &str) {
    let template = template(admin_url, admin).await;
    // Copying files takes less than half of the time of logging each page. Postgres 14 knows no other way.
    let strategy = if admin.server_version_num() >= Some(150_000) { " STRATEGY FILE_COPY" } else { "" };
    run(format!("CREATE DATABASE {database} TEMPLATE {template}{strategy}"), admin).await;
    // As `migrations/0006_selling.sql` does: a database's settings are not copied.
    run(format!("ALTER DATABASE {database} SET jit = off"), admin).await;
}

/// Returns the name of the template, which is created if it is missing. Each version of the schema has its own.
async fn template(admin_url: &str, admin: &mut PgConnection) -> String {
    let mut versions = DefaultHasher::new();
    for migration in MIGRATOR.iter() {
        versions.write(&migration.checksum);
    }
    let name = format!("rowlock_template_{:016x}", versions.finish());
    if !is_complete(&name, admin).await {
        // Other tests wait here, also those of another process.
        run(format!("SELECT pg_advisory_lock({CREATION_LOCK})"), admin).await;
        if !is_complete(&name, admin).await {
            create(&name, admin_url, admin).await;
        }
        run(format!("SELECT pg_advisory_unlock({CREATION_LOCK})"), admin).await;
    }
    name
}

/// Returns whether the template exists with its schema: it is marked as the last step of its creation.
async fn is_complete(name: &str, admin: &mut PgConnection) -> bool {
    let marked = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)");
    marked.bind(name).fetch_one(admin).await.expect("the databases are listed")
}

async fn create(name: &str, admin_url: &str, admin: &mut PgConnection) {
    // Left by a process that ended while it created one.
    run(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"), admin).await;
    run(format!("CREATE DATABASE {name}"), admin).await;
    let pg = platform::database::connect(&url_of(admin_url, name), 1).await.expect("the template answers");
    migrate(&pg).await.expect("the schema is created");
    pg.close().await;
    // A database with connections cannot be copied.
    run(format!("ALTER DATABASE {name} IS_TEMPLATE true ALLOW_CONNECTIONS false"), admin).await;
}

async fn run(statement: String, admin: &mut PgConnection) {
    sqlx::query(AssertSqlSafe(statement)).execute(admin).await.expect("the statement runs");
}
