//! Putting the parts together, and taking them apart again in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sqlx::Connection;
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::postgres_hosts::{HostsError, PostgresHosts, PrimaryFollower};
use crate::seat_locks::link::{Link, LinkError};
use crate::seat_locks::{RedisLocks, SeatLocks, ShadowLocks, known_source};
use crate::{
    AppState, Parts, accounts, bookings, catalogue, cdn, email_codes, fairness, holds, idempotency, live, organiser,
    outbox, payments, puzzles, rate_limits, reports, seat_locks, telemetry, tickets, waiting_list, waiting_room, web,
    webhooks,
};

/// Waiting for a free database connection longer than this is an answer: not now.
const POOL_DEADLINE: Duration = Duration::from_secs(5);
/// A database connection that rested for so long is asked whether it still is one before it is used. Asked every
/// time, a short question costs two, and in a rush none rests.
const ASK_AFTER_REST: Duration = Duration::from_secs(1);
/// Open work is waited for this long when stopping.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// Connections that may wait to be accepted; the kernel's own limit (4,096 on Linux) still holds. When a
/// sale opens, thousands come within a moment, and those who do not fit are reset.
const LISTEN_BACKLOG: u32 = 8_192;

/// The listener for visitors, to be called inside the runtime.
///
/// # Errors
/// When the address is taken or not ours.
pub fn listen(at: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart need not wait for the last connections of the server before it.
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(LISTEN_BACKLOG)
}

/// Postgres.
///
/// # Errors
/// When the address is unusable or nobody answers there.
pub async fn database(url: &str, connections: u32) -> anyhow::Result<PgPool> {
    let follower = PrimaryFollower::new(PostgresHosts::parse(url).context("DATABASE_URL")?);
    follower.find_first().await.context("Postgres does not answer at DATABASE_URL")?;
    let pool = pool(connections, POOL_DEADLINE, Arc::clone(&follower)).connect_with(follower.options()).await;
    let pool = pool.context("Postgres does not answer at DATABASE_URL")?;
    follower.follow(pool.clone());
    Ok(pool)
}

