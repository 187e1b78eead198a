//! Pools of connections to Postgres that follow the primary, transactions of background work, temporary errors, and the
//! arguments of queries.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sqlx::postgres::{PgArguments, PgDatabaseError, PgPool, PgPoolOptions, PgSeverity};
use sqlx::query::{Query, QueryAs, QueryScalar};
use sqlx::{Connection, Encode, Postgres, Transaction, Type};

use crate::postgres_hosts::{HostsError, PostgresHosts, PrimaryFollower};

/// Deadline of waiting for a free connection of the pool; after it the caller gets an error.
pub const POOL_DEADLINE: Duration = Duration::from_secs(5);
/// A connection that was idle for this long is pinged before use. A ping each time would double the cost of a short
/// query, and under load no connection is idle this long.
const PING_AFTER_IDLE: Duration = Duration::from_secs(1);
/// Deadline of a released connection for the answer to its last query, which the caller may have dropped. A machine
/// that vanished never answers, and the connection keeps its place in the pool meanwhile.
const RELEASE_DEADLINE: Duration = Duration::from_secs(2);

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
    let (on_connect, on_release) = (Arc::clone(&follower), Arc::clone(&follower));
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(deadline)
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            let follower = Arc::clone(&on_connect);
            Box::pin(async move { follower.check_new(connection).await })
        })
        .before_acquire(move |connection, metadata| {
            let is_fresh = follower.is_fresh(metadata.age);
            Box::pin(async move {
                if !is_fresh {
                    return Ok(false);
                }
                if metadata.idle_for >= PING_AFTER_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .after_release(move |connection, metadata| {
            let is_fresh = on_release.is_fresh(metadata.age);
            Box::pin(async move {
                if !is_fresh {
                    return Err(abandoned("the connection leads to an earlier primary"));
                }
                // Returns at once if the last query was answered. The ping of sqlx, which follows, has no deadline.
                let answered = tokio::time::timeout(RELEASE_DEADLINE, connection.flush()).await;
                answered.unwrap_or_else(|_| Err(abandoned("its last query has no answer"))).map(|()| true)
            })
        })
}

/// The error that makes the pool close a released connection without another message to Postgres.
fn abandoned(why: &'static str) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, why))
}

/// Begins a transaction of background work, which waits two seconds at most for each lock: one locked row must not stop
/// the others of its round. After that it fails with an error that [`is_temporary`].
///
/// # Errors
/// When the database fails.
pub async fn begin_with_lock_timeout(pg: &PgPool) -> sqlx::Result<Transaction<'static, Postgres>> {
    pg.begin_with("BEGIN; SET LOCAL lock_timeout = '2s'").await
}

/// SQLSTATEs of temporary errors: read-only transaction (just after a failover), serialisation failure, deadlock, too
/// many connections, lock timeout, query cancelled, server shutting down or starting (PostgreSQL manual, appendix A).
const TEMPORARY_CODES: [&str; 9] = ["25006", "40001", "40P01", "53300", "55P03", "57014", "57P01", "57P02", "57P03"];

/// True for an error that a retry may avoid: no free connection, a lost connection, or one of [`TEMPORARY_CODES`].
///
/// An error of severity FATAL ends its connection, so it counts whatever its code: PgBouncer reports its own errors as
/// protocol violations.
#[must_use]
pub fn is_temporary(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) => true,
        sqlx::Error::Database(error) => {
            let severity = error.try_downcast_ref::<PgDatabaseError>().map(PgDatabaseError::severity);
            matches!(severity, Some(PgSeverity::Fatal | PgSeverity::Panic))
                || error.code().is_some_and(|code| TEMPORARY_CODES.contains(&&*code))
        }
        _ => false,
    }
}

/// A query that takes its arguments in one call.
pub trait BindAll<'q>: Sized {
    /// Binds the next argument.
    #[must_use]
    fn bind_next<T: 'q + Encode<'q, Postgres> + Type<Postgres>>(self, argument: T) -> Self;

    /// Binds the arguments of a tuple in their order, `$1` first.
    #[must_use]
    fn bind_all<A: QueryArguments<'q>>(self, arguments: A) -> Self {
        arguments.bind_to(self)
    }
}

/// A tuple of arguments of a query.
pub trait QueryArguments<'q> {
    /// Binds the arguments in their order.
    #[must_use]
    fn bind_to<Q: BindAll<'q>>(self, query: Q) -> Q;
}

impl<'q> BindAll<'q> for Query<'_, Postgres, PgArguments> {
    fn bind_next<T: 'q + Encode<'q, Postgres> + Type<Postgres>>(self, argument: T) -> Self {
        self.bind(argument)
    }
}

impl<'q, R> BindAll<'q> for QueryAs<'q, Postgres, R, PgArguments> {
    fn bind_next<T: 'q + Encode<'q, Postgres> + Type<Postgres>>(self, argument: T) -> Self {
        self.bind(argument)
    }
}

impl<'q, R> BindAll<'q> for QueryScalar<'q, Postgres, R, PgArguments> {
    fn bind_next<T: 'q + Encode<'q, Postgres> + Type<Postgres>>(self, argument: T) -> Self {
        self.bind(argument)
    }
}

macro_rules! tuples {
    ($($argument:ident)+) => {
        impl<'q, $($argument: 'q + Encode<'q, Postgres> + Type<Postgres>),+> QueryArguments<'q> for ($($argument,)+) {
            #[expect(non_snake_case, reason = "the names of the types")]
            fn bind_to<Q: BindAll<'q>>(self, query: Q) -> Q {
                let ($($argument,)+) = self;
                query$(.bind_next($argument))+
            }
        }
    };
}

tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
