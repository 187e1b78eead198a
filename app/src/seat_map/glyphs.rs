//! The drawings of a seat, once, to be referred to by every seat.
//!
//! State is told by shape first: free is a seat, sold is a seat with somebody in it, held is a seat
//! half there, not for sale is a cross, yours is a tick. Colour only repeats it. Units: one seat is 20
//! wide, its centre at the origin.

use domain::api::SeatKind;
use leptos::prelude::*;

use super::board::Look;

/// The drawing for a seat of this kind in this state.
#[must_use]
pub fn glyph(look: Look, kind: SeatKind) -> &'static str {
    match (look, kind) {
        (Look::Available, SeatKind::Recliner) => "#glyph-recliner",
        (Look::Available, SeatKind::Wheelchair) => "#glyph-wheelchair",
        (Look::Available, SeatKind::Companion) => "#glyph-companion",
        (Look::Available, SeatKind::Couple) => "#glyph-couple",
        (look, _) => look.glyph(),
    }
}

/// The definitions; drawn nowhere by themselves.
pub fn definitions() -> impl IntoView {
    view! {
        <svg class="glyphs" width="0" height="0" aria-hidden="true" focusable="false">
            <defs>
                <g id="glyph-available">
                    <rect class="g-cushion" x="-5.5" y="-8" width="11" height="10.5" rx="2.8"></rect>
                    <path class="g-back" d="M-8-3v5.2A4.8 4.8 0 0 0-3.2 7h6.4A4.8 4.8 0 0 0 8 2.2V-3"></path>
                </g>
                <g id="glyph-recliner">
                    <rect class="g-cushion" x="-5.5" y="-8.6" width="11" height="4" rx="1.6"></rect>
                    <rect class="g-cushion" x="-5.5" y="-3.4" width="11" height="6.6" rx="2"></rect>
                    <path class="g-back" d="M-8-4v6.2A4.8 4.8 0 0 0-3.2 7h6.4A4.8 4.8 0 0 0 8 2.2V-4"></path>
                </g>
                <g id="glyph-couple">
                    <rect class="g-cushion" x="-7.5" y="-8" width="15" height="10.5" rx="2.8"></rect>
                    <path class="g-back" d="M-9.4 4.6C-7 8 7 8 9.4 4.6"></path>
                </g>
                <g id="glyph-wheelchair">
                    <circle class="g-outline" r="8"></circle>
                    <circle class="g-solid" cx="-1" cy="-5" r="1.5"></circle>
                    <path class="g-line" d="M-1-3v4h4l2 4M-3-.4a3.6 3.6 0 1 0 4.6 4.4"></path>
                </g>
                <g id="glyph-companion">
                    <rect class="g-outline" x="-7" y="-7.5" width="14" height="14.5" rx="4"></rect>
                    <path class="g-line" d="M0-3.6v7M-3.5-.1h7"></path>
                </g>
                <g id="glyph-locked">
                    <rect class="g-held" x="-7.2" y="-7.2" width="14.4" height="14.4" rx="4"></rect>
                    <circle class="g-held-dot" r="1.9"></circle>
                </g>
                <g id="glyph-booked">
                    <path class="g-sold" d="M-8-3v5.2A4.8 4.8 0 0 0-3.2 7h6.4A4.8 4.8 0 0 0 8 2.2V-3"></path>
                    <circle class="g-sold-head" cy="-2.6" r="4.2"></circle>
                </g>
                <g id="glyph-blocked">
                    <path class="g-cross" d="m-4-4 8 8m0-8-8 8"></path>
                </g>
                <g id="glyph-mine">
                    <rect class="g-mine" x="-9" y="-9" width="18" height="18" rx="5.4"></rect>
                    <path class="g-tick" d="m-4.2.4 3 3.1L4.4-3.3"></path>
                </g>
                <g id="glyph-asked">
                    <rect class="g-asked" x="-8.4" y="-8.4" width="16.8" height="16.8" rx="5"></rect>
                    <path class="g-tick g-tick-asked" d="m-4.2.4 3 3.1L4.4-3.3"></path>
                </g>
            </defs>
        </svg>
    }
}
