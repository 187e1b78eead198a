//! Queries of `webhook_endpoints`, `webhook_messages` and `webhook_deliveries`.

use chrono::{DateTime, Utc};
use domain::VariantName;
use domain::api::systems::{DeliveryState, DeliveryView, EndpointState, EndpointView, WebhookEvent};
use domain::time::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use platform::clock::{from_utc, rfc3339, to_utc};
use platform::database::BindAll;

/// An endpoint as stored, without its secrets, which only the delivery reads.
#[derive(Clone, Debug, platform::FromRow)]
pub(super) struct EndpointRow {
    pub(super) id: Uuid,
    pub(super) url: String,
    pub(super) events: Vec<String>,
    pub(super) state: String,
    pub(super) failures: i32,
    pub(super) notice: Option<String>,
    pub(super) old_until: Option<DateTime<Utc>>,
    pub(super) version: i32,
    pub(super) made_at: DateTime<Utc>,
}

fn corrupt(table: &str, column: &str, value: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("{table}.{column} is {value:?}").into())
}

fn event(text: &str) -> sqlx::Result<WebhookEvent> {
    text.parse().map_err(|_| corrupt("webhooks", "event", text))
}

impl EndpointRow {
    pub(super) fn state(&self) -> sqlx::Result<EndpointState> {
        self.state.parse().map_err(|_| corrupt("webhook_endpoints", "state", &self.state))
    }

    pub(super) fn view(self, now: Timestamp) -> sqlx::Result<EndpointView> {
        Ok(EndpointView {
            state: self.state()?,
            events: self.events.iter().map(|text| event(text)).collect::<Result<_, _>>()?,
            id: self.id,
            url: self.url,
            failures: self.failures,
            notice: self.notice,
            old_secret_until: self.old_until.filter(|until| *until > to_utc(now)).map(|at| rfc3339(from_utc(at))),
            made_at: rfc3339(from_utc(self.made_at)),
        })
    }
}

macro_rules! select_endpoint {
    ($condition:literal) => {
        concat!(
            "SELECT id, url, events, state, failures, notice, old_until, version, made_at FROM webhook_endpoints
             WHERE state <> 'removed' AND ",
            $condition
        )
    };
}

/// Returns the endpoints of a theatre, the newest first.
pub(super) async fn endpoints(pg: &PgPool, theatre: &str, limit: i64) -> sqlx::Result<Vec<EndpointRow>> {
    let sql = select_endpoint!("theatre_id = $1 ORDER BY made_at DESC, id LIMIT $2");
    sqlx::query_as(sql).bind_all((theatre, limit)).fetch_all(pg).await
}

/// Returns an endpoint of a theatre, locked until the transaction ends.
pub(super) async fn lock_endpoint(tx: &mut PgConnection, theatre: &str, id: Uuid) -> sqlx::Result<Option<EndpointRow>> {
    let sql = select_endpoint!("id = $1 AND theatre_id = $2 FOR NO KEY UPDATE");
    sqlx::query_as(sql).bind_all((id, theatre)).fetch_optional(tx).await
}

/// Counts the endpoints of a theatre, and blocks new ones until the transaction ends.
pub(super) async fn lock_count(tx: &mut PgConnection, theatre: &str) -> sqlx::Result<i64> {
    sqlx::query("SELECT 1 FROM theatres WHERE id = $1 FOR NO KEY UPDATE").bind(theatre).execute(&mut *tx).await?;
    let sql = "SELECT count(*) FROM webhook_endpoints WHERE theatre_id = $1 AND state <> 'removed'";
    sqlx::query_scalar(sql).bind(theatre).fetch_one(tx).await
}

