//! The pool of connections to Postgres: a query without an answer, and which errors are temporary.

use platform::database::{POOL_DEADLINE, connect_later, is_temporary};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use crate::connection_cuts::{ConnectionFault, PostgresProxy};
use crate::prelude::*;

fn database_url() -> String {
    std::env::var("DATABASE_URL").expect("DATABASE_URL; `cargo xtask test` sets it")
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_query_without_an_answer_frees_its_place_in_the_pool() {
    let proxy = PostgresProxy::open(&database_url()).await;
    let pool = connect_later(&proxy.url, 1, POOL_DEADLINE).expect("an address");
    proxy.fail_next(1, ConnectionFault::Silence, "SELECT 2");
    let asking = pool.clone();
    let query = tokio::spawn(async move { sqlx::query("SELECT 2").execute(&asking).await });
    wait_until("the query gets no answer", || async { proxy.failed_connections() == 1 }).await;
    query.abort();
    let answer: sqlx::Result<i32> = sqlx::query_scalar("SELECT 2").fetch_one(&pool).await;
    assert_eq!(answer.expect("another connection takes its place"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn fatal_and_read_only_errors_are_temporary_and_a_defect_is_not() {
    let options: PgConnectOptions = database_url().parse().expect("an address");
    let mut connection = PgConnection::connect_with(&options).await.expect("Postgres answers");
    let defect = sqlx::query("SELECT FROM no_such_table").execute(&mut connection).await;
    let defect = defect.expect_err("there is no such table");
    assert!(!is_temporary(&defect), "{defect}");
    let read_only = sqlx::query("SET default_transaction_read_only = on").execute(&mut connection).await;
    read_only.expect("the setting is changed");
    let refused = sqlx::query("CREATE TABLE no_such_table ()").execute(&mut connection).await;
    let refused = refused.expect_err("as right after a failover");
    assert!(is_temporary(&refused), "{refused}");
    let fatal = PgConnection::connect_with(&options.database("no_such_database")).await;
    let fatal = fatal.expect_err("there is no such database");
    assert!(is_temporary(&fatal), "{fatal}");
}
