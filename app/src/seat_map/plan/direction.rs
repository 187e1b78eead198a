//! The arrow towards the screen or stage on the map of a section, which does not show it.

use leptos::prelude::*;

use super::drawing::PlanFrame;
use crate::seat_map::room_plan::{RoomPlan, focus_in_words, has_focus};

/// An arrow from a section towards the screen or stage, if there is one.
pub fn direction_view(room: &RoomPlan, section: usize) -> impl IntoView + use<> {
    has_focus(room.plan()).then(|| arrow(room, section))
}

fn arrow(room: &RoomPlan, section: usize) -> impl IntoView + use<> {
    let (plan, rows) = (room.plan(), room.rows(Some(section)).collect::<Vec<_>>());
    let frame = PlanFrame::around(plan, &rows, false);
    let [x, y, _] = plan.focus_at;
    let (dx, dy) = (x - frame.left - frame.width / 2, y - frame.top - frame.height / 2);
    // The arrow is drawn pointing up.
    let turn = f64::from(dx).atan2(f64::from(-dy)).to_degrees().round() as i32;
    let label = focus_in_words(&plan.focus);
    view! {
        <p class="room-direction">
            <svg viewBox="-12 -12 24 24" width="22" height="22" aria-hidden="true" focusable="false">
                <path transform=format!("rotate({turn})") d="M0 9V-8M-6-2 0-8 6-2" fill="none" stroke="currentColor"
                    stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round"></path>
            </svg>
            {label}
        </p>
    }
}
