//! Builds the state of all crates, starts the server, and stops it in order.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use admission::{AdmissionParts, AdmissionState, fairness, puzzles, waiting_room};
use anyhow::Context;
use app::legal_links::LegalLinks;
use axum::extract::{FromRef, Request};
use axum::response::Response;
use backoffice::{BackofficeParts, BackofficeState, organiser, rehearsals, relocation, reports, webhooks};
use catalogue::{CatalogueParts, CatalogueState, cdn};
use http::idempotency::{self, Idempotency};
use http::{HttpParts, HttpState};
use identity::{IdentityParts, IdentityState, accounts};
use platform::background::restart_after_panics;
use platform::rate_limits::RateLimits;
use platform::redis_link::{Link, LinkError};
use platform::{PlatformParts, PlatformState, database, telemetry, tls};
use seats::seat_locks::{self, RedisLocks, SeatLocks, ShadowLocks, rebuild_source};
use seats::{SeatsParts, SeatsState, live};
use selling::{SellingParts, SellingState, bookings, email_codes, holds, outbox, waiting_list};
use sqlx::postgres::PgPool;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceExt};

use crate::config::Config;
use crate::{AppParts, AppState, metrics, web};

/// Maximum time for which a stopping server waits for open requests, and then for background work.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// Connections that may wait to be accepted; the kernel's own limit (4,096 on Linux) still holds. When a sale opens,
/// thousands arrive within a moment, and the kernel resets those that do not fit.
const LISTEN_BACKLOG: u32 = 8_192;

/// Binds the listener for visitors; needs a runtime.
///
/// # Errors
/// When the address is in use or not one of this machine.
pub fn listen(at: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart need not wait for the last connections of the server before it.
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(LISTEN_BACKLOG)
}

/// The standby for public lists, if one is configured.
fn standby(config: &Config) -> anyhow::Result<Option<catalogue::Standby>> {
    let Some(url) = &config.catalogue_database_url else { return Ok(None) };
    let pool = database::connect_later(url, catalogue::STANDBY_CONNECTIONS, catalogue::ANSWER_DEADLINE);
    let primary = database::connect_later(&config.database_url, 1, database::POOL_DEADLINE).context("DATABASE_URL")?;
    Ok(Some(catalogue::Standby::new(pool.context("CATALOGUE_DATABASE_URL")?, primary)))
}

/// Connects to Redis and returns the link and the seat locks.
///
/// # Errors
/// When the address is invalid or no server answers.
pub async fn lock_store(url: &str, prefix: &str) -> anyhow::Result<(Link, RedisLocks)> {
    let (redis, locks) = lock_store_later(url, prefix)?;
    reach(&redis, &locks).await.context("Redis cannot be used")?;
    Ok((redis, locks))
}

/// A lock store whose Redis may be down: it connects at the first call.
///
/// # Errors
/// When the address is invalid.
fn lock_store_later(url: &str, prefix: &str) -> anyhow::Result<(Link, RedisLocks)> {
    tls::use_one_provider();
    let redis = Link::open(url).context("Redis cannot be used")?;
    let locks = RedisLocks::new(redis.clone(), prefix);
    Ok((redis, locks))
}

async fn reach(redis: &Link, locks: &RedisLocks) -> Result<(), LinkError> {
    redis.reach().await?;
    locks.read_clock().await
}

