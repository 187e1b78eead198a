//! The progress of a show's sale, which determines how many its waiting room admits.

use domain::time::Timestamp;
use sqlx::PgPool;
use uuid::Uuid;

use platform::clock::to_utc;

/// The progress of a sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Demand {
    unsold_places: i64,
    bought: i64,
}

impl Demand {
    /// Unsold places of its areas, held and claimed ones included.
    #[must_use]
    pub const fn unsold_places(&self) -> u64 {
        self.unsold_places.unsigned_abs()
    }

    /// Bookings that were confirmed since the given time, and still are.
    #[must_use]
    pub const fn bought(&self) -> u64 {
        self.bought.unsigned_abs()
    }
}

/// Reads the progress of a sale.
pub async fn read_demand(pg: &PgPool, show: Uuid, since: Timestamp) -> Result<Demand, sqlx::Error> {
    sqlx::query_as(
        "SELECT (SELECT COALESCE(sum(capacity - sold), 0)::bigint FROM area_stock WHERE show_id = $1) AS unsold_places,
                (SELECT count(*) FROM bookings
                 WHERE show_id = $1 AND NOT is_open AND state = 'CONFIRMED' AND updated_at >= $2) AS bought",
    )
    .bind(show)
    .bind(to_utc(since))
    .fetch_one(pg)
    .await
}
