//! Pools of connections to Postgres that follow the primary.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sqlx::Connection;
use sqlx::postgres::{PgPool, PgPoolOptions};

use crate::postgres_hosts::{HostsError, PostgresHosts, PrimaryFollower};

/// Waiting for a free database connection longer than this is an answer: not now.
pub const POOL_DEADLINE: Duration = Duration::from_secs(5);
/// A connection that was idle for this long is pinged before use. A ping each time would double the cost of a short
/// query, and under load no connection is idle this long.
const ASK_AFTER_REST: Duration = Duration::from_secs(1);

/// Connects to Postgres.
///
/// # Errors
/// When the address is invalid or no server answers.
pub async fn connect(url: &str, connections: u32) -> anyhow::Result<PgPool> {
    let follower = PrimaryFollower::new(PostgresHosts::parse(url).context("DATABASE_URL")?);
    follower.find_first().await.context("Postgres does not answer at DATABASE_URL")?;
    let pool = pool(connections, POOL_DEADLINE, Arc::clone(&follower)).connect_with(follower.options()).await;
    let pool = pool.context("Postgres does not answer at DATABASE_URL")?;
    follower.follow(pool.clone());
    Ok(pool)
}

/// A pool for a Postgres that may be down: it connects at the first query.
///
/// # Errors
/// When the address is invalid.
pub fn connect_later(url: &str, connections: u32, deadline: Duration) -> Result<PgPool, HostsError> {
    let follower = PrimaryFollower::new(PostgresHosts::parse(url)?);
    let pool = pool(connections, deadline, Arc::clone(&follower)).connect_lazy_with(follower.options());
    follower.follow(pool.clone());
    Ok(pool)
}

/// A pool of `connections`, all to the primary. `deadline` is how long a caller waits for a free one.
fn pool(connections: u32, deadline: Duration, follower: Arc<PrimaryFollower>) -> PgPoolOptions {
    let on_connect = Arc::clone(&follower);
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(deadline)
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            let follower = Arc::clone(&on_connect);
            Box::pin(async move { follower.check_new(connection).await })
        })
        .before_acquire(move |connection, rested| {
            let is_fresh = follower.is_fresh(rested.age);
            Box::pin(async move {
                if !is_fresh {
                    return Ok(false);
                }
                if rested.idle_for >= ASK_AFTER_REST {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
}
