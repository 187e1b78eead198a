//! Previews a move.

use std::collections::BTreeMap;

use domain::api::moving::{MoveCount, MoveLine, MovePreview};
use uuid::Uuid;

use super::placement::{self, LayoutPair, Mover};
use super::sql::{self, SoldRow};
use crate::BackofficeState;
use http::{ApiResult, Problem};

/// Maximum number of bookings in a preview.
const MAX_LINES: usize = 100;

/// Previews the move of a show of this version to this screen (slug and name) and layout at these prices. Changes
/// nothing. `answer_until` is the deadline of offers, local time.
///
/// # Errors
/// 404 for an unknown show, 400 when a category has no price.
pub async fn preview(
    state: &BackofficeState,
    (show, version): (Uuid, u32),
    (screen, screen_name, layout): (&str, String, Uuid),
    prices: &BTreeMap<String, i64>,
    answer_until: String,
) -> ApiResult<MovePreview> {
    let known = sql::show(&mut *state.pg.acquire().await?, show).await?;
    let known = known.ok_or_else(|| Problem::not_found("show"))?;
    let rooms = LayoutPair::load(state, known.layout_id, layout).await?;
    let mut connection = state.pg.acquire().await?;
    let open = sql::count_open(&mut connection, show).await?;
    let placement =
        placement::compute_placement(&mut connection, show, &known, &rooms, (screen, layout), prices).await?;
    drop(connection);
    let (movers, unplaced) = placement::divide(&placement);
    let (same, others): (Vec<&Mover<'_>>, Vec<&Mover<'_>>) = movers.iter().partition(|mover| mover.is_same);
    let offered = others.iter().map(|mover| MoveLine {
        reference: mover.row.reference.clone(),
        before: mover.before(),
        after: mover.after(&rooms.after),
    });
    let refunded = unplaced.iter().map(|row| MoveLine {
        reference: row.reference.clone(),
        before: placement::before(row),
        after: Vec::new(),
    });
    let places: u32 = rooms.after.areas().iter().map(|area| area.capacity).sum();
    Ok(MovePreview {
        screen: screen.to_owned(),
        screen_name,
        version,
        layout,
        same: count(same.iter().map(|mover| mover.row)),
        offered: count(others.iter().map(|mover| mover.row)),
        refunded: count(unplaced.iter().copied()),
        open: u32::try_from(open).unwrap_or(u32::MAX),
        house_seats_lost: u32::try_from(placement.lost).unwrap_or(u32::MAX),
        seats: rooms.after.seat_count() + places,
        lines: refunded.chain(offered).take(MAX_LINES).collect(),
        more: u32::try_from((others.len() + unplaced.len()).saturating_sub(MAX_LINES)).unwrap_or(u32::MAX),
        answer_until,
    })
}

fn count<'a>(rows: impl Iterator<Item = &'a SoldRow>) -> MoveCount {
    rows.fold(MoveCount::default(), |sum, row| {
        let places: u32 = row.counts.iter().map(|count| count.unsigned_abs()).sum();
        MoveCount {
            bookings: sum.bookings + 1,
            seats: sum.seats + u32::try_from(row.seats.len()).unwrap_or(u32::MAX) + places,
        }
    })
}
