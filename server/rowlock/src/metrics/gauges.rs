//! Gauges of the current state, read on each scrape.

use std::time::Duration;

use metrics::{Unit, gauge};
use tokio::time::timeout;

use crate::AppState;

/// Names, units and meanings.
pub(super) const DESCRIBED: [(&str, Unit, &str); 15] = [
    (
        OLDEST_PENDING,
        Unit::Seconds,
        "Age of the oldest payment that is neither paid nor cancelled; 0 when there is none.",
    ),
    (OUTBOX_WAITING, Unit::Count, "Effects that are still to be done, of all replicas."),
    (OUTBOX_OLDEST, Unit::Seconds, "Age of the oldest of them."),
    (OUTBOX_PARKED, Unit::Count, "Effects that wait for a person: see `rowlock parked`."),
    (
        LEDGER_DIFFERENCES,
        Unit::Count,
        "Differences between ledgers of gateways and payments here that wait for a person: see `rowlock parked`.",
    ),
    (LEDGER_LATE, Unit::Seconds, "Age of the oldest day's ledger that is still to be compared; 0 when there is none."),
    (CDN_LATE, Unit::Seconds, "How long the CDN has not taken a purge it should have taken; 0 when there is none."),
    (CDN_PARKED, Unit::Count, "Purges the CDN did not take in any try, and which wait for a person."),
    (LIVE_SOCKETS, Unit::Count, "People who watch a seat map on this replica."),
    (LIVE_HUBS, Unit::Count, "Shows with live maps open on this replica."),
    (DATABASE_KNOWN, Unit::Count, "1 when the database answered this scrape; otherwise gauges read from it are stale."),
    (DATABASE_CONNECTIONS, Unit::Count, "Connections to the database this replica has, busy and idle."),
    (DATABASE_LIMIT, Unit::Count, "Connections to the database this replica may have: DATABASE_CONNECTIONS."),
    (
        COMMITS_WAITING,
        Unit::Count,
        "Steps of sales that wait to be committed on this replica, those being committed included.",
    ),
    (COMMITS_LIMIT, Unit::Count, "Steps of sales that may wait here: COMMIT_QUEUE."),
];

const OLDEST_PENDING: &str = "rowlock_oldest_pending_payment_age_seconds";
const OUTBOX_WAITING: &str = "rowlock_outbox_waiting";
const OUTBOX_OLDEST: &str = "rowlock_outbox_oldest_age_seconds";
const OUTBOX_PARKED: &str = "rowlock_outbox_parked";
const LEDGER_DIFFERENCES: &str = "rowlock_ledger_differences";
const LEDGER_LATE: &str = "rowlock_ledger_late_seconds";
const CDN_LATE: &str = "rowlock_cdn_purges_late_seconds";
const CDN_PARKED: &str = "rowlock_cdn_purges_parked";
const LIVE_SOCKETS: &str = "rowlock_live_sockets";
const LIVE_HUBS: &str = "rowlock_live_hubs";
const DATABASE_KNOWN: &str = "rowlock_database_scraped";
const DATABASE_CONNECTIONS: &str = "rowlock_database_connections";
const DATABASE_LIMIT: &str = "rowlock_database_connections_limit";
const COMMITS_WAITING: &str = "rowlock_commits_waiting";
const COMMITS_LIMIT: &str = "rowlock_commits_waiting_limit";

/// A scrape waits this long for the database.
const DATABASE_DEADLINE: Duration = Duration::from_secs(2);

#[derive(platform::FromRow)]
struct Backlog {
    oldest_pending_s: f64,
    waiting: i64,
    oldest_waiting_s: f64,
    parked: i64,
    ledger_differences: i64,
    ledger_late_s: f64,
    cdn_late_s: f64,
    cdn_parked: i64,
}

const BACKLOG: &str = "
    SELECT coalesce((SELECT extract(epoch FROM now() - min(updated_at)) FROM bookings
                     WHERE is_open AND state = 'PAYMENT_PENDING'), 0)::float8 AS oldest_pending_s,
           count(*) FILTER (WHERE parked_why IS NULL) AS waiting,
           coalesce(extract(epoch FROM now() - min(created_at) FILTER (WHERE parked_why IS NULL)), 0)::float8
               AS oldest_waiting_s,
           count(*) FILTER (WHERE parked_why IS NOT NULL) AS parked,
           (SELECT count(*) FROM ledger_differences WHERE settled_at IS NULL) AS ledger_differences,
           (SELECT greatest(coalesce(extract(epoch FROM now() - min(planned_at)), 0), 0) FROM ledger_comparisons
            WHERE finished_at IS NULL AND gateway = ANY($1))::float8 AS ledger_late_s,
           (SELECT greatest(coalesce(extract(epoch FROM now() - min(due_at)), 0), 0) FROM cdn_purges
            WHERE EXISTS (SELECT FROM cdn WHERE told_until > now()))::float8
               AS cdn_late_s,
           (SELECT count(*) FROM cdn_purges WHERE parked_why IS NOT NULL) AS cdn_parked
    FROM outbox";

/// Updates all gauges.
pub(super) async fn refresh(state: &AppState) {
    let (hubs, sockets) = state.hubs.counts();
    gauge!(LIVE_HUBS).set(hubs as f64);
    gauge!(LIVE_SOCKETS).set(sockets as f64);
    http::idempotency::metrics::refresh(&state.idempotency.counters);
    // Counted before this scrape takes a connection itself.
    let (all, idle) = (f64::from(state.pg.size()), state.pg.num_idle() as f64);
    gauge!(DATABASE_CONNECTIONS, "state" => "idle").set(idle);
    gauge!(DATABASE_CONNECTIONS, "state" => "busy").set((all - idle).max(0.0));
    gauge!(DATABASE_LIMIT).set(f64::from(state.config.database_connections));
    let limit = state.config.selling.commit_queue;
    gauge!(COMMITS_WAITING).set(limit.saturating_sub(state.commits.free_slots()) as f64);
    gauge!(COMMITS_LIMIT).set(limit as f64);
    let asked = sqlx::query_as::<_, Backlog>(BACKLOG).bind(&state.config.payments.payment_gateways);
    let backlog = timeout(DATABASE_DEADLINE, asked.fetch_one(&state.pg)).await;
    let known = match backlog {
        Ok(Ok(backlog)) => {
            gauge!(OLDEST_PENDING).set(backlog.oldest_pending_s);
            gauge!(OUTBOX_WAITING).set(backlog.waiting as f64);
            gauge!(OUTBOX_OLDEST).set(backlog.oldest_waiting_s);
            gauge!(OUTBOX_PARKED).set(backlog.parked as f64);
            gauge!(LEDGER_DIFFERENCES).set(backlog.ledger_differences as f64);
            gauge!(LEDGER_LATE).set(backlog.ledger_late_s);
            gauge!(CDN_LATE).set(backlog.cdn_late_s);
            gauge!(CDN_PARKED).set(backlog.cdn_parked as f64);
            true
        }
        Ok(Err(cause)) => {
            tracing::warn!(%cause, "read gauges from the database failed");
            false
        }
        Err(_) => false,
    };
    gauge!(DATABASE_KNOWN).set(if known { 1.0 } else { 0.0 });
}