pub(super) async fn insert_endpoint(
    tx: &mut PgConnection,
    theatre: &str,
    row: &EndpointRow,
    secret: &str,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO webhook_endpoints (id, theatre_id, url, events, secret, state, made_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind_all((row.id, theatre, &row.url, &row.events, secret, &row.state, row.made_at))
    .execute(tx)
    .await?;
    Ok(())
}

/// Changes the state of an endpoint; `false` when its state or version differs.
pub(super) async fn put_state(
    tx: &mut PgConnection,
    row: &EndpointRow,
    to: EndpointState,
    notice: Option<&str>,
) -> sqlx::Result<bool> {
    let changed = sqlx::query(
        "UPDATE webhook_endpoints SET state = $4, notice = $5, failures = CASE WHEN $4 = 'on' THEN 0 ELSE failures END,
                                      version = version + 1
         WHERE id = $1 AND state = $2 AND version = $3",
    )
    .bind_all((row.id, &row.state, row.version, to.as_str(), notice))
    .execute(tx)
    .await?;
    Ok(changed.rows_affected() == 1)
}

pub(super) async fn fail_waiting(tx: &mut PgConnection, endpoint: Uuid, why: &str) -> sqlx::Result<()> {
    let sql = "UPDATE webhook_deliveries SET state = 'failed', last_trouble = $2
               WHERE endpoint_id = $1 AND state = 'waiting'";
    sqlx::query(sql).bind_all((endpoint, why)).execute(tx).await.map(drop)
}

/// Sets a new secret and keeps the previous one until `old_until`; `false` when the version differs.
pub(super) async fn put_secret(
    tx: &mut PgConnection,
    row: &EndpointRow,
    secret: &str,
    old_until: Timestamp,
) -> sqlx::Result<bool> {
    let sql = "UPDATE webhook_endpoints SET old_secret = secret, old_until = $4, secret = $3, version = version + 1
               WHERE id = $1 AND version = $2";
    let changed = sqlx::query(sql).bind_all((row.id, row.version, secret, to_utc(old_until))).execute(tx).await?;
    Ok(changed.rows_affected() == 1)
}

#[derive(Clone, platform::FromRow)]
pub(super) struct DueDelivery {
    pub(super) id: i64,
    pub(super) tries: i32,
    pub(super) message_id: Uuid,
    pub(super) event: String,
    pub(super) body: String,
    pub(super) endpoint_id: Uuid,
    pub(super) url: String,
    pub(super) secret: String,
    pub(super) old_secret: Option<String>,
}

/// Limits of concurrent deliveries per replica: per endpoint, per failing endpoint, per theatre, for all failing
/// endpoints; and the number to lease now.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryLimits {
    pub(super) of_endpoint: i64,
    pub(super) of_failing: i64,
    pub(super) of_theatre: i64,
    pub(super) of_all_failing: i64,
    pub(super) now: i64,
}

/// Due deliveries, limited per endpoint, per theatre and for all failing endpoints, minus those that are running.
/// Failing endpoints come last.
const TAKE: &str = "
    WITH busy AS (
        SELECT endpoint.id, endpoint.theatre_id, endpoint.failures > 0 AS is_failing, known.at_work
        FROM UNNEST($3::uuid[], $4::bigint[]) AS known (id, at_work)
        JOIN webhook_endpoints endpoint ON endpoint.id = known.id
    ), due AS (
        SELECT delivery.id, delivery.run_after, endpoint.theatre_id, endpoint.failures > 0 AS is_failing, endpoint.url,
               endpoint.secret, CASE WHEN endpoint.old_until > $1 THEN endpoint.old_secret END AS old_secret
        FROM webhook_endpoints endpoint
        LEFT JOIN busy ON busy.id = endpoint.id
        CROSS JOIN LATERAL (
            SELECT id, run_after FROM webhook_deliveries
            WHERE endpoint_id = endpoint.id AND state = 'waiting' AND run_after <= $1
            ORDER BY run_after, id
            LIMIT greatest(0, CASE WHEN endpoint.failures > 0 THEN $6 ELSE $5 END - coalesce(busy.at_work, 0))) delivery
        WHERE endpoint.state = 'on'
    ), of_theatres AS (
        SELECT due.*,
               row_number() OVER (PARTITION BY theatre_id ORDER BY is_failing, run_after, id)
                   + (SELECT coalesce(sum(at_work), 0) FROM busy WHERE busy.theatre_id = due.theatre_id) AS of_theatre
        FROM due
    ), lined_up AS (
        SELECT of_theatres.*,
               row_number() OVER (PARTITION BY is_failing ORDER BY run_after, id)
                   + (SELECT coalesce(sum(at_work), 0) FROM busy WHERE busy.is_failing) AS of_failing
        FROM of_theatres WHERE of_theatre <= $7
    ), taken AS (
        SELECT * FROM lined_up
        WHERE NOT is_failing OR of_failing <= $8
        ORDER BY is_failing, run_after, id LIMIT $9
    ), locked AS (
        -- Locks only the deliveries to be sent; other replicas may have leased some of them since.
        SELECT id FROM webhook_deliveries
        WHERE id IN (SELECT id FROM taken) AND state = 'waiting' AND run_after <= $1
        FOR UPDATE SKIP LOCKED
    )
    UPDATE webhook_deliveries delivery
    SET tries = delivery.tries + 1, run_after = $2, tried_at = $1
    FROM locked JOIN taken ON taken.id = locked.id, webhook_messages message
    WHERE delivery.id = locked.id AND message.id = delivery.message_id
    RETURNING delivery.id, delivery.tries, message.id AS message_id, message.event, message.body,
              delivery.endpoint_id, taken.url, taken.secret, taken.old_secret";