/// A Postgres that need not be there yet: it is connected to when it is first asked.
///
/// # Errors
/// When the address is unusable.
pub fn database_later(url: &str, connections: u32, deadline: Duration) -> Result<PgPool, HostsError> {
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

/// The standby that lists for everybody are read from, if there is to be one.
fn standby(config: &Config) -> anyhow::Result<Option<catalogue::Standby>> {
    let Some(url) = &config.catalogue_database_url else { return Ok(None) };
    let pool = database_later(url, catalogue::STANDBY_CONNECTIONS, catalogue::ANSWER_DEADLINE);
    let primary = database_later(&config.database_url, 1, POOL_DEADLINE).context("DATABASE_URL")?;
    Ok(Some(catalogue::Standby::new(pool.context("CATALOGUE_DATABASE_URL")?, primary)))
}

/// The schema, step by step.
pub static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("../migrations");

/// SQLSTATE of a missing table.
const UNDEFINED_TABLE: &str = "42P01";

/// True if every migration this server knows was applied. A schema of a later version fits: migrations only add.
///
/// # Errors
/// When the database does not answer.
pub async fn is_schema_up_to_date(pg: &PgPool) -> Result<bool, sqlx::Error> {
    let known: Vec<i64> = MIGRATOR.iter().map(|migration| migration.version).collect();
    let applied = "SELECT count(*) FROM _sqlx_migrations WHERE success AND version = ANY($1)";
    match sqlx::query_scalar::<_, i64>(applied).bind(&known).fetch_one(pg).await {
        Ok(applied) => Ok(applied == i64::try_from(known.len()).unwrap_or(i64::MAX)),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(UNDEFINED_TABLE) => Ok(false),
        Err(cause) => Err(cause),
    }
}

/// Brings the schema up to date.
///
/// # Errors
/// When a migration fails or one that was applied has changed since.
pub async fn migrate(pg: &PgPool) -> anyhow::Result<()> {
    MIGRATOR.run(pg).await.context("the schema could not be brought up to date")
}

/// Redis, and the seat locks in it.
///
/// # Errors
/// When the address is unusable or nobody answers there.
pub async fn lock_store(url: &str, prefix: &str) -> anyhow::Result<(Link, RedisLocks)> {
    let (redis, locks) = lock_store_later(url, prefix)?;
    reach(&redis, &locks).await.context("Redis cannot be used")?;
    Ok((redis, locks))
}

/// A lock store whose Redis may be away: the first call connects to it.
///
/// # Errors
/// When the address is unusable.
fn lock_store_later(url: &str, prefix: &str) -> anyhow::Result<(Link, RedisLocks)> {
    use_one_tls_provider();
    let redis = Link::open(url).context("Redis cannot be used")?;
    let locks = RedisLocks::new(redis.clone(), prefix);
    Ok((redis, locks))
}

async fn reach(redis: &Link, locks: &RedisLocks) -> Result<(), LinkError> {
    redis.reach().await?;
    locks.read_clock().await
}

/// One for all TLS of the process; a second call is harmless.
pub(crate) fn use_one_tls_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Everything a request may need, from settings.
///
/// # Errors
/// When something cannot be reached or a setting is unusable.
pub async fn assemble(config: Config) -> anyhow::Result<AppState> {
    use_one_tls_provider();
    telemetry::install()?;
    let pg = database(&config.database_url, config.database_connections).await?;
    let catalogue = catalogue::Catalogue::new(pg.clone());
    let catalogue = match standby(&config)? {
        Some(standby) => catalogue.with_standby(standby),
        None => catalogue,
    };
    let regions = catalogue::Regions::of(&config).map_err(|(setting, why)| anyhow::anyhow!("{setting} {why}"))?;
    let catalogue = match regions {
        Some(regions) => catalogue.of_region(regions),
        None => catalogue,
    };
    let (redis, first) = lock_store_later(&config.redis_url, &config.redis_prefix)?;
    if let Err(cause) = reach(&redis, &first).await {
        tracing::error!(%cause, "Redis cannot be reached: no seat can be held until it can, everything else is served");
    }
    let locks = with_shadow(first, &config, &pg, &catalogue).await?;
    let gateways = payments::Gateways::from_config(&config)?;
    let cdn = cdn::Cdn::from_config(&config)?;
    if cdn.is_told() {
        // Before anybody can change anything through us.
        cdn::announce(&pg).await.context("the CDN")?;
    }
    let mailer = tickets::Mailer::from_config(&config)?;
    let email_codes = email_codes::EmailCodes::new(Arc::new(email_codes::ByMail(mailer.clone())));
    let accounts = accounts::Accounts::new(&config)?;
    tickets::sign_with(&config.token_secret);
    bookings::sign_links_with(&config.token_secret);
    waiting_list::sign_offers_with(&config.token_secret);
    web::files::announce(&config.site_root);
    let waiting_rooms = waiting_room::Rooms::load(&config, &pg, locks.now()).await.context("the waiting rooms")?;
    let commits = bookings::Commits::new(config.commit_queue, Duration::from_millis(config.commit_gather_ms));
    Ok(AppState::new(Parts {
        catalogue,
        commits,
        pg,
        locks,
        lock_queue: seat_locks::LockQueue::default(),
        latest_holds: holds::Latest::default(),
        first_looks: seat_locks::FirstLooks::default(),
        redis,
        watched: seat_locks::Watched::default(),
        hubs: live::Hubs::new(config.sockets_per_address),
        gateways,
        mailer,
        waiting_rooms,
        puzzles: puzzles::Puzzles::new(&config),
        fairness: fairness::Fairness::new(&config),
        waiting: waiting_list::Open::default(),
        offer_mails_wake: tokio::sync::Notify::new(),
        accounts,
        rate_limits: rate_limits::RateLimits::new(&config.redis_prefix),
        email_codes,
        idempotency: idempotency::Idempotency::new(&config.redis_prefix),
        reports: reports::Reports::default(),
        webhooks: webhooks::Client::new(&config)?,
        cdn,
        outbox_wake: outbox::Wake::default(),
        stop: CancellationToken::new(),
        tasks: TaskTracker::new(),
        config,
    }))
}

/// The lock store, with a second one as its shadow if there is to be one.
async fn with_shadow(
    first: RedisLocks,
    config: &Config,
    pg: &PgPool,
    catalogue: &catalogue::Catalogue,
) -> anyhow::Result<Arc<dyn SeatLocks>> {
    let Some(url) = &config.shadow_redis_url else { return Ok(Arc::new(first)) };
    anyhow::ensure!(*url != config.redis_url, "SHADOW_REDIS_URL is REDIS_URL; a store cannot be its own shadow");
    match lock_store_later(url, &config.redis_prefix) {
        Ok((redis, second)) => {
            if let Err(cause) = reach(&redis, &second).await {
                tracing::error!(%cause, "SHADOW_REDIS_URL cannot be reached: calls are not compared until it can");
            }
            tracing::info!("every call to the lock store is asked of SHADOW_REDIS_URL as well, and compared");
            let source = known_source(pg.clone(), catalogue.clone());
            Ok(Arc::new(ShadowLocks::new(Arc::new(first), Arc::new(second), source)))
        }
        // A shadow is to disturb nobody, not even by its absence.
        Err(cause) => {
            tracing::error!(?cause, "SHADOW_REDIS_URL cannot be used: serving without a shadow");
            Ok(Arc::new(first))
        }
    }
}

/// Starts the background work of a replica.
pub fn spawn_background(state: &AppState) {
    state.tasks.spawn(seat_locks::sweep_forever(state.clone()));
    state.tasks.spawn(seat_locks::forget_forever(state.clone()));
    state.tasks.spawn(live::follow_changes(state.clone()));
    state.tasks.spawn(catalogue::compare_forever(state.clone()));
    for lane in outbox::Lane::ALL {
        state.tasks.spawn(outbox::relay_forever(state.clone(), lane));
    }
    state.tasks.spawn(bookings::reconcile_forever(state.clone()));
    state.tasks.spawn(bookings::compare_ledgers_forever(state.clone()));
    state.tasks.spawn(payments::probe_forever(state.clone()));
    state.tasks.spawn(waiting_list::serve_forever(state.clone()));
    state.tasks.spawn(waiting_list::send_mails_forever(state.clone()));
    state.tasks.spawn(waiting_room::serve_forever(state.clone()));
    state.tasks.spawn(bookings::look_after_shows_forever(state.clone()));
    state.tasks.spawn(bookings::undo_withdrawn_seats_forever(state.clone()));
    state.tasks.spawn(bookings::relocation::work_forever(state.clone()));
    state.tasks.spawn(bookings::relocation::send_mails_forever(state.clone()));
    state.tasks.spawn(organiser::follow_forever(state.clone()));
    state.tasks.spawn(accounts::send_mails_forever(state.clone()));
    state.tasks.spawn(accounts::purge_forever(state.clone()));
    state.tasks.spawn(accounts::follow_handed_over_forever(state.clone()));
    state.tasks.spawn(email_codes::send_forever(state.clone()));
    state.tasks.spawn(email_codes::purge_forever(state.clone()));
    state.tasks.spawn(idempotency::purge_forever(state.clone()));
    state.tasks.spawn(idempotency::announce_forever(state.clone()));
    state.tasks.spawn(idempotency::reconcile_forever(state.clone()));
    state.tasks.spawn(reports::flush_forever(state.clone()));
    state.tasks.spawn(fairness::write_forever(state.clone()));
    state.tasks.spawn(webhooks::deliver_forever(state.clone()));
    state.tasks.spawn(webhooks::purge_forever(state.clone()));
    state.tasks.spawn(cdn::relay_forever(state.clone()));
    state.tasks.spawn(cdn::announce_forever(state.clone()));
    state.tasks.spawn(telemetry::upkeep_forever(state.clone()));
}

/// Serves until `state.stop`: then readers are told to come back, open requests finish, and background
/// work ends.
pub async fn serve(state: AppState, listener: TcpListener) {
    spawn_background(&state);
    let limits = web::connections::Limits::of(&state.config);
    let server = web::connections::serve(listener, web::router::build(state.clone()), limits, state.stop.clone());
    let stopped = async {
        state.stop.cancelled().await;
        tokio::time::sleep(STOP_DEADLINE).await;
    };
    tokio::select! {
        () = server => {}
        () = stopped => tracing::warn!("stopping with requests still open"),
    }
    state.tasks.close();
    if tokio::time::timeout(STOP_DEADLINE, state.tasks.wait()).await.is_err() {
        tracing::warn!("stopping with background work still open; another replica or the next start finishes it");
    }
}
