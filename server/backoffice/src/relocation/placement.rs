//! The input of a move: both layouts, the sold bookings, and their places in the new layout.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::layout::Layout;
use domain::money::Currency;
use domain::pricing::PriceList;
use domain::relocation::{AreaStock, Party, PartyOutcome, PlaceAssignment, PricedRoom, kept_by_name, relocate};
use domain::seats::SeatIndex;
use sqlx::PgConnection;
use uuid::Uuid;

use super::sql::{self, FloorRow, ShowNow, SoldRow};
use crate::BackofficeState;
use crate::organiser::{self, ScreenHouseSeat};
use http::{ApiResult, Code, Problem};

/// The current and the new layout of a show.
#[derive(Clone)]
pub(crate) struct LayoutPair {
    pub before: Arc<Layout>,
    pub after: Arc<Layout>,
}

impl LayoutPair {
    /// Loads both layouts. Takes a connection, so call it before a transaction begins.
    pub async fn load(state: &BackofficeState, before: Uuid, after: Uuid) -> ApiResult<Self> {
        Ok(Self { before: state.catalogue.layout(before).await?, after: state.catalogue.layout(after).await? })
    }
}

/// The places of all bookings and house seats.
pub(super) struct MovePlacement {
    /// Sold bookings in the order of their creation.
    pub sold: Vec<SoldRow>,
    /// The outcome of each of them.
    pub fates: Vec<PartyOutcome>,
    /// House seats of this show alone: before and after.
    pub kept: Vec<(SeatIndex, SeatIndex)>,
    /// Number of such house seats without an equivalent in the new layout.
    pub lost: usize,
    /// Standing house seats of the new screen that no booking gets.
    pub standing: Vec<ScreenHouseSeat>,
}

/// Reads the bookings of a show and computes their places in the new layout.
pub(super) async fn compute_placement(
    tx: &mut PgConnection,
    id: Uuid,
    show: &ShowNow,
    rooms: &LayoutPair,
    (screen, layout): (&str, Uuid),
    prices_there: &BTreeMap<String, i64>,
) -> ApiResult<MovePlacement> {
    let sold = sql::sold(tx, id).await?;
    let floors = sql::floors(tx, id).await?;
    let currency = Currency::parse(&show.currency);
    let currency = currency.ok_or_else(|| Problem::internal(&format!("shows.currency of {id} is none")))?;
    let before = PriceList { currency, by_category: show.prices.0.clone() };
    let after = PriceList { currency, by_category: prices_there.clone() };
    // Standing seats of the current screen are left out: the new screen has its own.
    let left_behind = sql::standing_seats(tx, id).await?;
    let blocked = show.blocked.iter().filter(|seat| !left_behind.contains(seat));
    let blocked: Vec<SeatIndex> = blocked.map(|seat| seat.cast_unsigned()).collect();
    let standing = organiser::standing_in(tx, screen, layout).await?;
    let rooms = rooms.clone();
    // For an arena this is slow: a blocking thread keeps the other requests of this thread responsive.
    let seated = tokio::task::spawn_blocking(move || {
        let (before, after) = (room_before(&rooms.before, &before, floors)?, PricedRoom::of(&rooms.after, &after)?);
        let kept = kept_by_name(&before, &after, &blocked);
        let parties: Vec<Party> = sold.iter().map(party).collect();
        let (fates, standing) = seat(&before, &after, &kept, standing, &parties);
        let lost = blocked.len() - kept.len();
        Some(MovePlacement { sold, fates, kept, lost, standing })
    });
    let placement = seated.await.map_err(|cause| Problem::internal(&cause))?;
    placement.ok_or_else(|| Problem::new(Code::PriceInvalid, "A category of one of the two rooms has no price."))
}

/// Computes the outcome of all bookings and the remaining standing seats. Buyers take precedence over the house: a seat
/// with the same label stays the buyer's. If a booking found no places, standing seats are used as well.
fn seat(
    before: &PricedRoom,
    after: &PricedRoom,
    kept: &[(SeatIndex, SeatIndex)],
    standing: Vec<ScreenHouseSeat>,
    parties: &[Party],
) -> (Vec<PartyOutcome>, Vec<ScreenHouseSeat>) {
    let by_hand: BTreeSet<SeatIndex> = kept.iter().map(|(_, seat)| *seat).collect();
    let sold: Vec<SeatIndex> = parties.iter().flat_map(|party| party.seats.iter().copied()).collect();
    let same: BTreeSet<SeatIndex> = kept_by_name(before, after, &sold).into_iter().map(|(_, seat)| seat).collect();
    let wanted = standing.iter().map(|kept| kept.seat).filter(|seat| !same.contains(seat));
    let house: BTreeSet<SeatIndex> = by_hand.iter().copied().chain(wanted).collect();
    let mut fates = relocate(before, after, &house, parties);
    if house.len() > by_hand.len() && fates.contains(&PartyOutcome::Unplaced) {
        fates = relocate(before, after, &by_hand, parties);
    }
    let taken: BTreeSet<SeatIndex> = fates.iter().flat_map(seats_of).collect();
    let is_free = |kept: &ScreenHouseSeat| !taken.contains(&kept.seat) && !by_hand.contains(&kept.seat);
    (fates, standing.into_iter().filter(is_free).collect())
}

fn seats_of(fate: &PartyOutcome) -> impl Iterator<Item = SeatIndex> + '_ {
    let carried = match fate {
        PartyOutcome::Kept(carried) | PartyOutcome::Offered(carried) => carried.seats.as_slice(),
        PartyOutcome::Unplaced => &[],
    };
    carried.iter().map(|(_, seat)| *seat)
}

/// The current layout as the show sells it, with the areas opened for it.
fn room_before(layout: &Layout, prices: &PriceList, floors: Vec<FloorRow>) -> Option<PricedRoom> {
    let floor = |row: FloorRow| {
        Some(AreaStock {
            area: row.area_no.cast_unsigned(),
            price: prices.price(&row.category)?.minor,
            name: row.name,
            capacity: row.capacity.unsigned_abs(),
        })
    };
    let areas = floors.into_iter().map(floor).collect::<Option<_>>()?;
    Some(PricedRoom { areas, ..PricedRoom::of(layout, prices)? })
}

fn party(row: &SoldRow) -> Party {
    Party {
        seats: row.seats.iter().map(|seat| seat.cast_unsigned()).collect(),
        places: row
            .areas
            .iter()
            .zip(&row.counts)
            .map(|(area, count)| (area.cast_unsigned(), count.unsigned_abs()))
            .collect(),
    }
}

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
