//! `/readyz`: whether a proxy should send requests to this replica.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use sqlx::PgPool;
use tokio::time::timeout;

use crate::{AppState, migrations};

/// Deadline for the lock store's answer. A proxy checks every half a second.
const LOCK_STORE_DEADLINE: Duration = Duration::from_millis(100);
/// Deadline for Postgres' answer. It is below the proxy's `timeout check` of two seconds (`deploy/haproxy.cfg`), so that
/// the proxy gets an answer from a replica whose Postgres is slow.
const DATABASE_DEADLINE: Duration = Duration::from_millis(1_500);

/// Answers readiness checks.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    /// True once Postgres had all migrations of this server. They only add, so it is not asked again.
    has_schema: AtomicBool,
}

impl Readiness {
    /// Ready: everything that needs no seat lock can be served. The lock store is reported and does not decide: it is away
    /// for all replicas at once, and tickets, doors, tills and payments work without it.
    pub(super) async fn check(&self, state: &AppState) -> Response {
        // In a separate task, which continues after the deadline: a ping that is cancelled would delay the detection of a
        // Redis that is back.
        let asked = state.clone();
        let ping = state.tasks.spawn(async move { asked.locks.ping().await.is_ok() });
        let (database, lock_store) =
            tokio::join!(timeout(DATABASE_DEADLINE, self.ask(&state.pg)), timeout(LOCK_STORE_DEADLINE, ping));
        let (database, lock_store) = (matches!(database, Ok(Ok(()))), matches!(lock_store, Ok(Ok(true))));
        let schema = self.has_schema.load(Ordering::Relaxed);
        let stopping = state.stop.is_cancelled();
        let is_ready = database && schema && !stopping;
        let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let truth = serde_json::json!({
            "database": database, "schema": schema, "lock_store": lock_store, "stopping": stopping,
        });
        (status, Json(truth)).into_response()
    }

    /// Asks Postgres whether its schema is up to date; after it was once, only for an answer.
    async fn ask(&self, pg: &PgPool) -> sqlx::Result<()> {
        if self.has_schema.load(Ordering::Relaxed) {
            return sqlx::query("SELECT 1").execute(pg).await.map(drop);
        }
        let is_up_to_date = migrations::is_schema_up_to_date(pg).await?;
        self.has_schema.fetch_or(is_up_to_date, Ordering::Relaxed);
        Ok(())
    }
}
