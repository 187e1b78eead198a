//! Ranks positions in a room.

use super::{FocusKind, Layout};

/// Cost of leaving a single seat free: about a third of the distance from the middle to the side.
pub(super) const ORPHAN_COST: f64 = 0.1;
/// Cost per seat pitch between the centres of the two groups, if a party sits in two rows.
pub(super) const OFFSET_COST_PER_PITCH: f64 = 0.02;
/// Best distance from a screen as a share of the room's depth: near the middle of the rows that SMPTE EG 18 recommends.
const SCREEN_DEPTH: f64 = 0.62;
/// Best distance from a stage as a share of the room's depth.
const STAGE_DEPTH: f64 = 0.2;
/// Weight of the distance sideways relative to the distance in depth.
const ASIDE_WEIGHT: f64 = 1.3;

/// Best spot of a room and the scale of distances from it.
pub(super) struct Rank {
    best_spot: (f64, f64),
    half_width: f64,
    depth: f64,
}

impl Rank {
    pub(super) fn of(layout: &Layout) -> Self {
        let (focus, [middle, front, _]) = layout.focus();
        let (mut left, mut right) = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut near, mut far) = (f64::INFINITY, 0.0_f64);
        for seat in 0..layout.seat_count() {
            let Some(((x, y), _)) = layout.place(seat) else { continue };
            (left, right) = (left.min(f64::from(x)), right.max(f64::from(x)));
            let away = f64::from(y - front).abs();
            (near, far) = (near.min(away), far.max(away));
        }
        let share = match focus {
            FocusKind::Screen => SCREEN_DEPTH,
            FocusKind::Stage => STAGE_DEPTH,
        };
        Self {
            best_spot: (f64::from(middle), f64::from(front) + near + (far - near) * share),
            half_width: ((right - left) / 2.0).max(1.0),
            depth: (far - near).max(1.0),
        }
    }

    /// Cost of a position: 0 at the best spot, about 1 at the sides.
    pub(super) fn cost(&self, at: (f64, f64)) -> f64 {
        let aside = (at.0 - self.best_spot.0) / self.half_width;
        let along = (at.1 - self.best_spot.1) / self.depth;
        (ASIDE_WEIGHT * aside * aside + along * along).sqrt()
    }
}
