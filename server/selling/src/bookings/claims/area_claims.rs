//! `area_stock` and `area_claims`: the final guard for places without seats. Whatever state Redis has,
//! an area never has more places claimed and sold than its capacity, and never fewer than zero.
//!
//! Every transaction locks its areas first, in their order, then claims on places, then claims
//! on seats, so transactions do not deadlock. An update of the stock verifies the version it read.

use domain::seats::{AreaIndex, Places};
use domain::time::Timestamp;
use sqlx::PgConnection;
use uuid::Uuid;

use super::seat_claims;
use crate::bookings::sql::BookingRow;
use catalogue::{alive_since, claim_is_alive};
use platform::clock::to_utc;
use platform::database::BindAll;

#[derive(Clone, Copy, Debug, platform::FromRow)]
struct Stock {
    area_no: i16,
    capacity: i32,
    claimed: i32,
    sold: i32,
    version: i64,
}

impl Stock {
    /// Free places. A constraint of the table keeps it from being negative.
    const fn left(&self) -> i32 {
        self.capacity - self.claimed - self.sold
    }
}

/// Claims the booking's places until it expires. Returns the areas with too few places, and their free places. If any
/// are returned, the caller rolls back.
pub(crate) async fn claim(
    tx: &mut PgConnection,
    row: &BookingRow,
    now: Timestamp,
) -> sqlx::Result<Vec<(AreaIndex, u32)>> {
    let mut full = Vec::new();
    for places in &row.places {
        if let Some(left) = claim_in(tx, row, *places, now).await? {
            full.push((places.area, left));
        }
    }
    Ok(full)
}

/// Claims places in one area. Returns the free places if they are too few.
async fn claim_in(
    tx: &mut PgConnection,
    row: &BookingRow,
    places: Places,
    now: Timestamp,
) -> sqlx::Result<Option<u32>> {
    let (area, count) = (places.area.cast_signed(), places.count.cast_signed());
    let Some(seen) = read(tx, row.show_id, area).await? else { return Ok(Some(0)) };
    let taken = seen.left() >= count && try_update_stock(tx, row.show_id, seen, count, 0).await?;
    if !taken {
        // Another transaction was faster, or the area is full: lock the row, then decide.
        let Some(mut stock) = lock(tx, row.show_id, &[area]).await?.pop() else { return Ok(Some(0)) };
        if stock.left() < count {
            stock = release_expired(tx, row.show_id, stock, now).await?;
        }
        if stock.left() < count {
            return Ok(Some(stock.left().unsigned_abs()));
        }
        update_locked_stock(tx, row.show_id, stock, count, 0).await?;
    }
    sqlx::query(
        "INSERT INTO area_claims (booking_id, show_id, area_no, quantity, fence, state, expires_at)
         VALUES ($1, $2, $3, $4, $5, 'claimed', $6)",
    )
    .bind_all((row.id, row.show_id, area, count, row.fence, to_utc(row.machine.expires_at)))
    .execute(tx)
    .await?;
    Ok(None)
}

/// Releases expired claims that were not released yet, and returns the new stock.
async fn release_expired(tx: &mut PgConnection, show: Uuid, stock: Stock, now: Timestamp) -> sqlx::Result<Stock> {
    let expired: Vec<i32> = sqlx::query_scalar(concat!(
        "UPDATE area_claims SET state = 'released'
         WHERE show_id = $1 AND area_no = $2 AND state = 'claimed' AND NOT ",
        claim_is_alive!("area_claims", "$3"),
        " RETURNING quantity",
    ))
    .bind_all((show, stock.area_no, alive_since(now)))
    .fetch_all(&mut *tx)
    .await?;
    let count: i32 = expired.iter().sum();
    if count == 0 {
        return Ok(stock);
    }
    update_locked_stock(tx, show, stock, -count, 0).await?;
    Ok(Stock { claimed: stock.claimed - count, version: stock.version + 1, ..stock })
}

/// Turns the booking's claims into a sale, places and seats together; `false`, and nothing changed, unless
/// every claim still belongs to the booking with the same fence.
pub(crate) async fn sell(tx: &mut PgConnection, row: &BookingRow) -> sqlx::Result<bool> {
    if row.places.is_empty() {
        return seat_claims::sell(tx, row).await;
    }
    let stocks = lock(tx, row.show_id, &areas_of(row)).await?;
    let own = own_claims(tx, row, &["claimed"]).await?;
    let has_all = own.iter().map(AreaClaimRow::places).eq(row.places.iter().copied());
    if !has_all || !seat_claims::sell(tx, row).await? {
        return Ok(false);
    }
    set_state(tx, row, &own, "sold").await?;
    for (stock, claim) in pair_with_stock(&stocks, &own) {
        update_locked_stock(tx, row.show_id, stock, -claim.quantity, claim.quantity).await?;
    }
    Ok(true)
}

/// Releases the booking's places. A repeat finds none.
pub(crate) async fn release(tx: &mut PgConnection, row: &BookingRow) -> sqlx::Result<()> {
    if row.places.is_empty() {
        return Ok(());
    }
    let stocks = lock(tx, row.show_id, &areas_of(row)).await?;
    let own = own_claims(tx, row, &["claimed", "sold"]).await?;
    set_state(tx, row, &own, "released").await?;
    for (stock, claim) in pair_with_stock(&stocks, &own) {
        let (claimed, sold) = if claim.state == "sold" { (0, -claim.quantity) } else { (-claim.quantity, 0) };
        update_locked_stock(tx, row.show_id, stock, claimed, sold).await?;
    }
    Ok(())
}

