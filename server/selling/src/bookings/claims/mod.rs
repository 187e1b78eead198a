//! Claims of a single booking, and the refusal when another booking has them.

pub(super) mod area_claims;
pub(super) mod holders;
pub(super) mod on_map;
pub(super) mod seat_claims;

use domain::seats::SeatState;
use domain::time::Timestamp;
use sqlx::PgConnection;

use super::places;
use super::sql::BookingRow;
use crate::{SellingState, holds};
use catalogue::Show;
use http::Problem;
use seats::seat_locks::{FencedSelection, with_map};

/// Seats or places that were granted twice, because the lock store lost the first sale.
#[derive(Debug)]
pub struct LostClaims {
    others: Vec<FencedSelection>,
    problem: Problem,
}

impl LostClaims {
    /// Corrects the map, after the caller has rolled back. Returns the refusal for the buyer; the hold keeps its
    /// other seats. An unavailable lock store is corrected by the outbox, or by the next refusal.
    pub async fn correct_map(self, state: &SellingState, show: &Show) -> Problem {
        for sale in &self.others {
            if let Err(problem) = with_map(state, show, || state.locks.book(show.id, sale)).await {
                tracing::debug!(?problem, show = %show.id, "correcting the map after a lost claim failed");
                break;
            }
        }
        self.problem
    }
}

/// Claims everything in a pending booking until it expires, in the common lock order: places first, then seats. If
/// claims are lost, the caller rolls back.
pub(super) async fn claim_all(
    tx: &mut PgConnection,
    show: &Show,
    pending: &BookingRow,
    now: Timestamp,
) -> sqlx::Result<Option<LostClaims>> {
    let full = area_claims::claim(tx, pending, now).await?;
    if !full.is_empty() {
        let others = places::latest_sales(tx, show.id, &full).await?;
        return Ok(Some(LostClaims { others, problem: holds::places_problem(show, &full) }));
    }
    let lost = seat_claims::claim(tx, pending, now).await?;
    if lost.is_empty() {
        return Ok(None);
    }
    let others = seat_claims::holders(tx, show.id, &lost).await?;
    let taken: Vec<_> = lost.into_iter().map(|seat| (seat, SeatState::Booked)).collect();
    Ok(Some(LostClaims { others, problem: holds::seats_problem(show, &taken) }))
}
