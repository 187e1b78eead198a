//! The symbols of a seat, defined once and referenced by every seat.
//!
//! Shapes show the state: free is a chair, sold is a chair with a head, held is a hatched square, not for sale is a
//! cross, and the visitor's own is a tick. Colour only repeats it. Categories have a mark on the cushion besides their
//! colour. Units: a seat is 20 wide and centred on the origin.

use domain::api::SeatKind;
use leptos::prelude::*;

use crate::seat_map::appearance::SeatAppearance;

/// The symbol for a seat of this kind in this state.
#[must_use]
pub fn glyph(look: SeatAppearance, kind: SeatKind) -> &'static str {
    match (look, kind) {
        (SeatAppearance::Available, SeatKind::Recliner) => "#glyph-recliner",
        (SeatAppearance::Available, SeatKind::Wheelchair) => "#glyph-wheelchair",
        (SeatAppearance::Available, SeatKind::Companion) => "#glyph-companion",
        (SeatAppearance::Available, SeatKind::Couple) => "#glyph-couple",
        (look, _) => look.glyph(),
    }
}

/// Seen from above with the screen at the top: the cushion towards the screen, arms and back around it.
const DRAWINGS: &str = r##"<defs>
<g id="glyph-available"><path class="g-back" d="M-8-3.4v5.2A5.2 5.2 0 0 0-2.8 7h5.6A5.2 5.2 0 0 0 8 1.8v-5.2"/><path class="g-cushion" d="M-5.4-5.6Q-5.4-8-3-8.2 0-8.6 3-8.2 5.4-8 5.4-5.6V.6Q5.4 3.2 2.8 3.4 0 3.7-2.8 3.4-5.4 3.2-5.4.6z"/></g>
<g id="glyph-recliner"><path class="g-back" d="M-8-4.4v6.4A5 5 0 0 0-3 7h6a5 5 0 0 0 5-5v-6.4"/><rect class="g-cushion" x="-5.4" y="-9.2" width="10.8" height="4" rx="1.8"/><rect class="g-cushion" x="-5.4" y="-4" width="10.8" height="7.4" rx="2.4"/></g>
<g id="glyph-couple"><path class="g-back" d="M-9.6 1.6v1.2Q-9 7-5 7H5q4 0 4.6-4.2V1.6"/><path class="g-cushion" d="M-9-5.4q0-2.8 2.8-2.8H-.6V3.4h-5.6Q-9 3.4-9 .6zM.6-8.2h5.6Q9-8.2 9-5.4v6q0 2.8-2.8 2.8H.6z"/></g>
<g id="glyph-wheelchair"><circle class="g-outline" r="8.6"/><circle class="g-solid" cx="-1" cy="-5" r="1.6"/><path class="g-line" d="M-1-3v4h4l2 4M-3-.4a3.6 3.6 0 1 0 4.6 4.4"/></g>
<g id="glyph-companion"><rect class="g-outline" x="-7.4" y="-7.4" width="14.8" height="14.8" rx="4.4"/><path class="g-line" d="M0-3.6v7.2M-3.6 0h7.2"/></g>
<g id="glyph-locked"><rect class="g-held" x="-7.2" y="-7.2" width="14.4" height="14.4" rx="4"/><path class="g-held-hatch" d="M-4.6 1.6 1.6-4.6M-4.6 5 5-4.6M-1.6 5 5-1.6"/></g>
<g id="glyph-booked"><path class="g-sold" d="M-8-3v5.2A4.8 4.8 0 0 0-3.2 7h6.4A4.8 4.8 0 0 0 8 2.2V-3"/><circle class="g-sold-head" cy="-2.6" r="4.2"/></g>
<g id="glyph-blocked"><path class="g-cross" d="m-4-4 8 8m0-8-8 8"/></g>
<g id="glyph-mine"><rect class="g-mine" x="-9" y="-9" width="18" height="18" rx="5.4"/><path class="g-tick" d="m-4.2.4 3 3.1L4.4-3.3"/></g>
<g id="glyph-asked"><rect class="g-asked" x="-8.4" y="-8.4" width="16.8" height="16.8" rx="5"/><path class="g-tick g-tick-asked" d="m-4.2.4 3 3.1L4.4-3.3"/></g>
<g id="mark-0"/>
<g id="mark-1"><path d="M-2.6-2.4h5.2"/></g>
<g id="mark-2"><path d="M-2.6-4h5.2M-2.6-.8h5.2"/></g>
<g id="mark-3"><path d="M0-2.4h.01" stroke-width="3.4"/></g>
<g id="mark-4"><path d="M0-4.8v4.8"/></g>
<g id="mark-5"><path d="M-2.4-1.2 0-3.6l2.4 2.4"/></g>
<g id="mark-6"><path d="M-1.7-4.6V.1M1.7-4.6V.1"/></g>
<g id="mark-7"><circle cy="-2.4" r="2"/></g>
</defs>"##;

/// The symbol definitions, which draw nothing themselves.
pub fn definitions() -> impl IntoView {
    view! { <svg class="glyphs" width="0" height="0" aria-hidden="true" focusable="false" inner_html=DRAWINGS></svg> }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_referenced_symbol_is_defined() {
        let looks = [
            SeatAppearance::Available,
            SeatAppearance::Locked,
            SeatAppearance::Booked,
            SeatAppearance::Blocked,
            SeatAppearance::Mine,
            SeatAppearance::Asked,
        ];
        let kinds =
            [SeatKind::Standard, SeatKind::Recliner, SeatKind::Couple, SeatKind::Wheelchair, SeatKind::Companion];
        for (look, kind) in looks.into_iter().flat_map(|look| kinds.map(|kind| (look, kind))) {
            let name = glyph(look, kind).trim_start_matches('#');
            assert!(DRAWINGS.contains(&format!("<g id=\"{name}\">")), "{name}");
        }
        assert!((0..8).all(|mark| DRAWINGS.contains(&format!("<g id=\"mark-{mark}\""))));
    }
}
