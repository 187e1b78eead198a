//! How good a place is.

use super::{FocusKind, Layout};

/// What leaving one seat alone costs: about a third of the way from the middle to the side.
pub(super) const COST_AN_ORPHAN: f64 = 0.1;
/// What sitting one seat aside of one's friends in the next row costs.
pub(super) const COST_A_PITCH_ASIDE: f64 = 0.02;
/// Before a screen one sits best this far back, as a share of the room's depth: near the middle of what
/// SMPTE EG 18 recommends for its rows.
const SCREEN_DEPTH: f64 = 0.62;
/// Before a stage one wants to be close.
const STAGE_DEPTH: f64 = 0.2;
/// Aside counts this much more than too near or too far.
const ASIDE_WEIGHT: f64 = 1.3;

/// The best place of a room and how fast it gets worse around it.
pub(super) struct Rank {
    best: (f64, f64),
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
            best: (f64::from(middle), f64::from(front) + near + (far - near) * share),
            half_width: ((right - left) / 2.0).max(1.0),
            depth: (far - near).max(1.0),
        }
    }

    /// 0 at the best place, about 1 at the sides.
    pub(super) fn cost(&self, at: (f64, f64)) -> f64 {
        let aside = (at.0 - self.best.0) / self.half_width;
        let along = (at.1 - self.best.1) / self.depth;
        (ASIDE_WEIGHT * aside * aside + along * along).sqrt()
    }
}