/// Builds the state of every crate from the settings.
///
/// # Errors
/// When something cannot be reached or a setting is unusable.
pub async fn assemble(config: Config) -> anyhow::Result<AppState> {
    tls::use_one_provider();
    metrics::install()?;
    let pg = database::connect(&config.database_url, config.database_connections).await?;
    let (redis, first) = lock_store_later(&config.redis_url, &config.redis_prefix)?;
    if let Err(cause) = reach(&redis, &first).await {
        tracing::error!(%cause, "connect to Redis failed: no seat can be held until it answers, everything else is served");
    }
    let clock = first.clock();
    let platform = PlatformState::new(PlatformParts {
        rate_limits: RateLimits::new(redis.clone(), clock.clone(), &config.redis_prefix),
        pg,
        redis,
        redis_prefix: config.redis_prefix.clone(),
        clock,
        token_secrets: config.token_secret.clone(),
        stop: CancellationToken::new(),
        tasks: TaskTracker::new(),
    });
    let http = HttpState::new(HttpParts {
        site: config.site.clone(),
        idempotency: Idempotency::new(&config.redis_prefix),
        platform_state: platform,
    });
    let catalogue = assemble_catalogue(&config, http).await?;
    let mailer = tickets::Mailer::from_settings(&config.mail)?;
    tickets::sign_with(&config.token_secret);
    let identity = IdentityState::new(IdentityParts {
        accounts: accounts::Accounts::new(&config.token_secret)?,
        mailer: mailer.clone(),
        catalogue_state: catalogue,
    });
    let seats = SeatsState::new(SeatsParts {
        locks: with_shadow(first, &config, &identity.pg, &identity.catalogue).await?,
        lock_queue: seat_locks::LockQueue::default(),
        compared_shows: seat_locks::ComparedShows::default(),
        watched: seat_locks::SweptShows::default(),
        hubs: live::Hubs::new(config.sockets_per_address),
        identity_state: identity,
    });
    let admission = assemble_admission(&config, seats).await?;
    let selling = assemble_selling(&config, mailer, admission)?;
    let backoffice = BackofficeState::new(BackofficeParts {
        reports: reports::Reports::default(),
        webhooks: webhooks::WebhookClient::new(&config.webhooks)?,
        webhook_settings: config.webhooks.clone(),
        rehearsal_settings: config.rehearsals.clone(),
        selling_state: selling,
    });
    web::files::set_site_version(&config.site_root);
    app::legal_links::set(LegalLinks {
        terms: config.terms_url.clone(),
        privacy: config.privacy_url.clone(),
        imprint: config.imprint_url.clone(),
    });
    if let Some(folder) = &config.messages_dir {
        tracing::warn!(folder = %folder.display(), "messages are read from files for each page: for development only");
        language::read_messages_from(folder);
    }
    Ok(AppState::new(AppParts { config, backoffice_state: backoffice }))
}

async fn assemble_catalogue(config: &Config, http: HttpState) -> anyhow::Result<CatalogueState> {
    let catalogue = catalogue::Catalogue::new(http.pg.clone());
    let catalogue = match standby(config)? {
        Some(standby) => catalogue.with_standby(standby),
        None => catalogue,
    };
    let regions = catalogue::Regions::of(&config.catalogue, &config.site.public_url);
    let catalogue = match regions.map_err(|(setting, why)| anyhow::anyhow!("{setting} {why}"))? {
        Some(regions) => catalogue.of_region(regions),
        None => catalogue,
    };
    let cdn = cdn::Cdn::from_settings(&config.catalogue)?;
    if cdn.is_configured() {
        // Before any request can change what the CDN keeps.
        cdn::announce(&http.pg).await.context("the CDN")?;
    }
    Ok(CatalogueState::new(CatalogueParts { catalogue, cdn, http_state: http }))
}

async fn assemble_admission(config: &Config, seats: SeatsState) -> anyhow::Result<AdmissionState> {
    let (prefix, secrets) = (config.redis_prefix.as_str(), config.token_secret.as_slice());
    let waiting_rooms = waiting_room::Rooms::load(prefix, secrets, &seats.pg, seats.clock.now());
    Ok(AdmissionState::new(AdmissionParts {
        waiting_rooms: waiting_rooms.await.context("the waiting rooms")?,
        puzzles: puzzles::Puzzles::new(prefix, secrets),
        fairness: fairness::Fairness::new(&config.admission, prefix),
        admission_settings: config.admission.clone(),
        seats_state: seats,
    }))
}

fn assemble_selling(
    config: &Config,
    mailer: tickets::Mailer,
    admission: AdmissionState,
) -> anyhow::Result<SellingState> {
    bookings::sign_links_with(&config.token_secret);
    waiting_list::sign_offers_with(&config.token_secret);
    let settings = &config.selling;
    Ok(SellingState::new(SellingParts {
        gateways: Arc::new(payments::Gateways::from_settings(&config.payments, &config.site.public_url)?),
        latest_holds: holds::HoldCache::default(),
        hold_tally: holds::HoldCounter::default(),
        waiting: waiting_list::WaitingListState::default(),
        offer_mails_wake: tokio::sync::Notify::new(),
        commits: bookings::Commits::new(settings.commit_queue, Duration::from_millis(settings.commit_gather_ms)),
        sold_seats: bookings::SoldSeatLists::default(),
        email_codes: email_codes::EmailCodes::new(Arc::new(email_codes::MailCarrier(mailer))),
        outbox_wake: outbox::Wake::default(),
        selling_settings: settings.clone(),
        admission_state: admission,
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
                tracing::error!(%cause, "connect to SHADOW_REDIS_URL failed: calls are not compared until it answers");
            }
            tracing::info!("every call to the lock store is also sent to SHADOW_REDIS_URL and compared");
            let source = rebuild_source(pg.clone(), catalogue.clone());
            Ok(Arc::new(ShadowLocks::new(Arc::new(first), Arc::new(second), source)))
        }
        // A shadow must not stop the server, not even when it is down.
        Err(cause) => {
            tracing::error!(?cause, "SHADOW_REDIS_URL cannot be used: serving without a shadow");
            Ok(Arc::new(first))
        }
    }
}