/// Leases due deliveries until `lease_until`, within `share` and beside the running ones.
pub(super) async fn take(
    pg: &PgPool,
    under_way: &[(Uuid, i64)],
    (now, lease_until): (Timestamp, Timestamp),
    share: DeliveryLimits,
) -> sqlx::Result<Vec<DueDelivery>> {
    let (endpoints, at_work): (Vec<Uuid>, Vec<i64>) = under_way.iter().copied().unzip();
    sqlx::query_as(TAKE)
        .bind_all((to_utc(now), to_utc(lease_until), endpoints, at_work, share.of_endpoint))
        .bind_all((share.of_failing, share.of_theatre, share.of_all_failing, share.now))
        .fetch_all(pg)
        .await
}

/// Locks an endpoint before the outcome of an attempt is recorded.
pub(super) async fn lock_for_outcome(tx: &mut PgConnection, endpoint: Uuid) -> sqlx::Result<()> {
    sqlx::query("SELECT 1 FROM webhook_endpoints WHERE id = $1 FOR NO KEY UPDATE").bind(endpoint).execute(tx).await?;
    Ok(())
}

/// Records the outcome of an attempt; `false` when a later attempt exists or the delivery is no longer waiting.
pub(super) async fn record_attempt(
    tx: &mut PgConnection,
    due: &DueDelivery,
    state: DeliveryState,
    (status, error): (Option<u16>, Option<&str>),
    run_after: Timestamp,
) -> sqlx::Result<bool> {
    let noted = sqlx::query(
        "UPDATE webhook_deliveries SET state = $3, last_status = $4, last_trouble = $5, run_after = $6
         WHERE id = $1 AND tries = $2 AND state = 'waiting'",
    )
    .bind_all((due.id, due.tries, state.as_str(), status.map(i32::from), error, to_utc(run_after)))
    .execute(tx)
    .await?;
    Ok(noted.rows_affected() == 1)
}

/// Resets the count of consecutive failures.
pub(super) async fn reset_failures(tx: &mut PgConnection, endpoint: Uuid) -> sqlx::Result<()> {
    let sql = "UPDATE webhook_endpoints SET failures = 0 WHERE id = $1 AND failures > 0";
    sqlx::query(sql).bind(endpoint).execute(tx).await.map(drop)
}

