//! What a move stands on: both rooms, everybody who has places in the first, and where they would sit in the second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::layout::Layout;
use domain::money::Currency;
use domain::pricing::PriceList;
use domain::relocation::{Fate, Floor, Party, Room, kept_by_name, relocate};
use domain::seats::SeatIndex;
use sqlx::PgConnection;
use uuid::Uuid;

use super::sql::{self, FloorRow, ShowNow, SoldRow};
use crate::BackofficeState;
use crate::organiser::{self, ScreenHouseSeat};
use http::{Code, Problem};

/// The room a show is in, and the one it is to be in.
#[derive(Clone)]
pub(super) struct Rooms {
    pub before: Arc<Layout>,
    pub after: Arc<Layout>,
}

impl Rooms {
    /// Reads them. Takes a connection, so it is called before a transaction is begun.
    pub async fn load(state: &BackofficeState, before: Uuid, after: Uuid) -> Result<Self, Problem> {
        Ok(Self { before: state.catalogue.layout(before).await?, after: state.catalogue.layout(after).await? })
    }
}

/// Everybody's place.
pub(super) struct Ground {
    /// Sold bookings in the order in which they were made.
    pub sold: Vec<SoldRow>,
    /// Where each of them sits.
    pub fates: Vec<Fate>,
    /// Seats the house keeps in this show alone: before and after.
    pub kept: Vec<(SeatIndex, SeatIndex)>,
    /// Seats of that kind that have no like there.
    pub lost: usize,
    /// Seats the other screen keeps for the house in every show, as far as nobody sits there.
    pub standing: Vec<ScreenHouseSeat>,
}

/// Looks at who has places in a show, and where they would sit.
pub(super) async fn survey(
    tx: &mut PgConnection,
    id: Uuid,
    show: &ShowNow,
    rooms: &Rooms,
    (screen, layout): (&str, Uuid),
    prices_there: &BTreeMap<String, i64>,
) -> Result<Ground, Problem> {
    let sold = sql::sold(tx, id).await?;
    let floors = sql::floors(tx, id).await?;
    let currency = Currency::parse(&show.currency);
    let currency = currency.ok_or_else(|| Problem::internal(&format!("shows.currency of {id} is none")))?;
    let before = PriceList { currency, by_category: show.prices.0.clone() };
    let after = PriceList { currency, by_category: prices_there.clone() };
    // Those its screen keeps in every show stay behind: the other one has its own.
    let left_behind = sql::standing_seats(tx, id).await?;
    let blocked = show.blocked.iter().filter(|seat| !left_behind.contains(seat));
    let blocked: Vec<SeatIndex> = blocked.map(|seat| seat.cast_unsigned()).collect();
    let standing = organiser::standing_in(tx, screen, layout).await?;
    let rooms = rooms.clone();
    // An arena takes long enough that it would hold up every request on this thread.
    let seated = tokio::task::spawn_blocking(move || {
        let (before, after) = (room_before(&rooms.before, &before, floors)?, Room::of(&rooms.after, &after)?);
        let kept = kept_by_name(&before, &after, &blocked);
        let parties: Vec<Party> = sold.iter().map(party).collect();
        let (fates, standing) = seat(&before, &after, &kept, standing, &parties);
        let lost = blocked.len() - kept.len();
        Some(Ground { sold, fates, kept, lost, standing })
    });
    let ground = seated.await.map_err(|cause| Problem::internal(&cause))?;
    ground.ok_or_else(|| Problem::new(Code::PriceInvalid, "A category of one of the two rooms has no price."))
}

/// Where everybody sits, and which standing seats the house keeps there. Buyers come before the house: those whose
/// place exists get it, and where a buyer would find none, the house keeps only what no buyer needs.
fn seat(
    before: &Room,
    after: &Room,
    kept: &[(SeatIndex, SeatIndex)],
    standing: Vec<ScreenHouseSeat>,
    parties: &[Party],
) -> (Vec<Fate>, Vec<ScreenHouseSeat>) {
    let by_hand: BTreeSet<SeatIndex> = kept.iter().map(|(_, seat)| *seat).collect();
    let sold: Vec<SeatIndex> = parties.iter().flat_map(|party| party.seats.iter().copied()).collect();
    let same: BTreeSet<SeatIndex> = kept_by_name(before, after, &sold).into_iter().map(|(_, seat)| seat).collect();
    let wanted = standing.iter().map(|kept| kept.seat).filter(|seat| !same.contains(seat));
    let house: BTreeSet<SeatIndex> = by_hand.iter().copied().chain(wanted).collect();
    let mut fates = relocate(before, after, &house, parties);
    if house.len() > by_hand.len() && fates.contains(&Fate::Nowhere) {
        fates = relocate(before, after, &by_hand, parties);
    }
    let taken: BTreeSet<SeatIndex> = fates.iter().flat_map(seats_of).collect();
    let is_free = |kept: &ScreenHouseSeat| !taken.contains(&kept.seat) && !by_hand.contains(&kept.seat);
    (fates, standing.into_iter().filter(is_free).collect())
}

fn seats_of(fate: &Fate) -> impl Iterator<Item = SeatIndex> + '_ {
    let carried = match fate {
        Fate::Same(carried) | Fate::Other(carried) => carried.seats.as_slice(),
        Fate::Nowhere => &[],
    };
    carried.iter().map(|(_, seat)| *seat)
}

/// The room as the show sells it: its areas are those that were opened for it.
fn room_before(layout: &Layout, prices: &PriceList, floors: Vec<FloorRow>) -> Option<Room> {
    let floor = |row: FloorRow| {
        Some(Floor {
            area: row.area_no.cast_unsigned(),
            price: prices.price(&row.category)?.minor,
            name: row.name,
            capacity: row.capacity.unsigned_abs(),
        })
    };
    let areas = floors.into_iter().map(floor).collect::<Option<_>>()?;
    Some(Room { areas, ..Room::of(layout, prices)? })
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
