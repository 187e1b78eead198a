//! The input of a move: both layouts, the sold bookings, and their places in the new layout.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::layout::Layout;
use domain::money::Currency;
use domain::pricing::PriceList;
use domain::relocation::{AreaStock, Party, PartyOutcome, PricedRoom, kept_by_name, relocate};
use domain::seats::SeatIndex;
use sqlx::PgConnection;
use uuid::Uuid;

use super::sql::{self, FloorRow, ShowNow, SoldRow};
use crate::BackofficeState;
use crate::organiser::{self, ScreenHouseSeat};
use http::{Code, Problem};

/// The current and the new layout of a show.
#[derive(Clone)]
pub(super) struct LayoutPair {
    pub before: Arc<Layout>,
    pub after: Arc<Layout>,
}

impl LayoutPair {
    /// Loads both layouts. Takes a connection, so call it before a transaction begins.
    pub async fn load(state: &BackofficeState, before: Uuid, after: Uuid) -> Result<Self, Problem> {
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
) -> Result<MovePlacement, Problem> {
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