/// Adds a failure; returns the endpoint and its theatre.
pub(super) async fn add_failure(tx: &mut PgConnection, endpoint: Uuid) -> sqlx::Result<Option<(String, EndpointRow)>> {
    let sql = "UPDATE webhook_endpoints SET failures = failures + 1 WHERE id = $1 RETURNING theatre_id";
    let theatre: Option<String> = sqlx::query_scalar(sql).bind(endpoint).fetch_optional(&mut *tx).await?;
    let Some(theatre) = theatre else { return Ok(None) };
    Ok(lock_endpoint(tx, &theatre, endpoint).await?.map(|row| (theatre, row)))
}

#[derive(platform::FromRow)]
pub(super) struct DeliveryRow {
    id: i64,
    message_id: Uuid,
    event: String,
    subject: String,
    state: String,
    tries: i32,
    last_status: Option<i32>,
    last_trouble: Option<String>,
    happened_at: DateTime<Utc>,
    tried_at: Option<DateTime<Utc>>,
    run_after: DateTime<Utc>,
}

impl DeliveryRow {
    pub(super) fn view(self) -> sqlx::Result<DeliveryView> {
        let text = |at: DateTime<Utc>| rfc3339(from_utc(at));
        let state =
            self.state.parse::<DeliveryState>().map_err(|_| corrupt("webhook_deliveries", "state", &self.state))?;
        Ok(DeliveryView {
            id: self.id,
            message: self.message_id,
            event: event(&self.event)?,
            subject: self.subject,
            state,
            tries: self.tries,
            last_status: self.last_status,
            last_trouble: self.last_trouble,
            happened_at: text(self.happened_at),
            tried_at: self.tried_at.map(text),
            next_at: (state == DeliveryState::Waiting).then(|| text(self.run_after)),
        })
    }
}

/// Returns the deliveries of an endpoint, the newest first.
pub(super) async fn deliveries(pg: &PgPool, endpoint: Uuid, limit: i64) -> sqlx::Result<Vec<DeliveryRow>> {
    let sql = "SELECT delivery.id, delivery.message_id, message.event, message.subject, delivery.state, delivery.tries,
                delivery.last_status, delivery.last_trouble, message.happened_at, delivery.tried_at, delivery.run_after
         FROM webhook_deliveries delivery JOIN webhook_messages message ON message.id = delivery.message_id
         WHERE delivery.endpoint_id = $1 ORDER BY delivery.id DESC LIMIT $2";
    sqlx::query_as(sql).bind_all((endpoint, limit)).fetch_all(pg).await
}

/// Inserts a new delivery of the same message; `None` when the endpoint has no such delivery.
pub(super) async fn replay(
    tx: &mut PgConnection,
    endpoint: Uuid,
    delivery: i64,
    now: Timestamp,
) -> sqlx::Result<Option<i64>> {
    let sql = "INSERT INTO webhook_deliveries (message_id, endpoint_id, run_after)
               SELECT original.message_id, original.endpoint_id, $3
               FROM webhook_deliveries original JOIN webhook_messages message ON message.id = original.message_id
               WHERE original.id = $1 AND original.endpoint_id = $2 FOR KEY SHARE OF message RETURNING id";
    sqlx::query_scalar(sql).bind_all((delivery, endpoint, to_utc(now))).fetch_optional(tx).await
}

/// Deletes messages older than `before` with their deliveries; returns their number. They are locked first, so that no
/// replay adds a delivery concurrently.
pub(super) async fn purge(pg: &PgPool, before: Timestamp, limit: i64) -> sqlx::Result<u64> {
    let mut tx = pg.begin().await?;
    let old: Vec<Uuid> = sqlx::query_scalar(
        "SELECT id FROM webhook_messages WHERE happened_at < $1 ORDER BY happened_at LIMIT $2 FOR UPDATE SKIP LOCKED",
    )
    .bind_all((to_utc(before), limit))
    .fetch_all(&mut *tx)
    .await?;
    sqlx::query("DELETE FROM webhook_deliveries WHERE message_id = ANY ($1)").bind(&old).execute(&mut *tx).await?;
    let gone = sqlx::query("DELETE FROM webhook_messages WHERE id = ANY ($1)").bind(&old).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(gone.rows_affected())
}