#[derive(Clone, Debug, platform::FromRow)]
struct AreaClaimRow {
    area_no: i16,
    quantity: i32,
    state: String,
}

impl AreaClaimRow {
    const fn places(&self) -> Places {
        Places { area: self.area_no.cast_unsigned(), count: self.quantity.cast_unsigned() }
    }
}

/// Returns the booking's claims in one of these states, by booking and fence, locked.
async fn own_claims(tx: &mut PgConnection, row: &BookingRow, states: &[&str]) -> sqlx::Result<Vec<AreaClaimRow>> {
    let sql = "SELECT area_no, quantity, state FROM area_claims
               WHERE booking_id = $1 AND show_id = $2 AND fence = $3 AND state = ANY($4)
               ORDER BY area_no FOR UPDATE";
    sqlx::query_as(sql).bind_all((row.id, row.show_id, row.fence, states)).fetch_all(tx).await
}

/// Changes the state of claims that the previous statement locked.
async fn set_state(tx: &mut PgConnection, row: &BookingRow, own: &[AreaClaimRow], state: &str) -> sqlx::Result<()> {
    let moved = sqlx::query(
        "UPDATE area_claims claim SET state = $4
         FROM unnest($2::smallint[], $3::text[]) AS known (area_no, state)
         WHERE claim.booking_id = $1 AND claim.area_no = known.area_no AND claim.state = known.state
           AND claim.fence = $5",
    )
    .bind_all((row.id, own.iter().map(|claim| claim.area_no).collect::<Vec<_>>()))
    .bind_all((own.iter().map(|claim| claim.state.clone()).collect::<Vec<_>>(), state, row.fence))
    .execute(tx)
    .await?;
    assert_eq!(moved.rows_affected(), own.len() as u64, "the rows were locked one statement ago");
    Ok(())
}

fn areas_of(row: &BookingRow) -> Vec<i16> {
    row.places.iter().map(|places| places.area.cast_signed()).collect()
}

/// Pairs each claim with the stock of its area; both are ordered by area, one claim per area.
fn pair_with_stock<'a>(
    stocks: &'a [Stock],
    own: &'a [AreaClaimRow],
) -> impl Iterator<Item = (Stock, &'a AreaClaimRow)> {
    own.iter().filter_map(|claim| {
        let stock = stocks.iter().find(|stock| stock.area_no == claim.area_no)?;
        Some((*stock, claim))
    })
}

async fn read(tx: &mut PgConnection, show: Uuid, area: i16) -> sqlx::Result<Option<Stock>> {
    let sql = "SELECT area_no, capacity, claimed, sold, version FROM area_stock WHERE show_id = $1 AND area_no = $2";
    sqlx::query_as(sql).bind_all((show, area)).fetch_optional(tx).await
}

/// Returns the stock of these areas, locked in their order.
async fn lock(tx: &mut PgConnection, show: Uuid, areas: &[i16]) -> sqlx::Result<Vec<Stock>> {
    let sql = "SELECT area_no, capacity, claimed, sold, version FROM area_stock
               WHERE show_id = $1 AND area_no = ANY($2) ORDER BY area_no FOR UPDATE";
    sqlx::query_as(sql).bind_all((show, areas)).fetch_all(tx).await
}

/// Locks the areas of two bookings, which may be of two shows, before either is claimed or released. The single order
/// prevents a deadlock of two exchanges in opposite directions.
pub(crate) async fn lock_both(tx: &mut PgConnection, rows: [&BookingRow; 2]) -> sqlx::Result<()> {
    let mut touched: Vec<(Uuid, i16)> =
        rows.iter().flat_map(|row| areas_of(row).into_iter().map(|area| (row.show_id, area))).collect();
    touched.sort_unstable();
    touched.dedup();
    for (show, area) in touched {
        lock(tx, show, &[area]).await?;
    }
    Ok(())
}

/// Updates the counters of an area if its version is unchanged; `false` when another transaction was faster.
async fn try_update_stock(
    tx: &mut PgConnection,
    show: Uuid,
    from: Stock,
    claimed: i32,
    sold: i32,
) -> sqlx::Result<bool> {
    let sql = "UPDATE area_stock SET claimed = claimed + $4, sold = sold + $5, version = version + 1
               WHERE show_id = $1 AND area_no = $2 AND version = $3";
    let updated = sqlx::query(sql).bind_all((show, from.area_no, from.version, claimed, sold)).execute(tx).await?;
    Ok(updated.rows_affected() == 1)
}

/// Updates the counters of an area whose row this transaction has locked.
async fn update_locked_stock(
    tx: &mut PgConnection,
    show: Uuid,
    from: Stock,
    claimed: i32,
    sold: i32,
) -> sqlx::Result<()> {
    let updated = try_update_stock(tx, show, from, claimed, sold).await?;
    assert!(updated, "area {} of {show} moved under its lock", from.area_no);
    Ok(())
}
