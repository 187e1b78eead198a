//! Converts moved places to labels and rows of the new layout.

use domain::layout::Layout;
use domain::relocation::{PartyOutcome, PlaceAssignment};
use uuid::Uuid;

use super::placement::MovePlacement;
use super::sql::SoldRow;

/// A booking that moves with the show.
pub(super) struct Mover<'a> {
    pub row: &'a SoldRow,
    /// It keeps the same places.
    pub is_same: bool,
    pub carried: &'a PlaceAssignment,
}

/// Splits the bookings into those that move and those without a place.
pub(super) fn divide(placement: &MovePlacement) -> (Vec<Mover<'_>>, Vec<&SoldRow>) {
    let (mut movers, mut others) = (Vec::new(), Vec::new());
    for (row, fate) in placement.sold.iter().zip(&placement.fates) {
        match fate {
            PartyOutcome::Kept(carried) => movers.push(Mover { row, is_same: true, carried }),
            PartyOutcome::Offered(carried) => movers.push(Mover { row, is_same: false, carried }),
            PartyOutcome::Unplaced => others.push(row),
        }
    }
    (movers, others)
}

impl Mover<'_> {
    /// Returns labels of its places in the current layout.
    pub fn before(&self) -> Vec<String> {
        before(self.row)
    }

    /// Returns labels of its places in the new layout, in seat order.
    pub fn after(&self, room: &Layout) -> Vec<String> {
        let mut seats: Vec<u32> = self.carried.seats.iter().map(|(_, seat)| *seat).collect();
        seats.sort_unstable();
        let seats = seats.into_iter().filter_map(|seat| room.label(seat));
        let places = self
            .carried
            .places
            .iter()
            .filter_map(|(_, area, count)| Some(in_words(*count, &room.areas().get(usize::from(*area))?.name)));
        seats.chain(places).collect()
    }
}

/// Returns labels of the places of a booking as sold.
pub(super) fn before(row: &SoldRow) -> Vec<String> {
    let places = row.counts.iter().zip(&row.area_names).map(|(count, name)| in_words(count.unsigned_abs(), name));
    row.labels.iter().cloned().chain(places).collect()
}

fn in_words(count: u32, area: &str) -> String {
    if count == 1 { area.to_owned() } else { format!("{count} × {area}") }
}

/// Moved seats in columns: booking, old number, new number, label and category.
#[derive(Default)]
pub(super) struct SeatColumns {
    pub bookings: Vec<Uuid>,
    pub fences: Vec<i64>,
    pub from: Vec<i32>,
    pub to: Vec<i32>,
    pub labels: Vec<String>,
    pub categories: Vec<String>,
}

/// Moved places in areas, in columns.
#[derive(Default)]
pub(super) struct PlaceColumns {
    pub bookings: Vec<Uuid>,
    pub fences: Vec<i64>,
    pub from: Vec<i16>,
    pub to: Vec<i16>,
    pub counts: Vec<i32>,
    pub names: Vec<String>,
    pub categories: Vec<String>,
}

/// Returns the seats of all moved bookings.
pub(super) fn seats(movers: &[Mover<'_>], room: &Layout) -> SeatColumns {
    let mut columns = SeatColumns::default();
    for mover in movers {
        for (from, to) in &mover.carried.seats {
            let Some(seat) = room.seat(*to) else { continue };
            columns.bookings.push(mover.row.id);
            columns.fences.push(mover.row.fence);
            columns.from.push(from.cast_signed());
            columns.to.push(to.cast_signed());
            columns.categories.push(room.categories()[usize::from(seat.category)].label().to_owned());
            columns.labels.push(seat.label);
        }
    }
    columns
}

/// Returns the places of all moved bookings.
pub(super) fn places(movers: &[Mover<'_>], room: &Layout) -> PlaceColumns {
    let mut columns = PlaceColumns::default();
    for mover in movers {
        for (from, to, count) in &mover.carried.places {
            let Some(area) = room.areas().get(usize::from(*to)) else { continue };
            let category = room.categories().iter().find(|category| category.name == area.category);
            columns.bookings.push(mover.row.id);
            columns.fences.push(mover.row.fence);
            columns.from.push(from.cast_signed());
            columns.to.push(to.cast_signed());
            columns.counts.push(count.cast_signed());
            columns.names.push(area.name.clone());
            columns.categories.push(category.map_or(area.category.as_str(), |known| known.label()).to_owned());
        }
    }
    columns
}