/// Starts a loop of background work, and again after a panic.
fn spawn_loop<S, F>(state: &AppState, with: S, run: impl Fn(S) -> F + Send + 'static)
where
    S: Clone + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let work = std::any::type_name_of_val(&run);
    state.tasks.spawn(restart_after_panics(state.stop.clone(), work, move || run(with.clone())));
}

/// Starts the background work of a replica.
pub fn spawn_background(state: &AppState) {
    let http = HttpState::from_ref(state);
    let catalogue = CatalogueState::from_ref(state);
    let identity = IdentityState::from_ref(state);
    let seats = SeatsState::from_ref(state);
    let selling = SellingState::from_ref(state);
    let backoffice = BackofficeState::from_ref(state);
    spawn_loop(state, state.stop.clone(), telemetry::upkeep_forever);
    spawn_loop(state, http.clone(), idempotency::purge_forever);
    spawn_loop(state, http, idempotency::reconcile_forever);
    let gateways = (state.gateways.clone(), state.stop.clone());
    spawn_loop(state, gateways, |(gateways, stop)| payments::probe_forever(gateways, stop));
    spawn_loop(state, catalogue.clone(), catalogue::compare_forever);
    spawn_loop(state, catalogue.clone(), cdn::relay_forever);
    spawn_loop(state, catalogue, cdn::announce_forever);
    spawn_loop(state, identity.clone(), accounts::send_mails_forever);
    spawn_loop(state, identity.clone(), accounts::purge_forever);
    spawn_loop(state, identity, accounts::poll_handed_over_visitors);
    spawn_loop(state, seats.clone(), seat_locks::sweep_forever);
    spawn_loop(state, seats.clone(), seat_locks::forget_forever);
    spawn_loop(state, seats, live::follow_changes);
    spawn_loop(state, AdmissionState::from_ref(state), waiting_room::serve_forever);
    spawn_loop(state, AdmissionState::from_ref(state), fairness::write_forever);
    for lane in outbox::Lane::ALL {
        spawn_loop(state, selling.clone(), move |selling| {
            let handler = bookings::BookingEffects::new(selling.clone());
            outbox::relay_forever(selling, handler, lane)
        });
    }
    spawn_loop(state, selling.clone(), holds::flush_forever);
    spawn_loop(state, selling.clone(), bookings::reconcile_forever);
    spawn_loop(state, selling.clone(), bookings::compare_ledgers_forever);
    spawn_loop(state, selling.clone(), bookings::purge_webhook_events_forever);
    spawn_loop(state, selling.clone(), bookings::cancel_shows_forever);
    spawn_loop(state, selling.clone(), bookings::withdraw_seats_forever);
    spawn_loop(state, selling.clone(), waiting_list::serve_forever);
    spawn_loop(state, selling.clone(), waiting_list::send_mails_forever);
    spawn_loop(state, selling.clone(), email_codes::send_forever);
    spawn_loop(state, selling, email_codes::purge_forever);
    spawn_loop(state, backoffice.clone(), relocation::work_forever);
    spawn_loop(state, backoffice.clone(), relocation::send_mails_forever);
    spawn_loop(state, backoffice.clone(), organiser::poll_changed_terms_forever);
    spawn_loop(state, backoffice.clone(), webhooks::deliver_forever);
    spawn_loop(state, backoffice, webhooks::purge_forever);
}

/// The router as the visitors of rehearsals call it: the same as that of connections, so that both share its limits.
fn site_of(
    router: impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static,
) -> rehearsals::Site {
    Arc::new(move |request: Request| -> rehearsals::SiteAnswer {
        let router = router.clone();
        Box::pin(async move {
            match router.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        })
    })
}

/// Serves until `state.stop`: then live connections are closed with a hint to reconnect, open requests finish, and
/// background work ends. The heartbeat ends last: another replica takes over the keys of one without.
pub async fn serve(state: AppState, listener: TcpListener) {
    let http = HttpState::from_ref(&state);
    let announce = || idempotency::announce_forever(http.clone());
    tokio::select! {
        () = restart_after_panics(CancellationToken::new(), "heartbeat", announce) => {}
        () = serve_until_stopped(state, listener) => {}
    }
}

async fn serve_until_stopped(state: AppState, listener: TcpListener) {
    spawn_background(&state);
    let limits = web::connections::ConnectionLimits::of(&state.config);
    let router = web::router::build(state.clone());
    let rehearsals = (BackofficeState::from_ref(&state), site_of(router.clone()));
    spawn_loop(&state, rehearsals, |(backoffice, site)| rehearsals::serve_forever(backoffice, site));
    let server = web::connections::serve(listener, router, limits, state.stop.clone());
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
