//! `booking_places`: the places of bookings as agreed, and the sales that correct the lock store's counts.

use domain::api::PlaceLine;
use domain::money::{Currency, Money};
use domain::seats::{AreaIndex, Places};
use sqlx::PgConnection;
use uuid::Uuid;

use super::sql::{self, BookingRow};
use platform::database::BindAll;
use seats::seat_locks::FencedSelection;

/// Maximum sales that are sent to the lock store after it sold places twice: those of the highest fences,
/// because it loses the latest first.
const MAX_RESENT_SALES: i64 = 64;

#[derive(platform::FromRow)]
struct PlaceRow {
    area_no: i16,
    quantity: i32,
    name: String,
    category: String,
    price_minor: i64,
}

/// Parses `{area, quantity, area, quantity, …}`, as a booking is selected with; `None` for invalid values.
pub(super) fn read(flat: &[i32]) -> Option<Vec<Places>> {
    let places = |pair: &[i32]| {
        let (area, count) = (AreaIndex::try_from(pair[0]).ok()?, u32::try_from(*pair.get(1)?).ok()?);
        Some(Places { area, count })
    };
    flat.chunks(2).map(places).collect()
}

pub(super) async fn replace_places(tx: &mut PgConnection, id: Uuid, lines: &[PlaceLine]) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM booking_places WHERE booking_id = $1").bind(id).execute(&mut *tx).await?;
    sqlx::query(
        "INSERT INTO booking_places (booking_id, area_no, quantity, name, category, price_minor)
         SELECT $1, * FROM unnest($2::smallint[], $3::integer[], $4::text[], $5::text[], $6::bigint[])",
    )
    .bind(id)
    .bind(lines.iter().map(|line| line.area.cast_signed()).collect::<Vec<_>>())
    .bind(lines.iter().map(|line| line.quantity.cast_signed()).collect::<Vec<_>>())
    .bind(lines.iter().map(|line| line.label.clone()).collect::<Vec<_>>())
    .bind(lines.iter().map(|line| line.category.clone()).collect::<Vec<_>>())
    .bind(lines.iter().map(|line| line.price.minor).collect::<Vec<_>>())
    .execute(tx)
    .await?;
    Ok(())
}

pub(super) async fn of_booking(
    tx: &mut PgConnection,
    row: &BookingRow,
    currency: Currency,
) -> sqlx::Result<Vec<PlaceLine>> {
    if row.places.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT area_no, quantity, name, category, price_minor FROM booking_places
               WHERE booking_id = $1 ORDER BY area_no";
    let rows: Vec<PlaceRow> = sqlx::query_as(sql).bind(row.id).fetch_all(tx).await?;
    let line = |row: PlaceRow| PlaceLine {
        area: row.area_no.cast_unsigned(),
        label: row.name,
        category: row.category,
        price: Money::new(row.price_minor, currency),
        quantity: row.quantity.cast_unsigned(),
    };
    Ok(rows.into_iter().map(line).collect())
}

/// Returns the latest sales with places in these areas of a show, to correct a lock store that lost some.
pub(super) async fn latest_sales(
    tx: &mut PgConnection,
    show: Uuid,
    areas: &[(AreaIndex, u32)],
) -> sqlx::Result<Vec<FencedSelection>> {
    let latest: Vec<Uuid> = sqlx::query_scalar(
        "SELECT booking_id FROM area_claims
         WHERE show_id = $1 AND area_no = ANY($2) AND state <> 'released'
         ORDER BY fence DESC LIMIT $3",
    )
    .bind_all((show, areas.iter().map(|(area, _)| area.cast_signed()).collect::<Vec<_>>(), MAX_RESENT_SALES))
    .fetch_all(&mut *tx)
    .await?;
    let mut sales = Vec::with_capacity(latest.len());
    for id in latest {
        sales.extend(sql::find(&mut *tx, id).await?.map(|row| row.sale()));
    }
    Ok(sales)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_parsed_in_pairs_and_half_a_pair_is_rejected() {
        let read_back = read(&[0, 2, 3, 10]).expect("two pairs");
        assert_eq!(read_back, [Places { area: 0, count: 2 }, Places { area: 3, count: 10 }]);
        assert_eq!(read(&[]), Some(vec![]));
        assert_eq!(read(&[1]), None);
        assert_eq!(read(&[-1, 2]), None);
    }
}
